//! The flags of `pintle gateway`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use http::{HeaderValue, Uri};
use pintle_api as api;
use pintle_console::door::hosts::Host;
use pintle_kubernetes::connect::Connect;
use pintle_modules::{child, memory_limit};
use pintle_runtime::{clock, logging::LogFlags};

/// The flags of `pintle gateway`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Address of the aggregated API, over TLS. Only the API server's front proxy may connect
    #[arg(long, env = "PINTLE_AGGREGATED_BIND", default_value = "0.0.0.0:8443", value_name = "ADDRESS")]
    pub(crate) aggregated_bind: SocketAddr,
    /// Address of /healthz, /readyz and /metrics, without TLS. If omitted, they are not served
    #[arg(long, env = "PINTLE_HEALTH_BIND", value_name = "ADDRESS")]
    pub(crate) health_bind: Option<SocketAddr>,
    /// The Service that leads to the gateway. Its name is in the certificate, and APIServices name it
    #[arg(long, env = "PINTLE_SERVICE", default_value_t = default_service(), value_name = "NAMESPACE/NAME")]
    pub(crate) service: ServiceName,
    /// Certificate of the server, in PEM. It is read again when it changes. If omitted, the gateway signs one with the CA in Secret
    /// pintle-gateway-tls, and sets `caBundle` of its APIServices. With files, set `caBundle` yourself
    #[arg(long, env = "PINTLE_TLS_CERT_FILE", value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Key of that certificate, in PEM
    #[arg(long, env = "PINTLE_TLS_PRIVATE_KEY_FILE", value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Memory that this process may use, such as 256Mi. If omitted, it is the limit of the control group, or half of the memory of the machine
    #[arg(long, env = "PINTLE_MEMORY_BUDGET", value_name = "AMOUNT", value_parser = memory_limit::quantity)]
    pub(crate) memory_budget: Option<u64>,
    /// How much of a processor's time compiling one module may take, in seconds
    #[arg(long, env = "PINTLE_COMPILE_CPU_SECONDS", default_value_t = child::CPU.as_secs(), value_name = "N", hide = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) compile_cpu_seconds: u64,
    /// Address of the console and its API. If omitted, there is none. Callers bring a bearer token, which is sent on: the gateway's own
    /// rights are never used for them
    #[arg(long, env = "PINTLE_CONSOLE_BIND", value_name = "ADDRESS", requires = "console_host")]
    pub(crate) console_bind: Option<SocketAddr>,
    /// Name under which the console is called, with its port if that matters. May be given several times. Requests that call another name
    /// are refused
    #[arg(
        long,
        env = "PINTLE_CONSOLE_HOST",
        value_name = "HOST",
        value_delimiter = ',',
        requires = "console_bind"
    )]
    pub(crate) console_host: Vec<Host>,
    /// Certificate of the console, in PEM. It is read again when it changes. An address that is not of loopback needs it, or
    /// --console-insecure-http
    #[arg(
        long,
        env = "PINTLE_CONSOLE_TLS_CERT_FILE",
        value_name = "FILE",
        requires = "console_tls_private_key_file",
        requires = "console_bind"
    )]
    pub(crate) console_tls_cert_file: Option<PathBuf>,
    /// Key of that certificate, in PEM
    #[arg(
        long,
        env = "PINTLE_CONSOLE_TLS_PRIVATE_KEY_FILE",
        value_name = "FILE",
        requires = "console_tls_cert_file"
    )]
    pub(crate) console_tls_private_key_file: Option<PathBuf>,
    /// Serve the console without TLS, behind something that has it. Whoever listens between both reads the tokens of its users
    #[arg(
        long,
        env = "PINTLE_CONSOLE_INSECURE_HTTP",
        requires = "console_bind",
        conflicts_with = "console_tls_cert_file"
    )]
    pub(crate) console_insecure_http: bool,
    /// Another origin whose pages may call the console's API, such as https://tools.example.com. May be given several times
    #[arg(long, env = "PINTLE_CONSOLE_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',', requires = "console_bind", value_parser = origin)]
    pub(crate) console_cors_origin: Vec<HeaderValue>,
    #[command(flatten)]
    pub(crate) log: LogFlags,
    // Last, since its heading is taken to be that of every flag after it.
    #[command(flatten)]
    pub(crate) connect: Connect,
}

/// A Service, by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

fn default_service() -> ServiceName {
    ServiceName { namespace: api::NAMESPACE.into(), name: api::GATEWAY_SERVICE.into() }
}

impl std::fmt::Display for ServiceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The text names no Service.
#[derive(Debug, thiserror::Error)]
#[error("a namespace and a name, as pintle-system/pintle-gateway")]
pub(crate) struct ServiceNameError;

impl std::str::FromStr for ServiceName {
    type Err = ServiceNameError;

    fn from_str(text: &str) -> Result<Self, ServiceNameError> {
        let (namespace, name) = text.split_once('/').ok_or(ServiceNameError)?;
        let is_label = pintle_wit::syntax::is_label;
        match is_label(namespace) && is_label(name) {
            true => Ok(Self { namespace: namespace.into(), name: name.into() }),
            false => Err(ServiceNameError),
        }
    }
}

/// An origin, exactly as browsers write it.
fn origin(text: &str) -> Result<HeaderValue, String> {
    let wrong = || "a scheme and a host, as https://tools.example.com".to_owned();
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let is_web = matches!(uri.scheme_str(), Some("https" | "http"));
    let authority = uri.authority().filter(|_| is_web).ok_or_else(wrong)?;
    let written = format!("{}://{authority}", uri.scheme_str().unwrap_or_default());
    match written == text && !text.contains('@') && !text.contains('*') && text.to_ascii_lowercase() == text {
        true => HeaderValue::from_str(text).map_err(|_| wrong()),
        false => Err(wrong()),
    }
}

impl Flags {
    /// What each compiler may use.
    pub(crate) fn compile_limits(&self) -> child::Limits {
        child::Limits { cpu: Duration::from_secs(self.compile_cpu_seconds), ..child::Limits::default() }
    }

    /// The name of this process in Events and audit logs.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub(crate) fn identity() -> std::io::Result<String> {
        clock::process_name("pintle-gateway")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_written_as_browsers_write_it() {
        assert_eq!(origin("https://tools.example.com").unwrap(), "https://tools.example.com");
        assert_eq!(origin("http://localhost:3000").unwrap(), "http://localhost:3000");
        for wrong in [
            "",
            "*",
            "null",
            "tools.example.com",
            "https://a/",
            "https://a/b",
            "https://A.b",
            "ftp://a",
            "https://u@a",
            "https://*.a",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_service_is_named_with_its_namespace() {
        let service: ServiceName = "a/b".parse().unwrap();
        assert_eq!((service.to_string(), service.name), ("a/b".to_owned(), "b".to_owned()));
        for wrong in ["", "a", "a/", "/b", "a/b/c", "A/b"] {
            assert!(wrong.parse::<ServiceName>().is_err(), "{wrong}");
        }
    }
}
