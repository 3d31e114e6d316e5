//! pintle-core
