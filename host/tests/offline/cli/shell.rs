//! The commands for the shell: `pintle version`, `pintle completion` as shells call it, and `kubectl pintle`.

use std::{
    fs,
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::{
    cluster::Served,
    folder::{Folder, ask_until},
};

const RECONCILERS: &str = "/apis/pintle.dev/v1alpha1/reconcilers";
const VIEWS: &str = "/apis/pintle.dev/v1alpha1/views";
const MODULES: &str = "/apis/pintle.dev/v1alpha1/modules";

/// The list of objects with these names.
fn list(names: &[&str]) -> Value {
    let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    json!({"kind": "PartialObjectMetadataList", "apiVersion": "v1", "metadata": {}, "items": items})
}

/// A cluster with two Reconcilers, two Views and a Module.
fn served() -> Served {
    Served::with_pintle()
        .at(RECONCILERS, list(&["darkroom", "webserver"]))
        .at(VIEWS, list(&["farmpods", "llamas"]))
        .at(MODULES, list(&["darkroom-0.1.0"]))
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

/// Checks what bash offers behind these words.
fn bash_offers(folder: &Folder, words: &[&str], expected: &[&str]) {
    let offered = ask_until(|offered: &Vec<String>| *offered == expected, || bash(folder, words));
    assert_eq!(offered, expected, "{words:?}");
}

#[test]
fn bash_completes_commands_flags_names_and_files() {
    let folder = shell(served());
    folder.write("guest.wasm", "");
    bash_offers(&folder, &["pintle", "ren"], &["render"]);
    assert!(!bash(&folder, &["pintle", ""]).contains(&"compile".to_owned()), "what is hidden is not offered");
    bash_offers(&folder, &["pintle", "rbac", "--pod"], &["--pod-deletions"]);
    let all = ["darkroom", "webserver", "view/farmpods", "view/llamas"].map(str::to_owned);
    let offered = ask_until(
        |offered: &Vec<String>| offered.starts_with(&all),
        || bash(&folder, &["pintle", "swap", ""]),
    );
    assert!(offered.starts_with(&all), "{offered:?}");
    bash_offers(&folder, &["pintle", "swap", "view/l"], &["view/llamas"]);
    bash_offers(&folder, &["pintle", "swap", "vi"], &["view/farmpods", "view/llamas"]);
    bash_offers(&folder, &["pintle", "swap", "view/llamas", "d"], &["darkroom-0.1.0"]);
    bash_offers(&folder, &["pintle", "swap", "w"], &["webserver"]);
    bash_offers(&folder, &["pintle", "swap", "darkroom", "d"], &["darkroom-0.1.0"]);
    bash_offers(&folder, &["pintle", "rbac", "g"], &["guest.wasm"]);
    bash_offers(&folder, &["pintle", "rbac", "d"], &["darkroom-0.1.0"]);
    bash_offers(&folder, &["pintle", "check", "g"], &["guest.wasm"]);
}

#[test]
fn names_complete_from_the_cluster_of_the_flag() {
    // This cluster has no Reconcilers, and nobody says so. The name of its View shows that it was not merely too slow to tell.
    let folder = shell(Served::default().at(VIEWS, list(&["alpacas"])));
    bash_offers(&folder, &["pintle", "swap", "v"], &["view/alpacas"]);
    folder.write("other", served().start());
    let other = ["pintle", "swap", "--kubeconfig", "other"];
    bash_offers(&folder, &[&other[..], &["v"]].concat(), &["view/farmpods", "view/llamas"]);
    bash_offers(&folder, &[&other[..], &["w"]].concat(), &["webserver"]);
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
        let asked = format!("_CLAP_COMPLETE_INDEX=2 PINTLE_COMPLETE={name} pintle -- pintle swap d");
        let answer =
            ask_until(|answer: &String| answer.trim_end() == "darkroom", || sh(&folder, "sh", &asked));
        assert_eq!(answer.trim_end(), "darkroom", "{name}");
    }
}

/// As kubectl runs it: with the words behind `kubectl pintle`, of which the last is unfinished.
#[test]
fn the_plugin_completes_as_kubectl_asks_it() {
    let folder = shell(served());
    let script = "bin/kubectl_complete-pintle";
    // The shell writes it: what this process has open for writing, a process that another test starts now has open too, and then nobody can
    // run it.
    sh(&folder, "sh", &format!("kubectl-pintle completion kubectl > {script} && chmod 755 {script}"));
    let is_all = |answer: &String| {
        answer.starts_with("darkroom\nwebserver\nview/farmpods\nview/llamas\n--undo\tSwitch back")
            && answer.ends_with("\n:4\n")
    };
    let all = ask_until(is_all, || sh(&folder, "sh", "kubectl_complete-pintle swap ''"));
    assert!(is_all(&all), "{all}");
    let is_webserver = |answer: &String| answer == "webserver\n:4\n";
    let one = ask_until(is_webserver, || sh(&folder, "sh", "kubectl_complete-pintle swap w"));
    assert!(is_webserver(&one), "{one}");
    assert_eq!(
        sh(&folder, "sh", "kubectl_complete-pintle check ./b"),
        "./bin/\n:6\n",
        "more follows a folder"
    );
    assert!(sh(&folder, "sh", "kubectl_complete-pintle sw").starts_with("swap\tSwitch a Reconciler"));
}

#[test]
fn the_version_is_that_of_the_program_and_of_the_contract() {
    let folder = Folder::new();
    let run = folder.run(&["version"]);
    let value = |name: &str| {
        let row = run.stdout.lines().find_map(|line| line.strip_prefix(name));
        row.map(str::trim).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(
        (value("Version"), value("Documents")),
        (env!("CARGO_PKG_VERSION").into(), "guest.pintle.dev/v1".into())
    );
    assert_eq!(value("Tested with"), "Kubernetes 1.36 and 1.35");
    let data: Value = serde_json::from_str(&folder.run(&["version", "-o", "json"]).stdout).unwrap();
    assert_eq!(
        data["contract"]["interfaces"],
        json!(["pintle:guest/guest@0.1.0", "pintle:guest/views@0.1.0"])
    );
}
