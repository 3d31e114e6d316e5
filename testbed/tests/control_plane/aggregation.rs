//! The API server reaches the server of an aggregated API on loopback, through a relay.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use pintle_testbed::{ControlPlane, Relay};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::{bare, binaries, timeout};

const GROUP_VERSION: &str = "aggregated.example.com/v1";

#[test]
fn the_server_of_an_api_on_loopback_is_told_who_asks() {
    let cluster = ControlPlane::start(&binaries(), &bare()).unwrap();
    let (address, authority) = serve("api.default.svc");
    // Not 127.0.0.1, where the next who asks for a free port may get this one.
    let nobody = TcpListener::bind("127.0.0.2:0").unwrap().local_addr().unwrap();
    let relay = Relay::start(&[nobody, address]).unwrap();
    let apiservice = json!({
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.aggregated.example.com"},
        "spec": {
            "group": "aggregated.example.com",
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"name": "api", "namespace": "default", "port": 443},
            "caBundle": base64::Engine::encode(&base64::prelude::BASE64_STANDARD, authority),
        },
    });
    cluster.serve_api_on_loopback(&apiservice, relay.address().port()).unwrap();
    let available = ["wait", "--for=condition=Available", "apiservice/v1.aggregated.example.com", &timeout()];
    cluster.run_kubectl(&available, None).unwrap();

    cluster.run_kubectl(&["create", "serviceaccount", "visitor"], None).unwrap();
    let binding = [
        "create",
        "clusterrolebinding",
        "visitor",
        "--clusterrole=cluster-admin",
        "--serviceaccount=default:visitor",
    ];
    cluster.run_kubectl(&binding, None).unwrap();
    let uid = cluster
        .run_kubectl(&["get", "serviceaccount", "visitor", "--output=jsonpath={.metadata.uid}"], None)
        .unwrap();
    let visitor = cluster.kubeconfig_for_service_account("default", "visitor").unwrap();
    let asked = cluster
        .kubectl_command()
        .env("KUBECONFIG", visitor)
        .args(["get", &format!("--raw=/apis/{GROUP_VERSION}/whoami")])
        .output()
        .unwrap();
    let told: Vec<String> = serde_json::from_slice(&asked.stdout).unwrap_or_else(|_| panic!("{asked:?}"));
    for header in [
        "x-remote-user: system:serviceaccount:default:visitor".to_owned(),
        format!("x-remote-uid: {uid}"),
        "x-remote-group: system:serviceaccounts".to_owned(),
    ] {
        assert!(told.contains(&header), "{header} is not in {told:#?}");
    }
    assert!(
        !told.iter().any(|header| header.starts_with("authorization:")),
        "the token stays with the API server"
    );
    cluster.stop().unwrap();
}

/// Serves an API under this name. Returns where, and the certificate of its authority. It ends with the test process.
fn serve(name: &str) -> (SocketAddr, String) {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            // A connection that is only a probe ends with an error.
            thread::spawn(move || answer(config, stream.unwrap()));
        }
    });
    (address, authority.pem())
}

/// Answers one request: with the resources of the group, none, or with the headers about the caller.
fn answer(config: Arc<ServerConfig>, stream: TcpStream) -> anyhow::Result<()> {
    let mut stream = BufReader::new(StreamOwned::new(ServerConnection::new(config)?, stream));
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let path = lines.first().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let body = if path.ends_with("/whoami") {
        let header = |line: &String| {
            line.split_once(": ").map(|(name, value)| format!("{}: {value}", name.to_lowercase()))
        };
        json!(lines.iter().filter_map(header).collect::<Vec<String>>())
    } else {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": GROUP_VERSION, "resources": Value::Array(vec![])})
    };
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close";
    write!(stream.get_mut(), "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    stream.get_mut().flush()?;
    Ok(())
}
