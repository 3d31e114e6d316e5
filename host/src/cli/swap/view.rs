//! The swap of a View. There are no roots to reconcile: when the module is in force, the gateway serves what it shows.

use kube::{Api, ResourceExt};
use pintle_api::{Module, View, ViewStatus};
use pintle_core::{conditions::READY, reasons};
use pintle_wit::{Condition, ConditionStatus, worlds::viewer};

use super::{
    super::{
        live::{self, Progress},
        problem::{CommandStatus, Problem},
    },
    Swap, Until, set_meanwhile,
};

impl Swap {
    pub(super) async fn of_view(&self, views: Api<View>, module: &Module) -> Result<CommandStatus, Problem> {
        let before = self.read(&views).await?;
        shows(module, &before)?;
        let generation = self.want(&views).await?;
        let Some(until) = self.wait else { return Ok(CommandStatus::Fine) };
        let look = async || Ok(progress(&self.read(&views).await?, &self.module, generation));
        live::wait_or(self.timeout, live::GATEWAY_RUNS, look).await?;
        self.say::<View>(&format!("module {} is in force", self.module))?;
        if until == Until::Module {
            return Ok(CommandStatus::Fine);
        }
        let status = self.read(&views).await?.status.unwrap_or_default();
        let before = before.status.unwrap_or_default();
        self.say::<View>(&summary(&status))?;
        let is_new = |what: &Condition| failing(&before).all(|known| known.r#type != what.r#type);
        if !failing(&status).any(is_new) {
            return Ok(CommandStatus::Fine);
        }
        let module = before.active.map(|active| active.module).filter(|module| *module != self.module);
        self.hint_back(module.as_deref());
        Ok(CommandStatus::Failed)
    }
}

/// The Views that show what the module before shows, and could show it with the new one. A swap of the Reconciler leaves them as they are:
/// who writes what roots mean, and who shows it, are swapped one at a time.
pub(super) fn left_behind<'a>(views: &'a [View], before: &str, module: &Module) -> Vec<&'a View> {
    let is_left = |view: &&View| {
        view.spec.module == before && before != module.name_any() && shows(module, view).is_ok()
    };
    views.iter().filter(is_left).collect()
}

/// How far a View has come on the way to a module.
fn progress(view: &View, module: &str, generation: Option<i64>) -> Progress {
    if view.spec.module != module {
        return Progress::Failed(set_meanwhile(&view.spec.module));
    }
    let status = view.status.clone().unwrap_or_default();
    if status.observed_generation < generation {
        return Progress::Waiting("the gateway has not said anything of it yet".into());
    }
    let is_active = status.active.is_some_and(|active| active.module == module);
    if is_active && status.candidate.is_none() {
        return Progress::Done;
    }
    match live::progress(&status.conditions, status.observed_generation, generation) {
        // It may be ready with the module before.
        Progress::Done => Progress::Waiting("the module is being loaded".into()),
        other => other,
    }
}

/// What says that people do not get at the objects: Ready and Registered, where they are not True.
fn failing(status: &ViewStatus) -> impl Iterator<Item = &Condition> {
    let about = [READY, reasons::REGISTERED];
    let conditions = status.conditions.iter();
    conditions.filter(move |one| about.contains(&one.r#type.as_str()) && one.status != ConditionStatus::True)
}

/// What is served, and why people do not get at it, for people.
fn summary(status: &ViewStatus) -> String {
    let ready =
        status.conditions.iter().find(|one| one.r#type == READY && one.status == ConditionStatus::True);
    let mut text = ready.map_or_else(|| "it is not served".to_owned(), |ready| ready.message.clone());
    for one in failing(status) {
        text.push_str(&format!(
            "\n  {} is {}: {}: {}",
            one.r#type,
            one.status.as_str(),
            one.reason,
            one.message
        ));
    }
    text
}

/// Whether a Module has what a View shows, as far as that is known: a Module that no host has looked at says nothing.
fn shows(module: &Module, view: &View) -> Result<(), Problem> {
    let Some(status) = &module.status else { return Ok(()) };
    let refused = |why: String| {
        Err(Problem::new(format!("Module {} {why}", module.name_any()))
            .hint("see which Modules there are with: kubectl get modules"))
    };
    let manifest = status.manifest.as_ref();
    if let Some(views) = manifest.and_then(|manifest| manifest.get("views")?.as_array()) {
        let names: Vec<&str> = views.iter().filter_map(|view| view.get("name")?.as_str()).collect();
        return match names.contains(&view.spec.view.as_str()) {
            true => Ok(()),
            false => refused(format!(
                "has no view {}, which View {} shows; it has: {}",
                view.spec.view,
                view.name_any(),
                names.join(", ")
            )),
        };
    }
    // The manifest is that of the guest, if the module also reconciles.
    let is_viewer = |contract: &String| contract.split(", ").any(|interface| interface == viewer::INTERFACE);
    match status.contract.as_ref().is_none_or(is_viewer) {
        true => Ok(()),
        false => refused(format!("serves no views, and View {} shows one", view.name_any())),
    }
}

#[cfg(test)]
mod tests;
