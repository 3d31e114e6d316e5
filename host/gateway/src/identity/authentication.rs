//! [`Authentication`]: how the cluster authenticates, as the API server publishes it for servers behind it.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use pintle_core::view::Status;
use rustls::pki_types::CertificateDer;

use super::{
    User,
    authority::{Authority, BundleError, common_name},
    headers::Names,
};

/// The namespace of the ConfigMap that says how the cluster authenticates.
pub const CONFIG_MAP_NAMESPACE: &str = "kube-system";
/// The name of the ConfigMap that says how the cluster authenticates.
pub const CONFIG_MAP: &str = "extension-apiserver-authentication";

/// How the cluster authenticates.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// Who signs the certificate of the front proxy. None: nobody may connect.
    authority: Option<Authority>,
    /// The common names that it may have. None: any.
    allowed_names: Vec<String>,
    headers: Names,
}

/// The ConfigMap is not as the API server writes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    /// A bundle of CA certificates.
    #[error("key {key:?}: {error}")]
    Bundle {
        /// The key in `data`.
        key: &'static str,
        /// What is wrong.
        error: BundleError,
    },
    /// A list of names.
    #[error("key {key:?}: it is no JSON array of names: {error}")]
    Names {
        /// The key in `data`.
        key: &'static str,
        /// What is wrong.
        error: String,
    },
}

impl Authentication {
    /// Reads the `data` of the ConfigMap [`CONFIG_MAP`] in [`CONFIG_MAP_NAMESPACE`].
    ///
    /// # Errors
    /// When a key has a value that cannot be read. Whoever has read an earlier state keeps that.
    pub fn of_config_map(data: &BTreeMap<String, String>) -> Result<Self, AuthenticationError> {
        const BUNDLE: &str = "requestheader-client-ca-file";
        let pem = data.get(BUNDLE).filter(|pem| !pem.trim().is_empty());
        let authority = pem.map(|pem| Authority::of_bundle(pem)).transpose();
        let prefixes = names(data, "requestheader-extra-headers-prefix")?;
        Ok(Self {
            authority: authority.map_err(|error| AuthenticationError::Bundle { key: BUNDLE, error })?,
            allowed_names: names(data, "requestheader-allowed-names")?,
            headers: Names {
                user: header_names(data, "requestheader-username-headers")?,
                uid: header_names(data, "requestheader-uid-headers")?,
                groups: header_names(data, "requestheader-group-headers")?,
                extra_prefixes: prefixes.into_iter().map(|prefix| prefix.to_ascii_lowercase()).collect(),
            },
        })
    }

    /// Whether this certificate is the front proxy's.
    pub(crate) fn is_front_proxy(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> bool {
        let is_allowed = |name| self.allowed_names.is_empty() || self.allowed_names.contains(&name);
        let authority = self.authority.as_ref();
        authority.is_some_and(|authority| authority.vouches_for(own, others, now).is_ok())
            && common_name(own).is_some_and(is_allowed)
    }

    /// The user that the front proxy names.
    ///
    /// # Errors
    /// 401 where it names nobody, or a header is no text.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Result<User, Status> {
        self.headers.user(headers)?.map(User::known).ok_or_else(Status::unauthorized)
    }
}

/// A JSON array of names. As the API server does, leaves out what is empty, and takes a key that is missing for an empty list.
fn names(data: &BTreeMap<String, String>, key: &'static str) -> Result<Vec<String>, AuthenticationError> {
    let Some(text) = data.get(key).filter(|text| !text.trim().is_empty()) else { return Ok(Vec::new()) };
    let names: Option<Vec<String>> = serde_json::from_str(text)
        .map_err(|error| AuthenticationError::Names { key, error: error.to_string() })?;
    let trimmed = names.into_iter().flatten().map(|name| name.trim().to_owned());
    Ok(trimmed.filter(|name| !name.is_empty()).collect())
}

fn header_names(
    data: &BTreeMap<String, String>,
    key: &'static str,
) -> Result<Vec<HeaderName>, AuthenticationError> {
    let name = |name: String| {
        let unreadable = |error| AuthenticationError::Names { key, error: format!("{name:?}: {error}") };
        HeaderName::from_bytes(name.as_bytes()).map_err(unreadable)
    };
    names(data, key)?.into_iter().map(name).collect()
}
