//! [`App`]: what serves requests, behind one door.

use std::sync::Arc;

use http::HeaderMap;
use tokio::sync::watch;

use crate::{
    assets::Assets,
    caller::Caller,
    documents::Provider,
    door::{Door, Mode},
    feed::Hub,
    problem::Problem,
    token::Token,
    workshop::Shop,
};

/// What serves requests.
pub struct App {
    /// Who may come in.
    pub door: Door,
    /// The way to the API server: the kubeconfig's client on loopback; behind the other door a client that has no certificate and no token
    /// of its own.
    pub upstream: kube::Client,
    /// The files of the pages.
    pub assets: Assets,
    /// The views that show documents.
    pub documents: Arc<dyn Provider>,
    /// What the pages say of where they are.
    pub about: About,
    /// Whether this is served over TLS.
    pub serves_tls: bool,
    /// Becomes true when the process stops.
    pub stopping: watch::Receiver<bool>,
    /// The watches that streams share.
    pub hub: Hub,
    /// Where modules are compiled and called, once that is there.
    pub shop: Shop,
}

/// What the pages say of where they are.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The version of this program.
    pub version: String,
    /// The cluster: the URL of its API server, or a name.
    pub cluster: String,
    /// The context of the kubeconfig, if that is how the cluster is reached.
    pub context: Option<String>,
}

impl App {
    /// Who sends a request with these headers.
    ///
    /// # Errors
    /// 401 when it does not show who it is.
    pub fn caller(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        match &self.door.mode {
            Mode::Local(local) if local.is_admitted(headers) => {
                Ok(Caller::of_kubeconfig(self.upstream.clone()))
            }
            Mode::Local(_) => {
                Err(Problem::unauthorized("open the URL that pintle console prints")
                    .because("SessionRequired"))
            }
            Mode::Token => {
                let token = Token::of(headers).map_err(|error| Problem::unauthorized(error.to_string()))?;
                Ok(Caller::with_token(self.upstream.clone(), token))
            }
        }
    }

    /// Whether the process stops.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
