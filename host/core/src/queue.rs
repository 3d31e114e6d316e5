//! The work queue: which root a worker reconciles next.
//!
//! The queue holds each key once. A key belongs to a lane, and each Reconciler has one lane.
//!
//! * Among lanes: the lane with the fewest keys in work is next, and lanes with equally many take turns. No lane may hold all workers
//!   while there are others. So neither many keys in one lane nor a slow guest starves another lane. A lane whose guest runs into its
//!   limits gets narrower each time, and in the end rests between its keys.
//! * Within a lane: a user's edit overtakes a resync. A part of the workers is reserved for edits, and while an edit of a lane is in
//!   work, only little of the lane's background is.
//! * For one key: it is never handed out twice at once. If it is added while it is in work, it waits until it is done. A key that failed
//!   comes back after its own back-off.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

/// The first back-off: long enough to serve another key, and short enough that a person does not notice.
/// There is no chance in a back-off, since keys that failed together wait for the same workers.
const BACKOFF_FIRST: Duration = Duration::from_millis(200);
/// The longest back-off: a root that depends on other objects is retried at least once a minute.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// If there are other lanes, a lane may have at most this many times as many keys in work as there are free workers. With 16 workers
/// that is 12 for one greedy lane, and 7 each for two.
const SHARE: usize = 3;
/// If there are several lanes, one in this many workers is reserved for lanes that have nothing in work: 2 of 16. So a lane that gets
/// work finds a free worker at once, however many lanes are greedy.
const FOR_WHO_COMES: usize = 8;
/// At least one in this many workers is reserved for edits. The writes that a swap has in work at a time are before an edit's at the API
/// server, and 8 writes at a time keep that as busy as 16 do.
const FOR_EDITS: usize = 2;
/// While an edit of a lane is in work, one in this many workers may work on the lane's background. The writes of the edit wait for one
/// another, and then find an API server that has little else to do.
const BESIDE_EDITS: usize = 8;
/// If a guest runs into its limits although only one key of its lane is in work, the lane rests for this many times as long as the key
/// took. The guest then computes for a fifth of the time, on one core.
const REST: u32 = 4;
/// The shortest time after which a key comes back by itself, so that a mistaken request for "at once" is not a loop that fills a core.
const AGAIN_MIN: Duration = Duration::from_millis(10);
/// After this many edits in a row one key of the background is due, so that a swap comes to an end however busy a lane is.
const EDITS_IN_A_ROW: u32 = 7;

/// How urgent a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Nobody waits for it: a resync, a swap, or the first list after a start.
    Background,
    /// Somebody changed something.
    Edit,
}

/// Keys that wait for a worker, keys in work, and keys in back-off. The caller gives the time, as a duration since any fixed moment.
#[derive(Debug)]
pub struct Queue<L, K> {
    lanes: BTreeMap<L, Lane<K>>,
    /// The lanes that have a key waiting, in the order of their turns.
    turns: VecDeque<L>,
    /// Keys that come back later, by time.
    delayed: BTreeSet<(Duration, L, K)>,
    /// How many keys may be in work, in all lanes.
    workers: usize,
    /// How many keys are in work, in all lanes.
    in_work: InWork,
    /// The time of the last pop.
    now: Duration,
}

#[derive(Debug)]
struct Lane<K> {
    edits: VecDeque<K>,
    background: VecDeque<K>,
    state: BTreeMap<K, KeyState>,
    /// Edits that were handed out since the last key of the background.
    edits_in_a_row: u32,
    in_work: InWork,
    /// How many of the lane's keys may be in work.
    width: usize,
    /// The lane rests until then: none of its keys is handed out.
    rests: Duration,
}

impl<K> Lane<K> {
    fn new(width: usize) -> Self {
        Self {
            edits: VecDeque::new(),
            background: VecDeque::new(),
            state: BTreeMap::new(),
            edits_in_a_row: 0,
            in_work: InWork::default(),
            width,
            rests: Duration::ZERO,
        }
    }

