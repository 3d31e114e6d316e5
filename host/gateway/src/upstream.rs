//! Requests to the API server, as the gateway or in a caller's name.
//!
//! A request is built from parsed values: no header and no parameter of a client passes by itself. The client speaks HTTP/1.1, one request a
//! connection at a time, because a shared HTTP/2 connection stalls when its watches reach the server's limit of streams.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pintle_core::{
    bulk::Bulk,
    view::{Lens, Status},
};
use serde_json::Value;
use tracing::warn;

use crate::{
    answer::AUDIT_ID,
    identity::{AUTHENTICATED, MASTERS, User},
    room::Room,
};

/// How long the API server may take until it begins to answer: its own limit for a request, and a little more.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(61);

/// The largest answer that is read whole, in bytes: one object, and its managed fields.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// What has no meaning in a query, besides letters and digits.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// In whose name a request is made.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// The gateway's own account.
    Gateway,
    /// A caller, by impersonation.
    Caller(&'a User),
}

/// A request.
#[derive(Clone)]
pub struct Sent<'a> {
    /// In whose name.
    pub whom: Whom<'a>,
    /// The method.
    pub method: Method,
    /// The path, of parts that are checked to be names.
    pub path: String,
    /// The query, not encoded yet.
    pub query: Vec<(String, String)>,
    /// The form of the answer.
    pub accept: &'static str,
    /// The body and its form.
    pub body: Option<(&'static str, Vec<u8>)>,
    /// The id under which audit logs have the client's request.
    pub audit_id: Option<HeaderValue>,
    /// The memory for the answer. None: it is short.
    pub(crate) room: Option<&'a Room>,
}

impl<'a> Sent<'a> {
    /// A request to read something.
    pub fn get(whom: Whom<'a>, path: String, accept: &'static str) -> Self {
        Self {
            whom,
            method: Method::GET,
            path,
            query: Vec::new(),
            accept,
            body: None,
            audit_id: None,
            room: None,
        }
    }

    fn into_request(self) -> Result<Request<Body>, http::Error> {
        let mut uri = self.path;
        for (index, (key, value)) in self.query.iter().enumerate() {
            uri.push(if index == 0 { '?' } else { '&' });
            uri.extend(utf8_percent_encode(key, PLAIN));
            uri.push('=');
            uri.extend(utf8_percent_encode(value, PLAIN));
        }
        let mut request = Request::builder().method(self.method).uri(uri).header(header::ACCEPT, self.accept);
        if let Some(headers) = request.headers_mut() {
            if let Some(id) = self.audit_id {
                headers.insert(HeaderName::from_static(AUDIT_ID), id);
            }
            if let Whom::Caller(user) = self.whom {
                impersonate(user, headers)?;
            }
        }
        match self.body {
            Some((content_type, body)) => {
                request.header(header::CONTENT_TYPE, content_type).body(Body::from(body))
            }
            None => request.body(Body::empty()),
        }
    }
}

/// In whose name a view asks for its backing kind.
pub fn whom<'a>(lens: &Lens, user: &'a User) -> Whom<'a> {
    use pintle_core::view::Access;
    match lens.access {
        Access::View => Whom::Gateway,
        // Nobody can be given this group by impersonation, and whoever has it may do everything.
        Access::ViewAndBacking if user.is_in(MASTERS) => Whom::Gateway,
        Access::ViewAndBacking => Whom::Caller(user),
    }
}

/// Says in whose name a request is made. What the API server adds itself is left out, because each group that is named here is one more
/// right to impersonate. A service account is named alone: with anything besides, the API server asks for the right to impersonate everybody
/// (KEP-5284).
fn impersonate(user: &User, headers: &mut HeaderMap) -> Result<(), http::Error> {
    headers.insert("impersonate-user", HeaderValue::from_str(&user.name)?);
    if user.name.starts_with("system:serviceaccount:") {
        return Ok(());
    }
    if !user.uid.is_empty() {
        headers.insert("impersonate-uid", HeaderValue::from_str(&user.uid)?);
    }
    // Every impersonated user is given this one.
    for group in user.groups.iter().filter(|group| *group != AUTHENTICATED) {
        headers.append("impersonate-group", HeaderValue::from_str(group)?);
    }
    for (key, values) in &user.extra {
        let name: String = utf8_percent_encode(key, PLAIN).collect();
        let name = HeaderName::from_bytes(format!("impersonate-extra-{name}").as_bytes())?;
        for value in values {
            headers.append(&name, HeaderValue::from_str(value)?);
        }
    }
    Ok(())
}

