//! What a document weighs, before it is parsed.

use std::fmt::Write;

use crate::{Limits, bounded};

/// What a text has in it, as JSON, counted without parsing it. It is an upper bound, even if the text is not valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// How long it is, in bytes.
    pub bytes: usize,
    /// How many values it has: objects, lists and everything in them. Keys are not counted.
    pub values: usize,
    /// How many of the values are objects.
    pub objects: usize,
    /// How many of the values are lists.
    pub lists: usize,
    /// Its longest text, in bytes.
    pub longest_bytes: usize,
}

/// The memory of a map with its first entries: one node of a B-tree with room for eleven.
const OBJECT_BYTES: usize = 640;
/// The memory of a list with its first item: room for four.
const LIST_BYTES: usize = 128;
/// The memory that a value takes in its container: in a list, twice its own 32 bytes and once more while the list grows; in a map, a fifth
/// of a node and of the nodes above. It includes what an allocator adds when it rounds up the sizes of the text and of the key.
const VALUE_BYTES: usize = 192;
/// The memory of texts, as a multiple of them: once as they are, and a quarter more if an allocator has no size between.
const TEXT_FACTOR: usize = 2;
/// The memory of an error message about a text, as a multiple of the text. serde quotes an unexpected text, with up to six letters for one,
/// into a buffer that doubles as it grows.
const MESSAGE_FACTOR: usize = 20;

impl Weight {
    /// The most memory that parsing the text takes, in bytes, besides the text itself. A test compares this with the requests to an
    /// allocator.
    pub fn parsed_bytes(&self) -> usize {
        let parts = [
            (self.objects, OBJECT_BYTES),
            (self.lists, LIST_BYTES),
            (self.values, VALUE_BYTES),
            (self.bytes, TEXT_FACTOR),
            (self.longest_bytes, MESSAGE_FACTOR),
        ];
        parts.iter().fold(0, |sum, (count, each)| sum.saturating_add(count.saturating_mul(*each)))
    }

    /// The most memory that parsing takes for any text within these limits.
    pub fn parsed_bytes_max(limits: Limits) -> usize {
        // Every value is an object, and the whole text is one long string.
        let text = limits.bytes;
        Self { bytes: text, values: limits.values, objects: limits.values, lists: 0, longest_bytes: text }
            .parsed_bytes()
    }

    /// Weighs a text.
    ///
    /// # Errors
    /// The place where the text exceeds the limits of depth or of values. The rest of the text is not counted.
    pub fn of(text: &str, limits: Limits) -> Result<Self, Beyond> {
        let mut weight = Self { bytes: text.len(), ..Self::default() };
        let (mut depth, mut begins_in, mut escaped) = (0usize, None, false);
        // Whether a value comes next, unless the map or list that was opened ends at once.
        let mut opened = true;
        for (at, byte) in text.bytes().enumerate() {
            if let Some(begin) = begins_in {
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' => escaped = true,
                    b'"' => {
                        weight.longest_bytes = weight.longest_bytes.max(at - begin);
                        begins_in = None;
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => continue,
                b']' | b'}' => {
                    depth = depth.saturating_sub(1);
                    opened = false;
                    continue;
                }
                _ => {}
            }
            weight.values += usize::from(std::mem::take(&mut opened) || byte == b',');
            if weight.values > limits.values {
                return Err(Beyond::Values(at));
            }
            match byte {
                b'"' => begins_in = Some(at),
                b'{' => weight.objects += 1,
                b'[' => weight.lists += 1,
                _ => continue,
            }
            if byte != b'"' {
                depth += 1;
                opened = true;
                if depth > limits.depth {
                    return Err(Beyond::Depth(at));
                }
            }
        }
        if let Some(begin) = begins_in {
            weight.longest_bytes = weight.longest_bytes.max(text.len() - begin);
        }
        Ok(weight)
    }
}

/// The byte of a text at which it exceeds a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// Another value begins.
    Values(usize),
    /// Another level begins.
    Depth(usize),
}

/// The longest key in a path, and the longest path, in bytes.
const KEY_BYTES_MAX: usize = 64;
const PATH_BYTES_MAX: usize = 256;

/// The path of the value at a byte of a text: `children[0].object.data`. It is determined only after an error.
pub(crate) fn path_at(text: &str, end: usize) -> Option<String> {
    enum Step<'a> {
        Key(&'a str),
        Index(usize),
    }
    let mut steps: Vec<Step<'_>> = Vec::new();
    let (mut begins, mut escaped, mut last) = (None, false, "");
    for (at, byte) in text.bytes().enumerate().take(end.saturating_add(1)) {
        if let Some(begin) = begins {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    last = text.get(begin..at).unwrap_or_default();
                    begins = None;
                }
                _ => {}
            }
            continue;
        }
        match (byte, steps.last_mut()) {
            (b'"', _) => begins = Some(at + 1),
            (b'{', _) if at < end => steps.push(Step::Key("")),
            (b'[', _) if at < end => steps.push(Step::Index(0)),
            (b'}' | b']', _) => drop(steps.pop()),
            (b':', Some(Step::Key(key))) => *key = last,
            (b',', Some(Step::Key(key))) => *key = "",
            (b',', Some(Step::Index(index))) => *index += 1,
            _ => {}
        }
    }
    let mut path = String::new();
    for step in &steps {
        // Writing to a String cannot fail.
        let _ = match step {
            Step::Key("") => Ok(()),
            Step::Key(key) if path.is_empty() => write!(path, "{}", bounded(key, KEY_BYTES_MAX)),
            Step::Key(key) => write!(path, ".{}", bounded(key, KEY_BYTES_MAX)),
            Step::Index(index) => write!(path, "[{index}]"),
        };
        if path.len() > PATH_BYTES_MAX {
            break;
        }
    }
    Some(bounded(path, PATH_BYTES_MAX)).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weigh(text: &str) -> Weight {
        Weight::of(text, Limits::default()).expect("it keeps to the limits")
    }

    #[test]
    fn values_are_counted_as_a_parser_makes_them() {
        for (text, values, objects, lists) in [
            ("1", 1, 0, 0),
            (" { } ", 1, 1, 0),
            (r#"{"a":1,"b":[],"c":[1, "x,[{", {}]}"#, 7, 2, 2),
            (r#"[{"":0},{"":0}]"#, 5, 2, 1),
            (r#"{"a\"b":"\\","c":null}"#, 3, 1, 0),
        ] {
            let weight = weigh(text);
            assert_eq!((weight.values, weight.objects, weight.lists), (values, objects, lists), "{text}");
        }
        assert_eq!(weigh(r#"{"abc":"12345"}"#).longest_bytes, 6);
    }

    #[test]
    fn the_path_of_what_is_too_much_is_named() {
        let few = Limits { values: 4, ..Limits::default() };
        let text = r#"{"children":[{"object":{"a":0,"b":1}}]}"#;
        let Err(Beyond::Values(at)) = Weight::of(text, few) else { panic!("five values") };
        assert_eq!(path_at(text, at).as_deref(), Some("children[0].object"));
        let long = format!(r#"{{"{}":[0,[1]]}}"#, "k".repeat(1 << 20));
        let path = path_at(&long, long.len() - 4).expect("a path");
        assert!(path.len() <= KEY_BYTES_MAX + 8 && path.ends_with("…[1][0]"), "{path}");
    }
}
