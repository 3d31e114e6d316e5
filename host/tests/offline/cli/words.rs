//! What somebody reads where something does not work, and where a terminal is narrow or none.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use pintle_engine::fixtures;
use serde_json::json;

use super::{SEEN, cluster::Served, folder, folder::Folder, manifest};

#[test]
fn a_file_that_is_no_module_is_told_with_what_to_run_instead() {
    let folder = folder(b"");
    folder.write("greeter/Cargo.toml", "[package]\n");
    folder.write("greeter/src/lib.rs", "//! A guest.\n");
    folder.write("guest.wat", "(component)\n");
    folder.write("notes", "a module\n");
    for (file, hint) in [
        ("thing.yaml", "pintle render MODULE -f thing.yaml\n"),
        ("greeter/src/lib.rs", "pintle build greeter\n"),
        ("greeter/Cargo.toml", "pintle build greeter\n"),
        ("greeter", "pintle build greeter\n"),
        ("guest.wat", "wasm-tools parse guest.wat -o guest.wasm\n"),
        ("notes", "pintle build FOLDER\n"),
    ] {
        for command in ["check", "simulate"] {
            let run = folder.run(&[command, file]);
            assert!(run.code != 0 && run.stderr.ends_with(hint), "{command} {file}: {run:?}");
        }
        let run = folder.run(&["push", "a-0.1.0", file, "--kubeconfig", "missing"]);
        assert!(run.code != 0 && run.stderr.ends_with(hint), "push {file}: {run:?}");
    }
}

#[test]
fn help_is_readable_where_sixty_columns_are_all_there_is() {
    let folder = Folder::new();
    for command in [
        "new",
        "build",
        "render",
        "test",
        "simulate",
        "check",
        "crds",
        "rbac",
        "push",
        "plan",
        "swap",
        "inspect",
        "record",
        "status",
        "uninstall",
        "operator",
        "version",
        "completion",
    ] {
        let run = folder.run_with(&[("COLUMNS", "60")], &[command, "--help"]);
        let wide: Vec<&str> = run.stdout.lines().filter(|line| line.chars().count() > 60).collect();
        assert!(run.code == 0 && wide.is_empty(), "{command}: {wide:#?}");
    }
    let run = folder.run_with(&[("COLUMNS", "60")], &["--help"]);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= 60), "{run:?}");
}

/// A pipe is no terminal either.
#[test]
fn a_log_for_people_has_no_colour_in_a_file() {
    let folder = Folder::new();
    folder.write("kubeconfig", Served::default().start());
    let mut host = Command::new(env!("CARGO_BIN_EXE_pintle"))
        .args(["operator", "--log-format", "text", "--bind", "127.0.0.1:0", "--kubeconfig"])
        .arg(folder.path("kubeconfig"))
        .env_remove("NO_COLOR")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stderr.take().unwrap()).read_line(&mut line).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(line.contains(" INFO ") || line.contains(" WARN ") || line.contains(" ERROR "), "{line:?}");
    assert!(!line.contains('\u{1b}'), "{line:?}");
}

#[test]
fn where_pintle_is_not_installed_the_hint_is_a_command_that_works() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    folder.write("kubeconfig", Served::default().start());
    let run = folder.ends(2, &["push", "thing-0.1.0", "guest.wasm", "--kubeconfig", "kubeconfig"]);
    assert!(
        run.stderr.ends_with("hint: run: kubectl apply --server-side -f deploy/install.yaml\n"),
        "{run:?}"
    );
}

#[test]
fn a_module_is_not_pushed_where_no_host_is() {
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "pintle"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pintle"},
        "subjects": [{"kind": "ServiceAccount", "name": "pintle", "namespace": "tools"}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/pintle";
    folder.write("kubeconfig", Served::with_pintle().at(path, binding).start());
    let run = folder.ends(2, &["push", "thing-0.1.0", "guest.wasm", "--kubeconfig", "kubeconfig"]);
    let end = "error: Pintle is in namespace tools, not in pintle-system\nhint: add: --namespace tools\n";
    assert!(run.stderr.ends_with(end), "{run:?}");
}

#[test]
fn nothing_is_removed_from_a_cluster_that_nobody_was_asked_about() {
    let folder = Folder::new();
    let run = folder.ends(2, &["uninstall", "--kubeconfig", "missing"]);
    assert!(run.stderr.contains("no terminal") && run.stderr.ends_with("then add --yes\n"), "{run:?}");
}
