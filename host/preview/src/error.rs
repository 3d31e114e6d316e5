//! [`PreviewError`]: why there is no preview at all.

use pintle_core::ApiError;
use pintle_wit::Failure;

/// Why there is no preview at all.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PreviewError {
    /// Something that was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// The user may not read what every preview needs.
    #[error("{0}")]
    Forbidden(String),
    /// What was asked for is not possible, or the module and config cannot come into force.
    #[error("{0}")]
    Refused(Failure),
    /// There is no memory for it at present.
    #[error("{0}")]
    Busy(String),
    /// The API server did not answer.
    #[error("{0}")]
    Unavailable(String),
}

impl PreviewError {
    /// What the API server said about something.
    pub(crate) fn of(what: &str, error: &ApiError) -> Self {
        let message = format!("{what}: {error}");
        match error.code {
            401 | 403 => Self::Forbidden(message),
            404 => Self::NotFound(message),
            429 => Self::Busy(message),
            _ => Self::Unavailable(message),
        }
    }
}

impl From<Failure> for PreviewError {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}
