//! [`Wanted`]: what a client asks to see.

use pintle_core::object;
use pintle_wit::{names, syntax};
use serde_json::{Value, json};

use crate::{
    caller::{Ask, METADATA, METADATA_OF_ALL},
    happening,
    place::{self, Place, Resource},
    problem::Problem,
    rows::{self, Fields},
};

/// The longest text of one watch, in bytes.
const BYTES_MAX: usize = 4 << 10;

/// One watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// What is watched, and how it is shown.
    pub(super) what: What,
    /// What the client has seen already.
    pub(super) since: Option<String>,
}

/// What is watched, and how it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct What {
    /// All objects of a kind, those of a namespace, or one of them.
    place: Place,
    /// The uid of the root of which these are children. Of them only the metadata are watched: they are of any kind, Secrets among them.
    root: Option<String>,
    fields: Fields,
    is_whole: bool,
}

impl Wanted {
    /// Reads `group/version/plural;namespace=NS;name=N;root=UID;resourceVersion=RV;fields=a,b;whole=true`.
    ///
    /// # Errors
    /// 400 or 404 where it says something else, or names what is not served here.
    pub(super) fn read(text: &str) -> Result<Self, Problem> {
        if text.len() > BYTES_MAX {
            return Err(Problem::bad_request(format!("a watch has more than {BYTES_MAX} bytes")));
        }
        let mut parts = text.split(';');
        let resource = parts.next().unwrap_or_default();
        let (mut namespace, mut name, mut since, mut fields, mut is_whole) = (None, None, None, None, false);
        let mut root = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "namespace" => namespace = Some(value).filter(|value| !value.is_empty()),
                "name" => name = Some(value),
                "root" => root = Some(uid(value)?),
                "resourceVersion" => since = version(value)?,
                "fields" => fields = Some(value),
                "whole" => is_whole = value == "true",
                _ => {
                    return Err(Problem::bad_request(
                        "a watch has namespace, name, root, resourceVersion, fields and whole",
                    ));
                }
            }
        }
        let parts: Vec<&str> = resource.split('/').collect();
        let resource: [&str; 3] =
            parts.try_into().map_err(|_| Problem::bad_request("a watch begins with GROUP/VERSION/PLURAL"))?;
        let is_any = root.is_some() || Resource::any(resource).is_ok_and(|named| named == place::events());
        let resource = if is_any { Resource::any(resource) } else { Resource::custom(resource) }?;
        let place = Place::within(&resource, namespace)?;
        let place = if let Some(name) = name { place.named(name)? } else { place };
        let what = What { place, is_whole: is_whole && root.is_none(), root, fields: Fields::read(fields)? };
        Ok(Self { what, since })
    }
}

fn uid(value: &str) -> Result<String, Problem> {
    if !syntax::is_label(value) {
        return Err(Problem::bad_request("root is the uid of an object"));
    }
    Ok(value.to_owned())
}

fn version(text: &str) -> Result<Option<String>, Problem> {
    if text.len() > 64 || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Problem::bad_request("resourceVersion is one that a list gave"));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

impl What {
    /// Asks for what there is now.
    pub(super) fn list(&self) -> Ask {
        self.ask(METADATA_OF_ALL)
    }

    /// Asks for what changes.
    pub(super) fn watch(&self) -> Ask {
        self.ask(METADATA).with("watch", "true").with("allowWatchBookmarks", "true")
    }

    /// Asks for the objects, or in this form where their metadata are enough.
    fn ask(&self, of_metadata: &'static str) -> Ask {
        let name = self.place.name.as_deref().map(|name| format!("metadata.name={name}"));
        let of_root = self.root.as_ref().map(|uid| format!("{}={uid}", names::LABEL_ROOT));
        let ask = Ask::get(Place { name: None, ..self.place.clone() }.path())
            .with_some("fieldSelector", name)
            .with_some("labelSelector", of_root);
        if self.root.is_some() { ask.accepting(of_metadata) } else { ask }
    }

