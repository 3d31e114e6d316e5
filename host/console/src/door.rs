//! [`Door`]: who may come in, and how a caller shows who it is.
//!
//! Two doors lead to one router. `pintle console` opens the one on loopback: it acts with the rights of a kubeconfig, so callers show the
//! secret of the process ([`local`]). `pintle gateway` opens the one in a cluster: callers bring a bearer token of their own, which is sent on.
//!
//! [`hosts`] and [`origin`] decide before anything else does, and know nothing of what is asked for.

pub mod hosts;
pub mod local;
pub mod origin;

use http::HeaderValue;

use crate::problem::ModeName;
use hosts::{Host, Hosts};
use local::Local;

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
    /// By the secret of this process, which stands for the kubeconfig of whoever started it.
    Local(Local),
    /// By a bearer token of their own.
    Token,
}

impl Door {
    /// The door on loopback.
    pub fn local(local: Local) -> Self {
        Self { hosts: Hosts::loopback(local.port()), cors: Vec::new(), mode: Mode::Local(local) }
    }

    /// The door in a cluster, under these names, for its own pages and those of these origins.
    pub fn token(hosts: Vec<Host>, cors: Vec<HeaderValue>) -> Self {
        Self { hosts: Hosts(hosts), cors, mode: Mode::Token }
    }

    /// The name of the mode.
    pub fn mode_name(&self) -> ModeName {
        match self.mode {
            Mode::Local(_) => ModeName::Local,
            Mode::Token => ModeName::Token,
        }
    }
}
