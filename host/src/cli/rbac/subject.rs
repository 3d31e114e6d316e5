//! What rights are printed for: the guest or the views of a module in a file, or a Reconciler or a View in a cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fmt::{self, Debug},
    path::{MAIN_SEPARATOR, Path, PathBuf},
    time::Duration,
};

use kube::{Api, Client, Resource};
use pintle_api::{Module, Reconciler, ReconcilerStatus, View};
use pintle_core::{conditions::READY, view::rights::Exposed};
use pintle_engine::Digest;
use pintle_kubernetes::{Cluster, connect::Connect};
use pintle_offline as offline;
use pintle_wit::{ChildKind, ConditionStatus, Kind, Limits, Manifest, parse_manifest};
use serde::de::DeserializeOwned;

use super::{
    super::{live, missing::missing_in, module, named::Named, problem::Problem},
    Asked, kinds, views,
};

/// How long the cluster may take to say whether a file has the name of an object.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is known of what rights are for.
pub(super) struct Subject {
    /// What may be done.
    pub(super) of: Of,
    /// Plurals that nobody has to guess.
    pub(super) known: BTreeMap<Kind, String>,
    /// What is to be said to the person beside the rights.
    pub(super) notes: Vec<String>,
}

/// Whose rights.
pub(super) enum Of {
    /// A guest's that reconciles.
    Guest {
        /// All that the guest declares. For a Reconciler, also what the Module before declares and which children may be left of
        /// earlier ones.
        manifest: Manifest,
        /// What the Reconciler grants.
        asked: Asked,
    },
    /// Views'. A backing kind whose plural is still to be found has none.
    Views(Vec<Exposed>),
}

impl Subject {
    /// Finds what the argument of a command line means, and the files with Views beside it.
    pub(super) fn find(argument: &OsStr, files: &[PathBuf], connect: &Connect) -> Result<Self, Problem> {
        let path = Path::new(argument);
        match meaning(argument, path.is_file()) {
            Meaning::File => Self::in_file(path, files, connect),
            Meaning::FileOr(named) => {
                let mut subject = Self::in_file(path, files, connect)?;
                if live::block_on(exists(connect, &named)).unwrap_or(false) {
                    let kind = match &named {
                        Named::Reconciler(_) => "Reconciler",
                        Named::View(_) => "View",
                    };
                    subject.notes.push(format!(
                        "the role is for the file {named}; a {kind} has that name, too: for it, run the command where \
                         there is no such file"
                    ));
                }
                Ok(subject)
            }
            Meaning::Named(named) if !files.is_empty() => {
                let message = format!("-f is for the module in a file, and {named} is no file here");
                Err(Problem::new(message).hint("the module comes first: pintle rbac MODULE -f FILE"))
            }
            Meaning::Named(Named::View(name)) => live::block_on(views::of_view(&name, connect)),
            Meaning::Named(Named::Reconciler(name)) => {
                let found = live::block_on(Self::of_reconciler(&name, connect));
                found.map_err(|problem| match path.is_dir() {
                    true => problem.hint(module::build(path)),
                    false => problem,
                })
            }
        }
    }

    fn in_file(path: &Path, files: &[PathBuf], connect: &Connect) -> Result<Self, Problem> {
        views::are_no_views(path)?;
        let loaded = module::load(&offline::engine()?, path)?;
        let mut notes = Vec::new();
        let of = match (loaded.guest(), loaded.views()) {
            (None, Some(views)) if files.is_empty() => {
                notes.push(format!(
                    "the rights are for Views that have the names of the views, every verb and access ViewAndBacking; \
                     for other ones: pintle rbac {} -f FILE",
                    path.display()
                ));
                Of::Views(views::all(views.manifest()).map_err(|failure| module::refused(path, &failure))?)
            }
            (_, Some(views)) if !files.is_empty() => {
                Of::Views(views::in_files(path, views.manifest(), files)?)
            }
            (guest, views) => {
                if !files.is_empty() {
                    let message =
                        format!("{} serves no views, and -f is for files with Views", path.display());
                    return Err(Problem::new(message));
                }
                if views.is_some() {
                    notes.push(format!(
                        "the role is for what the module reconciles; it also serves views: pintle rbac {} -f FILE, with \
                         the file of their Views",
                        path.display()
                    ));
                }
                let guest = guest.map_or_else(|| module::guest_of(&loaded, path), Ok)?;
                Of::Guest { manifest: guest.manifest().clone(), asked: Asked::default() }
            }
        };
        let is_cluster_named = connect.kubeconfig.is_some() || connect.context.is_some();
        let known = if is_cluster_named {
            let kinds = of.kinds();
            let (known, unserved) =
                live::block_on(async { served(&Cluster::new(connect.client().await?), kinds).await })?;
            notes.extend(unserved);
            known
        } else {
            beside(path)?
        };
        Ok(Self { of, known, notes })
    }

