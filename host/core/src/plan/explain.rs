//! Which fields of an object would differ. It explains a change, and decides none.
//!
//! Only what is sent counts, and what an earlier apply of ours has set and this one leaves out: managed fields tell. So what the API
//! server or a controller filled in is no difference. Quantities are compared by their amount.

use pintle_wit::names::ANNOTATION_DESIRED;
use serde_json::{Map, Value};

use super::FieldChange;
use crate::{
    managed::{NAMING, is_item},
    number, quantity,
};

/// What differs, and the two sides as far as they are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explained {
    /// The fields.
    pub fields: Vec<FieldChange>,
    /// What is there.
    pub before: Option<Value>,
    /// What would be there.
    pub after: Option<Value>,
}

/// The fields in which what is sent differs from what is live. `entry` is what the last apply has set, as managed fields have it.
pub fn explain(live: Option<&Value>, sent: Option<&Value>, entry: Option<&Value>) -> Explained {
    let mut walk = Walk { fields: Vec::new() };
    let (before, after) = match (live, sent) {
        (Some(Value::Object(live)), Some(Value::Object(sent))) => walk.top(live, sent, entry),
        (live, sent) => (live.cloned(), sent.map(without_hash)),
    };
    Explained { fields: walk.fields, before, after }
}

/// The path of a field below another. A name that has dots or slashes itself is put into brackets.
pub fn join(path: &str, key: &str) -> String {
    match (path.is_empty(), key.contains(['.', '/'])) {
        (_, true) => format!("{path}[{key}]"),
        (true, false) => key.to_owned(),
        (false, false) => format!("{path}.{key}"),
    }
}

fn without_hash(sent: &Value) -> Value {
    let mut sent = sent.clone();
    let annotations = sent.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if annotations
        .is_some_and(|annotations| annotations.remove(ANNOTATION_DESIRED).is_some() && annotations.is_empty())
        && let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("annotations");
    }
    sent
}

/// The two sides of a field; none where it is not compared.
type Sides = (Option<Value>, Option<Value>);

/// What identifies an item of a list of objects, in the kinds of Kubernetes, where no managed fields say it.
const ITEM_KEYS: [&str; 8] = ["name", "containerPort", "port", "mountPath", "uid", "type", "key", "ip"];

/// The fields of Kubernetes whose values are quantities, or maps of such.
const QUANTITIES: [&str; 9] = [
    "limits",
    "requests",
    "capacity",
    "hard",
    "overhead",
    "sizeLimit",
    "storage",
    "divisor",
    "allocatedResources",
];

struct Walk {
    fields: Vec<FieldChange>,
}

impl Walk {
    fn top(&mut self, live: &Map<String, Value>, sent: &Map<String, Value>, entry: Option<&Value>) -> Sides {
        let (mut before, mut after) = (Map::new(), Map::new());
        let keys = keys(Some(sent), entry);
        for key in keys {
            let (live, sent) = (live.get(&key), sent.get(&key));
            let sides = match key.as_str() {
                "apiVersion" | "kind" => (sent.cloned(), sent.cloned()),
                "metadata" => self.metadata(live, sent, below(entry, &key)),
                _ => self.field(&key, live, sent, below(entry, &key)),
            };
            put(&mut before, &mut after, &key, sides);
        }
        (Some(Value::Object(before)), Some(Value::Object(after)))
    }

    fn metadata(&mut self, live: Option<&Value>, sent: Option<&Value>, entry: Option<&Value>) -> Sides {
        let nothing = Map::new();
        let live = live.and_then(Value::as_object).unwrap_or(&nothing);
        let sent = sent.and_then(Value::as_object).unwrap_or(&nothing);
        let (mut before, mut after) = (Map::new(), Map::new());
        for key in keys(Some(sent), entry) {
            let (live, sent) = (live.get(&key), sent.get(&key));
            let sides = match key.as_str() {
                "uid" | "resourceVersion" => continue,
                key if NAMING.contains(&key) => (sent.cloned(), sent.cloned()),
                key => self.field(&format!("metadata.{key}"), live, sent, below(entry, key)),
            };
            put(&mut before, &mut after, &key, sides);
        }
        (Some(Value::Object(before)), Some(Value::Object(after)))
    }

