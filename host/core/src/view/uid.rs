//! Uids: what is shown has another uid than its backing object.
//!
//! The garbage collector keys its graph by uid alone. With two objects under one uid it forgets owners, and deletes or leaks what they own.
//! So a uid is the backing object's, combined with a mask of the view's group and resource by XOR. That is its own reverse, so that
//! preconditions are mapped without a read.

use sha2::{Digest, Sha256};

/// What uids of one resource are combined with. The bits of a UUID that say its version and variant stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UidMask([u8; 16]);

impl UidMask {
    /// The mask of a resource.
    pub fn of(group: &str, resource: &str) -> Self {
        let hash = Sha256::digest(format!("{group}/{resource}"));
        let mut mask = [0; 16];
        mask.iter_mut().zip(hash).for_each(|(byte, hashed)| *byte = hashed);
        // RFC 9562: the version is in the upper half of byte 6, the variant in the upper two bits of byte 8.
        mask[6] &= 0x0f;
        mask[8] &= 0x3f;
        Self(mask)
    }

    /// The other uid: what is shown of a backing uid, and the backing uid of what is shown. What is no UUID stays as it is: no object has
    /// it, on either side.
    pub fn map(&self, uid: &str) -> String {
        let Some(mut bytes) = parse(uid) else { return uid.to_owned() };
        bytes.iter_mut().zip(self.0).for_each(|(byte, mask)| *byte ^= mask);
        let mut text = String::with_capacity(uid.len());
        for (at, byte) in bytes.into_iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                text.push('-');
            }
            let digits = [byte >> 4, byte & 0x0f].map(|digit| char::from_digit(digit.into(), 16));
            text.extend(digits.into_iter().flatten());
        }
        text
    }
}

/// The bytes of a UUID as the API server writes it.
fn parse(uid: &str) -> Option<[u8; 16]> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let is_in_form =
        uid.len() == 36 && uid.bytes().enumerate().all(|(at, byte)| (byte == b'-') == DASHES.contains(&at));
    if !is_in_form {
        return None;
    }
    let digits = uid.bytes().filter(|byte| *byte != b'-').map(|byte| char::from(byte).to_digit(16));
    let mut digits = digits.map(|digit| u8::try_from(digit?).ok());
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = digits.next()?? << 4 | digits.next()??;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    #[test]
    fn a_uid_maps_to_another_uuid_of_its_version_and_back() {
        let mask = UidMask::of("farm.example.com", "llamas");
        let shown = mask.map(UID);
        assert_ne!(shown, UID);
        assert_eq!((shown.len(), &shown[14..15]), (36, "4"), "{shown}");
        assert!(["8", "9", "a", "b"].contains(&&shown[19..20]), "{shown}");
        assert_eq!(mask.map(&shown), UID);
    }

    #[test]
    fn two_resources_over_one_kind_have_two_uids_for_one_object() {
        let shown = |group: &str, resource: &str| UidMask::of(group, resource).map(UID);
        assert_ne!(shown("farm.example.com", "llamas"), shown("farm.example.com", "farmpods"));
        assert_ne!(shown("farm.example.com", "llamas"), shown("zoo.example.com", "llamas"));
    }

    #[test]
    fn what_is_no_uuid_stays_as_it_is() {
        let mask = UidMask::of("a.b", "c");
        for uid in ["", "x", "6f9619ff8b864011b42d00c04fc964ff", "6f9619ff-8b86-4011-b42d-00c04fc964fg", "ä"]
        {
            assert_eq!(mask.map(uid), uid);
        }
    }
}
