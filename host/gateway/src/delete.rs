//! Deletes: of one object, and of all that selectors choose. They never call a guest, so that a broken one holds up neither garbage collection
//! nor the end of a namespace.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use pintle_core::{
    bulk::Bulk,
    view::{
        BackingObject, Source, Status,
        accept::JSON,
        query::{DeleteOptions, ListOptions, Propagation, pinned},
        target::Objects,
    },
};
use pintle_kubernetes::Backoff;
use pintle_runtime::clock;
use serde_json::{Value, json};

use crate::{
    answer::{Call, Parts},
    items::Items,
    known::{self, Extent},
    list::not_complete,
    read::{METADATA, METADATA_OF_ALL, read_object},
    reply::{self, Reply},
    upstream::{self, REQUEST_TIMEOUT, Sent},
    write::MERGE_PATCH,
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
        // An object without the labels of the selector is none of this view: the API server must not delete it either.
        let is_selected = !lens.served.selector.is_empty();
        let propagation = propagation(call, &asked);
        let is_looked_at = is_selected || propagation.is_some();
        // It is deleted at the version at which it was seen, or else looked at.
        let mut last = self
            .last(call, target, name, Extent::Metadata)
            .filter(|last| is_looked_at && !asked.names_version() && asked.is_of(lens, last));
        let mut backoff = Backoff::of_write();
        loop {
            let (options, is_pinned_here) = match is_looked_at {
                false => (options.clone(), false),
                true => {
                    let with_version = is_selected || last.is_some();
                    let current = match last.take() {
                        Some(last) => last,
                        None => Arc::new(self.current(call, target, name, METADATA, Vec::new()).await?),
                    };
                    match self.prepared(call, target, &asked, propagation, &current).await {
                        Ok(None) => pinned(&options, &current, with_version),
                        Ok(Some(next)) => {
                            let mut options = options.clone();
                            if asked.names_version() {
                                options["preconditions"]["resourceVersion"] = next.version().into();
                            }
                            pinned(&options, &next, is_selected)
                        }
                        // Somebody else was faster.
                        Err(changed) if changed.code == 409 && clock::monotonic() < until => {
                            backoff.pause().await;
                            continue;
                        }
                        Err(error) => return Err(error),
                    }
                }
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
                    backoff.pause().await;
                }
                done => {
                    let answer = done?;
                    self.saw_deleted(call, target, backing, &asked, &answer.body);
                    return Ok(success(call, name, &answer.body, answer.warnings));
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

    /// Gives a backing object the finalizer with which the garbage collector is to follow its deletion on the graph of the view, and takes
    /// the other one off. Returns the object as it is then, if that was not so already. It is a write of its own, before the deletion: if that
    /// does not follow, the object has a finalizer, as one has that was made with it.
    ///
    /// # Errors
    /// 409 if it has changed since it was read; and what else the API server says.
    async fn prepared(
        &self,
        call: &Call<'_>,
        target: &Objects,
        asked: &DeleteOptions,
        propagation: Option<Propagation>,
        current: &BackingObject,
    ) -> Result<Option<BackingObject>, Status> {
        let lens = &call.resource.lens;
        let Some(propagation) = propagation else { return Ok(None) };
        let wanted = match propagation {
            Propagation::Background => None,
            Propagation::Through(collector) => Some(collector),
        };
        let Some(finalizers) = lens.with_collector(&current.metadata, wanted) else { return Ok(None) };
        // Whether the deletion is of this object is for the API server to say, and then it changes nothing.
        if !asked.is_of(lens, current) {
            return Ok(None);
        }
        let patch = json!({"metadata": {
            "uid": current.uid(), "resourceVersion": current.version(), "finalizers": finalizers,
        }});
        let namespace = current.metadata.get("namespace").and_then(Value::as_str);
        let namespace = target.namespace.as_deref().or(namespace);
        let sent = Sent {
            method: Method::PATCH,
            body: Some((MERGE_PATCH, patch.to_string().into_bytes())),
            audit_id: call.audit_id(),
            ..Sent::get(
                upstream::whom(lens, call.user),
                lens.served.backing.path(namespace, Some(current.name())),
                METADATA,
            )
        };
        let answer = self.upstream.done(sent, lens).await?;
        let object = read_object(call.resource, &answer.body, Source::Elsewhere)?;
        if known::is_stored(&object, asked.dry_run) {
            self.known.saw(lens, &object, Extent::Metadata);
        }
        Ok(Some(object))
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
        if let Some(propagation) = propagation(call, &asked) {
            self.prepare_all(
                call,
                target,
                &asked,
                propagation,
                Sent {
                    query: query.clone(),
                    audit_id: call.audit_id(),
                    ..Sent::get(upstream::whom(lens, call.user), path.clone(), METADATA_OF_ALL)
                },
            )
            .await?;
        }
        let sent = Sent {
            method: Method::DELETE,
            query,
            body: Some((JSON, options.to_string().into_bytes())),
            audit_id: call.audit_id(),
            ..Sent::get(upstream::whom(lens, call.user), path, METADATA_OF_ALL)
        };
        let warnings = self.upstream.done_unread(sent, lens).await?;
        Ok(success(call, "", &[], warnings))
    }

    /// Prepares all objects of a list for their deletion, one after the other, while the list arrives.
    async fn prepare_all(
        &self,
        call: &Call<'_>,
        target: &Objects,
        asked: &DeleteOptions,
        propagation: Propagation,
        list: Sent<'_>,
    ) -> Result<(), Status> {
        let lens = &call.resource.lens;
        let response = self.upstream.begin(list).await?;
        if !response.status().is_success() {
            return Err(upstream::refusal(lens, &upstream::whole(response, None).await?));
        }
        let (mut body, mut items, mut arrived) = (response.into_body(), Items::default(), Vec::new());
        let prepare = async {
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| not_complete(crate::items::NoList::Incomplete))?;
                let Ok(chunk) = frame.into_data() else { continue };
                items.push(&chunk, &mut arrived).map_err(not_complete)?;
                for item in arrived.drain(..) {
                    self.prepare_listed(call, target, asked, propagation, &item).await?;
                }
            }
            std::mem::take(&mut items).rest().map(drop).map_err(not_complete)
        };
        let too_long = |_| Status::timeout("the list of what is to be deleted took too long", 1);
        tokio::time::timeout(REQUEST_TIMEOUT, prepare).await.map_err(too_long)?
    }

    async fn prepare_listed(
        &self,
        call: &Call<'_>,
        target: &Objects,
        asked: &DeleteOptions,
        propagation: Propagation,
        item: &Bytes,
    ) -> Result<(), Status> {
        let lens = &call.resource.lens;
        call.room.hold_object(&Bulk::of(item)).await?;
        let mut current = read_object(call.resource, item, Source::Elsewhere)?;
        let name = lens.names.shown(current.name());
        let at = Objects {
            namespace: current.metadata.get("namespace").and_then(Value::as_str).map(str::to_owned),
            name: Some(name.clone()),
            ..target.clone()
        };
        loop {
            match self.prepared(call, &at, asked, Some(propagation), &current).await {
                Err(changed) if changed.code == 409 => tokio::time::sleep(AGAIN).await,
                // Gone is as good as deleted.
                Err(gone) if gone.code == 404 => return Ok(()),
                prepared => return prepared.map(drop),
            }
            current = match self.current(call, &at, &name, METADATA, Vec::new()).await {
                Err(gone) if gone.code == 404 => return Ok(()),
                current => current?,
            };
        }
    }
}

/// How long to wait before an object of a collection is looked at again because somebody else was faster.
const AGAIN: Duration = Duration::from_millis(10);

/// What is to become of what an object of a view owns, where the view has a graph of its own: a view that is only read shows no finalizers.
/// Nothing is prepared where nothing is to be deleted.
fn propagation(call: &Call<'_>, asked: &DeleteOptions) -> Option<Propagation> {
    asked.propagation().filter(|_| call.resource.lens.served.is_writable() && !asked.dry_run)
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
