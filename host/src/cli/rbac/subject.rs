//! What a role is printed for: the guest in a file, or the guest of a Reconciler in a cluster.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    path::{MAIN_SEPARATOR, Path},
    time::Duration,
};

use kube::{Api, Client};
use pintle_api::{Module, Reconciler, ReconcilerStatus};
use pintle_core::conditions::READY;
use pintle_engine::Digest;
use pintle_kubernetes::{Cluster, connect::Connect};
use pintle_offline as offline;
use pintle_wit::{ChildKind, ConditionStatus, Kind, Manifest, parse_manifest};

use super::{
    super::{live, module, problem::Problem},
    Asked, kinds,
};

/// How long the cluster may take to say whether a file has the name of a Reconciler.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of a guest that a role is for.
pub(super) struct Subject {
    /// All that the guest declares. For a Reconciler, also what the Module before declares and which children may be left of earlier
    /// ones.
    pub(super) manifest: Manifest,
    /// Plurals that nobody has to guess.
    pub(super) known: BTreeMap<Kind, String>,
    /// What the Reconciler grants.
    pub(super) asked: Asked,
    /// What is to be said to the person beside the role.
    pub(super) notes: Vec<String>,
}

impl Subject {
    /// Finds what the argument of a command line means.
    pub(super) fn find(argument: &OsStr, connect: &Connect) -> Result<Self, Problem> {
        let path = Path::new(argument);
        match meaning(argument, path.is_file()) {
            Meaning::File => Self::in_file(path, connect),
            Meaning::FileOrReconciler(name) => {
                let mut subject = Self::in_file(path, connect)?;
                if live::block_on(exists(connect, name)).unwrap_or(false) {
                    subject.notes.push(format!(
                        "the role is for the file {name}; a Reconciler has that name, too: for it, run the command where \
                         there is no such file"
                    ));
                }
                Ok(subject)
            }
            Meaning::Reconciler(name) => {
                let found = live::block_on(Self::of_reconciler(name, connect));
                found.map_err(|problem| match path.is_dir() {
                    true => problem.hint(module::build(path)),
                    false => problem,
                })
            }
        }
    }

    fn in_file(path: &Path, connect: &Connect) -> Result<Self, Problem> {
        let manifest = module::load_guest(&offline::engine()?, path)?.manifest().clone();
        let is_cluster_named = connect.kubeconfig.is_some() || connect.context.is_some();
        let (known, notes) = if is_cluster_named {
            live::block_on(async { served(&Cluster::new(connect.client().await?), &manifest).await })?
        } else {
            (beside(path)?, Vec::new())
        };
        Ok(Self { manifest, known, asked: Asked::default(), notes })
    }

