//! One document, and lists of them.

use axum::response::Response;
use http::{Method, StatusCode};
use pintle_core::view::{
    BackingObject, Source,
    document::{
        problem::{Doing, Refusal},
        shape::list_json,
    },
    query::{ListOptions, Query, shown_continue},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    document, json,
    operations::{LIMIT, LIMIT_MAX},
    request::{Asked, ask, cannot_be_shown},
};
use crate::{documents::Shown, problem::Problem};

/// A list of the backing kind.
#[derive(Deserialize)]
struct List<'a> {
    #[serde(default)]
    metadata: Value,
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

/// One document.
pub(super) async fn get(asked: &Asked<'_>) -> Result<Response, Problem> {
    let object = asked.current(Doing::Get).await?;
    let text = asked.shown(&object).await?;
    Ok(document(StatusCode::OK, text, &asked.view.lens.epoch.shown(object.version())))
}

/// A page of documents.
pub(super) async fn list(asked: &Asked<'_>) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    let options = ListOptions::read(&limited(asked.query)?);
    let options = options.map_err(|status| Refusal::of_status(Doing::List, &status))?;
    let pairs = options.backing(lens).map_err(|status| Refusal::of_status(Doing::List, &status))?;
    let namespace = asked.target.namespace.as_deref().filter(|_| lens.served.backing.namespaced);
    let body =
        asked.ask(Doing::List, ask(Method::GET, lens.served.backing.path(namespace, None), pairs)).await?;
    let unreadable = || Refusal::bad_gateway(Doing::List, "the answer of the API server cannot be read");
    let list: List<'_> = serde_json::from_slice(&body).map_err(|_| unreadable())?;
    let search = asked.query.first("search").unwrap_or_default().to_lowercase();
    let mut objects = Vec::new();
    for item in list.items.unwrap_or_default() {
        let object = asked.object(Doing::List, item.get().as_bytes(), Source::Stored)?;
        if is_found(&lens.names.shown(object.name()), &search) {
            objects.push(object);
        }
    }
    let documents = shown(asked, &objects).await?;
    let text = |key: &str| list.metadata.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let next = text("continue").map(|token| shown_continue(lens.epoch, token));
    let version = text("resourceVersion").map(|version| lens.epoch.shown(version)).unwrap_or_default();
    let page = list_json(&version, next.as_deref(), documents.iter().map(String::as_str));
    Ok(json(StatusCode::OK, page))
}

/// The documents that are shown of objects, in order.
async fn shown(asked: &Asked<'_>, objects: &[BackingObject]) -> Result<Vec<String>, Refusal> {
    let lens = &asked.view.lens;
    let shown = asked.view.guest.show(lens, objects).await?;
    if shown.len() != objects.len() {
        return Err(Refusal::guest_failed("it did not show every object"));
    }
    let (mut documents, mut failing) = (Vec::with_capacity(objects.len()), Vec::new());
    for (object, shown) in objects.iter().zip(shown) {
        match shown {
            Shown::Fields(fields) => documents.push(lens.document_json(object, &fields)),
            Shown::Failed(failure) => {
                failing.push((lens.names.shown(object.name()), failure.message.clone()));
            }
        }
    }
    match failing.is_empty() {
        true => Ok(documents),
        false => Err(cannot_be_shown(&failing)),
    }
}

/// Whether a name is one that is searched for.
pub(super) fn is_found(name: &str, search_in_lower_case: &str) -> bool {
    search_in_lower_case.is_empty() || name.to_lowercase().contains(search_in_lower_case)
}

/// The options, with a limit: a list of everything would be as large as the cluster.
fn limited(query: &Query) -> Result<Query, Refusal> {
    let wanted = query.first("limit").filter(|limit| !limit.is_empty());
    let limit = match wanted.map(str::parse::<u64>) {
        None => LIMIT,
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => limit,
        Some(_) => {
            return Err(Refusal::bad_request(format!(
                "the parameter limit is a number from 1 to {LIMIT_MAX}"
            )));
        }
    };
    let passed = ["labelSelector", "continue"].into_iter();
    let passed = passed.filter_map(|name| Some((name.to_owned(), query.first(name)?.to_owned())));
    Ok(Query::new(passed.chain([("limit".to_owned(), limit.to_string())])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_any_part_of_it_in_any_case() {
        for (name, search, found) in [
            ("photos", "", true),
            ("photos", "OTO", true),
            ("photos", "x", false),
            ("Photos", "photos", true),
        ] {
            assert_eq!(is_found(name, &search.to_lowercase()), found, "{name} {search}");
        }
    }

    #[test]
    fn a_page_has_a_limit_whatever_is_asked_for() {
        let query = |limit: Option<&str>| {
            let pairs = limit.map(|limit| ("limit".to_owned(), limit.to_owned()));
            limited(&Query::new(pairs)).map(|query| query.first("limit").map(ToOwned::to_owned))
        };
        assert_eq!(query(None), Ok(Some("500".into())));
        assert_eq!(query(Some("1000")), Ok(Some("1000".into())));
        for wrong in ["0", "1001", "-1", "x"] {
            assert_eq!(query(Some(wrong)).unwrap_err().status, 400, "{wrong}");
        }
    }
}