    fn field(
        &mut self,
        path: &str,
        live: Option<&Value>,
        sent: Option<&Value>,
        entry: Option<&Value>,
    ) -> Sides {
        match (live, sent) {
            (None, None) => (None, None),
            (Some(live), None) => self.left_out(path, live, entry),
            (None, Some(sent)) if is_nothing(sent) => (None, None),
            (None, Some(sent)) => {
                let sent = if path == "metadata.annotations" { bare(sent) } else { sent.clone() };
                if is_nothing(&sent) { (None, None) } else { self.differs(path, None, Some(sent)) }
            }
            (Some(Value::Object(live)), Some(Value::Object(sent))) => self.map(path, live, sent, entry),
            (Some(Value::Array(live)), Some(Value::Array(sent))) => self.list(path, live, sent, entry),
            (Some(live), Some(sent)) if is_same(path, live, sent) => (Some(live.clone()), Some(live.clone())),
            (Some(live), Some(sent)) => self.differs(path, Some(live.clone()), Some(sent.clone())),
        }
    }

    fn differs(&mut self, path: &str, from: Option<Value>, to: Option<Value>) -> Sides {
        self.fields.push(FieldChange { path: path.into(), from: from.clone(), to: to.clone() });
        (from, to)
    }

    /// What is there and not sent: it goes as far as we own it.
    fn left_out(&mut self, path: &str, live: &Value, entry: Option<&Value>) -> Sides {
        let Some(entry) = entry else { return (None, None) };
        let nothing = Map::new();
        let owned = entry.as_object().unwrap_or(&nothing);
        let has_parts = owned.keys().any(|key| key != ".");
        match live {
            Value::Object(fields) if has_parts => self.map(path, fields, &nothing, Some(entry)),
            Value::Array(items) if has_parts => self.list(path, items, &[], Some(entry)),
            live => self.differs(path, Some(live.clone()), None),
        }
    }

    fn map(
        &mut self,
        path: &str,
        live: &Map<String, Value>,
        sent: &Map<String, Value>,
        entry: Option<&Value>,
    ) -> Sides {
        let is_whole = entry.and_then(Value::as_object).is_some_and(Map::is_empty) && !sent.is_empty();
        let mut all = keys(Some(sent), entry);
        if is_whole {
            all.extend(live.keys().filter(|key| !sent.contains_key(*key)).cloned());
        }
        let whole = Value::Object(Map::new());
        let (mut before, mut after) = (Map::new(), Map::new());
        for key in all.into_iter().filter(|key| path != "metadata.annotations" || key != ANNOTATION_DESIRED) {
            let below = if is_whole { Some(&whole) } else { below(entry, &key) };
            let sides = self.field(&join(path, &key), live.get(&key), sent.get(&key), below);
            put(&mut before, &mut after, &key, sides);
        }
        sides_of(Value::Object(before), Value::Object(after), sent.is_empty())
    }

    fn list(&mut self, path: &str, live: &[Value], sent: &[Value], entry: Option<&Value>) -> Sides {
        let owned: Vec<(&String, &Value)> = entry.and_then(Value::as_object).into_iter().flatten().collect();
        if owned.iter().any(|(key, _)| key.starts_with("v:")) {
            return self.set(path, live, sent, &owned);
        }
        let keyed: Vec<(String, &Value)> = owned
            .iter()
            .filter_map(|(key, below)| Some((key.strip_prefix("k:")?.to_owned(), *below)))
            .collect();
        if !keyed.is_empty() {
            return self.keyed(path, live, sent, &keyed);
        }
        let is_owned_whole = entry.and_then(Value::as_object).is_some_and(Map::is_empty);
        if !is_owned_whole && let Some(key) = item_key(live, sent) {
            let keyed: Vec<(String, &Value)> = Vec::new();
            return self.by_key(path, live, sent, &keyed, &|item| {
                let mut only = Map::new();
                only.insert(key.into(), item.get(key).cloned().unwrap_or_default());
                Value::Object(only).to_string()
            });
        }
        self.whole(path, live, sent)
    }

