//! `pintle simulate`.

use std::{fs, path::Path, process::Command};

use pintle_engine::fixtures;

use super::{SEEN, folder, folder::Folder, manifest};

#[test]
fn without_the_program_behind_it_simulate_says_how_to_get_one() {
    let alone = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let pintle = alone.path().join("pintle");
    // No copy: a file that was written cannot be run while another thread starts a process.
    fs::hard_link(env!("CARGO_BIN_EXE_pintle"), &pintle).unwrap();
    let folder = folder(&fixtures::answers(&manifest(), SEEN));
    let run = folder.run_program(&pintle, &[("PATH", "")], &["simulate", "guest.wasm"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.starts_with("error: pintle-simulate cannot be run: "), "{run:?}");
    assert!(run.stderr.contains("cargo build --package pintle-simulate"), "{run:?}");
    let help = folder.run_program(&pintle, &[("PATH", "")], &["simulate", "--help"]);
    assert!(help.code == 0 && help.stdout.contains("--seeds"), "{help:?}");
}

/// A guest out of `pintle new` whose page says something else, and the module that it becomes.
fn flawed(folder: &Folder, whole: &str, flaw: &str) {
    let observed = whole.replacen(
        r#"ChildKind::new("v1", "ConfigMap")"#,
        r#"ChildKind::new("v1", "ConfigMap").observed()"#,
        1,
    );
    let shown = observed.replacen(
        r#""data": {"index.html": root.spec.text}"#,
        r#""data": {"index.html": root.spec.text, "flaw": flaw}"#,
        1,
    );
    let made = shown.replacen("page(root)", "page(root, flaw)", 1).replacen(
        "fn page(root: &Root)",
        "fn page(root: &Root, flaw: String)",
        1,
    );
    let said = made.replacen(
        "let rollout =",
        &format!("let flaw: String = {{ {flaw} }};\n        let rollout ="),
        1,
    );
    assert!(
        said.contains(flaw) && said.matches("flaw").count() > 3,
        "the template is not what the test takes it for"
    );
    folder.write("flawed/src/lib.rs", said);
    folder.ends(0, &["build", "flawed"]);
}

const MADE: &str = "
about: An album is made.
objects: [{apiVersion: pictures.example.com/v1, kind: PhotoAlbum, metadata: {name: a}, spec: {text: hello}}]
steps:
  - name: it is answered for
    expect: [{object: {apiVersion: pictures.example.com/v1, kind: PhotoAlbum, name: a}, matches: {status: {observedGeneration: 1}}}]
";

/// Three classic mistakes, and one that shows only where something goes wrong. Slow, since it compiles guests.
#[test]
#[ignore = "tier two: it compiles guests"]
fn the_author_of_a_bad_guest_reads_what_is_wrong_and_what_to_do() {
    let folder = Folder::new();
    folder.ends(0, &["new", "flawed", "--kind", "PhotoAlbum", "--group", "pictures.example.com"]);
    let whole = folder.read("flawed/src/lib.rs");
    let simulate = ["simulate", "flawed/flawed.wasm"];

    let seen = r#"request.child("ConfigMap", &root.metadata.name).map(|page| page["data"]["flaw"].as_str().unwrap_or_default().to_owned())"#;
    flawed(
        &folder,
        &whole,
        &format!(r#"if {seen}.as_deref() == Some("a") {{ "b".to_owned() }} else {{ "a".to_owned() }}"#),
    );
    let flips = folder.run(&simulate);
    flawed(&folder, &whole, &format!(r#"format!("{{}}x", {seen}.unwrap_or_default())"#));
    let grows = folder.run(&simulate);
    for run in [&flips, &grows] {
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.starts_with("FAILED  flawed/sample.yaml: it does not hold that "), "{run:?}");
        assert!(
            run.stdout.contains("(O10)") || run.stdout.contains("(O4)") || run.stdout.contains("(O1)"),
            "{run:?}"
        );
        assert!(run.stdout.contains("what goes wrong: nothing; this is the guest alone\n"), "{run:?}");
        assert!(run.stdout.contains("what to do: "), "{run:?}");
    }

    flawed(
        &folder,
        &whole,
        r#"request.children.first().map(|child| child["kind"].to_string()).unwrap_or_default()"#,
    );
    let run = folder.ends(1, &simulate);
    assert!(run.stdout.contains("in whatever order its children are shown (O5)\n"), "{run:?}");
    assert!(run.stdout.contains("+ asked with its children in another order\n"), "{run:?}");
    assert!(
        run.stdout.contains("flaw: ")
            && run.stdout.contains("find children by kind and name (request.child)"),
        "{run:?}"
    );
    // The line that repeats it, pasted.
    let line = run.stdout.lines().find_map(|line| line.strip_prefix("  to repeat it: ")).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_pintle")).parent().unwrap().display().to_string();
    let repeated = Command::new("sh")
        .args(["-c", line])
        .current_dir(folder.path(""))
        .env("PATH", programs + ":/usr/bin:/bin")
        .output()
        .unwrap();
    let text = String::from_utf8(repeated.stdout).unwrap();
    assert_eq!(repeated.status.code(), Some(1), "{text}");
    assert!(text.contains("host-1   starts") && text.contains("(O5)"), "{text}");

    flawed(&folder, &whole, &format!(r#"{seen}.unwrap_or("a".to_owned())"#));
    folder.write("made.yaml", MADE);
    let line = "made.yaml seed=0 plan=w1=edit";
    let arguments = ["--scenario", "made.yaml", "--replay", line, "-o", "json"];
    let run = folder.ends(1, &[simulate.as_slice(), &arguments].concat());
    let data: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&data["property"], &data["passed"]), (&"O2".into(), &false.into()), "{data}");
    assert!(data["faults"][0].as_str().unwrap().contains("somebody edits what was written"), "{data}");
    assert_ne!(
        data["difference"]["before"]["value"]["data"]["flaw"],
        data["difference"]["after"]["value"]["data"]["flaw"],
        "{data}"
    );
    assert_eq!(data["replay"], line);
}
