//! The command `pintle swap`: it puts another module in force for a Reconciler or a View.

mod view;

use std::{fmt::Debug, time::Duration};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use pintle_api::{Module, Reconciler, ReconcilerStatus, View};
use pintle_core::reasons;
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use pintle_wit::Kind;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    completion,
    live::{self, FIELD_MANAGER, Progress},
    missing::missing_in,
    named::Named,
    output,
    problem::{CommandStatus, Problem},
};

/// Switch a Reconciler or a View to another Module
///
/// The operator loads the new module while the old one keeps working. When the new module is ready, every custom resource is
/// reconciled with it. If the new module is refused, the old one stays.
///
/// For a View, written as view/NAME, the gateway does the same: the old module serves until the new one is ready. Clients that watch
/// the objects then list them anew.
///
/// With kubectl, `kubectl patch reconciler NAME --type=merge -p '{"spec":{"module":"MODULE"}}'` does the same, and
/// `kubectl get reconciler NAME -w` shows how far it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Switch to a module
  pintle swap webserver webserver-0.2.0

  # Wait until every custom resource is reconciled with it;
  # exit with 1 if it is refused, or if some fail now that
  # did not before
  pintle swap webserver webserver-0.2.0 --wait

  # Wait only until the module is in force
  pintle swap webserver webserver-0.2.0 --wait=module

  # Switch back
  pintle swap webserver webserver-0.1.0

  # Switch a View, and wait until it is served with it
  pintle swap view/llamas farm-0.2.0 --wait")]
pub(super) struct Swap {
    /// Name of the Reconciler, or view/ and the name of the View
    #[arg(value_name = "RECONCILER|view/VIEW", value_parser = Named::parse, add = completion::named())]
    what: Named,

    /// Name of the Module
    #[arg(add = completion::modules())]
    module: String,

    /// Wait until every custom resource is reconciled with the module (roots), or only until the operator works with it (module). A View is waited for until the gateway serves it with the module
    #[arg(
        long, value_name = "roots|module", num_args = 0..=1, require_equals = true, default_missing_value = "roots",
        hide_possible_values = true
    )]
    wait: Option<Until>,

    /// How long to wait without any progress before giving up
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = live::duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: Connect,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Until {
    /// Every root was reconciled with the module.
    Roots,
    /// The module is in force.
    Module,
}

/// How long roots that began to fail with the swap may take to recover: what fails once, for instance because somebody else wrote at the
/// same time, is tried again within seconds.
const SETTLE: Duration = Duration::from_secs(10);

