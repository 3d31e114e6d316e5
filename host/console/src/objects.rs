//! Custom resources of every kind: roots, and the host's own objects. What a caller may do with them is the API server's to decide.

use axum::response::Response;
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    caller::{Answer, Ask},
    endpoint::{self, Call, Endpoint, MERGE_PATCH, Takes, any_object},
    place::{Place, Resource},
    problem::{Cause, Problem},
    query::Form,
    reading::{self, Listed},
    rows::{self, Fields, Row},
    session,
};

/// The name under which the console writes, so that audit logs and managed fields tell its writes.
pub(crate) const FIELD_MANAGER: &str = "pintle-console";

/// How many rows a page has, unless it is said, and at most.
const LIMIT: u64 = 500;
const LIMIT_MAX: u64 = 1000;

/// The path of a kind.
const ALL: &str = "/api/v1/objects/{group}/{version}/{plural}";

const DRY_RUN: (&str, Form, &str) = ("dryRun", Form::Word(&["All"]), "All: check, and change nothing");

/// A page of a list.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Page")]
pub(crate) struct Page<T = Row> {
    /// The version of the list, for a watch that goes on from it.
    pub(crate) resource_version: String,
    /// What asks for the next page; nothing on the last.
    pub(crate) r#continue: Option<String>,
    /// How many more there are, if the API server says so.
    pub(crate) remaining: Option<i64>,
    /// The objects.
    pub(crate) items: Vec<T>,
}