    fn is_waiting(&self) -> bool {
        !self.edits.is_empty() || !self.background.is_empty()
    }

    /// Whether the lane hands out no more background for now, so that an edit in work has the API server to itself.
    fn gives_way(&self, workers: usize) -> bool {
        self.in_work.edits > 0 && self.in_work.background >= (workers / BESIDE_EDITS).max(1)
    }
}

/// How many keys are in work, by the priority with which they were handed out.
#[derive(Clone, Copy, Debug, Default)]
struct InWork {
    edits: usize,
    background: usize,
}

impl InWork {
    fn all(self) -> usize {
        self.edits + self.background
    }

    fn with(&mut self, priority: Priority) -> &mut usize {
        match priority {
            Priority::Edit => &mut self.edits,
            Priority::Background => &mut self.background,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct KeyState {
    waiting: Option<Priority>,
    /// Since when it is in work, and with which priority it was handed out.
    in_work: Option<(Duration, Priority)>,
    /// Its lane was removed while it was in work.
    dropped: bool,
    /// It was added again while it was in work, with this priority.
    again: Option<Priority>,
    /// Its lane was hurried while it was in work.
    hurried: bool,
    failures: u32,
    due: Option<Duration>,
}

/// How the work on a key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Nothing is left to do until something changes.
    Settled,
    /// Nothing failed. The key comes back after this long, or at once if something changes.
    Again(Duration),
    /// It failed. The key comes back after its back-off, and after this long at the earliest.
    Failed(Duration),
    /// It failed because its guest ran into its limits. The same as [`Finished::Failed`], and the lane gets narrower.
    Overran(Duration),
    /// Its object is gone.
    Gone,
}

impl<L: Ord + Clone, K: Ord + Clone> Queue<L, K> {
    /// An empty queue for this many workers.
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            in_work: InWork::default(),
            now: Duration::ZERO,
            lanes: BTreeMap::new(),
            turns: VecDeque::new(),
            delayed: BTreeSet::new(),
        }
    }

    /// Adds a key. What happens depends on the key's state:
    ///
    /// * It waits already: it only becomes more urgent.
    /// * It is in work: it comes back at once when it is done, except that after a failure a background key is left to its back-off.
    /// * It is in back-off: an edit brings it back at once, and the background leaves it to its back-off.
    pub fn add(&mut self, lane: &L, key: K, priority: Priority) {
        let slot = self.lanes.entry(lane.clone()).or_insert_with(|| Lane::new(self.workers));
        let state = slot.state.entry(key.clone()).or_default();
        if state.in_work.is_some() {
            state.again = state.again.max(Some(priority));
            return;
        }
        if let Some(due) = state.due {
            if priority == Priority::Background {
                return;
            }
            state.due = None;
            self.delayed.remove(&(due, lane.clone(), key.clone()));
        }
        if state.waiting >= Some(priority) {
            return;
        }
        // A key that was waiting in the background also stays in that list. When it is found there later, its state shows that it no
        // longer waits.
        state.waiting = Some(priority);
        match priority {
            Priority::Edit => slot.edits.push_back(key),
            Priority::Background => slot.background.push_back(key),
        }
        if !self.turns.contains(lane) {
            self.turns.push_back(lane.clone());
        }
    }

    /// Whether a key waits for its turn.
    pub fn waits(&self, lane: &L, key: &K) -> bool {
        let state = self.lanes.get(lane).and_then(|slot| slot.state.get(key));
        state.is_some_and(|state| state.waiting.is_some())
    }

    /// How many keys of a lane wait for their turn with this priority.
    pub fn waiting(&self, lane: &L, priority: Priority) -> usize {
        let states = self.lanes.get(lane).into_iter().flat_map(|slot| slot.state.values());
        states.filter(|state| state.waiting == Some(priority)).count()
    }

