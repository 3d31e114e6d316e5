//! [`Needs`]: what guests ask to see, read as the user. For many roots each kind is listed once and looked up in memory; for one root
//! only what it asks for is read.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use pintle_core::{ApiError, needs, needs::LookUp, object, reasons, reconciler};
use pintle_kubernetes::Resource;
use pintle_wit::{Failure, Kind, LabelSelector, Select, SelectorOperator};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::reader::{Reader, reference};

/// A kind, and a namespace or all of them.
type Place = (Kind, Option<String>);

/// A list that is being made, or was.
type Listing = Arc<OnceCell<Result<Index, ApiError>>>;

/// The places of the objects that have a value.
type ByValue = BTreeMap<String, Vec<usize>>;

/// What guests ask to see.
pub(crate) struct Needs {
    listed: Mutex<BTreeMap<Place, Listing>>,
    /// Whether there are many roots to read for.
    lists: bool,
    /// The namespace of all roots, if they are in one.
    namespace: Option<String>,
}

/// The objects of a kind, with the fields that they are looked up by.
struct Index {
    objects: Vec<Value>,
    by_field: Mutex<BTreeMap<String, Arc<ByValue>>>,
}

impl Needs {
    pub(crate) fn new(lists: bool, namespace: Option<String>) -> Self {
        Self { listed: Mutex::default(), lists, namespace }
    }

    /// What a look-up finds. What the user may not read is an error, and never nothing.
    pub(crate) async fn look(&self, reader: &Reader, look: &LookUp) -> Result<Vec<Value>, Failure> {
        self.find(reader, look).await.map_err(|error| {
            let which = match look.select() {
                Select::Name(name) => format!("{} {name}", look.kind()),
                _ => look.kind().to_string(),
            };
            Failure::transient(reasons::NEED_UNREAD, format!("{which}: {error}"))
        })
    }

    async fn find(&self, reader: &Reader, look: &LookUp) -> Result<Vec<Value>, ApiError> {
        // Of a kind that is not served there is nothing to show.
        let Some(resource) = reader.resource(look.kind()).await? else { return Ok(Vec::new()) };
        let by_name = match look.select() {
            Select::Name(name) => Some(reference(look.kind(), look.namespace(), name)),
            _ => None,
        };
        if let Some(reference) = &by_name
            && (!self.lists || !reconciler::is_watchable(look.kind()))
        {
            return Ok(reader.get(&resource, reference).await?.into_iter().collect());
        }
        if !self.lists {
            let labels = match look.select() {
                Select::Labels(selector) => selector_text(selector),
                _ => None,
            };
            let found = reader.list(&resource, look.namespace(), labels.as_deref()).await?;
            return Ok(found.into_iter().filter(|live| look.means(live)).collect());
        }
        // What all roots are in, or else everything. Who may not list everything may be allowed to list the root's namespace, or to get
        // the object.
        let mut last = None;
        let everywhere = self.namespace.is_none() || look.namespace().is_none();
        let own = look.namespace().map(str::to_owned);
        let places = [everywhere.then_some(None), own.map(Some)].into_iter().flatten();
        for place in places {
            let cell = self.cell((look.kind().clone(), place.clone()));
            let listed = cell.get_or_init(|| index(reader, &resource, place.as_deref())).await;
            match listed {
                Ok(index) => return Ok(index.find(look)),
                Err(error) => last = Some(error.clone()),
            }
        }
        match (by_name, last) {
            (Some(reference), Some(_)) => Ok(reader.get(&resource, &reference).await?.into_iter().collect()),
            (_, Some(error)) => Err(error),
            (_, None) => Ok(Vec::new()),
        }
    }

    fn cell(&self, place: Place) -> Listing {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(listed.entry(place).or_default())
    }
}

async fn index(reader: &Reader, resource: &Resource, namespace: Option<&str>) -> Result<Index, ApiError> {
    let namespace = namespace.filter(|_| resource.namespaced);
    let without_managed_fields = |live: &mut Value| {
        if let Some(metadata) = live.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        true
    };
    let objects = reader.list_lightened(resource, namespace, None, &without_managed_fields).await?;
    Ok(Index { objects, by_field: Mutex::default() })
}

impl Index {
    fn find(&self, look: &LookUp) -> Vec<Value> {
        let of_field = |path: &str, value: &str| self.field(path).get(value).cloned().unwrap_or_default();
        let places = match look.select() {
            Select::Name(name) => of_field("metadata.name", name),
            Select::Field(field) => of_field(&field.path, &field.equals),
            Select::Labels(_) => (0..self.objects.len()).collect(),
        };
        let found = places.iter().filter_map(|at| self.objects.get(*at)).filter(|live| look.means(live));
        found.map(|live| needs::project(live, look.fields())).collect()
    }

    fn field(&self, path: &str) -> Arc<ByValue> {
        let mut known = self.by_field.lock().unwrap_or_else(PoisonError::into_inner);
        let made = known.entry(path.to_owned()).or_insert_with(|| {
            let mut index = BTreeMap::<String, Vec<usize>>::new();
            for (at, live) in self.objects.iter().enumerate() {
                for value in object::strings_at(live, path) {
                    let places = index.entry(value.to_owned()).or_default();
                    if places.last() != Some(&at) {
                        places.push(at);
                    }
                }
            }
            Arc::new(index)
        });
        Arc::clone(made)
    }
}

/// A selector as kubectl writes it; nothing where it selects everything.
fn selector_text(selector: &LabelSelector) -> Option<String> {
    let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(|expression| {
        let (key, values) = (&expression.key, expression.values.join(","));
        match expression.operator {
            SelectorOperator::In => format!("{key} in ({values})"),
            SelectorOperator::NotIn => format!("{key} notin ({values})"),
            SelectorOperator::Exists => key.clone(),
            SelectorOperator::DoesNotExist => format!("!{key}"),
        }
    });
    let all: Vec<String> = labels.chain(expressions).collect();
    (!all.is_empty()).then(|| all.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_wit::SelectorRequirement;

    #[test]
    fn a_selector_is_written_as_kubectl_writes_it() {
        let requirement = |key: &str, operator, values: &[&str]| SelectorRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        let selector = LabelSelector {
            match_labels: [("app".to_owned(), "web".to_owned())].into(),
            match_expressions: vec![
                requirement("tier", SelectorOperator::In, &["a", "b"]),
                requirement("old", SelectorOperator::DoesNotExist, &[]),
            ],
        };
        assert_eq!(selector_text(&selector).as_deref(), Some("app=web,tier in (a,b),!old"));
        assert_eq!(selector_text(&LabelSelector::default()), None);
    }
}
