//! The commands for the shell: `pintle version`, `pintle completion` as shells call it, `kubectl pintle`, and the manual pages.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{cluster::Served, folder::Folder};

/// A cluster with a host, two Reconcilers, two Views and a Module.
fn served() -> Served {
    let list = |kind: &str, names: &[&str]| {
        let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        json!({"kind": kind, "apiVersion": "v1", "metadata": {}, "items": items})
    };
    let pod = json!({"spec": {"containers": [{"name": "pintle", "image": "registry.example.com:5000/pintle:0.2.0"}]}});
    Served::with_pintle()
        .at("/apis/pintle.dev/v1alpha1/reconcilers", list("PartialObjectMetadataList", &["darkroom", "webserver"]))
        .at("/apis/pintle.dev/v1alpha1/views", list("PartialObjectMetadataList", &["farmpods", "llamas"]))
        .at("/apis/pintle.dev/v1alpha1/modules", list("PartialObjectMetadataList", &["darkroom-0.1.0"]))
        .at("/version", json!({
            "major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "", "buildDate": "",
            "goVersion": "", "compiler": "", "platform": "",
        }))
        .at("/apis/apps/v1/namespaces/pintle-system/deployments/pintle", json!({
            "metadata": {"name": "pintle"}, "spec": {"replicas": 2, "selector": {}, "template": pod}, "status": {"readyReplicas": 2},
        }))
}

/// A folder with a kubeconfig, and a folder `bin` with the program by both of its names.
fn shell(served: Served) -> Folder {
    let folder = Folder::new();
    folder.write("kubeconfig", served.start());
    fs::create_dir(folder.path("bin")).unwrap();
    for name in ["pintle", "kubectl-pintle"] {
        symlink(env!("CARGO_BIN_EXE_pintle"), folder.path("bin").join(name)).unwrap();
    }
    folder
}

