//! Tests of the queue.

use super::*;
use proptest::prelude::*;

const ZERO: Duration = Duration::ZERO;

/// As many workers as any test wants.
fn queue() -> Queue<&'static str, u32> {
    Queue::new(1000)
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
    assert_eq!(queue.waiting(&"a", Priority::Edit) + queue.waiting(&"a", Priority::Background), 3);
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
    let mut queue = Queue::new(16);
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
    assert_eq!(delays[0], BACKOFF_FIRST);
    assert!(delays.windows(2).take(6).all(|pair| pair[1] > pair[0]), "{delays:?}");
    assert!(delays.iter().all(|delay| *delay <= BACKOFF_MAX), "{delays:?}");
    assert_eq!(queue.pop(now), Some(("a", 1)));
    queue.finish(&"a", &1, Finished::Settled, now);
    queue.add(&"a", 1, Priority::Edit);
    queue.pop(now);
    queue.finish(&"a", &1, Finished::Failed(ZERO), now);
    assert_eq!(queue.next_due(), Some(now + BACKOFF_FIRST));
}

#[test]
fn the_background_leaves_workers_for_edits_however_much_of_it_there_is() {
    let mut queue = Queue::new(4);
    (0..9).for_each(|key| queue.add(&"a", key, Priority::Background));
    assert_eq!(drain(&mut queue), [("a", 0), ("a", 1)]);
    queue.add(&"a", 8, Priority::Edit);
    queue.add(&"b", 10, Priority::Background);
    assert_eq!(drain(&mut queue), [("a", 8)]);
    queue.finish(&"a", &8, Finished::Settled, ZERO);
    assert_eq!(drain(&mut queue), [], "an edit that is done makes no room for the background");
    queue.finish(&"a", &0, Finished::Settled, ZERO);
    assert_eq!(drain(&mut queue), [("b", 10)]);
    let mut alone = Queue::new(1);
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
    assert_eq!(queue.next_due(), None);
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
}

#[test]
fn a_lane_never_holds_all_workers_while_there_are_others() {
    let mut queue: Queue<&str, u32> = Queue::new(16);
    fill(&mut queue, "only", 100);
    assert_eq!(drain(&mut queue).len(), 16, "where there is one lane it may");
    let mut queue: Queue<&str, u32> = Queue::new(16);
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
    let mut queue: Queue<&str, u32> = Queue::new(16);
    fill(&mut queue, "a", 100);
    fill(&mut queue, "b", 100);
    let order = drain(&mut queue);
    let of = |name: &str| order.iter().filter(|(lane, _)| *lane == name).count();
    assert_eq!((of("a"), of("b")), (7, 7));
}

#[test]
fn whoever_comes_finds_a_free_worker_however_many_lanes_are_greedy() {
    let mut queue: Queue<&str, u32> = Queue::new(16);
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
    let mut queue: Queue<&str, u32> = Queue::new(16);
    fill(&mut queue, "a", 100);
    (0..4).for_each(|_| assert!(queue.pop(ZERO).is_some()));
    fill(&mut queue, "b", 100);
    let lanes: Vec<&str> = drain(&mut queue).into_iter().map(|(lane, _)| lane).collect();
    assert_eq!(lanes[..5], ["b", "b", "b", "b", "a"]);
}

#[test]
fn a_lane_whose_guest_runs_into_its_limits_gets_narrower_then_rests_and_recovers() {
    let mut queue: Queue<&str, u32> = Queue::new(16);
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
    let mut queue: Queue<&str, u32> = Queue::new(16);
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
        let mut queue: Queue<&str, u32> = Queue::new(workers);
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
