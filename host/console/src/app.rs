//! [`App`]: what serves requests, behind one door.

use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use tokio::sync::{Semaphore, watch};

use crate::{
    assets::Assets,
    caller::Caller,
    documents::Provider,
    door::{Door, Mode},
    memory::Memory,
    problem::Problem,
    token::Token,
    users::{User, Users},
    watches::Watches,
    workshop::Shop,
};

/// How many requests of those who are known are in work at once: a tenth of what the API server serves at once by default.
pub const REQUESTS: usize = 64;

/// What serves requests.
pub struct App {
    /// Who may come in.
    pub door: Door,
    /// The way to the API server: the kubeconfig's client on loopback; behind the other door a client that has no certificate and no token
    /// of its own.
    pub upstream: kube::Client,
    /// What the answers of the API server may take.
    pub memory: Memory,
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
    /// Who callers are, as the API server says it.
    pub users: Users,
    /// [`REQUESTS`] places. Whoever is not known yet holds none, so that strangers keep nobody out.
    pub requests: Semaphore,
    /// How many watches of callers are open.
    pub watches: Watches,
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
    /// The namespace that the context names, if it names one.
    pub namespace: Option<String>,
}

impl App {
    /// Who sends a request, by the name that the API server knows it by. On this machine there is one user, who has the secret.
    ///
    /// # Errors
    /// 401 when it does not show who it is, or the API server does not know it; 429 and 504 when that cannot be found out now.
    pub async fn known(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        let caller = self.shown(headers).map_err(|problem| self.with_mode(problem))?;
        if let Mode::Local(_) = self.door.mode {
            return Ok(caller);
        }
        let user = self.user(&caller).await?;
        Ok(caller.named(&user.name))
    }

    /// Who the API server takes a caller for.
    ///
    /// # Errors
    /// As [`App::known`].
    pub async fn user(&self, caller: &Caller) -> Result<User, Problem> {
        self.users.user(caller).await.map_err(|problem| self.with_mode(problem))
    }

    /// Whoever is not known is told how to show who it is.
    fn with_mode(&self, problem: Problem) -> Problem {
        let mode = (problem.status == StatusCode::UNAUTHORIZED).then(|| self.door.mode_name());
        Problem { mode, ..problem }
    }

    /// Whether a request with these headers shows who sends it, whatever that is worth.
    pub fn shows_who(&self, headers: &HeaderMap) -> bool {
        self.shown(headers).is_ok()
    }

    fn shown(&self, headers: &HeaderMap) -> Result<Caller, Problem> {
        match &self.door.mode {
            Mode::Local(local) if local.opens_for(headers) => {
                Ok(Caller::of_kubeconfig(self.upstream.clone(), self.memory.clone()))
            }
            Mode::Local(_) => Err(Problem::unauthorized(
                "the secret of this console is needed: open the address that pintle console printed",
            )
            .because("SessionRequired")),
            Mode::Token => {
                let token = Token::of(headers).map_err(|error| Problem::unauthorized(error.to_string()))?;
                Ok(Caller::with_token(self.upstream.clone(), token, self.memory.clone()))
            }
        }
    }

    /// Whether the process stops.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
