//! Who the caller is: a pure function of the certificates of the connection, the headers of the request, and how the cluster
//! authenticates.
//!
//! The order is the API server's for servers behind it: the front proxy says who its caller is; else a client certificate does; else a
//! bearer token, which only the API server can judge; else the caller is anonymous. A certificate that nobody vouches for ends the
//! request: whoever shows one does not mean to be anonymous.

mod authentication;
mod authority;
mod headers;
#[cfg(test)]
pub(crate) mod issuer;
mod peer;
mod user;

use http::HeaderMap;
use jiff::Timestamp;
use pintle_core::view::Status;
use rustls::pki_types::CertificateDer;

use crate::reply::CROWDED_SECONDS;

pub use authentication::{Authentication, AuthenticationError, CONFIG_MAP, CONFIG_MAP_NAMESPACE};
pub use authority::BundleError;
pub use peer::{Network, Peer};
pub use user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};

/// What a caller shows about itself.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// The certificates of the connection, the caller's own first. The handshake has proved that the caller has its key, and nothing else.
    pub certificates: &'a [CertificateDer<'a>],
    /// The headers of the request.
    pub headers: &'a HeaderMap,
}

/// What is known of a caller without asking the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// All of it. May be [`User::anonymous`].
    Known(User),
    /// It has a token, which a TokenReview must judge.
    HasToken(Token),
}

/// A bearer token. It is never shown in a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub(crate) String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// Why a request is refused before it is known what it asks for. The caller is not told more than the API server would say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// 401: the certificate names nobody, or nobody vouches for it.
    #[error("the client certificate is not accepted: {0}")]
    Certificate(String),
    /// 401: the front proxy's header is no text.
    #[error("the header {0} is no UTF-8")]
    Header(String),
    /// 401: the API server does not know the token, or could not be asked.
    #[error("the bearer token is not accepted: {0}")]
    Token(String),
    /// 429: the API server is asked about too many tokens at a time.
    #[error("too many tokens are judged at a time")]
    Full,
    /// 403: only the API server impersonates.
    #[error("the caller asks to be taken for somebody else, which only the API server does")]
    Impersonates,
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Certificate(_) | Refused::Header(_) | Refused::Token(_) => Self::unauthorized(),
            Refused::Full => Self::too_many_requests(CROWDED_SECONDS),
            Refused::Impersonates => Self::impersonation(),
        }
    }
}

/// Finds out who the caller is.
///
/// # Errors
/// When the certificate is not accepted, or a caller that did not come through the front proxy asks to be taken for somebody else.
pub fn identify(
    presented: Presented<'_>,
    authentication: &Authentication,
    now: Timestamp,
) -> Result<Caller, Refused> {
    let Presented { certificates, headers } = presented;
    let known = match certificates {
        [] => None,
        [own, others @ ..] => {
            if let Some(user) = authentication.proxied(own, others, headers, now)? {
                return Ok(Caller::Known(user.known()));
            }
            Some(authentication.client(own, others, now)?)
        }
    };
    if headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Err(Refused::Impersonates);
    }
    Ok(match (known, headers::bearer_token(headers)) {
        (Some(user), _) => Caller::Known(user.known()),
        (None, Some(token)) => Caller::HasToken(Token(token)),
        (None, None) => Caller::Known(User::anonymous()),
    })
}

#[cfg(test)]
mod tests;
