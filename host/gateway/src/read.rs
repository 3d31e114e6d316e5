//! Gets and lists: the backing kind is asked, and what it answers is shown.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use kube::client::Body;
use pintle_core::view::{
    BackingObject, Lens, Source, Status,
    accept::{Asked, Form},
    item::list_json,
    query::{GetOptions, ListOptions, shown_continue},
    table::Row,
    target::Objects,
};
use pintle_runtime::clock;
use pintle_wit::{Failure, views::SHOW_OBJECTS_MAX};
use serde_json::{Map, Value};
use tracing::warn;

use crate::{
    answer::{Call, Parts},
    directory::Resource,
    items::{Items, NoList},
    reply::{self, Reply},
    show::Shown,
    upstream::{self, Sent},
};

/// How many objects that cannot be shown an error names.
const FAILING_NAMED: usize = 10;

/// The form in which objects are asked for.
pub(crate) const OBJECT: &str = "application/json";

/// The form in which the metadata of an object are asked for.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// The form in which the metadata of a list of objects are asked for.
pub(crate) const METADATA_OF_ALL: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

impl Parts {
    /// An object.
    pub(crate) async fn get(&self, call: &Call<'_>, target: &Objects, name: &str) -> Result<Reply, Status> {
        let form = Form::negotiate(call.accept(), Asked::Object, call.query.first("includeObject"))?;
        let options = GetOptions::read(&call.query)?;
        let accept = if matches!(form, Form::Metadata(_)) { METADATA } else { OBJECT };
        let object = self.current(call, target, name, accept, options.backing()).await?;
        self.show_in(call.resource, form, &object, StatusCode::OK).await
    }

    /// The backing object of an object, as it is now.
    ///
    /// # Errors
    /// 404 for a name that no object can have, and what the API server says.
    pub(crate) async fn current(
        &self,
        call: &Call<'_>,
        target: &Objects,
        name: &str,
        accept: &'static str,
        query: Vec<(String, String)>,
    ) -> Result<BackingObject, Status> {
        let lens = &call.resource.lens;
        let backing = lens.names.backing(name).ok_or_else(|| Status::not_found(&lens.served, name))?;
        let path = lens.served.backing.path(target.namespace.as_deref(), Some(backing));
        let sent = Sent {
            query,
            audit_id: call.audit_id(),
            ..Sent::get(upstream::whom(lens, call.user), path, accept)
        };
        let answer = self.upstream.done(sent, lens).await?;
        // Of the metadata alone nothing is shown.
        let source = if accept == OBJECT { Source::Stored } else { Source::Elsewhere };
        let object = read_object(call.resource, &answer.body, source)?;
        match lens.selects(&object) {
            true => Ok(object),
            // The API server showed the object, and it is not one of this view.
            false => Err(Status::not_found(&lens.served, name)),
        }
    }

    /// Shows one object in the form that the client wants.
    ///
    /// # Errors
    /// 500 when it cannot be shown; in a table, its row says so.
    pub(crate) async fn show_in(
        &self,
        resource: &Resource,
        form: Form,
        object: &BackingObject,
        code: StatusCode,
    ) -> Result<Reply, Status> {
        match (form, self.shown_for(resource, form, object).await?) {
            (Form::Object, Shown::Failed(failure)) => Err(cannot_be_shown(&resource.lens, object, &failure)),
            (_, shown) => Ok(in_form(resource, form, object, &shown, code)),
        }
    }

    /// What is shown of an object to a client that wants this form. Metadata take no guest.
    pub(crate) async fn shown_for(
        &self,
        resource: &Resource,
        form: Form,
        object: &BackingObject,
    ) -> Result<Shown, Status> {
        match form {
            Form::Metadata(_) => Ok(Shown::Fields("{}".into())),
            _ => self.guests.show_one(&resource.lens, resource.in_force()?, object).await,
        }
    }

    /// A list.
    pub(crate) async fn list(
        &self,
        call: &Call<'_>,
        target: &Objects,
        options: &ListOptions,
    ) -> Result<Reply, Status> {
        let form = Form::negotiate(call.accept(), Asked::List, call.query.first("includeObject"))?;
        let (resource, lens) = (call.resource, &call.resource.lens);
        let accept = if matches!(form, Form::Metadata(_)) { METADATA_OF_ALL } else { OBJECT };
        let path = lens.served.backing.path(target.namespace.as_deref(), None);
        let sent = Sent {
            query: options.backing(lens)?,
            audit_id: call.audit_id(),
            ..Sent::get(upstream::whom(lens, call.user), path, accept)
        };
        let response = self.upstream.begin(sent).await?;
        if !response.status().is_success() {
            return Err(upstream::refusal(lens, &upstream::whole(response).await?));
        }
        let mut page = Page::new(self, resource, form);
        let metadata = page.read(response.into_body()).await?;
        let next = metadata.get("continue").and_then(Value::as_str).filter(|token| !token.is_empty());
        let next = next.map(|token| shown_continue(lens.epoch, token));
        page.written(lens.list_metadata(&metadata, next))
    }
}

/// The list that is being answered: what is shown of the objects so far.
struct Page<'a> {
    parts: &'a Parts,
    resource: &'a Arc<Resource>,
    form: Form,
    /// The items, as JSON.
    items: Vec<String>,
    /// The rows of a table.
    rows: Vec<TableRow>,
    /// The first objects that cannot be shown, and why.
    failing: Vec<String>,
    /// How many more cannot be shown.
    failing_more: usize,
}

impl<'a> Page<'a> {
    fn new(parts: &'a Parts, resource: &'a Arc<Resource>, form: Form) -> Self {
        Self {
            parts,
            resource,
            form,
            items: Vec::new(),
            rows: Vec::new(),
            failing: Vec::new(),
            failing_more: 0,
        }
    }

