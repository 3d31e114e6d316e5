//! The Views that rights are printed for: those in files, or one for each view of a module.

use std::{collections::BTreeSet, path::PathBuf};

use pintle_api::ViewSpec;
use pintle_core::{
    object,
    view::{
        Access, Backing, Served, Verb,
        rights::{self, Exposed},
    },
};
use pintle_offline::{ask, documents, setting};
use pintle_wit::views::ViewManifest;

use super::{super::problem::Problem, declared::Declared};

/// One View for each view of these modules, as it is without anything in its spec that may be left out.
pub(super) fn all(modules: &[Declared]) -> Result<Vec<Exposed>, Problem> {
    let views = || modules.iter().flat_map(|module| &module.views).flat_map(|manifest| &manifest.views);
    let names: BTreeSet<&String> = views().map(|view| &view.name).collect();
    let exposed = names.into_iter().map(|name| {
        let served = views().filter(|view| view.name == *name).map(|view| as_declared(name, view, &[]));
        let served = served.collect::<Result<Vec<Served>, Problem>>()?;
        Ok(Exposed { view: name.clone(), access: Access::default(), served })
    });
    exposed.collect()
}

/// The Views in files, each as all of these modules serve it.
pub(super) fn in_files(modules: &[Declared], files: &[PathBuf]) -> Result<Vec<Exposed>, Problem> {
    let documents = documents::read(files)?;
    let mut exposed = Vec::new();
    for document in documents.iter().filter(|document| ask::is_view(document)) {
        let name = object::name(&document.value);
        let spec: ViewSpec = setting::spec_of(document, "View")
            .map_err(|failure| Problem::failed(format!("{}: {failure}", document.source)))?;
        if spec.serve.aggregated.is_none() {
            return Err(Problem::failed(format!(
                "View {name} serves documents (spec.serve.rest), which are read and written with the caller's own rights: there are no \
                 rights to give to the gateway"
            ))
            .hint("who is to use it needs rights on the backing kind, as for kubectl"));
        }
        let served =
            modules.iter().map(|module| as_declared(name, view_of(module, name, &spec)?, &spec.verbs));
        let served = served.collect::<Result<Vec<Served>, Problem>>()?;
        exposed.push(Exposed { view: name.to_owned(), access: spec.access, served });
    }
    if exposed.is_empty() {
        return Err(Problem::new("there is no View in the files of -f"));
    }
    Ok(exposed)
}

/// The view of a module that a View names.
fn view_of<'a>(module: &'a Declared, name: &str, spec: &ViewSpec) -> Result<&'a ViewManifest, Problem> {
    let Declared { name: of, views, .. } = module;
    let Some(manifest) = views else {
        return Err(Problem::new(format!(
            "{of} serves no views, as far as is known, and -f is for files with Views"
        ))
        .hint("the status of a Module that reconciles too does not have its views: name its file"));
    };
    manifest.view(&spec.view).ok_or_else(|| {
        let names: Vec<&str> = manifest.views.iter().map(|view| view.name.as_str()).collect();
        let (view, all) = (&spec.view, names.join(", "));
        Problem::failed(format!("{of} has no view {view}, which View {name} names; it has: {all}"))
    })
}

/// What a View of these verbs serves of a view. The plural of the backing kind is still to be found.
fn as_declared(view: &str, manifest: &ViewManifest, verbs: &[Verb]) -> Result<Served, Problem> {
    let shown = rights::may_be_shown(&manifest.backing, manifest.is_writable());
    let verbs = shown.and_then(|()| Verb::of_view(verbs, manifest));
    let verbs = verbs.map_err(|failure| Problem::failed(format!("View {view}: {failure}")))?;
    let backing = Backing {
        api_version: manifest.backing.api_version.clone(),
        kind: manifest.backing.kind.clone(),
        ..Backing::default()
    };
    Ok(Served::of(manifest, backing, verbs))
}
