//! Text of others that the host passes on to people, in conditions and Events.

/// Text without control characters (a terminal would obey them) and of at most `bytes_max` bytes.
pub fn clean(text: &str, bytes_max: usize) -> String {
    let mut cleaned: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect::<String>()
        .trim()
        .into();
    if cleaned.len() > bytes_max {
        let mut end = bytes_max.saturating_sub("…".len());
        while !cleaned.is_char_boundary(end) {
            end -= 1;
        }
        cleaned.truncate(end);
        cleaned.push('…');
    }
    cleaned
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
