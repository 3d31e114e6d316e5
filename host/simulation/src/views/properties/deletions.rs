//! G6: what Llamas own is treated as those asked for who deleted them.

use pintle_simulator::Record;
use serde_json::Value;

use super::{
    super::{
        collection,
        ledger::{COLLECTORS, Ledger, Life},
        objects::owners,
        script::is_gateway,
        world::Written,
    },
    Broken, Property, Uids,
};

/// A policy that whoever deletes may ask for.
const BACKGROUND: &str = "Background";
const FOREGROUND: &str = "Foreground";
const ORPHAN: &str = "Orphan";

/// What the judgement is made from.
pub(super) struct Deletions<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) writes: &'a [Written],
    pub(super) records: &'a [Record],
    pub(super) uids: &'a Uids,
}

impl Deletions<'_> {
    pub(super) fn judge(&self) -> Result<(), Broken> {
        let done = self.writes.iter().filter(|written| is_delete(written) && is_answered(written));
        done.clone().try_for_each(|written| self.deletion(written))?;
        self.in_the_end()
    }

    fn deletion(&self, written: &Written) -> Result<(), Broken> {
        match name(written) {
            "" => {
                let there = self.ledger.llamas_at(written.versions.0);
                there.into_iter().try_for_each(|life| self.one(written, &life))
            }
            name => {
                let told = written.answer.as_ref().and_then(|(_, body)| body["details"]["uid"].as_str());
                let stored = told.and_then(|uid| self.uids.by_shown.get(uid));
                let life = stored.map(|uid| self.ledger.life(name, uid));
                life.map_or(Ok(()), |life| self.one(written, &life))
            }
        }
    }

    /// Judges one object that a deletion was about.
    fn one(&self, written: &Written, life: &Life<'_>) -> Result<(), Broken> {
        let broken = |what: String| {
            let (path, wanted) = (&written.request.path, &written.wanted);
            let what = format!("DELETE {path} {wanted} was answered with success, and {what}");
            Err(Broken::at(Property::Cascades, written.at, what))
        };
        let (from, to) = written.versions;
        let policy = policy(written);
        if policy == Some(BACKGROUND) {
            let held: Vec<&str> = life.at(to).into_iter().flat_map(collectors).collect();
            if !held.is_empty() && !self.is_contested(written, to) {
                return broken(format!("it waits, with {held:?}"));
            }
            return Ok(());
        }
        let (Some(policy @ (FOREGROUND | ORPHAN)), Some(begun), Some(gone)) = (policy, life.begun, life.gone)
        else {
            return Ok(());
        };
        // Whether it was the gateway that began it, and now: on what is being deleted already, nobody can ask for another policy.
        let is_begun_by_it = begun > from && begun <= to && self.is_of_gateway(begun);
        if !is_begun_by_it || self.is_contested(written, gone) || self.ledger.is_without_view((from, gone)) {
            return Ok(());
        }
        let Some(shown) = self.uids.by_stored.get(life.uid) else { return Ok(()) };
        for (name, before) in self.ledger.owned_at(from) {
            let reference =
                |object: &Value| owners(object).find(|owner| owner["uid"] == shown.as_str()).cloned();
            let is_going = before["metadata"].get("deletionTimestamp").is_some();
            let Some(named) = reference(before).filter(|_| !is_going) else { continue };
            let Some((then, is_there)) = self.ledger.owned_until(&name, gone) else { continue };
            // What no longer named it may have gone with another owner.
            match (policy, is_there, reference(then).is_some()) {
                (ORPHAN, false, true) => {
                    return broken(format!("{name}, which it was to leave behind, went with it"));
                }
                (ORPHAN, true, true) => {
                    return broken(format!("it was gone while {name} named it as its owner"));
                }
                (FOREGROUND, true, true) if named["blockOwnerDeletion"] == true => {
                    return broken(format!("it was gone before {name}, which blocks it"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether somebody may have asked for another policy until this version: then one of them had to give way.
    fn is_contested(&self, written: &Written, until: u64) -> bool {
        self.writes.iter().any(|other| {
            let is_about_it = [name(written), ""].contains(&name(other)) || name(written).is_empty();
            let is_meanwhile = other.versions.0 <= until
                && (other.answer.is_none() || other.versions.1 >= written.versions.0);
            is_delete(other) && is_about_it && is_meanwhile && policy(other) != policy(written)
        })
    }

    fn is_of_gateway(&self, version: u64) -> bool {
        let changes = self.records.iter().filter(|record| record.seen.verb.is_mutating());
        let made = changes.clone().find(|record| record.version >= version);
        made.is_some_and(|record| is_gateway(&record.seen.client))
    }

    /// Nothing waits for a garbage collector that has nothing left to do, and nothing names an owner that is gone.
    fn in_the_end(&self) -> Result<(), Broken> {
        let broken = |what: String| Err(Broken::new(Property::Cascades, format!("in the end {what}")));
        let left = self.ledger.llamas_at(u64::MAX);
        for life in &left {
            let Some(object) = life.at(u64::MAX) else { continue };
            if let Some(held) = collectors(object).next()
                && object["metadata"].get("deletionTimestamp").is_some()
            {
                return broken(format!("{} is deleted, and {held} holds it", life.name));
            }
        }
        for (name, object) in self.ledger.owned_at(u64::MAX) {
            let is_there = |owner: &Value| {
                let stored = owner["uid"].as_str().and_then(|uid| self.uids.by_shown.get(uid));
                stored.is_some_and(|stored| left.iter().any(|life| life.uid == stored))
            };
            if !owners(object).all(is_there) {
                return broken(format!(
                    "{name} names an owner that is gone: {}",
                    object["metadata"]["ownerReferences"]
                ));
            }
        }
        Ok(())
    }
}

fn is_delete(written: &Written) -> bool {
    written.request.method == "DELETE"
}

fn is_answered(written: &Written) -> bool {
    written.answer.as_ref().is_some_and(|(code, _)| *code < 300)
}

/// The object that a deletion is about. Empty: all of them.
fn name(written: &Written) -> &str {
    let path = written.request.path.strip_prefix(&collection("llamas")).unwrap_or_default();
    path.trim_start_matches('/')
}

fn policy(written: &Written) -> Option<&str> {
    written.wanted["propagationPolicy"].as_str()
}

/// The finalizers of a stored object with which the garbage collector works on the Llama.
pub(super) fn collectors(object: &Value) -> impl Iterator<Item = &str> {
    let finalizers =
        object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    finalizers.filter(|one| COLLECTORS.iter().any(|(_, stored)| one == stored))
}
