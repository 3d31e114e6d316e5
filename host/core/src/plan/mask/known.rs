//! [`Known`]: texts that are found in others, and what stands in their place.

use std::{collections::HashMap, fmt};

/// How long a text must be to be looked for, in bytes. Shorter ones are a part of too much that has nothing to do with them.
pub(super) const BYTES_MIN: usize = 8;

/// Texts that are found in others, by how they begin.
#[derive(Default)]
pub(super) struct Known(HashMap<[u8; BYTES_MIN], Vec<Text>>);

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known(..)")
    }
}

struct Text {
    text: Box<str>,
    instead: Box<str>,
}

impl Known {
    /// Looks for a text from now on, if it is long enough. What is known already stays.
    pub(super) fn add(&mut self, text: &str, instead: &str) {
        let Some(start) = text.as_bytes().first_chunk() else { return };
        let same = self.0.entry(*start).or_default();
        if same.iter().any(|known| *known.text == *text) {
            return;
        }
        // The longest first: nothing may be left of it.
        let at = same.partition_point(|known| known.text.len() >= text.len());
        same.insert(at, Text { text: text.into(), instead: instead.into() });
    }

    /// What stands in the place of a text, if it is one of them.
    pub(super) fn instead_of(&self, text: &str) -> Option<&str> {
        let same = self.0.get(text.as_bytes().first_chunk()?)?;
        same.iter().find(|known| *known.text == *text).map(|known| &*known.instead)
    }

    /// A text with all of them replaced; none if it has none of them.
    pub(super) fn replaced(&self, text: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let (mut made, mut copied, mut at) = (String::new(), 0, 0);
        while let Some(rest) = text.as_bytes().get(at..) {
            let Some(start) = rest.first_chunk() else { break };
            let same = self.0.get(start).into_iter().flatten();
            match same.into_iter().find(|known| rest.starts_with(known.text.as_bytes())) {
                Some(known) => {
                    // Where a text begins and ends in another, there a letter begins and ends.
                    made.push_str(text.get(copied..at).unwrap_or_default());
                    made.push_str(&known.instead);
                    at += known.text.len();
                    copied = at;
                }
                None => at += 1,
            }
        }
        (copied > 0).then(|| made + text.get(copied..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(texts: &[(&str, &str)]) -> Known {
        let mut known = Known::default();
        texts.iter().for_each(|(text, instead)| known.add(text, instead));
        known
    }

    #[test]
    fn the_longest_text_is_replaced_and_nothing_is_left_of_it() {
        let known =
            known(&[("password1", "<a>"), ("password123", "<b>"), ("password12", "<c>"), ("short", "<d>")]);
        assert_eq!(
            known.replaced("é password123, password1password12 passwor short").as_deref(),
            Some("é <b>, <a><c> passwor short")
        );
        assert_eq!((known.replaced("password"), known.replaced("")), (None, None));
        assert_eq!(known.instead_of("password12"), Some("<c>"));
    }

    #[test]
    fn letters_of_several_bytes_are_not_cut() {
        let known = known(&[("größer als", "<a>")]);
        assert_eq!(known.replaced("ö größer als ö").as_deref(), Some("ö <a> ö"));
    }
}