    /// Reads a list of the backing kind while it arrives, and returns its metadata.
    async fn read(&mut self, mut body: Body) -> Result<Value, Status> {
        let (mut items, mut arrived, mut waiting) = (Items::default(), Vec::new(), Vec::new());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                warn!(%error, "A list of the API server is not complete");
                not_complete(NoList::Incomplete)
            })?;
            let Ok(chunk) = frame.into_data() else { continue };
            items.push(&chunk, &mut arrived).map_err(not_complete)?;
            for item in arrived.drain(..) {
                waiting.push(read_object(self.resource, &item, Source::Stored)?);
                if waiting.len() == SHOW_OBJECTS_MAX {
                    self.show(&std::mem::take(&mut waiting)).await?;
                }
            }
        }
        self.show(&waiting).await?;
        let rest: Value = serde_json::from_slice(&items.rest().map_err(not_complete)?)
            .map_err(|_| not_complete(NoList::Incomplete))?;
        Ok(rest.get("metadata").cloned().unwrap_or_default())
    }

    async fn show(&mut self, objects: &[BackingObject]) -> Result<(), Status> {
        let lens = &self.resource.lens;
        if let Form::Metadata(version) = self.form {
            self.items.extend(objects.iter().map(|object| lens.metadata_json(object, version)));
            return Ok(());
        }
        if objects.is_empty() {
            return Ok(());
        }
        let shown = self.parts.guests.show(lens, self.resource.in_force()?, objects).await?;
        for (object, shown) in objects.iter().zip(shown) {
            match (self.form, shown) {
                (Form::Table(..), shown) => self.rows.push(TableRow::of(lens, object, &shown)),
                (_, Shown::Fields(fields)) => self.items.push(lens.object_json(object, &fields)),
                (_, Shown::Failed(failure)) if self.failing.len() < FAILING_NAMED => {
                    self.failing.push(format!("{}: {}", lens.names.shown(object.name()), failure.message));
                }
                (_, Shown::Failed(_)) => self.failing_more += 1,
            }
        }
        Ok(())
    }

    fn written(self, metadata: Map<String, Value>) -> Result<Reply, Status> {
        if !self.failing.is_empty() {
            let more = if self.failing_more > 0 {
                format!("; and {} more", self.failing_more)
            } else {
                String::new()
            };
            let why = format!("some objects cannot be shown: {}{more}", self.failing.join("; "));
            return Err(Status::internal_error(&why));
        }
        let served = &self.resource.lens.served;
        let items = self.items.iter().map(String::as_str);
        Ok(reply::json(
            StatusCode::OK,
            match self.form {
                Form::Object => list_json(&served.api_version, &served.list_kind, &metadata, items),
                Form::Metadata(version) => {
                    list_json(version.api_version(), "PartialObjectMetadataList", &metadata, items)
                }
                Form::Table(version, include) => {
                    let rows: Vec<Row<'_>> = self.rows.iter().map(TableRow::as_row).collect();
                    self.resource.columns.list(version, include, metadata, &rows, clock::now()).to_string()
                }
            },
        ))
    }
}

/// An object as a row of a table has it. An object that cannot be shown is a row that says so.
pub(crate) struct TableRow {
    object: Value,
    failure: Option<Arc<Failure>>,
}

impl TableRow {
    pub(crate) fn of(lens: &Lens, object: &BackingObject, shown: &Shown) -> Self {
        match shown {
            Shown::Fields(fields) => {
                let object = serde_json::from_str(&lens.object_json(object, fields)).unwrap_or_default();
                Self { object, failure: None }
            }
            Shown::Failed(failure) => Self { object: lens.head(object), failure: Some(Arc::clone(failure)) },
        }
    }

    pub(crate) fn as_row(&self) -> Row<'_> {
        match &self.failure {
            None => Row::Shown(&self.object),
            Some(failure) => Row::Failed(&self.object, &failure.message),
        }
    }
}

/// An object in the form that the client wants. Of one that cannot be shown these are the metadata, or a row that says so.
pub(crate) fn in_form(
    resource: &Resource,
    form: Form,
    object: &BackingObject,
    shown: &Shown,
    code: StatusCode,
) -> Reply {
    let lens = &resource.lens;
    match (form, shown) {
        (Form::Metadata(version), _) => reply::json(code, lens.metadata_json(object, version)),
        (Form::Table(version, include), shown) => {
            let row = TableRow::of(lens, object, shown);
            let table = resource.columns.one(version, include, true, row.as_row(), clock::now());
            reply::json(code, table.to_string())
        }
        (Form::Object, Shown::Fields(fields)) => reply::json(code, lens.object_json(object, fields)),
        (Form::Object, Shown::Failed(_)) => reply::json(code, lens.head(object).to_string()),
    }
}

/// Reads an object that the API server sent.
pub(crate) fn read_object(
    resource: &Resource,
    json: &Bytes,
    source: Source,
) -> Result<BackingObject, Status> {
    resource.cut.read(json, source).map_err(|error| {
        warn!(%error, "An object of the API server cannot be read");
        Status::unavailable("an object of the API server cannot be read", 1)
    })
}

/// The error about an object that its guest cannot show.
pub(crate) fn cannot_be_shown(lens: &Lens, object: &BackingObject, failure: &Failure) -> Status {
    Status::internal_error(&format!(
        "{} cannot be shown: {}",
        lens.names.shown(object.name()),
        failure.message
    ))
}

fn not_complete(error: NoList) -> Status {
    Status::unavailable(error.to_string(), 1)
}
