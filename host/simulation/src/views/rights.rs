//! Who may do what in a run: the gateways and the one who asks may do everything, and nobody else anything.

use pintle_simulator::{Access, Action, User, Verdict};

use super::{
    gateways::{TOKEN, USER},
    script::is_gateway,
};

/// These rights.
pub(super) struct Rights;

impl Access for Rights {
    fn owner(&mut self, token: &str) -> Option<User> {
        (token == TOKEN).then(|| User { groups: vec!["system:authenticated".into()], ..User::named(USER) })
    }

    fn may(&mut self, user: &User, _: &Action) -> Verdict {
        if user.name == USER || is_gateway(&user.name) {
            return Verdict::Allowed;
        }
        Verdict::NotAllowed(String::new())
    }
}
