//! The patterns of a validation, of `pattern` and of rules.
//!
//! Each is compiled once for a validation and then forgotten: to keep a guest's would take more memory than its module.

use std::{cell::RefCell, collections::BTreeMap};

use regex::Regex;

use super::Bounds;
use crate::pattern;

struct Compiled {
    bounds: Bounds,
    patterns: BTreeMap<String, Option<Regex>>,
}

thread_local! {
    /// Those of the validation that this thread is at. The functions of rules have no other way to them.
    static COMPILED: RefCell<Compiled> =
        const { RefCell::new(Compiled { bounds: Bounds::GUEST, patterns: BTreeMap::new() }) };
}

/// Does a part of a validation, with patterns within these bounds.
pub(super) fn within<T>(bounds: Bounds, work: impl FnOnce() -> T) -> T {
    COMPILED.set(Compiled { bounds, patterns: BTreeMap::new() });
    let result = work();
    COMPILED.with_borrow_mut(|compiled| compiled.patterns.clear());
    result
}

/// Uses a pattern.
///
/// # Errors
/// Why it cannot be compiled.
pub(super) fn with<T>(text: &str, work: impl FnOnce(&Regex) -> T) -> Result<T, String> {
    COMPILED.with_borrow_mut(|Compiled { bounds, patterns }| {
        if patterns.len() >= bounds.patterns && !patterns.contains_key(text) {
            return Err(format!("there are more than {} different patterns", bounds.patterns));
        }
        let compile = || pattern::compile(text, bounds.pattern_bytes).ok();
        match patterns.entry(text.to_owned()).or_insert_with(compile) {
            Some(pattern) => Ok(work(pattern)),
            None => Err(format!("{text:?} is no pattern, or too large")),
        }
    })
}
