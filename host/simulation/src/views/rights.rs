//! Who may do what in a run: the gateways and the one who asks may do everything, and nobody else anything.

use pintle_simulator::{Access, Action, User, Verdict};

use super::{gateways::USER, script::is_gateway};

/// These rights.
pub(super) struct Rights;

impl Access for Rights {
    fn may(&mut self, user: &User, _: &Action) -> Verdict {
        if user.name == USER || is_gateway(&user.name) {
            return Verdict::Allowed;
        }
        Verdict::NotAllowed(String::new())
    }
}
