//! Deletes: of one object, and of all that selectors choose. They never call a guest, so that a broken one holds up neither garbage collection
//! nor the end of a namespace.

use http::{Method, StatusCode};
use http_body_util::BodyExt;
use pintle_core::{
    bulk::Bulk,
    view::{
        Source, Status,
        accept::JSON,
        query::{DeleteOptions, ListOptions, pinned},
        target::Objects,
    },
};
use pintle_kubernetes::Backoff;
use pintle_runtime::clock;
use serde_json::Value;

use crate::{
    answer::{Call, Parts},
    items::{Items, NoList},
    list::not_complete,
    read::{METADATA, METADATA_OF_ALL, is_selected, read_object},
    reply::{self, Reply},
    upstream::{self, Answer, REQUEST_TIMEOUT, Sent},
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
        let answer = if lens.served.selector.is_empty() {
            self.upstream.done(deletion(call, path, &options), lens).await?
        } else {
            self.delete_selected(call, target, name, &options).await?
        };
        Ok(success(call, name, &asked, &answer.body, answer.warnings))
    }

    /// Deletes an object, unless it lacks the labels of the selector: at the version at which it was looked at.
    async fn delete_selected(
        &self,
        call: &Call<'_>,
        target: &Objects,
        name: &str,
        options: &Value,
    ) -> Result<Answer, Status> {
        let lens = &call.resource.lens;
        let until = clock::monotonic() + REQUEST_TIMEOUT;
        let mut backoff = Backoff::of_write();
        loop {
            let current = self.current(call, target, name, METADATA, Vec::new()).await?;
            let (options, is_pinned_here) = pinned(options, &current);
            let path = lens.served.backing.path(target.namespace.as_deref(), Some(current.name()));
            match self.upstream.done(deletion(call, path, &options), lens).await {
                // It has changed since it was looked at. Whoever deletes it did not ask for a version.
                Err(changed) if changed.code == 409 && is_pinned_here && clock::monotonic() < until => {
                    backoff.pause().await;
                }
                done => return done,
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
        let asked = DeleteOptions::read(&call.query, body.as_ref())?;
        let options = asked.backing(lens, "")?;
        let query = selected.backing(lens)?;
        let path = lens.served.backing.path(target.namespace.as_deref(), None);
        let warnings = if lens.served.selector.is_empty() {
            let sent = Sent { query, accept: METADATA_OF_ALL, ..deletion(call, path, &options) };
            self.upstream.done_unread(sent, lens).await?
        } else {
            let list = Sent {
                query,
                audit_id: call.audit_id(),
                ..Sent::get(upstream::whom(lens, call.user), path, METADATA_OF_ALL)
            };
            for name in self.selected(call, list).await? {
                match self.delete_selected(call, target, &name, &options).await {
                    // Gone is as good as deleted.
                    Err(gone) if gone.code == 404 => {}
                    done => drop(done?),
                }
            }
            Vec::new()
        };
        Ok(success(call, "", &asked, &[], warnings))
    }

    /// The names under which the objects of a list are shown that have the labels of the selector.
    async fn selected(&self, call: &Call<'_>, list: Sent<'_>) -> Result<Vec<String>, Status> {
        let lens = &call.resource.lens;
        let response = self.upstream.begin(list).await?;
        if !response.status().is_success() {
            return Err(upstream::refusal(lens, &upstream::whole(response, None).await?));
        }
        let (mut body, mut items, mut arrived) = (response.into_body(), Items::default(), Vec::new());
        let mut names = Vec::new();
        let read = async {
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| not_complete(NoList::Incomplete))?;
                let Ok(chunk) = frame.into_data() else { continue };
                items.push(&chunk, &mut arrived).map_err(not_complete)?;
                for item in arrived.drain(..) {
                    call.room.hold_object(&Bulk::of(&item)).await?;
                    let object = read_object(call.resource, &item, Source::Elsewhere)?;
                    names
                        .extend(is_selected(call.resource, &object).then(|| lens.names.shown(object.name())));
                }
            }
            std::mem::take(&mut items).rest().map(drop).map_err(not_complete)
        };
        let too_long = |_| Status::timeout("the list of what is to be deleted took too long", 1);
        tokio::time::timeout(REQUEST_TIMEOUT, read).await.map_err(too_long)??;
        Ok(names)
    }
}

/// A request to delete something.
fn deletion<'a>(call: &Call<'a>, path: String, options: &Value) -> Sent<'a> {
    let whom = upstream::whom(&call.resource.lens, call.user);
    Sent {
        method: Method::DELETE,
        body: Some((JSON, options.to_string().into_bytes())),
        audit_id: call.audit_id(),
        ..Sent::get(whom, path, METADATA)
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
