//! Gets: the backing kind is asked, and what it answers is shown.

use bytes::Bytes;
use http::StatusCode;
use pintle_core::view::{
    BackingObject, Lens, Source, Status,
    accept::{Asked, Form},
    query,
    table::Row,
    target::Objects,
};
use pintle_runtime::clock;
use pintle_wit::Failure;
use serde_json::Value;
use tracing::{error, warn};

use crate::{
    answer::{Call, Parts},
    directory::Resource,
    reply::{self, Reply},
    show::Shown,
    upstream::{self, Sent},
};

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
        let options = query::of_get(&call.query)?;
        let accept = if matches!(form, Form::Metadata) { METADATA } else { OBJECT };
        let object = self.current(call, target, name, accept, options).await?;
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
            room: Some(&call.room),
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
            Form::Metadata => Ok(Shown::Fields("{}".into())),
            _ => self.guests.show_one(&resource.lens, resource.in_force()?, object).await,
        }
    }
}

/// An object as a row of a table has it. An object that cannot be shown is a row that says so.
pub(crate) struct TableRow {
    object: Value,
    /// Why it cannot be shown.
    failure: Option<String>,
}

impl TableRow {
    pub(crate) fn of(lens: &Lens, object: &BackingObject, shown: &Shown) -> Self {
        match shown {
            Shown::Fields(fields) => {
                let object = serde_json::from_str(&lens.object_json(object, fields)).unwrap_or_default();
                Self { object, failure: None }
            }
            Shown::Failed(failure) => {
                Self { object: lens.head(object), failure: Some(failure.where_and_why()) }
            }
        }
    }

    pub(crate) fn as_row(&self) -> Row<'_> {
        match &self.failure {
            None => Row::Shown(&self.object),
            Some(failure) => Row::Failed(&self.object, failure),
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
        (Form::Metadata, _) => reply::json(code, lens.metadata_json(object)),
        (Form::Table(include), shown) => {
            let row = TableRow::of(lens, object, shown);
            let table = resource.columns.one(include, true, row.as_row(), clock::now());
            reply::json(code, table)
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

/// Whether an object has the labels of the view's selector. The API server was asked for no other; none is shown or deleted, whatever it
/// makes of a client's selector.
pub(crate) fn is_selected(resource: &Resource, object: &BackingObject) -> bool {
    let is_selected = resource.lens.selects(object);
    if !is_selected {
        error!(
            view = resource.lens.view,
            "The API server answers with an object that the View does not select"
        );
    }
    is_selected
}

/// The error about an object that its guest cannot show.
pub(crate) fn cannot_be_shown(lens: &Lens, object: &BackingObject, failure: &Failure) -> Status {
    Status::internal_error(&format!(
        "{} cannot be shown: {}",
        lens.names.shown(object.name()),
        failure.where_and_why()
    ))
}
