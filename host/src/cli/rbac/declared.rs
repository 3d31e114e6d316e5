//! [`Declared`]: what a module declares, as its file says or the status of a Module; and the plurals of the kinds in it.

use std::{collections::BTreeSet, path::Path};

use kube::{Api, Client};
use pintle_api::Module;
use pintle_core::object;
use pintle_kubernetes::Cluster;
use pintle_offline::{self as offline, documents::Document};
use pintle_wit::{
    Failure, Kind, Limits, Manifest, parse_manifest, parse_views_manifest, views::ViewsManifest,
};

use super::{
    super::{live, module, problem::Problem},
    Plurals,
};

/// What a module declares.
pub(super) struct Declared {
    /// The module, as the command line names it.
    pub(super) name: String,
    /// What it does as a guest that reconciles.
    pub(super) guest: Option<Manifest>,
    /// The views that it serves.
    pub(super) views: Option<ViewsManifest>,
}

impl Declared {
    /// By the module in a file.
    pub(super) fn in_file(file: &str) -> Result<Self, Problem> {
        let loaded = module::load(&offline::engine()?, Path::new(file))?;
        Ok(Self {
            name: file.to_owned(),
            guest: loaded.guest().map(|guest| guest.manifest().clone()),
            views: loaded.views().map(|views| views.manifest().clone()),
        })
    }

    /// By the status of a Module, which has the manifest of its guest, or else that of its views.
    pub(super) async fn of_module(client: &Client, name: &str) -> Result<Self, Problem> {
        let found = Api::<Module>::all(client.clone()).get_opt(name).await;
        let Some(module) = found.map_err(|error| live::problem(format!("Module {name}"), &error))? else {
            let hint = "see which there are with: kubectl get modules; the name of a file ends in .wasm, or has a folder before it";
            return Err(Problem::new(format!("there is no Module {name}")).hint(hint));
        };
        let Some(manifest) = module.status.and_then(|status| status.manifest) else {
            return Err(Problem::failed(format!(
                "the host has not found out yet what Module {name} declares"
            ))
            .hint(format!("see why with: kubectl describe modules.pintle.dev {name}; or name its file")));
        };
        let text = manifest.to_string();
        let refused = |failure: Failure| Problem::failed(format!("Module {name}: {failure}"));
        let (mut guest, mut views) = (None, None);
        if manifest.get("views").is_some() {
            views = Some(parse_views_manifest(&text, Limits::default()).map_err(refused)?);
        } else {
            guest = Some(parse_manifest(&text, Limits::default()).map_err(refused)?);
        }
        Ok(Self { name: format!("Module {name}"), guest, views })
    }
}

/// One manifest that declares whatever any of these guests does, named as the first is.
pub(super) fn union(modules: &[Declared]) -> Result<Manifest, Problem> {
    let guest = |module: &Declared| {
        module.guest.clone().ok_or_else(|| Problem::new(format!("{} reconciles nothing", module.name)))
    };
    let guests = modules.iter().map(guest).collect::<Result<Vec<Manifest>, Problem>>()?;
    let kinds: BTreeSet<String> = guests.iter().map(|guest| guest.reconciles.to_string()).collect();
    if kinds.len() > 1 {
        let kinds = Vec::from_iter(kinds).join(" and ");
        return Err(Problem::new(format!(
            "one role is for modules of one kind, and these reconcile {kinds}"
        )));
    }
    let all = guests.into_iter().reduce(|mut all, guest| {
        all.children.extend(guest.children);
        all.needs.extend(guest.needs);
        all.patches.extend(guest.patches);
        all.evictions |= guest.evictions;
        all.finalizer |= guest.finalizer;
        all
    });
    all.ok_or_else(|| Problem::new("no module is named"))
}

/// The plurals of kinds that the API server serves. It is said of which kinds it serves none.
pub(super) async fn served(cluster: &Cluster, kinds: BTreeSet<Kind>) -> Result<Plurals, Problem> {
    let mut known = Plurals::new();
    for kind in kinds {
        let found = cluster.discover(&kind).await;
        let found = found.map_err(|error| {
            Problem::new(format!("the API server does not say how it serves {kind}: {error}"))
                .hint("see which cluster is meant with: kubectl config current-context")
        })?;
        match found {
            Some(resource) => _ = known.insert((kind.group().to_owned(), kind.kind), resource.plural),
            None => eprintln!(
                "note: the API server does not serve {kind}, so its plural is guessed; install its CRD, or set --plural"
            ),
        }
    }
    Ok(known)
}

/// The plurals that `crd.yaml` beside a module has.
pub(super) fn beside(file: &str) -> Result<Plurals, Problem> {
    let mut known = Plurals::new();
    for Document { value, .. } in module::crds_beside(Path::new(file), false)? {
        let text = |path: &[&str]| object::text(&value["spec"], path).map(str::to_owned);
        let group_and_kind = text(&["group"]).zip(text(&["names", "kind"]));
        known.extend(group_and_kind.zip(text(&["names", "plural"])));
    }
    Ok(known)
}
