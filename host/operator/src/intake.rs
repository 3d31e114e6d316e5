//! What watches and workers bring into the state.
//!
//! A watch is told its purpose when it is started, and what it brings goes to the part of the state that has that purpose: [`Roots`],
//! [`Children`] or [`Needs`]. Everything else here is the same for all of them.

use std::sync::Arc;

use pintle_core::{Finished, Observed, Priority, object, observed};
use pintle_runtime::clock;
use pintle_wit::{Kind, ObjectRef};
use serde_json::Value;
use tracing::{info, warn};

use crate::{
    needs,
    state::{Reading, Shared, State},
    store::{self, ListMark, NameHash, RootKey},
    watch::{Change, News, Purpose, Sink, WatchKey, WatchState},
};

/// Where a list began, in each part of the state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    roots: ListMark,
    children: ListMark,
    needed: u32,
}

/// A part of the state, and what the news of an object mean to it. Each function says whether a root was queued.
trait Part {
    /// Whether an object is known in this version or a later one: from the operator's own write, nearly always.
    fn knows(&self, shared: &Shared, news: &News) -> bool;
    /// An object is there. With `list`, the first list of the watch shows it.
    fn saw(&self, shared: &Shared, key: &WatchKey, live: Value, list: Option<Marks>) -> bool;
    /// An object is gone; this is how it was last.
    fn gone(&self, shared: &Shared, key: &WatchKey, live: &Value) -> bool;
    /// Everything that the list has not shown is gone.
    fn list_ended(&self, shared: &Shared, key: &WatchKey, marks: Marks);
}

/// The custom resources that guests reconcile.
struct Roots;
/// What roots have.
struct Children;
/// What guests ask to see. Each round of a watch brings more of each object than the one before.
struct Needs {
    round: u32,
}

fn with_part<T>(purpose: Purpose, run: impl FnOnce(&dyn Part) -> T) -> T {
    match purpose {
        Purpose::Roots => run(&Roots),
        Purpose::Children => run(&Children),
        Purpose::Needs { round } => run(&Needs { round }),
    }
}

/// How urgent the roots are that news concern: nobody waits for what a first list brings; what comes later somebody changed.
fn priority(list: Option<Marks>) -> Priority {
    if list.is_some() { Priority::Background } else { Priority::Edit }
}

impl Part for Roots {
    fn knows(&self, shared: &Shared, news: &News) -> bool {
        shared.state().roots.knows(&news.key.kind, &news.head)
    }

    fn saw(&self, shared: &Shared, key: &WatchKey, live: Value, list: Option<Marks>) -> bool {
        let mut state = shared.state();
        let root = RootKey::of(&live);
        let is_news = state.roots.saw(&key.kind, live, list.map(|list| list.roots));
        shared.tell_of_counts(&mut state, &key.kind);
        is_news && state.enqueue(&key.kind, &root, priority(list))
    }

    fn gone(&self, shared: &Shared, key: &WatchKey, live: &Value) -> bool {
        let mut state = shared.state();
        state.roots.remove(&key.kind, live);
        state.needed.forget(&(key.kind.clone(), RootKey::of(live)));
        shared.tell_of_counts(&mut state, &key.kind);
        false
    }

    fn list_ended(&self, shared: &Shared, key: &WatchKey, marks: Marks) {
        let mut state = shared.state();
        let State { roots, needed, .. } = &mut *state;
        roots.list_ended(&key.kind, marks.roots);
        needed.keep_roots(&key.kind, |root| roots.has(&key.kind, root));
        shared.tell_of_counts(&mut state, &key.kind);
    }
}

impl Children {
    /// A child as the Reconciler of its root reads it. Until that has applied it, its label may name the Reconciler before. Whoever may
    /// write an object may give it our labels, so of one that no root has, neither by its controller nor by a label that our own apply
    /// set, only the metadata are kept.
    fn read(state: &State, kind: &Kind, live: &Value) -> Observed {
        let name = object::text(live, &["metadata", "labels", pintle_wit::names::LABEL_RECONCILER]);
        let named = name.and_then(|name| state.readings.get(name));
        let controls = |reading: &&Reading| observed::is_controlled_by(live, &reading.root_kind);
        let controlling = named.filter(controls).or_else(|| state.readings.values().find(controls));
        let Some(reading) = controlling.or(named) else {
            return Observed::of(live, "", false).without_content();
        };
        let child = Observed::of(live, &reading.manager, reading.observed.contains(kind));
        let is_labelled = child.controller.is_none() && child.owns_root_label;
        if controlling.is_some() || is_labelled { child } else { child.without_content() }
    }
}

