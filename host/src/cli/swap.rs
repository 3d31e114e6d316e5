//! The command `pintle swap`: it puts another module in force for a Reconciler or a View.

use std::time::Duration;

use clap::Args;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, Patch, PatchParams},
    core::Object,
};
use pintle_api::{ActiveModule, ActiveRoots, Module, ModuleUser, Reconciler, ReconcilerStatus, View};
use pintle_core::{
    conditions::{self, READY},
    plan::{PlannedRoot, Summary, Unknown, Verdict},
    reasons::{PROGRESSING, REGISTERED, ROOTS_READY},
};
use pintle_kubernetes::connect::Connect;
use pintle_preview::{ModuleChoice, PlanRequest};
use pintle_runtime::clock;
use pintle_wit::{Condition, ConditionStatus, syntax};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    completion,
    live::{self, FIELD_MANAGER, Progress},
    output,
    plan::{self, NAMED, roots_in_words, summary_text},
    problem::{CommandStatus, Problem},
    seeing,
};

/// Switch a Reconciler or View to another Module
///
/// First it shows what the module would change, as `pintle plan -o summary`. Where roots would fail that do not now, or where that cannot be
/// told, or where the host lacks a right that the module needs, nothing is switched; --force switches all the same. `pintle rbac` prints the role
/// that gives such a right. The plan is read with your own rights. If you may not ask what the host may do (SubjectAccessReviews), the
/// plan names the rights that the module needs, and they do not stop the switch.
///
/// The operator loads the new module while the old one keeps working. When the new module is ready, every custom resource is
/// reconciled with it. If the new module is refused, the old one stays.
///
/// With --undo, the module and config that were in force before come back. Those of a switch that has not come into force are taken back
/// first. The status of a Reconciler has the last ten: `kubectl get reconciler NAME -o jsonpath='{.status.history}'`.
///
/// For a View, written as view/NAME, the gateway does the same: the old module serves until the new one is ready. Clients that watch
/// the objects then list them anew. A View has no roots to plan with, and no history.
///
/// Where a GitOps controller or Helm applies the object, it would set the module back. Then nothing is switched, and the command prints the
/// lines to change in git; --force switches all the same, until it is applied again.
///
/// Nothing is switched that somebody has changed meanwhile. With --dry-run, nothing is switched at all, and the module may be a file: the exit
/// code says whether the plan speaks against the switch, whoever applies the object.
///
/// The exit code is 1 if roots would fail that do not now, if the host lacks a right, if somebody has changed something meanwhile, or if the
/// module is refused, is not ready in time or makes roots fail while --wait waits. It is 2 if it cannot be told whether roots would fail, or if
/// there is no plan.
///
/// With kubectl, `kubectl patch reconciler NAME --type=merge -p '{"spec":{"module":"MODULE"}}'` does the same, and
/// `kubectl get reconciler NAME -w` shows how far it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what would change; exit with 1 if roots would fail
  # that do not now, or if the host lacks a right, for
  # instance in a pull request
  pintle swap webserver guest.wasm --dry-run

  # Switch to a module
  pintle swap webserver webserver-0.2.0

  # Wait until every custom resource is reconciled with it;
  # exit with 1 if it is refused, or if some fail now that
  # did not before
  pintle swap webserver webserver-0.2.0 --wait

  # Switch back to the module and config before
  pintle swap webserver --undo --wait

  # Switch a View, and wait until it is served with it
  pintle swap view/llamas farm-0.2.0 --wait")]
pub(super) struct Swap {
    /// Name of the Reconciler, or view/ and the name of the View
    #[arg(value_name = "RECONCILER|view/VIEW", value_parser = user, add = completion::reconcilers_and_views())]
    what: ModuleUser,

    /// Name of the Module; with --dry-run, also a file
    #[arg(required_unless_present = "undo", add = completion::modules())]
    module: Option<String>,

    /// Switch back to the module and config that were in force before
    #[arg(long, conflicts_with = "module")]
    undo: bool,

    /// Switch although roots would newly fail or that cannot be told, or although another manager applies the module
    #[arg(long, conflicts_with = "dry_run")]
    force: bool,

