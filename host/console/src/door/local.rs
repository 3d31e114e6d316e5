//! [`Local`]: the way in on this machine, for whoever started the process and nobody else.
//!
//! Other users of the machine reach the port too, and a browser sends a cookie to every port of a host, theirs among them. So each request
//! shows two things: a cookie, which scripts cannot read, and a token, which the browser keeps for this origin alone, port included. Both
//! are given for the secret of an [`Address`], which is good once. Whoever shows it again has it from somewhere: then nobody can tell who
//! came first, and everybody is signed out.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::sync::{oneshot, watch};

use crate::{
    problem::Problem,
    secret::{Fingerprint, Secret},
    token::Token,
};

/// The way in on this machine, at one port.
#[derive(Debug)]
pub struct Local {
    port: u16,
    keys: Mutex<Keys>,
}

/// What opens the door now.
#[derive(Debug, Default)]
struct Keys {
    /// Of those who are signed in; none before the first, and none after everybody was signed out.
    session: Option<Session>,
    /// Addresses that nobody has opened yet.
    unused: BTreeMap<Fingerprint, oneshot::Sender<Fate>>,
    /// Addresses that were opened for the session. It grows by one with each, and only who is given addresses can open them.
    used: BTreeSet<Fingerprint>,
}

/// What those show who are signed in. One user has one session, whatever number of browsers and programs.
#[derive(Debug)]
struct Session {
    cookie: Secret,
    token: Secret,
    /// The session ends with it.
    lives: watch::Sender<()>,
}

/// An address that signs one browser or program in, once.
#[derive(Debug)]
pub struct Address {
    /// Its secret stands behind `#`, which browsers send to nobody.
    pub url: String,
    fate: oneshot::Receiver<Fate>,
}

/// What became of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Somebody signed in with it.
    Used,
    /// It is no longer good, because everybody was signed out: another one was opened twice.
    Revoked,
}

impl Address {
    /// Waits for what becomes of it.
    pub async fn fate(self) -> Fate {
        self.fate.await.unwrap_or(Fate::Revoked)
    }
}

/// What whoever signs in is given.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// The header that sets the cookie.
    pub(crate) cookie: HeaderValue,
    pub(crate) token: String,
}

/// That a request showed what it needs, as long as that is good.
#[derive(Debug)]
pub struct SignedIn(watch::Receiver<()>);

impl SignedIn {
    /// Waits until everybody is signed out.
    pub async fn ended(mut self) {
        // Nothing is ever sent: it fails once the session is gone.
        while self.0.changed().await.is_ok() {}
    }
}

impl Session {
    fn new() -> io::Result<Self> {
        Ok(Self { cookie: Secret::random()?, token: Secret::random()?, lives: watch::Sender::new(()) })
    }
}

