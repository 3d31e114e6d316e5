//! Patches of objects that the root does not own.
//!
//! Each root applies its patches under its own field manager, so that managed fields prove who owns which field. A patch never creates
//! an object, because it carries the uid of the object that was read. If somebody else has set a field, the first apply is a conflict,
//! and the root's status reports it. Fields that the manager owns already are corrected when they drift. What was set stays when the
//! guest no longer sends a patch, and when the root is deleted.

use pintle_wit::ObjectRef;
use serde_json::Value;

use super::{
    ApiError, Apply, Pass, Step, comparison, doubt,
    flow::{Awaited, Flow, Phase},
};
use crate::{
    desired::{self, hash_parts, hex},
    gate::AllowedPatch,
    managed, object, reasons,
};

/// The field manager of a root's patches: a hash of all that names the root tells it from those of all others. It depends on the root's
/// name and not on its uid, so that a successor of the root finds the fields that it owns.
pub(super) fn manager(root: &Value) -> String {
    let ObjectRef { namespace, name, .. } = object::reference(root);
    let kind = object::kind(root);
    let names = [kind.group(), &kind.kind, namespace.as_deref().unwrap_or_default(), &name];
    let hash = hex(&hash_parts(&names.map(str::as_bytes)));
    format!("pintle-{}-{}", kind.kind, hash.get(..32).unwrap_or_default())
}

impl Pass {
    pub(super) fn wanted_patches(&self) -> &[AllowedPatch] {
        self.answer.as_ref().map_or(&[], |answer| answer.allowed.patches())
    }

    /// The objects that the answer patches.
    pub(super) fn patch_targets(&self) -> Vec<ObjectRef> {
        self.wanted_patches().iter().map(|patch| patch.reference().clone()).collect()
    }

    /// Whether there are patches, and all of them are in force.
    pub(super) fn has_patches_in_force(&self) -> bool {
        !self.wanted_patches().is_empty() && self.refused_patches.is_empty()
    }

    /// Applies the patches of the answer.
    pub(super) fn apply_patches(&mut self) -> Flow {
        let targets = self.patch_targets();
        if targets.is_empty() {
            self.memory.patched.clear();
            return self.patched_all();
        }
        if self.is_root_unconfirmed() {
            return self.read_root();
        }
        self.ask_for(Awaited::PatchTargets, Step::Inspect(targets))
    }

    pub(super) fn patch_targets_read(&mut self, found: Vec<Result<Option<Value>, ApiError>>) -> Flow {
        let manager = manager(&self.root);
        self.memory.patched.clear();
        let (mut due, mut writes) = (Vec::new(), Vec::new());
        for (index, found) in found.into_iter().enumerate() {
            let Some(patch) = self.wanted_patches().get(index) else { continue };
            let reference = patch.reference().clone();
            let live = match found.and_then(|found| found.ok_or_else(|| missing(&reference))) {
                Ok(live) => live,
                Err(error) => {
                    self.patch_failed(reference, error);
                    continue;
                }
            };
            if is_as_wanted(patch, &live, &manager) {
                self.memory.patched.push((reference, entry_hash(&live, &manager)));
            } else {
                writes.push(Apply::patch(patch, &live, &manager));
                let version = object::text(&live, &["metadata", "resourceVersion"]).unwrap_or_default();
                due.push((reference, version.to_owned()));
            }
        }
        if writes.is_empty() {
            return self.patched_all();
        }
        self.ask_for(Awaited::Patches(due), Step::Patch(writes))
    }

    pub(super) fn patches_written(
        &mut self,
        due: Vec<(ObjectRef, String)>,
        results: Vec<Result<Value, ApiError>>,
    ) -> Flow {
        let manager = manager(&self.root);
        for ((reference, version), result) in due.into_iter().zip(results) {
            match result {
                Ok(live) => {
                    // An apply that changed nothing leaves the version as it is.
                    let changed = object::text(&live, &["metadata", "resourceVersion"]) != Some(&version);
                    self.counts.patched += u32::from(changed);
                    self.memory.patched.push((reference, entry_hash(&live, &manager)));
                }
                Err(error) => self.patch_failed(reference, error),
            }
        }
        self.patched_all()
    }

    fn patch_failed(&mut self, reference: ObjectRef, error: ApiError) {
        if error.is_refusal() {
            self.refused_patches.push((reference, error));
        } else {
            self.memory.unreported = true;
            doubt(&mut self.unsure, error.about(&reference));
        }
    }

    /// Every patch was tried. If all were accepted, the pass goes on, otherwise the status says why not.
    fn patched_all(&mut self) -> Flow {
        if self.refused_patches.is_empty() && self.unsure.is_none() {
            return Flow::Done;
        }
        self.memory.memo = None;
        Flow::To(Phase::Status)
    }
}

/// A patch never creates an object.
pub(super) fn missing(reference: &ObjectRef) -> ApiError {
    ApiError {
        code: 404,
        reason: reasons::PATCH_TARGET_MISSING.into(),
        message: format!("{reference} is to be patched and is not there"),
        ..ApiError::default()
    }
}

/// The manager's entry in the managed fields of an object.
pub(super) fn entry_hash(live: &Value, manager: &str) -> [u8; 32] {
    let entry = managed::entry(live, manager, None).map(desired::canonical).unwrap_or_default();
    hash_parts(&[object::uid(live).as_bytes(), &entry])
}

/// Whether a patch needs no write: the object shows what the patch sets, our entry covers it, and the entry has nothing else.
pub(super) fn is_as_wanted(patch: &AllowedPatch, live: &Value, manager: &str) -> bool {
    let mut sent = patch.object().clone();
    if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !matches!(key.as_str(), "name" | "namespace"));
    }
    let entry = managed::entry(live, manager, None);
    entry.is_some_and(|entry| {
        managed::covers(entry, &sent)
            && managed::owns_nothing_beyond(entry, &sent)
            && comparison::shows(live, &sent)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn no_two_roots_patch_under_one_field_manager() {
        let root = |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
            manager(
                &json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}}),
            )
        };
        let roots = [
            root("a.example/v1", "Shop", Some("team"), "shop.blue"),
            root("a.example/v1", "Shop", Some("team"), "blue"),
            root("a.example/v1", "Shop", Some("other"), "blue"),
            root("a.example/v1", "Shop", None, "blue"),
            root("a.example/v1", "ShopTeam", None, "blue"),
            root("b.example/v1", "Shop", Some("team"), "blue"),
        ];
        assert_eq!(BTreeSet::from(roots.clone()).len(), roots.len(), "{roots:?}");
        assert_eq!(
            root("a.example/v2", "Shop", Some("team"), "blue"),
            roots[1],
            "whichever version is served"
        );
        let long = root("a.example/v1", &"K".repeat(63), Some("team"), &"n".repeat(253));
        assert!(long.len() <= 128, "{long}");
    }
}
