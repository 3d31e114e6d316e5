//! How the gateways replace the certificate that they made themselves, so that whoever trusts one of them trusts all of them at every
//! moment.
//!
//! All replicas share a Secret, and each step is one write of it that succeeds only on the state that the step was decided on. A step that
//! was not done, or done by another replica, is decided anew from what the Secret has.
//!
//! 1. *Begin*: there is no certificate. One is made.
//! 2. *Prepare*: two thirds of its life are over. A further one with a CA of its own is made and kept as the next one. The bundle has both
//!    CAs from now on.
//! 3. *Publish*: nothing is changed until every APIService of ours has carried the bundle for a while.
//! 4. *Take up*: the next certificate is the one in use. Replicas that have not read it yet show the one before, which is trusted too.
//! 5. *Forget*: a CA that is not valid any more leaves the bundle.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use pem::{EncodeConfig, LineEnding, Pem};
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime, pem::PemObject};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::{
    Pair,
    made::{CA_NAME, Made},
};

/// How long APIServices carry a bundle before a certificate of its new CA is shown: as long as an API server may take to see them.
pub const SETTLES: Duration = Duration::from_secs(30);

const BUNDLE: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_KEY: &str = "next.key";

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Validity {
    from: Timestamp,
    until: Timestamp,
}

impl Validity {
    fn of(certificate: &X509Certificate<'_>) -> Result<Self, Unreadable> {
        let at =
            |seconds: i64| Timestamp::from_second(seconds).map_err(|error| Unreadable(error.to_string()));
        let validity = certificate.validity();
        Ok(Self { from: at(validity.not_before.timestamp())?, until: at(validity.not_after.timestamp())? })
    }

    /// When two thirds of the life are over.
    fn renew_at(&self) -> Timestamp {
        let life = self.until.duration_since(self.from);
        self.from.saturating_add(life / 3 * 2).unwrap_or(self.until)
    }
}

/// A certificate of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Issued {
    pair: Pair,
    valid: Validity,
    names: Vec<String>,
}

/// The certificate of a CA.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    certificate: CertificateDer<'static>,
    valid: Validity,
}

/// What the Secret has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    authorities: Vec<Authority>,
    current: Issued,
    next: Next,
}

/// What the Secret has as the next certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Next {
    None,
    /// One that cannot be read, or that the bundle does not vouch for. It is made again.
    Unusable,
    Issued(Issued),
}

/// The Secret has not what the gateways keep in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make a certificate: there is none that can be used.
    Begin,
    /// Make a further certificate, which will be the next one.
    Prepare,
    /// Wait until every APIService has carried the bundle for a while.
    Publish,
    /// Use the next certificate from now on.
    TakeUp,
    /// Leave out the CAs that are not valid any more.
    Forget,
    /// Nothing, until then.
    Rest(Timestamp),
}

/// What is to be changed in the `data` of the Secret. A key without a value is to go.
pub(super) type Change = BTreeMap<&'static str, Option<String>>;

impl Held {
    /// Reads the decoded `data` of the Secret.
    ///
    /// # Errors
    /// When it has no certificate that its own bundle vouches for.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        let text =
            |key: &str| data.get(key).cloned().ok_or_else(|| Unreadable(format!("it has no key {key:?}")));
        let authorities = authorities(&text(BUNDLE)?)?;
        let current = Issued::read(Pair { certificates: text(CERTIFICATE)?, key: text(KEY)? }, &authorities)?;
        let next = match (data.get(NEXT_CERTIFICATE).cloned(), data.get(NEXT_KEY).cloned()) {
            (None, None) => Next::None,
            (Some(certificates), Some(key)) => {
                Issued::read(Pair { certificates, key }, &authorities).map_or(Next::Unusable, Next::Issued)
            }
            _ => Next::Unusable,
        };
        Ok(Self { authorities, current, next })
    }

    /// The certificate in use.
    pub fn current(&self) -> &Pair {
        &self.current.pair
    }

    /// The certificates of the CAs that an APIService must trust, in PEM: see [`ca_bundle`].
    pub fn bundle(&self) -> String {
        bundle_of(&self.authorities)
    }

    /// Whether a `caBundle`, in PEM, has every CA of the bundle. It may have more.
    pub fn is_carried_by(&self, ca_bundle: &str) -> bool {
        let carried: Result<Vec<CertificateDer<'_>>, _> =
            CertificateDer::pem_slice_iter(ca_bundle.as_bytes()).collect();
        carried.is_ok_and(|carried| {
            self.authorities.iter().all(|authority| carried.contains(&authority.certificate))
        })
    }

    /// A further certificate, which will be the next one, and its CA beside the others.
    pub(super) fn prepared(&self, made: &Made) -> Change {
        [
            (BUNDLE, Some(self.bundle() + &made.authority)),
            (NEXT_CERTIFICATE, Some(made.pair.certificates.clone())),
            (NEXT_KEY, Some(made.pair.key.clone())),
        ]
        .into()
    }

    /// The next certificate is the one in use. Nothing without one.
    pub(super) fn taken_up(&self) -> Change {
        let Next::Issued(next) = &self.next else { return Change::new() };
        [
            (CERTIFICATE, Some(next.pair.certificates.clone())),
            (KEY, Some(next.pair.key.clone())),
            (NEXT_CERTIFICATE, None),
            (NEXT_KEY, None),
        ]
        .into()
    }

    /// The bundle without the CAs that are not valid any more.
    pub(super) fn forgotten(&self, now: Timestamp) -> Change {
        let valid = self.authorities.iter().filter(|authority| now < authority.valid.until);
        [(BUNDLE, Some(bundle_of(valid)))].into()
    }
}

