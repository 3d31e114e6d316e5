//! The host's calls, from the API server's audit log.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::PathBuf,
    sync::Mutex,
    time::Duration,
};

use anyhow::Context;
use pintle_simulation::scenario::{Call, Mark};
use serde_json::Value;

/// The user that the host is.
const HOST: &str = "system:serviceaccount:pintle-system:pintle";

/// How the path of a request begins that is made so that its line is found in the log.
const MARKER: &str = "/version?marker=";

/// The audit log, read as it grows.
pub(crate) struct Audit {
    path: PathBuf,
    read: Mutex<Log>,
}

/// What was read of it.
#[derive(Default)]
struct Log {
    bytes: u64,
    entries: Vec<Entry>,
    markers: BTreeSet<String>,
}

/// A call of the host's, or of one of several hosts.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Mark,
    pub(crate) call: Call,
    /// Which process made it, as it says itself: `pintle/VERSION (IDENTITY)`.
    pub(crate) agent: String,
}

impl Entry {
    /// Whether the call came from a host with this name, or from the one with this identity: the name, and digits of its own.
    pub(crate) fn is_by(&self, who: &str) -> bool {
        self.identity() == who || self.agent.contains(&format!("({who}_"))
    }

    /// Who made the call, as it stands in the Lease.
    pub(crate) fn identity(&self) -> &str {
        self.agent.rsplit_once('(').map_or("", |(_, identity)| identity.trim_end_matches(')'))
    }

    /// Whether the call has changed something.
    pub(crate) fn is_write(&self) -> bool {
        is_mutating(&self.call) && is_accepted(&self.call)
    }
}

impl Audit {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// The host's calls since a moment, watches and reads included.
    pub(crate) fn entries_since(&self, mark: Mark) -> anyhow::Result<Vec<Entry>> {
        self.read(|log| log.entries.iter().filter(|entry| entry.at >= mark).cloned().collect())
    }

    /// The path of a request whose line in the log tells it from all others.
    pub(crate) fn marker(number: u32) -> String {
        format!("{MARKER}{number}")
    }

    /// Whether the request for this marker is in the log.
    pub(crate) fn has(&self, marker: &str) -> anyhow::Result<bool> {
        self.read(|log| log.markers.contains(marker))
    }

    /// Reads what is new, and looks at all that was read.
    fn read<T>(&self, look: impl FnOnce(&Log) -> T) -> anyhow::Result<T> {
        let mut log =
            self.read.lock().map_err(|_| anyhow::anyhow!("another reader of the audit log panicked"))?;
        let mut file = File::open(&self.path).with_context(|| format!("opening {}", self.path.display()))?;
        file.seek(SeekFrom::Start(log.bytes))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // A line that is being written is left for the next time.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
        log.bytes += end as u64;
        let is_of_interest = |line: &&[u8]| contains(line, HOST) || contains(line, MARKER);
        let lines = text.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        for line in lines.filter(is_of_interest) {
            let event = serde_json::from_slice(line)?;
            log.entries.extend(entry(&event));
            log.markers.extend(marker(&event));
        }
        Ok(look(&log))
    }
}

fn marker(event: &Value) -> Option<String> {
    let uri = event["requestURI"].as_str()?;
    uri.starts_with(MARKER).then(|| uri.to_owned())
}

fn contains(line: &[u8], text: &str) -> bool {
    line.windows(text.len()).any(|window| window == text.as_bytes())
}

fn entry(event: &Value) -> Option<Entry> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    if text("/user/username") != Some(HOST) || text("/stage") != Some("ResponseComplete") {
        return None;
    }
    let received: jiff::Timestamp = text("/requestReceivedTimestamp")?.parse().ok()?;
    let mut resource = text("/objectRef/resource").unwrap_or("-").to_owned();
    if let Some(subresource) = text("/objectRef/subresource") {
        resource = format!("{resource}/{subresource}");
    }
    let call = Call {
        verb: text("/verb")?.to_owned(),
        resource,
        namespace: text("/objectRef/namespace").map(Into::into),
        name: text("/objectRef/name").map(Into::into),
        acting_as: text("/impersonatedUser/username").map(Into::into),
        forbidden: text("/annotations/authorization.k8s.io~1decision") == Some("forbid"),
        code: event
            .pointer("/responseStatus/code")
            .and_then(Value::as_u64)
            .and_then(|code| u16::try_from(code).ok())
            .unwrap_or(0),
    };
    Some(Entry { at: mark_of(received), call, agent: text("/userAgent").unwrap_or_default().to_owned() })
}

/// A moment on the wall's clock.
pub(crate) fn mark_of(time: jiff::Timestamp) -> Mark {
    Mark(Duration::from_micros(u64::try_from(time.as_microsecond()).unwrap_or(0)))
}

/// Whether a call is part of the election of a leader, which goes on whatever else happens: about the Lease, or an Event about it.
pub(crate) fn is_leadership(call: &Call) -> bool {
    call.namespace.as_deref() == Some("pintle-system")
        && matches!(call.resource.as_str(), "leases" | "events")
}

/// Whether a call can change something.
pub(crate) fn is_mutating(call: &Call) -> bool {
    !matches!(call.verb.as_str(), "get" | "list" | "watch")
}

/// Whether the API server has carried a call out.
pub(crate) fn is_accepted(call: &Call) -> bool {
    (200..300).contains(&call.code)
}
