//! The Views that rights are printed for: one in a cluster, those in files, or one for each view of a module.

use std::path::{Path, PathBuf};

use kube::Api;
use pintle_api::{self as api, Serve, View, ViewSpec};
use pintle_core::{
    object,
    view::{
        Access, Backing, Served, Verb,
        rights::{self, Exposed},
    },
};
use pintle_kubernetes::{Cluster, connect::Connect};
use pintle_offline::documents::{self, Document};
use pintle_schema::openapi::CrdVersion;
use pintle_wit::{
    Failure, Limits, names, parse_views_manifest,
    views::{ViewManifest, ViewsManifest},
};

use super::{
    super::{live, missing::missing_in, module, named::Named, problem::Problem},
    subject::{ModuleOf, Of, Subject, served},
};

/// One View for each view of a module, as it is without anything in its spec that may be left out.
pub(super) fn all(manifest: &ViewsManifest) -> Result<Vec<Exposed>, Failure> {
    let exposed = |view: &ViewManifest| {
        let served = vec![as_declared(view, &[])?];
        Ok(Exposed { view: view.name.clone(), access: Access::default(), served })
    };
    manifest.views.iter().map(exposed).collect()
}

/// The Views in files, for the module in another.
pub(super) fn in_files(
    module: &Path,
    manifest: &ViewsManifest,
    files: &[PathBuf],
) -> Result<Vec<Exposed>, Problem> {
    let documents = documents::read(files)?;
    let mut exposed = Vec::new();
    for document in documents.iter().filter(|document| is_view(document)) {
        let name = object::name(&document.value);
        let spec =
            read(document).map_err(|failure| Problem::failed(format!("{}: {failure}", document.source)))?;
        is_aggregated(name, &spec.serve)?;
        let view =
            manifest.view(&spec.view).ok_or_else(|| has_no(&module.display(), manifest, name, &spec))?;
        let declared = as_declared(view, &spec.verbs);
        let served = declared.map_err(|failure| Problem::failed(format!("View {name}: {failure}")))?;
        exposed.push(Exposed { view: name.to_owned(), access: spec.access, served: vec![served] });
    }
    match exposed.is_empty() {
        true => Err(Problem::new("there is no View in the files of -f")),
        false => Ok(exposed),
    }
}

/// A View in a cluster. While it switches to another Module, the rights are for both.
pub(super) async fn of_view(name: &str, connect: &Connect) -> Result<Subject, Problem> {
    let client = live::client(connect).await?;
    let views = Api::<View>::all(client.clone());
    let found = views.get_opt(name).await;
    let found = found.map_err(|error| live::problem(format!("View {name}"), &error))?;
    let Some(View { spec, status, .. }) = found else { return Err(missing_in(&views, name).await) };
    is_aggregated(name, &spec.serve)?;
    let (by, cluster) = (Named::View(name.to_owned()), Cluster::new(client.clone()));
    let module = ModuleOf::read(&client, &spec.module, &by).await?;
    let read = |text: &str| parse_views_manifest(text, Limits::default()).ok();
    let manifest = match module.manifest_text().and_then(|text| read(&text)) {
        Some(manifest) => manifest,
        None => {
            let views = module.load(&cluster).await?.views();
            views.ok_or_else(|| module.failed("it serves no views"))?.manifest().clone()
        }
    };
    let view = manifest.view(&spec.view);
    let view = view.ok_or_else(|| has_no(&format!("Module {}", spec.module), &manifest, name, &spec))?;
    let refused = |failure: Failure| Problem::failed(format!("View {name}: {failure}"));
    let mut all = vec![as_declared(view, &spec.verbs).map_err(refused)?];
    let status = status.unwrap_or_default();
    let is_other = status.active.is_some_and(|active| active.module != spec.module);
    if let Some(before) = status.served.filter(|_| is_other) {
        rights::may_be_shown(&before.backing.kind(), before.is_writable()).map_err(refused)?;
        all.push(before);
    }
    let of = Of::Views(vec![Exposed { view: name.to_owned(), access: spec.access, served: all }]);
    let (known, notes) = served(&cluster, of.kinds()).await?;
    Ok(Subject { of, known, notes })
}

/// Says what to run where a file of Views was taken for a module.
pub(super) fn are_no_views(path: &Path) -> Result<(), Problem> {
    let documents = match module::has_objects(path) {
        true => documents::read(&[path.to_owned()]).unwrap_or_default(),
        false => Vec::new(),
    };
    match documents.iter().any(is_view) {
        true => Err(Problem::new(format!("{} has Views, and is no module", path.display()))
            .hint(format!("the module comes first: pintle rbac MODULE -f {}", path.display()))),
        false => Ok(()),
    }
}

/// What a View of these verbs serves of a view. The plural of the backing kind is still to be found.
fn as_declared(manifest: &ViewManifest, verbs: &[Verb]) -> Result<Served, Failure> {
    let verbs = Verb::of_view(verbs, manifest)?;
    rights::may_be_shown(&manifest.backing, manifest.is_writable())?;
    let backing = Backing {
        api_version: manifest.backing.api_version.clone(),
        kind: manifest.backing.kind.clone(),
        ..Backing::default()
    };
    Ok(Served::of(manifest, backing, verbs))
}

fn is_view(document: &Document) -> bool {
    let kind = object::kind(&document.value);
    kind.group() == names::DOMAIN && kind.kind == "View"
}

/// The spec of a View in a file, with its defaults, as the API server would take it.
fn read(document: &Document) -> Result<ViewSpec, Failure> {
    let mut value = document.value.clone();
    let api_version = object::kind(&value).api_version;
    let invalid = |message: String| Failure::terminal(pintle_core::reasons::INVALID, message);
    let crds = api::crds();
    let crds = crds.iter().filter(|crd| object::text(crd, &["spec", "names", "kind"]) == Some("View"));
    let version = crds.filter_map(|crd| CrdVersion::of(crd, &api_version)).next();
    let version = version.ok_or_else(|| {
        invalid(format!("this version of Pintle knows no View of {api_version}")).at("apiVersion")
    })?;
    version.admit(&mut value)?;
    let spec = value.get_mut("spec").map(serde_json::Value::take).unwrap_or_default();
    serde_json::from_value(spec).map_err(|error| invalid(error.to_string()).at("spec"))
}

/// Whether there are rights for a View.
fn is_aggregated(name: &str, serve: &Serve) -> Result<(), Problem> {
    match (&serve.aggregated, &serve.rest) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => Err(Problem::failed(format!(
            "View {name} serves documents (spec.serve.rest), which are read and written with the caller's own rights: there are no \
             rights to give to the gateway"
        ))
        .hint("who is to use it needs rights on the backing kind, as for kubectl")),
        (None, None) => Err(Problem::failed(format!("View {name}: spec.serve: aggregated is missing"))),
    }
}

fn has_no(module: &dyn std::fmt::Display, manifest: &ViewsManifest, name: &str, spec: &ViewSpec) -> Problem {
    let names: Vec<&str> = manifest.views.iter().map(|view| view.name.as_str()).collect();
    let all = names.join(", ");
    Problem::failed(format!("{module} has no view {}, which View {name} names; it has: {all}", spec.view))
}
