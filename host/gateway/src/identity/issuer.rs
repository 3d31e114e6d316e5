//! A certificate authority for tests.

use jiff::{Timestamp, ToSpan};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;

/// A certificate authority.
pub(crate) struct TestIssuer {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
    /// When its certificates are made.
    now: Timestamp,
}

/// When the tests are.
pub(crate) fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

/// Sets from when until when a certificate is valid, in hours from now.
fn set_valid(params: &mut CertificateParams, now: Timestamp, from_hours: i64, until_hours: i64) {
    let at = |hours: i64| {
        let seconds = (now + hours.hours()).as_second();
        date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds.try_into().unwrap())
    };
    (params.not_before, params.not_after) = (at(from_hours), at(until_hours));
}

impl TestIssuer {
    pub(crate) fn new(name: &str) -> Self {
        Self::valid(name, -10, 10)
    }

    /// An authority whose own certificate is valid from then until then, in hours from [`now`].
    pub(crate) fn valid(name: &str, from_hours: i64, until_hours: i64) -> Self {
        Self::made(name, now(), from_hours, until_hours)
    }

    /// An authority for servers that have the time of this machine.
    pub(crate) fn of_today(name: &str) -> Self {
        Self::made(name, pintle_runtime::clock::now(), -10, 10)
    }

    fn made(name: &str, now: Timestamp, from_hours: i64, until_hours: i64) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        set_valid(&mut params, now, from_hours, until_hours);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key), now }
    }

    /// A client's certificate.
    pub(crate) fn client(&self, name: &str) -> CertificateDer<'static> {
        self.certificate(name, ExtendedKeyUsagePurpose::ClientAuth, 1).0
    }

    /// A client's certificate, and its key.
    pub(crate) fn client_with_key(&self, name: &str) -> (CertificateDer<'static>, KeyPair) {
        self.certificate(name, ExtendedKeyUsagePurpose::ClientAuth, 1)
    }

    /// A client's certificate that ended an hour ago.
    pub(crate) fn expired(&self, name: &str) -> CertificateDer<'static> {
        self.certificate(name, ExtendedKeyUsagePurpose::ClientAuth, -1).0
    }

    /// A server's certificate.
    pub(crate) fn server(&self, name: &str) -> CertificateDer<'static> {
        self.certificate(name, ExtendedKeyUsagePurpose::ServerAuth, 1).0
    }

    fn certificate(
        &self,
        name: &str,
        usage: ExtendedKeyUsagePurpose,
        until_hours: i64,
    ) -> (CertificateDer<'static>, KeyPair) {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        set_valid(&mut params, self.now, -2, until_hours);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().into(), key)
    }
}
