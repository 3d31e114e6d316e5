//! The door of this machine over its loopback: what somebody at another port has heard opens nothing.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
};

use crate::{
    door::{
        Door,
        local::{Fate, Local},
    },
    fake, router,
    serve::{bind_loopback, serve},
};

/// How long anything may take here before the test fails: far more than it needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A console on loopback, which ends with this value.
struct Console {
    local: Arc<Local>,
    _stop: oneshot::Sender<()>,
}

/// What whoever signs in shows from then on.
#[derive(Clone)]
struct Shown {
    cookie: String,
    bearer: String,
}

struct Answer {
    code: u16,
    head: String,
    body: String,
}

/// Knows who everybody is; its watches tell nothing and go on.
fn upstream() -> kube::Client {
    let (client, _) = fake::raw_upstream(|asked| match asked.path.contains("watch=true") {
        true => (200, Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>())),
        false => {
            let (code, answer) = fake::knows_ann(asked);
            (code, Body::from(answer.to_string()))
        }
    });
    client
}

impl Console {
    async fn start() -> Self {
        let listeners = bind_loopback(0).await.unwrap();
        let local = Arc::new(Local::new(listeners[0].local_addr().unwrap().port()));
        let app = fake::app(Door::local(Arc::clone(&local)), upstream());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(serve(listeners, None, router(app), async {
            let _ = stopped.await;
        }));
        Self { local, _stop: stop }
    }

    async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        let port = self.local.port();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut stream = self.send(method, path, headers, body).await;
        let mut text = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { code, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    async fn get(&self, path: &str, shown: &[&String]) -> u16 {
        let headers: String = shown.iter().map(|header| header.as_str()).collect();
        self.ask("GET", path, &headers, "").await.code
    }

    async fn show(&self, url: &str) -> Answer {
        let (_, secret) = url.split_once('#').unwrap();
        let body = json!({"secret": secret}).to_string();
        self.ask("POST", "/api/v1/session", "content-type: application/json\r\n", &body).await
    }

    async fn sign_in(&self, url: &str) -> Shown {
        let answer = self.show(url).await;
        assert_eq!(answer.code, 200, "{}", answer.body);
        let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let opened: Value = serde_json::from_str(&answer.body).unwrap();
        let token = opened["token"].as_str().unwrap();
        Shown {
            cookie: format!("cookie: {cookie}\r\n"),
            bearer: format!("authorization: Bearer {token}\r\n"),
        }
    }
}

#[tokio::test]
async fn a_cookie_that_another_port_was_sent_opens_nothing() {
    let console = Console::start().await;
    let shown = console.sign_in(&console.local.address().unwrap().url).await;
    for path in ["/api/v1/session", "/darkrooms", "/api/v1/stream?watch=a.example/v1/rooms"] {
        assert_eq!(console.get(path, &[&shown.cookie]).await, 401, "{path}");
        assert_eq!(console.get(path, &[&shown.bearer]).await, 401, "{path}");
    }
    assert_eq!(console.get("/api/v1/session", &[&shown.cookie, &shown.bearer]).await, 200);
    // There are no views here, which only those are told who are somebody.
    assert_eq!(console.get("/darkrooms", &[&shown.cookie, &shown.bearer]).await, 404);
}

#[tokio::test]
async fn a_stolen_address_ends_what_the_thief_has_and_what_the_owner_has_down_to_their_streams() {
    let console = Console::start().await;
    let (address, spare) = (console.local.address().unwrap(), console.local.address().unwrap());
    // The thief is first, and the owner comes second.
    let thief = console.sign_in(&address.url).await;
    let watch = "/api/v1/stream?watch=a.example/v1/rooms;resourceVersion%3D10";
    let mut stream = console.send("GET", watch, &format!("{}{}", thief.cookie, thief.bearer), "").await;
    let mut head = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");

    let owner = console.show(&address.url).await;
    assert_eq!(owner.code, 401);
    assert!(owner.body.contains("SecretUsed") && !owner.head.contains("set-cookie"), "{}", owner.body);
    assert_eq!(console.get("/api/v1/session", &[&thief.cookie, &thief.bearer]).await, 401);
    let mut rest = Vec::new();
    // However it is told: that the stream ends is what counts, and a minute later it would have been told that it lives.
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap();
    assert!(!rest.ends_with(b"0\r\n\r\n"), "it is cut, and not as if it were all");

    // The terminal is told, and has another address, with which the owner goes on and the thief does not.
    assert_eq!(spare.fate().await, Fate::Revoked);
    let owner = console.sign_in(&console.local.address().unwrap().url).await;
    assert_eq!(console.get("/api/v1/session", &[&owner.cookie, &owner.bearer]).await, 200);
    assert_eq!(console.get("/api/v1/session", &[&thief.cookie, &thief.bearer]).await, 401);
    assert_eq!(console.get("/api/v1/session", &[&owner.cookie, &thief.bearer]).await, 401);
}
