//! [`Items`]: takes a list apart while it arrives, so that a list of any length takes the memory of one object.

use bytes::{Bytes, BytesMut};

/// The longest object of a list, in bytes. One is at most 1.5 MiB in etcd, and about as much again in managed fields.
const ITEM_BYTES_MAX: usize = 8 << 20;

/// The longest list without its items, in bytes: its metadata.
const REST_BYTES_MAX: usize = 64 << 10;

/// A list in JSON that is taken apart while it arrives.
#[derive(Debug, Default)]
pub struct Items {
    /// What arrived of the item that is not complete yet.
    item: BytesMut,
    /// Everything but the items.
    rest: Vec<u8>,
    /// How many objects and lists are open.
    depth: usize,
    /// Where in `rest` the last text of the list itself begins: a key, for one that opens something.
    last_text: usize,
    in_text: bool,
    is_escaped: bool,
    in_items: bool,
    has_items: bool,
}

/// What arrives is no list of objects, or has parts that are too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoList {
    /// It ended before its end, or is no JSON.
    #[error("the list of the API server is not complete")]
    Incomplete,
    /// A part of it is too large.
    #[error("the list of the API server has a part that is too large")]
    TooLarge,
}

impl Items {
    /// Takes in what arrived, and adds each item that is complete to `items`.
    ///
    /// # Errors
    /// When a part is too large.
    pub fn push(&mut self, chunk: &Bytes, items: &mut Vec<Bytes>) -> Result<(), NoList> {
        // Where the present item begins in this chunk.
        let (mut begin, mut next) = (0, 0);
        while let Some(byte) = chunk.get(next).copied() {
            let at = next;
            next += 1;
            let was_in_item = self.is_in_item();
            self.step(byte);
            match (was_in_item, self.is_in_item()) {
                (false, true) => begin = at,
                (true, false) => {
                    let end = chunk.slice(begin..=at);
                    items.push(match self.item.is_empty() {
                        true => end,
                        false => {
                            self.item.extend_from_slice(&end);
                            self.item.split().freeze()
                        }
                    });
                    begin = at + 1;
                }
                (false, false) if !self.in_items || self.depth < 2 || byte == b'[' => self.rest.push(byte),
                _ => {}
            }
            next += self.plain(chunk.get(next..).unwrap_or_default());
        }
        if self.is_in_item() {
            self.item.extend_from_slice(&chunk.slice(begin..));
        }
        match self.item.len() > ITEM_BYTES_MAX || self.rest.len() > REST_BYTES_MAX {
            true => Err(NoList::TooLarge),
            false => Ok(()),
        }
    }

    /// How many bytes of an item have arrived that is not complete.
    pub fn unfinished_bytes(&self) -> usize {
        self.item.len()
    }

    /// The list without its items, once all of it has arrived.
    ///
    /// # Errors
    /// When it ended too early.
    pub fn rest(self) -> Result<Vec<u8>, NoList> {
        let is_complete = self.depth == 0 && !self.in_text && !self.rest.is_empty();
        is_complete.then_some(self.rest).ok_or(NoList::Incomplete)
    }

    fn is_in_item(&self) -> bool {
        self.in_items && self.depth > 2
    }

    /// How many of these bytes are within an item and change nothing: most of a list.
    fn plain(&self, bytes: &[u8]) -> usize {
        if !self.is_in_item() || self.is_escaped {
            return 0;
        }
        let changes = match self.in_text {
            true => bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')),
            false => bytes.iter().position(|byte| matches!(byte, b'"' | b'[' | b']' | b'{' | b'}')),
        };
        changes.unwrap_or(bytes.len())
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_text = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                if self.depth == 1 {
                    self.last_text = self.rest.len();
                }
            }
            b'[' | b'{' => {
                self.depth += 1;
                if byte == b'[' && self.depth == 2 && !self.has_items && self.opens_items() {
                    (self.in_items, self.has_items) = (true, true);
                }
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 1 {
                    self.in_items = false;
                }
            }
            _ => {}
        }
    }

    fn opens_items(&self) -> bool {
        self.rest.get(self.last_text..).is_some_and(|text| text.starts_with(b"\"items\""))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn taken_apart(list: &str, chunk_bytes: usize) -> (Vec<Value>, Result<Value, NoList>) {
        let (mut reader, mut items) = (Items::default(), Vec::new());
        for chunk in list.as_bytes().chunks(chunk_bytes) {
            reader.push(&Bytes::copy_from_slice(chunk), &mut items).unwrap();
        }
        let items = items.iter().map(|item| serde_json::from_slice(item).unwrap()).collect();
        (items, reader.rest().map(|rest| serde_json::from_slice(&rest).unwrap()))
    }

    fn lists() -> Vec<Value> {
        let pod = json!({"metadata": {"name": "a\"]}[{\\", "items": [1, {"items": []}]}, "spec": {"é": ["[", "{"]}});
        vec![
            json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7", "items": [{}]}, "items": [pod, {}, pod]}),
            json!({"items": [], "kind": "items", "metadata": {"a": "items"}}),
            json!({"items": null, "metadata": {}}),
            json!({"other": [{"items": [{}]}], "items": [{"a": 1}], "z": [{}]}),
        ]
    }

    #[test]
    fn a_list_is_taken_apart_alike_however_it_arrives() {
        for list in lists() {
            for text in [list.to_string(), serde_json::to_string_pretty(&list).unwrap()] {
                for chunk_bytes in [1, 2, 3, 7, 64, 10_000] {
                    let (items, rest) = taken_apart(&text, chunk_bytes);
                    assert_eq!(
                        items,
                        list["items"].as_array().cloned().unwrap_or_default(),
                        "{chunk_bytes}: {text}"
                    );
                    let mut rest_of_list = list.clone();
                    if list["items"].is_array() {
                        rest_of_list["items"] = json!([]);
                    }
                    assert_eq!(rest.unwrap(), rest_of_list, "{chunk_bytes}: {text}");
                }
            }
        }
    }

    #[test]
    fn a_list_that_ends_too_early_is_none() {
        let text = lists()[0].to_string();
        for length in 0..text.len() {
            let Some(part) = text.get(..length) else { continue };
            assert_eq!(taken_apart(part, 10).1, Err(NoList::Incomplete), "{part}");
        }
    }

    #[test]
    fn an_object_that_is_too_large_ends_the_list_before_it_takes_the_memory() {
        let (mut reader, mut items) = (Items::default(), Vec::new());
        let chunk = Bytes::from(vec![b' '; 1 << 20]);
        reader.push(&Bytes::from_static(b"{\"items\": [{"), &mut items).unwrap();
        let pushed = (0..100).take_while(|_| reader.push(&chunk, &mut items).is_ok()).count();
        assert_eq!(pushed, 7);
    }
}