    async fn of_reconciler(name: &str, connect: &Connect) -> Result<Self, Problem> {
        let about = || format!("{name} is no file here, so it names a Reconciler");
        let client = live::client(connect).await.map_err(|problem| problem.about(about()))?;
        let reconcilers = Api::<Reconciler>::all(client.clone());
        let found = reconcilers.get_opt(name).await;
        let found = found.map_err(|error| live::problem(format!("Reconciler {name}"), &error))?;
        let Some(reconciler) = found else {
            return Err(missing_in(&reconcilers, name).await.about(about()));
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
        let (known, mut notes) = served(&cluster, kinds(&manifest)).await?;
        notes.extend(beyond_the_role(&reconciler));
        Ok(Self { of: Of::Guest { manifest, asked }, known, notes })
    }
}

impl Of {
    /// Every kind whose plural is to be found.
    pub(super) fn kinds(&self) -> BTreeSet<Kind> {
        match self {
            Self::Guest { manifest, .. } => kinds(manifest),
            Self::Views(exposed) => {
                let served = exposed.iter().flat_map(|exposed| &exposed.served);
                let unknown = served.filter(|served| served.backing.plural.is_empty());
                unknown.map(|served| served.backing.kind()).collect()
            }
        }
    }
}

/// What an argument may mean.
#[derive(Debug, PartialEq, Eq)]
enum Meaning {
    File,
    /// A file by a name that an object may have: the file goes before.
    FileOr(Named),
    Named(Named),
}

fn meaning(argument: &OsStr, is_file: bool) -> Meaning {
    let named = argument.to_str().filter(|text| !text.contains(MAIN_SEPARATOR) || MAIN_SEPARATOR == '/');
    match named.filter(|text| !text.ends_with(".wasm")).and_then(Named::read) {
        None => Meaning::File,
        Some(named) if is_file => Meaning::FileOr(named),
        Some(named) => Meaning::Named(named),
    }
}

/// Whether an object has this name, as far as the cluster says so at once: the role for a file needs no cluster.
async fn exists(connect: &Connect, named: &Named) -> Result<bool, Problem> {
    async fn has<K>(client: Client, name: &str) -> Result<bool, Problem>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let found = tokio::time::timeout(PATIENCE, Api::<K>::all(client).get_metadata_opt(name)).await??;
        Ok(found.is_some())
    }
    let client = connect.client().await?;
    match named {
        Named::Reconciler(name) => has::<Reconciler>(client, name).await,
        Named::View(name) => has::<View>(client, name).await,
    }
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
    let by = Named::Reconciler(reconciler.to_owned());
    let module = ModuleOf::read(client, name, &by).await?;
    let read = |text: &str| parse_manifest(text, Limits::default()).ok();
    if let Some(manifest) = module.manifest_text().and_then(|text| read(&text)) {
        return Ok(manifest);
    }
    let guest = module.load(cluster).await?.guest().map(|guest| guest.manifest().clone());
    guest.ok_or_else(|| module.failed("it serves views and reconciles nothing"))
}

/// A Module in the cluster, and who names it.
pub(super) struct ModuleOf<'a> {
    module: Module,
    name: &'a str,
    by: &'a Named,
}

impl<'a> ModuleOf<'a> {
    /// Reads it.
    pub(super) async fn read(client: &Client, name: &'a str, by: &'a Named) -> Result<Self, Problem> {
        let found = Api::<Module>::all(client.clone()).get_opt(name).await;
        let found = found.map_err(|error| live::problem(format!("Module {name}"), &error))?;
        let Some(module) = found else {
            let message = format!("there is no Module {name}, which {} names", Said(by));
            return Err(Problem::new(message).hint(format!(
                "upload it with: pintle push {name} FILE; or name the file: pintle rbac FILE"
            )));
        };
        Ok(Self { module, name, by })
    }

    /// The manifest in its status, unless the host has not got as far: that of its guest, or else that of its views.
    pub(super) fn manifest_text(&self) -> Option<String> {
        let status = self.module.status.as_ref()?;
        let is_ready = status
            .conditions
            .iter()
            .any(|condition| condition.r#type == READY && condition.status == ConditionStatus::True);
        status.manifest.as_ref().filter(|_| is_ready).map(ToString::to_string)
    }

    /// Loads its bytes.
    pub(super) async fn load(&self, cluster: &Cluster) -> Result<pintle_engine::Module, Problem> {
        let bytes = pintle_modules::module_bytes(cluster, &self.module.spec.source).await;
        let bytes = bytes.map_err(|failure| self.failed(failure))?;
        let digest: Digest = self.module.spec.digest.parse()?;
        offline::engine()?.load(&bytes, Some(&digest)).map_err(|failure| self.failed(failure))
    }

    /// What is said where it is not as it should be.
    pub(super) fn failed(&self, why: impl fmt::Display) -> Problem {
        Problem::failed(format!("Module {}, which {} names: {why}", self.name, Said(self.by)))
            .hint("see its conditions with: kubectl describe modules.pintle.dev; or name the file: pintle rbac FILE")
    }
}

/// An object with its kind, for messages: `Reconciler things`.
struct Said<'a>(&'a Named);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Named::Reconciler(name) => write!(f, "Reconciler {name}"),
            Named::View(name) => write!(f, "View {name}"),
        }
    }
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

/// The plurals of kinds that the API server serves, and a note for each that it does not.
pub(super) async fn served(
    cluster: &Cluster,
    kinds: BTreeSet<Kind>,
) -> Result<(BTreeMap<Kind, String>, Vec<String>), Problem> {
    let mut known = BTreeMap::new();
    let mut notes = Vec::new();
    for kind in kinds {
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
        let of = |argument: &str, is_file| meaning(OsStr::new(argument), is_file);
        let webserver = || Named::Reconciler("webserver".into());
        assert_eq!(of("webserver", false), Meaning::Named(webserver()));
        assert_eq!(of("webserver", true), Meaning::FileOr(webserver()));
        assert_eq!(of("./webserver", false), Meaning::File);
        assert_eq!(of("webserver.wasm", false), Meaning::File);
        let llamas = || Named::View("llamas".into());
        assert_eq!(of("view/llamas", false), Meaning::Named(llamas()));
        assert_eq!(of("view/llamas", true), Meaning::FileOr(llamas()));
        assert_eq!(of("view/llamas.wasm", false), Meaning::File);
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
