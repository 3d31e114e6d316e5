use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};

use super::{
    issuer::{TestIssuer, now},
    *,
};

/// A cluster with a CA of the front proxy and a CA of clients.
struct Cluster {
    proxies: TestIssuer,
    clients: TestIssuer,
    strangers: TestIssuer,
    data: BTreeMap<String, String>,
}

impl Cluster {
    fn new() -> Self {
        let (proxies, clients) = (TestIssuer::new("proxies"), TestIssuer::new("clients"));
        let data = [
            ("requestheader-client-ca-file", proxies.pem.as_str()),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User", "X-Other-User"]"#),
            ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
            ("requestheader-group-headers", r#"[" X-Remote-Group "]"#),
            ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
            ("client-ca-file", clients.pem.as_str()),
        ];
        let data = data.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Self { proxies, clients, strangers: TestIssuer::new("strangers"), data }
    }

    fn with(mut self, key: &str, value: &str) -> Self {
        self.data.insert(key.into(), value.into());
        self
    }

    fn without(mut self, key: &str) -> Self {
        self.data.remove(key).unwrap();
        self
    }

    fn identify(
        &self,
        certificate: Option<CertificateDer<'static>>,
        headers: &[(&str, &str)],
    ) -> Result<Caller, Refused> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                name.to_ascii_lowercase().parse::<HeaderName>().unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        let certificates = Vec::from_iter(certificate);
        let presented = Presented { certificates: &certificates, headers: &map };
        identify(presented, &Authentication::of_config_map(&self.data).unwrap(), now())
    }

    fn proxy(&self) -> Option<CertificateDer<'static>> {
        Some(self.proxies.client("front-proxy-client", &[]))
    }
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.into(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        ..User::default()
    }
}

fn known(name: &str, groups: &[&str]) -> Result<Caller, Refused> {
    Ok(Caller::Known(user(name, groups)))
}

fn is_unauthorized(answer: &Result<Caller, Refused>) -> bool {
    answer.as_ref().is_err_and(|refused| Status::from(refused.clone()) == Status::unauthorized())
}

#[test]
fn the_front_proxy_says_who_its_caller_is() {
    let cluster = Cluster::new();
    let headers = [
        ("X-Remote-User", "jane@example.com"),
        ("X-Remote-Uid", "42"),
        ("X-Remote-Group", "shepherds"),
        ("X-Remote-Group", "drivers, with a comma"),
        ("X-Remote-Extra-Example.com%2fScopes", "read"),
        ("X-Remote-Extra-Example.com%2fScopes", "write"),
        ("X-Remote-Extra-100%", "größe"),
        ("Authorization", "Bearer of-somebody-else"),
        ("Impersonate-User", "somebody else"),
    ];
    let Caller::Known(found) = cluster.identify(cluster.proxy(), &headers).unwrap() else { panic!() };
    assert_eq!((found.name.as_str(), found.uid.as_str()), ("jane@example.com", "42"));
    assert_eq!(found.groups, ["shepherds", "drivers, with a comma", AUTHENTICATED]);
    let extra: Vec<(&str, Vec<&str>)> = found
        .extra
        .iter()
        .map(|(key, values)| (key.as_str(), values.iter().map(String::as_str).collect()))
        .collect();
    assert_eq!(extra, [("100%", vec!["größe"]), ("example.com/scopes", vec!["read", "write"])]);
}

#[test]
fn the_first_header_that_is_configured_and_says_something_names_the_user() {
    let cluster = Cluster::new();
    let named = |headers: &[(&str, &str)]| cluster.identify(cluster.proxy(), headers);
    let other = ("X-Other-User", "other");
    assert_eq!(named(&[other, ("X-Remote-User", "jane")]), known("jane", &[AUTHENTICATED]));
    assert_eq!(named(&[other, ("X-Remote-User", "")]), known("other", &[AUTHENTICATED]));
}

