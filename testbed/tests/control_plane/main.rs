//! What the tests and the demo may rely on. They need `go` for the first build, and minutes then; later they take seconds.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod aggregation;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use pintle_testbed::{Binaries, ControlPlane, Look, Options, Patience, eventually};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
";

#[test]
fn a_control_plane_does_what_a_cluster_does_and_logs_who_asked_for_it() {
    let mut cluster = ControlPlane::start(&binaries(), &Options { nodes: 2, ..options() }).unwrap();

    let nodes = cluster.run_kubectl(&["get", "nodes", "--no-headers"], None).unwrap();
    assert_eq!(nodes.lines().count(), 2, "{nodes}");
    assert!(nodes.lines().all(|line| line.contains(" Ready ")), "{nodes}");
    let version = cluster.run_kubectl(&["version"], None).unwrap();
    assert!(version.contains("Server Version: v1."), "{version}");

    cluster.run_kubectl(&["apply", "--filename=-"], Some(DEPLOYMENT)).unwrap();
    cluster.run_kubectl(&["rollout", "status", "deployment/web", &timeout()], None).unwrap();
    let pods = cluster.run_kubectl(&["get", "pods", "--no-headers"], None).unwrap();
    assert_eq!(pods.matches(" Running ").count(), 2, "{pods}");

    // Garbage collection, and Pods that go when they are deleted.
    cluster.run_kubectl(&["delete", "deployment/web", "--cascade=foreground", &timeout()], None).unwrap();
    cluster.run_kubectl(&["wait", "--for=delete", "pods", "--selector=app=web", &timeout()], None).unwrap();

    cluster.run_kubectl(&["create", "serviceaccount", "visitor"], None).unwrap();
    let kubeconfig = cluster.kubeconfig_for_service_account("default", "visitor").unwrap();
    let whoami =
        cluster.kubectl_command().env("KUBECONFIG", &kubeconfig).args(["auth", "whoami"]).output().unwrap();
    let whoami = String::from_utf8(whoami.stdout).unwrap();
    assert!(whoami.contains("system:serviceaccount:default:visitor"), "{whoami}");
    let refused =
        cluster.kubectl_command().env("KUBECONFIG", &kubeconfig).args(["get", "secrets"]).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Forbidden"), "{refused:?}");

    for (user, verb, resource, code) in [
        ("kubernetes-admin", "create", "serviceaccounts", 201),
        ("system:serviceaccount:default:visitor", "list", "secrets", 403),
        ("system:serviceaccount:kube-system:replicaset-controller", "create", "pods", 201),
    ] {
        // An event may come a moment after its answer, and its line may be half written.
        eventually(format!("{user} is logged: {verb} {resource}, {code}"), || {
            let log = fs::read_to_string(cluster.audit_log().unwrap())?;
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let events: Vec<serde_json::Value> =
                whole.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
            let is_logged = events.iter().any(|event| {
                event["user"]["username"] == user
                    && event["verb"] == verb
                    && event["objectRef"]["resource"] == resource
                    && event["responseStatus"]["code"] == code
            });
            Ok(Look::reached_if(is_logged, || format!("{} other events", events.len())))
        })
        .unwrap();
    }

    cluster.check().unwrap();
    let directory = cluster.directory().to_owned();
    cluster.stop().unwrap();
    assert_gone(&directory);
}

#[test]
fn two_control_planes_started_at_once_do_not_meet() {
    let start = || ControlPlane::start(&binaries(), &bare()).unwrap();
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(start);
        let other = scope.spawn(start);
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_ne!(one.directory(), other.directory());
    let server = ["config", "view", "--output=jsonpath={.clusters[0].cluster.server}"];
    assert_ne!(one.run_kubectl(&server, None).unwrap(), other.run_kubectl(&server, None).unwrap());

    one.run_kubectl(&["create", "namespace", "here"], None).unwrap();
    let absent = other.run_kubectl(&["get", "namespace", "here"], None).unwrap_err();
    assert!(absent.to_string().contains("NotFound"), "{absent}");

    // A cluster that the user names is used as it is, and is still there afterwards.
    let existing = ControlPlane::existing(one.kubeconfig()).unwrap();
    existing.run_kubectl(&["get", "namespace", "here"], None).unwrap();
    assert!(existing.audit_log().is_none());
    existing.stop().unwrap();
    one.run_kubectl(&["get", "namespace", "here"], None).unwrap();
}

#[test]
fn a_panic_leaves_nothing_behind() {
    let mut directory = PathBuf::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let cluster = ControlPlane::start(&binaries(), &bare()).unwrap();
        directory = cluster.directory().to_owned();
        assert!(processes_of(&directory).len() >= 3, "watchdog, etcd and kube-apiserver run");
        panic!("as a failing test does");
    }));
    outcome.unwrap_err();
    assert_gone(&directory);
}

