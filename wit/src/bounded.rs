//! Cuts messages to a maximum length while they are written.

use std::fmt::{self, Display, Write};

/// The text of a value, cut after this many bytes. Guests write parts of most messages, so no more of a message is formatted than is kept.
pub fn bounded(what: impl Display, bytes_max: usize) -> String {
    let mut cut = Cut { text: String::new(), bytes_max };
    if write!(cut, "{what}").is_err() {
        let mark = "…";
        let end = cut.text.floor_char_boundary(bytes_max.saturating_sub(mark.len()));
        cut.text.truncate(end);
        cut.text.push_str(mark);
    }
    cut.text
}

struct Cut {
    text: String,
    bytes_max: usize,
}

impl Write for Cut {
    /// Fails as soon as something is left out, which stops the formatting.
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.bytes_max - self.text.len();
        let end = more.floor_char_boundary(room.min(more.len()));
        self.text.push_str(more.get(..end).unwrap_or_default());
        if end < more.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(bounded("abc", 3), "abc");
        assert_eq!(bounded("abcd", 5), "abcd");
        assert_eq!(bounded("ääää", 6), "ä…");
        assert_eq!(bounded(format_args!("{}-{}", "a".repeat(9), "b".repeat(9)), 13), "aaaaaaaaa-…");
    }

    #[test]
    fn what_is_cut_off_is_not_written_first() {
        struct Endless<'a>(&'a Cell<usize>);
        impl Display for Endless<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    self.0.set(self.0.get() + 1);
                    f.write_str("again ")?;
                }
            }
        }
        let written = Cell::new(0);
        assert_eq!(bounded(Endless(&written), 20).len(), 20);
        assert_eq!(written.get(), 4);
    }
}
