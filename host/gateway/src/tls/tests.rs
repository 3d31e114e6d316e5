use std::{fs, time::Duration};

use pintle_runtime::Spawner;
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion, client::ResolvesClientCert,
    pki_types::ServerName,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;
use crate::identity::issuer::TestIssuer;

pub(crate) const NAME: &str = "pintle-gateway.pintle-system.svc";

/// A CA and a certificate that is valid now.
pub(crate) struct Certificate {
    pub(crate) authority: String,
    pub(crate) pair: Pair,
}

pub(crate) fn certificate() -> Certificate {
    let names = vec![format!("{NAME}.cluster.local"), NAME.to_owned()];
    let now = pintle_runtime::clock::now();
    let authority = made::authority(now).unwrap();
    let pair = made::issue(&authority, &names, now).unwrap();
    Certificate { authority: authority.certificates, pair }
}

/// A client that shows this, whether it fits or not.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _: &[&[u8]], _: &[rustls::SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// A client that trusts this CA.
pub(crate) fn client(
    authority: &str,
    shows: Option<CertifiedKey>,
    version: &'static SupportedProtocolVersion,
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(authority.as_bytes()).map(Result::unwrap));
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    match shows {
        Some(shows) => config.with_client_cert_resolver(Arc::new(Shows(Arc::new(shows)))),
        None => config.with_no_client_auth(),
    }
}

/// How the server and a client speak.
#[derive(Debug, PartialEq)]
struct Connection {
    protocol: Option<Vec<u8>>,
    version: Option<ProtocolVersion>,
}

/// A server of a front proxy.
struct Door {
    proxies: TestIssuer,
    served: Served,
}

/// The name of the front proxy.
pub(crate) const PROXY: &str = "front-proxy-client";

