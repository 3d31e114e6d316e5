//! Custom resources of every kind: roots, and the host's own objects. What a caller may do with them is the API server's to decide.

use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    caller::{Answer, Ask},
    endpoint::{self, AnswerForm, Call, Endpoint, MERGE_PATCH, Takes, any_object},
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

/// The longest selector or search, in bytes.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// The path of a kind, and of its objects.
const ALL: &str = "/api/v1/objects/{group}/{version}/{plural}";
const IN_NAMESPACE: &str = "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}";
const IN_CLUSTER: &str = "/api/v1/objects/{group}/{version}/{plural}/cluster";
const OF_NAMESPACE: &str = "/api/v1/objects/{group}/{version}/{plural}/namespaces/{namespace}/{name}";
const OF_CLUSTER: &str = "/api/v1/objects/{group}/{version}/{plural}/cluster/{name}";

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

/// The endpoints of this file. Objects in a namespace and objects in none have paths of their own, so that no name can be taken for another.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let object = AnswerForm::Json(any_object);
    let mut all = vec![
        Endpoint::new(Method::GET, ALL, "listObjects", "Objects of a kind, as rows", |call| {
            Box::pin(list(call))
        })
        .query(&[
            ("namespace", Form::Text, "Those of this namespace"),
            ("labelSelector", Form::Text, "Those with these labels"),
            ("fieldSelector", Form::Text, "Those with these fields"),
            (
                "search",
                Form::Text,
                "Those with this in their name. A page may then be shorter than its limit",
            ),
            ("limit", Form::Number(1, LIMIT_MAX), "How many rows a page has at most; 500 unless it is said"),
            ("continue", Form::Text, "What the page before gave"),
            ("fields", Form::Text, "Paths of fields that rows are to have, with commas between them"),
        ])
        .gives::<Page>(),
    ];
    let places = [
        (
            IN_NAMESPACE,
            OF_NAMESPACE,
            ["createObject", "getObject", "replaceObject", "patchObject", "deleteObject"],
        ),
        (
            IN_CLUSTER,
            OF_CLUSTER,
            [
                "createClusterObject",
                "getClusterObject",
                "replaceClusterObject",
                "patchClusterObject",
                "deleteClusterObject",
            ],
        ),
    ];
    for (within, of, [create_id, get_id, replace_id, patch_id, delete_id]) in places {
        all.extend([
            Endpoint::new(Method::POST, within, create_id, "Create an object", |call| Box::pin(create(call)))
                .query(&[DRY_RUN])
                .takes(Takes::Json(any_object))
                .answers(201, object),
            Endpoint::new(Method::GET, of, get_id, "An object, whole", |call| Box::pin(get(call)))
                .answers(200, object),
            Endpoint::new(
                Method::PUT,
                of,
                replace_id,
                "Replace an object. It must be as its metadata.resourceVersion, or If-Match, says",
                |call| Box::pin(replace(call)),
            )
            .query(&[DRY_RUN])
            .takes(Takes::Json(any_object))
            .answers(200, object),
            Endpoint::new(Method::PATCH, of, patch_id, "Merge a patch into an object", |call| {
                Box::pin(patch(call))
            })
            .query(&[DRY_RUN])
            .takes(Takes::MergePatch)
            .answers(200, object),
            Endpoint::new(Method::DELETE, of, delete_id, "Delete an object", |call| Box::pin(delete(call)))
                .query(&[
                    DRY_RUN,
                    ("uid", Form::Text, "Only if it is still this one"),
                    (
                        "propagationPolicy",
                        Form::Word(&["Background", "Foreground", "Orphan"]),
                        "What becomes of the objects that it owns",
                    ),
                ])
                .answers(200, object),
        ]);
    }
    all
}

/// The resource that a path names.
pub(crate) fn resource(call: &Call) -> Result<Resource, Problem> {
    Resource::custom(call.param("group"), call.param("version"), call.param("plural"))
}

/// The collection that a path names.
fn within(call: &Call) -> Result<Place, Problem> {
    let namespace =
        Some(call.param("namespace")).filter(|_| call.path.iter().any(|(name, _)| name == "namespace"));
    Place::within(&resource(call)?, namespace)
}

/// The object that a path names.
pub(crate) fn place(call: &Call) -> Result<Place, Problem> {
    within(call)?.named(call.param("name"))
}

/// Text of a query, if it is not too long.
pub(crate) fn text<'a>(call: &'a Call, name: &str) -> Result<Option<&'a str>, Problem> {
    match call.query.text(name) {
        Some(text) if text.len() > TEXT_BYTES_MAX => {
            Err(Problem::bad_request(format!("the parameter {name} has more than {TEXT_BYTES_MAX} bytes")))
        }
        text => Ok(text),
    }
}

