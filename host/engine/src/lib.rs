//! pintle-engine
