//! Makes the CA of the gateways, and the certificates that it vouches for.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

use super::Pair;

/// How long a CA is valid.
const AUTHORITY_VALID: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);

/// How long a certificate is valid.
const VALID: SignedDuration = SignedDuration::from_hours(90 * 24);

/// It is valid so much earlier, for those whose clock is behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// Makes a CA.
pub(super) fn authority(now: Timestamp) -> Result<Pair, rcgen::Error> {
    let mut authority = params("pintle-gateway-ca", now, AUTHORITY_VALID);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate()?;
    Ok(Pair { certificates: authority.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

/// Signs a certificate of this CA for a server with these names.
pub(super) fn issue(authority: &Pair, names: &[String], now: Timestamp) -> Result<Pair, rcgen::Error> {
    let issuer = Issuer::from_ca_cert_pem(&authority.certificates, KeyPair::from_pem(&authority.key)?)?;
    let mut server = params("pintle-gateway", now, VALID);
    server.subject_alt_names = CertificateParams::new(names.to_vec())?.subject_alt_names;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    Ok(Pair { certificates: server.signed_by(&key, &issuer)?.pem(), key: key.serialize_pem() })
}

fn params(common_name: &str, now: Timestamp, valid: SignedDuration) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let at = |time: SignedDuration| {
        let seconds = u64::try_from(now.as_second() + time.as_secs()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    (params.not_before, params.not_after) = (at(-BACKDATED), at(valid));
    params
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::ToSpan;
    use rustls::pki_types::{CertificateDer, UnixTime, pem::PemObject};
    use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

    use super::*;
    use crate::identity::issuer::now;

    fn is_trusted(authority: &Pair, pair: &Pair, at: Timestamp) -> bool {
        let der = |pair: &Pair| CertificateDer::from_pem_slice(pair.certificates.as_bytes()).unwrap();
        let (authority, certificate) = (der(authority), der(pair));
        let anchor = anchor_from_trusted_cert(&authority).unwrap();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(at.as_second().try_into().unwrap()));
        let usage = KeyUsage::server_auth();
        let own = EndEntityCert::try_from(&certificate).unwrap();
        own.verify_for_usage(ALL_VERIFICATION_ALGS, &[anchor], &[], time, usage, None, None).is_ok()
    }

    #[test]
    fn a_certificate_is_good_for_ninety_days_and_its_ca_for_ten_years() {
        let names = ["g.pintle-system.svc".to_owned()];
        let ca = authority(now()).unwrap();
        let first = issue(&ca, &names, now()).unwrap();
        let after = |days: i64| now() + (24 * days).hours();
        assert!(is_trusted(&ca, &first, now()) && is_trusted(&ca, &first, after(89)));
        assert!(!is_trusted(&ca, &first, after(91)));
        let late = issue(&ca, &names, after(3_640)).unwrap();
        assert!(is_trusted(&ca, &late, after(3_641)));
        let other = authority(now()).unwrap();
        assert!(!is_trusted(&other, &first, now()));
        assert!(ca.certified().is_ok() && first.certified().is_ok());
    }
}
