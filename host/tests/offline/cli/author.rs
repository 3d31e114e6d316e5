//! What the author of a guest goes through: from `pintle new` to a panic. Slow, since it compiles guests. All of them share the
//! dependencies that the first one builds.

use std::{fs, path::Path};

use pintle_engine::CallLimits;

use super::folder::{Folder, Run};
use crate::repository;

/// The first block of code of a page in this language.
fn block<'page>(page: &'page str, language: &str) -> &'page str {
    let (_, rest) = page.split_once(&format!("\n```{language}\n")).unwrap();
    let (code, _) = rest.split_once("```\n").unwrap();
    code
}

#[test]
#[ignore = "tier two: it compiles guests"]
fn the_guest_of_the_readme_builds_and_answers_to_its_example() {
    let page = fs::read_to_string(repository().join("README.md")).unwrap();
    let folder = Folder::new();
    folder.ends(0, &["new", "site"]);
    folder.write("site/src/lib.rs", block(&page, "rust"));
    folder.write("site/blog.yaml", block(&page, "yaml"));
    folder.ends(0, &["build", "site"]);
    let run = folder.ends(0, &["render", "site/site.wasm", "-f", "site/blog.yaml"]);
    assert!(run.stdout.contains("kind: Deployment\n") && run.stdout.contains("replicas: 2\n"), "{run:?}");
}

/// The story of docs/quickstart.md, from an empty folder outside of the repository.
#[test]
#[ignore = "tier two: it compiles guests"]
fn a_new_guest_builds_and_passes_its_case() {
    let folder = Folder::new();
    folder.ends(0, &["new", "photo-album", "--group", "pictures.example.com"]);
    builds_and_passes(&folder);

    folder.write("photo-album/crd.yaml", "stale");
    let run = folder.ends(1, &["build", "photo-album", "--locked"]);
    assert!(run.stderr.contains("crd.yaml is stale"), "{run:?}");
    folder.ends(2, &["new", "photo-album"]);
}

#[test]
#[ignore = "tier two: it compiles guests"]
fn a_new_guest_that_serves_a_view_builds_keeps_the_laws_and_passes_its_case() {
    let folder = Folder::new();
    let run = folder.ends(0, &["new", "summary", "--view"]);
    assert!(
        run.stdout.starts_with("summary: a guest that serves the view Summary (example.com/v1)\n"),
        "{run:?}"
    );
    let before = folder.read("summary/views.json");
    let run = folder.ends(0, &["build", "summary"]);
    assert!(
        run.stderr.ends_with("building the schema generator (1 of 2)\nbuilding the module (2 of 2)\n"),
        "{run:?}"
    );
    assert_eq!(before, folder.read("summary/views.json"), "what `new` writes is what `build` generates");
    let run = folder.run(&["test", "summary/summary.wasm", "summary/cases"]);
    assert_eq!(run.stdout, "ok      summary/cases/sample.yaml\n1 passed, 0 failed\n", "{run:?}");
    let run = folder.run(&["check", "summary/summary.wasm"]);
    assert!(run.code == 0 && run.stdout.contains("summaries: hold on 10"), "{run:?}");
    let render = ["render", "summary/summary.wasm", "-f", "summary/sample.yaml"];
    let run = folder.run(&render);
    assert!(run.stdout.contains("\nkind: Summary\n") && run.stdout.contains("entries: 2\n"), "{run:?}");

    // A panic of `show` is told by a native run, as one of `reconcile` is.
    let view = folder.read("summary/src/view.rs");
    folder.write(
        "summary/src/view.rs",
        view.replace(
            "Ok(Self {",
            "assert!(config_map[\"data\"].is_null(), \"too much\");\n        Ok(Self {",
        ),
    );
    folder.ends(0, &["build", "summary"]);
    let run = folder.run(&render);
    assert!(
        run.code == 1
            && run.stderr.contains("native run: panicked at src/view.rs:")
            && run.stderr.contains("too much"),
        "{run:?}"
    );
    let run = folder.run(&["test", "summary/summary.wasm", "summary/cases"]);
    assert!(run.code == 1 && run.stdout.contains("native run: panicked at src/view.rs:"), "{run:?}");
}

