//! The command `pintle uninstall`: it removes Pintle from a cluster, in the order in which nothing is left that nobody can delete.

use std::{
    fmt,
    io::{self, BufRead, IsTerminal, Write},
    time::Duration,
};

use clap::Args;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject},
};
use pintle_api::{GATEWAY_SERVICE, Module, NAMESPACE, Reconciler, View};
use pintle_core::object;
use pintle_kubernetes::{Resource, connect::Connect};
use pintle_offline::documents::{self, Document};
use pintle_wit::Kind;

use super::{
    live::{self, Progress},
    output,
    plural::plural,
    problem::{CommandStatus, Problem},
    status,
};

/// Remove Pintle from a cluster
///
/// The command deletes the APIServices that lead to the gateway, Views, and the gateway; then Reconcilers, Modules, and the objects of
/// deploy/install.yaml with the namespace `pintle-system`. It waits after each step: no namespace can be deleted while an APIService leads
/// nowhere, and the host must take its finalizers off the roots, and say in their statuses that nobody reconciles them, before it goes.
///
/// Where a Reconciler or Module would wait for a host, and none leads, nothing is deleted: what is only marked for deletion goes with the next
/// host. --force deletes all the same, for a host with `--leader-elect=false`, or where none will come and you remove the finalizers. A command
/// that was stopped goes on when you run it again.
///
/// Roots, their children and their CRDs stay, and so do the objects that Views show. The CRDs of Module, Reconciler and View stay too, unless
/// --crds is set. Another namespace than `pintle-system` stays.
///
/// Where Helm or somebody else deletes what was installed, --keep-install leaves that, and deletes only what needs it. Without it, the command
/// refuses to delete what Helm has installed.
///
/// With kubectl, delete in the same order what --dry-run prints.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what would be deleted
  pintle uninstall --dry-run

  # Delete the CRDs of Pintle too, and do not ask
  pintle uninstall --crds --yes

  # Where Pintle is in another namespace
  pintle uninstall --namespace tools

  # Before the manifests or the chart are deleted
  pintle uninstall --keep-install")]
pub(super) struct Uninstall {
    /// Namespace of the host and the gateway
    #[arg(short, long, default_value = NAMESPACE)]
    namespace: String,

    /// Delete the CRDs of Module, Reconciler and View too
    #[arg(long)]
    crds: bool,

    /// Delete only APIServices that lead to the gateway, Views, Reconcilers and Modules, and leave the host, the gateway and their objects
    #[arg(long, conflicts_with = "crds")]
    keep_install: bool,

    /// Delete although no host leads
    #[arg(long)]
    force: bool,

    /// Only print what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    yes: bool,

    /// How long each step may take
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = live::duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: Connect,
}

/// What helps when an object does not go: most of them wait for the host, which takes its finalizers off.
const HOST_RUNS: &str = "see whether the host runs, and run this again: it goes on where it has stopped";

/// What an installation consists of.
const INSTALL: &str = include_str!("../../../deploy/install.yaml");

/// What the gateway consists of.
const GATEWAY: &str = include_str!("../../../deploy/gateway.yaml");

/// What the host and the gateway make for themselves in their namespace.
const MADE: [(&str, &str, &str); 2] = [
    ("coordination.k8s.io/v1", "Lease", pintle_operator::LEASE),
    ("v1", "Secret", pintle_gateway::tls::SECRET),
];

/// What is left.
const STAYS: &str = "These stay:
  all roots and their CRDs, and the children of roots, without the finalizers of the host
  all objects that Views show
  ClusterRoles of guests: kubectl delete clusterroles -l pintle.dev/aggregate-to-host=true
  ClusterRoles of users: kubectl delete clusterroles -l pintle.dev/users=true
  ClusterRoles of Views: kubectl delete clusterroles -l pintle.dev/aggregate-to-gateway=true
";

/// What is left with --keep-install.
const INSTALL_STAYS: &str = "  the host, the gateway, and what was installed with them\n";

/// What is left too, unless it is to go.
const CRDS_STAY: &str = "  the CRDs of Module, Reconciler and View, without --crds\n";

impl Uninstall {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        if !self.yes && !self.dry_run && !io::stdin().is_terminal() {
            return Err(Problem::new(
                "uninstall asks before it deletes, and the standard input is no terminal",
            )
            .hint("see what it deletes with: pintle uninstall --dry-run; then add --yes"));
        }
        live::block_on(async { self.uninstall(&self.connect.client().await?).await })
    }

    async fn uninstall(&self, client: &Client) -> Result<CommandStatus, Problem> {
        refuse_elsewhere(client, &self.namespace).await?;
        let installed = if self.keep_install {
            Default::default()
        } else {
            refuse_release(client, &self.namespace).await?;
            installation(&self.namespace)?
        };
        let plan = look(client, &self.namespace, installed, self.crds).await?;
        if plan.steps.is_empty() {
            let why = if self.keep_install { "" } else { "Pintle is not installed in this cluster: " };
            output::print(&format!("{why}there is nothing to delete\n"))?;
            return Ok(CommandStatus::Fine);
        }
        output::print(&plan.text(self.keep_install))?;
        if self.dry_run {
            return Ok(CommandStatus::Fine);
        }
        if !self.force {
            refuse_to_wait(client, &self.namespace, &plan).await?;
        }
        if !self.yes && !ask()? {
            return Err(Problem::failed("nothing was deleted"));
        }
        carry_out(client, &plan, self.timeout, &mut |line| output::print(line)).await?;
        Ok(CommandStatus::Fine)
    }
}

