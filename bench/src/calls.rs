//! The calls of each user to the API server, from its audit log. The policy (metadata of every request) is the same for all contestants.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use pintle_testbed::{Look, asynchronous::eventually};
use serde_json::Value;

/// How long a contestant must make no calls to count as quiet.
const STILL_SECONDS: f64 = 1.5;

/// One call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// When it was received, by the clock of this machine, on which the API server runs too.
    pub(crate) received: Timestamp,
    /// When the answer was complete; for a watch, when it began.
    pub(crate) answered: Timestamp,
    pub(crate) verb: String,
    /// With the subresource: `benches/status`.
    pub(crate) resource: String,
    pub(crate) code: u64,
}

/// Resources that are counted separately: what an operator does for itself and for people, not for roots and children.
const APART: [&str; 7] = [
    "leases",
    "events",
    "reconcilers",
    "reconcilers/status",
    "modules",
    "modules/status",
    "subjectaccessreviews",
];

impl Call {
    pub(crate) fn is_apart(&self) -> bool {
        APART.contains(&self.resource.as_str())
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.verb == "watch"
    }

    /// Whether it can change a root or a child.
    pub(crate) fn is_mutating(&self) -> bool {
        !self.is_apart() && !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// The calls of one user, read as the log grows.
pub(crate) struct Audit {
    path: PathBuf,
    user: String,
    offset: u64,
    calls: Vec<Call>,
}

impl Audit {
    pub(crate) fn new(path: &Path, user: String) -> Self {
        Self { path: path.to_owned(), user, offset: 0, calls: Vec::new() }
    }

    /// All calls since a moment.
    pub(crate) fn since(&mut self, moment: Timestamp) -> Result<Vec<Call>> {
        let mut file = File::open(&self.path).with_context(|| format!("opening {}", self.path.display()))?;
        file.seek(SeekFrom::Start(self.offset))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        // An incomplete line is left for the next time.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1);
        self.offset += end as u64;
        let lines = text.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        for line in lines.filter(|line| contains(line, self.user.as_bytes())) {
            self.calls.extend(call(&serde_json::from_slice(line)?, &self.user));
        }
        Ok(self.calls.iter().filter(|call| call.received >= moment).cloned().collect())
    }

    /// Waits until this user has made no call for roots and children for a while, and returns when the last one was answered. A watch that
    /// ends and starts again does not count.
    pub(crate) async fn wait_quiet(&mut self, since: Timestamp) -> Result<Timestamp> {
        eventually(format!("{} makes no more calls", self.user), async || {
            let calls = self.since(since)?;
            let last = calls.iter().filter(|call| !call.is_apart() && !call.is_watch());
            let last = last.map(|call| call.answered).max().unwrap_or(since);
            let is_quiet = Timestamp::now().duration_since(last).as_secs_f64() > STILL_SECONDS;
            Ok(if is_quiet { Look::Reached(last) } else { Look::NotYet(format!("{:?}", tally(&calls))) })
        })
        .await
    }
}

fn contains(line: &[u8], text: &[u8]) -> bool {
    line.windows(text.len()).any(|window| window == text)
}

fn call(event: &Value, user: &str) -> Option<Call> {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str);
    if text("/user/username") != Some(user) {
        return None;
    }
    let verb = text("/verb")?.to_owned();
    // A watch has an event when it begins and one when it ends. Every other call has one event.
    if text("/stage") != Some(if verb == "watch" { "ResponseStarted" } else { "ResponseComplete" }) {
        return None;
    }
    let mut resource = text("/objectRef/resource").unwrap_or("-").to_owned();
    if let Some(subresource) = text("/objectRef/subresource") {
        resource = format!("{resource}/{subresource}");
    }
    Some(Call {
        received: text("/requestReceivedTimestamp")?.parse().ok()?,
        answered: text("/stageTimestamp")?.parse().ok()?,
        verb,
        resource,
        code: event.pointer("/responseStatus/code").and_then(Value::as_u64).unwrap_or(0),
    })
}

/// The calls, counted as `verb resource`. A refused call also has its code.
pub(crate) fn tally(calls: &[Call]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for call in calls {
        let refused = if call.code >= 400 { format!(" {}", call.code) } else { String::new() };
        *tally.entry(format!("{} {}{refused}", call.verb, call.resource)).or_default() += 1;
    }
    tally
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(verb: &str, stage: &str, resource: &str) -> Value {
        json!({
            "user": {"username": "u"}, "verb": verb, "stage": stage,
            "objectRef": {"resource": resource, "subresource": "status"}, "responseStatus": {"code": 200},
            "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z", "stageTimestamp": "2026-01-01T00:00:01.000001Z",
        })
    }

    #[test]
    fn what_an_operator_does_for_itself_is_apart() {
        let call = |resource| super::call(&event("patch", "ResponseComplete", resource), "u").unwrap();
        assert!(call("benches").is_mutating());
        assert!(!call("reconcilers").is_mutating());
        assert_eq!(call("benches").answered.duration_since(call("benches").received).as_secs_f64(), 1.0);
    }

    #[test]
    fn a_watch_counts_when_it_begins_and_nobody_else_counts() {
        assert!(super::call(&event("watch", "ResponseStarted", "benches"), "u").is_some());
        assert!(super::call(&event("watch", "ResponseComplete", "benches"), "u").is_none());
        assert!(super::call(&event("patch", "ResponseComplete", "benches"), "v").is_none());
    }
}