fn builds_and_passes(folder: &Folder) {
    let generated = ["photo-album/crd.yaml", "photo-album/config.schema.json"];
    let before = generated.map(|file| folder.read(file));
    let run = folder.ends(0, &["build", "photo-album"]);
    // Without a terminal, cargo says nothing unless something is wrong.
    let told = "building the schema generator (1 of 2)\nbuilding the module (2 of 2)\n";
    assert!(run.stderr.ends_with(told) && !run.stderr.contains("Compiling"), "{run:?}");
    assert_eq!(
        before,
        generated.map(|file| folder.read(file)),
        "what `new` writes is what `build` generates"
    );
    let run = folder.run(&["test", "photo-album/photo-album.wasm", "photo-album/cases"]);
    assert_eq!(run.stdout, "ok      photo-album/cases/sample.yaml\n1 passed, 0 failed\n", "{run:?}");
    let files = ["sample.yaml", "reconciler.yaml", "crd.yaml"].map(|file| format!("photo-album/{file}"));
    let mut words = vec!["render", "photo-album/photo-album.wasm"];
    words.extend(files.iter().flat_map(|file| ["-f", file]));
    folder.ends(0, &words);
    folder.ends(0, &["check", "photo-album/photo-album.wasm"]);
    folder.ends(0, &["simulate", "photo-album/photo-album.wasm", "--seeds", "20"]);
    let module = fs::read(folder.path("photo-album/photo-album.wasm")).unwrap();
    let here = folder.path("").display().to_string();
    assert!(
        !String::from_utf8_lossy(&module).contains(here.trim_end_matches('/')),
        "no path of this machine is in the module"
    );
}

/// In a build folder of its own, where no earlier test has built anything.
#[test]
#[ignore = "tier two: it compiles a guest and its dependencies"]
fn cargo_test_of_a_new_guest_compiles_no_dependency_again() {
    let folder = Folder::new();
    folder.ends(0, &["new", "photo-album"]);
    // The build ends after the generator: the module takes long, and `cargo test` has nothing of it.
    let resource = folder.read("photo-album/src/resource.rs");
    folder.write("photo-album/src/resource.rs", resource.replace("\"photoalbums\"", "\"Photos\""));
    let target = folder.path("target").display().to_string();
    let environment = [("CARGO_TARGET_DIR", target.as_str())];
    let run = folder.run_with(&environment, &["build", "photo-album"]);
    assert!(run.code == 1 && run.stderr.contains("spec.names.plural"), "{run:?}");
    assert_eq!(run.stdout, "", "nothing is written that is refused");

    let words = ["test", "--manifest-path", "photo-album/Cargo.toml"];
    let run = folder.run_program(Path::new("cargo"), &environment, &words);
    assert_eq!(run.code, 0, "{run:?}");
    let compiled = Vec::from_iter(run.stderr.lines().filter(|line| line.contains("Compiling")));
    assert!(compiled.len() == 1 && compiled[0].contains("photo-album v"), "{run:?}");
}

/// A new guest of this name in `dir`, with a part of its sources replaced.
fn greeter(folder: &Folder, name: &str, dir: &str, from: &str, to: &str) {
    folder.ends(0, &["new", name, "--kind", "Greeter", "--dir", dir]);
    change(folder, dir, from, to);
}

/// A view of Greeters, as the SDK's documentation writes one.
const VIEW: &str = r#"
/// What is seen of a Greeter.
#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Glance {
    spec: GlanceSpec,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GlanceSpec {
    text: String,
}

impl pintle_guest::View for Glance {
    type Backing = Root;
    type Shown = Glance;
    type Config = pintle_guest::NoConfig;
    const NAME: &'static str = "glances";
    fn manifest() -> pintle_guest::ViewManifest {
        let shown = pintle_guest::Shown::new("seen.example.com/v1", "Glance", "glances");
        pintle_guest::ViewManifest::new(Greeter::manifest().reconciles, &["spec"], shown)
    }
    fn show(greeter: Root, _: &pintle_guest::NoConfig) -> Result<Glance, Failure> {
        Ok(Glance { spec: GlanceSpec { text: greeter.spec.text } })
    }
}

/// The views.
pub struct Seen;

impl pintle_guest::Views for Seen {
    const NAME: &'static str = "both";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type All = (Glance,);
}
"#;

#[test]
#[ignore = "tier two: it compiles guests"]
fn a_guest_that_reconciles_and_serves_views_is_one_module() {
    let folder = Folder::new();
    greeter(&folder, "both", "greeter", "export!(Greeter);", "export!(Greeter, views: Seen);");
    let sources = folder.read("greeter/src/lib.rs");
    folder.write("greeter/src/lib.rs", format!("{sources}{VIEW}"));
    let program = folder.read("greeter/src/bin/schema.rs");
    let both = program.replace("run::<both::Greeter>", "run_both::<both::Greeter, both::Seen>");
    folder.write("greeter/src/bin/schema.rs", both);
    let run = folder.run(&["build", "greeter"]);
    assert!(run.code == 0 && run.stdout.contains("\nViews        glances: "), "{run:?}");
    let run = folder.run(&["test", "greeter/both.wasm", "greeter/cases"]);
    assert_eq!(run.code, 0, "it reconciles as before: {run:?}");

    let bytes = fs::read(folder.path("greeter/both.wasm")).unwrap();
    let module = pintle_offline::engine().unwrap().load(&bytes, None).unwrap();
    let request = r#"{"apiVersion":"guest.pintle.dev/v1","view":"glances","objects":[{"metadata":{"name":"a"},"spec":{"text":"hello"}}]}"#;
    let shown = module.views().unwrap().show("glances", request, 1, &CallLimits::default()).unwrap();
    assert_eq!(
        shown.text,
        r#"{"apiVersion":"guest.pintle.dev/v1","items":[{"object":{"spec":{"text":"hello"}}}]}"#
    );
}