/// Asks on the terminal.
fn ask() -> Result<bool, Problem> {
    output::print("Delete all of this? [y/N] ")?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// An object to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    resource: Resource,
    namespace: Option<String>,
    name: String,
}

impl Target {
    fn new(kind: Kind, namespace: Option<&str>, name: &str) -> Self {
        let resource = Resource { plural: plural(&kind.kind), namespaced: namespace.is_some(), kind };
        Self { resource, namespace: namespace.map(Into::into), name: name.into() }
    }

    /// Objects of cluster scope.
    fn all<K: kube::Resource<DynamicType = ()>>(objects: &[K]) -> Vec<Self> {
        let kind = Kind::new(K::api_version(&()), K::kind(&()));
        objects.iter().map(|object| Self::new(kind.clone(), None, &object.name_any())).collect()
    }

    fn is(&self, kind: &str) -> bool {
        self.resource.kind.kind == kind
    }
}

/// As kubectl names it: `deployment.apps/pintle -n pintle-system`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = &self.resource.kind;
        let group = if kind.group().is_empty() { String::new() } else { format!(".{}", kind.group()) };
        write!(f, "{}{group}/{}", kind.kind.to_lowercase(), self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, " -n {namespace}"),
            None => Ok(()),
        }
    }
}

/// The objects of deploy/install.yaml and of deploy/gateway.yaml in a namespace, in the order of these files. Another namespace than that of
/// the files was made by somebody else, perhaps for more than this: only what is in it goes.
fn installation(namespace: &str) -> Result<[Vec<Target>; 2], Problem> {
    let mut host = targets("deploy/install.yaml", INSTALL, namespace)?;
    if namespace != NAMESPACE {
        let made = |(version, kind, name)| Target::new(Kind::new(version, kind), Some(namespace), name);
        host.retain(|target| !target.is("Namespace"));
        host.extend(MADE.map(made));
    }
    Ok([host, targets("deploy/gateway.yaml", GATEWAY, namespace)?])
}

fn targets(file: &str, text: &str, namespace: &str) -> Result<Vec<Target>, Problem> {
    let target = |Document { value, .. }: &Document| {
        let place = object::namespace(value).map(|of| if of == NAMESPACE { namespace } else { of });
        Target::new(object::kind(value), place, object::name(value))
    };
    Ok(documents::parse(file, text)?.iter().map(target).collect())
}

/// Whether the API server sends the requests of an APIService to the gateway in a namespace.
fn leads_to_gateway(service: &APIService, namespace: &str) -> bool {
    let service = service.spec.as_ref().and_then(|spec| spec.service.as_ref());
    service.is_some_and(|service| {
        service.namespace.as_deref() == Some(namespace) && service.name.as_deref() == Some(GATEWAY_SERVICE)
    })
}

/// Refuses a namespace in which Pintle is not. Where the host has no account, what is left is deleted.
async fn refuse_elsewhere(client: &Client, namespace: &str) -> Result<(), Problem> {
    let found = live::host_namespace(client).await;
    let found = found.map_err(|error| live::problem("ClusterRoleBinding pintle", &error))?;
    live::refuse_elsewhere(found.as_deref(), namespace)
}

/// Refuses to delete what Helm has installed: it would list a release that is gone.
async fn refuse_release(client: &Client, namespace: &str) -> Result<(), Problem> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let host = deployments.get_opt("pintle").await;
    let host = host.map_err(|error| live::problem("the Deployment of the host", &error))?;
    let is_of_helm = |host: &Deployment| {
        host.labels().get("app.kubernetes.io/managed-by").is_some_and(|manager| manager == "Helm")
    };
    let Some(host) = host.filter(is_of_helm) else { return Ok(()) };
    let release = host.annotations().get("meta.helm.sh/release-name").map_or("RELEASE", String::as_str);
    Err(Problem::new(format!("Helm has installed Pintle in namespace {namespace}")).hint(format!(
        "run: helm uninstall {release} --namespace {namespace}; \
         or delete only what needs the host, and leave the rest to Helm: add --keep-install"
    )))
}

/// Refuses what would wait for a host where none leads. It would be marked for deletion, which nobody can take back, and go with the next host.
async fn refuse_to_wait(client: &Client, namespace: &str, plan: &Plan) -> Result<(), Problem> {
    if status::leads(client, namespace).await? {
        return Ok(());
    }
    for target in plan.steps.iter().flatten().filter(|one| one.is("Reconciler") || one.is("Module")) {
        let found = get(client, target).await?;
        if found.is_some_and(|found| found.finalizers().iter().any(|name| name.starts_with("pintle.dev/"))) {
            return Err(Problem::new(format!(
                "{target} would wait for a host, and none leads in namespace {namespace}: nothing was deleted"
            ))
            .hint(format!(
                "start a host, and run this again: kubectl get deployment,pods,lease -n {namespace}; \
                 or see what --force does: pintle uninstall --help"
            )));
        }
    }
    Ok(())
}

