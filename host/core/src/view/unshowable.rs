//! What becomes of objects that their guest cannot show: whether a list or a watch fails over one, or leaves it out and says so.
//!
//! Only failures that last are meant: what the guest declares of an object, a trap, a limit that the object will always meet. One that may
//! pass is no property of the object, and whoever asks is told to ask again.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many objects that it has left out a watch remembers. What it does not remember it cannot know, and then its client is told at worst
/// that an object is gone which it never had, or that one has changed which is new to it: both do no harm.
const LEFT_OUT_MAX: usize = 1_024;

/// What lists and watches of whole objects do about an object that its guest cannot show. A get of it is an error in any case; a table has a
/// row that says so; metadata are shown without the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Unshowable {
    /// A list fails and names the first of them. A watch ends with an error.
    #[default]
    Fail,
    /// A list leaves them out, with a warning that counts them. To a watch, such an object is gone until it can be shown again.
    Omit,
}

/// What a client is told of a list that leaves objects out. `among` says how many objects there were when the answer began, if it has not
/// ended by then: what it says later is not known yet. None: nothing is left out.
pub fn warning(left_out: usize, among: Option<usize>) -> Option<String> {
    match among {
        None if left_out == 0 => None,
        None if left_out == 1 => Some("1 object cannot be shown, and is left out".to_owned()),
        None => Some(format!("{left_out} objects cannot be shown, and are left out")),
        Some(among) => Some(format!(
            "{left_out} of the first {among} objects cannot be shown, and are left out; there may be more"
        )),
    }
}

/// How an object has changed, as a watch says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It is another than before.
    Modified,
    /// It is gone.
    Deleted,
}

impl Change {
    /// The change of an event of this type; none for an event that is about no object.
    pub fn of(r#type: &str) -> Option<Self> {
        [Self::Added, Self::Modified, Self::Deleted].into_iter().find(|change| change.name() == r#type)
    }

    /// The type of an event that says so.
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The objects that a watch has left out, under [`Unshowable::Omit`].
#[derive(Debug, Default)]
pub struct LeftOut {
    uids: HashSet<Box<str>>,
}

impl LeftOut {
    /// What the client of the watch is told of a change of an object. None: nothing, because it does not have the object.
    pub fn told(&mut self, change: Change, uid: &str, can_be_shown: bool) -> Option<Change> {
        let (told, is_left_out) = decide(change, self.uids.contains(uid), can_be_shown);
        if !is_left_out {
            self.uids.remove(uid);
        } else if self.uids.len() < LEFT_OUT_MAX {
            self.uids.insert(uid.into());
        }
        told
    }
}

/// What a client is told of a change, and whether the object is left out from then on. `is_left_out` says that the client does not have the
/// object. Otherwise it may have it: a watch that begins from a version does not know what its client has.
fn decide(change: Change, is_left_out: bool, can_be_shown: bool) -> (Option<Change>, bool) {
    use Change::{Added, Deleted, Modified};
    match (change, is_left_out, can_be_shown) {
        (Deleted, true, _) => (None, false),
        (Deleted, false, _) => (Some(Deleted), false),
        (Added | Modified, true, true) => (Some(Added), false),
        (Added | Modified, false, true) => (Some(change), false),
        // It is new to everybody.
        (Added, _, false) | (Modified, true, false) => (None, true),
        (Modified, false, false) => (Some(Deleted), true),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Change::{Added, Deleted, Modified},
        *,
    };

    #[test]
    fn a_client_is_told_what_makes_it_believe_in_exactly_what_can_be_shown() {
        for (change, is_left_out, can_be_shown, expected) in [
            (Added, false, true, (Some(Added), false)),
            (Added, false, false, (None, true)),
            (Added, true, true, (Some(Added), false)),
            (Added, true, false, (None, true)),
            (Modified, false, true, (Some(Modified), false)),
            (Modified, false, false, (Some(Deleted), true)),
            (Modified, true, true, (Some(Added), false)),
            (Modified, true, false, (None, true)),
            (Deleted, false, true, (Some(Deleted), false)),
            (Deleted, false, false, (Some(Deleted), false)),
            (Deleted, true, true, (None, false)),
            (Deleted, true, false, (None, false)),
        ] {
            let decided = decide(change, is_left_out, can_be_shown);
            assert_eq!(decided, expected, "{change:?}, left out: {is_left_out}, shown: {can_be_shown}");
        }
    }

    #[test]
    fn a_client_is_warned_of_what_is_left_out_as_far_as_that_is_known() {
        assert_eq!(warning(0, None), None);
        assert_eq!(warning(1, None).unwrap(), "1 object cannot be shown, and is left out");
        assert_eq!(warning(3, None).unwrap(), "3 objects cannot be shown, and are left out");
        let begun = warning(0, Some(2_000)).unwrap();
        assert!(
            begun.starts_with(
                "0 of the first 2000 objects cannot be shown, and are left out; there may be more"
            )
        );
    }

    #[test]
    fn a_watch_knows_what_it_has_left_out() {
        let mut left_out = LeftOut::default();
        let mut told = |change, can_be_shown| left_out.told(change, "u", can_be_shown);
        // The watch began from a version at which its client had the object.
        assert_eq!(told(Modified, false), Some(Deleted));
        assert_eq!(told(Modified, false), None);
        assert_eq!(told(Modified, true), Some(Added));
        assert_eq!(told(Modified, true), Some(Modified));
        assert_eq!(told(Modified, false), Some(Deleted));
        assert_eq!(told(Deleted, false), None);
        assert_eq!(told(Added, true), Some(Added), "another of that uid cannot be, and would be new");
    }

    #[test]
    fn what_is_left_out_beyond_what_a_watch_remembers_is_told_as_if_the_client_had_it() {
        let mut left_out = LeftOut::default();
        for at in 0..=LEFT_OUT_MAX {
            assert_eq!(left_out.told(Added, &at.to_string(), false), None);
        }
        let last = LEFT_OUT_MAX.to_string();
        assert_eq!(left_out.uids.len(), LEFT_OUT_MAX);
        assert_eq!(left_out.told(Modified, &last, true), Some(Modified));
        assert_eq!(left_out.told(Modified, &last, false), Some(Deleted));
        assert_eq!(left_out.told(Modified, "0", true), Some(Added));
    }

    #[test]
    fn a_change_is_told_by_the_word_that_it_was_read_from() {
        for change in [Added, Modified, Deleted] {
            assert_eq!(Change::of(change.name()), Some(change));
        }
        assert_eq!(Change::of("BOOKMARK"), None);
    }
}
