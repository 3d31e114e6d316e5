//! [`Authority`]: a bundle of CA certificates, and whether it vouches for a client; and [`common_name`], the name in a certificate.

use std::fmt;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime, pem::PemObject};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A bundle cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no bundle of certificates in PEM: {0}")]
pub struct BundleError(String);

/// A bundle of CA certificates.
#[derive(Clone)]
pub(super) struct Authority(Vec<Anchor>);

#[derive(Clone)]
struct Anchor {
    trusted: TrustAnchor<'static>,
    /// A CA certificate vouches for nobody before it is valid and after, in seconds since 1970.
    valid: std::ops::RangeInclusive<i64>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authority of {} certificates", self.0.len())
    }
}

impl Authority {
    /// Reads a bundle.
    pub(super) fn of_bundle(pem: &str) -> Result<Self, BundleError> {
        let unreadable = |error: &dyn fmt::Display| BundleError(error.to_string());
        let anchors = CertificateDer::pem_slice_iter(pem.as_bytes()).map(|certificate| {
            let certificate = certificate.map_err(|error| unreadable(&error))?;
            let trusted = anchor_from_trusted_cert(&certificate).map_err(|error| unreadable(&error))?;
            let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|error| unreadable(&error))?;
            let validity = parsed.validity();
            let valid = validity.not_before.timestamp()..=validity.not_after.timestamp();
            Ok(Anchor { trusted: trusted.to_owned(), valid })
        });
        let anchors: Vec<Anchor> = anchors.collect::<Result<_, _>>()?;
        if anchors.is_empty() { Err(BundleError("it has no certificate".into())) } else { Ok(Self(anchors)) }
    }

    /// Whether this certificate is a client's that chains to the bundle now.
    ///
    /// # Errors
    /// Why it is not.
    pub(super) fn vouches_for(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<(), webpki::Error> {
        let valid = self.0.iter().filter(|anchor| anchor.valid.contains(&now.as_second()));
        let anchors: Vec<TrustAnchor<'static>> = valid.map(|anchor| anchor.trusted.clone()).collect();
        // Before 1970 no certificate is valid.
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
        let own = EndEntityCert::try_from(own)?;
        own.verify_for_usage(
            ALL_VERIFICATION_ALGS,
            &anchors,
            others,
            time,
            KeyUsage::client_auth(),
            None,
            None,
        )?;
        Ok(())
    }
}

/// The last common name in a certificate, as in Go; empty if there is none. `None` for what is no certificate, or a name that is no text.
pub(super) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let name = parsed.subject().iter_common_name().last();
    name.map_or(Some(String::new()), |name| name.as_str().ok().map(str::to_owned))
}