impl Part for Children {
    fn knows(&self, shared: &Shared, news: &News) -> bool {
        shared.state().children.knows(&news.key.kind, &news.head)
    }

    fn saw(&self, shared: &Shared, key: &WatchKey, live: Value, list: Option<Marks>) -> bool {
        let mut state = shared.state();
        let child = Self::read(&state, &key.kind, &live);
        let concerned = state.children.saw(child, list.map(|list| list.children));
        state.enqueue_by_uid(concerned, priority(list))
    }

    fn gone(&self, shared: &Shared, key: &WatchKey, live: &Value) -> bool {
        let mut state = shared.state();
        let last = Self::read(&state, &key.kind, live);
        let concerned = state.children.gone(&last.reference, Some(&last));
        state.enqueue_by_uid(concerned, Priority::Edit)
    }

    fn list_ended(&self, shared: &Shared, key: &WatchKey, marks: Marks) {
        let mut state = shared.state();
        let concerned = state.children.list_ended(&key.kind, key.namespace.as_deref(), marks.children);
        state.enqueue_by_uid(concerned, Priority::Edit);
    }
}

impl Part for Needs {
    fn knows(&self, _: &Shared, _: &News) -> bool {
        false
    }

    fn saw(&self, shared: &Shared, key: &WatchKey, live: Value, list: Option<Marks>) -> bool {
        // An object may be large: nobody waits for the lock while it is reduced.
        let shape = shared.state().needed.shape(&key.kind, self.round);
        let Some(shape) = shape else { return false };
        let (place, now) = (needs::place(&live), shape.reduce(&live, list.map(|list| list.needed)));
        let mut state = shared.state();
        let concerned = state.needed.saw(&shape, place, now);
        state.enqueue_askers(concerned, priority(list))
    }

    fn gone(&self, shared: &Shared, key: &WatchKey, live: &Value) -> bool {
        let mut state = shared.state();
        let concerned = state.needed.gone(&key.kind, live);
        state.enqueue_askers(concerned, Priority::Edit)
    }

    fn list_ended(&self, shared: &Shared, key: &WatchKey, marks: Marks) {
        let mut state = shared.state();
        let namespace = key.namespace.as_deref();
        let concerned = state.needed.list_ended(&key.kind, namespace, self.round, marks.needed);
        state.enqueue_askers(concerned, Priority::Edit);
        drop(state);
        shared.needs_listed.notify_waiters();
    }
}

impl Sink for Shared {
    type Marks = Marks;

    fn list_begins(&self) -> Marks {
        let mut state = self.state();
        Marks {
            roots: state.roots.list_begins(),
            children: state.children.list_begins(),
            needed: state.needed.list_begins(),
        }
    }

    fn listed(&self, key: &WatchKey, live: Value, marks: Option<Marks>) {
        if with_part(key.purpose, |part| part.saw(self, key, live, marks)) {
            self.work.notify_one();
        }
    }

    fn list_ended(&self, key: &WatchKey, marks: Marks) {
        with_part(key.purpose, |part| part.list_ended(self, key, marks));
        self.work.notify_one();
    }

    /// What it brings of an object that is being written waits for the reply to that write.
    fn news(&self, news: News) {
        let object = news.head.name_hash(&news.key.kind);
        let news = self.state().in_flight.set_aside(&object, news);
        if let Some(news) = news {
            self.take_in(&news);
        }
    }

    fn is(&self, key: &WatchKey, now: WatchState) {
        let mut state = self.state();
        let Some(watch) = state.watches.get_mut(key) else { return };
        if watch.state != now {
            match &now {
                WatchState::Failing(message) => {
                    warn!(watch = %key, projection = ?key.projection, error = message, "A watch fails")
                }
                state => info!(watch = %key, projection = ?key.projection, ?state, "A watch is up"),
            }
            watch.listed |= now == WatchState::Synced;
            watch.state = now;
            drop(state);
            self.control.notify_one();
        }
    }
}