/// Reads what there is to delete, with what of the installation is to go.
async fn look(
    client: &Client,
    namespace: &str,
    [host, gateway]: [Vec<Target>; 2],
    crds: bool,
) -> Result<Plan, Problem> {
    let mut services: Vec<APIService> = live::list(client).await?;
    services.retain(|service| leads_to_gateway(service, namespace));
    let views: Vec<View> = live::list(client).await?;
    let reconcilers: Vec<Reconciler> = live::list(client).await?;
    let modules: Vec<Module> = live::list(client).await?;
    let (host, gateway) = (existing(client, host).await?, existing(client, gateway).await?);
    let others = [Target::all(&services), gateway, Target::all(&reconcilers), Target::all(&modules), host];
    Ok(Plan::of(&views, others, crds))
}

/// Those of the objects that are there.
async fn existing(client: &Client, targets: Vec<Target>) -> Result<Vec<Target>, Problem> {
    let mut found = Vec::new();
    for target in targets {
        if get(client, &target).await?.is_some() {
            found.push(target);
        }
    }
    Ok(found)
}

/// What is deleted.
#[derive(Debug)]
struct Plan {
    /// The objects to delete. What one step deletes must be gone before the next one begins.
    steps: Vec<Vec<Target>>,
}

impl Plan {
    /// Decides what is deleted: APIServices, since no namespace can be deleted while one leads nowhere; Views, and the gateway, which nothing
    /// needs any more; Reconcilers, so that the host takes its finalizers off their roots; Modules; the host; what it ran with, in the
    /// opposite order of the installation; and the CRDs where that is wanted.
    fn of(views: &[View], others: [Vec<Target>; 5], crds: bool) -> Self {
        let [services, gateway, reconcilers, modules, host] = others;
        let (gateway, gateways) = program_first(gateway);
        let (host, rest) = program_first(host);
        let (definitions, rest): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|target| target.is("CustomResourceDefinition"));
        let mut steps =
            vec![services, Target::all(views), gateway, gateways, reconcilers, modules, host, rest];
        if crds {
            steps.push(definitions);
        }
        steps.retain(|step| !step.is_empty());
        Self { steps }
    }

    /// The plan for people. What was installed may be somebody else's to delete.
    fn text(&self, keep_install: bool) -> String {
        let mut text = String::from("These are deleted, in this order:\n");
        for target in self.steps.iter().flatten() {
            let all = if target.is("Namespace") { ", with everything in it" } else { "" };
            text.push_str(&format!("  {target}{all}\n"));
        }
        let keeps_crds = !self.steps.iter().flatten().any(|target| target.is("CustomResourceDefinition"));
        let more = if keep_install {
            INSTALL_STAYS
        } else if keeps_crds {
            CRDS_STAY
        } else {
            ""
        };
        text + STAYS + more
    }
}

/// The Deployment of what was installed, and everything else, in the opposite order of the installation.
fn program_first(installed: Vec<Target>) -> (Vec<Target>, Vec<Target>) {
    installed.into_iter().rev().partition(|target| target.is("Deployment"))
}

/// Carries out the steps one after the other, and waits for each: what a step deletes must be gone before the next one begins.
async fn carry_out(
    client: &Client,
    plan: &Plan,
    timeout: Duration,
    tell: &mut dyn FnMut(&str) -> Result<(), Problem>,
) -> Result<(), Problem> {
    for step in &plan.steps {
        for target in step {
            // A Deployment goes after its Pods, so that the host gives its Lease up while it still may.
            let is_program = target.is("Deployment");
            let params = if is_program { DeleteParams::foreground() } else { DeleteParams::background() };
            match of(client, target).delete(&target.name, &params).await {
                Ok(_) => tell(&format!("{target} deleted\n"))?,
                Err(error) if live::is(&error, 404) => {}
                Err(error) => return Err(live::problem(target, &error)),
            }
        }
        live::wait(timeout, HOST_RUNS, async || {
            for target in step {
                if let Some(left) = get(client, target).await? {
                    let mut why = format!("{target} is still there");
                    if !left.finalizers().is_empty() {
                        why.push_str(&format!(", for its finalizers {}", left.finalizers().join(", ")));
                    }
                    return Ok(Progress::Waiting(why));
                }
            }
            Ok(Progress::Done)
        })
        .await?;
    }
    Ok(())
}

fn of(client: &Client, target: &Target) -> Api<DynamicObject> {
    let resource = target.resource.api_resource();
    match &target.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// The object, unless it is gone.
async fn get(client: &Client, target: &Target) -> Result<Option<DynamicObject>, Problem> {
    of(client, target).get_opt(&target.name).await.map_err(|error| live::problem(target, &error))
}

#[cfg(test)]
mod tests;
