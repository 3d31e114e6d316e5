//! The command `pintle uninstall`: it removes Pintle from a cluster, in the order in which nothing is left that nobody can delete.

mod plan;

use std::{
    io::{self, BufRead, IsTerminal, Write},
    time::Duration,
};

use clap::Args;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject},
};
use pintle_api::{self as api, Module, Reconciler};
use pintle_core::{
    object,
    view::{Backing, Collected},
};
use pintle_kubernetes::{Cluster, Resource, connect::Connect};
use pintle_runtime::clock;
use pintle_wit::{Kind, names::FINALIZER_VIEW};
use serde_json::Value;

use super::{
    host::Host,
    live::{self, Progress},
    output,
    problem::{CommandStatus, Problem},
    readiness::{self, Readiness},
    roots::{self, Root},
};
use plan::{Found, Plan, Target};

/// Remove Pintle from a cluster
///
/// The command deletes the APIServices that lead to the gateway, Views, and the gateway; then Reconcilers, Modules, and the objects of
/// deploy/install.yaml with the namespace of the host. It waits after each step: no namespace can be deleted while an APIService leads
/// nowhere, and the host must take its finalizers off the roots before it goes. Roots, their children and their CRDs stay, and so do the
/// objects that Views show, without the finalizers that the garbage collector has through Views: the command takes those off itself.
///
/// The CRDs of Module, Reconciler and View stay too, unless --crds is set. The command shows what it deletes and asks before it begins.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what would be deleted
  pintle uninstall --dry-run

  # Delete the CRDs of Pintle too, and do not ask
  pintle uninstall --crds --yes")]
pub(super) struct Uninstall {
    /// Delete the CRDs of Module, Reconciler and View too
    #[arg(long)]
    crds: bool,

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

impl Uninstall {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        if !self.yes && !self.dry_run && !io::stdin().is_terminal() {
            return Err(Problem::new(
                "uninstall asks before it deletes, and the standard input is no terminal",
            )
            .hint("see what it deletes with: pintle uninstall --dry-run; then add --yes"));
        }
        live::block_on(async {
            let client = self.connect.client().await?;
            let found = look(&client).await?;
            let plan = plan::of(&found, self.crds);
            if plan.steps.is_empty() {
                output::print("Pintle is not installed in this cluster: there is nothing to delete\n")?;
                return Ok(CommandStatus::Fine);
            }
            if self.dry_run {
                output::print(&plan.text())?;
                return Ok(CommandStatus::Fine);
            }
            plan.check()?;
            output::print(&plan.text())?;
            if !self.yes && !ask()? {
                return Err(Problem::failed("nothing was deleted"));
            }
            carry_out(&client, &plan, self.timeout, &mut |line| output::print(line)).await?;
            Ok(CommandStatus::Fine)
        })
    }
}

/// Reads what there is to delete.
async fn look(client: &Client) -> Result<Found, Problem> {
    let (mut reconcilers, mut views, mut modules) = (Vec::new(), Vec::new(), Vec::new());
    if serves_pintle(client).await? {
        views = live::views(client).await?;
        reconcilers = live::list::<Reconciler>(client, "Reconcilers").await?;
        modules = live::list::<Module>(client, "Modules").await?;
    }
    let services: Vec<APIService> = live::list(client, "APIServices").await?;
    let services = services.into_iter().filter(plan::leads_to_gateway).collect();
    let gateway = existing(client, plan::gateway()?).await?;
    let installed = existing(client, plan::manifest()?).await?;
    let kinds = roots::kinds(&reconcilers);
    let roots = roots::read(client, &kinds, |value, resource| Root::of(&value, resource)).await;
    let host_works = Host::read(client, api::NAMESPACE).await.works(clock::now());
    Ok(Found { services, views, gateway, reconcilers, modules, installed, roots, host_works })
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

/// Whether the CRDs are there.
async fn serves_pintle(client: &Client) -> Result<bool, Problem> {
    match client.list_api_group_resources("pintle.dev/v1alpha1").await {
        Ok(_) => Ok(true),
        Err(error) if live::is(&error, 404) => Ok(false),
        Err(error) => Err(live::problem("the API server", &error)),
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
            let params = match target.is("Deployment") {
                true => DeleteParams::foreground(),
                false => DeleteParams::background(),
            };
            match of(client, target).delete(&target.name, &params).await {
                Ok(_) => tell(&format!("{target} deleted\n"))?,
                Err(error) if live::is(&error, 404) => {}
                Err(error) => return Err(live::problem(target, &error)),
            }
        }
        release(client, plan, step, tell).await?;
        live::wait(timeout, async || {
            for target in step {
                if let Some(left) = get(client, target).await? {
                    return Ok(Progress::Waiting(still_there(target, &left)));
                }
            }
            Ok(Progress::Done)
        })
        .await?;
    }
    Ok(())
}

