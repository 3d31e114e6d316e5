//! The command `pintle new`: it makes a guest from the templates in `host/templates`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use pintle_wit::syntax;

use super::{
    output,
    plural::plural,
    problem::{CommandStatus, Problem},
};

/// Create a guest in Rust
///
/// The command creates a directory with a guest that builds. The guest has a custom resource with its CRD, and one function that
/// answers with a ConfigMap and a Deployment. A Reconciler, a sample and a golden case are included.
///
/// With `--minimal`, the answer is one ConfigMap, and there is no config, no status and no README.
///
/// With `--view`, the guest serves a read-only view of ConfigMaps instead of reconciling a custom resource.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Create a guest for the kind Greeting in ./greeting
  pintle new greeting

  # Begin with as little as possible
  pintle new greeting --minimal

  # Create a guest that serves a view
  pintle new summary --view

  # Choose the group, the kind and the directory
  pintle new pages --group example.org \\
    --kind Page --dir guests/pages

  # Build and test it
  pintle build greeting
  pintle test greeting/greeting.wasm greeting/cases")]
pub(super) struct New {
    /// Name of the guest, a DNS label
    name: String,

    /// Directory to create [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// API group of the custom resource or the view
    #[arg(long, default_value = "example.com")]
    group: String,

    /// Kind of the custom resource or the view [default: NAME in CamelCase]
    #[arg(long)]
    kind: Option<String>,

    /// Create the least guest that works
    #[arg(long, conflicts_with = "view")]
    minimal: bool,

    /// Create a guest that serves a view
    #[arg(long)]
    view: bool,

    /// Directory of the SDK, `guest-sdk` in the sources of Pintle. A relative path stays relative in Cargo.toml, and so does a path
    /// within one repository [default: the sources that this pintle was built from]
    #[arg(long, value_name = "DIR", env = "PINTLE_SDK")]
    sdk: Option<PathBuf>,
}

/// The files of every guest, with placeholders.
const COMMON: [(&str, &str); 2] = [
    ("Cargo.toml", include_str!("../../templates/guest/Cargo.toml.in")),
    (".gitignore", include_str!("../../templates/guest/gitignore.in")),
];

/// The other files of the full guest.
const FULL: [(&str, &str); 9] = [
    ("README.md", include_str!("../../templates/guest/README.md")),
    ("src/bin/schema.rs", include_str!("../../templates/guest/src/bin/schema.rs")),
    ("src/lib.rs", include_str!("../../templates/guest/src/lib.rs")),
    ("src/resource.rs", include_str!("../../templates/guest/src/resource.rs")),
    ("crd.yaml", include_str!("../../templates/guest/crd.yaml")),
    ("config.schema.json", include_str!("../../templates/guest/config.schema.json")),
    ("reconciler.yaml", include_str!("../../templates/guest/reconciler.yaml")),
    ("sample.yaml", include_str!("../../templates/guest/sample.yaml")),
    ("cases/sample.yaml", include_str!("../../templates/guest/cases/sample.yaml")),
];

/// The other files of the minimal guest.
const MINIMAL: [(&str, &str); 7] = [
    ("src/bin/schema.rs", include_str!("../../templates/guest/src/bin/schema.rs")),
    ("src/lib.rs", include_str!("../../templates/minimal/src/lib.rs")),
    ("crd.yaml", include_str!("../../templates/minimal/crd.yaml")),
    ("config.schema.json", include_str!("../../templates/minimal/config.schema.json")),
    ("reconciler.yaml", include_str!("../../templates/minimal/reconciler.yaml")),
    ("sample.yaml", include_str!("../../templates/minimal/sample.yaml")),
    ("cases/sample.yaml", include_str!("../../templates/minimal/cases/sample.yaml")),
];

/// The other files of a guest that serves a view.
const VIEW: [(&str, &str); 6] = [
    ("src/bin/schema.rs", include_str!("../../templates/view/src/bin/schema.rs")),
    ("src/lib.rs", include_str!("../../templates/view/src/lib.rs")),
    ("src/view.rs", include_str!("../../templates/view/src/view.rs")),
    ("views.json", include_str!("../../templates/view/views.json")),
    ("sample.yaml", include_str!("../../templates/view/sample.yaml")),
    ("cases/sample.yaml", include_str!("../../templates/view/cases/sample.yaml")),
];

/// Crates that a guest is built with: another of their name would be taken for them.
const CRATES: [&str; 10] = [
    "alloc",
    "core",
    "pintle-guest",
    "pintle-wit",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
];

/// Words of Rust, which no crate may have as its name.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct",
    "super", "trait", "true", "try", "type", "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// The longest name, in characters: `<name>-<version>` becomes the name of a Module, and the name itself a label.
const NAME_MAX: usize = 40;

