use pintle_wit::{
    Failure, Kind,
    views::{ShowItem, Shown as ShownKind, ViewManifest},
};
use serde_json::json;

use super::*;
use crate::{
    ask::Blame,
    documents::Document,
    views::laws::{Law, Shown, Unanswered},
};

/// A view of Records, as a guest that is two functions of one object.
struct Guest {
    show: fn(&Value) -> Result<Value, &'static str>,
    store: fn(&Value) -> Result<Value, &'static str>,
}

fn failure(message: &str) -> Failure {
    Failure::terminal("Odd", message)
}

impl Functions for Guest {
    fn show(&self, objects: &[Value]) -> Result<Shown, Unanswered> {
        let item = |object| match (self.show)(object) {
            Ok(fields) => ShowItem::Object(fields.as_object().cloned().unwrap()),
            Err(message) => ShowItem::Failure(failure(message)),
        };
        let items: Vec<ShowItem> = objects.iter().map(item).collect();
        let text = serde_json::to_string(&items).unwrap();
        Ok(Shown { items, text })
    }

    fn store(&self, written: &Value, _: Option<&Value>) -> Result<Map<String, Value>, Unanswered> {
        match (self.store)(written) {
            Ok(stored) => Ok(stored.as_object().cloned().unwrap()),
            Err(message) => Err(Unanswered { blame: Blame::Guest, failure: failure(message) }),
        }
    }
}

/// The spec as it is, both ways.
const HONEST: Guest = Guest {
    show: |object| Ok(json!({"spec": object["spec"]})),
    store: |written| Ok(json!({"spec": written["spec"]})),
};

fn schema() -> Value {
    json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "properties": {
        "weight": {"type": "integer", "minimum": 0, "maximum": 1000},
        "names": {"type": "array", "items": {"type": "string"}},
    }}}})
}

fn manifest() -> ViewManifest {
    let mut shown = ShownKind::new("example.com/v1", "Llama", "llamas");
    shown.schema = schema();
    let backing = Kind::new("store.example.com/v1", "Record");
    ViewManifest::new(backing, &["spec.weight", "spec.names"], shown).writing(&["spec"])
}

fn crd() -> Vec<Document> {
    let value = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {
        "group": "store.example.com", "scope": "Namespaced", "names": {"kind": "Record", "plural": "records"},
        "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema()}}]}});
    vec![Document { source: "crd.yaml".into(), value }]
}

fn searched(guest: &Guest, crds: &[Document]) -> Searched {
    let manifest = manifest();
    search(&View::new(&manifest, crds).unwrap(), guest, &[], 0, 1000)
}

#[test]
fn an_honest_view_holds_on_as_many_objects_and_writes_as_asked_for() {
    // With `spec` as a whole, a write would wipe fields that only a later version of the kind declares.
    let writes = vec!["spec.weight".into(), "spec.names".into()];
    let manifest = ViewManifest { writes, ..manifest() };
    let view = View::new(&manifest, &crd()).unwrap();
    let found = search(&view, &HONEST, &[], 0, 1000);
    assert_eq!(found.broken, None);
    // Without any field of it no spec is stored, which the kind requires.
    assert!(found.objects >= 1000 && found.writes > 800 && found.writes + found.refused == 1000);
    assert!(found.unmade.is_empty() && !found.sample.is_empty());
    assert!(found == search(&view, &HONEST, &[], 0, 1000), "equal seeds try equal objects");
}

#[test]
fn a_store_that_wipes_what_it_does_not_know_is_found_and_shrunk() {
    let typed = Guest {
        show: |object| Ok(json!({"spec": {"weight": object["spec"]["weight"].as_u64().unwrap_or(0)}})),
        store: |written| Ok(json!({"spec": {"weight": written["spec"]["weight"]}})),
    };
    let broken = searched(&typed, &crd()).broken.unwrap();
    assert_eq!(broken.law, Law::Kept, "{broken:?}");
    let [object] = broken.example.backing.as_slice() else { panic!("{broken:?}") };
    assert!(object["spec"].as_object().unwrap().len() <= 1, "one field is enough: {object}");
}

#[test]
fn an_object_that_cannot_be_shown_is_shrunk_to_the_least_that_cannot() {
    let guest = Guest {
        show: |object| match object["spec"]["names"].as_array() {
            Some(names) if names.len() > 2 => Err("three names are too many"),
            _ => (HONEST.show)(object),
        },
        ..HONEST
    };
    let manifest = ViewManifest { writes: Vec::new(), ..manifest() };
    let found = search(&View::new(&manifest, &crd()).unwrap(), &guest, &[], 0, 1000);
    let broken = found.broken.unwrap();
    assert_eq!((broken.law, broken.message.as_str()), (Law::Total, "Odd: three names are too many"));
    let [object] = broken.example.backing.as_slice() else { panic!("{broken:?}") };
    assert_eq!(object["spec"], json!({"names": ["", "", ""]}));
}

#[test]
fn without_a_schema_of_the_backing_kind_only_writes_are_tried() {
    let found = searched(&HONEST, &[]);
    assert_eq!((found.objects, found.broken), (0, None));
    assert!(found.writes >= 1000);
    assert_eq!(
        found.unmade,
        [
            "no Record were made, since there is no schema of store.example.com/v1 Record: name its CRD with --crd"
        ]
    );
}

#[test]
fn writes_that_are_refused_are_counted() {
    let refuses = Guest { store: |_| Err("no"), ..HONEST };
    let found = searched(&refuses, &[]);
    assert_eq!((found.writes, found.broken), (0, None));
    assert!(found.refused >= 1000);
}
