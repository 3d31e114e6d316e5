//! [`Door`]: who may come in, and how a caller shows who it is.
//!
//! Two doors lead to one router. `pintle console` opens the one on loopback: it acts with the rights of a kubeconfig, so a browser must show
//! what it was given for the secret in the page's URL ([`local`]). `pintle gateway` opens the one in a cluster: callers bring a bearer token
//! of their own, which is sent on.
//!
//! [`hosts`] and [`origin`] decide before anything else does, and know nothing of what is asked for.

pub mod hosts;
pub mod local;
pub mod origin;

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use crate::problem::ModeName;
use hosts::{Host, Hosts};
use local::{Local, SignedIn};

/// A door.
#[derive(Debug)]
pub struct Door {
    /// The names under which it may be called.
    pub hosts: Hosts,
    /// The other origins whose pages may call it: never with the first mode.
    pub cors: Vec<HeaderValue>,
    /// How callers show who they are.
    pub mode: Mode,
}

/// How callers show who they are.
#[derive(Debug)]
pub enum Mode {
    /// By a cookie and a token, which stand for the kubeconfig of whoever started this process.
    Local(Arc<Local>),
    /// By a bearer token of their own.
    Token,
}

impl Door {
    /// The door on loopback.
    pub fn local(local: Arc<Local>) -> Self {
        Self { hosts: Hosts::loopback(local.port()), cors: Vec::new(), mode: Mode::Local(local) }
    }

    /// The door in a cluster, under these names, for its own pages and those of these origins.
    pub fn token(hosts: Vec<Host>, cors: Vec<HeaderValue>) -> Self {
        Self { hosts: Hosts(hosts), cors, mode: Mode::Token }
    }

    /// Whether a request shows what a session gives: until when it may be answered. A token of a cluster ends by itself.
    pub fn signed_in(&self, headers: &HeaderMap) -> Option<SignedIn> {
        match &self.mode {
            Mode::Local(local) => local.signed_in(headers),
            Mode::Token => None,
        }
    }

    /// The name of the mode.
    pub fn mode_name(&self) -> ModeName {
        match self.mode {
            Mode::Local(_) => ModeName::Local,
            Mode::Token => ModeName::Token,
        }
    }
}
