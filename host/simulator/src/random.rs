//! What the API server makes up: uids and generated names, from a seed.

use std::ops::Range;

use pintle_runtime::clock::Random;

/// A uid in the form that the API server gives them.
pub(crate) fn uid(random: &mut Random) -> String {
    let (high, low) = (random.next_u64(), random.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

/// The numbers of a range, each once, from a random start.
pub(crate) fn numbers(random: &mut Random, range: Range<u64>) -> impl Iterator<Item = u64> + use<> {
    let start = range.start + random.below(range.end - range.start);
    (start..range.end).chain(range.start..start)
}

/// The five characters at the end of a generated name. There are no vowels, so that they spell no words.
pub(crate) fn suffix(random: &mut Random) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let letter = |value: u64| char::from(LETTERS[usize::try_from(value).unwrap_or(0)]);
    (0..5).map(|_| letter(random.below(27))).collect()
}
