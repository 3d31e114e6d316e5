//! The console's HTTP, as a program asks for it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
};

use anyhow::{Context, bail, ensure};
use kit::{Look, Patience, eventually, host::or_error, process};
use pintle_testbed::Server;
use serde_json::Value;

/// What the console says of a guest that took longer than a tenth of a second, as any may on a machine that does much else.
const LATE: &str = "the guest of the view did not answer in time: it is asked again in a moment";

/// The flags of a gateway with a console. A host that is named without a port is ours at every port.
pub(crate) const CONSOLE: &[&str] = &["--console-bind", "127.0.0.1:0", "--console-host", "127.0.0.1"];

/// What serves the console, as a process of its own.
pub(crate) struct Console {
    _server: Server,
    address: String,
    /// The headers that say who asks.
    credential: String,
}

pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Answer {
    /// Whether a guest was late. With 503 nothing was written: the API server is asked after the guest. What was written and could not be
    /// shown may be written once more, unless it was created.
    fn is_to_be_asked_again(&self, method: &str) -> bool {
        match self.code {
            503 => self.body["details"].as_str().is_some_and(|details| details.ends_with(LATE)),
            // Once more, a PUT that names a version is answered with 409.
            _ => matches!(method, "PUT" | "PATCH") && self.head.contains(LATE),
        }
    }
}

impl Console {
    /// `pintle console`, with the secret of its URL.
    pub(crate) fn on_loopback(kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
        let mut server = process::start(&[], &["console"], kubeconfig, log, &[])?;
        let url = |log: &str| {
            log.split_whitespace().find_map(|word| word.strip_prefix("http://")).map(str::to_owned)
        };
        let url = server.says("its URL", url)?;
        let (address, secret) = url.split_once("/console/#").with_context(|| format!("no secret: {url}"))?;
        let credential = format!("Authorization: Bearer {secret}\r\n");
        Ok(Self { _server: server, address: address.to_owned(), credential })
    }

    /// The gateway's door, once it answers. The gateway has the rights of this kubeconfig; who asks has yet to say who it is.
    pub(crate) async fn of_gateway(kubeconfig: &Path, log: &Path) -> anyhow::Result<Self> {
        let words = ["gateway", "--aggregated-bind", "127.0.0.1:0"];
        let mut gateway = process::start(&[], &[&words[..], CONSOLE].concat(), kubeconfig, log, &[])?;
        let address = gateway.address("The console is served")?.to_string();
        let console = Self { _server: gateway, address, credential: String::new() };
        console.wait_until_answered("/healthz", 200).await?;
        Ok(console)
    }

    /// From now on this header says who asks.
    pub(crate) fn says(&mut self, credential: &str) {
        self.credential = format!("{credential}\r\n");
    }

    fn send(&self, method: &str, path: &str, form: &str, body: Option<&Value>) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Patience::default().whole()))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let (address, credential, length) = (&self.address, &self.credential, body.len());
        let form = if form.is_empty() { String::new() } else { format!("Content-Type: {form}\r\n") };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n{credential}Connection: close\r\n{form}Content-Length: {length}\r\n\r\n{body}"
        )?;
        Ok(stream)
    }

    /// Waits until a path is answered with this code.
    pub(crate) async fn wait_until_answered(&self, path: &str, code: u16) -> anyhow::Result<()> {
        eventually(format!("GET {path} is answered with {code}"), async || {
            or_error(self.ask_once("GET", path, "", None).map(|answer| {
                Look::reached_if(answer.code == code, || format!("{} {}", answer.code, answer.body))
            }))
        })
        .await
    }

    /// What is answered, as soon as no guest is late.
    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        form: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        pintle_testbed::eventually(format!("the guest answers {method} {path} in time"), || {
            let answer = self.ask_once(method, path, form, body)?;
            Ok(match answer.is_to_be_asked_again(method) {
                true => Look::NotYet(format!("{} {}", answer.code, answer.body)),
                false => Look::Reached(answer),
            })
        })
    }

    /// What is answered, which must have this code.
    pub(crate) fn expect(
        &self,
        code: u16,
        method: &str,
        path: &str,
        form: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Answer> {
        let answer = self.ask(method, path, form, body)?;
        ensure!(answer.code == code, "{method} {path}: {} {}", answer.code, answer.body);
        Ok(answer)
    }

    fn ask_once(&self, method: &str, path: &str, form: &str, body: Option<&Value>) -> anyhow::Result<Answer> {
        let mut text = String::new();
        self.send(method, path, form, body)?.read_to_string(&mut text)?;
        let (head, body) = text.split_once("\r\n\r\n").with_context(|| format!("no answer: {text}"))?;
        let code = head.split(' ').nth(1).and_then(|code| code.parse().ok()).context("no code")?;
        Ok(Answer { code, head: head.to_owned(), body: serde_json::from_str(body).unwrap_or_default() })
    }

    /// The first event of a stream, as soon as no guest is late.
    pub(crate) fn first_event(&self, path: &str) -> anyhow::Result<String> {
        pintle_testbed::eventually(format!("the guest shows the first event of {path} in time"), || {
            let event = self.first_event_once(path)?;
            Ok(if event.contains(LATE) { Look::NotYet(event) } else { Look::Reached(event) })
        })
    }

    fn first_event_once(&self, path: &str) -> anyhow::Result<String> {
        let stream = BufReader::new(self.send("GET", path, "", None)?);
        let mut event = String::new();
        for line in stream.lines() {
            let line = line?;
            let is_of_event = ["event: ", "id: ", "data: "].iter().any(|start| line.starts_with(start));
            match (is_of_event, event.is_empty()) {
                (true, _) => {
                    event.push_str(&line);
                    event.push('\n');
                }
                (false, false) => return Ok(event),
                // The head, and the lengths of chunks.
                (false, true) => {}
            }
        }
        bail!("the stream ended: {event}")
    }
}
