//! [`User`]: who a request is from, as reviews and impersonation have it.

use std::collections::BTreeMap;

/// The name of whoever shows nothing about itself.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of whoever shows nothing about itself.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group of everybody who is known.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group that may do everything, without a review.
pub const MASTERS: &str = "system:masters";

/// A caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid; empty if there is none.
    pub uid: String,
    /// The groups, in their order.
    pub groups: Vec<String>,
    /// What an authenticator adds, by its key.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Whether this user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// The same user in the group of everybody who is known. The front proxy leaves it out for itself: what asks for discovery and OpenAPI
    /// comes without a group. An anonymous caller that comes through it is not in the group.
    #[must_use]
    pub(super) fn known(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }
}
