//! The flags of `pintle gateway`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use pintle_api as api;
use pintle_kubernetes::connect::Connect;
use pintle_modules::{child, memory_limit};
use pintle_runtime::{clock, logging::LogFlags};

/// The flags of `pintle gateway`.
#[derive(Clone, Debug, clap::Args)]
pub struct Flags {
    /// Address of the aggregated API, over TLS
    #[arg(long, env = "PINTLE_AGGREGATED_BIND", default_value = "0.0.0.0:8443", value_name = "ADDRESS")]
    pub(crate) aggregated_bind: SocketAddr,
    /// Address of /healthz, /readyz and /metrics, without TLS. If omitted, they are served with the aggregated API alone
    #[arg(long, env = "PINTLE_HEALTH_BIND", value_name = "ADDRESS")]
    pub(crate) health_bind: Option<SocketAddr>,
    /// The Service that leads to the gateway. Its name is in the certificate, and APIServices name it
    #[arg(long, env = "PINTLE_SERVICE", default_value_t = default_service(), value_name = "NAMESPACE/NAME")]
    pub(crate) service: ServiceName,
    /// Certificate of the server, in PEM. It is read again when it changes. If omitted, the gateway makes one, in Secret pintle-gateway-tls, and sets `caBundle` of its APIServices. With files, set `caBundle` yourself
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
    fn a_service_is_named_with_its_namespace() {
        let service: ServiceName = "a/b".parse().unwrap();
        assert_eq!((service.to_string(), service.name), ("a/b".to_owned(), "b".to_owned()));
        for wrong in ["", "a", "a/", "/b", "a/b/c", "A/b"] {
            assert!(wrong.parse::<ServiceName>().is_err(), "{wrong}");
        }
    }
}