/// How a cluster authenticates whose front proxy these vouch for.
pub(crate) fn trusting(proxies: &TestIssuer) -> Authentication {
    let names = format!("[{PROXY:?}]");
    let data = [
        ("requestheader-client-ca-file", proxies.pem.as_str()),
        ("requestheader-allowed-names", names.as_str()),
        ("requestheader-username-headers", r#"["X-Remote-User"]"#),
        ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
    ];
    let data = data.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Authentication::of_config_map(&data).unwrap()
}

impl Door {
    fn new(served: Served) -> Self {
        Self { proxies: TestIssuer::of_today("proxies"), served }
    }

    /// A client with the front proxy's certificate.
    fn proxy(&self, authority: &str, version: &'static SupportedProtocolVersion) -> ClientConfig {
        let (certificate, key) = self.proxies.client_with_key(PROXY);
        client(authority, Some(certified(certificate, &key)), version)
    }

    /// Connects, and has a byte sent back, which shows that both sides went through with the handshake.
    async fn connect(&self, client: ClientConfig, name: &str) -> std::io::Result<Connection> {
        let known = watch::Sender::new(Some(Arc::new(trusting(&self.proxies))));
        let config = server_config(self.served.clone(), known.subscribe()).unwrap();
        let (near, far) = duplex(1 << 16);
        let (acceptor, connector) = (TlsAcceptor::from(config), TlsConnector::from(Arc::new(client)));
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let serving = async {
            let mut stream = acceptor.accept(far).await?;
            let byte = stream.read_u8().await?;
            stream.write_u8(byte).await?;
            stream.flush().await?;
            let connection = stream.get_ref().1;
            let protocol = connection.alpn_protocol().map(<[u8]>::to_vec);
            Ok(Connection { protocol, version: connection.protocol_version() })
        };
        let asking = async {
            let mut stream = connector.connect(name, near).await?;
            stream.write_u8(7).await?;
            stream.flush().await?;
            stream.read_u8().await
        };
        let (connection, answer) = tokio::join!(serving, asking);
        answer.and(connection)
    }
}

pub(crate) fn serving(pair: &Pair) -> Served {
    let served = Served::default();
    served.set(pair).unwrap();
    served
}

/// A certificate of a client that nobody knows.
fn strangers() -> (CertificateDer<'static>, KeyPair) {
    let key = KeyPair::generate().unwrap();
    (CertificateParams::default().self_signed(&key).unwrap().into(), key)
}

pub(crate) fn certified(certificate: CertificateDer<'static>, key: &KeyPair) -> CertifiedKey {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    CertifiedKey::new(vec![certificate], ring::sign::any_supported_type(&key).unwrap())
}

#[tokio::test]
async fn the_front_proxy_is_served_under_each_name_and_nobody_else_is_served() {
    let own = certificate();
    let door = Door::new(serving(&own.pair));
    for version in [&TLS12, &TLS13] {
        for name in [NAME.to_owned(), format!("{NAME}.cluster.local")] {
            let connection = door.connect(door.proxy(&own.authority, version), &name).await.unwrap();
            assert_eq!(connection.version, Some(version.version));
        }
        let (shown, key) = strangers();
        let (another, its_key) = door.proxies.client_with_key("another");
        let (proxy, _) = door.proxies.client_with_key(PROXY);
        for (what, shows) in [
            ("no certificate", None),
            ("one of a stranger", Some(certified(shown, &key))),
            ("one with another name", Some(certified(another, &its_key))),
            ("one without its key", Some(certified(proxy, &key))),
        ] {
            let refused = door.connect(client(&own.authority, shows, version), NAME).await;
            assert!(refused.is_err(), "{version:?}, {what}: {refused:?}");
        }
    }
    let other = door.connect(door.proxy(&own.authority, &TLS13), "pintle-gateway.other.svc").await;
    assert!(other.is_err());
}

#[tokio::test]
async fn the_client_chooses_between_http_2_and_http_1_1() {
    let own = certificate();
    let door = Door::new(serving(&own.pair));
    for (offers, expected) in [(vec!["h2", "http/1.1"], "h2"), (vec!["http/1.1"], "http/1.1")] {
        let mut client = door.proxy(&own.authority, &TLS13);
        client.alpn_protocols = offers.iter().map(|offer| offer.as_bytes().to_vec()).collect();
        let connection = door.connect(client, NAME).await.unwrap();
        assert_eq!(connection.protocol.as_deref(), Some(expected.as_bytes()));
    }
}

#[tokio::test]
async fn who_connects_after_a_change_sees_the_new_certificate() {
    let (old, new) = (certificate(), certificate());
    let door = Door::new(Served::default());
    let served = &door.served;
    let connects = async |authority: &str| door.connect(door.proxy(authority, &TLS13), NAME).await.is_ok();
    assert!(!served.is_set());
    assert!(!connects(&old.authority).await);
    served.set(&old.pair).unwrap();
    assert!(connects(&old.authority).await);
    let mixed = Pair { key: old.pair.key.clone(), ..new.pair.clone() };
    assert!(matches!(served.set(&mixed), Err(PairError::Unusable(_))));
    assert!(connects(&old.authority).await);
    served.set(&new.pair).unwrap();
    assert!(connects(&new.authority).await && !connects(&old.authority).await);
}

#[test]
fn the_private_key_is_in_no_log() {
    let own = certificate();
    assert_eq!(format!("{:?}", own.pair), "Pair");
    assert!(!format!("{:?}", serving(&own.pair)).contains("PRIVATE"));
}

#[tokio::test(start_paused = true)]
async fn files_are_read_again_when_they_change_and_what_cannot_be_served_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = Files { certificate: folder.path().join("tls.crt"), key: folder.path().join("tls.key") };
    let served = Served::default();
    let missing = files.serve(&served).unwrap_err();
    assert!(missing.to_string().contains("tls.crt: "), "{missing}");
    let (old, new) = (certificate(), certificate());
    fs::write(&files.certificate, &old.pair.certificates).unwrap();
    fs::write(&files.key, "nonsense").unwrap();
    let wrong = files.serve(&served).unwrap_err();
    assert!(wrong.to_string().contains("tls.key: the private key is no PEM"), "{wrong}");
    fs::write(&files.key, &old.pair.key).unwrap();
    let last = files.serve(&served).unwrap();

    let shown = || served.0.read().unwrap().as_ref().unwrap().cert[0].clone();
    let der = |pair: &Pair| CertificateDer::from_pem_slice(pair.certificates.as_bytes()).unwrap();
    let following = tokio::spawn(files.clone().follow(served.clone(), last, Spawner::default()));
    let until = async |pair: &Pair| {
        while shown() != der(pair) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    fs::write(&files.certificate, &new.pair.certificates).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(shown(), der(&old.pair), "the key is not the new one's yet");
    fs::write(&files.key, &new.pair.key).unwrap();
    tokio::time::timeout(Duration::from_secs(600), until(&new.pair)).await.unwrap();
    following.abort();
}