#[test]
fn pollers_without_a_group_are_authenticated_and_anonymous_callers_of_the_proxy_are_not() {
    let cluster = Cluster::new();
    let of = |user, group| {
        cluster.identify(cluster.proxy(), &[("x-remote-user", user), ("x-remote-group", group)])
    };
    let poller = cluster.identify(cluster.proxy(), &[("x-remote-user", "system:aggregator")]);
    assert_eq!(poller, known("system:aggregator", &[AUTHENTICATED]));
    assert_eq!(of("jane", AUTHENTICATED), known("jane", &[AUTHENTICATED]), "once");
    assert_eq!(of(ANONYMOUS, UNAUTHENTICATED), Ok(Caller::Known(User::anonymous())));
    assert_eq!(
        of("system:kube-aggregator", MASTERS),
        known("system:kube-aggregator", &[MASTERS, AUTHENTICATED])
    );
}

#[test]
fn what_the_headers_say_is_ignored_without_the_front_proxys_certificate() {
    let cluster = Cluster::new();
    let spoofed = [("X-Remote-User", "admin"), ("X-Remote-Group", MASTERS), ("X-Remote-Extra-a", "b")];
    assert_eq!(cluster.identify(None, &spoofed), Ok(Caller::Known(User::anonymous())));
    let jane = cluster.clients.client("jane", &["shepherds"]);
    assert_eq!(cluster.identify(Some(jane), &spoofed), known("jane", &["shepherds", AUTHENTICATED]));
    for certificate in [
        cluster.strangers.client("front-proxy-client", &[]),
        cluster.proxies.client("another", &[]),
        cluster.proxies.expired("front-proxy-client"),
        cluster.proxies.server("front-proxy-client"),
    ] {
        let answer = cluster.identify(Some(certificate), &spoofed);
        assert!(is_unauthorized(&answer), "{answer:?}");
    }
}

#[test]
fn no_allowed_names_are_any_name() {
    for cluster in [
        Cluster::new().with("requestheader-allowed-names", "[]"),
        Cluster::new().without("requestheader-allowed-names"),
    ] {
        let certificate = Some(cluster.proxies.client("another", &[]));
        assert_eq!(
            cluster.identify(certificate, &[("X-Remote-User", "jane")]),
            known("jane", &[AUTHENTICATED])
        );
    }
}

#[test]
fn a_front_proxy_that_names_nobody_is_a_client_like_any_other() {
    let cluster = Cluster::new();
    assert!(is_unauthorized(&cluster.identify(cluster.proxy(), &[("X-Remote-Group", MASTERS)])));
    let both = cluster.proxies.pem.clone();
    let cluster = cluster.with("client-ca-file", &both);
    assert_eq!(
        cluster.identify(cluster.proxy(), &[("X-Remote-Group", MASTERS)]),
        known("front-proxy-client", &[AUTHENTICATED])
    );
}

