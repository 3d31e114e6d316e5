//! Patches of objects that the root does not own.
//!
//! Each root applies its patches under its own field manager, so that managed fields prove who owns which field. A patch never creates
//! an object, because it carries the uid of the object that was read. If somebody else has set a field, the first apply is a conflict,
//! and the root's status reports it. Fields that the manager owns already are corrected when they drift.
//!
//! A patch that must be removed in the end is named in the root's status before it is applied, and a finalizer keeps the root until the
//! patch is removed. A patch that stays needs neither.

use pintle_wit::{ObjectRef, OnRelease};
use serde_json::Value;

use super::{
    ApiError, Apply, Pass, Step, comparison, doubt,
    flow::{Awaited, Flow, PatchTask, Phase},
    recorded,
};
use crate::{
    desired::{self, hash_parts, hex},
    gate::AllowedPatch,
    managed, object, reasons,
};

/// What became of the patches of a pass.
#[derive(Debug, Default)]
pub(super) struct Patches {
    /// Patches that the status need not name any more, once all patches were looked at.
    released: Option<Vec<ObjectRef>>,
    /// Patches that were not accepted.
    pub(super) refused: Vec<(ObjectRef, ApiError)>,
}

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
    /// The objects that the root's status names because they carry a patch that must be removed.
    pub(super) fn recorded_patches(&self) -> Vec<ObjectRef> {
        recorded::patched(&self.root)
    }

    pub(super) fn wanted_patches(&self) -> &[AllowedPatch] {
        self.answer.as_ref().map_or(&[], |answer| answer.allowed.patches())
    }

    /// The objects of the answer's patches that must be removed in the end.
    fn removable(&self) -> Vec<ObjectRef> {
        let removable = self.wanted_patches().iter().filter(|patch| patch.on_release() == OnRelease::Remove);
        removable.map(|patch| patch.reference().clone()).collect()
    }

    /// The objects that the status must name: those whose patch must be removed in the end, and those whose patch should be gone but
    /// could not be removed yet.
    pub(super) fn patched(&self) -> Vec<ObjectRef> {
        let mut all = match (&self.answer, &self.patches.released) {
            (Some(_), Some(released)) => {
                let left = self.recorded_patches().into_iter().filter(|entry| !released.contains(entry));
                left.chain(self.removable()).collect()
            }
            (Some(_), None) => self.recorded_patches().into_iter().chain(self.removable()).collect(),
            // The status of the last answer may not be written yet.
            (None, _) => match &self.memory.memo {
                Some(memo) => memo.patched.to_vec(),
                None => self.recorded_patches(),
            },
        };
        all.sort();
        all.dedup();
        all
    }

    /// Whether there are patches, and all of them are in force.
    pub(super) fn has_patches_in_force(&self) -> bool {
        !self.wanted_patches().is_empty() && self.patches.refused.is_empty()
    }

    /// Whether the root must stay until its patches are removed.
    pub(super) fn has_patches(&self) -> bool {
        !self.patched().is_empty()
    }

    /// Applies the patches of the answer, and removes patches of earlier answers.
    pub(super) fn apply_patches(&mut self) -> Flow {
        let removable = self.removable();
        let mut tasks: Vec<PatchTask> = (0..self.wanted_patches().len()).map(PatchTask::Apply).collect();
        let stays = |entry: &ObjectRef| self.wanted_patches().iter().any(|patch| patch.reference() == entry);
        tasks.extend(
            self.recorded_patches().into_iter().filter(|entry| !stays(entry)).map(PatchTask::Release),
        );
        if tasks.is_empty() {
            self.memory.patched.clear();
            return self.patched_all();
        }
        if self.is_root_unconfirmed() {
            return self.read_root();
        }
        let recorded = self.recorded_patches();
        if !removable.iter().all(|entry| recorded.contains(entry)) && !self.records.patches {
            return self.record_patches();
        }
        self.read_patched(tasks)
    }

    fn read_patched(&mut self, tasks: Vec<PatchTask>) -> Flow {
        let references = tasks.iter().map(|task| self.target(task)).collect();
        self.ask_for(Awaited::PatchTargets(tasks), Step::Inspect(references))
    }

    fn target(&self, task: &PatchTask) -> ObjectRef {
        match task {
            PatchTask::Apply(index) => {
                self.wanted_patches().get(*index).map(|patch| patch.reference().clone()).unwrap_or_default()
            }
            PatchTask::Release(reference) => reference.clone(),
        }
    }

    pub(super) fn patch_targets_read(
        &mut self,
        tasks: Vec<PatchTask>,
        found: Vec<Result<Option<Value>, ApiError>>,
    ) -> Flow {
        let manager = manager(&self.root);
        self.memory.patched.clear();
        let (mut due, mut writes) = (Vec::new(), Vec::new());
        for (task, found) in tasks.into_iter().zip(found) {
            let reference = self.target(&task);
            let version = match &found {
                Ok(Some(live)) => {
                    object::text(live, &["metadata", "resourceVersion"]).unwrap_or_default().to_owned()
                }
                _ => String::new(),
            };
            let write = match (&task, found) {
                (PatchTask::Release(_), Err(error)) if error.is_kind_missing() => None,
                (_, Err(error)) => {
                    self.patch_failed(&reference, error);
                    continue;
                }
                (PatchTask::Release(_), Ok(found)) => {
                    found.and_then(|live| Apply::release(&reference, &live, &manager))
                }
                (PatchTask::Apply(_), Ok(None)) => {
                    let message = format!("{reference} is to be patched and is not there");
                    self.patch_failed(
                        &reference,
                        ApiError {
                            code: 404,
                            reason: reasons::PATCH_TARGET_MISSING.into(),
                            message,
                            ..ApiError::default()
                        },
                    );
                    continue;
                }
                (PatchTask::Apply(index), Ok(Some(live))) => {
                    let write = self
                        .wanted_patches()
                        .get(*index)
                        .filter(|patch| !is_as_wanted(patch, &live, &manager))
                        .map(|patch| Apply::patch(patch, &live, &manager));
                    if write.is_none() {
                        self.memory.patched.push((reference.clone(), entry_hash(&live, &manager)));
                    }
                    write
                }
            };
            match write {
                Some(write) => {
                    due.push((task, version));
                    writes.push(write);
                }
                None => self.patch_done(&task),
            }
        }
        if writes.is_empty() {
            return self.patched_all();
        }
        self.ask_for(Awaited::Patches(due), Step::Patch(writes))
    }

    pub(super) fn patches_written(
        &mut self,
        due: Vec<(PatchTask, String)>,
        results: Vec<Result<Value, ApiError>>,
    ) -> Flow {
        for ((task, version), result) in due.into_iter().zip(results) {
            match result {
                Ok(live) => {
                    // An apply that changed nothing leaves the version as it is.
                    let changed = object::text(&live, &["metadata", "resourceVersion"]) != Some(&version);
                    self.counts.patched += u32::from(changed);
                    if matches!(task, PatchTask::Apply(_)) {
                        let hash = entry_hash(&live, &manager(&self.root));
                        self.memory.patched.push((self.target(&task), hash));
                    }
                    self.patch_done(&task);
                }
                // If the object is gone, there is nothing to remove.
                Err(error)
                    if matches!(task, PatchTask::Release(_))
                        && (error.code == 404 || error.is_uid_mismatch()) =>
                {
                    self.patch_done(&task);
                }
                Err(error) => {
                    let reference = self.target(&task);
                    self.patch_failed(&reference, error);
                }
            }
        }
        self.patched_all()
    }

    fn patch_done(&mut self, task: &PatchTask) {
        if let PatchTask::Release(reference) = task {
            self.patches.released.get_or_insert_default().push(reference.clone());
        }
    }

    fn patch_failed(&mut self, reference: &ObjectRef, error: ApiError) {
        if error.is_refusal() {
            self.patches.refused.push((reference.clone(), error));
        } else {
            self.memory.unreported = true;
            doubt(&mut self.unsure, error.about(reference));
        }
    }

    /// Every patch was tried. If all were accepted, the pass goes on, otherwise the status says why not.
    fn patched_all(&mut self) -> Flow {
        // The status no longer names a patch that the answer changed from one that is removed to one that stays.
        let stays = |entry: &ObjectRef| {
            self.wanted_patches()
                .iter()
                .any(|patch| patch.reference() == entry && patch.on_release() == OnRelease::Leave)
        };
        let kept: Vec<ObjectRef> = self.recorded_patches().into_iter().filter(stays).collect();
        self.patches.released.get_or_insert_default().extend(kept);
        if self.phase == Phase::RemovePatches {
            return self.patches_removed();
        }
        if !self.patches.refused.is_empty() || self.unsure.is_some() {
            self.memory.memo = None;
            return Flow::To(Phase::Status);
        }
        Flow::Done
    }

    /// Removes the patches of a root that is being deleted, whatever its guest would answer.
    pub(super) fn remove_patches(&mut self) -> Flow {
        let mut patched: Vec<ObjectRef> = self.recorded_patches();
        patched.extend(self.removable());
        patched.sort();
        patched.dedup();
        let tasks: Vec<PatchTask> = patched.into_iter().map(PatchTask::Release).collect();
        if tasks.is_empty() { self.patches_removed() } else { self.read_patched(tasks) }
    }

    fn patches_removed(&mut self) -> Flow {
        let refused = std::mem::take(&mut self.patches.refused);
        if self.is_released() {
            for (reference, error) in &refused {
                self.left_behind(reference, error);
            }
            return Flow::Done;
        }
        for (reference, error) in refused {
            doubt(&mut self.unsure, error.about(&reference));
        }
        if self.unsure.is_some() {
            self.memory.memo = None;
            return Flow::To(Phase::Status);
        }
        Flow::Done
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
