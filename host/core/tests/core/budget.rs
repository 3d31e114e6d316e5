//! Who is admitted by a ledger of memory, whatever is asked for and given back in whatever order.

use std::collections::BTreeMap;

use pintle_core::budget::{Asked, Habit, Ledger, Need, SMALL_BYTES_MAX, Ticket};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn admitted(asked: Asked) -> Ticket {
    match asked {
        Asked::Admitted(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn waits(asked: Asked) -> Ticket {
    match asked {
        Asked::Waits(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_fits_is_admitted_and_what_does_not_waits_until_it_does() {
    let mut ledger = Ledger::new(336 * MIB);
    let first = admitted(ledger.ask(&"a", 140 * MIB));
    let other = admitted(ledger.ask(&"b", 140 * MIB));
    let third = waits(ledger.ask(&"c", 140 * MIB));
    assert_eq!(ledger.give_back(first).admitted, [third]);
    assert_eq!((ledger.held(), ledger.waiting()), (280 * MIB, 0));
    ledger.give_back(other);
    ledger.give_back(third);
    assert_eq!(ledger.held(), 0);
}

#[test]
fn what_is_larger_than_all_of_it_is_refused_at_once() {
    let mut ledger = Ledger::new(80 * MIB);
    assert_eq!(ledger.ask(&"a", 71 * MIB), Asked::TooLarge { bytes_max: 70 * MIB });
    admitted(ledger.ask(&"a", 70 * MIB));
}

#[test]
fn what_is_small_does_not_wait_behind_what_is_large() {
    let mut ledger = Ledger::new(336 * MIB);
    admitted(ledger.ask(&"a", 140 * MIB));
    admitted(ledger.ask(&"b", 140 * MIB));
    let large = waits(ledger.ask(&"c", 140 * MIB));
    let small: Vec<Ticket> = (0..10).map(|_| admitted(ledger.ask(&"d", 4 * MIB))).collect();
    // No more than their share, or what is large would wait for ever.
    let eleventh = waits(ledger.ask(&"d", 4 * MIB));
    assert_eq!(ledger.give_back(small[0]).admitted, [eleventh]);
    assert_eq!(ledger.waiting(), 1, "{large:?}");
}

#[test]
fn no_lane_holds_all_that_there_is_for_what_is_large() {
    let mut ledger = Ledger::new(336 * MIB);
    admitted(ledger.ask(&"greedy", 140 * MIB));
    waits(ledger.ask(&"greedy", 140 * MIB));
    admitted(ledger.ask(&"other", 140 * MIB));
}

#[test]
fn lanes_take_turns_however_many_of_one_wait() {
    let mut ledger = Ledger::new(80 * MIB);
    let first = admitted(ledger.ask(&"a", 60 * MIB));
    let more: Vec<Ticket> = (0..3).map(|_| waits(ledger.ask(&"a", 60 * MIB))).collect();
    let other = waits(ledger.ask(&"b", 60 * MIB));
    assert_eq!(ledger.give_back(first).admitted, [more[0]]);
    assert_eq!(ledger.give_back(more[0]).admitted, [other]);
    assert_eq!(ledger.give_back(other).admitted, [more[1]]);
}

#[test]
fn who_no_longer_waits_holds_up_nobody() {
    let mut ledger = Ledger::new(80 * MIB);
    let first = admitted(ledger.ask(&"a", 60 * MIB));
    let gone = waits(ledger.ask(&"b", 70 * MIB));
    let next = waits(ledger.ask(&"c", 10 * MIB));
    assert_eq!(ledger.give_back(gone).admitted, [next]);
    ledger.give_back(first);
}

#[test]
fn where_there_comes_to_be_less_those_who_wait_for_more_are_told() {
    let mut ledger = Ledger::new(336 * MIB);
    let first = admitted(ledger.ask(&"a", 140 * MIB));
    let large = waits(ledger.ask(&"a", 140 * MIB));
    let changed = ledger.set_capacity(100 * MIB);
    assert_eq!((changed.admitted, changed.too_large), (vec![], vec![large]));
    // What is held already is more than there is now.
    let small = waits(ledger.ask(&"b", MIB));
    assert_eq!(ledger.shrink(first, MIB).admitted, [small]);
}

#[test]
fn a_call_is_granted_what_was_seen_and_a_quarter_more() {
    let most = Need { memory_bytes: 64 * MIB, text_bytes: MIB, parsed_bytes: 75 * MIB };
    let mut habit = Habit::default();
    assert!(habit.grant(most).of_call(0) <= SMALL_BYTES_MAX / 2, "an ordinary call is small");
    habit.saw(Need { memory_bytes: 40 * MIB, text_bytes: MIB, parsed_bytes: 30 * MIB });
    assert_eq!(habit.grant(most).memory_bytes, 50 * MIB);
    assert_eq!(habit.grant(most).text_bytes, MIB);
    let once = habit.grant(most);
    for _ in 0..10 {
        habit.saw(Need::default());
    }
    assert!(habit.grant(most).memory_bytes > once.memory_bytes / 2, "it is not forgotten at once");
    for _ in 0..1000 {
        habit.saw(Need::default());
    }
    assert!(habit.grant(most).of_call(0) <= SMALL_BYTES_MAX / 2, "and in the end it is");
}

#[derive(Clone, Debug)]
enum Move {
    Ask(u8, u64),
    /// Gives back, or leaves, one of those there are.
    Leave(usize),
    Shrink(usize, u64),
    Resize(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        6 => (0u8..4, 0u64..160).prop_map(|(lane, mib)| Move::Ask(lane, mib * MIB)),
        5 => any::<usize>().prop_map(Move::Leave),
        2 => (any::<usize>(), 0u64..160).prop_map(|(which, mib)| Move::Shrink(which, mib * MIB)),
        1 => (16u64..400).prop_map(|mib| Move::Resize(mib * MIB)),
    ];
    prop::collection::vec(one, 1..120)
}

proptest! {
    /// Nothing is ever admitted beyond what there is; inside a lane the first comes first; and when everything is given back, everybody
    /// has come to his turn.
    #[test]
    fn all_are_admitted_in_the_end_and_never_too_much_at_once(moves in moves()) {
        let mut ledger: Ledger<u8> = Ledger::new(336 * MIB);
        let mut lanes: BTreeMap<Ticket, u8> = BTreeMap::new();
        let mut held: BTreeMap<Ticket, u64> = BTreeMap::new();
        let mut waiting: BTreeMap<Ticket, u64> = BTreeMap::new();
        for one in moves {
            let before = held.values().sum::<u64>();
            let (mut now, mut gone) = (Vec::new(), Vec::new());
            match one {
                Move::Ask(lane, bytes) => match ledger.ask(&lane, bytes) {
                    Asked::Admitted(ticket) => {
                        lanes.insert(ticket, lane);
                        waiting.insert(ticket, bytes);
                        now.push(ticket);
                    }
                    Asked::Waits(ticket) => {
                        lanes.insert(ticket, lane);
                        waiting.insert(ticket, bytes);
                    }
                    Asked::TooLarge { bytes_max } => prop_assert!(bytes > bytes_max),
                },
                Move::Leave(which) => {
                    let all: Vec<Ticket> = held.keys().chain(waiting.keys()).copied().collect();
                    if let Some(ticket) = all.get(which % all.len().max(1)) {
                        held.remove(ticket);
                        waiting.remove(ticket);
                        now = ledger.give_back(*ticket).admitted;
                    }
                }
                Move::Shrink(which, bytes) => {
                    let all: Vec<Ticket> = held.keys().copied().collect();
                    if let Some(ticket) = all.get(which % all.len().max(1)) {
                        let left = held.get_mut(ticket).unwrap();
                        *left = bytes.min(*left);
                        now = ledger.shrink(*ticket, bytes).admitted;
                    }
                }
                Move::Resize(bytes) => {
                    let changed = ledger.set_capacity(bytes);
                    (now, gone) = (changed.admitted, changed.too_large);
                }
            }
            for ticket in gone {
                prop_assert!(waiting.remove(&ticket).is_some());
            }
            for ticket in &now {
                let earlier = waiting.keys().filter(|other| lanes[other] == lanes[ticket] && *other < ticket);
                prop_assert!(earlier.count() == 0, "one that came later overtook in its lane");
                held.insert(*ticket, waiting.remove(ticket).unwrap());
            }
            let sum = held.values().sum::<u64>();
            prop_assert_eq!(ledger.held(), sum);
            prop_assert_eq!(ledger.waiting(), waiting.len());
            prop_assert!(now.is_empty() || sum <= ledger.capacity(), "{} of {}", sum, ledger.capacity());
            prop_assert!(sum <= ledger.capacity().max(before));
        }
        while let Some((ticket, _)) = held.pop_first() {
            for ticket in ledger.give_back(ticket).admitted {
                held.insert(ticket, waiting.remove(&ticket).unwrap());
            }
        }
        prop_assert!(waiting.is_empty(), "{:?} wait for ever", waiting);
        prop_assert_eq!(ledger.held(), 0);
    }

    /// One that waits is admitted after a bounded number of others, however many keep coming in other lanes, small ones and large.
    #[test]
    fn nobody_is_passed_by_for_ever(sizes in prop::collection::vec(1u64..140, 400), asks in 20u64..140) {
        let mut ledger: Ledger<u8> = Ledger::new(168 * MIB);
        let mut held: Vec<Ticket> = vec![admitted(ledger.ask(&0, 140 * MIB))];
        let mine = match ledger.ask(&1, asks * MIB) {
            Asked::Waits(ticket) => ticket,
            _ => return Ok(()),
        };
        for (index, size) in sizes.into_iter().enumerate() {
            let lane = 2 + (index % 3) as u8;
            if let Asked::Admitted(ticket) = ledger.ask(&lane, size * MIB) {
                held.push(ticket);
            }
            // The oldest ends first, as calls do.
            if held.len() > 4 || index % 2 == 0 {
                let now = if held.is_empty() { Vec::new() } else { ledger.give_back(held.remove(0)).admitted };
                if now.contains(&mine) {
                    return Ok(());
                }
                held.extend(now);
            }
        }
        prop_assert!(false, "400 others came, and it still waits");
    }
}
