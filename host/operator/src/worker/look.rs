//! Looking up what a guest asks to see.

use std::time::Duration;

use futures::future::join_all;
use pintle_core::{
    needs::{self, Budget, LookUp},
    reasons, reconciler,
};
use pintle_runtime::clock;
use pintle_wit::{Failure, Kind, ObjectRef, Select};
use serde_json::Value;

use super::Work;
use crate::{
    limits,
    needs::{FIELDS_KEPT_MAX, Looked},
    store::RootKey,
    watch::WatchState,
};

/// How long a pass waits for the first list of the objects that its guest asks to see. Listing ten thousand objects takes a second or two.
const LIST_PATIENCE: Duration = Duration::from_secs(5);
/// How often the pass checks meanwhile whether the list has failed.
const LIST_POLL: Duration = Duration::from_millis(200);

/// How many look-ups are done in a row before other tasks get a turn on the thread. Each may look at ten thousand objects.
const LOOKS_AT_ONCE: usize = 16;

/// How many objects are read live at once for one call: an object is at most 1.5 MiB.
const READS_AT_ONCE: usize = 8;

impl Work {
    /// Whether the guest may be shown the children that it observes: only if the account could read them itself.
    pub(super) async fn may_observe(&self) -> Result<(), Failure> {
        let Some(account) = self.account.as_ref().map_err(Clone::clone)? else { return Ok(()) };
        for child in self.binding.manifest.children.iter().filter(|child| child.observe) {
            // Of a kind that is not served there is nothing to show.
            let Some(resource) = self.shared.state().served.get(&child.kind()).cloned() else { continue };
            let grants = &self.binding.grants;
            for namespace in grants.namespaces_of(&child.kind(), pintle_core::object::namespace(&self.root)) {
                self.shared.access.may_read(&self.cluster, account, &resource, namespace).await?;
            }
        }
        Ok(())
    }

    /// Looks up the objects that the guest asks to see. From now on, the root is requeued when they change.
    pub(super) async fn look(&self, key: &RootKey, lookups: &[LookUp]) -> Vec<Result<Vec<Value>, Failure>> {
        let asker = (self.binding.root_kind(), key.clone());
        let started = clock::monotonic();
        loop {
            let listed = self.shared.needs_listed.notified();
            match self.shared.state().needed.ask(&asker, lookups) {
                // More fields of each object must be kept, so the watch begins anew.
                Ok(true) => self.shared.control.notify_one(),
                Ok(false) => {}
                Err(kind) => return lookups.iter().map(|_| Err(too_many_fields(&kind))).collect(),
            }
            let left = LIST_PATIENCE.saturating_sub(clock::monotonic().saturating_sub(started));
            let is_listing = |look: &LookUp| {
                reconciler::is_watchable(look.kind())
                    && !self.shared.state().needed.is_known(look)
                    && self.is_served(look)
                    && self.watch_failure(look).is_none()
            };
            if left.is_zero() || !lookups.iter().any(is_listing) {
                break;
            }
            let _ = tokio::time::timeout(left.min(LIST_POLL), listed).await;
        }
        // Each look-up takes the lock by itself, because it may look at every object of its kind, and other tasks need the lock. A
        // change in between requeues the root.
        let (mut budget, mut followed) = (Budget::default(), Budget::default());
        let mut looked = Vec::with_capacity(lookups.len());
        for (index, look) in lookups.iter().enumerate() {
            if index % LOOKS_AT_ONCE == LOOKS_AT_ONCE - 1 {
                tokio::task::yield_now().await;
            }
            let budget = if look.is_followed() { &mut followed } else { &mut budget };
            let found = self.shared.state().needed.find(look, budget);
            if found == Looked::Live && reconciler::is_watchable(look.kind()) {
                // There is no room for it. The control loop has it listed again when there is some.
                self.shared.metrics.limit_hit(&self.binding.reconciler, limits::NEEDS_SIZE);
                self.shared.control.notify_one();
            }
            looked.push(found);
            if !look.is_followed() && looked.last() == Some(&Looked::TooMuch) {
                // Nothing of it is shown, and the objects found before are dropped.
                let failed = |at: usize, look: &LookUp| match at == index {
                    true => Err(needs::too_large(look.kind(), look.select())),
                    false => Ok(Vec::new()),
                };
                return lookups.iter().enumerate().map(|(at, look)| failed(at, look)).collect();
            }
        }
        let mut answers = Vec::with_capacity(lookups.len());
        let mut looked = lookups.iter().zip(looked);
        // A few at a time, since objects that are read live may be large.
        loop {
            let some: Vec<(&LookUp, Looked)> = looked.by_ref().take(READS_AT_ONCE).collect();
            if some.is_empty() {
                return answers;
            }
            let kinds = some.iter().map(|(look, looked)| (*look, *looked == Looked::Live));
            let kinds: Vec<(&LookUp, bool)> = kinds.collect();
            let some = join_all(some.into_iter().map(|(look, looked)| self.answer(look, looked))).await;
            for ((look, is_live), answer) in kinds.into_iter().zip(some) {
                answers.push(answer.and_then(|found| match is_live {
                    true => shown(look, found, &mut budget),
                    false => Ok(found),
                }));
            }
        }
    }