    /// The next key to work on, if there is one whose lane may have another key in work.
    pub fn pop(&mut self, now: Duration) -> Option<(L, K)> {
        self.now = now;
        self.wake(now);
        let background = self.in_work.background < (self.workers / FOR_EDITS).max(1);
        while let Some(turn) = self.next_turn(background) {
            let lane = self.turns.remove(turn)?;
            let Some(slot) = self.lanes.get_mut(&lane) else { continue };
            let found = slot.pop(now, background && !slot.gives_way(self.workers));
            if slot.is_waiting() {
                self.turns.push_back(lane.clone());
            }
            if let Some((key, priority)) = found {
                *self.in_work.with(priority) += 1;
                return Some((lane, key));
            }
        }
        None
    }

    /// The lane with the fewest keys in work, among those that may have another one; among several, the one whose turn it is.
    /// `background` says whether a key of the background may be handed out.
    fn next_turn(&self, background: bool) -> Option<usize> {
        let free = self.workers.saturating_sub(self.in_work.all());
        let share = match free {
            _ if self.lanes.len() <= 1 => usize::MAX,
            few if few <= self.workers / FOR_WHO_COMES => 1,
            more => more.saturating_mul(SHARE),
        };
        let lanes = self.turns.iter().enumerate();
        let open = lanes.filter_map(|(turn, lane)| {
            let slot = self.lanes.get(lane)?;
            let may = slot.in_work.all() < slot.width.min(share) && slot.rests <= self.now;
            let may = may && (background && !slot.gives_way(self.workers) || !slot.edits.is_empty());
            may.then_some((slot.in_work.all(), turn))
        });
        open.min().map(|(_, turn)| turn).filter(|_| free > 0)
    }

    /// Gives back a key that was popped.
    pub fn finish(&mut self, lane: &L, key: &K, finished: Finished, now: Duration) {
        let Some(slot) = self.lanes.get_mut(lane) else { return };
        let Some(state) = slot.state.get_mut(key) else { return };
        let Some((began, priority)) = state.in_work.take() else { return };
        for in_work in [self.in_work.with(priority), slot.in_work.with(priority)] {
            *in_work = in_work.saturating_sub(1);
        }
        let (again, hurried) = (state.again.take(), std::mem::take(&mut state.hurried));
        let finished = if std::mem::take(&mut state.dropped) { Finished::Gone } else { finished };
        match finished {
            Finished::Overran(_) if slot.width <= 1 => {
                slot.rests = now + now.saturating_sub(began).saturating_mul(REST);
            }
            Finished::Overran(_) => slot.width /= 2,
            Finished::Settled | Finished::Again(_) => slot.width = self.workers.min(slot.width + 1),
            Finished::Failed(_) | Finished::Gone => {}
        }
        let delay = match finished {
            Finished::Failed(at_least) | Finished::Overran(at_least) => {
                let backoff = BACKOFF_FIRST.saturating_mul(1 << state.failures.min(16)).min(BACKOFF_MAX);
                state.failures = state.failures.saturating_add(1);
                Some(backoff.max(at_least))
            }
            Finished::Again(delay) => {
                state.failures = 0;
                Some(delay.max(AGAIN_MIN))
            }
            Finished::Settled | Finished::Gone => {
                state.failures = 0;
                None
            }
        };
        if hurried {
            state.failures = 0;
        }
        // A key that was added for the background does not end the back-off of a failed one.
        let is_left = |priority: &Priority| {
            *priority == Priority::Background
                && matches!(finished, Finished::Failed(_) | Finished::Overran(_))
        };
        match (again.filter(|priority| hurried || !is_left(priority)), delay) {
            (Some(priority), _) => self.add(lane, key.clone(), priority),
            (None, Some(delay)) => {
                let due = now + delay;
                state.due = Some(due);
                self.delayed.insert((due, lane.clone(), key.clone()));
            }
            (None, None) => {
                slot.state.remove(key);
            }
        }
    }

