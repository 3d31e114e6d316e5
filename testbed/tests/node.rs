//! A node that runs Pods: what works on it, and that nothing is left of it. `PINTLE_IMAGES` names the folder of the archives of images, of
//! which it gets `hello.tar`, with `registry.test/hello:1`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::collections::BTreeSet;
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use pintle_testbed::{
    Binaries, ControlPlane, Look, NODE_ADDRESS, NodeBinaries, Options, Patience, eventually, output,
};

const OBJECTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  replicas: 2
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: hello
        image: registry.test/hello:1
        args: [serve]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: hello}
spec:
  type: NodePort
  selector: {app: hello}
  ports: [{port: 80, targetPort: 8080, nodePort: 30010}]
";

/// What a node could leave behind, of an instance with this FOLDER: its devices, addresses, routes and mounts, cgroups, processes of its own
/// and of its Pods, settings of the kernel, folders. grep gets the folder from a pipe, as it would find itself otherwise.
const TRACES: &str = r#"
{ ip -br link; ip -br address; ip -4 route show table all; cat /proc/self/mounts; } |
  grep -e pintle-node -e '10\.199\.' -e '10\.244\.' -e '10\.96\.' -e "$FOLDER"
find /sys/fs/cgroup -type d '(' -name pintle-node -o -name 'kube*' ')'
printf '%s\n' "$FOLDER" '^/hello' | grep -las -f - /proc/[0-9]*/cmdline
cd /proc/sys; grep . vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_max* net/ipv4/ip_forward
ls -d /var/lib/kubelet /var/lib/cni /var/lib/containerd /var/log/pods /run/containerd /opt/containerd /usr/libexec/kubernetes 2>/dev/null
true"#;

/// The command under which no node runs, since each holds this lock: that of another run of the tests may be next.
const LOCK: [&str; 2] = ["flock", "/sys/fs/cgroup"];

/// The folder of an instance that is not there yet.
const NOWHERE: &str = "/no/such/folder";

/// There is one node at a time, and each test looks for traces of its own.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn pods_run_and_are_reached_from_the_machine_and_nothing_is_left_of_them() {
    let _turn = TURN.lock();
    let before = traces(&LOCK, Path::new(NOWHERE));
    let mut cluster = start();
    cluster.run_kubectl(&["apply", "--filename=-"], Some(OBJECTS)).unwrap();
    let timeout = format!("--timeout={}s", Patience::default().whole().as_secs());
    cluster.run_kubectl(&["rollout", "status", "deployment/hello", &timeout], None).unwrap();

    let address = "--output=jsonpath={.spec.clusterIP}";
    let service = cluster.run_kubectl(&["get", "service", "hello", address], None).unwrap();
    for address in [format!("{service}:80"), format!("{NODE_ADDRESS}:30010")] {
        eventually(format!("{address} says hello"), || Ok(Look::of(get(&address)))).unwrap();
    }
    let logs = cluster.run_kubectl(&["logs", "--selector=app=hello", "--tail=-1"], None).unwrap();
    assert!(logs.contains("GET /pods HTTP/1.1"), "{logs}");

    cluster.check().unwrap();
    let directory = cluster.directory().to_owned();
    cluster.stop().unwrap();
    let after = traces(&LOCK, &directory);
    assert!(after.is_subset(&before), "{after:?}, and before {before:?}");
    assert!(!directory.exists());
}

#[test]
fn nothing_is_left_of_a_node_whose_process_was_killed() {
    let _turn = TURN.lock();
    let before = traces(&LOCK, Path::new(NOWHERE));
    // This test binary again, to be killed while it holds a node.
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "holds_a_node_until_it_is_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let directory = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .find_map(|line| line.unwrap().split_once(HOLDING).map(|(_, path)| PathBuf::from(path)))
        .unwrap();
    assert!(!traces(&[], &directory).is_subset(&before));

    child.kill().unwrap();
    child.wait().unwrap();
    eventually("nothing is left", || {
        let (after, is_there) = (traces(&LOCK, &directory), directory.exists());
        let is_clean = after.is_subset(&before) && !is_there;
        Ok(Look::reached_if(is_clean, || format!("folder: {is_there}, {after:?}, and before {before:?}")))
    })
    .unwrap();
}

const HOLDING: &str = "holding ";

#[test]
#[ignore = "not a test: the process that another test kills"]
fn holds_a_node_until_it_is_killed() {
    let cluster = start();
    cluster.run_kubectl(&["apply", "--filename=-"], Some(OBJECTS)).unwrap();
    let timeout = format!("--timeout={}s", Patience::default().whole().as_secs());
    cluster.run_kubectl(&["rollout", "status", "deployment/hello", &timeout], None).unwrap();
    println!("{HOLDING}{}", cluster.directory().display());
    loop {
        std::thread::park();
    }
}

/// A control plane whose only node runs Pods.
fn start() -> ControlPlane {
    let progress = &mut |line: &str| eprintln!("{line}");
    let node = Some(NodeBinaries::locate_or_build(progress).unwrap());
    // Whoever keeps the folders to look into them does not want the claims about them to fail.
    let options = Options { node, keep: false, ..Options::default() };
    let cluster = ControlPlane::start(&Binaries::locate_or_build(progress).unwrap(), &options).unwrap();
    let images = PathBuf::from(env::var_os("PINTLE_IMAGES").unwrap());
    cluster.load_image(&images.join("hello.tar")).unwrap();
    cluster
}

/// Asks a server for a page, which must say hello.
fn get(address: &str) -> anyhow::Result<()> {
    let mut server = TcpStream::connect(address)?;
    server.write_all(b"GET /pods HTTP/1.1\r\nHost: hello\r\n\r\n")?;
    let mut answer = String::new();
    server.read_to_string(&mut answer)?;
    anyhow::ensure!(answer.ends_with("hello\n"), "it says {answer}");
    Ok(())
}

/// The lines of [`TRACES`], by way of this command.
fn traces(command: &[&str], folder: &Path) -> BTreeSet<String> {
    let mut look = Command::new("env");
    let lines = output(look.args(command).args(["sh", "-c", TRACES]).env("FOLDER", folder), None).unwrap();
    lines.lines().map(str::to_owned).collect()
}
