//! What `plan`, `inspect` and `record` share: the maker of previews, the module that a command line names, and roots by kind and name.

use std::{fmt, path::Path};

use clap::Args;
use kube::Client;
use pintle_api::Reconciler;
use pintle_engine::{Engine, EngineConfig, Meter};
use pintle_kubernetes::connect::Connect;
use pintle_modules::{Budget, memory_limit};
use pintle_preview::{Caller, InspectRequest, ModuleChoice, Preview, PreviewError};
use pintle_runtime::{Spawner, clock};
use pintle_schema::nearest::did_you_mean;
use pintle_wit::Kind;

use super::{completion, live, module, problem::Problem};

/// Makes previews in this process. Modules are compiled here too, as by every command that is given one.
pub(super) fn preview() -> Result<Preview, Problem> {
    let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic))?;
    Ok(Preview::new(engine, None, Budget::new(memory_limit::process_bytes()), Spawner::default()))
}

/// The user, for everything.
pub(super) fn caller(client: &Client) -> Caller {
    Caller { user: client.clone(), modules: client.clone() }
}

/// The module that a command line names: a file, or else a Module in the cluster.
pub(super) fn choice(text: &str) -> Result<ModuleChoice, Problem> {
    if !module::is_file(text) {
        return Ok(ModuleChoice::Named(text.to_owned()));
    }
    Ok(ModuleChoice::Bytes { name: text.to_owned(), bytes: module::read(Path::new(text))? })
}

/// What there is no preview for.
pub(super) fn problem(error: PreviewError) -> Problem {
    match error {
        PreviewError::NotFound(message) => Problem::new(message).hint(
            "see which there are with: kubectl get pintle; and the roots of a kind with: kubectl get KIND -A",
        ),
        PreviewError::Forbidden(message) => {
            let hint = live::rights(&message);
            Problem::new(message).hint(hint)
        }
        PreviewError::Refused(failure) => Problem::new(format!("it cannot come into force: {failure}")),
        PreviewError::Busy(message) => Problem::new(message),
        PreviewError::Unavailable(message) => {
            Problem::new(message).hint("see which cluster is meant with: kubectl config current-context")
        }
    }
}

/// The root that a command is about, and who is asked about it.
#[derive(Debug, Args)]
pub(super) struct RootFlags {
    /// The root
    #[arg(value_name = "KIND/NAME", value_parser = RootName::parse, add = completion::roots())]
    pub(super) root: RootName,

    /// Namespace of the root [default: that of the kubeconfig context]
    #[arg(short, long)]
    namespace: Option<String>,

    /// Name of a Module, or a file [default: the module in force]
    #[arg(long, value_name = "MODULE|FILE", add = completion::modules_and_files())]
    module: Option<String>,

    #[command(flatten)]
    connect: Connect,
}

impl RootFlags {
    /// In whose name a preview is made, and of what.
    pub(super) async fn request(&self) -> Result<(Caller, InspectRequest), Problem> {
        let client = live::client(&self.connect).await?;
        let namespace = self.namespace.as_deref().unwrap_or(client.default_namespace());
        let request = InspectRequest {
            kind: self.root.kind(&client).await?,
            namespace: Some(namespace.to_owned()),
            name: self.root.name.clone(),
            module: self.module.as_deref().map(choice).transpose()?,
            proposed: None,
        };
        Ok((caller(&client), request))
    }
}

/// A root as a command line names it: `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RootName {
    kind: String,
    name: String,
}

impl RootName {
    fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && pintle_wit::syntax::is_subdomain(name) => {
                Ok(Self { kind: kind.to_owned(), name: name.to_owned() })
            }
            _ => Err("write it as KIND/NAME, for instance webserver/blog".into()),
        }
    }

    /// The kind among those that Reconcilers are for, by any of the names that kubectl takes.
    async fn kind(&self, client: &Client) -> Result<Kind, Problem> {
        let all = live::list::<Reconciler>(client).await?;
        let mut kinds: Vec<Kind> = all.into_iter().map(|reconciler| reconciler.spec.r#for).collect();
        kinds.sort();
        kinds.dedup();
        if let Some(kind) = kinds.iter().find(|kind| is_called(kind, &[], &self.kind)) {
            return Ok(kind.clone());
        }
        for kind in &kinds {
            // The short names are known to the API server alone. One that does not answer knows none.
            let Ok(served) = client.list_api_group_resources(&kind.api_version).await else { continue };
            let of_kind = served.resources.into_iter().filter(|one| one.kind == kind.kind);
            let names = of_kind.flat_map(|one| {
                one.short_names.unwrap_or_default().into_iter().chain([one.name, one.singular_name])
            });
            if is_called(kind, &names.collect::<Vec<_>>(), &self.kind) {
                return Ok(kind.clone());
            }
        }
        let names: Vec<String> = kinds.iter().map(|kind| kind.kind.to_lowercase()).collect();
        let near = did_you_mean(&self.kind.to_lowercase(), names.iter().map(String::as_str));
        let known = if names.is_empty() { "there is none".to_owned() } else { names.join(", ") };
        Err(Problem::new(format!("no Reconciler is for a kind {}{near}", self.kind))
            .hint(format!("the kinds of Reconcilers: {known}")))
    }
}

impl fmt::Display for RootName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

/// Whether a kind is called so: `darkroom`, `darkrooms`, `Darkroom`, or with its group behind a dot.
pub(super) fn is_called(kind: &Kind, more: &[String], text: &str) -> bool {
    let text = text.to_lowercase();
    let singular = kind.kind.to_lowercase();
    let plain = text.strip_suffix(&format!(".{}", kind.group())).unwrap_or(&text);
    plain == singular || plain == format!("{singular}s") || more.iter().any(|name| name == plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_named_as_kubectl_names_objects() {
        let kind = Kind::new("my.domain/v1", "WebServer");
        for text in ["webserver", "WebServer", "webservers", "webserver.my.domain", "ws"] {
            assert!(is_called(&kind, &["ws".into()], text), "{text}");
        }
        for text in ["web", "webserver.other.domain", "darkroom"] {
            assert!(!is_called(&kind, &["ws".into()], text), "{text}");
        }
        let read = RootName::parse("webserver/blog").unwrap();
        assert_eq!((read.kind.as_str(), read.name.as_str()), ("webserver", "blog"));
        for text in ["webserver", "/blog", "webserver/", "webserver/A"] {
            assert!(RootName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_ends_in_wasm_or_has_a_folder_is_a_file() {
        assert!(
            matches!(choice("webserver-0.2.0"), Ok(ModuleChoice::Named(name)) if name == "webserver-0.2.0")
        );
        for path in ["no-such.wasm", "./no-such"] {
            assert!(choice(path).unwrap_err().to_string().contains("cannot be read"), "{path}");
        }
        // Commands that are printed name it as they found it.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("guest.wasm");
        std::fs::write(&file, "").unwrap();
        let path = file.to_str().unwrap();
        assert!(matches!(choice(path), Ok(ModuleChoice::Bytes { name, .. }) if name == path));
    }
}
