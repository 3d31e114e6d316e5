//! Pseudo-random numbers: uids and generated names come from a seed.

use std::ops::Range;

/// A sequence of numbers that a seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence that continues from here, and differs for each seed except 0.
    pub(crate) fn apart(&self, seed: u64) -> Self {
        Self(self.0 ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A uid in the form that the API server gives them.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
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
    pub(crate) fn from(&mut self, range: Range<u64>) -> impl Iterator<Item = u64> + use<> {
        let start = range.start + self.next() % (range.end - range.start);
        (start..range.end).chain(range.start..start)
    }

    /// The five characters at the end of a generated name. There are no vowels, so that they spell no words.
    pub(crate) fn suffix(&mut self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let letter = |value: u64| char::from(LETTERS[usize::try_from(value % 27).unwrap_or(0)]);
        (0..5).map(|_| letter(self.next())).collect()
    }
}
