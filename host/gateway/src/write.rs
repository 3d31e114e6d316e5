//! Creates, updates and patches. What was written is pruned, filled in and validated by the view's schema, before its guest and then the gate
//! judge it; and only then the API server is asked.

use std::sync::Arc;

use http::{Method, StatusCode};
use pintle_core::view::{
    BackingObject, Lens, Source, Status,
    accept::{Asked, Body, Form, JSON, PatchType},
    query::{Write as Written, WriteOptions},
    status::fault,
    target::Objects,
    version::Sent as Version,
    write::Refusal,
};
use pintle_engine::Origin;
use pintle_kubernetes::Backoff;
use pintle_runtime::clock;
use pintle_schema::metadata;
use pintle_wit::{Cause, Failure};
use serde_json::{Map, Value};
use tracing::warn;

use crate::{
    answer::{Call, Parts},
    body,
    directory::Resource,
    patching::SentPatch,
    read::{METADATA, OBJECT, cannot_be_shown, in_form},
    reply::{self, Reply},
    show::Shown,
    upstream::{self, Answer, REQUEST_TIMEOUT, Sent},
};

/// The form in which updates are sent.
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// What a client is told besides.
type Warnings = Vec<String>;

impl Parts {
    /// Creates an object.
    pub(crate) async fn create(&self, call: &Call<'_>, target: &Objects) -> Result<Reply, Status> {
        let (resource, lens) = (call.resource, &call.resource.lens);
        let form = Form::negotiate(call.accept(), Asked::Object, call.query.first("includeObject"))?;
        let options = WriteOptions::read(&call.query, Written::Create)?;
        let mut warnings = Warnings::new();
        let mut written = self.decoded(call, target, None, &options, &mut warnings)?;
        if !text(&written, "/metadata/resourceVersion").is_empty() {
            return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let causes = metadata::misfits(&written["metadata"]);
        judge(resource, &mut written, None, causes)?;
        let name = text(&written, "/metadata/name").to_owned();
        let stored = self.stored(resource, &written, None).await?;
        let write = lens.create(&written, &stored).map_err(|refusal| refused(resource, &name, refusal))?;
        warnings.extend(write.ignored.iter().map(ToString::to_string));
        let path = lens.served.backing.path(target.namespace.as_deref(), None);
        let sent = Sent {
            method: Method::POST,
            body: Some((JSON, write.body.to_string().into_bytes())),
            ..self.sent(call, path, &options)
        };
        let answer = self.upstream.done(sent, lens).await?;
        self.written(resource, form, StatusCode::CREATED, answer, warnings).await
    }

    /// Replaces an object.
    pub(crate) async fn update(
        &self,
        call: &Call<'_>,
        target: &Objects,
        name: &str,
    ) -> Result<Reply, Status> {
        let (resource, lens) = (call.resource, &call.resource.lens);
        let form = Form::negotiate(call.accept(), Asked::Object, call.query.first("includeObject"))?;
        let options = WriteOptions::read(&call.query, Written::Update)?;
        let mut warnings = Warnings::new();
        let mut written = self.decoded(call, target, Some(name), &options, &mut warnings)?;
        let known = known_version(call, &written);
        let current = self.current(call, target, name, OBJECT, Vec::new()).await?;
        // What is not there is 404, whatever is wrong with the version.
        match known? {
            None => return Err(Status::invalid(&lens.served, name, vec![fault_unset_version()])),
            Some(known) if known != current.version() => {
                return Err(Status::modified(&lens.served, name));
            }
            Some(_) => {}
        }
        let old = self.shown_before(resource, &current).await?;
        let replaced = Replaced {
            name,
            current: &current,
            old: old.as_ref(),
            written: &mut written,
            form,
            options: &options,
            warnings,
        };
        self.replace(call, target, replaced).await?
    }

    /// Changes some fields of an object.
    pub(crate) async fn patch(&self, call: &Call<'_>, target: &Objects, name: &str) -> Result<Reply, Status> {
        let resource = call.resource;
        let form = Form::negotiate(call.accept(), Asked::Object, call.query.first("includeObject"))?;
        let r#type = PatchType::read(call.content_type())?;
        let options = WriteOptions::read(&call.query, Written::Patch)?;
        let patch = self.read_patch(resource, r#type, &call.body).await?;
        let accept = if patch.is_of_metadata { METADATA } else { OBJECT };
        let patching = Patching { name, patch: &patch, form, options: &options };
        let until = clock::monotonic() + REQUEST_TIMEOUT;
        let mut backoff = Backoff::of_write();
        loop {
            let current = self.current(call, target, name, accept, Vec::new()).await?;
            match self.patch_this(call, target, &patching, &current).await? {
                // Whoever patches did not ask for a version: the object is read again, and the patch laid over what it is now.
                Err(conflict) if conflict.code == 409 && !patch.names_version => {
                    match clock::monotonic() < until {
                        true => backoff.pause().await,
                        false => {
                            return Err(Status::timeout(
                                "others wrote the object each time that this was tried",
                                1,
                            ));
                        }
                    }
                }
                done => return done,
            }
        }
    }

    /// Patches an object that is at this version.
    async fn patch_this(
        &self,
        call: &Call<'_>,
        target: &Objects,
        patching: &Patching<'_>,
        current: &BackingObject,
    ) -> SentOrNot {
        let (resource, lens) = (call.resource, &call.resource.lens);
        let Patching { name, patch, form, options } = *patching;
        let old = Arc::new(match patch.is_of_metadata {
            true => lens.head(current),
            false => self.shown_value(resource, current).await?,
        });
        let mut written = self.patched(resource, name, patch, &old).await?;
        // What is patched has a kind. A patch may have taken it away, or given it another.
        has_kind(resource, &mut written)?;
        same_place(resource, target, Some(name), &written)?;
        let undecodable = |why: String| Status::patch_undecodable(&lens.served, name, &why);
        let mut warnings = options.field_validation.judge(&patch.duplicates, &[]).map_err(undecodable)?;
        read(resource, &mut written, options, &mut warnings).map_err(undecodable)?;
        if let Some(metadata) = written["metadata"].as_object()
            && lens.is_same_object(current, metadata).is_err()
        {
            let uid = text(&written, "/metadata/uid");
            let cause = fault::invalid("metadata.uid", uid, "field is immutable");
            return Err(Status::invalid(&lens.served, name, vec![cause]));
        }
        let is_other = |known: Option<String>| known.is_none_or(|known| known != current.version());
        if patch.names_version && is_other(known_version(call, &written)?) {
            return Err(Status::modified(&lens.served, name));
        }
        // Without a guest.
        if patch.is_of_metadata {
            let causes = misfits_after(&lens.head(current), &written);
            if !causes.is_empty() {
                return Err(Status::invalid(&lens.served, name, causes));
            }
        }
        let written = &mut written;
        let replaced = Replaced { name, current, old: Some(&old), written, form, options, warnings };
        match patch.is_of_metadata {
            true => self.send_update(call, target, replaced, None).await,
            false => self.replace(call, target, replaced).await,
        }
    }

    /// Stores an object that is pruned, if it is valid.
    async fn replace(&self, call: &Call<'_>, target: &Objects, replaced: Replaced<'_>) -> SentOrNot {
        let resource = call.resource;
        let causes = misfits_after(&resource.lens.head(replaced.current), replaced.written);
        judge(resource, replaced.written, replaced.old, causes)?;
        let stored = self.stored(resource, replaced.written, Some(replaced.current)).await?;
        self.send_update(call, target, replaced, Some(&stored)).await
    }

    async fn send_update(
        &self,
        call: &Call<'_>,
        target: &Objects,
        replaced: Replaced<'_>,
        stored: Option<&Map<String, Value>>,
    ) -> SentOrNot {
        let (resource, lens) = (call.resource, &call.resource.lens);
        let Replaced { name, current, written, form, options, mut warnings, .. } = replaced;
        let none = Map::new();
        let metadata = written.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let write =
            lens.update(current, metadata, stored).map_err(|refusal| refused(resource, name, refusal))?;
        warnings.extend(write.ignored.iter().map(ToString::to_string));
        let path = lens.served.backing.path(target.namespace.as_deref(), Some(current.name()));
        let sent = Sent {
            method: Method::PATCH,
            body: Some((MERGE_PATCH, write.body.to_string().into_bytes())),
            ..self.sent(call, path, options)
        };
        Ok(match self.upstream.done(sent, lens).await {
            Ok(answer) => self.written(resource, form, StatusCode::OK, answer, warnings).await,
            Err(refused) => Err(refused),
        })
    }

    /// The answer to a write that the API server has carried out. That it cannot be shown is no reason to say that it failed: the metadata
    /// are shown then, with a warning.
    async fn written(
        &self,
        resource: &Resource,
        form: Form,
        code: StatusCode,
        answer: Answer,
        mut warnings: Warnings,
    ) -> Result<Reply, Status> {
        let object = resource.cut.read(&answer.body, Source::Elsewhere).map_err(|error| {
            warn!(%error, "What the API server stored cannot be read");
            Status::timeout("it is written, and what was stored cannot be read", 1)
        })?;
        let shown = match self.shown_for(resource, form, &object).await {
            Ok(Shown::Failed(failure)) => Err(failure.message.clone()),
            Ok(shown) => Ok(shown),
            Err(status) => Err(status.message),
        };
        let shown = shown.unwrap_or_else(|why| {
            warnings.push(format!("it is written, and cannot be shown: {why}"));
            Shown::Failed(Arc::new(Failure { message: why, ..Failure::default() }))
        });
        let mut reply = in_form(resource, form, &object, &shown, code);
        reply::warn(&mut reply, answer.warnings, &warnings);
        Ok(reply)
    }

    fn sent<'a>(&self, call: &'a Call<'_>, path: String, options: &WriteOptions) -> Sent<'a> {
        Sent {
            query: options.backing(call.user_agent()),
            audit_id: call.audit_id(),
            room: Some(&call.room),
            ..Sent::get(upstream::whom(&call.resource.lens, call.user), path, OBJECT)
        }
    }

    /// The object in the body, pruned.
    fn decoded(
        &self,
        call: &Call<'_>,
        target: &Objects,
        name: Option<&str>,
        options: &WriteOptions,
        warnings: &mut Warnings,
    ) -> Result<Value, Status> {
        let resource = call.resource;
        let mut written =
            body::object(Body::read(call.content_type())?, &call.body, options.field_validation, warnings)?;
        has_kind(resource, &mut written)?;
        same_place(resource, target, name, &written)?;
        if let (Some(namespace), Some(metadata)) =
            (&target.namespace, written.get_mut("metadata").and_then(Value::as_object_mut))
        {
            metadata.insert("namespace".into(), namespace.clone().into());
        }
        read(resource, &mut written, options, warnings)
            .map_err(|why| Status::undecodable(&resource.lens.served, &why))?;
        Ok(written)
    }

    /// What the guest stores of an object that is valid.
    async fn stored(
        &self,
        resource: &Resource,
        written: &Value,
        current: Option<&BackingObject>,
    ) -> Result<Map<String, Value>, Status> {
        let lens = &resource.lens;
        let stored = self.guests.store(lens, resource.in_force()?, written, current).await?;
        stored.map_err(|(failure, origin)| match origin {
            Origin::Guest => {
                let field = failure.path.unwrap_or_default();
                let value = written
                    .pointer(&format!("/{}", field.replace('.', "/")))
                    .map(Value::to_string)
                    .unwrap_or_default();
                let cause = fault::invalid_value(&field, &value, &failure.message);
                Status::invalid(&lens.served, text(written, "/metadata/name"), vec![cause])
            }
            Origin::Engine => {
                Status::internal_error(&format!("the guest of the view failed: {}", failure.message))
            }
        })
    }

    /// The object as it is shown.
    async fn shown_value(&self, resource: &Resource, object: &BackingObject) -> Result<Value, Status> {
        let shown = self.guests.show_one(&resource.lens, resource.in_force()?, object).await?;
        value_of(&resource.lens, object, &shown)
    }

    /// The object as it is shown before it is replaced. One that cannot be shown can be repaired, unless a rule compares the two.
    async fn shown_before(
        &self,
        resource: &Resource,
        object: &BackingObject,
    ) -> Result<Option<Value>, Status> {
        let shown = self.guests.show_one(&resource.lens, resource.in_force()?, object).await?;
        if matches!(shown, Shown::Failed(_)) && !resource.schema.has_transition_rules() {
            return Ok(None);
        }
        value_of(&resource.lens, object, &shown).map(Some)
    }
}

/// The object of which this is shown.
fn value_of(lens: &Lens, object: &BackingObject, shown: &Shown) -> Result<Value, Status> {
    match shown {
        Shown::Fields(fields) => serde_json::from_str(&lens.object_json(object, fields))
            .map_err(|error| Status::internal_error(&error.to_string())),
        Shown::Failed(failure) => Err(cannot_be_shown(lens, object, failure)),
    }
}

/// In the outer result, why nothing was sent to the API server; in the inner one, what came of what was sent.
type SentOrNot = Result<Result<Reply, Status>, Status>;

/// A patch of an object.
struct Patching<'a> {
    name: &'a str,
    patch: &'a SentPatch,
    form: Form,
    options: &'a WriteOptions,
}

/// An object that is to be replaced.
struct Replaced<'a> {
    name: &'a str,
    /// The backing object as it is now.
    current: &'a BackingObject,
    /// What is shown of it, if it can be shown.
    old: Option<&'a Value>,
    written: &'a mut Value,
    form: Form,
    options: &'a WriteOptions,
    warnings: Warnings,
}

