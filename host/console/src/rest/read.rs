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

use super::{
    document,
    request::{Asked, ask, cannot_be_shown},
};
use crate::{
    documents, endpoint,
    problem::Problem,
    reading::{Filled, Reading, too_large},
};

/// How many documents a page has when nobody says, and at most.
const LIMIT: u64 = 500;
const LIMIT_MAX: u64 = 1000;

/// How many objects are shown at once, and how many bytes of them wait for that.
const SHOWN_AT_ONCE: usize = 64;
const WAITING_BYTES: usize = 1 << 20;

/// How often a page is asked for again with fewer objects.
const TRIES: usize = 5;

/// One document.
pub(super) async fn get(asked: &Asked<'_>) -> Result<Response, Problem> {
    let object = asked.current(Doing::Get).await?;
    let text = asked.shown(&object).await?;
    Ok(document(StatusCode::OK, text, &asked.view.lens.epoch.shown(object.version())))
}

/// A page of documents. If they are too much for one answer, it has as many as fit.
pub(super) async fn list(asked: &Asked<'_>) -> Result<Response, Problem> {
    let lens = &asked.view.lens;
    let search = asked.query.first("search").unwrap_or_default().to_lowercase();
    let mut limit = limit(asked.query)?;
    'asked: for _ in 0..TRIES {
        let mut reading = begin(asked, limit).await?;
        let mut shown = Shown::default();
        loop {
            let objects = some(asked, &mut reading, &search).await?;
            if objects.is_empty() {
                break;
            }
            if let Some(fitting) = shown.add(asked, objects).await? {
                limit = fitting;
                continue 'asked;
            }
        }
        // It holds its memory until the page is written.
        let (metadata, _memory) = reading.end()?;
        if !shown.failing.is_empty() {
            return Err(cannot_be_shown(&shown.failing).into());
        }
        let next = Some(metadata.r#continue).filter(|token| !token.is_empty());
        let next = next.map(|token| shown_continue(lens.epoch, &token));
        let version = Some(metadata.resource_version).filter(|version| !version.is_empty());
        let version = version.map(|version| lens.epoch.shown(&version)).unwrap_or_default();
        let page = list_json(&version, next.as_deref(), shown.documents.iter().map(String::as_str));
        return Ok(endpoint::written(StatusCode::OK, page));
    }
    Err(too_large())
}

async fn begin<'a>(asked: &Asked<'a>, limit: u64) -> Result<Reading<'a>, Problem> {
    let lens = &asked.view.lens;
    let refused = |status| Refusal::of_status(Doing::List, &status);
    let options = ListOptions::read(&options(asked.query, limit)).map_err(refused)?;
    let pairs = options.backing(lens).map_err(refused)?;
    let ask = ask(Method::GET, lens.served.backing.path(asked.namespace_of_all(), None), pairs);
    Ok(Reading::of(asked.caller, asked.begin(Doing::List, ask).await?))
}

/// Some more objects, each with whether it is searched for; none at the end of the list.
async fn some(
    asked: &Asked<'_>,
    reading: &mut Reading<'_>,
    search: &str,
) -> Result<Vec<(BackingObject, bool)>, Problem> {
    let (mut objects, mut bytes) = (Vec::new(), 0);
    while objects.len() < SHOWN_AT_ONCE && bytes < WAITING_BYTES {
        let Some(item) = reading.next().await? else { break };
        bytes += item.len();
        let object = asked.object(Doing::List, &item, Source::Stored)?;
        let is_found = is_found(&asked.view.lens.names.shown(object.name()), search);
        objects.push((object, is_found));
    }
    Ok(objects)
}

/// The documents of a page so far, in order.
#[derive(Default)]
struct Shown {
    documents: Vec<String>,
    failing: Vec<(String, String)>,
    filled: Filled,
}

impl Shown {
    /// Adds what is shown of objects, if they are wanted. Where that is too much, says how many objects are not.
    async fn add(
        &mut self,
        asked: &Asked<'_>,
        objects: Vec<(BackingObject, bool)>,
    ) -> Result<Option<u64>, Problem> {
        let lens = &asked.view.lens;
        let wanted: Vec<bool> = objects.iter().map(|(_, is_wanted)| *is_wanted).collect();
        let objects: Vec<BackingObject> =
            objects.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(object, _)| object).collect();
        let shown =
            if objects.is_empty() { Vec::new() } else { asked.view.guest.show(lens, &objects).await? };
        if shown.len() != objects.len() {
            return Err(Refusal::guest_failed("it did not show every object").into());
        }
        let mut shown = objects.iter().zip(shown);
        for is_wanted in wanted {
            let mut bytes = 0;
            match is_wanted.then(|| shown.next()).flatten() {
                Some((object, documents::Shown::Fields(fields))) => {
                    let document = lens.document_json(object, &fields);
                    bytes = document.len();
                    self.documents.push(document);
                }
                Some((object, documents::Shown::Failed(failure))) => {
                    self.failing.push((lens.names.shown(object.name()), failure.message.clone()));
                }
                None => {}
            }
            if let Err(fitting) = self.filled.add(bytes) {
                return Ok(Some(fitting));
            }
        }
        Ok(None)
    }
}

/// Whether a name is one that is searched for.
pub(super) fn is_found(name: &str, search_in_lower_case: &str) -> bool {
    search_in_lower_case.is_empty() || name.to_lowercase().contains(search_in_lower_case)
}

/// How many documents a page has at most: a list of everything would be as large as the cluster.
fn limit(query: &Query) -> Result<u64, Refusal> {
    let wanted = query.first("limit").filter(|limit| !limit.is_empty());
    match wanted.map(str::parse::<u64>) {
        None => Ok(LIMIT),
        Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
        Some(_) => {
            Err(Refusal::bad_request(format!("the parameter limit is a number from 1 to {LIMIT_MAX}")))
        }
    }
}

/// The options, with this limit.
fn options(query: &Query, limit: u64) -> Query {
    let passed = ["labelSelector", "continue"].into_iter();
    let passed = passed.filter_map(|name| Some((name.to_owned(), query.first(name)?.to_owned())));
    Query::new(passed.chain([("limit".to_owned(), limit.to_string())]))
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
        let query = |wanted: Option<&str>| {
            let pairs = wanted.map(|wanted| ("limit".to_owned(), wanted.to_owned()));
            limit(&Query::new(pairs))
        };
        assert_eq!(query(None), Ok(500));
        assert_eq!(query(Some("1000")), Ok(1000));
        for wrong in ["0", "1001", "-1", "x"] {
            assert_eq!(query(Some(wrong)).unwrap_err().status, 400, "{wrong}");
        }
    }
}
