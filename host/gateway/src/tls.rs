//! TLS of the gateway: the certificate that it shows, and what the handshake checks of a client.
//!
//! - [`Served`]: the certificate in use. It is replaced while connections go on.
//! - [`Files`]: a certificate from files. [`Keeper`]: one that the gateway signs itself, with a CA that all gateways share in a Secret.
//! - The aggregated API is for the API server's front proxy alone: a client without its certificate does not get through the handshake.

mod files;
mod keeper;
mod made;
mod proof;

use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

use tokio::sync::watch;

use crate::identity::Authentication;

pub use files::{Files, FilesError};
pub use keeper::{Keeper, SECRET};

/// A certificate with those that vouch for it, and its key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate of the server first.
    pub certificates: String,
    /// The private key.
    pub key: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pair")
    }
}

/// A certificate and a key cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The certificate is no PEM.
    #[error("the certificate is no PEM: {0}")]
    Certificate(rustls::pki_types::pem::Error),
    /// The key is no PEM.
    #[error("the private key is no PEM: {0}")]
    Key(rustls::pki_types::pem::Error),
    /// They are of no use for TLS.
    #[error("the certificate and the private key cannot be used together: {0}")]
    Unusable(rustls::Error),
}

impl Pair {
    fn certified(&self) -> Result<CertifiedKey, PairError> {
        let certificates: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(self.certificates.as_bytes())
                .collect::<Result<_, _>>()
                .map_err(PairError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(PairError::Key)?;
        CertifiedKey::from_der(certificates, key, &ring::default_provider()).map_err(PairError::Unusable)
    }
}

/// The certificate that the server shows. Clones show the same one.
#[derive(Clone, Debug, Default)]
pub struct Served(Arc<RwLock<Option<Arc<CertifiedKey>>>>);

impl Served {
    /// Shows this certificate to whoever connects from now on.
    ///
    /// # Errors
    /// When it cannot be served. What was shown before is still shown.
    pub fn set(&self, pair: &Pair) -> Result<(), PairError> {
        let certified = Arc::new(pair.certified()?);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(certified);
        Ok(())
    }

    /// Whether there is a certificate to show. Without one, no handshake succeeds.
    pub fn is_set(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl ResolvesServerCert for Served {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How the server speaks TLS to the front proxy: 1.2 or 1.3, HTTP/2 or HTTP/1.1.
///
/// # Errors
/// Never with the versions and the provider that are used here.
pub fn server_config(
    served: Served,
    authentication: watch::Receiver<Option<Arc<Authentication>>>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let proof = Arc::new(proof::OfTheFrontProxy::new(&provider, authentication));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_client_cert_verifier(proof)
        .with_cert_resolver(Arc::new(served));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The same for people, who show no certificate, by HTTP/1.1: a browser that is asked for a client certificate would ask its user.
///
/// # Errors
/// As [`server_config`].
pub fn config_for_people(served: Served) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(served));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

#[cfg(test)]
pub(crate) mod tests;
