//! [`FailedLists`]: why lists failed when they had begun, so that who asks for one again can be told.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use pintle_core::view::{Status, accept::Form, query::ListOptions, target::Objects};

use crate::identity::User;

/// How many lists that failed when they had begun are remembered, and for how long. Clients ask again after some seconds.
const FAILED_MAX: usize = 256;
const FAILED_FOR: Duration = Duration::from_secs(60);

/// What identifies a list: who asks, and for what. The name of a user alone is not who asks: all anonymous callers have one, and groups decide
/// which objects somebody may see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) user: User,
    pub(crate) target: Objects,
    pub(crate) options: ListOptions,
    pub(crate) form: Form,
}

/// The lists that failed when they had begun, so that nobody could be told why.
#[derive(Debug, Default)]
pub(crate) struct FailedLists(Mutex<VecDeque<(Wanted, Status, Duration)>>);

impl FailedLists {
    /// Remembers why a list failed.
    pub(crate) fn put(&self, wanted: Wanted, status: Status, now: Duration) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|(other, ..)| *other != wanted);
        if failed.len() >= FAILED_MAX {
            failed.pop_front();
        }
        failed.push_back((wanted, status, now));
    }

    /// Why a list failed, if it did a while ago. It is told once: then the list is tried again.
    pub(crate) fn take(&self, wanted: &Wanted, now: Duration) -> Option<Status> {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failed.retain(|(_, _, at)| now.saturating_sub(*at) < FAILED_FOR);
        let at = failed.iter().position(|(other, ..)| other == wanted)?;
        failed.remove(at).map(|(_, status, _)| status)
    }
}

#[cfg(test)]
mod tests {
    use pintle_core::view::{query::Query, target::GroupVersion};

    use super::*;

    fn wanted(user: &str, selector: &str) -> Wanted {
        let query = Query::new([("labelSelector".to_owned(), selector.to_owned())]);
        let target = Objects {
            group_version: GroupVersion { group: "g".into(), version: "v".into() },
            resource: "things".into(),
            namespace: None,
            name: None,
        };
        let user = User { name: user.into(), ..User::default() };
        Wanted { user, target, options: ListOptions::read(&query).unwrap(), form: Form::Object }
    }

    #[test]
    fn a_namesake_with_other_groups_is_not_told_why_a_list_broke_off() {
        let failed = FailedLists::default();
        failed.put(wanted("ann", ""), Status::internal_error("a cannot be shown"), Duration::ZERO);
        let mut namesake = wanted("ann", "");
        namesake.user.groups.push("guests".into());
        assert_eq!(failed.take(&namesake, Duration::ZERO), None);
    }

    #[test]
    fn who_asks_again_for_a_list_that_broke_off_is_told_why_once_and_for_a_while() {
        let failed = FailedLists::default();
        let second = Duration::from_secs(1);
        let why = Status::internal_error("a cannot be shown");
        failed.put(wanted("ann", "a=b"), why.clone(), second);
        assert_eq!(failed.take(&wanted("bob", "a=b"), second), None, "others are told nothing");
        assert_eq!(failed.take(&wanted("ann", "a=c"), second), None);
        assert_eq!(failed.take(&wanted("ann", "a=b"), second), Some(why.clone()));
        assert_eq!(failed.take(&wanted("ann", "a=b"), second), None, "then it is tried again");
        failed.put(wanted("ann", ""), why.clone(), second);
        assert_eq!(failed.take(&wanted("ann", ""), second + FAILED_FOR), None);
        for at in 0..FAILED_MAX + 10 {
            failed.put(wanted(&at.to_string(), ""), why.clone(), second);
        }
        assert_eq!(failed.0.lock().unwrap().len(), FAILED_MAX);
    }
}