    /// A list that is a set of scalars.
    fn set(&mut self, path: &str, live: &[Value], sent: &[Value], owned: &[(&String, &Value)]) -> Sides {
        let ours = |value: &Value| {
            let mut keys = owned.iter().filter_map(|(key, _)| key.strip_prefix("v:"));
            keys.any(|key| serde_json::from_str::<Value>(key).is_ok_and(|known| known == *value))
        };
        let goes: Vec<Value> =
            live.iter().filter(|value| ours(value) && !sent.contains(value)).cloned().collect();
        let comes: Vec<Value> = sent.iter().filter(|value| !live.contains(value)).cloned().collect();
        for value in &goes {
            self.differs(&format!("{path}[]"), Some(value.clone()), None);
        }
        for value in &comes {
            self.differs(&format!("{path}[]"), None, Some(value.clone()));
        }
        let stays = live.iter().filter(|value| sent.contains(value));
        let stays: Vec<Value> = stays.cloned().collect();
        let side = |more: Vec<Value>| Value::Array(stays.iter().cloned().chain(more).collect());
        sides_of(side(goes), side(comes), sent.is_empty())
    }

    /// A list whose items are known by the keys that managed fields name.
    fn keyed(&mut self, path: &str, live: &[Value], sent: &[Value], owned: &[(String, &Value)]) -> Sides {
        let Some((first, _)) = owned.first() else { return (None, None) };
        let names: Vec<String> = serde_json::from_str::<Map<String, Value>>(first)
            .map(|keys| keys.keys().cloned().collect())
            .unwrap_or_default();
        self.by_key(path, live, sent, owned, &|item| {
            let keys = names.iter().filter_map(|name| Some((name.clone(), item.get(name)?.clone())));
            Value::Object(keys.collect()).to_string()
        })
    }

    fn by_key(
        &mut self,
        path: &str,
        live: &[Value],
        sent: &[Value],
        owned: &[(String, &Value)],
        keys_of: &dyn Fn(&Value) -> String,
    ) -> Sides {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for item in sent {
            let keys = keys_of(item);
            let found = live.iter().find(|other| is_item(&keys, other));
            let entry = owned.iter().find(|(keys, _)| is_item(keys, item)).map(|(_, below)| *below);
            let (old, new) = self.field(&item_path(path, &keys), found, Some(item), entry);
            before.extend(old);
            after.extend(new);
        }
        let gone = owned.iter().filter(|(keys, _)| !sent.iter().any(|item| is_item(keys, item)));
        for (keys, _) in gone {
            if let Some(item) = live.iter().find(|item| is_item(keys, item)) {
                before.extend(self.differs(&item_path(path, keys), Some(item.clone()), None).0);
            }
        }
        sides_of(Value::Array(before), Value::Array(after), sent.is_empty())
    }

    /// A list that is set as a whole. What the API server filled into its items is no difference.
    fn whole(&mut self, path: &str, live: &[Value], sent: &[Value]) -> Sides {
        if live.len() != sent.len() {
            return self.differs(path, Some(live.to_vec().into()), Some(sent.to_vec().into()));
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (index, (live, sent)) in live.iter().zip(sent).enumerate() {
            let (old, new) = self.field(&format!("{path}[{index}]"), Some(live), Some(sent), None);
            before.push(old.unwrap_or_default());
            after.push(new.unwrap_or_default());
        }
        (Some(before.into()), Some(after.into()))
    }
}

/// The annotations without the hash that the host adds.
fn bare(annotations: &Value) -> Value {
    let mut annotations = annotations.clone();
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(ANNOTATION_DESIRED);
    }
    annotations
}