    pub(super) fn is_served(&self, look: &LookUp) -> bool {
        self.shared.state().served.has(look.kind())
    }

    /// Why the watch of the looked-up objects does not work.
    pub(super) fn watch_failure(&self, look: &LookUp) -> Option<String> {
        let state = self.shared.state();
        let mut watches =
            state.watches.iter().filter(|(key, _)| key.brings_needs() && key.kind == *look.kind());
        watches.find_map(|(_, watch)| match &watch.state {
            WatchState::Failing(message) if !watch.listed => Some(message.clone()),
            _ => None,
        })
    }

    /// The answer to one look-up, if the account may see it.
    pub(super) async fn answer(&self, look: &LookUp, looked: Looked) -> Result<Vec<Value>, Failure> {
        let (resource, unclear) = {
            let state = self.shared.state();
            (state.served.get(look.kind()).cloned(), state.served.unclear_since(look.kind()).is_some())
        };
        let Some(resource) = resource else {
            if unclear {
                let message = format!("the API server does not say whether it serves {}", look.kind());
                return Err(Failure::transient(reasons::NEED_UNREAD, message));
            }
            // Of a kind that is not served there is nothing to show.
            return Ok(Vec::new());
        };
        if let Some(account) = self.account.as_ref().map_err(Clone::clone)? {
            self.shared.access.may_see(&self.cluster, account, &resource, look).await?;
        }
        match (looked, look.select()) {
            (Looked::Found(objects), _) => Ok(objects.iter().map(|kept| kept.value(look.fields())).collect()),
            (Looked::TooMuch, select) => Err(needs::too_large(look.kind(), select)),
            (Looked::Live, Select::Name(name)) => {
                let Kind { api_version, kind } = look.kind().clone();
                let namespace = look.namespace().map(Into::into);
                let reference = ObjectRef { api_version, kind, namespace, name: name.clone() };
                let found = match self.children() {
                    Ok(cluster) => cluster.get(&resource, &reference).await,
                    Err(error) => Err(error),
                };
                let found = found.map_err(|error| {
                    Failure::transient(reasons::NEED_UNREAD, format!("{reference}: {error}"))
                })?;
                Ok(found.into_iter().collect())
            }
            (Looked::Live, _) => {
                let message = format!(
                    "this host has no room for all objects of kind {} (--max-roots-size); its guest can ask for them by name",
                    look.kind()
                );
                Err(Failure::transient(reasons::NEED_UNREAD, message))
            }
            (Looked::NotYet, _) => {
                let why = self.watch_failure(look).unwrap_or_else(|| "they have not been listed yet".into());
                let message =
                    format!("the host cannot show the guest objects of kind {}: {why}", look.kind());
                Err(Failure::transient(reasons::NEED_UNREAD, message))
            }
        }
    }
}

/// The shown part of objects that were read live, if the budget has so much left.
fn shown(look: &LookUp, found: Vec<Value>, budget: &mut Budget) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::with_capacity(found.len());
    for live in found {
        let shown = needs::project(&live, look.fields());
        if !budget.take_object(&shown) {
            return Err(needs::too_large(look.kind(), look.select()));
        }
        all.push(shown);
    }
    Ok(all)
}

fn too_many_fields(kind: &Kind) -> Failure {
    let message = format!(
        "the roots of this kind ask for more than {FIELDS_KEPT_MAX} different fields of {kind} together; ask for fields that hold them, \
         for instance `spec`"
    );
    Failure::transient(reasons::TOO_MANY_FIELDS, message)
}
