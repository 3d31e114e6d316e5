//! What a file says in short: an object and a condition in a word, and the Reconciler and the roots of a module.

use std::fmt;

use pintle_wit::ObjectRef;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value, json};

use super::{ConditionIs, CustomKind, ModuleFile, Scenario, custom_kind::API_VERSION};
use crate::acts::reference;

/// A value in a word of this form, or field by field.
struct Word<T> {
    form: &'static str,
    read: fn(&str) -> Option<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Word<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.read)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

/// Reads `apiVersion/Kind/name`.
pub(super) fn named(text: &str) -> Option<ObjectRef> {
    let mut parts = text.rsplitn(3, '/');
    let (name, kind, api_version) = (parts.next()?, parts.next()?, parts.next()?);
    Some(reference(api_version, kind, None, name))
}

pub(super) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectRef, D::Error> {
    deserializer.deserialize_any(Word { form: "apiVersion/Kind/name, or these as fields", read: named })
}

pub(super) fn some_condition<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ConditionIs>, D::Error> {
    let read = |text: &str| {
        let (of_type, is) = text.split_once('=')?;
        let mut words = is.splitn(2, ' ').map(str::to_owned);
        let (status, reason) = (words.next()?, words.next());
        Some(ConditionIs { r#type: of_type.into(), status, reason, message: None })
    };
    deserializer.deserialize_any(Word { form: "Type=Status Reason, or these as fields", read }).map(Some)
}

impl Scenario {
    /// Adds the kinds, Reconcilers and roots that its modules have in short.
    pub(super) fn add_bindings(&mut self) {
        for (name, module) in &self.modules {
            let (Some(kind), Some(spec)) = (&module.reconciles, &module.reconciler) else { continue };
            self.kinds.entry(kind.clone()).or_insert(CustomKind::HostStatus);
            self.objects.push(reconciler(name, kind, module, spec));
            for root in &module.roots {
                self.objects.push(
                    json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": root}, "spec": {}}),
                );
            }
        }
    }
}

/// The Reconciler of a module. It grants the children that the module declares.
fn reconciler(name: &str, kind: &str, module: &ModuleFile, more: &Map<String, Value>) -> Value {
    let granted = |child: &String| {
        let (api_version, kind) = child.rsplit_once('/')?;
        Some(json!({"apiVersion": api_version, "kinds": [kind]}))
    };
    let children: Vec<Value> = module.children.iter().filter_map(granted).collect();
    let mut reconciler = json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": name},
        "spec": {
            "for": {"apiVersion": API_VERSION, "kind": kind}, "module": name, "grants": {"children": children},
        },
    });
    for (field, value) in more {
        reconciler["spec"][field] = value.clone();
    }
    reconciler
}