    /// What a client is told of a change of an object by the watch of this number, as JSON.
    pub(super) fn told(&self, watch: usize, object: Value) -> String {
        let version = object::text(&object, &["metadata", "resourceVersion"]).unwrap_or_default().to_owned();
        let (key, shown) = if self.place.resource == place::events() {
            ("row", json!(happening::reduced(&object)))
        } else if self.is_whole {
            ("object", rows::whole(object))
        } else {
            ("row", json!(rows::row(&object, &self.fields)))
        };
        json!({"watch": watch, "resourceVersion": version, key: shown}).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_says_what_is_watched_and_how_it_is_shown() {
        let wanted = Wanted::read(
            "a.example/v1/rooms;namespace=n;name=x;resourceVersion=7;fields=spec.a,spec.b;whole=true",
        )
        .unwrap();
        assert_eq!(wanted.since.as_deref(), Some("7"));
        assert_eq!(
            wanted.what.list(),
            Ask::get("/apis/a.example/v1/namespaces/n/rooms".into()).with("fieldSelector", "metadata.name=x")
        );
        let plain = Wanted::read("a.example/v1/rooms").unwrap();
        assert_eq!((plain.since, plain.what.list()), (None, Ask::get("/apis/a.example/v1/rooms".into())));
        assert!(Wanted::read("events.k8s.io/v1/events;namespace=n").is_ok());
        assert_eq!(Wanted::read("a.example/v1/rooms;resourceVersion=").unwrap().since, None);
    }

    #[test]
    fn of_the_children_of_a_root_which_are_of_any_kind_only_metadata_are_watched() {
        let wanted = Wanted::read("/v1/secrets;namespace=n;root=u-1;whole=true").unwrap();
        let list = Ask::get("/api/v1/namespaces/n/secrets".into())
            .with("labelSelector", "pintle.dev/root=u-1")
            .accepting(METADATA_OF_ALL);
        assert_eq!(wanted.what.list(), list);
        let watch = list.with("watch", "true").with("allowWatchBookmarks", "true").accepting(METADATA);
        assert_eq!(wanted.what.watch(), watch);
        assert!(wanted.what.told(0, json!({"metadata": {"name": "a"}})).contains("\"row\""));
    }

    #[test]
    fn everything_else_is_refused() {
        for wrong in [
            "",
            "a.example/v1",
            "a.example/v1/rooms/x",
            "apps/v1/deployments",
            "/v1/secrets",
            "events.k8s.io/v1/secrets",
            "a.example/v1/rooms;namespace=..",
            "a.example/v1/rooms;name=a%2fb",
            "a.example/v1/rooms;resourceVersion=1&watch=0",
            "a.example/v1/rooms;labelSelector=a",
            "/v1/secrets;root=",
            "/v1/secrets;root=u,a!=b",
            "/v1/../secrets;root=u",
            "UP/v1/secrets;root=u",
            &format!("a.example/v1/rooms;fields={}", "a".repeat(BYTES_MAX)),
        ] {
            assert!(Wanted::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_told_is_a_row_an_object_or_an_event() {
        let told = |watch: &str, object: Value| -> Value {
            serde_json::from_str(&Wanted::read(watch).unwrap().what.told(3, object)).unwrap()
        };
        let object =
            json!({"metadata": {"name": "a", "resourceVersion": "7", "managedFields": []}, "spec": {"b": 1}});
        let row = told("a.example/v1/rooms;fields=spec.b", object.clone());
        assert_eq!((&row["watch"], &row["resourceVersion"]), (&json!(3), &json!("7")));
        assert_eq!(row["row"]["fields"], json!({"spec.b": 1}));
        let whole = told("a.example/v1/rooms;whole=true", object);
        assert_eq!(
            whole["object"],
            json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"b": 1}})
        );
        let event = told("events.k8s.io/v1/events", json!({"metadata": {"uid": "u"}, "reason": "R"}));
        assert_eq!((&event["row"]["uid"], &event["row"]["reason"]), (&json!("u"), &json!("R")));
    }
}
