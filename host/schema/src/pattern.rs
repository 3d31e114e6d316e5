//! Patterns. Every pattern is matched in time that is linear in the text.

use regex::{Regex, RegexBuilder};

/// How many bytes of a compiled pattern one byte of its source stands for. A longer source does not fit when it is compiled. While a pattern
/// is parsed, a Unicode class takes a thousand times the bytes of its name.
const BYTES_A_SOURCE_BYTE: usize = 16;
/// The most memory for the automaton that a match builds, in bytes. A pattern that needs more is matched more slowly.
const CACHE_BYTES_MAX: usize = 128 << 10;

/// Why a pattern is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    TooLarge,
    /// It is not a pattern, or it cannot be matched in linear time.
    Unknown,
}

/// Compiles a pattern that takes at most this many bytes.
pub(crate) fn compile(pattern: &str, bytes_max: usize) -> Result<Regex, Refused> {
    if pattern.len() > bytes_max / BYTES_A_SOURCE_BYTE {
        return Err(Refused::TooLarge);
    }
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(bytes_max).dfa_size_limit(CACHE_BYTES_MAX);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => Refused::TooLarge,
        _ => Refused::Unknown,
    })
}