    /// Wait until every custom resource is reconciled with the module. A View is waited for until the gateway serves it with the module
    #[arg(long)]
    wait: bool,

    /// Only show what would change, and whether that would stop the switch
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

/// What is to be in force.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Wanted {
    module: String,
    #[serde(default)]
    config: Value,
}

impl Wanted {
    fn of(active: &ActiveModule) -> Self {
        Self { module: active.module.clone(), config: active.config.clone() }
    }

    /// What was in force before; what is in force, where something else is wanted.
    fn before(found: &Swapped) -> Option<Self> {
        let status = found.status.as_ref()?;
        let active = Self::of(status.active.as_ref()?);
        if active == found.spec { status.history.first().map(Self::of) } else { Some(active) }
    }
}

/// Who applies an object from files by updates, without server-side apply: Argo CD by default, and Helm 3 with Flux's controller for it.
const APPLY_BY_UPDATES: [&str; 3] = ["argocd-controller", "helm", "helm-controller"];

/// The manager that has applied `spec.module` from a file, and will again. A person with kubectl is none.
fn applier(found: &Swapped) -> Option<&str> {
    let owns = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.pointer("/f:spec/f:module").is_some())
    };
    let applies = |entry: &&ManagedFieldsEntry| {
        let manager = entry.manager.as_deref().unwrap_or_default();
        let is_apply = entry.operation.as_deref() == Some("Apply");
        is_apply && !manager.starts_with("kubectl") || APPLY_BY_UPDATES.contains(&manager)
    };
    found.metadata.managed_fields.iter().flatten().filter(owns).find(applies)?.manager.as_deref()
}

/// What a plan says against a swap, a line for each root.
#[derive(Debug, Default)]
struct Objections {
    /// The command that gives the host the rights that it lacks.
    role: Option<String>,
    /// Of roots that would fail and do not now.
    failing: Vec<String>,
    /// Of roots of which that cannot be told.
    unknown: Vec<String>,
}

impl Objections {
    fn add(&mut self, root: &PlannedRoot) {
        let name = root.root.reference();
        // Where there is an answer, only what it would change is not known.
        let is_unknown = root.verdict == Verdict::Unknown && !root.has_answer;
        match (&root.failure, root.unknown.first()) {
            (Some(failure), _) if root.fails_newly() => {
                let said = failure.with_path().replace('\n', "\n    ");
                self.failing.push(format!("{name}: {}: {said}", failure.reason));
            }
            (_, Some(Unknown { what, why })) if is_unknown => {
                self.unknown.push(format!("{name}: {what}: {why}"));
            }
            _ => {}
        }
    }

