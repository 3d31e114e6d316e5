//! Patterns. They are matched in time that is linear in the text, whatever they say.

use regex::{Regex, RegexBuilder};

use super::PATTERN_BYTES_MAX;

/// The longest pattern as it stands, in bytes. One that is longer does not fit when it is compiled; and while it is read, a class of
/// Unicode takes a thousand times the bytes that name it.
const SOURCE_BYTES_MAX: usize = 4 << 10;
/// What a match may keep of the automaton that it makes on the way, in bytes. A pattern that wants more is matched more slowly.
const CACHE_BYTES_MAX: usize = 128 << 10;

/// Why a pattern is not taken.
#[derive(Debug)]
pub(super) enum Refused {
    TooLarge,
    /// It is no pattern, or has what cannot be matched in linear time.
    Unknown,
}

/// Compiles a pattern as JSON Schema has it: ECMA 262's, without look-around and back-references.
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
