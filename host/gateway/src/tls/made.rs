//! Makes a certificate, and a CA that vouches for it alone: its key is thrown away.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

use super::Pair;

/// How long a certificate is valid.
pub(super) const VALID: SignedDuration = SignedDuration::from_hours(90 * 24);

/// How the name of a CA begins that a gateway made. When it was made follows: two CAs in a bundle are told apart by their names.
pub(super) const CA_NAME: &str = "pintle-gateway-ca@";

/// It is valid so much earlier, for those whose clock is behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// What was made.
pub(super) struct Made {
    /// The certificate of the CA, in PEM.
    pub(super) authority: String,
    pub(super) pair: Pair,
}

/// Makes a certificate for a server with these names.
pub(super) fn make(names: &[String], now: Timestamp) -> Result<Made, rcgen::Error> {
    let mut authority = params(&format!("{CA_NAME}{}", now.as_second()), now);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(authority, authority_key);

    let mut server = params("pintle-gateway", now);
    server.subject_alt_names = CertificateParams::new(names.to_vec())?.subject_alt_names;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificates = server.signed_by(&key, &issuer)?.pem();
    Ok(Made { authority: authority_pem, pair: Pair { certificates, key: key.serialize_pem() } })
}

fn params(common_name: &str, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    let at = |time: SignedDuration| {
        let seconds = u64::try_from(now.as_second() + time.as_secs()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(seconds)
    };
    (params.not_before, params.not_after) = (at(-BACKDATED), at(VALID));
    params
}
