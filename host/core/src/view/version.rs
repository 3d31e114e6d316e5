//! Resource versions: the backing object's, followed by the epoch of the view in six digits.
//!
//! A swap shows the same stored object differently, so it must also give it another version: what a client knows of the old one is void. All
//! other rules of versions are those of the backing kind, since the order of versions stays as it is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// How many digits of a version are the epoch's.
const DIGITS: usize = 6;

/// How many epochs there are.
const EPOCHS: u32 = 1_000_000;

/// What distinguishes what a View shows now from what another module, config or selector made of the same objects. It begins at a hash of
/// the View's uid, so that a View that is made again has another one, and rises.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Epoch(#[schemars(range(max = 999_999))] u32);

impl Epoch {
    /// The first epoch of a View. It is in the lower half, so that there are enough to come.
    pub fn first(view_uid: &str) -> Self {
        let hash = Sha256::digest(view_uid);
        let bytes = [hash[0], hash[1], hash[2], hash[3]];
        Self(u32::from_be_bytes(bytes) % (EPOCHS / 2))
    }

    /// The epoch after a swap. After the last, they begin again.
    #[must_use]
    pub fn next(self) -> Self {
        Self((self.0 + 1) % EPOCHS)
    }

    /// The version that is shown of an object, or list, of the backing kind with this version.
    pub fn shown(self, backing: &str) -> String {
        format!("{backing}{:06}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A version that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// None: the newest state.
    Unset,
    /// `0`: whatever state there is.
    Any,
    /// A version of a backing object in an epoch of some View of the resource.
    At {
        /// The version of the backing kind.
        backing: String,
        /// The epoch.
        epoch: Epoch,
    },
    /// No version that this resource ever had: it is too short to have an epoch.
    Foreign,
}

/// A version that is not a decimal number without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAVersion;

impl Sent {
    /// Reads a version.
    ///
    /// # Errors
    /// When it is not a decimal number without leading zeros.
    pub fn read(version: &str) -> Result<Self, NotAVersion> {
        match version {
            "" => return Ok(Self::Unset),
            "0" => return Ok(Self::Any),
            _ => {}
        }
        if version.starts_with('0') || !version.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotAVersion);
        }
        let cut = version.len().saturating_sub(DIGITS);
        let (backing, epoch) = version.split_at(cut);
        match epoch.parse() {
            Ok(epoch) if !backing.is_empty() => {
                Ok(Self::At { backing: backing.to_owned(), epoch: Epoch(epoch) })
            }
            _ => Ok(Self::Foreign),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_maps_there_and_back() {
        let epoch = Epoch(42);
        let shown = epoch.shown("123456789012345");
        assert_eq!(shown, "123456789012345000042");
        assert_eq!(Sent::read(&shown), Ok(Sent::At { backing: "123456789012345".into(), epoch }));
    }

    #[test]
    fn a_later_write_and_a_later_epoch_have_a_higher_version() {
        let number = |version: &str, epoch: u32| Epoch(epoch).shown(version).parse::<u128>().unwrap();
        assert!(number("9", 999_999) < number("10", 0));
        assert!(number("9", 3) < number("9", 4));
    }

    #[test]
    fn what_is_no_version_is_refused_and_what_has_no_epoch_is_foreign() {
        assert_eq!(Sent::read(""), Ok(Sent::Unset));
        assert_eq!(Sent::read("0"), Ok(Sent::Any));
        for foreign in ["1", "123456"] {
            assert_eq!(Sent::read(foreign), Ok(Sent::Foreign), "{foreign}");
        }
        for wrong in ["01", "-1", "1.0", "x", "1 ", "٣"] {
            assert_eq!(Sent::read(wrong), Err(NotAVersion), "{wrong}");
        }
    }

    #[test]
    fn epochs_begin_apart_rise_and_begin_again_after_the_last() {
        let first = Epoch::first("6f9619ff-8b86-4011-b42d-00c04fc964ff");
        assert_ne!(first, Epoch::first("6f9619ff-8b86-4011-b42d-00c04fc964fe"));
        assert!(first.0 < EPOCHS / 2);
        assert_eq!(first.next().0, first.0 + 1);
        assert_eq!(Epoch(EPOCHS - 1).next(), Epoch(0));
    }
}