fn keys(sent: Option<&Map<String, Value>>, entry: Option<&Value>) -> Vec<String> {
    let sent = sent.into_iter().flat_map(|sent| sent.keys().cloned());
    let owned = entry.and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let owned = owned.filter_map(|key| key.strip_prefix("f:")).map(str::to_owned);
    let mut keys: Vec<String> = sent.chain(owned).collect();
    keys.sort();
    keys.dedup();
    keys
}

fn below<'a>(entry: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    entry?.get(format!("f:{key}"))
}

fn put(before: &mut Map<String, Value>, after: &mut Map<String, Value>, key: &str, sides: Sides) {
    before.extend(sides.0.map(|value| (key.to_owned(), value)));
    after.extend(sides.1.map(|value| (key.to_owned(), value)));
}

/// The sides of a map or list, without the one that is empty because nothing of it is ours any more.
fn sides_of(before: Value, after: Value, is_left_out: bool) -> Sides {
    let full = |value: Value| Some(value).filter(|value| !is_left_out || !is_nothing(value));
    (full(before), full(after))
}

/// Whether the API server may leave a value out.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The key by which the items of a list of objects are told apart, if there is one.
fn item_key(live: &[Value], sent: &[Value]) -> Option<&'static str> {
    let tells_apart = |key: &str, items: &[Value]| {
        let mut found: Vec<String> =
            items.iter().filter_map(|item| item.get(key)).map(Value::to_string).collect();
        let all = found.len() == items.len();
        found.sort();
        found.dedup();
        all && found.len() == items.len()
    };
    let is_any = !live.is_empty() || !sent.is_empty();
    let mut keys = ITEM_KEYS.iter().copied();
    keys.find(|key| is_any && tells_apart(key, live) && tells_apart(key, sent))
}

/// The path of an item, by the first of its keys.
fn item_path(path: &str, keys: &str) -> String {
    let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
    let named = keys.iter().next().map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        other => format!("{key}={other}"),
    });
    format!("{path}[{}]", named.unwrap_or_default())
}

/// Whether two scalars are the same to the API server.
fn is_same(path: &str, live: &Value, sent: &Value) -> bool {
    match (live, sent) {
        _ if live == sent => true,
        (Value::Number(live), Value::Number(sent)) => number::is_same(live, sent),
        (Value::String(_) | Value::Number(_), Value::String(_) | Value::Number(_)) if is_quantity(path) => {
            amount(live) == amount(sent)
        }
        (live, sent) => is_nothing(live) && is_nothing(sent),
    }
}

fn is_quantity(path: &str) -> bool {
    path.split('.').any(|step| {
        let step = step.split_once('[').map_or(step, |(step, _)| step);
        QUANTITIES.contains(&step)
    })
}

