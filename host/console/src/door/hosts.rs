//! [`Hosts`]: the names under which the console may be called. This is what stops DNS rebinding: a page on a name that an attacker makes
//! lead to this address sends that name.

use http::{HeaderMap, StatusCode, Uri, header, uri::Authority};

use crate::problem::Problem;

/// The names under which the console may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(pub Vec<Host>);

/// A name, and the port if it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

/// The text is no host.
#[derive(Debug, thiserror::Error)]
#[error("a host name, and a port if it matters: console.example.com or console.example.com:8443")]
pub struct HostError;

impl std::str::FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let authority: Authority = text.parse().map_err(|_| HostError)?;
        let is_plain = !text.contains('@') && !authority.host().is_empty() && !text.contains('*');
        let port = authority.port_u16();
        let has_no_port = !text.contains(':') || text.ends_with(']');
        if !is_plain || (port.is_none() && !has_no_port) {
            return Err(HostError);
        }
        Ok(Self { name: authority.host().to_ascii_lowercase(), port })
    }
}

impl Hosts {
    /// The names of loopback, at this port.
    pub fn loopback(port: u16) -> Self {
        // Browsers leave this one out.
        let port = (port != 80).then_some(port);
        Self(["127.0.0.1", "localhost", "[::1]"].map(|name| Host { name: name.into(), port }).into())
    }

    /// Whether this names us.
    pub fn includes(&self, authority: &Authority) -> bool {
        let name = authority.host().to_ascii_lowercase();
        let port = authority.port_u16();
        let is = |host: &Host| host.name == name && (host.port.is_none() || host.port == port);
        !authority.as_str().contains('@') && self.0.iter().any(is)
    }

    /// The name by which a request calls us.
    ///
    /// # Errors
    /// 400 where there is none, or two; 421 where it is none of ours.
    pub fn judge(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Problem> {
        let mut named = headers.get_all(header::HOST).iter();
        let in_header = named.next().map(|value| {
            let text = value.to_str().ok();
            text.and_then(|text| text.parse::<Authority>().ok())
                .ok_or_else(|| Problem::bad_request("the header Host is none"))
        });
        if named.next().is_some() {
            return Err(Problem::bad_request("the header Host is there twice"));
        }
        let in_header = in_header.transpose()?;
        let called = match (uri.authority(), in_header) {
            (Some(one), Some(other)) if !one.as_str().eq_ignore_ascii_case(other.as_str()) => {
                return Err(Problem::bad_request("the request names two hosts"));
            }
            (Some(one), _) => one.clone(),
            (None, Some(other)) => other,
            (None, None) => return Err(Problem::bad_request("the request names no host")),
        };
        if !self.includes(&called) {
            let message =
                "the console is not served under this name: in a cluster, name it with --console-host";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, message).because("HostNotAllowed"));
        }
        Ok(called)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(hosts: &Hosts, uri: &str, named: &[&str]) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        for host in named {
            headers.append(header::HOST, host.parse().unwrap());
        }
        let judged = hosts.judge(&uri.parse().unwrap(), &headers);
        judged.map(|host| host.to_string()).map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn loopback_is_called_by_its_own_names_and_its_port() {
        let hosts = Hosts::loopback(4711);
        for ours in ["127.0.0.1:4711", "localhost:4711", "LocalHost:4711", "[::1]:4711"] {
            assert_eq!(judge(&hosts, "/", &[ours]), Ok(ours.into()));
        }
        for other in [
            "evil.test:4711",
            "127.0.0.1",
            "127.0.0.1:4712",
            "localhost.evil.test:4711",
            "127.0.0.2:4711",
            "x@localhost:4711",
        ] {
            assert_eq!(judge(&hosts, "/", &[other]), Err(421), "{other}");
        }
        assert_eq!(judge(&Hosts::loopback(80), "/", &["localhost"]), Ok("localhost".into()));
        assert_eq!(judge(&hosts, "/", &[]), Err(400));
        assert_eq!(judge(&hosts, "/", &["localhost:4711", "localhost:4711"]), Err(400));
        assert_eq!(judge(&hosts, "/", &["a b"]), Err(400));
    }

    #[test]
    fn http_2_and_absolute_requests_name_the_host_in_the_uri() {
        let hosts = Hosts(vec!["console.example.com".parse().unwrap()]);
        assert_eq!(judge(&hosts, "https://console.example.com/", &[]), Ok("console.example.com".into()));
        assert_eq!(judge(&hosts, "https://console.example.com/", &["evil.test"]), Err(400));
        assert_eq!(judge(&hosts, "http://evil.test/", &[]), Err(421));
    }

    #[test]
    fn a_name_without_a_port_is_good_at_every_port() {
        let hosts = Hosts(vec!["Console.example.com".parse().unwrap(), "b.test:8443".parse().unwrap()]);
        assert!(judge(&hosts, "/", &["console.example.com:1"]).is_ok());
        assert!(judge(&hosts, "/", &["b.test:8443"]).is_ok());
        assert_eq!(judge(&hosts, "/", &["b.test"]), Err(421));
        for wrong in ["", "*", "*.example.com", "a b", "a@b", "a:b", "a:", "https://a"] {
            assert!(wrong.parse::<Host>().is_err(), "{wrong}");
        }
    }
}
