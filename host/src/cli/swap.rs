//! The command `pintle swap`: it puts another module in force for a Reconciler or a View.

use std::{fmt::Debug, time::Duration};

use clap::{Args, ValueEnum};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use pintle_api::{ActiveRoots, Module, ModuleUser, Reconciler, View};
use pintle_core::{
    conditions::READY,
    reasons::{REGISTERED, ROOTS_READY},
};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use pintle_wit::{Condition, ConditionStatus, Kind, syntax};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{
    completion,
    live::{self, FIELD_MANAGER, Progress},
    missing::missing_in,
    output,
    plan::Plan,
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

  # Wait only until the module is in force
  pintle swap webserver webserver-0.2.0 --wait=module

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

    /// Wait until every custom resource is reconciled with the module (roots), or only until the operator works with it (module). A View is waited for until the gateway serves it with the module
    #[arg(
        long, value_name = "roots|module", num_args = 0..=1, require_equals = true, default_missing_value = "roots",
        hide_possible_values = true
    )]
    wait: Option<Until>,

    /// Only show what would change
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,

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

/// What may stand before the name of a View: what kubectl takes, and what it prints.
const OF_VIEWS: [&str; 5] = ["view", "views", "pview", "view.pintle.dev", "views.pintle.dev"];

/// A Reconciler by its name alone, or a View as `view/NAME`.
fn user(text: &str) -> Result<ModuleUser, String> {
    match text.split_once('/') {
        None => Ok(ModuleUser::Reconciler(text.to_owned())),
        Some((kind, name)) if OF_VIEWS.contains(&kind) && syntax::is_subdomain(name) => {
            Ok(ModuleUser::View(name.to_owned()))
        }
        Some(_) => Err("write the name of a Reconciler, or of a View as view/NAME".to_owned()),
    }
}

/// What is swapped: a Reconciler or a View.
trait Swapped: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned {
    /// The module in its spec.
    fn wanted(&self) -> &str;

    /// What was made of it.
    fn state(&self) -> State<'_>;

    /// What the swap did, in words, and whether all that was well before still is.
    fn outcome(&self, before: &Self) -> (String, bool);
}

/// What was made of an object.
#[derive(Default)]
struct State<'a> {
    observed_generation: Option<i64>,
    /// The module in force.
    active: Option<&'a str>,
    has_candidate: bool,
    conditions: &'a [Condition],
    /// How far the roots of a Reconciler have got, and how many there are.
    roots: Option<(ActiveRoots, u32)>,
}

impl Swapped for Reconciler {
    fn wanted(&self) -> &str {
        &self.spec.module
    }

    fn state(&self) -> State<'_> {
        let Some(status) = &self.status else { return State::default() };
        let active = status.active.as_ref();
        State {
            observed_generation: status.observed_generation,
            active: active.map(|active| active.module.as_str()),
            has_candidate: status.candidate.is_some(),
            conditions: &status.conditions,
            roots: active.and_then(|active| active.roots).zip(status.roots.map(|roots| roots.total)),
        }
    }

    fn outcome(&self, before: &Self) -> (String, bool) {
        let State { roots, conditions, .. } = self.state();
        let (active, total) = roots.unwrap_or_default();
        // Where nothing was in force before, no root was well because of it.
        let is_first = before.state().active.is_none();
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
        let why = conditions.iter().find(|condition| condition.r#type == ROOTS_READY);
        if let Some(why) = why.filter(|_| active.failing > 0) {
            text.push_str(&format!("\n  {}", why.message));
        }
        (text, regressions == 0)
    }
}

impl Swapped for View {
    fn wanted(&self) -> &str {
        &self.spec.module
    }