/// Reads the metadata and removes unknown fields, and says what becomes of that.
fn read(
    resource: &Resource,
    written: &mut Value,
    options: &WriteOptions,
    warnings: &mut Warnings,
) -> Result<(), String> {
    let read = metadata::read(&written["metadata"])?;
    written["metadata"] = read.value;
    let unknown = [read.unknown, resource.schema.prune(written)].concat();
    warnings.extend(options.field_validation.judge(&[], &unknown)?);
    Ok(())
}

/// What is wrong with the metadata of an object that is written over another one, both as they are shown.
fn misfits_after(old: &Value, written: &Value) -> Vec<Cause> {
    metadata::misfits_after(&written["metadata"], &old["metadata"])
}

/// Sets defaults and validates. What is wrong with the metadata comes first.
fn judge(
    resource: &Resource,
    written: &mut Value,
    old: Option<&Value>,
    of_metadata: Vec<Cause>,
) -> Result<(), Status> {
    let causes = resource.schema.admit(of_metadata, written, old);
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(&resource.lens.served, text(written, "/metadata/name"), causes))
}

/// The version of the backing object that the client knows, if the object names one.
fn known_version(call: &Call<'_>, written: &Value) -> Result<Option<String>, Status> {
    let lens = &call.resource.lens;
    let name = text(written, "/metadata/name");
    match Version::read(text(written, "/metadata/resourceVersion")) {
        Ok(Version::Unset | Version::Any) => Ok(None),
        Ok(Version::At { backing, epoch }) if call.directory.epochs(lens).any(|known| known == epoch) => {
            Ok(Some(backing))
        }
        Ok(_) => Err(Status::modified(&lens.served, name)),
        Err(_) => {
            let version = text(written, "/metadata/resourceVersion");
            let cause =
                fault::invalid("metadata.resourceVersion", version, "must be a version that was shown");
            Err(Status::invalid(&lens.served, name, vec![cause]))
        }
    }
}