impl New {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        let mut names = self.names()?;
        if dir.is_dir() && fs::read_dir(&dir)?.next().is_some() || dir.is_file() {
            return Err(Problem::new(format!("{} exists and is not empty", dir.display()))
                .hint("name another with --dir"));
        }
        fs::create_dir_all(&dir)
            .map_err(|error| Problem::new(format!("{} cannot be created: {error}", dir.display())))?;
        let is_relative = self.sdk.as_deref().is_some_and(Path::is_relative);
        names.sdk = dependency(&names.sdk, &dir.canonicalize()?, is_relative, &|path| path.exists());
        let files = match (self.minimal, self.view) {
            (_, true) => &VIEW[..],
            (true, false) => &MINIMAL,
            (false, false) => &FULL,
        };
        for (file, template) in COMMON.iter().chain(files) {
            write(&dir.join(file), &names.fill(template))?;
        }
        let dir = dir.display();
        let Names { name, kind, group, .. } = &names;
        let (does, last) = match self.view {
            true => ("serves the view", format!("render {dir}/{name}.wasm -f {dir}/sample.yaml -o table")),
            false => ("reconciles", format!("simulate {dir}/{name}.wasm")),
        };
        output::print(&format!(
            "{dir}: a guest that {does} {kind} ({group}/v1)\n\nNext:\n  pintle build {dir}\n  pintle test {dir}/{name}.wasm {dir}/cases\n  pintle check {dir}/{name}.wasm\n  pintle {last}\n"
        ))?;
        Ok(CommandStatus::Fine)
    }

    fn names(&self) -> Result<Names, Problem> {
        let name = &self.name;
        if !syntax::is_rfc_1035_label(name) || name.len() > NAME_MAX {
            let message = format!("{name:?} is no name for a guest");
            return Err(Problem::new(message).hint(format!(
                "it has at most {NAME_MAX} lower-case letters, digits and '-', and begins with a letter"
            )));
        }
        if CRATES.contains(&name.as_str()) || KEYWORDS.contains(&name.as_str()) {
            return Err(Problem::new(format!("{name:?} cannot be the name of a crate in Rust"))
                .hint("it is a word of the language, or the name of a crate that the guest uses"));
        }
        let kind = self.kind.clone().unwrap_or_else(|| camel_case(name));
        let is_kind = kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // The names that the guest's own sources use.
        let of_view = ["Column", "ColumnType", "Shown", "View", "ViewManifest"];
        let taken = [
            "Child",
            "ChildKind",
            "Config",
            "Failure",
            "Guest",
            "Kind",
            "Manifest",
            "NoConfig",
            "Object",
            "Request",
            "Response",
            "Rollout",
            "Root",
            "Spec",
            "Status",
            "Value",
            "Result",
            "Ok",
            "Err",
            "Self",
            "Default",
            "Deserialize",
            "Fn",
            "Option",
            "Serialize",
            "String",
        ];
        let is_taken = taken.contains(&kind.as_str()) || self.view && of_view.contains(&kind.as_str());
        if !is_kind || is_taken {
            let message = format!("{kind:?} cannot be the kind");
            return Err(Problem::new(message)
                .hint("name one in CamelCase with --kind, other than a word of the contract"));
        }
        if !self.group.contains('.') || !syntax::is_subdomain(&self.group) {
            return Err(Problem::new(format!("{:?} is no API group", self.group))
                .hint("it looks like a domain name: example.com"));
        }
        Ok(Names {
            name: name.clone(),
            plural: plural(&kind),
            kind,
            group: self.group.clone(),
            sdk: self.sdk()?,
            has_view: self.view,
        })
    }

    /// The SDK is not published, so that a guest depends on its directory.
    fn sdk(&self) -> Result<PathBuf, Problem> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-sdk");
        let sdk = self.sdk.clone().unwrap_or(beside);
        match sdk.canonicalize() {
            Ok(path) if path.join("Cargo.toml").is_file() => Ok(path),
            _ => Err(Problem::new(format!("there is no SDK in {}", sdk.display()))
                .hint("get Pintle's sources, and name their directory guest-sdk with --sdk or PINTLE_SDK")),
        }
    }
}

/// What stands for the placeholders.
struct Names {
    name: String,
    kind: String,
    plural: String,
    group: String,
    sdk: PathBuf,
    /// Whether the guest serves a view instead of reconciling.
    has_view: bool,
}