fn amount(value: &Value) -> String {
    match value {
        Value::String(text) => quantity::canonical(text),
        other => quantity::canonical(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn paths(explained: &Explained) -> Vec<&str> {
        explained.fields.iter().map(|field| field.path.as_str()).collect()
    }

    fn deployment() -> (Value, Value, Value) {
        let sent = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "n", "labels": {"app": "web"}, "annotations": {"pintle.dev/desired": "v1:0"}},
            "spec": {"replicas": 2, "template": {"spec": {"containers": [
                {"name": "c", "image": "nginx", "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}},
                    "ports": [{"containerPort": 80}]}]}}}});
        let live = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"app": "web", "x": "theirs"},
                "annotations": {"pintle.dev/desired": "v1:1", "deployment.kubernetes.io/revision": "1"}},
            "spec": {"replicas": 2, "progressDeadlineSeconds": 600, "template": {"spec": {"restartPolicy": "Always", "containers": [
                {"name": "c", "image": "nginx", "imagePullPolicy": "Always",
                    "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
                    "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}}}});
        let entry = json!({
            "f:metadata": {"f:labels": {"f:app": {}}, "f:annotations": {"f:pintle.dev/desired": {}}},
            "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {".": {}, "f:name": {}, "f:image": {},
                "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}},
                "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}});
        (live, sent, entry)
    }

    #[test]
    fn what_the_api_server_filled_in_is_no_difference() {
        let (live, sent, entry) = deployment();
        let explained = explain(Some(&live), Some(&sent), Some(&entry));
        assert_eq!(explained.fields, []);
        assert_eq!(explained.before, explained.after);
    }

    #[test]
    fn what_is_sent_otherwise_is_a_difference_with_its_path() {
        let (live, mut sent, entry) = deployment();
        sent["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2".into();
        sent["metadata"]["labels"]["a.b/c"] = "d".into();
        sent["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "501m".into();
        let explained = explain(Some(&live), Some(&sent), Some(&entry));
        assert_eq!(
            paths(&explained),
            [
                "metadata.labels[a.b/c]",
                "spec.template.spec.containers[name=c].image",
                "spec.template.spec.containers[name=c].resources.limits.cpu"
            ]
        );
        assert_eq!(explained.fields[1].from, Some("nginx".into()));
        assert_eq!(explained.fields[1].to, Some("nginx:2".into()));
        let containers = |side: &Option<Value>| {
            side.as_ref().unwrap()["spec"]["template"]["spec"]["containers"][0]["image"].clone()
        };
        assert_eq!(
            (containers(&explained.before), containers(&explained.after)),
            ("nginx".into(), "nginx:2".into())
        );
    }

    #[test]
    fn what_we_had_set_and_leave_out_goes_and_what_others_set_stays() {
        let (live, mut sent, entry) = deployment();
        sent["spec"].as_object_mut().unwrap().remove("replicas");
        sent["metadata"].as_object_mut().unwrap().remove("labels");
        sent["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("ports");
        let explained = explain(Some(&live), Some(&sent), Some(&entry));
        assert_eq!(
            paths(&explained),
            [
                "metadata.labels.app",
                "spec.replicas",
                "spec.template.spec.containers[name=c].ports[containerPort=80]"
            ]
        );
        assert!(explained.fields.iter().all(|field| field.to.is_none()));
    }

    #[test]
    fn items_of_a_list_come_and_go_by_their_keys() {
        let (live, mut sent, entry) = deployment();
        sent["spec"]["template"]["spec"]["containers"] = json!([{"name": "d", "image": "i"}]);
        let explained = explain(Some(&live), Some(&sent), Some(&entry));
        assert_eq!(
            paths(&explained),
            ["spec.template.spec.containers[name=d]", "spec.template.spec.containers[name=c]"]
        );
    }

    #[test]
    fn an_atomic_list_or_map_is_compared_as_a_whole() {
        let entry = json!({"f:spec": {"f:args": {}, "f:selector": {}}});
        let live = json!({"spec": {"args": ["a", "b"], "selector": {"app": "a", "old": "b"}}});
        let sent = json!({"spec": {"args": ["a"], "selector": {"app": "a"}}});
        let explained = explain(Some(&live), Some(&sent), Some(&entry));
        assert_eq!(paths(&explained), ["spec.args", "spec.selector.old"]);
    }

    #[test]
    fn a_set_of_scalars_is_compared_by_its_members() {
        let entry = json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}}}});
        let live = json!({"metadata": {"finalizers": ["theirs", "a", "b"]}});
        let sent = json!({"metadata": {"finalizers": ["b", "c"]}});
        let explained = explain(Some(&live), Some(&sent), Some(&entry));
        let found: Vec<_> = explained.fields.iter().map(|field| (&field.from, &field.to)).collect();
        assert_eq!(found, [(&Some("a".into()), &None), (&None, &Some("c".into()))]);
    }

    #[test]
    fn text_that_looks_like_a_quantity_is_compared_as_text() {
        let live = json!({"data": {"cpu": "500m"}});
        let explained = explain(Some(&live), Some(&json!({"data": {"cpu": "0.5"}})), None);
        assert_eq!(paths(&explained), ["data.cpu"]);
    }
}
