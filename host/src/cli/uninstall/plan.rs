//! What `pintle uninstall` deletes, in which order, and what it leaves.

use std::fmt;

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::ResourceExt;
use pintle_api::{Module, NAMESPACE, Reconciler, View};
use pintle_core::{object, view::Collected};
use pintle_kubernetes::Resource;
use pintle_offline::documents;
use pintle_wit::{Kind, names};

use super::{
    super::{host, live, plural::plural, problem::Problem},
    roots::{Root, Roots},
};

/// What an installation consists of.
const INSTALL: &str = include_str!("../../../../deploy/install.yaml");

/// What the gateway consists of.
const GATEWAY: &str = include_str!("../../../../deploy/gateway.yaml");

/// The finalizers that the host puts on roots.
const FINALIZERS_OF_ROOTS: [&str; 3] =
    [names::FINALIZER_GUEST, names::FINALIZER_INVENTORY, names::FINALIZER_PATCHES];

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// How the API server serves its kind.
    pub(super) resource: Resource,
    /// Its namespace, unless its kind has none.
    pub(super) namespace: Option<String>,
    /// Its name.
    pub(super) name: String,
}

impl Target {
    fn new(kind: Kind, namespace: Option<&str>, name: &str) -> Self {
        let resource = Resource { plural: plural(&kind.kind), namespaced: namespace.is_some(), kind };
        Self { resource, namespace: namespace.map(Into::into), name: name.into() }
    }

    fn own(kind: &str, name: &str) -> Self {
        Self::new(Kind::new("pintle.dev/v1alpha1", kind), None, name)
    }

    /// Whether it is of this kind.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.resource.kind.kind == kind
    }
}

/// As kubectl names it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&live::resource_name(&self.resource.kind, &self.name))?;
        match &self.namespace {
            Some(namespace) => write!(f, " -n {namespace}"),
            None => Ok(()),
        }
    }
}

/// The objects of deploy/install.yaml, in the order of that file.
pub(super) fn manifest() -> Result<Vec<Target>, Problem> {
    targets("deploy/install.yaml", INSTALL)
}

/// The objects of deploy/gateway.yaml, in the order of that file.
pub(super) fn gateway() -> Result<Vec<Target>, Problem> {
    targets("deploy/gateway.yaml", GATEWAY)
}

fn targets(file: &str, text: &str) -> Result<Vec<Target>, Problem> {
    let parsed = documents::parse(file, text)?;
    Ok(parsed
        .iter()
        .map(|document| {
            let value = &document.value;
            Target::new(object::kind(value), object::namespace(value), object::name(value))
        })
        .collect())
}

/// Whether the API server sends the requests of an APIService to the gateway.
pub(super) fn leads_to_gateway(service: &APIService) -> bool {
    let service = service.spec.as_ref().and_then(|spec| spec.service.as_ref());
    service.is_some_and(|service| {
        service.namespace.as_deref() == Some(NAMESPACE) && service.name.as_deref() == Some(host::GATEWAY)
    })
}

/// What was found in a cluster.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The APIServices that lead to the gateway.
    pub(super) services: Vec<APIService>,
    /// The Views.
    pub(super) views: Vec<View>,
    /// Those objects of [`gateway`] that exist, in its order.
    pub(super) gateway: Vec<Target>,
    /// The Reconcilers.
    pub(super) reconcilers: Vec<Reconciler>,
    /// The Modules.
    pub(super) modules: Vec<Module>,
    /// Those objects of [`manifest`] that exist, in its order.
    pub(super) installed: Vec<Target>,
    /// The roots of the Reconcilers.
    pub(super) roots: Roots<Root>,
    /// Whether a host works.
    pub(super) host_works: bool,
}

/// What is deleted, and what is left.
#[derive(Debug)]
pub(super) struct Plan {
    /// The objects to delete. What one step deletes must be gone before the next one begins.
    pub(super) steps: Vec<Vec<Target>>,
    /// The finalizers that the garbage collector's work on views leaves on what they show. They are taken off when the Views are deleted.
    pub(super) collected: Vec<Collected>,
    /// The objects with finalizers that only a host takes off, where no host works.
    held: Vec<Target>,
    /// How to get a host that works.
    start: &'static str,
    /// What is left, and what that means.
    stays: Vec<String>,
}

/// How to start a host whose Deployment is there.
const START: &str = "kubectl -n pintle-system scale deployment pintle --replicas=1";

/// How to get a host where there is no Deployment.
const INSTALL_AGAIN: &str = "kubectl apply --server-side -f deploy/install.yaml";

