//! The log level, which is the one setting that can be changed while the host runs.
//!
//! The listener is only on the loopback interface, so that a user who can reach it could also signal the process. In a cluster these are
//! the users who may forward a port of the Pod: `kubectl port-forward`, then `curl -X PUT localhost:8081/loglevel -d debug`.

use std::net::SocketAddr;

use anyhow::Context;
use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    routing::get,
};
use pintle_runtime::logging::Handle;
use tokio::{net::TcpListener, task::JoinHandle};
use tracing::{info, warn};
use tracing_subscriber::{EnvFilter, reload};

/// The longest directives that are taken, in bytes: a dozen modules with a level each.
const BODY_BYTES_MAX: usize = 4096;

/// The log level, which can be changed while the host runs.
#[derive(Clone)]
pub(crate) struct LogLevel(pub(crate) Option<Handle>);

/// Why the level was not changed.
#[derive(Debug, thiserror::Error)]
enum LevelError {
    #[error(
        "{0:?} is no level: one of off, error, warn, info, debug, trace, or directives as info,pintle::operator=debug"
    )]
    Unknown(String),
    #[error("this process does not log by itself")]
    NoLog,
    #[error(transparent)]
    Directives(#[from] tracing_subscriber::filter::ParseError),
    #[error(transparent)]
    Reload(#[from] reload::Error),
}

impl LogLevel {
    fn get(&self) -> String {
        let now = self.0.as_ref().and_then(|handle| handle.with_current(ToString::to_string).ok());
        now.unwrap_or_else(|| "unknown".into())
    }

    fn set(&self, text: &str) -> Result<String, LevelError> {
        let filter = directives(text)?;
        let handle = self.0.as_ref().ok_or(LevelError::NoLog)?;
        let before = self.get();
        handle.reload(filter)?;
        warn!(before, now = text.trim(), "The log level was changed; it is as before after a restart");
        Ok(self.get())
    }
}

/// A level, or tracing directives as `info,pintle::operator::lease=debug`. What is neither is refused, not taken for a module's name.
fn directives(text: &str) -> Result<EnvFilter, LevelError> {
    let text = text.replace(char::is_whitespace, "");
    let is_level = |word: &str| word.parse::<tracing::Level>().is_ok() || word.eq_ignore_ascii_case("off");
    let good = |directive: &str| match directive.rsplit_once('=') {
        Some((target, level)) => !target.is_empty() && is_level(level),
        None => is_level(directive),
    };
    if text.is_empty() || !text.split(',').all(good) {
        return Err(LevelError::Unknown(text));
    }
    Ok(EnvFilter::try_new(&text)?)
}

/// Listens for changes.
///
/// # Errors
/// When the address is not one of the loopback interface, or the host cannot listen on it.
pub(crate) async fn serve(address: SocketAddr, level: LogLevel) -> anyhow::Result<JoinHandle<()>> {
    anyhow::ensure!(
        address.ip().is_loopback(),
        "--admin-bind takes an address of the loopback interface, as 127.0.0.1:8081, not {address}: whoever reaches it may change the host"
    );
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address} (--admin-bind)"))?;
    info!(address = %listener.local_addr()?, "The log level can be changed");
    let routes = Router::new()
        .route("/loglevel", get(show).put(change))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(level);
    Ok(tokio::spawn(async move {
        let _ = axum::serve(listener, routes).await;
    }))
}

async fn show(State(level): State<LogLevel>) -> String {
    level.get() + "\n"
}

async fn change(State(level): State<LogLevel>, text: String) -> (StatusCode, String) {
    match level.set(&text) {
        Ok(now) => (StatusCode::OK, now + "\n"),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_level_or_directives_are_taken_and_nothing_else() {
        for good in ["debug", " WARN\n", "off", "info,pintle::operator=debug", "warn, kube=error"] {
            assert!(directives(good).is_ok(), "{good}");
        }
        for bad in ["", "loud", "info,", "pintle", "pintle=", "=debug", "pintle=loud"] {
            assert!(directives(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_change_holds_at_once() {
        let (filter, handle) = reload::Layer::new(EnvFilter::new("info"));
        let subscriber = tracing_subscriber::Registry::default().with(filter);
        let level = LogLevel(Some(handle));
        tracing::subscriber::with_default(subscriber, || {
            assert!(!tracing::enabled!(tracing::Level::DEBUG));
            assert_eq!(level.set("debug").unwrap(), "debug");
            assert!(tracing::enabled!(tracing::Level::DEBUG));
            assert!(level.set("loud").is_err());
            assert_eq!(level.get(), "debug");
        });
    }

    #[tokio::test]
    async fn nobody_but_the_machine_itself_is_listened_to() {
        let refused = serve("0.0.0.0:0".parse().unwrap(), LogLevel(None)).await.expect_err("refused");
        assert!(refused.to_string().contains("loopback"), "{refused}");
        assert!(serve("127.0.0.1:0".parse().unwrap(), LogLevel(None)).await.is_ok());
    }
}
