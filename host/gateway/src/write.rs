//! Creates, updates and patches. What was written is pruned, filled in and validated by the view's schema, before its guest and then the gate
//! judge it; and only then the API server is asked.

use std::sync::Arc;

use http::{Method, StatusCode};
use pintle_core::view::{
    BackingObject, Source, Status,
    accept::{Asked, Body, Form, JSON, PatchType},
    query::{Write as Written, WriteOptions},
    status::fault,
    target::Objects,
    version::Sent as Version,
    write::Refusal,
};
use pintle_engine::Origin;
use pintle_wit::{Cause, Failure};
use serde_json::{Map, Value};
use tracing::warn;

use crate::{
    answer::{Call, Parts},
    body,
    directory::Resource,
    read::{METADATA, OBJECT, in_form},
    reply::{self, Reply},
    show::Shown,
    upstream::{self, Answer, Sent},
};

/// How often a patch that names no version is tried when somebody else writes at the same time: as often as the API server does.
const PATCH_TRIES: usize = 5;

/// The form in which updates are sent.
const MERGE_PATCH: &str = "application/merge-patch+json";

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
        judge(resource, &mut written, None)?;
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
        let written = self.decoded(call, target, Some(name), &options, &mut warnings)?;
        let known = known_version(call, &written)?;
        let Some(known) = known else {
            let cause = fault_unset_version();
            return Err(Status::invalid(&lens.served, name, vec![cause]));
        };
        let current = self.current(call, target, name, OBJECT, Vec::new()).await?;
        if known != current.version() {
            return Err(Status::modified(&lens.served, name));
        }
        let old = self.shown_value(resource, &current).await.ok();
        self.replace(
            call,
            target,
            Replaced {
                name,
                current: &current,
                old: old.as_ref(),
                written,
                form,
                options: &options,
                warnings,
            },
        )
        .await
    }

    /// Changes some fields of an object.
    pub(crate) async fn patch(&self, call: &Call<'_>, target: &Objects, name: &str) -> Result<Reply, Status> {
        let (resource, lens) = (call.resource, &call.resource.lens);
        let form = Form::negotiate(call.accept(), Asked::Object, call.query.first("includeObject"))?;
        let r#type = PatchType::read(call.content_type())?;
        let options = WriteOptions::read(&call.query, Written::Patch)?;
        let patch = self.read_patch(resource, r#type, &call.body).await?;
        let is_of_metadata = patch.is_of_metadata;
        let mut tries = PATCH_TRIES;
        loop {
            tries -= 1;
            let accept = if is_of_metadata { METADATA } else { OBJECT };
            let current = self.current(call, target, name, accept, Vec::new()).await?;
            let old = Arc::new(match is_of_metadata {
                true => lens.head(&current),
                false => self.shown_value(resource, &current).await?,
            });
            let mut written = self.patched(resource, name, &patch, &old).await?;
            // What is patched has a kind. A patch may have taken it away, or given it another.
            has_kind(resource, &mut written)?;
            same_place(resource, target, Some(name), &written)?;
            let mut warnings = Warnings::new();
            if !is_of_metadata {
                prune(resource, &mut written, &options, &mut warnings)?;
            }
            let names_version = patch.names_version;
            if names_version && known_version(call, &written)?.is_none_or(|known| known != current.version())
            {
                return Err(Status::modified(&lens.served, name));
            }
            let replaced = Replaced {
                name,
                current: &current,
                old: Some(&old),
                written,
                form,
                options: &options,
                warnings,
            };
            let done = match is_of_metadata {
                // Without a guest.
                true => self.send_update(call, target, replaced, None).await,
                false => self.replace(call, target, replaced).await,
            };
            match done {
                Err(conflict) if conflict.code == 409 && !names_version && tries > 0 => {}
                done => return done,
            }
        }
    }

    /// Stores an object that is pruned, if it is valid.
    async fn replace(
        &self,
        call: &Call<'_>,
        target: &Objects,
        mut replaced: Replaced<'_>,
    ) -> Result<Reply, Status> {
        let resource = call.resource;
        judge(resource, &mut replaced.written, replaced.old)?;
        let stored = self.stored(resource, &replaced.written, Some(replaced.current)).await?;
        self.send_update(call, target, replaced, Some(&stored)).await
    }

    async fn send_update(
        &self,
        call: &Call<'_>,
        target: &Objects,
        replaced: Replaced<'_>,
        stored: Option<&Map<String, Value>>,
    ) -> Result<Reply, Status> {
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
        let answer = self.upstream.done(sent, lens).await?;
        self.written(resource, form, StatusCode::OK, answer, warnings).await
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
        prune(resource, &mut written, options, warnings)?;
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
        let lens = &resource.lens;
        match self.guests.show_one(lens, resource.in_force()?, object).await? {
            Shown::Fields(fields) => serde_json::from_str(&lens.object_json(object, &fields))
                .map_err(|error| Status::internal_error(&error.to_string())),
            Shown::Failed(failure) => Err(crate::read::cannot_be_shown(lens, object, &failure)),
        }
    }
}

/// An object that is to be replaced.
struct Replaced<'a> {
    name: &'a str,
    /// The backing object as it is now.
    current: &'a BackingObject,
    /// What is shown of it, if it can be shown.
    old: Option<&'a Value>,
    written: Value,
    form: Form,
    options: &'a WriteOptions,
    warnings: Warnings,
}

/// Removes unknown fields, and says what becomes of that.
fn prune(
    resource: &Resource,
    written: &mut Value,
    options: &WriteOptions,
    warnings: &mut Warnings,
) -> Result<(), Status> {
    let unknown = resource.schema.prune(written);
    body::unknown_fields(&unknown, options.field_validation, warnings)
}

/// Sets defaults and validates.
fn judge(resource: &Resource, written: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    resource.schema.default(written);
    let causes = resource.schema.validate(written, old);
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Status::invalid(&resource.lens.served, text(written, "/metadata/name"), causes)),
    }
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

/// An object without a kind is of the one that the path names. One of another is refused.
fn has_kind(resource: &Resource, written: &mut Value) -> Result<(), Status> {
    let served = &resource.lens.served;
    let Some(fields) = written.as_object_mut() else {
        return Err(Status::bad_request("the body is no object"));
    };
    for (key, expected) in [("apiVersion", &served.api_version), ("kind", &served.kind)] {
        match fields.get(key).and_then(Value::as_str).unwrap_or_default() {
            "" => {
                fields.insert(key.into(), expected.as_str().into());
            }
            given if given == expected => {}
            given => {
                let message = format!("the object has {key} {given:?}, and the path is that of {expected:?}");
                return Err(Status::bad_request(message));
            }
        }
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
        Some(name) if given.is_empty() && name.is_empty() => {
            Err(Status::bad_request("name must be provided"))
        }
        Some(name) if !given.is_empty() && given != name => {
            let message =
                format!("the name of the object ({given}) does not match the name on the URL ({name})");
            Err(Status::bad_request(message))
        }
        None if given.is_empty() && text(written, "/metadata/generateName").is_empty() => {
            let cause = fault::required("metadata.name", "name or generateName is required");
            Err(Status::invalid(&resource.lens.served, "", vec![cause]))
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