/// Decides what is deleted: APIServices, since no namespace can be deleted while one leads nowhere; Views, and the gateway, which nothing
/// needs any more; Reconcilers, so that the host takes its finalizers off their roots; Modules; the host; what it ran with, in the opposite
/// order of the installation; and the CRDs where that is wanted.
pub(super) fn of(found: &Found, crds: bool) -> Plan {
    let service = |object: &APIService| {
        Target::new(Kind::new("apiregistration.k8s.io/v1", "APIService"), None, &object.name_any())
    };
    let view = |object: &View| Target::own("View", &object.name_any());
    let reconciler = |object: &Reconciler| Target::own("Reconciler", &object.name_any());
    let module = |object: &Module| Target::own("Module", &object.name_any());
    let reconcilers = found.reconcilers.iter().map(reconciler);
    let modules = found.modules.iter().map(module);
    let held: Vec<Target> = match found.host_works {
        true => Vec::new(),
        false => {
            let reconcilers = found.reconcilers.iter().filter(|object| is_held(*object)).map(reconciler);
            let modules = found.modules.iter().filter(|object| is_held(*object)).map(module);
            reconcilers.chain(modules).collect()
        }
    };
    let (gateway, gateways) = program_first(&found.gateway);
    let (host, rest) = program_first(&found.installed);
    let (definitions, rest): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|target| target.is("CustomResourceDefinition"));
    let (has_crds, has_host) = (!definitions.is_empty(), !host.is_empty());
    let (services, views) = (found.services.iter().map(service), found.views.iter().map(view));
    let mut steps = vec![
        services.collect(),
        views.collect(),
        gateway,
        gateways,
        reconcilers.collect(),
        modules.collect(),
        host,
        rest,
    ];
    if crds {
        steps.push(definitions);
    }
    steps.retain(|step: &Vec<Target>| !step.is_empty());
    let start = if has_host { START } else { INSTALL_AGAIN };
    Plan { steps, collected: collected(&found.views), held, start, stays: stays(found, has_crds && !crds) }
}

/// What the garbage collector's work on these Views may have left.
fn collected(views: &[View]) -> Vec<Collected> {
    let mut all: Vec<Collected> = Vec::new();
    for view in views {
        let Some(served) = view.status.as_ref().and_then(|status| status.served.as_ref()) else { continue };
        let is_held = view.finalizers().iter().any(|name| name == names::FINALIZER_VIEW);
        let left = Collected::of(served).filter(|_| is_held || served.has_graph());
        // Two Views may serve two versions of one resource.
        all.extend(left.filter(|left| !all.contains(left)));
    }
    all
}

/// The Deployment of what was installed, and everything else, in the opposite order of the installation.
fn program_first(installed: &[Target]) -> (Vec<Target>, Vec<Target>) {
    installed.iter().rev().cloned().partition(|target| target.is("Deployment"))
}

/// Whether an object has a finalizer of the host.
fn is_held(object: &impl ResourceExt) -> bool {
    object.finalizers().iter().any(|name| names::is_ours(name))
}

/// What is left, and what that means.
fn stays(found: &Found, crds: bool) -> Vec<String> {
    let mut stays = vec!["all roots and their CRDs, and the children of roots".to_owned()];
    let roots = &found.roots.found;
    let with = |wanted: &[&str]| {
        let held = |root: &&Root| root.finalizers.iter().any(|name| wanted.contains(&name.as_str()));
        roots.iter().filter(held).count()
    };
    let (held, elsewhere) = (with(&FINALIZERS_OF_ROOTS), with(&[names::FINALIZER_INVENTORY]));
    if held > 0 {
        stays.push(format!(
            "{held} of {} roots without the finalizers of the host: what it would clean up when they are deleted stays",
            roots.len()
        ));
    }
    if elsewhere > 0 {
        stays.push(format!(
            "children in other namespaces of {elsewhere} of {} roots: they do not go with their roots any more",
            roots.len()
        ));
    }
    stays.extend(
        found
            .roots
            .unread
            .iter()
            .map(|unread| format!("roots that could not be looked at: {}", unread.text())),
    );
    stays.push(
        "ClusterRoles of guests: kubectl delete clusterroles -l pintle.dev/aggregate-to-host=true".into(),
    );
    if !(found.services.is_empty() && found.views.is_empty() && found.gateway.is_empty()) {
        let without = match collected(&found.views).is_empty() {
            true => "",
            false => ", without the finalizers that the garbage collector has through Views",
        };
        stays.push(format!("all objects that Views show{without}"));
        stays.push(
            "ClusterRoles of Views: kubectl delete clusterroles -l pintle.dev/aggregate-to-gateway=true"
                .into(),
        );
    }
    if crds {
        stays.push("the CRDs of Module, Reconciler and View: --crds deletes them".into());
    }
    stays
}

impl Plan {
    /// Makes sure that everything in the plan can go.
    ///
    /// # Errors
    /// When there is nobody who would take the host's finalizers off.
    pub(super) fn check(&self) -> Result<(), Problem> {
        if self.held.is_empty() {
            return Ok(());
        }
        Err(Problem::failed(
            "no host works, and Reconcilers or Modules have finalizers that the host must take off before they go",
        )
        .hint(format!(
            "start a host, and run this again: {}; see what is deleted with: pintle uninstall --dry-run",
            self.start
        )))
    }

    /// The plan for people.
    pub(super) fn text(&self) -> String {
        let mut text = String::from("These are deleted, in this order:\n");
        for target in self.steps.iter().flatten() {
            let all = if target.is("Namespace") { ", with everything in it" } else { "" };
            text.push_str(&format!("  {target}{all}\n"));
        }
        text.push_str("These stay:\n");
        self.stays.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        if !self.held.is_empty() {
            text.push_str("These need a host that takes its finalizers off, and none works:\n");
            self.held.iter().for_each(|target| text.push_str(&format!("  {target}\n")));
            text.push_str(&format!("Start a host first: {}\n", self.start));
        }
        text
    }
}
