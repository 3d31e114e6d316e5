//! Deletes: of one object, and of all that selectors choose. They never call a guest, so that a broken one holds up neither garbage collection
//! nor the end of a namespace.

use http::{Method, StatusCode};
use pintle_core::view::{
    Status,
    accept::JSON,
    query::{DeleteOptions, ListOptions, pinned},
    target::Objects,
};
use pintle_runtime::clock;
use serde_json::Value;

use crate::{
    answer::{Call, Parts},
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
        let options = DeleteOptions::read(&call.query, body.as_ref(), &lens.served)?;
        let backing = lens.names.backing(name).ok_or_else(|| Status::not_found(&lens.served, name))?;
        let options = options.backing(lens, name)?;
        let path = lens.served.backing.path(target.namespace.as_deref(), Some(backing));
        let until = clock::monotonic() + REQUEST_TIMEOUT;
        loop {
            // An object without the labels of the selector is none of this view: the API server must not delete it either.
            let (options, is_pinned_here) = match lens.served.selector.is_empty() {
                true => (options.clone(), false),
                false => pinned(&options, &self.current(call, target, name, METADATA, Vec::new()).await?),
            };
            let sent = Sent {
                method: Method::DELETE,
                body: Some((JSON, options.to_string().into_bytes())),
                audit_id: call.audit_id(),
                ..Sent::get(upstream::whom(lens, call.user), path.clone(), METADATA)
            };
            match self.upstream.done(sent, lens).await {
                // It has changed since it was looked at. Whoever deletes it did not ask for a version.
                Err(changed) if changed.code == 409 && is_pinned_here && clock::monotonic() < until => {}
                done => {
                    let answer = done?;
                    return Ok(success(call, name, &answer.body, answer.warnings));
                }
            }
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
        let options = DeleteOptions::read(&call.query, body.as_ref(), &lens.served)?.backing(lens, "")?;
        let sent = Sent {
            method: Method::DELETE,
            query: selected.backing(lens)?,
            body: Some((JSON, options.to_string().into_bytes())),
            audit_id: call.audit_id(),
            ..Sent::get(
                upstream::whom(lens, call.user),
                lens.served.backing.path(target.namespace.as_deref(), None),
                METADATA_OF_ALL,
            )
        };
        let warnings = self.upstream.done_unread(sent, lens).await?;
        Ok(success(call, "", &[], warnings))
    }
}

/// It is done. What was deleted is not shown, since that would take a guest.
fn success(call: &Call<'_>, name: &str, body: &[u8], warnings: Vec<http::HeaderValue>) -> Reply {
    let lens = &call.resource.lens;
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    // A Status when the object is gone, and the object when somebody holds it.
    let uid =
        answer.pointer("/details/uid").or_else(|| answer.pointer("/metadata/uid")).and_then(Value::as_str);
    let uid = uid.map(|uid| lens.mask.map(uid)).unwrap_or_default();
    let status = Status::success(&lens.served, name, &uid).to_value().to_string();
    let mut reply = reply::json(StatusCode::OK, status);
    reply::warn(&mut reply, warnings, &[]);
    reply
}
