//! Patterns. Every pattern is matched in time that is linear in the text.

use regex::{Regex, RegexBuilder};

use super::PATTERN_BYTES_MAX;

/// The longest source of a pattern, in bytes. A longer one does not fit when it is compiled. While a pattern is parsed, a Unicode class
/// takes a thousand times the bytes of its name.
const SOURCE_BYTES_MAX: usize = 4 << 10;
/// The most memory for the automaton that a match builds, in bytes. A pattern that needs more is matched more slowly.
const CACHE_BYTES_MAX: usize = 128 << 10;

/// Why a pattern is refused.
#[derive(Debug)]
pub(super) enum Refused {
    TooLarge,
    /// It is not a pattern, or it cannot be matched in linear time.
    Unknown,
}

/// Compiles a pattern of JSON Schema, which is one of ECMA 262, without look-around and back-references.
pub(super) fn compile(pattern: &str) -> Result<Regex, Refused> {
    if pattern.len() > SOURCE_BYTES_MAX {
        return Err(Refused::TooLarge);
    }
    let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| Refused::Unknown)?;
    let mut builder = RegexBuilder::new(&translated);
    builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(CACHE_BYTES_MAX);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Refused::TooLarge,
        _ => Refused::Unknown,
    })
}
