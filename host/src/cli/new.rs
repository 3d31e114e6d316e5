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
/// With `--view`, the guest serves a read-only view of ConfigMaps instead of reconciling a custom resource.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Create a guest for the kind Greeting in ./greeting
  pintle new greeting

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

    /// Create a guest that serves a view
    #[arg(long)]
    view: bool,

    /// Directory of the SDK, `guest-sdk` in the sources of Pintle [default: in the sources that this pintle was built from]
    #[arg(long, value_name = "DIR", env = "PINTLE_SDK")]
    sdk: Option<PathBuf>,
}

/// The files of every guest, with placeholders.
const COMMON: [(&str, &str); 2] = [
    ("Cargo.toml", include_str!("../../templates/guest/Cargo.toml.in")),
    (".gitignore", include_str!("../../templates/guest/gitignore.in")),
];

/// The other files of a guest that reconciles.
const GUEST: [(&str, &str); 9] = [
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

/// The other files of a guest that serves a view.
const VIEW: [(&str, &str); 6] = [
    ("src/bin/schema.rs", include_str!("../../templates/view/src/bin/schema.rs")),
    ("src/lib.rs", include_str!("../../templates/view/src/lib.rs")),
    ("src/view.rs", include_str!("../../templates/view/src/view.rs")),
    ("views.json", include_str!("../../templates/view/views.json")),
    ("sample.yaml", include_str!("../../templates/view/sample.yaml")),
    ("cases/sample.yaml", include_str!("../../templates/view/cases/sample.yaml")),
];

/// The longest name, in characters: `<name>-<version>` becomes the name of a Module, and the name itself a label.
const NAME_MAX: usize = 40;

/// What stands in the templates, and what is written in its place.
type Placeholders = [(&'static str, String); 7];

impl New {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let Self { name, group, view, .. } = &self;
        let kind = self.kind();
        let placeholders = self.placeholders(&kind)?;
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from(name));
        if dir.is_dir() && fs::read_dir(&dir)?.next().is_some() || dir.is_file() {
            return Err(Problem::new(format!("{} exists and is not empty", dir.display()))
                .hint("name another with --dir"));
        }
        let files = if *view { &VIEW[..] } else { &GUEST };
        for (file, template) in COMMON.iter().chain(files) {
            write(&dir.join(file), &fill(template, &placeholders))?;
        }
        let dir = dir.display();
        let mut does = "reconciles";
        let mut last = format!("simulate {dir}/{name}.wasm");
        if *view {
            does = "serves the view";
            last = format!("render {dir}/{name}.wasm -f {dir}/sample.yaml");
        }
        output::print(&format!(
            "{dir}: a guest that {does} {kind} ({group}/v1)\n\nNext:\n  pintle build {dir}\n  pintle test {dir}/{name}.wasm {dir}/cases\n  pintle check {dir}/{name}.wasm\n  pintle {last}\n"
        ))?;
        Ok(CommandStatus::Fine)
    }

    fn kind(&self) -> String {
        self.kind.clone().unwrap_or_else(|| camel_case(&self.name))
    }

    fn placeholders(&self, kind: &str) -> Result<Placeholders, Problem> {
        let Self { name, group, .. } = self;
        if !syntax::is_rfc_1035_label(name) || name.len() > NAME_MAX {
            let message = format!("{name:?} is no name for a guest");
            return Err(Problem::new(message).hint(format!(
                "it has at most {NAME_MAX} lower-case letters, digits and '-', and begins with a letter"
            )));
        }
        let is_kind = kind.starts_with(|first: char| first.is_ascii_uppercase())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_kind {
            let message = format!("{kind:?} cannot be the kind");
            return Err(Problem::new(message).hint("name one in CamelCase with --kind"));
        }
        if !group.contains('.') || !syntax::is_subdomain(group) {
            return Err(Problem::new(format!("{group:?} is no API group"))
                .hint("it looks like a domain name: example.com"));
        }
        // A path may hold what ends a string in TOML.
        let sdk = self.sdk()?.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
        Ok([
            ("__NAME__", name.clone()),
            ("__CRATE__", name.replace('-', "_")),
            ("__KIND__", kind.to_owned()),
            ("__SINGULAR__", kind.to_lowercase()),
            ("__PLURAL__", plural(kind)),
            ("__GROUP__", group.clone()),
            ("__SDK__", sdk),
        ])
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

fn fill(template: &str, placeholders: &Placeholders) -> String {
    placeholders.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
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

    fn placeholders(name: &str) -> Placeholders {
        let (name, group) = (name.to_owned(), "example.com".to_owned());
        let new = New { name, group, dir: None, kind: None, view: false, sdk: None };
        new.placeholders(&new.kind()).unwrap()
    }

    #[test]
    fn no_placeholder_is_left() {
        let placeholders = placeholders("photo-album");
        let value = |of: &str| placeholders.iter().find(|(name, _)| *name == of).unwrap().1.clone();
        assert_eq!([value("__KIND__"), value("__PLURAL__")], ["PhotoAlbum", "photoalbums"]);
        for (file, template) in COMMON.iter().chain(&GUEST).chain(&VIEW) {
            let text = fill(template, &placeholders);
            assert!(!text.contains("__"), "{file}: {text}");
        }
    }

    #[test]
    fn two_guests_in_one_build_folder_have_programs_of_different_names() {
        let manifest = fill(COMMON[0].1, &placeholders("photo-album"));
        let (_, program) = manifest.split_once("[[bin]]\nname = ").unwrap();
        assert!(program.starts_with("\"photo-album-schema\""), "{program}");
    }

    #[test]
    fn a_read_only_view_is_written_in_less_than_thirty_lines() {
        let (_, view) = VIEW.iter().find(|(file, _)| *file == "src/view.rs").unwrap();
        assert!(view.lines().count() < 30, "{}", view.lines().count());
        // The first line says what the file is; the page says it otherwise.
        let written = fill(view, &placeholders("summary"));
        let (_, code) = written.split_once("\n\n").unwrap();
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/views.md");
        assert!(
            fs::read_to_string(page).unwrap().contains(code),
            "docs/views.md shows another view:\n{code}"
        );
    }
}