async fn list(call: Call) -> Result<Response, Problem> {
    let place = Place::within(&resource(&call)?, call.query.text("namespace"))?;
    let fields = Fields::read(call.query.text("fields"))?;
    let search = text(&call, "search")?.map(str::to_lowercase);
    let ask = Ask::get(place.path())
        .with_some("labelSelector", text(&call, "labelSelector")?)
        .with_some("fieldSelector", text(&call, "fieldSelector")?)
        .with_some("continue", text(&call, "continue")?);
    let is_found = |row: &Row| search.as_ref().is_none_or(|search| row.name.contains(search.as_str()));
    let row = |object| {
        let row = Some(rows::row(&object, &fields)).filter(is_found)?;
        // Plain data with string keys: writing it as JSON cannot fail.
        let text = to_raw_value(&row).ok()?;
        let bytes = text.get().len();
        Some((text, bytes))
    };
    let limit = call.query.number("limit").unwrap_or(LIMIT);
    let listed =
        reading::page(call.caller()?, &ask, limit, row).await.map_err(|problem| match place.namespace {
            None => session::hint(problem),
            Some(_) => problem,
        })?;
    let Listed { version, next, remaining, items } = listed;
    endpoint::json(StatusCode::OK, &Page { resource_version: version, r#continue: next, remaining, items })
}

async fn get(call: Call) -> Result<Response, Problem> {
    let answer = call.caller()?.ask(Ask::get(place(&call)?.path())).await?;
    shown(&answer)
}

async fn create(mut call: Call) -> Result<Response, Problem> {
    let place = within(&call)?;
    let object = object(&mut call).await?;
    let ask = Ask::json(Method::POST, place.path(), &object);
    write(&call, ask).await
}

async fn replace(mut call: Call) -> Result<Response, Problem> {
    let place = place(&call)?;
    let mut object = object(&mut call).await?;
    match if_match(&call.headers)? {
        Some(version) => set_version(&mut object, version)?,
        None if version(&object).is_some() => {}
        None => {
            let status = StatusCode::PRECONDITION_REQUIRED;
            let detail =
                "say which version you replace: by metadata.resourceVersion, or by the header If-Match";
            return Err(Problem::new(status, detail).because("VersionRequired"));
        }
    }
    let ask = Ask::json(Method::PUT, place.path(), &object);
    write(&call, ask).await
}

async fn patch(mut call: Call) -> Result<Response, Problem> {
    let place = place(&call)?;
    let mut patch = object(&mut call).await?;
    if let Some(version) = if_match(&call.headers)? {
        set_version(&mut patch, version)?;
    }
    let mut ask = Ask::json(Method::PATCH, place.path(), &patch);
    ask.body = ask.body.map(|(_, bytes)| (MERGE_PATCH, bytes));
    write(&call, ask).await
}

async fn delete(call: Call) -> Result<Response, Problem> {
    let place = place(&call)?;
    let uid = text(&call, "uid")?;
    let version = if_match(&call.headers)?;
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "propagationPolicy": call.query.text("propagationPolicy").unwrap_or("Background"),
        "preconditions": {"uid": uid, "resourceVersion": version},
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
    let object = rows::whole(answer.json()?);
    let etag = version(&object).and_then(|version| HeaderValue::from_str(&format!("\"{version}\"")).ok());
    let mut response = endpoint::json(answer.code, &object)?;
    if let Some(etag) = etag {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

async fn object(call: &mut Call) -> Result<Value, Problem> {
    let object: Value = call.json().await?;
    match object.is_object() {
        true => Ok(object),
        false => Err(Problem::bad_request("the body is no object")),
    }
}

fn version(object: &Value) -> Option<&str> {
    pintle_core::object::text(object, &["metadata", "resourceVersion"]).filter(|version| !version.is_empty())
}

/// The version that a client means by If-Match.
fn if_match(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let wrong = || Problem::bad_request("If-Match is a resourceVersion in quotes");
    let text = value.to_str().map_err(|_| wrong())?.trim();
    let version = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).ok_or_else(wrong)?;
    match !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        true => Ok(Some(version.to_owned())),
        false => Err(wrong()),
    }
}

fn set_version(object: &mut Value, wanted: String) -> Result<(), Problem> {
    if version(object).is_some_and(|version| version != wanted) {
        return Err(Problem::bad_request("If-Match and metadata.resourceVersion name two versions"));
    }
    let metadata = object.as_object_mut().map(|object| object.entry("metadata").or_insert_with(|| json!({})));
    match metadata.and_then(Value::as_object_mut) {
        Some(metadata) => {
            metadata.insert("resourceVersion".into(), wanted.into());
            Ok(())
        }
        None => Err(Problem::bad_request("the metadata are no object")),
    }
}

#[cfg(test)]
mod tests;
