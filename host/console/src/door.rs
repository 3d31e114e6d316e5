//! [`Door`]: who may come in, and how a caller shows who it is.
//!
//! Two doors lead to one router. `pintle console` opens the one on loopback: it acts with the rights of a kubeconfig, so a browser must show
//! a cookie, which is given for the secret in the page's URL. `pintle gateway` opens the one in a cluster: callers bring a bearer token of
//! their own, which is sent on.
//!
//! [`hosts`] and [`origin`] decide before anything else does, and know nothing of what is asked for.

pub mod hosts;
pub mod origin;

use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, HeaderValue, header};

use crate::{
    problem::{ModeName, Problem},
    secret::Secret,
};
use hosts::{Host, Hosts};

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
    /// By a cookie, which stands for the kubeconfig of whoever started this process.
    Local(Local),
    /// By a bearer token of their own.
    Token,
}

/// The secrets of one launch.
#[derive(Debug)]
pub struct Local {
    port: u16,
    /// In the URL that is printed. It is good as long as the process runs.
    printed: Secret,
    /// In the URL that a browser is opened with. Other users of the machine may read it in the list of processes, so it is good once.
    once: Mutex<Option<Secret>>,
    /// The value of the cookie.
    cookie: Secret,
}

impl Door {
    /// The door on loopback, at this port.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub fn local(port: u16) -> std::io::Result<Self> {
        let local = Local {
            port,
            printed: Secret::random()?,
            once: Mutex::new(Some(Secret::random()?)),
            cookie: Secret::random()?,
        };
        Ok(Self { hosts: Hosts::loopback(port), cors: Vec::new(), mode: Mode::Local(local) })
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

impl Local {
    /// The URL that is printed.
    pub fn url(&self) -> String {
        self.url_with(&self.printed)
    }

    /// The URL that a browser is opened with; it works once.
    pub fn url_once(&self) -> Option<String> {
        let once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        once.as_ref().map(|secret| self.url_with(secret))
    }

    fn url_with(&self, secret: &Secret) -> String {
        format!("http://127.0.0.1:{}/console/#{}", self.port, secret.reveal())
    }

    /// The cookie for whoever shows a secret of this launch.
    ///
    /// # Errors
    /// 401 for any other one.
    pub fn admit(&self, shown: &str) -> Result<HeaderValue, Problem> {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = once.as_ref().is_some_and(|secret| secret.is(shown));
        if is_first {
            *once = None;
        }
        drop(once);
        let refused = || {
            Problem::unauthorized(
                "this is not the secret of this launch: open the URL that pintle console prints",
            )
            .because("SecretInvalid")
        };
        if !is_first && !self.printed.is(shown) {
            return Err(refused());
        }
        let cookie =
            format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie_name(), self.cookie.reveal());
        let mut cookie = HeaderValue::from_str(&cookie).map_err(|_| refused())?;
        cookie.set_sensitive(true);
        Ok(cookie)
    }

    /// Whether a request shows the cookie.
    pub fn is_admitted(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        // A browser may have one of an earlier launch at this port beside it.
        cookies.flat_map(|cookies| cookies.split(';')).any(|cookie| {
            let (found, value) = cookie.trim().split_once('=').unwrap_or_default();
            found == name && self.cookie.is(value)
        })
    }

    /// Browsers send a cookie to every port of a host.
    fn cookie_name(&self) -> String {
        format!("pintle-console-{}", self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> Local {
        match Door::local(4711).unwrap().mode {
            Mode::Local(local) => local,
            Mode::Token => unreachable!(),
        }
    }

    fn secret(url: &str) -> String {
        url.strip_prefix("http://127.0.0.1:4711/console/#").unwrap().to_owned()
    }

    #[test]
    fn the_secret_in_the_url_is_given_a_cookie_that_scripts_and_other_sites_do_not_have() {
        let local = local();
        let cookie = local.admit(&secret(&local.url())).unwrap();
        let cookie = cookie.to_str().unwrap();
        assert!(cookie.starts_with("pintle-console-4711="), "{cookie}");
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        assert!(!cookie.contains(&secret(&local.url())), "the cookie is not the secret");
        for wrong in ["", "0", &"0".repeat(64)] {
            assert_eq!(local.admit(wrong).unwrap_err().status, 401);
        }
    }

    #[test]
    fn the_secret_that_a_browser_is_opened_with_is_good_once() {
        let local = local();
        let once = secret(&local.url_once().unwrap());
        assert!(local.admit(&once).is_ok() && local.admit(&once).is_err());
        assert_eq!(local.url_once(), None);
        assert!(local.admit(&secret(&local.url())).is_ok() && local.admit(&secret(&local.url())).is_ok());
    }

    #[test]
    fn only_the_cookie_of_this_launch_lets_in() {
        let local = local();
        let cookie = local.admit(&secret(&local.url())).unwrap();
        let value = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        let shows = |cookies: &[&str]| {
            let mut headers = HeaderMap::new();
            for cookie in cookies {
                headers.append(header::COOKIE, cookie.parse().unwrap());
            }
            local.is_admitted(&headers)
        };
        assert!(shows(&[&value]) && shows(&["a=b", &format!("pintle-console-4711=old; {value}")]));
        let stolen = value.replace("4711", "4712");
        for wrong in ["", "pintle-console-4711=", "pintle-console-4711", &stolen, &value[..value.len() - 1]] {
            assert!(!shows(&[wrong]), "{wrong}");
        }
        assert!(!shows(&[]));
    }
}
