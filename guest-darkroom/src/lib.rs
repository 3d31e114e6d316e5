//! guest-darkroom
