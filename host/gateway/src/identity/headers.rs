//! What the headers of a request say about its caller. Only the front proxy gets here.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use pintle_core::view::Status;

use super::User;

/// The headers that the front proxy says in who its caller is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) user: Vec<HeaderName>,
    pub(super) uid: Vec<HeaderName>,
    pub(super) groups: Vec<HeaderName>,
    /// In lower case, as the names of headers are.
    pub(super) extra_prefixes: Vec<String>,
}

impl Names {
    /// The user that these headers name; none if they name nobody.
    pub(super) fn user(&self, headers: &HeaderMap) -> Result<Option<User>, Status> {
        let Some(name) = first(headers, &self.user)? else { return Ok(None) };
        let mut groups = Vec::new();
        for value in self.groups.iter().flat_map(|name| headers.get_all(name)) {
            groups.extend(filled(text(value)?));
        }
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in headers {
            for prefix in &self.extra_prefixes {
                if let Some(key) = name.as_str().strip_prefix(prefix.as_str()) {
                    extra.entry(decoded(key)).or_default().push(text(value)?.to_owned());
                }
            }
        }
        let uid = first(headers, &self.uid)?.unwrap_or_default();
        Ok(Some(User { name, uid, groups, extra }))
    }
}

/// The first value of any of these headers that says something.
fn first(headers: &HeaderMap, names: &[HeaderName]) -> Result<Option<String>, Status> {
    for name in names {
        if let Some(value) = headers.get(name)
            && let Some(value) = filled(text(value)?)
        {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The API server writes names as they are, in UTF-8. What is no UTF-8 must not be left out: a user without one of its groups may be
/// allowed more.
fn text(value: &HeaderValue) -> Result<&str, Status> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| Status::unauthorized())
}

/// The key of an extra, which the API server escapes. A key that is not escaped as it should be stands for itself.
fn decoded(key: &str) -> String {
    percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into)
}