#[test]
fn a_killed_process_leaves_nothing_behind() {
    // This test binary again, to be killed while it holds a control plane.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_control_plane_until_it_is_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let directory = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().split_once(HOLDING).map(|(_, path)| PathBuf::from(path)))
        .unwrap();
    // A process that was just started has no command line for a moment.
    eventually("all components, the watchdog and a host run", || {
        let running = processes_of(&directory);
        Ok(Look::reached_if(running.len() >= 7, || format!("only {running:?}")))
    })
    .unwrap();

    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || {
        let (running, is_there) = (processes_of(&directory), directory.exists());
        Ok(Look::reached_if(running.is_empty() && !is_there, || format!("{running:?}, folder: {is_there}")))
    })
    .unwrap();
}

#[test]
fn a_component_that_dies_is_named_with_the_end_of_its_log() {
    let mut cluster = ControlPlane::start(&binaries(), &bare()).unwrap();
    let directory = cluster.directory().to_owned();
    let (pid, _) =
        processes_of(&directory).into_iter().find(|(_, line)| line.contains("kube-apiserver --")).unwrap();
    let killed = Command::new("/bin/sh").args(["-c", &format!("kill -KILL {pid}")]).status().unwrap();
    assert!(killed.success());
    let error = eventually("its end is noticed", || {
        Ok(cluster.check().map_or_else(Look::Reached, |()| Look::NotYet("all components run".to_owned())))
    });
    let error = error.unwrap().to_string();
    assert!(error.starts_with("kube-apiserver exited with signal: 9"), "{error}");
    assert!((2..=21).contains(&error.lines().count()), "{error}");
    assert_eq!(cluster.stop().unwrap_err().to_string(), error);
    assert_gone(&directory);
}

#[test]
fn the_binaries_come_from_the_named_folder_or_the_error_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let without_go = shown(&[("PATH", &empty), ("PINTLE_CACHE", &empty)]);
    assert!(without_go.contains("Install Go"), "{without_go}");
    assert!(without_go.contains("KUBEBUILDER_ASSETS"), "{without_go}");

    let incomplete = shown(&[("KUBEBUILDER_ASSETS", &empty)]);
    assert!(incomplete.contains("kube-apiserver is not there"), "{incomplete}");

    let assets = fs::canonicalize(folder.path()).unwrap();
    for name in ["kube-apiserver", "etcd", "kubectl", "kwok"] {
        fs::write(assets.join(name), "").unwrap();
    }
    let found = shown(&[("KUBEBUILDER_ASSETS", &assets)]);
    assert!(found.contains(&format!("{:?}", assets.join("etcd"))), "{found}");
    assert!(found.contains(&format!("{:?}", assets.join("kwok"))), "{found}");
    assert!(!found.contains(&format!("{:?}", assets.join("kube-scheduler"))), "{found}");
}

#[test]
#[ignore = "not a test: the process that another test starts with other variables"]
fn shows_the_binaries() {
    println!("{:?}", Binaries::locate_or_build(&mut |line| eprintln!("{line}")));
}

/// What `shows_the_binaries` prints when it runs with these variables.
fn shown(variables: &[(&str, &Path)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shows_the_binaries", "--ignored", "--nocapture"])
        .env_remove("KUBEBUILDER_ASSETS")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const HOLDING: &str = "holding ";

#[test]
#[ignore = "not a test: the process that another test kills"]
fn holds_a_control_plane_until_it_is_killed() {
    let cluster = ControlPlane::start(&binaries(), &Options { nodes: 1, ..options() }).unwrap();
    let mut host = Command::new("sh");
    cluster.takes_in(host.args(["-c", "sleep 600; :"]).arg(cluster.directory())).unwrap();
    let mut host = host.spawn().unwrap();
    println!("{HOLDING}{}", cluster.directory().display());
    host.wait().unwrap();
}

fn binaries() -> Binaries {
    Binaries::locate_or_build(&mut |line| eprintln!("{line}")).unwrap()
}

fn options() -> Options {
    // Whoever keeps the folders to look into them does not want the claims about them to fail.
    Options { keep: false, ..Options::default() }
}

/// The least that answers: etcd and the API server.
fn bare() -> Options {
    Options { nodes: 0, controllers: false, ..options() }
}

/// How long a kubectl waits.
fn timeout() -> String {
    format!("--timeout={}s", Patience::default().whole().as_secs())
}

#[track_caller]
fn assert_gone(directory: &Path) {
    assert_eq!(processes_of(directory), Vec::new());
    assert!(!directory.exists(), "{} is still there", directory.display());
}

/// The numbers and command lines of all processes that name the folder of an instance, which each of its processes does.
fn processes_of(directory: &Path) -> Vec<(String, String)> {
    let folder = directory.to_str().unwrap();
    assert!(!folder.is_empty(), "every process would name it");
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let entry = entry.unwrap();
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            Some((entry.file_name().into_string().unwrap(), line))
        })
        .filter(|(_, line)| line.contains(folder))
        .collect()
}