    fn problem(mut self) -> Option<Problem> {
        let text = |what: String, roots: &mut [String]| {
            roots.sort();
            let more = roots.len().saturating_sub(NAMED);
            let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
            let first: Vec<&str> = roots.iter().take(NAMED).map(String::as_str).collect();
            (!roots.is_empty()).then(|| format!("{what}:\n  {}{more}", first.join("\n  ")))
        };
        let failing = format!("{} would newly fail", roots_in_words(self.failing.len()));
        let unknown = format!("it cannot be told whether {} would fail", roots_in_words(self.unknown.len()));
        let role = self.role.map(|command| {
            format!("the host lacks rights that the module needs; apply its role first: {command}")
        });
        let failing: Vec<String> = role.into_iter().chain(text(failing, &mut self.failing)).collect();
        match (failing.join("\n"), text(unknown, &mut self.unknown)) {
            (failing, unknown) if failing.is_empty() => unknown.map(Problem::new),
            (failing, Some(unknown)) => Some(Problem::failed(format!("{failing}\n{unknown}"))),
            (failing, None) => Some(Problem::failed(failing)),
        }
    }
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
    let why = conditions::find(&now.conditions, ROOTS_READY);
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
        match &self.what {
            ModuleUser::View(_) if self.dry_run => {
                Err(Problem::new("a View has no roots that a module could change")
                    .hint("see what a view shows of objects with: pintle render"))
            }
            ModuleUser::View(name) if self.undo => Err(Problem::new("a View has no history")
                .hint(format!("swap it by the Module's name: pintle swap view/{name} MODULE"))),
            _ => live::block_on(self.start()),
        }
    }

    async fn start(&self) -> Result<CommandStatus, Problem> {
        self.swap(&live::client(&self.connect).await?).await
    }

    async fn swap(&self, client: &Client) -> Result<CommandStatus, Problem> {
        let objects = self.objects(client);
        let found = self.read(&objects).await?;
        let wanted = self.wanted(&found)?;
        let module = &wanted.module;
        let choice = if self.dry_run { seeing::choice(module)? } else { ModuleChoice::Named(module.clone()) };
        let modules: Api<Module> = Api::all(client.clone());
        if matches!(choice, ModuleChoice::Named(_))
            && modules.get_opt(module).await.map_err(|error| live::problem("the Module", &error))?.is_none()
        {
            return Err(Problem::new(format!("there is no Module {module}"))
                .hint(format!("upload it with: pintle push {module} FILE")));
        }
        let before = found.status.clone().unwrap_or_default();
        let spec_before = found.spec.clone();
        if !self.dry_run && spec_before != wanted {
            self.leaves_to_others(&found, &wanted)?;
            // Whoever may not switch it hears that, and no plan that ends with --force.
            self.want(&objects, found.clone(), &wanted, true).await?;
        }
        if let ModuleUser::Reconciler(name) = &self.what
            && (self.dry_run || spec_before != wanted)
        {
            let request = PlanRequest {
                reconciler: name.clone(),
                module: Some(choice),
                config: Some(wanted.config.clone()),
                ..PlanRequest::default()
            };
            let mut objections = Objections::default();
            let planned = plan::make(client, &request, |root| objections.add(&root)).await;
            let lacking = planned.as_ref().ok().filter(|summary| summary.lacks_rights());
            objections.role = lacking.and_then(|summary| summary.role_command.clone());
            if self.dry_run {
                output::print(&summary_text(&planned?))?;
                return objections.problem().map_or(Ok(CommandStatus::Fine), Err);
            }
            self.judge(planned, objections)?;
        }
        let generation = self.want(&objects, found, &wanted, false).await?;
        let and_config =
            if spec_before.config == wanted.config { "" } else { " with the config that it had" };
        self.say(&format!("module {module} is wanted{and_config}"))?;
        if let ModuleUser::Reconciler(_) = self.what {
            self.hint_views(client, &spec_before.module, module).await;
        }
        if !self.wait {
            return Ok(CommandStatus::Fine);
        }
        live::wait(self.timeout, live::PODS, || self.look(&objects, module, generation)).await?;
        self.say(&format!("module {module} is in force"))?;
        let is_same = before.active.as_ref().is_some_and(|active| Wanted::of(active) == wanted);
        let (said, is_well) = self.follow(&objects, module, &before).await?;
        if is_same {
            self.say("it was in force already; nothing changes for this")?;
        }
        // The counts are still those of the swap that put it in force.
        if !(is_same && is_well) {
            self.say(&said)?;
        }
        if is_well {
            return Ok(CommandStatus::Fine);
        }
        match (&self.what, in_force(&before)) {
            (ModuleUser::Reconciler(name), Some(_)) => eprintln!(
                "hint: to go back: pintle swap {name} --undo --wait; what was in force before that: \
                 kubectl get reconciler {name} -o jsonpath='{{.status.history[*].module}}'"
            ),
            (view, Some(module)) => eprintln!("hint: to go back: pintle swap {view} {module} --wait"),
            _ => {}
        }
        Ok(CommandStatus::Failed)
    }

    /// What is to be in force: the Module that is named, with the config that there is, or what was before.
    fn wanted(&self, found: &Swapped) -> Result<Wanted, Problem> {
        if let Some(module) = &self.module {
            return Ok(Wanted { module: module.clone(), ..found.spec.clone() });
        }
        Wanted::before(found).ok_or_else(|| {
            let message = format!("no other module or config was in force for {}", self.what.name());
            Problem::new(message).hint("see which Modules there are with: kubectl get modules")
        })
    }

    /// Refuses a swap that another manager would undo.
    fn leaves_to_others(&self, found: &Swapped, wanted: &Wanted) -> Result<(), Problem> {
        let Some(manager) = applier(found) else { return Ok(()) };
        let (kind, name) = (self.what.kind(), self.what.name());
        let message = format!("{manager} applies {kind} {name} and would set its module back");
        if self.force {
            eprintln!("warning: it is swapped all the same (--force): {message}");
            return Ok(());
        }
        let mut lines = format!("spec.module: {}", wanted.module);
        if found.spec.config != wanted.config {
            lines.push_str(&format!("\n  spec.config: {}", wanted.config));
        }
        Err(Problem::failed(message).hint(format!(
            "change the file of {kind} {name} from which it is applied, in git:\n  {lines}\n\
             nothing was swapped; to swap all the same, until it is applied again: --force"
        )))
    }

    /// Refuses a swap of which there is no plan, or against which its plan speaks.
    fn judge(&self, planned: Result<Summary, Problem>, objections: Objections) -> Result<(), Problem> {
        let problem = match planned {
            Ok(summary) => {
                output::print(&summary_text(&summary))?;
                match objections.problem() {
                    Some(problem) => problem,
                    None => return Ok(()),
                }
            }
            Err(problem) => problem,
        };
        if self.force {
            eprintln!("warning: it is swapped all the same (--force): {}", problem.message());
            return Ok(());
        }
        Err(problem.hint("nothing was swapped; to swap all the same: --force"))
    }

    fn objects(&self, client: &Client) -> Api<Swapped> {
        let resource = match self.what {
            ModuleUser::Reconciler(_) => ApiResource::erase::<Reconciler>(&()),
            ModuleUser::View(_) => ApiResource::erase::<View>(&()),
        };
        Api::all_with(client.clone(), &resource)
    }

    /// Says which module is wanted, unless somebody has changed the object since it was read. The generation of the object from then on.
    async fn want(
        &self,
        objects: &Api<Swapped>,
        mut found: Swapped,
        wanted: &Wanted,
        dry_run: bool,
    ) -> Result<Option<i64>, Problem> {
        let generation = found.metadata.generation;
        let params =
            PatchParams { dry_run, field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        while found.metadata.generation == generation {
            let mut patch = vec![
                json!({"op": "replace", "path": "/metadata/resourceVersion", "value": found.resource_version()}),
                json!({"op": "replace", "path": "/spec/module", "value": wanted.module}),
            ];
            if found.spec.config != wanted.config {
                let op = if wanted.config.is_null() { "remove" } else { "add" };
                patch.push(json!({"op": op, "path": "/spec/config", "value": wanted.config}));
            }
            // A merge patch cannot bring back a config with nulls.
            let patch = Patch::Json::<()>(serde_json::from_value(patch.into())?);
            match objects.patch(self.what.name(), &params, &patch).await {
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
    async fn hint_views(&self, client: &Client, before: &str, module: &str) {
        // Who may not read Views has none to swap.
        let views = live::list::<View>(client).await.unwrap_or_default();
        let is_left = |view: &&View| view.spec.module == before && before != module;
        for name in views.iter().filter(is_left).map(ResourceExt::name_any) {
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
    async fn look(
        &self,
        objects: &Api<Swapped>,
        module: &str,
        generation: Option<i64>,
    ) -> Result<Progress, Problem> {
        let found = self.read(objects).await?;
        if found.spec.module != module {
            return Ok(Progress::Failed(format!("somebody has set module {} meanwhile", found.spec.module)));
        }
        let status = found.status.unwrap_or_default();
        let (observed, is_in_force) = (status.observed_generation, in_force(&status) == Some(module));
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
        module: &str,
        before: &ReconcilerStatus,
    ) -> Result<(String, bool), Problem> {
        let (mut last, mut moved_at) = (None, clock::monotonic());
        let bar = output::roots_bar();
        loop {
            let status = self.read(objects).await?.status.unwrap_or_default();
            if in_force(&status) != Some(module) {
                return Err(Problem::failed(format!("module {module} is not in force any more")));
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
                let so_far =
                    || format!("{} of {total} roots are reconciled with module {module}", active.reconciled);
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