    /// Ends every back-off in a lane and forgets its failures, because their cause may be gone. A key that is in work and was added
    /// again comes back even if it fails.
    pub fn hurry(&mut self, lane: &L) {
        if let Some(slot) = self.lanes.get_mut(lane) {
            (slot.width, slot.rests) = (self.workers, Duration::ZERO);
            for state in slot.state.values_mut() {
                state.hurried = state.in_work.is_some() && state.again.is_some();
            }
        }
        let waiting: Vec<(Duration, L, K)> =
            self.delayed.iter().filter(|(_, other, _)| other == lane).cloned().collect();
        for entry in waiting {
            self.delayed.remove(&entry);
            let (_, lane, key) = entry;
            if let Some(state) = self.lanes.get_mut(&lane).and_then(|slot| slot.state.get_mut(&key)) {
                state.due = None;
                state.failures = 0;
            }
            self.add(&lane, key, Priority::Background);
        }
    }

    /// When the next delay of a key, or the next rest of a lane, ends.
    pub fn next_due(&self) -> Option<Duration> {
        let resting = self.turns.iter().filter_map(|lane| self.lanes.get(lane)).map(|slot| slot.rests);
        let resting = resting.filter(|until| *until > self.now);
        self.delayed.first().map(|(due, ..)| *due).into_iter().chain(resting).min()
    }

    /// Forgets a lane and everything in it. When a key in work is done, its result is ignored.
    pub fn remove_lane(&mut self, lane: &L) {
        if let Some(mut slot) = self.lanes.remove(lane) {
            // A key in work stays known until it is done, or a lane of the same name could hand it out a second time.
            slot.state.retain(|_, state| state.in_work.is_some());
            for state in slot.state.values_mut() {
                *state = KeyState { in_work: state.in_work, dropped: true, ..KeyState::default() };
            }
            if !slot.state.is_empty() {
                let (state, in_work) = (slot.state, slot.in_work);
                self.lanes.insert(lane.clone(), Lane { state, in_work, ..Lane::new(self.workers) });
            }
        }
        self.turns.retain(|other| other != lane);
        self.delayed.retain(|(_, other, _)| other != lane);
    }

    /// How many keys of a lane are in back-off after a failure.
    pub fn backing_off(&self, lane: &L) -> usize {
        let is_backing_off = |state: &&KeyState| state.due.is_some() && state.failures > 0;
        self.lanes.get(lane).map_or(0, |slot| slot.state.values().filter(is_backing_off).count())
    }

    fn wake(&mut self, now: Duration) {
        while let Some((due, lane, key)) = self.delayed.first().cloned().filter(|(due, ..)| *due <= now) {
            self.delayed.remove(&(due, lane.clone(), key.clone()));
            if let Some(state) = self.lanes.get_mut(&lane).and_then(|slot| slot.state.get_mut(&key)) {
                state.due = None;
            }
            self.add(&lane, key, Priority::Background);
        }
    }
}

impl<K: Ord + Clone> Lane<K> {
    /// The next key of the lane, if there is one. A key of the background only if `background` allows it.
    fn pop(&mut self, now: Duration, background: bool) -> Option<(K, Priority)> {
        loop {
            let background_first = self.edits_in_a_row >= EDITS_IN_A_ROW;
            let priority = match (self.edits.is_empty(), self.background.is_empty() || !background) {
                (true, true) => return None,
                (false, false) if background_first => Priority::Background,
                (false, _) => Priority::Edit,
                (true, false) => Priority::Background,
            };
            let key = match priority {
                Priority::Edit => self.edits.pop_front()?,
                Priority::Background => self.background.pop_front()?,
            };
            if let Some(state) = self.state.get_mut(&key)
                && state.waiting == Some(priority)
            {
                let is_edit = priority == Priority::Edit;
                self.edits_in_a_row = if is_edit { self.edits_in_a_row.saturating_add(1) } else { 0 };
                state.waiting = None;
                state.in_work = Some((now, priority));
                *self.in_work.with(priority) += 1;
                return Some((key, priority));
            }
        }
    }
}

#[cfg(test)]
mod tests;
