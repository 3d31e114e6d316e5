//! pintle-guest
