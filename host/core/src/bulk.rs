//! [`Bulk`]: how much memory a text takes as values, counted before any is made.

/// The memory of a map that is not empty: one node of a B-tree with room for eleven entries.
const MAP_BYTES: usize = 640;

/// The memory of a value in its container, and of its key. A map that grows in order leaves six entries in each node, and a list that grows
/// has its items twice, and the old ones once. It includes what an allocator adds when it rounds up the sizes of two short texts.
const ENTRY_BYTES: usize = 160;

/// The memory of texts, as a multiple of them: as they are, and once more where a text has escapes.
const TEXT_FACTOR: usize = 2;

/// How many bytes are counted at a time: a count of them fits into a byte, so that a processor can count many at once.
const PIECE_BYTES: usize = u8::MAX as usize;

/// What of a text in JSON becomes values. It is an upper bound: texts within it count as if they were none, and it need not be valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bulk {
    /// How long it is, in bytes.
    bytes: usize,
    /// How many maps and lists open that are not empty, and how many values have another one before them.
    entries: usize,
    /// How many of those that open are maps.
    maps: usize,
}

impl Bulk {
    /// That of a text.
    pub fn of(text: &[u8]) -> Self {
        let mut bulk = Self::default();
        bulk.add(text);
        bulk
    }

    /// Takes in a further piece of the text.
    pub fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        let Some((last, _)) = piece.split_last() else { return };
        // A map that may go on in the next piece is taken to have something in it.
        self.maps += usize::from(*last == b'{');
        self.entries += usize::from(matches!(last, b'{' | b'[' | b','));
        let pairs = piece.chunks(PIECE_BYTES).zip(piece.get(1..).unwrap_or_default().chunks(PIECE_BYTES));
        for (bytes, nexts) in pairs {
            let (mut maps, mut lists, mut commas) = (0_u8, 0_u8, 0_u8);
            for (byte, next) in bytes.iter().zip(nexts) {
                maps += u8::from(*byte == b'{' && *next != b'}');
                lists += u8::from(*byte == b'[' && *next != b']');
                commas += u8::from(*byte == b',');
            }
            self.maps += usize::from(maps);
            self.entries += [maps, lists, commas].map(usize::from).iter().sum::<usize>();
        }
    }

    /// How long the text is, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.bytes
    }

    /// The most memory that the text takes as values, in bytes, also while it is parsed. A test compares this with the requests to an
    /// allocator.
    pub fn value_bytes(&self) -> usize {
        let parts = [(self.maps, MAP_BYTES), (self.entries, ENTRY_BYTES), (self.bytes, TEXT_FACTOR)];
        parts.iter().fold(0, |sum, (count, each)| sum.saturating_add(count.saturating_mul(*each)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_a_value_is_counted_and_what_is_empty_takes_nothing() {
        for (text, entries, maps) in [
            ("", 0, 0),
            ("1", 0, 0),
            ("{}", 0, 0),
            (r#"{"a":1}"#, 1, 1),
            (r#"{"a":1,"b":[],"c":[1,{}]}"#, 5, 1),
            (r#"[{"":0},{"":0}]"#, 4, 2),
        ] {
            let bulk = Bulk::of(text.as_bytes());
            assert_eq!((bulk.entries, bulk.maps, bulk.bytes), (entries, maps, text.len()), "{text}");
        }
    }

    #[test]
    fn a_text_counts_at_least_as_much_in_pieces_as_it_does_whole() {
        let text = r#"{"a":[{"b":[]},{},{"c":{"d":"{,["}}],"e":1}"#.repeat(100);
        let whole = Bulk::of(text.as_bytes());
        assert_eq!((whole.maps, whole.entries), (500, 1_100), "what stands in a text counts too");
        for size in [1, 7, 254, 255, 256, 4_000] {
            let mut bulk = Bulk::default();
            text.as_bytes().chunks(size).for_each(|piece| bulk.add(piece));
            let more = bulk.value_bytes() as f64 / whole.value_bytes() as f64;
            assert!((1.0..1.6).contains(&more), "{size}: {more}");
        }
    }
}