#[test]
fn the_organizations_of_a_clients_certificate_are_its_groups() {
    let cluster = Cluster::new();
    let jane = cluster.clients.client("jane", &["shepherds", "drivers"]);
    assert_eq!(cluster.identify(Some(jane), &[]), known("jane", &["shepherds", "drivers", AUTHENTICATED]));
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_even_beside_a_token() {
    let cluster = Cluster::new();
    let token = [("Authorization", "Bearer good")];
    for (certificate, what) in [
        (cluster.strangers.client("jane", &[]), "the wrong CA"),
        (cluster.clients.expired("jane"), "expired"),
        (cluster.clients.server("jane"), "a server's"),
        (cluster.clients.client("", &["shepherds"]), "without a name"),
        (CertificateDer::from(vec![1, 2, 3]), "no certificate"),
    ] {
        assert!(is_unauthorized(&cluster.identify(Some(certificate), &token)), "{what}");
    }
    let cluster = cluster.without("client-ca-file");
    assert!(is_unauthorized(&cluster.identify(Some(cluster.clients.client("jane", &[])), &[])));
}

#[test]
fn an_authority_that_is_not_valid_any_more_or_not_yet_vouches_for_nobody() {
    for (from, until, is_valid) in [(-10, 1, true), (-10, -1, false), (1, 10, false)] {
        let old = TestIssuer::valid("clients", from, until);
        let cluster = Cluster::new().with("client-ca-file", &old.pem);
        let answer = cluster.identify(Some(old.client("jane", &[])), &[]);
        assert_eq!(is_unauthorized(&answer), !is_valid, "{from} {until}");
    }
}

#[test]
fn each_authority_of_a_bundle_vouches() {
    let (old, new) = (TestIssuer::new("clients"), TestIssuer::new("clients"));
    let cluster = Cluster::new().with("client-ca-file", &format!("{}{}", old.pem, new.pem));
    for issuer in [old, new] {
        assert_eq!(cluster.identify(Some(issuer.client("jane", &[])), &[]), known("jane", &[AUTHENTICATED]));
    }
}

#[test]
fn a_token_is_for_the_api_server_to_judge_and_other_credentials_are_none() {
    let cluster = Cluster::new();
    let asked = |value| cluster.identify(None, &[("Authorization", value)]);
    for value in ["Bearer abc", "bearer abc", " Bearer abc def "] {
        assert_eq!(asked(value), Ok(Caller::HasToken(Token("abc".into()))), "{value}");
    }
    for value in ["Bearer", "Bearer ", "Basic abc", "abc", ""] {
        assert_eq!(asked(value), Ok(Caller::Known(User::anonymous())), "{value}");
    }
    assert_eq!(format!("{:?}", asked("Bearer secret").unwrap()), "HasToken(Token)");
}

#[test]
fn a_direct_caller_is_taken_for_nobody_else() {
    let cluster = Cluster::new();
    let jane = || Some(cluster.clients.client("jane", &[]));
    for header in ["Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-scopes"] {
        for (certificate, token) in [(None, "none"), (None, "Bearer abc"), (jane(), "none")] {
            let answer = cluster.identify(certificate, &[(header, "admin"), ("Authorization", token)]);
            let status = Status::from(answer.unwrap_err());
            assert_eq!((status.code, status.reason), (403, "Forbidden"), "{header}");
        }
    }
    let stranger = Some(cluster.strangers.client("jane", &[]));
    assert!(is_unauthorized(&cluster.identify(stranger, &[("Impersonate-User", "admin")])));
}

#[test]
fn a_header_of_the_front_proxy_that_is_no_text_is_not_left_out() {
    let cluster = Cluster::new();
    let authentication = Authentication::of_config_map(&cluster.data).unwrap();
    for name in ["x-remote-user", "x-remote-group", "x-remote-uid", "x-remote-extra-a"] {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", HeaderValue::from_static("jane"));
        headers.insert(name, HeaderValue::from_bytes(b"\xff").unwrap());
        let certificates = Vec::from_iter(cluster.proxy());
        let presented = Presented { certificates: &certificates, headers: &headers };
        assert_eq!(identify(presented, &authentication, now()), Err(Refused::Header(name.into())));
    }
}

#[test]
fn a_cluster_without_a_front_proxy_or_a_ca_of_clients_knows_tokens_alone() {
    let authentication = Authentication::of_config_map(&BTreeMap::new()).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("authorization", HeaderValue::from_static("Bearer abc"));
    headers.insert("x-remote-user", HeaderValue::from_static("admin"));
    let presented = Presented { certificates: &[], headers: &headers };
    assert_eq!(identify(presented, &authentication, now()), Ok(Caller::HasToken(Token("abc".into()))));
}

#[test]
fn what_cannot_be_read_in_the_config_map_is_named() {
    for (key, value) in [
        ("client-ca-file", "nonsense"),
        ("requestheader-client-ca-file", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("requestheader-allowed-names", "front-proxy-client"),
        ("requestheader-group-headers", r#"["X Remote"]"#),
    ] {
        let error = Authentication::of_config_map(&Cluster::new().with(key, value).data).unwrap_err();
        assert!(error.to_string().starts_with(&format!("key {key:?}: ")), "{error}");
    }
}