/// Does what the gateway does when Views go, which it cannot if it does not run: takes the garbage collector's finalizers of the views off
/// the objects that they show, and then the finalizer that holds the Views. Where the gateway was faster, nothing is left to do.
async fn release(
    client: &Client,
    plan: &Plan,
    step: &[Target],
    tell: &mut dyn FnMut(&str) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let views: Vec<&Target> = step.iter().filter(|target| target.is("View")).collect();
    if views.is_empty() {
        return Ok(());
    }
    let cluster = Cluster::new(client.clone());
    for Collected { backing: Backing { api_version, kind, plural, namespaced }, finalizers } in
        &plan.collected
    {
        let kind = Kind::new(api_version, kind);
        let resource = Resource { kind: kind.clone(), plural: plural.clone(), namespaced: *namespaced };
        let count = cluster.take_off(&resource, finalizers).await.map_err(|error| {
            let names = finalizers.join(" and ");
            Problem::failed(format!("{names} cannot be taken off the objects of {kind}: {error}")).hint(
                "Views wait for that; run this again as somebody who may get, list and patch those objects",
            )
        })?;
        if count > 0 {
            tell(&format!("finalizers of Views taken off objects of {kind}: {count}\n"))?;
        }
    }
    for target in views {
        free(client, &cluster, target).await?;
    }
    Ok(())
}

/// Takes the finalizer of the gateway off a View.
async fn free(client: &Client, cluster: &Cluster, target: &Target) -> Result<(), Problem> {
    while let Some(view) = get(client, target).await? {
        let finalizers = object::finalizers(&view);
        let left: Vec<String> = finalizers.filter(|name| *name != FINALIZER_VIEW).map(Into::into).collect();
        if left.len() == object::finalizers(&view).count() {
            break;
        }
        let version = view["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        match cluster.set_finalizers(&target.resource, &target.name, version, &left).await {
            Ok(_) => break,
            // The gateway was faster, or the View has changed since it was read.
            Err(error) if [404, 409, 422].contains(&error.code) => {}
            Err(error) => return Err(Problem::failed(format!("{target}: {error}"))),
        }
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
async fn get(client: &Client, target: &Target) -> Result<Option<Value>, Problem> {
    let found = of(client, target).get_opt(&target.name).await;
    let found = found.map_err(|error| live::problem(target, &error))?;
    Ok(found.map(serde_json::to_value).transpose()?)
}

/// Why an object that was deleted is still there.
fn still_there(target: &Target, left: &Value) -> String {
    let finalizers: Vec<&str> = object::finalizers(left).collect();
    let why = match Readiness::of(&readiness::conditions(left), None) {
        readiness if readiness.told && !readiness.is_ready() => format!("; {}", readiness.why()),
        _ => String::new(),
    };
    match finalizers.as_slice() {
        [] => format!("{target} is still there{why}"),
        names => format!("{target} is still there, for its finalizers {}{why}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests;