impl Swap {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(self.swap())
    }

    async fn swap(&self) -> Result<CommandStatus, Problem> {
        let client = live::client(&self.connect).await?;
        let module = self.found_module(&client).await?;
        match self.what {
            Named::Reconciler(_) => self.of_reconciler(&client, &module).await,
            Named::View(_) => self.of_view(Api::all(client), &module).await,
        }
    }

    async fn found_module(&self, client: &Client) -> Result<Module, Problem> {
        let modules: Api<Module> = Api::all(client.clone());
        let found =
            modules.get_opt(&self.module).await.map_err(|error| live::problem("the Module", &error))?;
        let Some(found) = found else {
            return Err(Problem::new(format!("there is no Module {}", self.module))
                .hint(format!("upload it with: pintle push {} FILE", self.module)));
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Err(Problem::new(format!("Module {} is being deleted", self.module))
                .hint("push its bytes under another name, and swap to that"));
        }
        Ok(found)
    }

    async fn of_reconciler(&self, client: &Client, module: &Module) -> Result<CommandStatus, Problem> {
        let reconcilers = Api::all(client.clone());
        let before: Reconciler = self.read(&reconcilers).await?;
        fits(module, &before)?;
        let generation = self.want(&reconcilers).await?;
        // Who may not read Views has none to swap.
        let views = live::list::<View>(client, "Views").await.unwrap_or_default();
        for view in view::left_behind(&views, &before.spec.module, module) {
            let (name, before) = (view.name_any(), &before.spec.module);
            eprintln!(
                "hint: View {name} stays on {before}; to swap it too: pintle swap view/{name} {}",
                self.module
            );
        }
        let Some(until) = self.wait else { return Ok(CommandStatus::Fine) };
        live::wait(self.timeout, || self.look(&reconcilers, generation)).await?;
        self.say::<Reconciler>(&format!("module {} is in force", self.module))?;
        if until == Until::Module {
            return Ok(CommandStatus::Fine);
        }
        let before = before.status.and_then(|status| status.active).map(|active| active.module);
        if before.as_ref() == Some(&self.module) {
            // The counts are still those of the swap that put it in force.
            self.say::<Reconciler>("it was in force already; no root is reconciled for this")?;
            return Ok(CommandStatus::Fine);
        }
        // Where nothing was in force before, no root was well because of it.
        let all_count = before.is_none();
        let ended = self.follow(&reconcilers, all_count).await?;
        self.say::<Reconciler>(&summary(&ended, all_count))?;
        if regressions(&ended, all_count) == 0 {
            return Ok(CommandStatus::Fine);
        }
        self.hint_back(before.as_deref());
        Ok(CommandStatus::Failed)
    }

    /// Says which module is wanted. The generation of the object from then on.
    async fn want<K>(&self, objects: &Api<K>) -> Result<Option<i64>, Problem>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let patch = Patch::Merge(json!({"spec": {"module": self.module}}));
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let patched = objects.patch(self.what.name(), &params, &patch).await;
        let patched = patched.map_err(|error| self.problem::<K>(&error))?;
        self.say::<K>(&format!("module {} is wanted", self.module))?;
        Ok(patched.meta().generation)
    }

    async fn read<K>(&self, objects: &Api<K>) -> Result<K, Problem>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        match objects.get(self.what.name()).await {
            Ok(found) => Ok(found),
            Err(error) if live::is(&error, 404) => Err(missing_in(objects, self.what.name()).await),
            Err(error) => Err(self.problem::<K>(&error)),
        }
    }

    fn problem<K: Resource<DynamicType = ()>>(&self, error: &kube::Error) -> Problem {
        live::problem(format!("{} {}", K::kind(&()), self.what.name()), error)
    }

    /// Prints something about the object.
    fn say<K: Resource<DynamicType = ()>>(&self, text: &str) -> Result<(), Problem> {
        let kind = Kind::new(K::api_version(&()), K::kind(&()));
        output::print(&format!("{}: {text}\n", live::resource_name(&kind, self.what.name())))
    }

    /// Says how to go back to the module that was in force, if there was one.
    fn hint_back(&self, before: Option<&str>) {
        if let Some(before) = before {
            eprintln!("hint: to go back: pintle swap {} {before} --wait", self.what);
        }
    }

    /// Waits until every root was reconciled with the module, and shows how far they are.
    async fn follow(
        &self,
        reconcilers: &Api<Reconciler>,
        all_count: bool,
    ) -> Result<ReconcilerStatus, Problem> {
        let bar = ProgressBar::new(0).with_style(style());
        let (mut last, mut moved_at) = (None, clock::monotonic());
        loop {
            let status = self.read(reconcilers).await?.status.unwrap_or_default();
            if status.active.as_ref().is_none_or(|active| active.module != self.module) {
                return Err(Problem::failed(format!("module {} is not in force any more", self.module)));
            }
            let (active, roots) = (status.active_roots(), status.roots.unwrap_or_default());
            bar.set_length(roots.total.into());
            bar.set_position(active.reconciled.into());
            bar.set_message(failing_now(&status));
            let now = clock::monotonic();
            if last.replace(active) != Some(active) {
                moved_at = now;
            }
            let settles = regressions(&status, all_count) > 0 && now < moved_at + SETTLE;
            if !status.is_moving() && !settles {
                bar.finish_and_clear();
                return Ok(status);
            }
            if status.is_moving() && now >= moved_at + self.timeout {
                bar.abandon();
                let message = format!(
                    "no progress for {} s: {} of {} roots are reconciled with module {}",
                    self.timeout.as_secs(),
                    active.reconciled,
                    roots.total,
                    self.module
                );
                return Err(Problem::failed(message).hint(live::OPERATOR_RUNS));
            }
            tokio::time::sleep(live::POLL).await;
        }
    }

    async fn look(
        &self,
        reconcilers: &Api<Reconciler>,
        generation: Option<i64>,
    ) -> Result<Progress, Problem> {
        let found = self.read(reconcilers).await?;
        if found.spec.module != self.module {
            return Ok(Progress::Failed(set_meanwhile(&found.spec.module)));
        }
        let status = found.status.unwrap_or_default();
        let is_active = status.active.as_ref().is_some_and(|active| active.module == self.module);
        if status.observed_generation >= generation && is_active && status.candidate.is_none() {
            // Whether the roots are well is another question.
            return Ok(Progress::Done);
        }
        Ok(match live::progress(&status.conditions, status.observed_generation, generation) {
            // It may be ready with the module before.
            Progress::Done => Progress::Waiting("the module is being loaded".into()),
            other => other,
        })
    }
}

fn set_meanwhile(module: &str) -> String {
    format!("somebody has set module {module} meanwhile")
}

/// Whether a Module is for the roots of a Reconciler, as far as that is known: a Module that no host has looked at says nothing.
fn fits(module: &Module, reconciler: &Reconciler) -> Result<(), Problem> {
    let manifest = module.status.as_ref().and_then(|status| status.manifest.as_ref());
    let reconciles = manifest.and_then(|manifest| manifest.get("reconciles")).cloned();
    let reconciles: Option<Kind> = reconciles.and_then(|kind| serde_json::from_value(kind).ok());
    match reconciles {
        Some(kind) if kind != reconciler.spec.r#for => Err(Problem::new(format!(
            "Module {} reconciles {kind}, and Reconciler {} is for {}",
            module.name_any(),
            reconciler.name_any(),
            reconciler.spec.r#for
        ))
        .hint("see which Modules there are with: kubectl get modules")),
        _ => Ok(()),
    }
}

