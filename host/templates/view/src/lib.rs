//! Serves __KIND__ (`__GROUP__/v1`), a view of ConfigMaps.

pub mod view;

pintle_guest::export!(views: Guest);

/// The guest.
pub struct Guest;

impl pintle_guest::Views for Guest {
    const NAME: &'static str = "__NAME__";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type All = (view::__KIND__,);
}
