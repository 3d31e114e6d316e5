//! [`Token`]: a bearer token as a caller shows it.
//!
//! Only the API server can judge a token. What is checked here keeps an empty or malformed one from being sent, since the API server would
//! take such a request for an anonymous one. A token is never shown in a log.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::secret::Secret;

/// The longest token, in bytes. With its groups, one of an identity provider has some kilobytes.
const BYTES_MAX: usize = 16 << 10;

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Why a request shows no token that can be sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is none.
    #[error("a bearer token is needed")]
    Missing,
    /// It is none as RFC 6750 has it.
    #[error("this is no bearer token")]
    Malformed,
}

impl Token {
    /// The token in the headers of a request.
    ///
    /// # Errors
    /// When there is none, or more than one, or something else.
    pub fn of(headers: &HeaderMap) -> Result<Self, TokenError> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let value = values.next().ok_or(TokenError::Missing)?.to_str().map_err(|_| TokenError::Malformed)?;
        let (scheme, token) = value.split_once(' ').ok_or(TokenError::Malformed)?;
        let token = token.trim_matches(' ');
        let body = token.trim_end_matches('=');
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
        let is_sound = !body.is_empty() && token.len() <= BYTES_MAX && body.bytes().all(is_plain);
        if !is_sound || !scheme.eq_ignore_ascii_case("bearer") || values.next().is_some() {
            return Err(TokenError::Malformed);
        }
        Ok(Self(token.to_owned()))
    }

    /// The header that shows it, marked so that nothing prints it.
    pub fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Whether it is this secret.
    pub fn is(&self, secret: &Secret) -> bool {
        secret.is(&self.0)
    }

    /// What tells tokens apart without being one.
    pub fn fingerprint(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// When it ends, if it says so. Nothing is verified: the time serves to end a stream, and gives no right.
    pub fn expires(&self) -> Option<Timestamp> {
        let payload = self.0.split('.').nth(1)?;
        let payload = BASE64_URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
        let claims: Value = serde_json::from_slice(&payload).ok()?;
        let seconds = claims.get("exp")?;
        #[allow(clippy::cast_possible_truncation, reason = "a time outside of the range is refused below")]
        let seconds = seconds.as_i64().or_else(|| seconds.as_f64().map(|seconds| seconds as i64))?;
        Timestamp::from_second(seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Token, TokenError> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        Token::of(&headers)
    }

    #[test]
    fn a_token_is_sent_on_only_if_it_can_be_one() {
        assert_eq!(of(&["Bearer abc.DEF-1~+/=="]), Ok(Token("abc.DEF-1~+/==".into())));
        assert_eq!(of(&["bearer  abc"]), Ok(Token("abc".into())));
        assert_eq!(of(&[]), Err(TokenError::Missing));
        let long = format!("Bearer {}", "a".repeat(BYTES_MAX + 1));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer =",
            "Basic abc",
            "Bearer a b",
            "Bearer a,b",
            "Bearer \u{e9}",
            &long,
        ] {
            assert_eq!(of(&[wrong]), Err(TokenError::Malformed), "{wrong}");
        }
        assert_eq!(of(&["Bearer a", "Bearer b"]), Err(TokenError::Malformed));
    }

    #[test]
    fn a_token_is_never_printed() {
        let token = Token("secret".into());
        let header = token.header().unwrap();
        assert!(header.is_sensitive() && header == "Bearer secret");
        assert_eq!(format!("{token:?} {header:?}"), "Token Sensitive");
    }

    #[test]
    fn the_end_of_a_token_is_read_where_it_has_one() {
        let token = |claims: &str| Token(format!("e30.{}.sig", BASE64_URL_SAFE_NO_PAD.encode(claims)));
        assert_eq!(token(r#"{"exp": 60}"#).expires(), Some("1970-01-01T00:01:00Z".parse().unwrap()));
        assert_eq!(token(r#"{"exp": 60.5}"#).expires(), Some("1970-01-01T00:01:00Z".parse().unwrap()));
        for without in [token("{}"), token(r#"{"exp": 1e300}"#), token("x"), Token("opaque".into())] {
            assert_eq!(without.expires(), None);
        }
    }
}