fn fault_unset_version() -> Cause {
    fault::invalid_value("metadata.resourceVersion", "0", "must be specified for an update")
}

/// The object must be of the version and kind that the path names. The words are the API server's.
fn has_kind(resource: &Resource, written: &mut Value) -> Result<(), Status> {
    let served = &resource.lens.served;
    let Some(fields) = written.as_object_mut() else {
        return Err(Status::bad_request("the body is no object"));
    };
    let given = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (given("apiVersion"), given("kind"));
    if kind.is_empty() {
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing",
            served.kind
        )));
    }
    if version != served.api_version {
        return Err(Status::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            served.api_version
        )));
    }
    if kind != served.kind {
        let cause = fault::invalid("kind", kind, &format!("must be {}", served.kind));
        return Err(Status::invalid(served, text(written, "/metadata/name"), vec![cause]));
    }
    match fields.entry("metadata").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(_) => Ok(()),
        _ => Err(Status::bad_request("metadata is no object")),
    }
}

/// The object must be the one that the path names. The words are the API server's.
fn same_place(
    resource: &Resource,
    target: &Objects,
    name: Option<&str>,
    written: &Value,
) -> Result<(), Status> {
    let given = text(written, "/metadata/namespace");
    let expected = target.namespace.as_deref().unwrap_or_default();
    if !given.is_empty() && given != expected {
        return Err(Status::bad_request(match resource.lens.served.backing.namespaced {
            true => "the namespace of the provided object does not match the namespace sent on the request",
            false => "namespace may not be set on an object of cluster scope",
        }));
    }
    let given = text(written, "/metadata/name");
    match name {
        Some(name) if given.is_empty() => {
            let message = format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            );
            Err(Status::bad_request(message))
        }
        Some(name) if given != name => {
            let message =
                format!("the name of the object ({given}) does not match the name on the URL ({name})");
            Err(Status::bad_request(message))
        }
        _ => Ok(()),
    }
}

fn refused(resource: &Resource, name: &str, refusal: Refusal) -> Status {
    let served = &resource.lens.served;
    match refusal {
        Refusal::Invalid(causes) => Status::invalid(served, name, causes),
        Refusal::Conflict(why) => Status::conflict(served, name, &why),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
