//! Deletes: of one object, and of all that selectors choose. They never call a guest, so that a broken one holds up neither garbage collection
//! nor the end of a namespace.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use pintle_core::view::{
    Source, Status,
    accept::JSON,
    query::{DeleteOptions, ListOptions, pinned},
    target::Objects,
};
use pintle_runtime::{Pauses, clock};
use serde_json::Value;

use crate::{
    answer::{Call, Parts},
    known::{self, Extent},
    read::{METADATA, METADATA_OF_ALL},
    reply::{self, Reply},
    upstream::{self, REQUEST_TIMEOUT, Sent},
};

impl Parts {
    /// Deletes an object.
    pub(crate) async fn delete(
        &self,
        call: &Call<'_>,
        target: &Objects,
        name: &str,
    ) -> Result<Reply, Status> {
        let lens = &call.resource.lens;
        let body = call.json_body()?;
        let asked = DeleteOptions::read(&call.query, body.as_ref())?;
        let backing = lens.names.backing(name).ok_or_else(|| Status::not_found(&lens.served, name))?;
        let options = asked.backing(lens, name)?;
        let path = lens.served.backing.path(target.namespace.as_deref(), Some(backing));
        let until = clock::monotonic() + REQUEST_TIMEOUT;
        // An object without the labels of the selector is none of this view: the API server must not delete it either. It is deleted at the
        // version at which it was seen, or else looked at.
        let is_selected = !lens.served.selector.is_empty();
        let mut last = self
            .last(call, target, name, Extent::Metadata)
            .filter(|last| is_selected && !asked.names_version() && asked.is_of(lens, last));
        let mut pauses = Pauses::default();
        loop {
            let (options, is_pinned_here) = if is_selected {
                let current = match last.take() {
                    Some(last) => last,
                    None => Arc::new(self.current(call, target, name, METADATA, Vec::new()).await?),
                };
                pinned(&options, &current)
            } else {
                (options.clone(), false)
            };
            let sent = Sent {
                method: Method::DELETE,
                body: Some((JSON, options.to_string().into_bytes())),
                audit_id: call.audit_id(),
                ..Sent::get(upstream::whom(lens, call.user), path.clone(), METADATA)
            };
            match self.upstream.done(sent, lens).await {
                // It has changed since it was looked at. Whoever deletes it did not ask for a version.
                Err(changed) if changed.code == 409 && is_pinned_here && clock::monotonic() < until => {
                    pauses.pause().await;
                }
                done => {
                    let answer = done?;
                    self.saw_deleted(call, target, backing, &asked, &answer.body);
                    return Ok(success(call, name, &asked, &answer.body, answer.warnings));
                }
            }
        }
    }

    /// What is known of an object after the answer to its deletion: it is gone, or it is held.
    fn saw_deleted(
        &self,
        call: &Call<'_>,
        target: &Objects,
        name: &str,
        asked: &DeleteOptions,
        answer: &Bytes,
    ) {
        let lens = &call.resource.lens;
        let object = call.resource.cut.read(answer, Source::Elsewhere).ok();
        match object.filter(|object| object.name() == name && known::is_stored(object, asked.dry_run)) {
            Some(object) => self.known.saw(lens, &object, Extent::Metadata),
            None => self.known.forget(lens, target.namespace.as_deref(), name),
        }
    }

    /// Deletes all objects that selectors choose.
    pub(crate) async fn delete_collection(
        &self,
        call: &Call<'_>,
        target: &Objects,
        selected: &ListOptions,
    ) -> Result<Reply, Status> {
        let lens = &call.resource.lens;
        let body = call.json_body()?;
        let asked = DeleteOptions::read(&call.query, body.as_ref())?;
        let options = asked.backing(lens, "")?;
        let query = selected.backing(lens)?;
        let path = lens.served.backing.path(target.namespace.as_deref(), None);
        let sent = Sent {
            method: Method::DELETE,
            query,
            body: Some((JSON, options.to_string().into_bytes())),
            audit_id: call.audit_id(),
            ..Sent::get(upstream::whom(lens, call.user), path, METADATA_OF_ALL)
        };
        let warnings = self.upstream.done_unread(sent, lens).await?;
        Ok(success(call, "", &asked, &[], warnings))
    }
}

/// What whoever deletes in the foreground is told.
const FOREGROUND: &str =
    "what names this object as its owner is deleted in the background, and not waited for";

/// It is done. What was deleted is not shown, since that would take a guest.
fn success(
    call: &Call<'_>,
    name: &str,
    asked: &DeleteOptions,
    body: &[u8],
    warnings: Vec<http::HeaderValue>,
) -> Reply {
    let lens = &call.resource.lens;
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    // A Status when the object is gone, and the object when somebody holds it.
    let uid =
        answer.pointer("/details/uid").or_else(|| answer.pointer("/metadata/uid")).and_then(Value::as_str);
    let uid = uid.map(|uid| lens.mask.map(uid)).unwrap_or_default();
    let status = Status::success(&lens.served, name, &uid).to_value().to_string();
    let mut reply = reply::json(StatusCode::OK, status);
    let ours = asked.is_foreground().then(|| FOREGROUND.to_owned());
    reply::warn(&mut reply, warnings, ours.as_slice());
    reply
}
