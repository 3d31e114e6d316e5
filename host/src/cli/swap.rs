//! The command `pintle swap`: it puts another module in force for a Reconciler or a View.

use std::time::Duration;

use clap::Args;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, Patch, PatchParams},
    core::Object,
};
use pintle_api::{ActiveRoots, Module, ModuleUser, Reconciler, ReconcilerStatus, View};
use pintle_core::{
    conditions::READY,
    reasons::{PROGRESSING, REGISTERED, ROOTS_READY},
};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use pintle_wit::{Condition, ConditionStatus, syntax};
use serde::Deserialize;
use serde_json::json;

use super::{
    completion,
    live::{self, FIELD_MANAGER, Progress},
    output,
    plan::Plan,
    problem::{CommandStatus, Problem},
};

/// Switch a Reconciler or View to another Module
///
/// The operator loads the new module while the old one keeps working. When the new module is ready, every custom resource is
/// reconciled with it. If the new module is refused, the old one stays.
///
/// For a View, written as view/NAME, the gateway does the same: the old module serves until the new one is ready. Clients that watch
/// the objects then list them anew.
///
/// Nothing is switched that somebody has changed meanwhile. With --dry-run, nothing is switched at all: the output and the exit code are those
/// of `pintle plan -o summary`.
///
/// With kubectl, `kubectl patch reconciler NAME --type=merge -p '{"spec":{"module":"MODULE"}}'` does the same, and
/// `kubectl get reconciler NAME -w` shows how far it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what would change
  pintle swap webserver webserver-0.2.0 --dry-run

  # Switch to a module
  pintle swap webserver webserver-0.2.0

  # Wait until every custom resource is reconciled with it;
  # exit with 1 if it is refused, or if some fail now that
  # did not before
  pintle swap webserver webserver-0.2.0 --wait

  # Switch back
  pintle swap webserver webserver-0.1.0

  # Switch a View, and wait until it is served with it
  pintle swap view/llamas farm-0.2.0 --wait")]
pub(super) struct Swap {
    /// Name of the Reconciler, or view/ and the name of the View
    #[arg(value_name = "RECONCILER|view/VIEW", value_parser = user, add = completion::reconcilers_and_views())]
    what: ModuleUser,

    /// Name of the Module
    #[arg(add = completion::modules())]
    module: String,

    /// Wait until every custom resource is reconciled with the module. A View is waited for until the gateway serves it with the module
    #[arg(long)]
    wait: bool,

    /// Only show what would change
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,

    /// How long to wait without any progress before giving up
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = live::duration)]
    timeout: Duration,

    #[command(flatten)]
    connect: Connect,
}

/// How long roots that began to fail with the swap may take to recover: what fails once, for instance because somebody else wrote at the
/// same time, is tried again within seconds.
const SETTLE: Duration = Duration::from_secs(10);

/// A Reconciler by its name alone, or a View as `view/NAME`.
fn user(text: &str) -> Result<ModuleUser, String> {
    match ModuleUser::from(text) {
        ModuleUser::View(name) if syntax::is_subdomain(&name) => Ok(ModuleUser::View(name)),
        ModuleUser::Reconciler(name) if !name.contains('/') => Ok(ModuleUser::Reconciler(name)),
        _ => Err("write the name of a Reconciler, or of a View as view/NAME".to_owned()),
    }
}

/// A Reconciler or a View. The status of a View has what that of a Reconciler has, but for roots.
type Swapped = Object<Wanted, ReconcilerStatus>;

#[derive(Clone, Debug, Deserialize)]
struct Wanted {
    module: String,
}

/// The name of the module in force.
fn in_force(status: &ReconcilerStatus) -> Option<&str> {
    status.active.as_ref().map(|active| active.module.as_str())
}

/// How far the roots have got with the module in force, and how many there are.
fn roots(status: &ReconcilerStatus) -> (ActiveRoots, u32) {
    let active = status.active.as_ref().and_then(|active| active.roots);
    (active.unwrap_or_default(), status.roots.unwrap_or_default().total)
}