/// What an APIService must have as its `caBundle`, given the bundle of the Secret as a replica has read it, and what the APIService has
/// now, all in PEM; none if that is right as it is.
///
/// A CA of ours stays as long as it is valid, even if it is not in the bundle: a replica that has read the Secret a while ago must not take
/// away what another has published since. Whoever writes this names the resourceVersion of the APIService that it was made from.
pub fn ca_bundle(bundle: &str, present: &str, now: Timestamp) -> Option<String> {
    let mut wanted: Vec<Authority> = Vec::new();
    let of_ours = authorities(present).unwrap_or_default().into_iter().filter(Authority::is_ours);
    for authority in of_ours.chain(authorities(bundle).unwrap_or_default()) {
        if now < authority.valid.until && !wanted.contains(&authority) {
            wanted.push(authority);
        }
    }
    let is_right = authorities(present).is_ok_and(|present| present == wanted);
    (!is_right).then(|| bundle_of(&wanted))
}

/// A first certificate, whatever was there.
pub(super) fn begun(made: &Made) -> Change {
    [
        (BUNDLE, Some(made.authority.clone())),
        (CERTIFICATE, Some(made.pair.certificates.clone())),
        (KEY, Some(made.pair.key.clone())),
        (NEXT_CERTIFICATE, None),
        (NEXT_KEY, None),
    ]
    .into()
}

/// Decides what is to be done with what the Secret has, if it has anything that can be read. `carried_for` says for how long every
/// APIService of ours has carried the bundle; none if one does not, or if nobody knows.
pub fn decide(held: Option<&Held>, names: &[String], carried_for: Option<Duration>, now: Timestamp) -> Step {
    let Some(held) = held else { return Step::Begin };
    let is_usable =
        |issued: &Issued| now < issued.valid.until && names.iter().all(|name| issued.names.contains(name));
    let has_settled = carried_for.is_some_and(|time| time >= SETTLES);
    match &held.next {
        // If nobody accepts the one in use, there is nothing to wait for.
        Next::Issued(next) if is_usable(next) => {
            if has_settled || !is_usable(&held.current) {
                Step::TakeUp
            } else {
                Step::Publish
            }
        }
        Next::Issued(_) | Next::Unusable => Step::Prepare,
        Next::None if !is_usable(&held.current) => Step::Prepare,
        Next::None => {
            let renew_at = held.current.valid.renew_at();
            let ends = held.authorities.iter().map(|authority| authority.valid.until);
            let end = ends.min().unwrap_or(Timestamp::MAX);
            match () {
                () if renew_at <= now => Step::Prepare,
                () if end <= now => Step::Forget,
                () => Step::Rest(end.min(renew_at)),
            }
        }
    }
}

impl Authority {
    /// Whether it has the name of a CA that a gateway made.
    fn is_ours(&self) -> bool {
        let parsed = X509Certificate::from_der(&self.certificate);
        parsed.is_ok_and(|(_, parsed)| {
            let names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
            names.into_iter().any(|name| name.starts_with(CA_NAME))
        })
    }
}

impl Issued {
    fn read(pair: Pair, authorities: &[Authority]) -> Result<Self, Unreadable> {
        let unreadable = |error: &dyn std::fmt::Display| Unreadable(error.to_string());
        pair.certified().map_err(|error| unreadable(&error))?;
        let certificate = CertificateDer::from_pem_slice(pair.certificates.as_bytes())
            .map_err(|error| unreadable(&error))?;
        let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|error| unreadable(&error))?;
        let valid = Validity::of(&parsed)?;
        let alternatives = parsed.subject_alternative_name().map_err(|error| unreadable(&error))?;
        let alternatives = alternatives.iter().flat_map(|names| &names.value.general_names);
        let names = alternatives.filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        });
        let names = names.collect();
        vouched_for(&certificate, authorities, valid.from)
            .map_err(|error| Unreadable(format!("no CA in {BUNDLE} vouches for the certificate: {error}")))?;
        Ok(Self { pair, valid, names })
    }
}

/// Whether one of these CAs vouches for a server's certificate.
fn vouched_for(
    certificate: &CertificateDer<'_>,
    authorities: &[Authority],
    at: Timestamp,
) -> Result<(), webpki::Error> {
    let anchors = authorities.iter().map(|authority| anchor_from_trusted_cert(&authority.certificate));
    let anchors: Vec<TrustAnchor<'_>> = anchors.collect::<Result<_, _>>()?;
    let seconds = u64::try_from(at.as_second()).unwrap_or_default();
    let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    EndEntityCert::try_from(certificate)?.verify_for_usage(
        ALL_VERIFICATION_ALGS,
        &anchors,
        &[],
        time,
        KeyUsage::server_auth(),
        None,
        None,
    )?;
    Ok(())
}

fn authorities(bundle: &str) -> Result<Vec<Authority>, Unreadable> {
    let unreadable = |error: &dyn std::fmt::Display| Unreadable(format!("{BUNDLE}: {error}"));
    let read = CertificateDer::pem_slice_iter(bundle.as_bytes()).map(|certificate| {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        let (_, parsed) = X509Certificate::from_der(&certificate).map_err(|error| unreadable(&error))?;
        let valid = Validity::of(&parsed)?;
        Ok(Authority { certificate, valid })
    });
    read.collect()
}

fn bundle_of<'a>(authorities: impl IntoIterator<Item = &'a Authority>) -> String {
    let lines = EncodeConfig::new().set_line_ending(LineEnding::LF);
    let pem = |authority: &Authority| {
        pem::encode_config(&Pem::new("CERTIFICATE", authority.certificate.as_ref()), lines)
    };
    authorities.into_iter().map(pem).collect()
}

#[cfg(test)]
mod tests;
