//! Text of others that the host passes on to people, in conditions and Events.

use pintle_wit::bounded;

/// Text without control characters (a terminal would obey them) and of at most `bytes_max` bytes.
pub fn clean(text: &str, bytes_max: usize) -> String {
    let plain: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    bounded(plain.trim(), bytes_max)
}

/// The same for the note of an Event: the API server refuses an Event with a longer one.
pub fn note(text: &str) -> String {
    clean(text, 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_loses_what_a_terminal_would_obey_and_keeps_whole_letters() {
        assert_eq!(clean("a\u{1b}[31m\nb", 100), "a [31m b");
        assert_eq!(clean("ääää", 6), "ä…");
        assert_eq!(clean("abc", 3), "abc");
    }
}