/// The progress bar. It is drawn to the standard error, where that is a terminal.
fn style() -> ProgressStyle {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} roots reconciled{msg}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn failing_now(status: &ReconcilerStatus) -> String {
    match status.active_roots().failing {
        0 => String::new(),
        failing => format!(", {failing} failing"),
    }
}

/// How many roots fail because of the swap: those that did not fail before, or all of them if there was no module before.
fn regressions(status: &ReconcilerStatus, all_count: bool) -> u32 {
    let active = status.active_roots();
    if all_count { active.failing } else { active.newly_failing }
}

/// What the swap did to the roots, for people.
fn summary(status: &ReconcilerStatus, all_count: bool) -> String {
    let (active, total) = (status.active_roots(), status.roots.unwrap_or_default().total);
    let regressions = regressions(status, all_count);
    let mut text = format!(
        "{total} {} reconciled: {} changed, {} unchanged; {} failing",
        if total == 1 { "root" } else { "roots" },
        active.changed,
        total.saturating_sub(active.changed),
        active.failing
    );
    if active.failing > 0 && !all_count {
        text.push_str(&match regressions {
            0 => " (as before)".to_owned(),
            all if all == active.failing => " (not before)".to_owned(),
            some => format!(" ({some} of them not before)"),
        });
    }
    let why = status.conditions.iter().find(|condition| condition.r#type == reasons::ROOTS_READY);
    if let Some(why) = why.filter(|_| active.failing > 0) {
        text.push_str(&format!("\n  {}", why.message));
    }
    text
}

#[cfg(test)]
mod tests {
    use pintle_wit::{Condition, ConditionStatus};

    use super::*;

    fn status(total: u32, active: serde_json::Value) -> ReconcilerStatus {
        let active = json!({"module": "m", "digest": "", "since": "", "roots": active});
        let failing = Condition {
            r#type: reasons::ROOTS_READY.into(),
            status: ConditionStatus::False,
            observed_generation: None,
            last_transition_time: String::new(),
            reason: "Broken".into(),
            message: "2 of 9 roots fail (2 Broken): n/a: Broken: it is broken".into(),
        };
        let roots = json!({"total": total, "ready": 0, "failing": 0});
        serde_json::from_value(json!({"active": active, "roots": roots, "conditions": [failing]})).unwrap()
    }

    #[test]
    fn the_summary_says_what_the_swap_did_and_why_roots_fail() {
        let well = status(9, json!({"reconciled": 9, "changed": 4, "failing": 0, "newlyFailing": 0}));
        assert_eq!(summary(&well, false), "9 roots reconciled: 4 changed, 5 unchanged; 0 failing");
        let worse = status(9, json!({"reconciled": 9, "changed": 4, "failing": 2, "newlyFailing": 1}));
        assert_eq!(
            summary(&worse, false),
            "9 roots reconciled: 4 changed, 5 unchanged; 2 failing (1 of them not before)\n  \
             2 of 9 roots fail (2 Broken): n/a: Broken: it is broken"
        );
    }

    #[test]
    fn a_module_of_another_kind_is_refused_before_anything_is_written() {
        let module = |status: serde_json::Value| -> Module {
            let spec = json!({"digest": "", "source": {}});
            serde_json::from_value(json!({"metadata": {"name": "m"}, "spec": spec, "status": status}))
                .unwrap()
        };
        let of_kind =
            |kind: &str| module(json!({"manifest": {"reconciles": {"apiVersion": "a/v1", "kind": kind}}}));
        let spec = json!({"for": {"apiVersion": "a/v1", "kind": "A"}, "module": "old"});
        let reconciler: Reconciler =
            serde_json::from_value(json!({"metadata": {"name": "r"}, "spec": spec})).unwrap();
        assert!(fits(&of_kind("A"), &reconciler).is_ok());
        assert!(fits(&module(json!({})), &reconciler).is_ok(), "no host has looked at it");
        let refused = fits(&of_kind("B"), &reconciler).unwrap_err().to_string();
        assert!(refused.contains("Module m reconciles a/v1 B, and Reconciler r is for a/v1 A"), "{refused}");
    }

    #[test]
    fn a_swap_fails_when_roots_fail_that_did_not_before() {
        let as_before = status(3, json!({"reconciled": 3, "changed": 0, "failing": 2, "newlyFailing": 0}));
        assert_eq!(regressions(&as_before, false), 0);
        assert!(summary(&as_before, false).contains("; 2 failing (as before)"));
        assert_eq!(regressions(&as_before, true), 2, "there was no module before");
    }
}