impl Local {
    /// The way in at this port. Nobody has an address yet.
    pub fn new(port: u16) -> Self {
        Self { port, keys: Mutex::default() }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address more.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub fn address(&self) -> io::Result<Address> {
        let secret = Secret::random()?;
        let (tell, fate) = oneshot::channel();
        self.keys().unused.insert(secret.fingerprint(), tell);
        Ok(Address { url: format!("http://127.0.0.1:{}/console/#{}", self.port, secret.reveal()), fate })
    }

    /// Signs in whoever shows the secret of an address for the first time.
    ///
    /// # Errors
    /// 401 for any other one. One that was good before ends the session, and all addresses with it.
    pub(crate) fn admit(&self, shown: &str) -> Result<Admitted, Problem> {
        let shown = Fingerprint::of(shown);
        let mut keys = self.keys();
        if keys.used.contains(&shown) {
            // What is dropped tells those who wait for it. That the address is forgotten keeps whoever has it from doing so again.
            *keys = Keys::default();
            return Err(Problem::unauthorized(
                "this address was opened before, so somebody else may know it: everybody is signed out, and pintle console prints a new one",
            )
            .because("SecretUsed"));
        }
        if !keys.unused.contains_key(&shown) {
            return Err(Problem::unauthorized(
                "this is no address that is still good: open the one that pintle console printed last",
            )
            .because("SecretInvalid"));
        }
        let session = match keys.session.take() {
            Some(session) => session,
            None => Session::new().map_err(|_| unable())?,
        };
        let session = keys.session.insert(session);
        let admitted = Admitted { cookie: self.cookie(session)?, token: session.token.reveal().to_owned() };
        if let Some(tell) = keys.unused.remove(&shown) {
            // Nobody may wait for it.
            let _ = tell.send(Fate::Used);
        }
        keys.used.insert(shown);
        Ok(admitted)
    }

    /// Whether a request shows both the cookie and the token of the session.
    pub fn signed_in(&self, headers: &HeaderMap) -> Option<SignedIn> {
        let token = Token::of(headers).ok()?;
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let keys = self.keys();
        let session = keys.session.as_ref()?;
        // A browser may have one of an earlier launch at this port beside it.
        let has_cookie = cookies.flat_map(|cookies| cookies.split(';')).any(|cookie| {
            let (found, value) = cookie.trim().split_once('=').unwrap_or_default();
            found == name && session.cookie.is(value)
        });
        (has_cookie && token.is(&session.token)).then(|| SignedIn(session.lives.subscribe()))
    }

    fn cookie(&self, session: &Session) -> Result<HeaderValue, Problem> {
        let (name, value) = (self.cookie_name(), session.cookie.reveal());
        let cookie = format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/");
        let mut cookie = HeaderValue::from_str(&cookie).map_err(|_| unable())?;
        cookie.set_sensitive(true);
        Ok(cookie)
    }

    /// Browsers send a cookie to every port of a host.
    fn cookie_name(&self) -> String {
        format!("pintle-console-{}", self.port)
    }
}

fn unable() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "nobody can be signed in")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(address: &Address) -> String {
        address.url.strip_prefix("http://127.0.0.1:4711/console/#").unwrap().to_owned()
    }

    fn headers(cookies: &[&str], token: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(header::COOKIE, cookie.parse().unwrap());
        }
        if !token.is_empty() {
            headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
        }
        headers
    }

    /// The cookie as a browser sends it, and the token.
    fn shown(admitted: &Admitted) -> (String, String) {
        let cookie = admitted.cookie.to_str().unwrap().split(';').next().unwrap();
        (cookie.to_owned(), admitted.token.clone())
    }

    #[test]
    fn a_secret_is_given_a_cookie_that_scripts_and_other_sites_do_not_have_and_a_token() {
        let local = Local::new(4711);
        let secret = secret(&local.address().unwrap());
        let admitted = local.admit(&secret).unwrap();
        let cookie = admitted.cookie.to_str().unwrap();
        assert!(cookie.starts_with("pintle-console-4711="), "{cookie}");
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
        assert!(!cookie.contains(&secret) && !cookie.contains(&admitted.token) && admitted.token != secret);
        for wrong in ["", "0", &"0".repeat(64)] {
            let problem = local.admit(wrong).unwrap_err();
            assert_eq!((problem.status.as_u16(), problem.reason.as_deref()), (401, Some("SecretInvalid")));
        }
        let (cookie, token) = shown(&admitted);
        assert!(local.signed_in(&headers(&[&cookie], &token)).is_some(), "a wrong guess ends nothing");
    }

    #[test]
    fn only_both_the_cookie_and_the_token_let_in() {
        let local = Local::new(4711);
        assert!(local.signed_in(&headers(&["pintle-console-4711="], "x")).is_none(), "nobody has signed in");
        let (cookie, token) = shown(&local.admit(&secret(&local.address().unwrap())).unwrap());
        let shows = |cookies: &[&str], token: &str| local.signed_in(&headers(cookies, token)).is_some();
        assert!(shows(&[&cookie], &token));
        assert!(shows(&["a=b", &format!("pintle-console-4711=old; {cookie}")], &token));
        assert!(!shows(&[&cookie], "") && !shows(&[], &token) && !shows(&[], ""));
        let value = cookie.split_once('=').unwrap().1;
        assert!(!shows(&[&cookie], value), "the cookie, sent to another port, tells nothing of the token");
        assert!(!shows(&[&format!("pintle-console-4711={token}")], &token));
        let elsewhere = cookie.replace("4711", "4712");
        for wrong in
            ["", "pintle-console-4711=", "pintle-console-4711", &elsewhere, &cookie[..cookie.len() - 1]]
        {
            assert!(!shows(&[wrong], &token), "{wrong}");
        }
        assert!(!shows(&[&cookie], &token[..token.len() - 1]));
    }

    #[tokio::test]
    async fn an_address_is_good_once_and_whoever_is_signed_in_stays_so() {
        let local = Local::new(4711);
        let (one, other) = (local.address().unwrap(), local.address().unwrap());
        let first = local.admit(&secret(&one)).unwrap();
        assert_eq!(one.fate().await, Fate::Used);
        let second = local.admit(&secret(&other)).unwrap();
        assert_eq!(other.fate().await, Fate::Used);
        for admitted in [first, second] {
            let (cookie, token) = shown(&admitted);
            assert!(local.signed_in(&headers(&[&cookie], &token)).is_some());
        }
    }

    #[tokio::test]
    async fn an_address_that_is_opened_twice_signs_everybody_out_and_revokes_all_others() {
        let local = Local::new(4711);
        let (opened, waits) = (local.address().unwrap(), local.address().unwrap());
        let opened = secret(&opened);
        let (cookie, token) = shown(&local.admit(&opened).unwrap());
        let signed_in = local.signed_in(&headers(&[&cookie], &token)).unwrap();

        let problem = local.admit(&opened).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.reason.as_deref()), (401, Some("SecretUsed")));
        signed_in.ended().await;
        assert!(local.signed_in(&headers(&[&cookie], &token)).is_none());
        let revoked = secret(&waits);
        assert_eq!(waits.fate().await, Fate::Revoked);
        assert_eq!(local.admit(&revoked).unwrap_err().reason.as_deref(), Some("SecretInvalid"));

        // Who signs in anew is not signed out by it once more.
        let (cookie, token) = shown(&local.admit(&secret(&local.address().unwrap())).unwrap());
        assert_eq!(local.admit(&opened).unwrap_err().reason.as_deref(), Some("SecretInvalid"));
        assert!(local.signed_in(&headers(&[&cookie], &token)).is_some());
    }
}