/// Two lines of the route table: for objects in a namespace and for objects in none, so that no name can be taken for another.
pub(crate) fn of_object(
    below: &str,
    [in_namespace, in_cluster]: [&'static str; 2],
    line: impl Fn(String, &'static str) -> Endpoint,
) -> [Endpoint; 2] {
    [("/namespaces/{namespace}", in_namespace), ("/cluster", in_cluster)]
        .map(|(scope, id)| line(format!("{ALL}{scope}{below}"), id))
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let list = Endpoint::get(ALL, "listObjects", "Objects of a kind, as rows", list).query(&[
        ("namespace", Form::Text, "Those of this namespace"),
        ("labelSelector", Form::Text, "Those with these labels"),
        ("fieldSelector", Form::Text, "Those with these fields"),
        ("search", Form::Text, "Those with this in their name. A page may then be shorter than its limit"),
        ("limit", Form::Number(1, LIMIT_MAX), "How many rows a page has at most; 500 unless it is said"),
        ("continue", Form::Text, "What the page before gave"),
        ("fields", Form::Text, "Paths of fields that rows are to have, with commas between them"),
    ]);
    let policy = Form::Word(&["Background", "Foreground", "Orphan"]);
    let mut all = vec![list.gives::<Page>()];
    all.extend(of_object("", ["createObject", "createClusterObject"], |path, id| {
        let create = Endpoint::new(Method::POST, path, id, "Create an object", create);
        create.query(&[DRY_RUN]).takes(Takes::Json(any_object)).answers(201, any_object)
    }));
    all.extend(of_object("/{name}", ["getObject", "getClusterObject"], |path, id| {
        Endpoint::get(path, id, "An object, whole", get).answers(200, any_object)
    }));
    all.extend(of_object("/{name}", ["patchObject", "patchClusterObject"], |path, id| {
        let patch = Endpoint::new(Method::PATCH, path, id, "Merge a patch into an object", patch);
        patch.query(&[DRY_RUN]).takes(Takes::MergePatch).answers(200, any_object)
    }));
    all.extend(of_object("/{name}", ["deleteObject", "deleteClusterObject"], |path, id| {
        let delete = Endpoint::new(Method::DELETE, path, id, "Delete an object", delete).query(&[
            DRY_RUN,
            ("uid", Form::Text, "Only if it is still this one"),
            ("propagationPolicy", policy, "What becomes of the objects that it owns"),
        ]);
        delete.answers(200, any_object)
    }));
    all
}

/// The resource that a path names.
pub(crate) fn resource(call: &Call) -> Result<Resource, Problem> {
    Resource::custom(["group", "version", "plural"].map(|name| call.param(name).unwrap_or_default()))
}

/// The collection that a path names.
fn within(call: &Call) -> Result<Place, Problem> {
    Place::within(&resource(call)?, call.param("namespace"))
}

/// The object that a path names.
pub(crate) fn place(call: &Call) -> Result<Place, Problem> {
    within(call)?.named(call.param("name").unwrap_or_default())
}

async fn list(call: Call) -> Result<Response, Problem> {
    let place = Place::within(&resource(&call)?, call.query.text("namespace"))?;
    let fields = Fields::read(call.query.text("fields"))?;
    let search = call.query.text("search").map(str::to_lowercase);
    let ask = ["labelSelector", "fieldSelector", "continue"]
        .into_iter()
        .fold(Ask::get(place.path()), |ask, name| ask.with_some(name, call.query.text(name)));
    let is_found = |row: &Row| search.as_ref().is_none_or(|search| row.name.contains(search.as_str()));
    let row = |object| {
        let row = Some(rows::row(&object, &fields)).filter(is_found)?;
        // Plain data with string keys: writing it as JSON cannot fail.
        let text = to_raw_value(&row).ok()?;
        let bytes = text.get().len();
        Some((text, bytes))
    };
    let limit = call.query.number("limit").unwrap_or(LIMIT);
    let listed = reading::page(call.caller()?, &ask, limit, row).await;
    let listed = if place.namespace.is_some() { listed? } else { listed.map_err(session::hint)? };
    let Listed { version, next, remaining, items } = listed;
    endpoint::json(StatusCode::OK, &Page { resource_version: version, r#continue: next, remaining, items })
}

async fn get(call: Call) -> Result<Response, Problem> {
    let answer = call.caller()?.ask(Ask::get(place(&call)?.path())).await?;
    shown(&answer)
}

async fn create(mut call: Call) -> Result<Response, Problem> {
    let place = within(&call)?;
    let ask = Ask::json(Method::POST, place.path(), &object(&mut call).await?);
    write(&call, ask).await
}

async fn patch(mut call: Call) -> Result<Response, Problem> {
    let place = place(&call)?;
    let ask = Ask::json(Method::PATCH, place.path(), &object(&mut call).await?);
    write(&call, Ask { body: ask.body.map(|(_, bytes)| (MERGE_PATCH, bytes)), ..ask }).await
}

async fn delete(call: Call) -> Result<Response, Problem> {
    let place = place(&call)?;
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "propagationPolicy": call.query.text("propagationPolicy").unwrap_or("Background"),
        "preconditions": {"uid": call.query.text("uid")},
        "dryRun": call.query.text("dryRun").into_iter().collect::<Vec<_>>(),
    });
    let answer = call.caller()?.ask(Ask::json(Method::DELETE, place.path(), &options)).await?;
    shown(&answer)
}

/// Sends a write. Fields that the schema does not know are refused: nobody shall believe that they did something.
async fn write(call: &Call, ask: Ask) -> Result<Response, Problem> {
    let ask = ask
        .with("fieldManager", FIELD_MANAGER)
        .with("fieldValidation", "Strict")
        .with_some("dryRun", call.query.text("dryRun"));
    let answer = call.caller()?.ask(ask).await.map_err(named)?;
    shown(&answer)
}

/// The API server names an unknown field in its message alone: it becomes a cause, so that a form can show it at its field.
fn named(mut problem: Problem) -> Problem {
    if problem.status == StatusCode::BAD_REQUEST && problem.causes.is_empty() {
        let unknown =
            problem.detail.split("unknown field \"").skip(1).filter_map(|rest| rest.split('"').next());
        problem.causes = unknown
            .map(|field| Cause {
                field: field.to_owned(),
                message: "there is no such field".into(),
                reason: "FieldUnknown".into(),
            })
            .collect();
    }
    problem
}

fn shown(answer: &Answer) -> Result<Response, Problem> {
    endpoint::json(answer.code, &rows::whole(answer.json()?))
}

async fn object(call: &mut Call) -> Result<Value, Problem> {
    let object: Value = call.json().await?;
    if !object.is_object() {
        return Err(Problem::bad_request("the body is no object"));
    }
    Ok(object)
}

#[cfg(test)]
mod tests;
