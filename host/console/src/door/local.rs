//! [`Local`]: the way in on this machine, for whoever started the process and nobody else.
//!
//! Other users of the machine reach the port too, so each request shows the secret of the process. It comes in a header and not in a cookie:
//! browsers send a cookie to every port of a host, and a page at another port can overwrite it.

use std::io;

use http::HeaderMap;

use crate::{secret::Secret, token::Token};

/// The way in on this machine, at one port.
#[derive(Debug)]
pub struct Local {
    port: u16,
    secret: Secret,
}

impl Local {
    /// The way in at this port, with a new secret.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub fn new(port: u16) -> io::Result<Self> {
        Ok(Self { port, secret: Secret::random()? })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that signs a browser in. Its secret stands behind `#`, which browsers send to nobody.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/console/#{}", self.port, self.secret.reveal())
    }

    /// Whether a request shows the secret.
    pub fn opens_for(&self, headers: &HeaderMap) -> bool {
        Token::of(headers).is_ok_and(|token| token.is(&self.secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_the_address_is_the_token_of_this_process_and_of_no_other() {
        let (local, other) = (Local::new(4711).unwrap(), Local::new(4711).unwrap());
        let secret = |local: &Local| {
            let address = local.address();
            address.strip_prefix("http://127.0.0.1:4711/console/#").unwrap().to_owned()
        };
        let opens_for = |name: &'static str, value: String| {
            local.opens_for(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]))
        };
        let own = secret(&local);
        assert!(opens_for("authorization", format!("Bearer {own}")));
        assert!(opens_for("authorization", format!("Bearer {own}")), "any number of times");
        assert!(!local.opens_for(&HeaderMap::new()));
        for wrong in [String::new(), own[1..].to_owned(), secret(&other)] {
            assert!(!opens_for("authorization", format!("Bearer {wrong}")), "{wrong}");
        }
        assert!(!opens_for("authorization", format!("Basic {own}")));
        assert!(!opens_for("cookie", format!("pintle-console-4711={own}")));
    }
}