fn change(folder: &Folder, dir: &str, from: &str, to: &str) {
    let sources = folder.read(&format!("{dir}/src/lib.rs"));
    assert!(sources.contains(from), "the template is not what the test takes it for");
    folder.write(&format!("{dir}/src/lib.rs"), sources.replacen(from, to, 1));
}

fn digest(run: &Run) -> String {
    assert_eq!(run.code, 0, "{run:?}");
    run.stdout.lines().find_map(|line| line.strip_prefix("Digest")).unwrap().trim().to_owned()
}

#[test]
#[ignore = "tier two: it compiles guests"]
fn guests_of_one_name_share_dependencies_and_keep_their_own_bytes() {
    let folder = Folder::new();
    let text = "root.spec.text}";
    greeter(&folder, "greeter", "a", text, r#"format!("a says {}", root.spec.text)}"#);
    greeter(&folder, "greeter", "b", text, r#"format!("b says {}", root.spec.text)}"#);
    let build = |dir: &str| folder.run(&["build", dir]);
    let (a, b) = (digest(&build("a")), digest(&build("b")));
    let says = |dir: &str| {
        let (module, sample) = (format!("{dir}/greeter.wasm"), format!("{dir}/sample.yaml"));
        folder.run(&["render", &module, "-f", &sample]).stdout
    };
    assert!(says("a").contains("a says hello"), "{}", says("a"));
    assert!(says("b").contains("b says hello"), "{}", says("b"));

    // In another folder the same sources give the same bytes.
    greeter(&folder, "greeter", "c", text, r#"format!("a says {}", root.spec.text)}"#);
    assert_eq!(digest(&build("c")), a);
    assert_eq!(digest(&build("b")), b, "the guest before is not taken for this one");
}

#[test]
#[ignore = "tier two: it compiles guests"]
fn the_message_of_a_panic_is_shown_where_the_module_traps() {
    let folder = Folder::new();
    let sound = "let root = &request.object;";
    let broken = "let root = &request.object; let letters: Vec<char> = root.spec.text.chars().collect(); assert_ne!(letters[7], 'x');";
    greeter(&folder, "panics", "greeter", sound, broken);
    folder.ends(0, &["build", "greeter"]);
    let module = "greeter/panics.wasm";
    let message = "native run: panicked at src/lib.rs:";
    let commands: [&[&str]; 3] = [
        &["test", module, "greeter/cases"],
        &["render", module, "-f", "greeter/sample.yaml"],
        &["simulate", module],
    ];
    for command in commands {
        let run = folder.run(command);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(told.contains(message), "{run:?}");
        assert!(told.contains("index out of bounds: the len is 5 but the index is 7\n"), "{run:?}");
        assert!(!told.contains("pintle render") && !told.contains("pintle record"), "{run:?}");
        let run = folder.run(&[command, &["--no-native"]].concat());
        assert!(run.code == 1 && !format!("{run:?}").contains("native run"), "{run:?}");
    }

    let run = folder.run_bash("pintle render greeter/panics.wasm -f greeter/sample.yaml 2>&1");
    assert!(run.stdout.lines().last().is_some_and(|last| last.starts_with(message)), "{run:?}");

    // Elsewhere there are no sources to run.
    fs::copy(folder.path(module), folder.path("greeter.wasm")).unwrap();
    let run = folder.run(&["render", "greeter.wasm", "-f", "greeter/sample.yaml"]);
    assert!(run.stderr.contains("\nhint: ") && run.stderr.contains("Cargo.toml"), "{run:?}");
    // Sources that were mended since do not panic, and nobody says that they do.
    change(&folder, "greeter", broken, sound);
    let run = folder.run(&["render", module, "-f", "greeter/sample.yaml"]);
    assert!(run.stderr.contains("native run: the guest answers this request."), "{run:?}");
    folder.write("greeter/src/lib.rs", "no Rust");
    let run = folder.run(&["render", module, "-f", "greeter/sample.yaml"]);
    assert!(run.stderr.contains("native run: there is no native build of greeter"), "{run:?}");
}
