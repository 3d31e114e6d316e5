//! [`OfTheFrontProxy`]: the handshake lets in nobody but the API server's front proxy.

use std::sync::Arc;

use pintle_runtime::clock;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use tokio::sync::watch;

use crate::identity::Authentication;

/// Checks that a client has the key of the front proxy's certificate. Who signs that, and which names it may have, changes while the server
/// runs. Nobody is let in before it has been read.
#[derive(Debug)]
pub(super) struct OfTheFrontProxy {
    algorithms: WebPkiSupportedAlgorithms,
    authentication: watch::Receiver<Option<Arc<Authentication>>>,
}

impl OfTheFrontProxy {
    pub(super) fn new(
        provider: &CryptoProvider,
        authentication: watch::Receiver<Option<Arc<Authentication>>>,
    ) -> Self {
        Self { algorithms: provider.signature_verification_algorithms, authentication }
    }
}

impl ClientCertVerifier for OfTheFrontProxy {
    /// None: a client shows the certificate that it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let authentication = self.authentication.borrow().clone();
        if authentication.is_some_and(|known| known.is_front_proxy(own, others, clock::now())) {
            return Ok(ClientCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
