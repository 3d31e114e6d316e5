//! Entity tags: a client that has a document already is not sent it again.

use std::fmt::Write;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The hash of a document. It is the same on every replica, as long as the document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etag(String);

impl Etag {
    /// The tag of a document.
    pub fn of(document: &Value) -> Self {
        let mut text = String::new();
        for byte in Sha256::digest(document.to_string()) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02X}");
        }
        Self(text)
    }

    /// The hash, for a URL.
    pub fn hash(&self) -> &str {
        &self.0
    }

    /// The tag, for the header `ETag`.
    pub fn quoted(&self) -> String {
        format!("\"{}\"", self.0)
    }

    /// Whether the header `If-None-Match` names the document: then the answer is 304, without a body.
    pub fn is_in(&self, if_none_match: &str) -> bool {
        if_none_match
            .split(',')
            .map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'))
            .any(|tag| tag == self.0 || tag == "*")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_has_a_tag_and_another_has_another() {
        let etag = Etag::of(&json!({"a": 1, "b": 2}));
        assert_eq!(etag, Etag::of(&json!({"b": 2, "a": 1})));
        assert_ne!(etag, Etag::of(&json!({"a": 1})));
        assert_eq!(etag.quoted(), format!("\"{}\"", etag.hash()));
        assert!(etag.is_in(&etag.quoted()) && etag.is_in(&format!("\"x\", W/{}", etag.quoted())));
        assert!(etag.is_in("*") && !etag.is_in("\"x\"") && !etag.is_in(""));
    }
}
