//! The hash of an object as it was sent. It is kept on the object itself, in the annotation `pintle.dev/desired`, so that a restarted
//! host sees at once which objects need no write.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use pintle_wit::names::ANNOTATION_DESIRED;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// `v1:` and the hex SHA-256 of an object's canonical JSON; for a Secret an HMAC, since a plain hash of a short password could be
/// guessed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DesiredHash(String);

impl DesiredHash {
    /// The hash of `object` as it is sent: without the annotation itself, and without `uid` and `resourceVersion`, which are only
    /// preconditions of the write. The versions of the host, the module and the policy are not part of it, so that a new build of any of
    /// them rewrites nothing.
    pub fn of(object: &Value, key: &SealingKey) -> Self {
        let text = match says_how_it_is_sent(object) {
            true => canonical(&bare(object.clone())),
            false => canonical(object),
        };
        let is_secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
        Self(format!("v1:{}", if is_secret { hex(&key.seal(&text)) } else { hex(&Sha256::digest(&text)) }))
    }

    /// As the annotation has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn says_how_it_is_sent(object: &Value) -> bool {
    let metadata = object.get("metadata");
    let annotations = metadata.and_then(|metadata| metadata.get("annotations")).and_then(Value::as_object);
    let has = |key| metadata.is_some_and(|metadata| metadata.get(key).is_some());
    has("uid")
        || has("resourceVersion")
        || annotations
            .is_some_and(|annotations| annotations.is_empty() || annotations.contains_key(ANNOTATION_DESIRED))
}

fn bare(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("uid");
        metadata.remove("resourceVersion");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(ANNOTATION_DESIRED);
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    object
}

impl fmt::Display for DesiredHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DesiredHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key that seals the hashes of Secrets: the 32 bytes in Secret `pintle-system/pintle-key`.
#[derive(Clone)]
pub struct SealingKey([u8; 32]);

impl SealingKey {
    /// The key with these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn seal(&self, bytes: &[u8]) -> [u8; 32] {
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(&self.0);
        // A key of the block's own length is taken as it is; zero padding is what HMAC does to a shorter one (RFC 2104).
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(bytes);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(..)")
    }
}

/// JSON without spaces and with sorted keys: `serde_json` keeps objects in a sorted map.
pub fn canonical(value: &Value) -> Vec<u8> {
    // Plain data with string keys: writing it as JSON cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// The SHA-256 of several parts, each preceded by its length so that no two lists of parts look alike.
pub fn hash_parts(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Bytes in lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn key(byte: u8) -> SealingKey {
        SealingKey::new([byte; 32])
    }

    #[test]
    fn keys_are_sorted_whatever_order_they_came_in() {
        let text = r#"{"b":1,"a":{"d":2,"c":3}}"#;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(canonical(&value), br#"{"a":{"c":3,"d":2},"b":1}"#);
    }

    #[test]
    fn how_an_object_is_sent_does_not_change_its_hash() {
        let plain = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let sent = json!({"kind": "ConfigMap", "data": {"k": "v"}, "metadata": {"name": "a", "uid": "u", "resourceVersion": "1",
            "annotations": {"pintle.dev/desired": "v1:0"}}});
        assert_eq!(DesiredHash::of(&plain, &key(0)), DesiredHash::of(&sent, &key(1)));
        for metadata in
            [json!({"name": "a", "annotations": {}}), json!({"name": "a", "resourceVersion": "1"})]
        {
            let sent = json!({"kind": "ConfigMap", "data": {"k": "v"}, "metadata": metadata});
            assert_eq!(DesiredHash::of(&plain, &key(0)), DesiredHash::of(&sent, &key(0)));
        }
        let other = json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "w"}});
        assert_ne!(DesiredHash::of(&plain, &key(0)), DesiredHash::of(&other, &key(0)));
    }

    #[test]
    fn a_secret_is_sealed_with_the_key() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "a"}, "data": {"k": "dg=="}});
        assert_ne!(DesiredHash::of(&secret, &key(0)), DesiredHash::of(&secret, &key(1)));
        assert_eq!(DesiredHash::of(&secret, &key(2)), DesiredHash::of(&secret, &key(2)));
        assert_eq!(format!("{:?}", key(7)), "SealingKey(..)");
    }
}
