//! A view of a module with the schemas of its kinds, and its calls.

use std::{cell::RefCell, time::Duration};

use pintle_core::reasons;
use pintle_engine::{CallError, CallLimits, ShowAnswer, Views};
use pintle_schema::config_schema;
use pintle_wit::{
    Failure,
    views::{SHOW_BYTES, SHOW_OBJECTS_MAX, ShowRequest, StoreRequest},
};
use serde_json::{Map, Value};

use super::{
    laws::{Functions, Shown, Unanswered},
    view::View,
};
use crate::{
    ask::{Blame, Trapped},
    documents::Document,
    guest::text_of,
};

/// A view of a module under test.
#[derive(Debug)]
pub struct ViewGuest<'a> {
    /// The view, with the schemas that its laws need.
    pub view: View<'a>,
    module: &'a Views,
    config: Value,
    trapped: RefCell<Option<Trapped>>,
}

impl<'a> ViewGuest<'a> {
    /// The view of this name. `config` is that of its View; null has the guest take its defaults. Documents that are no CRD of the backing
    /// kind play no part.
    ///
    /// # Errors
    /// When the module has no such view, the schema of the view is none, or the config does not fit.
    pub fn new(module: &'a Views, name: &str, config: Value, crds: &[Document]) -> Result<Self, Failure> {
        let manifest = module.manifest().view(name).ok_or_else(|| {
            let names: Vec<&str> = module.manifest().views.iter().map(|view| view.name.as_str()).collect();
            let message = format!("the module has no view {name}; it has: {}", names.join(", "));
            Failure::terminal(reasons::INVALID, message).at("view")
        })?;
        config_schema::supports_views(module.manifest())?.check(&config)?;
        let view = View::new(manifest, crds)?;
        Ok(Self { view, module, config, trapped: RefCell::default() })
    }

    /// The first request at which the guest trapped so far.
    pub fn trapped(&self) -> Option<Trapped> {
        self.trapped.borrow().clone()
    }

    /// How long it takes to show objects, and how much fuel.
    ///
    /// # Errors
    /// When there is no answer about any of them.
    pub fn cost(&self, objects: &[Value]) -> Result<(Duration, u64), Unanswered> {
        let (mut duration, mut fuel) = (Duration::ZERO, 0);
        self.show_each(objects, |answer| {
            duration += answer.stats.duration;
            fuel += answer.stats.fuel.unwrap_or_default();
        })?;
        Ok((duration, fuel))
    }

    /// Asks about objects, as many at a time as fit into a request.
    fn show_each(&self, objects: &[Value], mut see: impl FnMut(ShowAnswer)) -> Result<(), Unanswered> {
        let seen: Vec<Value> = objects.iter().map(|object| self.view.seen(object)).collect();
        for batch in batches(&seen) {
            let request = text_of(&ShowRequest {
                view: self.view.manifest.name.clone(),
                config: self.config.clone(),
                objects: batch.to_vec(),
                ..ShowRequest::default()
            });
            let answer =
                self.module.show(&self.view.manifest.name, &request, batch.len(), &CallLimits::default());
            see(answer.map_err(|error| self.unanswered("show", &request, error))?);
        }
        Ok(())
    }

    fn unanswered(&self, function: &'static str, request: &str, error: CallError) -> Unanswered {
        Trapped::note(&mut self.trapped.borrow_mut(), &error, function, request);
        Unanswered { blame: Blame::of(&error), failure: *error.failure }
    }
}

impl Functions for ViewGuest<'_> {
    fn show(&self, objects: &[Value]) -> Result<Shown, Unanswered> {
        let mut shown = Shown { items: Vec::new(), text: String::new() };
        self.show_each(objects, |answer| {
            shown.items.extend(answer.response.items);
            shown.text.push_str(&answer.text);
        })?;
        Ok(shown)
    }

    fn store(&self, written: &Value, current: Option<&Value>) -> Result<Map<String, Value>, Unanswered> {
        let object =
            self.view.asked(written).map_err(|failure| Unanswered { blame: Blame::Gate, failure })?;
        let request = text_of(&StoreRequest {
            view: self.view.manifest.name.clone(),
            config: self.config.clone(),
            object,
            current: current.map(|current| self.view.seen(current)),
            ..StoreRequest::default()
        });
        match self.module.store(&request, &CallLimits::default()) {
            Ok(answer) => Ok(answer.response.object),
            Err(error) => Err(self.unanswered("store", &request, error)),
        }
    }
}

/// The objects in parts that each fit into a request.
fn batches(objects: &[Value]) -> Vec<&[Value]> {
    let (mut parts, mut rest) = (Vec::new(), objects);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take(SHOW_OBJECTS_MAX).take_while(|object| {
            bytes += object.to_string().len();
            bytes <= SHOW_BYTES
        });
        let (part, others) = rest.split_at(fitting.count().max(1));
        parts.push(part);
        rest = others;
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_ends_at_64_objects_and_at_256_kib_and_has_one_object_at_least() {
        let lengths = |objects: &[Value]| batches(objects).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&vec![json!({}); 130]), [64, 64, 2]);
        let large = json!("x".repeat(100 << 10));
        assert_eq!(lengths(&[large.clone(), large.clone(), large]), [2, 1]);
        assert_eq!(lengths(&vec![json!("x".repeat(300 << 10)); 2]), [1, 1]);
        assert!(lengths(&[]).is_empty());
    }
}
