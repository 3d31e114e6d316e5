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
    jitter: Jitter,
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
    /// An empty queue for this many workers. The seed is only for the jitter of back-offs.
    pub fn new(seed: u64, workers: usize) -> Self {
        Self {
            workers,
            in_work: InWork::default(),
            now: Duration::ZERO,
            lanes: BTreeMap::new(),
            turns: VecDeque::new(),
            delayed: BTreeSet::new(),
            jitter: Jitter(seed),
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
                Some(self.jitter.spread(backoff).max(at_least))
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

    /// How many keys of a lane wait for a worker.
    pub fn depth(&self, lane: &L) -> usize {
        self.lanes
            .get(lane)
            .map_or(0, |slot| slot.state.values().filter(|state| state.waiting.is_some()).count())
    }

    /// How many keys of a lane are in back-off after a failure.
    pub fn backing_off(&self, lane: &L) -> usize {
        let is_backing_off = |state: &&KeyState| state.due.is_some() && state.failures > 0;
        self.lanes.get(lane).map_or(0, |slot| slot.state.values().filter(is_backing_off).count())
    }

    /// How many times in a row a key has failed.
    pub fn failures(&self, lane: &L, key: &K) -> u32 {
        self.lanes.get(lane).and_then(|slot| slot.state.get(key)).map_or(0, |state| state.failures)
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

/// Randomness for back-offs, from a seed (splitmix64): the operator seeds it from the OS, a simulator from its plan.
#[derive(Debug)]
struct Jitter(u64);

impl Jitter {
    /// A random time between three quarters of a delay and the whole delay, so that keys that failed together do not come back together.
    fn spread(&mut self, delay: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let quarter = delay.as_millis() as u64 / 4;
        let take = if quarter == 0 { 0 } else { (bits ^ (bits >> 31)) % quarter };
        delay - Duration::from_millis(take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZERO: Duration = Duration::ZERO;

    /// As many workers as any test wants.
    fn queue() -> Queue<&'static str, u32> {
        Queue::new(7, 1000)
    }

    fn fill(queue: &mut Queue<&'static str, u32>, lane: &'static str, keys: u32) {
        (0..keys).for_each(|key| queue.add(&lane, key, Priority::Edit));
    }

    fn drain(queue: &mut Queue<&'static str, u32>) -> Vec<(&'static str, u32)> {
        std::iter::from_fn(|| queue.pop(ZERO)).collect()
    }

    #[test]
    fn a_key_is_held_once_and_an_edit_overtakes_the_background() {
        let mut queue = queue();
        for key in [1, 2, 3, 2, 1] {
            queue.add(&"a", key, Priority::Background);
        }
        queue.add(&"a", 3, Priority::Edit);
        assert_eq!(queue.depth(&"a"), 3);
        assert_eq!(drain(&mut queue), [("a", 3), ("a", 1), ("a", 2)]);
    }

    #[test]
    fn a_swap_during_a_pass_does_not_wait_until_the_root_comes_again_by_itself() {
        let mut queue = queue();
        fill(&mut queue, "a", 1);
        queue.pop(ZERO);
        queue.add(&"a", 0, Priority::Background);
        queue.finish(&"a", &0, Finished::Again(Duration::from_secs(3600)), ZERO);
        assert_eq!(drain(&mut queue), [("a", 0)]);
    }

    #[test]
    fn a_hurry_reaches_a_key_that_fails_afterwards() {
        let mut queue = queue();
        fill(&mut queue, "a", 2);
        drain(&mut queue);
        for key in [0, 1] {
            queue.add(&"a", key, Priority::Background);
        }
        queue.finish(&"a", &0, Finished::Failed(ZERO), ZERO);
        assert_eq!(drain(&mut queue), [], "a resync leaves what failed to its back-off");
        queue.hurry(&"a");
        queue.finish(&"a", &1, Finished::Failed(ZERO), ZERO);
        assert_eq!(drain(&mut queue), [("a", 0), ("a", 1)]);
    }

    #[test]
    fn the_background_gives_way_while_an_edit_of_its_lane_is_in_work() {
        let mut queue = Queue::new(7, 16);
        let background = 100..200;
        background.for_each(|key| queue.add(&"a", key, Priority::Background));
        let first = queue.pop(ZERO).unwrap();
        queue.add(&"a", 1, Priority::Edit);
        assert_eq!(queue.pop(ZERO), Some(("a", 1)));
        assert_eq!(drain(&mut queue).len(), 1, "two of sixteen beside the edit");
        queue.finish(&"a", &first.1, Finished::Settled, ZERO);
        assert_eq!(drain(&mut queue).len(), 1, "and one more when one is done");
        queue.finish(&"a", &1, Finished::Settled, ZERO);
        assert_eq!(drain(&mut queue).len(), 6, "eight without it");
        queue.add(&"b", 1, Priority::Edit);
        assert_eq!(queue.pop(ZERO), Some(("b", 1)));
        queue.finish(&"a", &101, Finished::Settled, ZERO);
        assert_eq!(drain(&mut queue).len(), 1, "an edit of another lane takes nothing from it");
    }

    #[test]
    fn lanes_take_turns_however_full_one_is() {
        let mut queue = queue();
        (0..100).for_each(|key| queue.add(&"flood", key, Priority::Edit));
        queue.add(&"calm", 1, Priority::Background);
        let order = drain(&mut queue);
        assert!(order.iter().position(|(lane, _)| *lane == "calm") <= Some(1), "{order:?}");
    }

    #[test]
    fn what_arrives_while_a_key_is_in_work_comes_again_afterwards() {
        let mut queue = queue();
        queue.add(&"a", 1, Priority::Edit);
        assert_eq!(queue.pop(ZERO), Some(("a", 1)));
        queue.add(&"a", 1, Priority::Edit);
        assert_eq!(queue.pop(ZERO), None, "it is in work");
        queue.finish(&"a", &1, Finished::Settled, ZERO);
        assert_eq!(queue.pop(ZERO), Some(("a", 1)));
        queue.finish(&"a", &1, Finished::Settled, ZERO);
        assert_eq!(queue.pop(ZERO), None);
    }

    #[test]
    fn a_failure_backs_off_longer_each_time_and_a_success_forgives_all() {
        let mut queue = queue();
        let mut now = ZERO;
        let mut delays = Vec::new();
        queue.add(&"a", 1, Priority::Edit);
        for _ in 0..12 {
            assert_eq!(queue.pop(now), Some(("a", 1)));
            queue.finish(&"a", &1, Finished::Failed(ZERO), now);
            let due = queue.next_due().expect("it is in back-off");
            assert_eq!(queue.pop(due - Duration::from_millis(1)), None);
            delays.push(due - now);
            now = due;
        }
        assert!(delays[0] <= BACKOFF_FIRST && delays[0] >= BACKOFF_FIRST * 3 / 4, "{delays:?}");
        assert!(delays.windows(2).take(6).all(|pair| pair[1] > pair[0]), "{delays:?}");
        assert!(delays.iter().all(|delay| *delay <= BACKOFF_MAX), "{delays:?}");
        assert_eq!(queue.pop(now), Some(("a", 1)));
        queue.finish(&"a", &1, Finished::Settled, now);
        assert_eq!(queue.failures(&"a", &1), 0);
    }

    #[test]
    fn the_background_leaves_workers_for_edits_however_much_of_it_there_is() {
        let mut queue = Queue::new(7, 4);
        (0..9).for_each(|key| queue.add(&"a", key, Priority::Background));
        assert_eq!(drain(&mut queue), [("a", 0), ("a", 1)]);
        queue.add(&"a", 8, Priority::Edit);
        queue.add(&"b", 10, Priority::Background);
        assert_eq!(drain(&mut queue), [("a", 8)]);
        queue.finish(&"a", &8, Finished::Settled, ZERO);
        assert_eq!(drain(&mut queue), [], "an edit that is done makes no room for the background");
        queue.finish(&"a", &0, Finished::Settled, ZERO);
        assert_eq!(drain(&mut queue), [("b", 10)]);
        let mut alone = Queue::new(7, 1);
        alone.add(&"a", 1, Priority::Background);
        assert_eq!(drain(&mut alone), [("a", 1)]);
    }

    #[test]
    fn an_edit_ends_a_back_off_and_a_resync_does_not() {
        let mut queue = queue();
        queue.add(&"a", 1, Priority::Edit);
        queue.pop(ZERO);
        queue.finish(&"a", &1, Finished::Failed(Duration::from_secs(30)), ZERO);
        queue.add(&"a", 1, Priority::Background);
        assert_eq!(queue.pop(ZERO), None);
        assert!(queue.next_due() >= Some(Duration::from_secs(30)), "the server asked for 30 s");
        queue.add(&"a", 1, Priority::Edit);
        assert_eq!(queue.pop(ZERO), Some(("a", 1)));
        assert_eq!(queue.next_due(), None);
    }

    #[test]
    fn a_key_that_asks_to_come_again_does_so_on_time_and_at_once_when_somebody_changes_it() {
        let mut queue = queue();
        let wait = Duration::from_millis(250);
        queue.add(&"a", 1, Priority::Edit);
        queue.pop(ZERO);
        queue.finish(&"a", &1, Finished::Again(wait), ZERO);
        queue.add(&"a", 1, Priority::Background);
        assert_eq!((queue.pop(ZERO), queue.next_due(), queue.backing_off(&"a")), (None, Some(wait), 0));
        assert_eq!(queue.pop(wait), Some(("a", 1)));
        queue.finish(&"a", &1, Finished::Again(wait), wait);
        queue.add(&"a", 1, Priority::Edit);
        assert_eq!(queue.pop(wait), Some(("a", 1)));
        queue.finish(&"a", &1, Finished::Settled, wait);
        assert_eq!((queue.next_due(), queue.failures(&"a", &1)), (None, 0));
    }

    #[test]
    fn a_lane_that_is_hurried_waits_for_no_back_off() {
        let mut queue = queue();
        for (lane, key) in [("a", 1), ("b", 2)] {
            queue.add(&lane, key, Priority::Edit);
            queue.pop(ZERO);
            queue.finish(&lane, &key, Finished::Failed(Duration::from_secs(30)), ZERO);
        }
        queue.hurry(&"a");
        assert_eq!(drain(&mut queue), [("a", 1)], "the other lane still waits");
        assert_eq!(queue.failures(&"a", &1), 0);
    }

    #[test]
    fn a_lane_never_holds_all_workers_while_there_are_others() {
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        fill(&mut queue, "only", 100);
        assert_eq!(drain(&mut queue).len(), 16, "where there is one lane it may");
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        fill(&mut queue, "calm", 1);
        queue.pop(ZERO);
        queue.finish(&"calm", &0, Finished::Settled, ZERO);
        fill(&mut queue, "greedy", 100);
        assert_eq!(drain(&mut queue).len(), 12);
        fill(&mut queue, "calm", 1);
        assert_eq!(drain(&mut queue), [("calm", 0)], "it waits for nobody");
        fill(&mut queue, "third", 100);
        let third = drain(&mut queue).len();
        assert!((1..=3).contains(&third), "{third}");
    }

    #[test]
    fn two_greedy_lanes_get_the_same_and_leave_something() {
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        fill(&mut queue, "a", 100);
        fill(&mut queue, "b", 100);
        let order = drain(&mut queue);
        let of = |name: &str| order.iter().filter(|(lane, _)| *lane == name).count();
        assert_eq!((of("a"), of("b")), (7, 7));
    }

    #[test]
    fn whoever_comes_finds_a_free_worker_however_many_lanes_are_greedy() {
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        for lane in ["a", "b", "c", "d", "e", "f"] {
            (0..3).for_each(|key| queue.add(&lane, key, Priority::Edit));
        }
        assert_eq!(drain(&mut queue).len(), 14);
        fill(&mut queue, "calm", 2);
        queue.add(&"calm", 0, Priority::Edit);
        assert_eq!(drain(&mut queue), [("calm", 0)]);
        fill(&mut queue, "later", 1);
        queue.add(&"later", 0, Priority::Edit);
        assert_eq!(drain(&mut queue), [("later", 0)]);
    }

    #[test]
    fn the_lane_with_the_fewest_in_work_is_next() {
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        fill(&mut queue, "a", 100);
        (0..4).for_each(|_| assert!(queue.pop(ZERO).is_some()));
        fill(&mut queue, "b", 100);
        let lanes: Vec<&str> = drain(&mut queue).into_iter().map(|(lane, _)| lane).collect();
        assert_eq!(lanes[..5], ["b", "b", "b", "b", "a"]);
    }

    #[test]
    fn a_lane_whose_guest_runs_into_its_limits_gets_narrower_then_rests_and_recovers() {
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        fill(&mut queue, "calm", 1);
        fill(&mut queue, "hog", 1000);
        let took = Duration::from_millis(100);
        let mut now = ZERO;
        let mut round = |queue: &mut Queue<&'static str, u32>, finished: Finished| {
            let keys: Vec<u32> = std::iter::from_fn(|| queue.pop(now))
                .filter(|(lane, _)| *lane == "hog")
                .map(|(_, key)| key)
                .collect();
            now += took;
            for key in &keys {
                queue.finish(&"hog", key, finished, now);
            }
            keys.len()
        };
        assert!(round(&mut queue, Finished::Overran(ZERO)) > 8);
        assert_eq!(round(&mut queue, Finished::Overran(ZERO)), 0, "it rests");
        let rest = queue.next_due().expect("and is woken");
        assert!(rest <= Duration::from_millis(100) + took * REST, "{rest:?}");
        for _ in 0..3 {
            assert_eq!(round(&mut queue, Finished::Settled), 0);
        }
        assert_eq!(round(&mut queue, Finished::Settled), 1);
        assert_eq!(round(&mut queue, Finished::Settled), 2, "each success makes it wider");
        assert_eq!(round(&mut queue, Finished::Settled), 4);
    }

    #[test]
    fn a_swap_gives_a_narrow_lane_all_its_workers_back() {
        let mut queue: Queue<&str, u32> = Queue::new(7, 16);
        fill(&mut queue, "hog", 100);
        for (lane, key) in drain(&mut queue) {
            queue.finish(&lane, &key, Finished::Overran(ZERO), Duration::from_secs(1));
        }
        assert!(queue.pop(Duration::from_secs(1)).is_none());
        queue.hurry(&"hog");
        assert_eq!(std::iter::from_fn(|| queue.pop(Duration::from_secs(1))).count(), 16);
    }

    #[test]
    fn the_background_gets_a_turn_however_many_edits_there_are() {
        let mut queue = queue();
        (0..4).for_each(|key| queue.add(&"a", 100 + key, Priority::Background));
        fill(&mut queue, "a", 21);
        let order: Vec<u32> = drain(&mut queue).into_iter().map(|(_, key)| key).collect();
        assert_eq!((order[7], order[15], order[23]), (100, 101, 102), "{order:?}");
    }

    #[test]
    fn a_lane_of_the_same_name_does_not_hand_out_what_is_still_in_work() {
        let mut queue = queue();
        queue.add(&"a", 1, Priority::Edit);
        queue.pop(ZERO);
        queue.remove_lane(&"a");
        queue.add(&"a", 1, Priority::Edit);
        assert_eq!(queue.pop(ZERO), None);
        queue.finish(&"a", &1, Finished::Failed(ZERO), ZERO);
        assert_eq!(queue.pop(ZERO), Some(("a", 1)));
    }

    #[test]
    fn a_removed_lane_leaves_nothing_behind() {
        let mut queue = queue();
        queue.add(&"a", 1, Priority::Edit);
        queue.add(&"a", 2, Priority::Edit);
        queue.pop(ZERO);
        queue.remove_lane(&"a");
        queue.finish(&"a", &1, Finished::Failed(ZERO), ZERO);
        assert_eq!((queue.pop(ZERO), queue.next_due()), (None, None));
    }

    proptest! {
        /// Whatever happens in whatever order, no key is in work twice, and none that was added is forgotten.
        #[test]
        fn no_key_is_in_work_twice_and_none_is_lost(workers in 1usize..6, steps in prop::collection::vec((0u8..4, 0u32..4, 0usize..2), 0..200)) {
            let lanes = ["a", "b"];
            let mut queue: Queue<&str, u32> = Queue::new(7, workers);
            let mut in_work: BTreeSet<(&str, u32)> = BTreeSet::new();
            let mut owed: BTreeSet<(&str, u32)> = BTreeSet::new();
            let mut now = ZERO;
            for (step, key, lane) in steps {
                let lane = lanes[lane];
                now += Duration::from_millis(50);
                match step {
                    0 => { queue.add(&lane, key, Priority::Edit); owed.insert((lane, key)); }
                    1 => { queue.add(&lane, key, Priority::Background); owed.insert((lane, key)); }
                    2 => if let Some(popped) = queue.pop(now) {
                        prop_assert!(in_work.insert(popped));
                        owed.remove(&popped);
                    },
                    _ => if let Some((lane, key)) = in_work.pop_first() {
                        let finished = match key { 0 => Finished::Settled, 1 => Finished::Failed(ZERO), 2 => Finished::Overran(ZERO), _ => Finished::Again(ZERO) };
                        queue.finish(&lane, &key, finished, now);
                        if key > 0 { owed.insert((lane, key)); }
                    },
                }
            }
            for (lane, key) in in_work {
                queue.finish(&lane, &key, Finished::Settled, now);
            }
            let later = now + BACKOFF_MAX * 2;
            let mut rest = BTreeSet::new();
            while let Some((lane, key)) = queue.pop(later) {
                queue.finish(&lane, &key, Finished::Settled, later);
                rest.insert((lane, key));
            }
            prop_assert!(owed.is_subset(&rest), "owed {owed:?}, came {rest:?}");
        }
    }
}