    fn state(&self) -> State<'_> {
        let Some(status) = &self.status else { return State::default() };
        State {
            observed_generation: status.observed_generation,
            active: status.active.as_ref().map(|active| active.module.as_str()),
            has_candidate: status.candidate.is_some(),
            conditions: &status.conditions,
            roots: None,
        }
    }

    fn outcome(&self, before: &Self) -> (String, bool) {
        let (State { conditions, .. }, before) = (self.state(), before.state());
        let is_true = |one: &&Condition| one.r#type == READY && one.status == ConditionStatus::True;
        let ready = conditions.iter().find(is_true);
        let mut text = ready.map_or_else(|| "it is not served".to_owned(), |ready| ready.message.clone());
        for Condition { r#type, status, reason, message, .. } in failing(conditions) {
            text.push_str(&format!("\n  {} is {}: {reason}: {message}", r#type, status.as_str()));
        }
        let was = |one: &Condition| failing(before.conditions).any(|known| known.r#type == one.r#type);
        (text, failing(conditions).all(was))
    }
}

/// What says that people do not get at the objects of a View: Ready and Registered, where they are not True.
fn failing(conditions: &[Condition]) -> impl Iterator<Item = &Condition> {
    let about = |one: &&Condition| [READY, REGISTERED].contains(&one.r#type.as_str());
    conditions.iter().filter(about).filter(|one| one.status != ConditionStatus::True)
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
        let client = live::client(&self.connect).await?;
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
        match self.what {
            ModuleUser::Reconciler(_) => self.swap::<Reconciler>(&client).await,
            ModuleUser::View(_) => self.swap::<View>(&client).await,
        }
    }

    async fn swap<K: Swapped>(&self, client: &Client) -> Result<CommandStatus, Problem> {
        let objects: Api<K> = Api::all(client.clone());
        let before = self.read(&objects).await?;
        let generation = self.want(&objects, before.clone()).await?;
        self.say::<K>(&format!("module {} is wanted", self.module))?;
        if let ModuleUser::Reconciler(_) = self.what {
            self.hint_views(client, before.wanted()).await;
        }
        let Some(until) = self.wait else { return Ok(CommandStatus::Fine) };
        live::wait(self.timeout, || self.look(&objects, generation)).await?;
        self.say::<K>(&format!("module {} is in force", self.module))?;
        if until == Until::Module {
            return Ok(CommandStatus::Fine);
        }
        if before.state().active == Some(self.module.as_str()) {
            // The counts are still those of the swap that put it in force.
            self.say::<K>("it was in force already; nothing changes for this")?;
            return Ok(CommandStatus::Fine);
        }
        let (said, is_well) = self.follow(&objects, &before).await?;
        self.say::<K>(&said)?;
        if is_well {
            return Ok(CommandStatus::Fine);
        }
        if let Some(module) = before.state().active {
            eprintln!("hint: to go back: pintle swap {} {module} --wait", self.what);
        }
        Ok(CommandStatus::Failed)
    }

    /// Says which module is wanted, unless somebody has changed the object since it was read. The generation of the object from then on.
    async fn want<K: Swapped>(&self, objects: &Api<K>, mut found: K) -> Result<Option<i64>, Problem> {
        let generation = found.meta().generation;
        while found.meta().generation == generation {
            let version = found.resource_version();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"module": self.module}});
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
            match objects.patch(self.what.name(), &params, &Patch::Merge(patch)).await {
                Ok(patched) => return Ok(patched.meta().generation),
                // Its status has changed, or more than that.
                Err(error) if live::is(&error, 409) => found = self.read(objects).await?,
                Err(error) => return Err(self.problem::<K>(&error)),
            }
        }
        Err(Problem::failed(format!("somebody has changed {} {} meanwhile", K::kind(&()), self.what.name())))
    }

    /// The Views stay as they are that show with the module before: who writes what roots mean, and who shows it, are swapped one at a time.
    async fn hint_views(&self, client: &Client, before: &str) {
        // Who may not read Views has none to swap.
        let views = live::list::<View>(client, "Views").await.unwrap_or_default();
        let is_left = |view: &&View| view.spec.module == before && before != self.module;
        for name in views.iter().filter(is_left).map(ResourceExt::name_any) {
            let module = &self.module;
            eprintln!(
                "hint: View {name} stays on {before}; to swap it too: pintle swap view/{name} {module}"
            );
        }
    }

    async fn read<K: Swapped>(&self, objects: &Api<K>) -> Result<K, Problem> {
        match objects.get(self.what.name()).await {
            Ok(found) => Ok(found),
            Err(error) if live::is(&error, 404) => Err(missing_in(objects, self.what.name()).await),
            Err(error) => Err(self.problem::<K>(&error)),
        }
    }

    fn problem<K: Swapped>(&self, error: &kube::Error) -> Problem {
        live::problem(format!("{} {}", K::kind(&()), self.what.name()), error)
    }

    /// Prints something about the object.
    fn say<K: Swapped>(&self, text: &str) -> Result<(), Problem> {
        let kind = Kind::new(K::api_version(&()), K::kind(&()));
        output::print(&format!("{}: {text}\n", live::resource_name(&kind, self.what.name())))
    }

    /// Whether the module is in force.
    async fn look<K: Swapped>(&self, objects: &Api<K>, generation: Option<i64>) -> Result<Progress, Problem> {
        let found = self.read(objects).await?;
        if found.wanted() != self.module {
            return Ok(Progress::Failed(format!("somebody has set module {} meanwhile", found.wanted())));
        }
        let State { observed_generation, active, has_candidate, conditions, .. } = found.state();
        if observed_generation >= generation && active == Some(self.module.as_str()) && !has_candidate {
            // Whether the roots are well is another question.
            return Ok(Progress::Done);
        }
        Ok(match live::progress(conditions, observed_generation, generation) {
            // It may be ready with the module before.
            Progress::Done => Progress::Waiting("the module is being loaded".into()),
            other => other,
        })
    }

    /// Waits until every root was reconciled with the module, and what fails has had time to recover.
    async fn follow<K: Swapped>(&self, objects: &Api<K>, before: &K) -> Result<(String, bool), Problem> {
        let (mut last, mut moved_at) = (None, clock::monotonic());
        loop {
            let found = self.read(objects).await?;
            let State { active, roots, .. } = found.state();
            if active != Some(self.module.as_str()) {
                return Err(Problem::failed(format!("module {} is not in force any more", self.module)));
            }
            let now = clock::monotonic();
            if last.replace(roots) != Some(roots) {
                moved_at = now;
            }
            let (said, is_well) = found.outcome(before);
            match roots.filter(|(active, total)| active.reconciled < *total) {
                None if is_well || now >= moved_at + SETTLE => return Ok((said, is_well)),
                Some((active, total)) if now >= moved_at + self.timeout => {
                    let message = format!(
                        "no progress for {} s: {} of {total} roots are reconciled with module {}",
                        self.timeout.as_secs(),
                        active.reconciled,
                        self.module
                    );
                    return Err(Problem::failed(message).hint(live::PODS));
                }
                _ => tokio::time::sleep(live::POLL).await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
