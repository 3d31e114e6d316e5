//! [`Authentication`]: how the cluster authenticates, as the API server publishes it for servers behind it.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use super::{
    Refused, User,
    authority::{Authority, BundleError, subject},
    headers::Names,
};

/// The namespace of the ConfigMap that says how the cluster authenticates.
pub const CONFIG_MAP_NAMESPACE: &str = "kube-system";
/// The name of the ConfigMap that says how the cluster authenticates.
pub const CONFIG_MAP: &str = "extension-apiserver-authentication";

/// How the cluster authenticates.
#[derive(Clone, Debug, Default)]
pub struct Authentication {
    /// The API server as the front proxy. None: nobody says who somebody else is.
    front_proxy: Option<FrontProxy>,
    /// Who signs the certificates of clients. None: no client has one.
    clients: Option<Authority>,
}

#[derive(Clone, Debug)]
struct FrontProxy {
    authority: Authority,
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
        let bundle = |key: &'static str| {
            let pem = data.get(key).filter(|pem| !pem.trim().is_empty());
            let authority = pem.map(|pem| Authority::of_bundle(pem)).transpose();
            authority.map_err(|error| AuthenticationError::Bundle { key, error })
        };
        let front_proxy = match bundle("requestheader-client-ca-file")? {
            None => None,
            Some(authority) => Some(FrontProxy {
                authority,
                allowed_names: names(data, "requestheader-allowed-names")?,
                headers: Names {
                    user: header_names(data, "requestheader-username-headers")?,
                    uid: header_names(data, "requestheader-uid-headers")?,
                    groups: header_names(data, "requestheader-group-headers")?,
                    extra_prefixes: names(data, "requestheader-extra-headers-prefix")?
                        .into_iter()
                        .map(|prefix| prefix.to_ascii_lowercase())
                        .collect(),
                },
            }),
        };
        Ok(Self { front_proxy, clients: bundle("client-ca-file")? })
    }

    /// The user that the front proxy names; none if the certificate is not the front proxy's, or it names nobody.
    pub(super) fn proxied(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        headers: &HeaderMap,
        now: Timestamp,
    ) -> Result<Option<User>, Refused> {
        self.proxy(own, others, now)?.map_or(Ok(None), |proxy| proxy.headers.user(headers))
    }

    /// Whether these certificates, the caller's own first, are the front proxy's.
    pub(crate) fn is_front_proxy(&self, certificates: &[CertificateDer<'_>], now: Timestamp) -> bool {
        certificates
            .split_first()
            .is_some_and(|(own, others)| matches!(self.proxy(own, others, now), Ok(Some(_))))
    }

    /// The front proxy, if the certificate is its.
    fn proxy(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<Option<&FrontProxy>, Refused> {
        let Some(proxy) = &self.front_proxy else { return Ok(None) };
        if proxy.authority.vouches_for(own, others, now).is_err() {
            return Ok(None);
        }
        let subject = subject(own).map_err(Refused::Certificate)?;
        let is_allowed = proxy.allowed_names.is_empty() || proxy.allowed_names.contains(&subject.common_name);
        Ok(is_allowed.then_some(proxy))
    }

    /// The user that a client's certificate names.
    pub(super) fn client(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<User, Refused> {
        let refused = |why: &str| Refused::Certificate(why.to_owned());
        let clients =
            self.clients.as_ref().ok_or_else(|| refused("the cluster has no CA of client certificates"))?;
        clients.vouches_for(own, others, now).map_err(|error| refused(&error.to_string()))?;
        let subject = subject(own).map_err(Refused::Certificate)?;
        if subject.common_name.is_empty() {
            return Err(refused("it has no common name"));
        }
        Ok(User { name: subject.common_name, groups: subject.organizations, ..User::default() })
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
