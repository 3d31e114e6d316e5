//! The Views that rights are printed for: those in files, or one for each view of a module.

use std::path::PathBuf;

use pintle_api::{Serve, ViewSpec};
use pintle_core::{
    object,
    view::{
        Access, Backing, Served, Verb,
        rights::{self, Exposed},
    },
};
use pintle_offline::{ask, documents, setting};
use pintle_wit::{Failure, views::ViewManifest};

use super::{super::problem::Problem, declared::Declared};

/// One View for each view of these modules, as it is without anything in its spec that may be left out.
pub(super) fn all(modules: &[Declared]) -> Result<Vec<Exposed>, Problem> {
    let mut all: Vec<Exposed> = Vec::new();
    for module in modules {
        for view in module.views.iter().flat_map(|manifest| &manifest.views) {
            let declared = as_declared(view, &[]);
            let served =
                declared.map_err(|failure| Problem::failed(format!("{}: {failure}", module.name)))?;
            match all.iter_mut().find(|known| known.view == view.name) {
                Some(known) => known.served.push(served),
                None => all.push(Exposed {
                    view: view.name.clone(),
                    access: Access::default(),
                    served: vec![served],
                }),
            }
        }
    }
    Ok(all)
}

/// The Views in files, each as all of these modules serve it.
pub(super) fn in_files(modules: &[Declared], files: &[PathBuf]) -> Result<Vec<Exposed>, Problem> {
    let documents = documents::read(files)?;
    let mut exposed = Vec::new();
    for document in documents.iter().filter(|document| ask::is_view(document)) {
        let name = object::name(&document.value);
        let spec: ViewSpec = setting::spec_of(document, "View")
            .map_err(|failure| Problem::failed(format!("{}: {failure}", document.source)))?;
        is_aggregated(name, &spec.serve)?;
        let mut served = Vec::new();
        for module in modules {
            let declared = as_declared(view_of(module, name, &spec)?, &spec.verbs);
            served.push(declared.map_err(|failure| Problem::failed(format!("View {name}: {failure}")))?);
        }
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
