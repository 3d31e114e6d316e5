//! [`Secret`]: 256 random bits, and how one is compared. [`Fingerprint`]: what knows one again without having it.

use pintle_runtime::clock;
use sha2::{Digest, Sha256};

/// 256 bits that nobody can guess, as 64 hex digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// The hash of what may be a secret, from which nobody can tell what that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of any text.
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// A new one.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub fn random() -> std::io::Result<Self> {
        let bytes: [u8; 32] = clock::random()?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Whether somebody showed it. The hashes are compared, so that the time it takes tells nothing of the secret.
    pub fn is(&self, shown: &str) -> bool {
        self.fingerprint() == Fingerprint::of(shown)
    }

    /// What knows it again.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.0)
    }

    /// The digits, for whoever is to have them.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_all_of_its_digits_and_never_printed() {
        let (one, other) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert!(one.reveal().len() == 64 && one.is(one.reveal()) && !one.is(other.reveal()));
        assert!(
            !one.is("")
                && !one.is(&one.reveal()[..63])
                && !one.is(&one.reveal().to_uppercase().replace(char::is_numeric, "0"))
        );
        assert_eq!(format!("{one:?}"), "Secret");
    }
}
