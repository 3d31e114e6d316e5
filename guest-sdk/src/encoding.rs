//! Encodings that guests need for Kubernetes objects: SHA-256 in hexadecimal digits, and base64.

use sha2::{Digest, Sha256};

/// The SHA-256 of the bytes, in lower-case hexadecimal digits. Use it for annotations that change with the content of a ConfigMap.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes.as_ref()) {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex
}

/// Base64 with padding (RFC 4648, 4): the form of the values in a Secret's `data`.
pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group
            .iter()
            .enumerate()
            .fold(0_u32, |bits, (index, byte)| bits | u32::from(*byte) << (16 - 8 * index));
        for position in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * position) & 63) as usize];
            // A group of n bytes fills n + 1 digits.
            text.push(if position <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_agrees_with_the_published_vectors() {
        assert_eq!(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn base64_agrees_with_the_vectors_of_rfc_4648() {
        let encoded = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(base64);
        assert_eq!(encoded, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64([0xfb, 0xff, 0xfe]), "+//+");
    }
}