/// What a swap did to the roots of a Reconciler, in words, and whether all that were well before still are.
fn outcome_of_roots(before: &ReconcilerStatus, now: &ReconcilerStatus) -> (String, bool) {
    let (active, total) = roots(now);
    // Where nothing was in force before, no root was well because of it.
    let is_first = before.active.is_none();
    let regressions = if is_first { active.failing } else { active.newly_failing };
    let mut text = format!(
        "{total} {} reconciled: {} changed, {} unchanged; {} failing",
        if total == 1 { "root" } else { "roots" },
        active.changed,
        total.saturating_sub(active.changed),
        active.failing
    );
    if active.failing > 0 && !is_first {
        text.push_str(&match regressions {
            0 => " (as before)".to_owned(),
            all if all == active.failing => " (not before)".to_owned(),
            some => format!(" ({some} of them not before)"),
        });
    }
    let why = now.conditions.iter().find(|condition| condition.r#type == ROOTS_READY);
    if let Some(why) = why.filter(|_| active.failing > 0) {
        text.push_str(&format!("\n  {}", why.message));
    }
    (text, regressions == 0)
}

/// What is served of a View, in words, and whether everybody who got at its objects before still does.
fn outcome_of_view(before: &ReconcilerStatus, now: &ReconcilerStatus) -> (String, bool) {
    let is_true = |one: &&Condition| one.r#type == READY && one.status == ConditionStatus::True;
    let ready = now.conditions.iter().find(is_true);
    let mut text = ready.map_or_else(|| "it is not served".to_owned(), |ready| ready.message.clone());
    for Condition { r#type, status, reason, message, .. } in failing(&now.conditions) {
        text.push_str(&format!("\n  {} is {}: {reason}: {message}", r#type, status.as_str()));
    }
    let was = |one: &Condition| failing(&before.conditions).any(|known| known.r#type == one.r#type);
    (text, failing(&now.conditions).all(was))
}

/// What says that people do not get at the objects of a View: Ready and Registered, where they are not True.
fn failing(conditions: &[Condition]) -> impl Iterator<Item = &Condition> {
    let about = |one: &&Condition| [READY, REGISTERED].contains(&one.r#type.as_str());
    conditions.iter().filter(about).filter(|one| one.status != ConditionStatus::True)
}

/// What is still to be listed of what the module works on.
fn starting(conditions: &[Condition]) -> Option<&str> {
    let ready = conditions.iter().find(|one| one.r#type == READY && one.reason == PROGRESSING)?;
    Some(&ready.message)
}

impl Swap {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        if !self.dry_run {
            return live::block_on(self.start());
        }
        match self.what {
            ModuleUser::Reconciler(name) => Plan::summary(name, self.module, self.connect).run(),
            ModuleUser::View(_) => Err(Problem::new("a View has no roots that a module could change")
                .hint("see what a view shows of objects with: pintle render")),
        }
    }

    async fn start(&self) -> Result<CommandStatus, Problem> {
        self.swap(&live::client(&self.connect).await?).await
    }

    async fn swap(&self, client: &Client) -> Result<CommandStatus, Problem> {
        let modules: Api<Module> = Api::all(client.clone());
        let found =
            modules.get_opt(&self.module).await.map_err(|error| live::problem("the Module", &error))?;
        if found.is_none() {
            return Err(Problem::new(format!("there is no Module {}", self.module))
                .hint(format!("upload it with: pintle push {} FILE", self.module)));
        }
        let objects = self.objects(client);
        let found = self.read(&objects).await?;
        let before = found.status.clone().unwrap_or_default();
        let module_before = found.spec.module.clone();
        let generation = self.want(&objects, found).await?;
        self.say(&format!("module {} is wanted", self.module))?;
        if let ModuleUser::Reconciler(_) = self.what {
            self.hint_views(client, &module_before).await;
        }
        if !self.wait {
            return Ok(CommandStatus::Fine);
        }
        live::wait(self.timeout, live::PODS, || self.look(&objects, generation)).await?;
        self.say(&format!("module {} is in force", self.module))?;
        if in_force(&before) == Some(self.module.as_str()) {
            // The counts are still those of the swap that put it in force.
            self.say("it was in force already; nothing changes for this")?;
            return Ok(CommandStatus::Fine);
        }
        let (said, is_well) = self.follow(&objects, &before).await?;
        self.say(&said)?;
        if is_well {
            return Ok(CommandStatus::Fine);
        }
        if let Some(module) = in_force(&before) {
            eprintln!("hint: to go back: pintle swap {} {module} --wait", self.what);
        }
        Ok(CommandStatus::Failed)
    }

    fn objects(&self, client: &Client) -> Api<Swapped> {
        let resource = match self.what {
            ModuleUser::Reconciler(_) => ApiResource::erase::<Reconciler>(&()),
            ModuleUser::View(_) => ApiResource::erase::<View>(&()),
        };
        Api::all_with(client.clone(), &resource)
    }

    /// Says which module is wanted, unless somebody has changed the object since it was read. The generation of the object from then on.
    async fn want(&self, objects: &Api<Swapped>, mut found: Swapped) -> Result<Option<i64>, Problem> {
        let generation = found.metadata.generation;
        while found.metadata.generation == generation {
            let version = found.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"module": self.module}});
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            match objects.patch(self.what.name(), &params, &Patch::Merge(patch)).await {
                Ok(patched) => return Ok(patched.metadata.generation),
                // Its status has changed, or more than that.
                Err(error) if live::is(&error, 409) => found = self.read(objects).await?,
                Err(error) => return Err(self.problem(&error)),
            }
        }
        Err(Problem::failed(format!(
            "somebody has changed {} {} meanwhile",
            self.what.kind(),
            self.what.name()
        )))
    }

    /// The Views stay as they are that show with the module before: who writes what roots mean, and who shows it, are swapped one at a time.
    async fn hint_views(&self, client: &Client, before: &str) {
        // Who may not read Views has none to swap.
        let views = live::list::<View>(client).await.unwrap_or_default();
        let is_left = |view: &&View| view.spec.module == before && before != self.module;
        for name in views.iter().filter(is_left).map(ResourceExt::name_any) {
            let module = &self.module;
            eprintln!(
                "hint: View {name} stays on {before}; to swap it too: pintle swap view/{name} {module}"
            );
        }
    }

    async fn read(&self, objects: &Api<Swapped>) -> Result<Swapped, Problem> {
        let (kind, name) = (self.what.kind(), self.what.name());
        let found = objects.get_opt(name).await.map_err(|error| self.problem(&error))?;
        found.ok_or_else(|| {
            let hint = format!("see which there are with: kubectl get {}s", kind.to_lowercase());
            Problem::new(format!("there is no {kind} {name}")).hint(hint)
        })
    }

    fn problem(&self, error: &kube::Error) -> Problem {
        live::problem(format!("{} {}", self.what.kind(), self.what.name()), error)
    }

    /// Prints something about the object.
    fn say(&self, text: &str) -> Result<(), Problem> {
        let kind = self.what.kind().to_lowercase();
        output::print(&format!("{kind}.pintle.dev/{}: {text}\n", self.what.name()))
    }

    /// Whether the module is in force.
    async fn look(&self, objects: &Api<Swapped>, generation: Option<i64>) -> Result<Progress, Problem> {
        let found = self.read(objects).await?;
        if found.spec.module != self.module {
            return Ok(Progress::Failed(format!("somebody has set module {} meanwhile", found.spec.module)));
        }
        let status = found.status.unwrap_or_default();
        let (observed, is_in_force) =
            (status.observed_generation, in_force(&status) == Some(self.module.as_str()));
        if observed >= generation && is_in_force && status.candidate.is_none() {
            // Whether the roots are well is another question.
            return Ok(Progress::Done);
        }
        Ok(match live::progress(&status.conditions, observed, generation) {
            // It may be ready with the module before.
            Progress::Done => Progress::Waiting("the module is being loaded".into()),
            other => other,
        })
    }

    /// Waits until every root was reconciled with the module, and what fails has had time to recover.
    async fn follow(
        &self,
        objects: &Api<Swapped>,
        before: &ReconcilerStatus,
    ) -> Result<(String, bool), Problem> {
        let (mut last, mut moved_at) = (None, clock::monotonic());
        let bar = output::roots_bar();
        loop {
            let status = self.read(objects).await?.status.unwrap_or_default();
            if in_force(&status) != Some(self.module.as_str()) {
                return Err(Problem::failed(format!("module {} is not in force any more", self.module)));
            }
            let (now, (active, total)) = (clock::monotonic(), roots(&status));
            if last.replace((active, total)) != Some((active, total)) {
                moved_at = now;
            }
            let (said, is_well) = match self.what {
                ModuleUser::Reconciler(_) => {
                    bar.set_length(total.into());
                    bar.set_position(active.reconciled.into());
                    outcome_of_roots(before, &status)
                }
                ModuleUser::View(_) => outcome_of_view(before, &status),
            };
            // Before the roots are listed for the first time, there seem to be none.
            let starting = starting(&status.conditions);
            let is_moving = status.is_moving() || starting.is_some();
            if !is_moving && (is_well || now >= moved_at + SETTLE) {
                return Ok((said, is_well));
            }
            if is_moving && now >= moved_at + self.timeout {
                let so_far = || {
                    format!(
                        "{} of {total} roots are reconciled with module {}",
                        active.reconciled, self.module
                    )
                };
                let so_far = starting.map_or_else(so_far, Into::into);
                let message = format!("no progress for {} s: {so_far}", self.timeout.as_secs());
                return Err(Problem::failed(message).hint(live::PODS));
            }
            tokio::time::sleep(live::POLL).await;
        }
    }
}

#[cfg(test)]
mod tests;
