use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use pintle_core::view::Status;
use rustls::pki_types::CertificateDer;

use super::{
    issuer::{TestIssuer, now},
    *,
};

/// How a cluster authenticates, as its ConfigMap says it.
fn data(proxies: &TestIssuer) -> BTreeMap<String, String> {
    let data = [
        ("requestheader-client-ca-file", proxies.pem.as_str()),
        ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
        ("requestheader-username-headers", r#"["X-Remote-User", "X-Other-User"]"#),
        ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
        ("requestheader-group-headers", r#"[" X-Remote-Group "]"#),
        ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
    ];
    data.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn read(data: &BTreeMap<String, String>) -> Authentication {
    Authentication::of_config_map(data).unwrap()
}

/// Whom the front proxy names with these headers.
fn named(headers: &[(&str, &str)]) -> Result<User, Status> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            name.to_ascii_lowercase().parse::<HeaderName>().unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    read(&data(&TestIssuer::new("proxies"))).user(&map)
}

fn known(name: &str, groups: &[&str]) -> Result<User, Status> {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    Ok(User { name: name.into(), groups, ..User::default() })
}

#[test]
fn the_front_proxy_says_who_its_caller_is() {
    let found = named(&[
        ("X-Remote-User", "jane@example.com"),
        ("X-Remote-Uid", "42"),
        ("X-Remote-Group", "shepherds"),
        ("X-Remote-Group", "drivers, with a comma"),
        ("X-Remote-Extra-Example.com%2fScopes", "read"),
        ("X-Remote-Extra-Example.com%2fScopes", "write"),
        ("X-Remote-Extra-100%", "größe"),
        ("Authorization", "Bearer of-somebody-else"),
        ("Impersonate-User", "somebody else"),
    ])
    .unwrap();
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
    let other = ("X-Other-User", "other");
    assert_eq!(named(&[other, ("X-Remote-User", "jane")]), known("jane", &[AUTHENTICATED]));
    assert_eq!(named(&[other, ("X-Remote-User", "")]), known("other", &[AUTHENTICATED]));
    assert_eq!(named(&[("X-Remote-Group", MASTERS)]), Err(Status::unauthorized()), "it names nobody");
}

#[test]
fn pollers_without_a_group_are_authenticated_and_anonymous_callers_of_the_proxy_are_not() {
    let of = |user, group| named(&[("x-remote-user", user), ("x-remote-group", group)]);
    let poller = named(&[("x-remote-user", "system:aggregator")]);
    assert_eq!(poller, known("system:aggregator", &[AUTHENTICATED]));
    assert_eq!(of("jane", AUTHENTICATED), known("jane", &[AUTHENTICATED]), "once");
    assert_eq!(of(ANONYMOUS, UNAUTHENTICATED), known(ANONYMOUS, &[UNAUTHENTICATED]));
    let aggregator = "system:kube-aggregator";
    assert_eq!(of(aggregator, MASTERS), known(aggregator, &[MASTERS, AUTHENTICATED]));
}

#[test]
fn the_front_proxy_is_whoever_its_authority_vouches_for_under_an_allowed_name() {
    let proxies = TestIssuer::new("proxies");
    let name = "front-proxy-client";
    let is_front_proxy = |data: &BTreeMap<String, String>, certificate: CertificateDer<'static>| {
        read(data).is_front_proxy(&certificate, &[], now())
    };
    let mut data = data(&proxies);
    for (what, certificate, expected) in [
        ("its own", proxies.client(name), true),
        ("another name", proxies.client("another"), false),
        ("expired", proxies.expired(name), false),
        ("a server's", proxies.server(name), false),
        ("another authority's", TestIssuer::new("strangers").client(name), false),
        ("no certificate", CertificateDer::from(vec![1, 2, 3]), false),
    ] {
        assert_eq!(is_front_proxy(&data, certificate), expected, "{what}");
    }
    data.insert("requestheader-allowed-names".into(), "[]".into());
    assert!(is_front_proxy(&data, proxies.client("another")), "no names are any name");
    data.remove("requestheader-client-ca-file");
    assert!(!is_front_proxy(&data, proxies.client(name)), "without an authority there is nobody");
}

#[test]
fn each_authority_of_a_bundle_vouches_while_it_is_valid() {
    let (old, new) = (TestIssuer::new("proxies"), TestIssuer::new("proxies"));
    let mut both = data(&old);
    both.insert("requestheader-client-ca-file".into(), format!("{}{}", old.pem, new.pem));
    for issuer in [&old, &new] {
        assert!(read(&both).is_front_proxy(&issuer.client("front-proxy-client"), &[], now()));
    }
    for (from, until, is_valid) in [(-10, 1, true), (-10, -1, false), (1, 10, false)] {
        let issuer = TestIssuer::valid("proxies", from, until);
        let certificate = issuer.client("front-proxy-client");
        assert_eq!(read(&data(&issuer)).is_front_proxy(&certificate, &[], now()), is_valid, "{from} {until}");
    }
}

#[test]
fn a_header_of_the_front_proxy_that_is_no_text_is_not_left_out() {
    let authentication = read(&data(&TestIssuer::new("proxies")));
    for name in ["x-remote-user", "x-remote-group", "x-remote-uid", "x-remote-extra-a"] {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", HeaderValue::from_static("jane"));
        headers.insert(name, HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(authentication.user(&headers), Err(Status::unauthorized()), "{name}");
    }
}

#[test]
fn what_cannot_be_read_in_the_config_map_is_named() {
    for (key, value) in [
        ("requestheader-client-ca-file", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        ("requestheader-allowed-names", "front-proxy-client"),
        ("requestheader-group-headers", r#"["X Remote"]"#),
    ] {
        let mut data = data(&TestIssuer::new("proxies"));
        data.insert(key.into(), value.into());
        let error = Authentication::of_config_map(&data).unwrap_err();
        assert!(error.to_string().starts_with(&format!("key {key:?}: ")), "{error}");
    }
}