/// The API server.
#[derive(Clone)]
pub struct Upstream {
    client: kube::Client,
}

/// An answer that was read whole.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub code: StatusCode,
    /// The `Warning` headers, for the client.
    pub warnings: Vec<HeaderValue>,
    /// The body.
    pub body: Bytes,
}

impl Upstream {
    /// The API server that this client talks to. Its own retry must be off.
    pub fn new(client: kube::Client) -> Self {
        Self { client }
    }

    /// Sends a request, and returns the answer as soon as it begins.
    ///
    /// # Errors
    /// 503 or 504 when there is no answer.
    pub async fn begin(&self, sent: Sent<'_>) -> Result<Response<Body>, Status> {
        let is_read = sent.method == Method::GET;
        let request = sent.into_request().map_err(|error| {
            // A user's name can be anything, also what fits into no header.
            Status::bad_request(format!("the request cannot be sent on: {error}"))
        })?;
        match tokio::time::timeout(REQUEST_TIMEOUT, self.client.send(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                warn!(%error, "The API server did not answer");
                Err(match is_read {
                    true => Status::unavailable("the API server did not answer", 1),
                    false => may_be_done(),
                })
            }
            Err(_) => Err(Status::timeout("the API server took too long to answer", 1)),
        }
    }

    /// Sends a request, and reads the answer whole.
    ///
    /// # Errors
    /// When there is no answer, or not all of it; 504 if it is not known whether something was written.
    pub async fn send(&self, sent: Sent<'_>) -> Result<Answer, Status> {
        let is_read = sent.method == Method::GET;
        let room = sent.room.map(|room| (room, if is_read { Lacking::Fails } else { Lacking::GoesOn }));
        let answer = whole(self.begin(sent).await?, room).await;
        answer.map_err(|status| if is_read { status } else { may_be_done() })
    }

    /// The same, if the API server did what was asked.
    ///
    /// # Errors
    /// Why it did not, in the words of the view.
    pub async fn done(&self, sent: Sent<'_>, lens: &Lens) -> Result<Answer, Status> {
        let answer = self.send(sent).await?;
        match answer.code.is_success() {
            true => Ok(answer),
            false => Err(refusal(lens, &answer)),
        }
    }

    /// Asks for something whose answer is of no use, however long it is, and returns its warnings once it is done.
    ///
    /// # Errors
    /// Why the API server did not do it, in the words of the view.
    pub async fn done_unread(&self, sent: Sent<'_>, lens: &Lens) -> Result<Vec<HeaderValue>, Status> {
        let response = self.begin(sent).await?;
        if !response.status().is_success() {
            return Err(refusal(lens, &whole(response, None).await.map_err(|_| may_be_done())?));
        }
        let (head, mut body) = response.into_parts();
        // The API server answers when everything is done. What it says is read only so that the connection can be used again.
        let read = async { while let Some(Ok(_)) = body.frame().await {} };
        let _ = tokio::time::timeout(REQUEST_TIMEOUT, read).await;
        Ok(warnings(&head.headers))
    }
}

fn may_be_done() -> Status {
    Status::timeout("the API server did not answer: the request may have been carried out", 1)
}

fn warnings(headers: &HeaderMap) -> Vec<HeaderValue> {
    headers.get_all(header::WARNING).iter().cloned().collect()
}

/// What becomes of an answer for which there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// It is not read.
    Fails,
    /// It is read all the same: what it is about is written, and whoever wrote it must be told so.
    GoesOn,
}