    async fn of_reconciler(name: &str, connect: &Connect) -> Result<Self, Problem> {
        let about = || format!("{name} is no file here, so it names a Reconciler");
        let client = live::client(connect).await.map_err(|problem| problem.about(about()))?;
        let reconciler = Api::<Reconciler>::all(client.clone())
            .get_opt(name)
            .await
            .map_err(|error| live::problem(format!("Reconciler {name}"), &error))?;
        let Some(reconciler) = reconciler else {
            return Err(Problem::new(format!("there is neither a file nor a Reconciler {name}"))
                .hint("see which there are with: kubectl get reconcilers.pintle.dev"));
        };
        let cluster = Cluster::new(client.clone());
        let mut manifests = Vec::new();
        for module in modules(&reconciler) {
            manifests.push(manifest_of(&client, &cluster, name, module).await?);
        }
        let status = reconciler.status.clone().unwrap_or_default();
        let manifest = union(&reconciler.spec.r#for, manifests, &status);
        let grants = &reconciler.spec.grants;
        let asked = Asked { elsewhere: grants.reaches_elsewhere(), pod_deletions: grants.pod_deletions };
        let (known, mut notes) = served(&cluster, &manifest).await?;
        notes.extend(beyond_the_role(&reconciler));
        Ok(Self { manifest, known, asked, notes })
    }
}

/// What an argument may mean.
#[derive(Debug, PartialEq, Eq)]
enum Meaning<'a> {
    File,
    /// A file by a name that a Reconciler may have: the file goes before.
    FileOrReconciler(&'a str),
    Reconciler(&'a str),
}

fn meaning(argument: &OsStr, is_file: bool) -> Meaning<'_> {
    match argument.to_str() {
        None => Meaning::File,
        Some(text) if text.contains(['/', MAIN_SEPARATOR]) || text.ends_with(".wasm") => Meaning::File,
        Some(text) if is_file => Meaning::FileOrReconciler(text),
        Some(text) => Meaning::Reconciler(text),
    }
}

/// Whether a Reconciler has this name, as far as the cluster says so at once: the role for a file needs no cluster.
async fn exists(connect: &Connect, name: &str) -> Result<bool, Problem> {
    let reconcilers: Api<Reconciler> = Api::all(connect.client().await?);
    Ok(tokio::time::timeout(PATIENCE, reconcilers.get_opt(name)).await??.is_some())
}

/// The Modules whose guests the host works with: the one that is wanted, and until it is in force the one before.
fn modules(reconciler: &Reconciler) -> Vec<&str> {
    let wanted = reconciler.spec.module.as_str();
    let active = reconciler.status.as_ref().and_then(|status| status.active.as_ref());
    let before = active.map(|active| active.module.as_str()).filter(|module| *module != wanted);
    [wanted].into_iter().chain(before).collect()
}

/// What the guest of a Module declares: as the host has found out, or else by asking the guest itself.
async fn manifest_of(
    client: &Client,
    cluster: &Cluster,
    reconciler: &str,
    name: &str,
) -> Result<Manifest, Problem> {
    let found = Api::<Module>::all(client.clone())
        .get_opt(name)
        .await
        .map_err(|error| live::problem(format!("Module {name}"), &error))?;
    let Some(module) = found else {
        return Err(Problem::new(format!("there is no Module {name}, which Reconciler {reconciler} names"))
            .hint(format!("upload it with: pintle push {name} FILE; or name the file: pintle rbac FILE")));
    };
    if let Some(manifest) = in_status(&module) {
        return Ok(manifest);
    }
    let failed = |why: String| {
        Problem::failed(format!("Module {name}, which Reconciler {reconciler} names: {why}"))
            .hint("see its conditions with: kubectl describe modules.pintle.dev; or name the file: pintle rbac FILE")
    };
    let bytes = pintle_modules::module_bytes(cluster, &module.spec.source).await;
    let bytes = bytes.map_err(|failure| failed(failure.to_string()))?;
    let digest: Digest = module.spec.digest.parse()?;
    let loaded = offline::engine()?.load(&bytes, Some(&digest));
    let guest = loaded.map_err(|failure| failed(failure.to_string()))?.guest();
    guest
        .map(|guest| guest.manifest().clone())
        .ok_or_else(|| failed("it serves views and reconciles nothing".into()))
}

/// The manifest in a Module's status, unless the host has not got as far, or is of another version and writes what this one cannot
/// read.
fn in_status(module: &Module) -> Option<Manifest> {
    let status = module.status.as_ref()?;
    let is_ready = status
        .conditions
        .iter()
        .any(|condition| condition.r#type == READY && condition.status == ConditionStatus::True);
    let manifest = status.manifest.as_ref().filter(|_| is_ready)?;
    parse_manifest(&manifest.to_string(), pintle_wit::Limits::default()).ok()
}

/// One manifest that declares whatever any of these does, named as the first is, with every kind of which children may be left.
fn union(root: &Kind, manifests: Vec<Manifest>, status: &ReconcilerStatus) -> Manifest {
    let mut all = Manifest::default();
    for manifest in manifests {
        if all.name.is_empty() {
            (all.name, all.version) = (manifest.name, manifest.version);
        }
        all.children.extend(manifest.children);
        all.needs.extend(manifest.needs);
        all.patches.extend(manifest.patches);
        all.evictions |= manifest.evictions;
        all.finalizer |= manifest.finalizer;
    }
    let left = status.child_kinds.iter().map(|kind| ChildKind::new(&kind.api_version, &kind.kind));
    all.children.extend(left);
    Manifest { reconciles: root.clone(), ..all }
}

/// The plurals of all kinds that the API server serves, and a note for each that it does not.
async fn served(
    cluster: &Cluster,
    manifest: &Manifest,
) -> Result<(BTreeMap<Kind, String>, Vec<String>), Problem> {
    let mut known = BTreeMap::new();
    let mut notes = Vec::new();
    for kind in kinds(manifest) {
        let found = cluster.discover(&kind).await;
        let found = found.map_err(|error| {
            Problem::new(format!("the API server does not say how it serves {kind}: {error}"))
                .hint("see which cluster is meant with: kubectl config current-context")
        })?;
        match found {
            Some(resource) => _ = known.insert(kind, resource.plural),
            None => notes.push(format!(
                "the API server does not serve {kind}, so its plural is guessed; install its CRD, or set --plural"
            )),
        }
    }
    Ok((known, notes))
}

/// The plurals that `crd.yaml` beside a module has.
fn beside(path: &Path) -> Result<BTreeMap<Kind, String>, Problem> {
    let mut known = BTreeMap::new();
    for document in module::crds_beside(path, false)? {
        let spec = &document.value["spec"];
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        let (Some(group), Some(kind), Some(plural)) =
            (text(&spec["group"]), text(&spec["names"]["kind"]), text(&spec["names"]["plural"]))
        else {
            continue;
        };
        for version in spec["versions"].as_array().into_iter().flatten() {
            let version = version["name"].as_str().unwrap_or_default();
            known.insert(Kind::new(format!("{group}/{version}"), &kind), plural.clone());
        }
    }
    Ok(known)
}

/// What a Reconciler asks of the cluster that no ClusterRole for a guest gives.
fn beyond_the_role(reconciler: &Reconciler) -> Vec<String> {
    let spec = &reconciler.spec;
    let account = spec.service_account.as_ref().map(|account| match &account.namespace {
        Some(namespace) => format!(
            "children are written as another account: the host also needs deploy/namespace/impersonate.yaml in namespace \
             {namespace}"
        ),
        None => "children are written as accounts that the roots name: the host also needs \
                 deploy/namespace/impersonate.yaml in their namespaces"
            .into(),
    });
    let secrets = spec.watch_secrets_in.iter().map(|namespace| {
        format!("to watch Secrets there: kubectl apply -n {namespace} -f deploy/namespace/secrets.yaml")
    });
    account.into_iter().chain(secrets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_file_is_what_is_one_or_looks_like_one() {
        let of = |argument: &'static str, is_file| meaning(OsStr::new(argument), is_file);
        assert_eq!(of("webserver", false), Meaning::Reconciler("webserver"));
        assert_eq!(of("webserver", true), Meaning::FileOrReconciler("webserver"));
        assert_eq!(of("./webserver", false), Meaning::File);
        assert_eq!(of("webserver.wasm", false), Meaning::File);
    }

    #[test]
    fn what_the_role_does_not_give_is_said() {
        let spec = json!({
            "for": {"apiVersion": "x/v1", "kind": "X"}, "module": "m", "watchSecretsIn": ["shop"],
            "serviceAccount": {"namespace": "team", "name": "children"},
        });
        let notes = beyond_the_role(&Reconciler::new("x", serde_json::from_value(spec).unwrap()));
        assert!(notes[0].contains("deploy/namespace/impersonate.yaml in namespace team"), "{notes:?}");
        assert!(notes[1].ends_with("kubectl apply -n shop -f deploy/namespace/secrets.yaml"), "{notes:?}");
        assert_eq!(notes.len(), 2);
    }
}
