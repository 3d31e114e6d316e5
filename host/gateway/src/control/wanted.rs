//! What the decisions about Views need to know: which Modules, kinds and checks.

use std::collections::BTreeMap;

use pintle_api::View;
use pintle_engine::Views;
use pintle_wit::Kind;
use serde_json::Value;

use super::bind::{ModuleState, World};

/// The backing kinds that the Views' modules declare, so far as those are loaded.
pub(crate) fn kinds(world: &World) -> Vec<Kind> {
    let views = world.views.values().filter_map(|view| {
        let ModuleState::Loaded(module) = world.modules.get(&view.spec.module)? else { return None };
        Some(module.views()?.manifest().view(&view.spec.view)?.backing.clone())
    });
    let mut kinds: Vec<Kind> = views.collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// The Modules that Views want or have in force.
pub(crate) fn modules(views: &BTreeMap<String, View>) -> Vec<String> {
    let wanted = views.values().flat_map(|view| {
        let active = view
            .status
            .as_ref()
            .and_then(|status| status.active.as_ref())
            .map(|active| active.module.clone());
        [Some(view.spec.module.clone()), active].into_iter().flatten()
    });
    let mut wanted: Vec<String> = wanted.collect();
    wanted.sort();
    wanted.dedup();
    wanted
}

/// The configs that are to be checked, with the views that they are for.
pub(crate) fn configs(world: &World) -> Vec<(Views, Value)> {
    let views = world.views.values().filter_map(|view| {
        let ModuleState::Loaded(module) = world.modules.get(&view.spec.module)? else { return None };
        let views = module.views()?;
        let key = (views.digest().to_string(), view.spec.config.to_string());
        (!world.configs.contains_key(&key)).then(|| (views, view.spec.config.clone()))
    });
    views.collect()
}

/// The views whose schemas and columns are to be checked, with their modules.
pub(crate) fn shown(world: &World) -> Vec<(Views, String)> {
    let views = world.views.values().filter_map(|view| {
        let ModuleState::Loaded(module) = world.modules.get(&view.spec.module)? else { return None };
        let views = module.views()?;
        let key = (views.digest().to_string(), view.spec.view.clone());
        (!world.shown.contains_key(&key)).then(|| (views, view.spec.view.clone()))
    });
    views.collect()
}