/// What a script prints, with the program in the PATH.
fn sh(folder: &Folder, shell: &str, script: &str) -> String {
    let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new(shell)
        .args(["-c", script])
        .current_dir(folder.path(""))
        .env("PATH", path)
        .env("KUBECONFIG", folder.path("kubeconfig"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.is_empty(), "who presses a key sees it: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// What bash offers behind these words, as its script finds it: the last word is unfinished.
fn bash(folder: &Folder, words: &[&str]) -> Vec<String> {
    let last = words.len() - 1;
    let script = format!(
        "source <(pintle completion bash); COMP_WORDS=({}); COMP_CWORD={last}; \
         _clap_complete_pintle pintle '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words[last],
        words[last - 1],
    );
    sh(folder, "bash", &script).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_names_and_files() {
    let folder = shell(served());
    folder.write("guest.wasm", "");
    assert_eq!(bash(&folder, &["pintle", "ren"]), ["render"]);
    assert!(!bash(&folder, &["pintle", ""]).contains(&"compile".to_owned()), "what is hidden is not offered");
    assert_eq!(bash(&folder, &["pintle", "rbac", "--pod"]), ["--pod-deletions"]);
    let all = ["darkroom", "webserver", "view/farmpods", "view/llamas"];
    assert_eq!(bash(&folder, &["pintle", "swap", ""])[..4], all);
    for view in ["view/l", "vi"] {
        let views = bash(&folder, &["pintle", "swap", view]);
        assert!(views.contains(&"view/llamas".to_owned()) && views.len() <= 2, "{view}: {views:?}");
    }
    assert_eq!(bash(&folder, &["pintle", "rbac", "view/f"]), ["view/farmpods"]);
    assert_eq!(bash(&folder, &["pintle", "swap", "view/llamas", "d"]), ["darkroom-0.1.0"]);
    assert_eq!(bash(&folder, &["pintle", "swap", "w"]), ["webserver"]);
    assert_eq!(bash(&folder, &["pintle", "swap", "darkroom", "d"]), ["darkroom-0.1.0"]);
    assert_eq!(bash(&folder, &["pintle", "rbac", "g"]), ["guest.wasm"]);
    assert_eq!(bash(&folder, &["pintle", "rbac", "d"]), ["darkroom"]);
    assert_eq!(bash(&folder, &["pintle", "check", "g"]), ["guest.wasm"]);
}

#[test]
fn names_complete_from_the_cluster_of_the_flag() {
    let folder = shell(Served::default());
    assert_eq!(bash(&folder, &["pintle", "swap", "w"]), [""], "this cluster has none, and nobody says so");
    folder.write("other", served().start());
    assert_eq!(bash(&folder, &["pintle", "swap", "--kubeconfig", "other", "w"]), ["webserver"]);
}

#[test]
fn zsh_fish_and_powershell_have_a_script_and_their_candidates() {
    let folder = shell(served());
    for (name, registers) in [
        ("zsh", "#compdef pintle"),
        ("fish", "complete --keep-order --exclusive --command pintle"),
        ("powershell", "Register-ArgumentCompleter -Native -CommandName pintle"),
    ] {
        let script = sh(&folder, "sh", &format!("pintle completion {name}"));
        assert!(script.contains(registers) && script.contains("COMPLETE"), "{script}");
        let asked = format!("_CLAP_COMPLETE_INDEX=2 COMPLETE={name} pintle -- pintle swap d");
        assert_eq!(sh(&folder, "sh", &asked).trim_end(), "darkroom", "{name}");
    }
}

#[test]
fn a_variable_that_somebody_else_has_set_changes_nothing() {
    let run = Folder::new().run_with(&[("COMPLETE", "1")], &["--version"]);
    assert_eq!(run.stdout, format!("pintle {}\n", env!("CARGO_PKG_VERSION")));
}

/// As kubectl runs it: with the words behind `kubectl pintle`, of which the last is unfinished.
#[test]
fn the_plugin_completes_as_kubectl_asks_it() {
    let folder = shell(served());
    folder.write("bin/kubectl_complete-pintle", sh(&folder, "sh", "kubectl-pintle completion kubectl"));
    let script = folder.path("bin/kubectl_complete-pintle");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let all = sh(&folder, "sh", "kubectl_complete-pintle swap ''");
    assert!(
        all.starts_with("darkroom\nwebserver\nview/farmpods\nview/llamas\n--wait\tWait until")
            && all.ends_with("\n:4\n"),
        "{all}"
    );
    assert_eq!(sh(&folder, "sh", "kubectl_complete-pintle swap w"), "webserver\n:4\n");
    assert_eq!(
        sh(&folder, "sh", "kubectl_complete-pintle check ./b"),
        "./bin/\n:6\n",
        "more follows a folder"
    );
    assert!(sh(&folder, "sh", "kubectl_complete-pintle sw").starts_with("swap\tSwitch a Reconciler"));
}

#[test]
fn the_version_is_that_of_the_client_the_contract_and_the_host() {
    let folder = shell(served());
    let run = folder.run(&["version", "--kubeconfig", "kubeconfig"]);
    assert_eq!(run.code, 0, "{run:?}");
    let value = |name: &str| {
        let row = run.stdout.lines().find_map(|line| line.strip_prefix(name));
        row.map(str::trim).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(value("Client"), env!("CARGO_PKG_VERSION"));
    assert_eq!(value("Documents"), "guest.pintle.dev/v1");
    assert_eq!(value("Cluster"), "Kubernetes v1.36.3");
    assert_eq!(value("Host"), "0.2.0 (image registry.example.com:5000/pintle:0.2.0, 2 of 2 Pods ready)");
    let run = folder.run(&["version", "--kubeconfig", "kubeconfig", "-o", "json"]);
    let data: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(data["cluster"]["host"]["version"], "0.2.0");
    assert_eq!(
        data["client"]["contract"]["interfaces"],
        json!(["pintle:guest/guest@0.1.0", "pintle:guest/views@0.1.0"])
    );
}

#[test]
fn without_a_host_the_version_says_why() {
    let told = |arguments: &[&str], folder: &Folder| {
        let run = folder.run_with(&[("HOME", "/nonexistent")], arguments);
        assert!(run.code == 0 && run.stderr.is_empty(), "{run:?}");
        run.stdout
    };
    let none = told(&["version"], &Folder::new());
    assert!(none.contains("\nHost ") && none.contains("unknown: no cluster: set KUBECONFIG"), "{none}");
    let client = told(&["version", "--client"], &Folder::new());
    assert!(client.contains("\nPolicy ") && !client.contains("Host"), "{client}");
    let folder = shell(served());
    let elsewhere = told(&["version", "--kubeconfig", "kubeconfig", "-n", "other"], &folder);
    assert!(elsewhere.contains("neither a Deployment nor a Lease other/pintle"), "{elsewhere}");
    assert!(elsewhere.contains("Kubernetes v1.36.3"), "what is known is said: {elsewhere}");
}

/// A page that groff complains of is one that somebody reads with holes in it.
#[test]
fn the_manual_pages_are_sound() {
    let folder = shell(Served::default());
    let run = folder.run(&["man", "pages"]);
    assert_eq!(run.code, 0, "{run:?}");
    let page = folder.read("pages/pintle-rbac.1");
    assert!(page.starts_with(".ie") && page.contains(".TH PINTLE-RBAC 1 \" \" \"pintle "), "{page}");
    assert!(page.contains("\npintle rbac webserver | kubectl apply \\-f \\-\n"), "{page}");
    assert!(folder.read("pages/pintle.1").contains("pintle\\-swap(1)"), "{}", folder.read("pages/pintle.1"));
    let Ok(version) = Command::new("groff").arg("--version").output() else {
        eprintln!("groff is not here: the pages are not typeset");
        return;
    };
    assert!(version.status.success());
    for file in fs::read_dir(folder.path("pages")).unwrap() {
        let file = file.unwrap().path();
        let set = Command::new("groff").args(["-man", "-Tutf8", "-ww", "-z"]).arg(&file).output().unwrap();
        assert!(set.status.success() && set.stderr.is_empty(), "{}: {set:?}", file.display());
    }
}