impl Shared {
    fn take_in(&self, news: &News) {
        if news.change == Change::Seen && with_part(news.key.purpose, |part| part.knows(self, news)) {
            return;
        }
        let Some(live) = news.read() else { return };
        let is_queued = with_part(news.key.purpose, |part| match news.change {
            Change::Seen => part.saw(self, &news.key, live, None),
            Change::Gone => part.gone(self, &news.key, &live),
        });
        if is_queued {
            self.work.notify_one();
        }
    }

    /// Says that an object is being written, until the value is dropped: after its reply was taken in.
    pub(crate) fn writing(self: &Arc<Self>, object: &ObjectRef) -> Writing {
        let object = store::name_of(object);
        self.state().in_flight.begin(object);
        Writing { shared: Arc::clone(self), object }
    }

    /// Queues a root.
    pub(crate) fn enqueue_root(&self, kind: &Kind, key: &RootKey, priority: Priority) {
        if self.state().enqueue(kind, key, priority) {
            self.work.notify_one();
        }
    }

    /// A worker is done with a root.
    pub(crate) fn finish(&self, lane: &str, key: &RootKey, finished: Finished) {
        self.state().queue.finish(&lane.to_owned(), key, finished, clock::monotonic());
        self.work.notify_one();
    }

    /// Tells the control loop that the counts of a kind's roots changed, if they did, or how many of them have finalizers of ours: once
    /// for all changes that come before it has looked.
    pub(crate) fn tell_of_counts(&self, state: &mut State, kind: &Kind) {
        if !state.roots.take_counts_changed(kind) {
            return;
        }
        if let Some(lane) = state.bindings.lane_of(kind) {
            let lane = lane.clone();
            if state.counts_changed.insert(lane) {
                self.control.notify_one();
            }
        }
    }

    /// Publishes Events about an object.
    pub(crate) async fn emit(&self, about: &Value, events: &[pintle_wit::Event]) {
        self.recorder.emit(&object::reference(about), object::uid(about), None, events).await;
    }
}

/// An object is being written.
pub(crate) struct Writing {
    shared: Arc<Shared>,
    object: NameHash,
}

impl Drop for Writing {
    fn drop(&mut self) {
        let news = self.shared.state().in_flight.end(&self.object);
        for news in &news {
            self.shared.take_in(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Metrics;

    #[test]
    fn an_object_with_our_labels_that_no_root_has_is_kept_as_metadata() {
        let kind = Kind::new("v1", "ConfigMap");
        let mut state = State::new(4, Arc::new(Metrics::default()));
        let reading = Reading {
            root_kind: Kind::new("x/v1", "Shop"),
            manager: "pintle-shop.x".into(),
            observed: [kind.clone()].into(),
        };
        state.readings.insert("shop".into(), reading);
        let kept_bytes = |reconciler: &str, owners: Value| {
            let live = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "x".repeat(1 << 20)}, "metadata": {
                "name": "a", "namespace": "n", "uid": "c", "resourceVersion": "7", "ownerReferences": owners,
                "labels": {"pintle.dev/root": "r", "pintle.dev/reconciler": reconciler},
                "annotations": {"pintle.dev/desired": "x".repeat(200 << 10), "pintle.dev/adopt": "x".repeat(200 << 10)}}});
            let mut children = store::Children::default();
            children.saw(Children::read(&state, &kind, &live), None);
            children.size().1
        };
        let owner = |kind: &str, uid: &str| json!([{"apiVersion": "x/v2", "kind": kind, "uid": uid, "name": "r", "controller": true}]);
        for reconciler in ["shop", "the-one-before"] {
            assert!(kept_bytes(reconciler, owner("Shop", "r")) > 1 << 20, "{reconciler}");
        }
        for (reconciler, owners) in [
            ("shop", json!(null)),
            ("shop", owner("Deployment", "r")),
            ("nobody", owner("Deployment", "r")),
            ("nobody", owner("Deployment", &"u".repeat(1 << 20))),
        ] {
            assert!(kept_bytes(reconciler, owners.clone()) < 10 << 10, "{reconciler} {owners}");
        }
    }
}