impl Names {
    fn fill(&self, template: &str) -> String {
        let (generated, calls) = match self.has_view {
            true => ("views.json", "`show` or `store`"),
            false => ("crd.yaml and config.schema.json", "`call`"),
        };
        // A path may hold what ends a string in TOML.
        let sdk = self.sdk.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
        template
            .replace("__NAME__", &self.name)
            .replace("__CRATE__", &self.name.replace('-', "_"))
            .replace("__KIND__", &self.kind)
            .replace("__SINGULAR__", &self.kind.to_lowercase())
            .replace("__PLURAL__", &self.plural)
            .replace("__GROUP__", &self.group)
            .replace("__GENERATED__", generated)
            .replace("__CALLS__", calls)
            .replace("__SDK_COMMENT__", if self.sdk.is_absolute() { SDK_COMMENT } else { "" })
            .replace("__SDK_README__", if self.sdk.is_absolute() { ABSOLUTE } else { RELATIVE })
            .replace("__SDK__", &sdk)
    }
}

/// What the guest's Cargo.toml and README say of the path of the SDK.
const SDK_COMMENT: &str =
    "# The path is of this machine. To build the guest on another, write where Pintle's sources are there.\n";
const ABSOLUTE: &str = "It is a path of this machine.
To build the guest on another machine, get Pintle's sources there and change the path in Cargo.toml.
A path that is relative to Cargo.toml stays true if the sources and the guest are in one repository, for example with Pintle as a git submodule.";
const RELATIVE: &str = "It is relative to Cargo.toml.
If you move the guest or the sources, change it.";

/// The path by which a guest in `dir` depends on the SDK; both are absolute and without links. It is relative where somebody gave a
/// relative one, and where a repository or a workspace has both, so that a clone of it builds.
fn dependency(sdk: &Path, dir: &Path, is_relative: bool, exists: &dyn Fn(&Path) -> bool) -> PathBuf {
    let is_tree = |above: &&Path| exists(&above.join(".git")) || exists(&above.join("Cargo.toml"));
    let have_one_tree = || sdk.ancestors().skip(1).filter(is_tree).any(|above| dir.starts_with(above));
    match is_relative || have_one_tree() {
        true => pathdiff::diff_paths(sdk, dir).unwrap_or_else(|| sdk.to_owned()),
        false => sdk.to_owned(),
    }
}

fn camel_case(name: &str) -> String {
    name.split('-')
        .flat_map(|word| {
            let mut letters = word.chars();
            letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
        })
        .collect()
}

fn write(path: &Path, text: &str) -> Result<(), Problem> {
    let error =
        |error: std::io::Error| Problem::new(format!("{} cannot be written: {error}", path.display()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(error)?;
    }
    fs::write(path, text).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str, has_view: bool) -> Names {
        let kind = camel_case(name);
        let (plural, group) = (plural(&kind), "example.com".to_owned());
        Names { name: name.to_owned(), kind, plural, group, sdk: "/sdk".into(), has_view }
    }

    #[test]
    fn no_placeholder_is_left() {
        let names = names("photo-album", false);
        assert_eq!((names.kind.as_str(), names.plural.as_str()), ("PhotoAlbum", "photoalbums"));
        for (file, template) in COMMON.iter().chain(&FULL).chain(&MINIMAL).chain(&VIEW) {
            let text = names.fill(template);
            assert!(!text.contains("__"), "{file}: {text}");
        }
    }

    #[test]
    fn a_read_only_view_is_written_in_less_than_thirty_lines() {
        let (_, view) = VIEW.iter().find(|(file, _)| *file == "src/view.rs").unwrap();
        assert!(view.lines().count() < 30, "{}", view.lines().count());
        // The first line says what the file is; the page says it otherwise.
        let written = names("summary", true).fill(view);
        let (_, code) = written.split_once("\n\n").unwrap();
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/views.md");
        assert!(
            fs::read_to_string(page).unwrap().contains(code),
            "docs/views.md shows another view:\n{code}"
        );
    }

    #[test]
    fn the_path_of_the_sdk_is_relative_where_a_clone_has_both() {
        let depends = |dir: &str, is_relative, tree: &str| {
            let exists = |path: &Path| path == Path::new(tree);
            dependency(Path::new("/src/pintle/guest-sdk"), Path::new(dir), is_relative, &exists)
        };
        let (relative, absolute) = (PathBuf::from("../../src/pintle/guest-sdk"), "/src/pintle/guest-sdk");
        assert_eq!(depends("/home/greeter", false, "/src/pintle/.git"), PathBuf::from(absolute));
        assert_eq!(depends("/home/greeter", true, "/src/pintle/.git"), relative, "as it was given");
        let inside = PathBuf::from("../../guest-sdk");
        assert_eq!(depends("/src/pintle/guests/greeter", false, "/src/pintle/.git"), inside);
        assert_eq!(depends("/src/pintle/guests/greeter", false, "/src/pintle/Cargo.toml"), inside);
        assert_eq!(depends("/src/guest", false, "/src/.git"), PathBuf::from("../pintle/guest-sdk"));
    }
}
