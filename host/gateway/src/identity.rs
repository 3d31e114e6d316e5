//! Who the caller is: the API server's front proxy says it in headers. Nobody else can, since nobody else gets through the handshake
//! ([`tls`](crate::tls)).

mod authentication;
mod authority;
mod headers;
#[cfg(test)]
pub(crate) mod issuer;
mod user;

pub use authentication::{Authentication, AuthenticationError, CONFIG_MAP, CONFIG_MAP_NAMESPACE};
pub use authority::BundleError;
pub use user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, User};

#[cfg(test)]
mod tests;
