//! Certificate authorities, certificates and keys for one instance of a control plane.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// The user and group in a client certificate.
pub(crate) struct Identity {
    pub(crate) user: &'static str,
    pub(crate) group: Option<&'static str>,
}

/// A certificate authority of one instance. Instances share nothing, so that a component which reaches a port of another instance by
/// mistake is refused there.
pub(crate) struct Authority {
    directory: PathBuf,
    name: &'static str,
    issuer: Issuer<'static, KeyPair>,
}

/// The files of a certificate and its private key.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Creates `<name>-ca.crt` in `directory`. The key stays in memory: the controllers that would sign with it are not needed here.
    pub(crate) fn create(directory: &Path, name: &'static str) -> Result<Self> {
        let mut params = named(name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let authority = Self { directory: directory.to_owned(), name, issuer: Issuer::new(params, key) };
        write(&authority.certificate(), &certificate.pem())?;
        Ok(authority)
    }

    /// The file for those who trust this authority.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.join(format!("{}-ca.crt", self.name))
    }

    /// A client certificate for this identity.
    pub(crate) fn client(&self, identity: &Identity) -> Result<Pair> {
        let params = named(identity.user, identity.group);
        self.issue(&identity.user.replace(':', "-"), params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A server certificate for `hosts`, each a DNS name or an IP address.
    pub(crate) fn server(&self, name: &str, hosts: &[&str]) -> Result<Pair> {
        let mut params = named(name, None);
        params.subject_alt_names =
            CertificateParams::new(hosts.iter().map(ToString::to_string).collect::<Vec<_>>())?
                .subject_alt_names;
        self.issue(name, params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    fn issue(
        &self,
        file: &str,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let pair = Pair {
            certificate: self.directory.join(format!("{}-{file}.crt", self.name)),
            key: self.directory.join(format!("{}-{file}.key", self.name)),
        };
        write(&pair.certificate, &certificate.pem())?;
        write(&pair.key, &key.serialize_pem())?;
        Ok(pair)
    }
}

/// The keys that sign and verify service account tokens. They are ECDSA keys: Kubernetes accepts them as well as RSA, and they take no time
/// to create.
pub(crate) struct ServiceAccountKeys {
    pub(crate) private: PathBuf,
    pub(crate) public: PathBuf,
}

impl ServiceAccountKeys {
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let keys = Self {
            private: directory.join("service-account.key"),
            public: directory.join("service-account.pub"),
        };
        let pair = KeyPair::generate()?;
        write(&keys.private, &pair.serialize_pem())?;
        // The API server does not find the public key in a PKCS#8 file of the private one.
        write(&keys.public, &pair.public_key_pem())?;
        Ok(keys)
    }
}

fn named(user: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}

fn write(path: &Path, pem: &str) -> Result<()> {
    fs::write(path, pem).with_context(|| format!("writing {}", path.display()))
}