/// Reads an answer whole, as far as there is room for it.
///
/// # Errors
/// When it ends too early, or is too large; 429 when there is no memory for it.
pub(crate) async fn whole(
    response: Response<Body>,
    room: Option<(&Room, Lacking)>,
) -> Result<Answer, Status> {
    let (head, body) = response.into_parts();
    let read = tokio::time::timeout(REQUEST_TIMEOUT, read(body, room)).await;
    let body = read.map_err(|_| Status::timeout("the API server took too long to answer", 1))??;
    Ok(Answer { code: head.status, warnings: warnings(&head.headers), body })
}

async fn read(body: Body, mut room: Option<(&Room, Lacking)>) -> Result<Bytes, Status> {
    let (mut body, mut read) = (Limited::new(body, ANSWER_BYTES_MAX), BytesMut::new());
    let mut bulk = Bulk::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            warn!(error, "The answer of the API server is not complete");
            Status::unavailable("the answer of the API server is not complete", 1)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if let Some((of, lacking)) = room {
            bulk.add(&data);
            match of.hold_object(&bulk).await {
                // It waits once.
                Err(_) if lacking == Lacking::GoesOn => room = None,
                held => held?,
            }
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

/// Why the API server refused a request, in the words of the view.
pub fn refusal(lens: &Lens, answer: &Answer) -> Status {
    let status = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    Status::translate(lens, answer.code.as_u16(), &status)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pintle_modules::{Budget, Purpose};

    use super::*;
    use crate::admission::Pools;

    #[tokio::test(start_paused = true)]
    async fn the_answer_to_a_write_is_read_also_where_there_is_no_memory_for_it() {
        let budget = Budget::fixed(512 << 20);
        let _all = budget.reserve("others", Purpose::Call, budget.bytes_max()).await.unwrap();
        let text = Bytes::from(vec![b'['; 1 << 20]);
        for (lacking, expected) in [(Lacking::Fails, Err(429)), (Lacking::GoesOn, Ok(text.len()))] {
            let room = Room::for_write(&budget, (Pools::default().large, "ann".into()));
            let read = read(Body::from(text.to_vec()), Some((&room, lacking))).await;
            assert_eq!(read.map(|read| read.len()).map_err(|status| status.code), expected, "{lacking:?}");
        }
    }

    fn sent(user: &User) -> Request<Body> {
        let mut sent = Sent::get(Whom::Caller(user), "/api/v1/pods".into(), "application/json");
        sent.query =
            vec![("labelSelector".into(), "a in (b, c)&watch=1".into()), ("limit".into(), "5".into())];
        sent.into_request().unwrap()
    }

    fn headers(user: &User) -> BTreeMap<String, Vec<String>> {
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in sent(user).headers() {
            headers.entry(name.to_string()).or_default().push(value.to_str().unwrap().to_owned());
        }
        headers.remove("accept");
        headers
    }

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.into(), groups, uid: String::new(), extra: BTreeMap::new() }
    }

    #[test]
    fn a_value_of_the_query_stays_a_value() {
        let request = sent(&user("ann", &[]));
        assert_eq!(request.uri(), "/api/v1/pods?labelSelector=a%20in%20%28b%2C%20c%29%26watch%3D1&limit=5");
    }

    #[test]
    fn a_caller_is_named_with_everything_that_the_api_server_does_not_add_itself() {
        let mut ann = user("ann", &["system:authenticated", "dev", "ops"]);
        ann.uid = "u1".into();
        ann.extra.insert("example.com/Team".into(), vec!["a".into(), "b".into()]);
        let expected: BTreeMap<String, Vec<String>> = [
            ("impersonate-user", vec!["ann"]),
            ("impersonate-uid", vec!["u1"]),
            ("impersonate-group", vec!["dev", "ops"]),
            ("impersonate-extra-example.com%2fteam", vec!["a", "b"]),
        ]
        .map(|(name, values)| (name.to_owned(), values.into_iter().map(str::to_owned).collect()))
        .into();
        assert_eq!(headers(&ann), expected);
        let mut robot =
            user("system:serviceaccount:a:b", &["system:serviceaccounts", "system:authenticated"]);
        (robot.uid, robot.extra) = (ann.uid, ann.extra);
        assert_eq!(headers(&robot).keys().collect::<Vec<_>>(), ["impersonate-user"]);
    }
}
