//! The functions behind the exports of a component that serves views.

use pintle_wit::views::{ShowItem, ShowResponse, StoreResponse, ViewsManifest};
use serde_json::{Map, Value};

use super::{blame, config, invalid, part, text};
use crate::{API_VERSION, ApiVersion, Failure, View, ViewList, Views, plain, read::read, reasons};

/// The text of the manifest of a guest's views. `generated` is the text of `views.json`, with the schemas that the views do not state
/// themselves.
pub fn describe<V: Views>(generated: &str) -> String {
    let mut generated: Value = serde_json::from_str(generated).unwrap_or_default();
    let mut views = V::All::manifests();
    for view in &mut views {
        let name = view.name.clone();
        if let Some(schema) = view.schema_mut().filter(|schema| schema.is_null()) {
            *schema = generated["views"][name.as_str()].take();
        }
    }
    text(&ViewsManifest {
        api_version: ApiVersion,
        name: V::NAME.to_owned(),
        version: V::VERSION.to_owned(),
        config_schema: Some(generated["configSchema"].take()).filter(|schema| !schema.is_null()),
        views,
    })
}

/// Answers what a view shows of objects.
///
/// # Errors
/// The text of a failure of the whole call: that there is no such view, or that the config does not fit the guest's type.
pub fn show<V: Views>(request: &str) -> Result<String, String> {
    let show = |request: &str| {
        let mut fields = fields_of(request)?;
        let mut part = |name: &str| part(&mut fields, name);
        let (view, config) = (part("view"), config(part("config"))?);
        let objects = plain::list(part("objects"), |object| object);
        let name = view.as_str().unwrap_or_default();
        V::All::show(name, objects, &config).ok_or_else(no_such_view)
    };
    match show(request) {
        Ok(items) => Ok(text(&ShowResponse { api_version: ApiVersion, items })),
        Err(failure) => Err(text(&failure)),
    }
}

/// Answers what becomes of an object of the backing kind.
///
/// # Errors
/// The text of a failure: the guest's own, or that the request does not fit the guest's types.
pub fn store<V: Views>(request: &str) -> Result<String, String> {
    let store = |request: &str| {
        let mut fields = fields_of(request)?;
        let mut part = |name: &str| part(&mut fields, name);
        let (view, config) = (part("view"), config(part("config"))?);
        let (object, current) = (part("object"), part("current"));
        let current = Some(current).filter(|current| !current.is_null());
        let name = view.as_str().unwrap_or_default();
        V::All::store(name, object, current, &config).ok_or_else(no_such_view)?
    };
    match store(request) {
        Ok(object) => Ok(text(&StoreResponse { api_version: ApiVersion, object })),
        Err(failure) => Err(text(&failure)),
    }
}

/// The fields of a request, which is of the version that this SDK knows. Reading the request of `reconcile` repeats this: shared, it would
/// make every guest 300 bytes larger.
fn fields_of(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(invalid("must be an object")),
        Err(_) => return Err(invalid("must be JSON")),
    };
    if part(&mut fields, "apiVersion") != API_VERSION {
        return Err(invalid("must be of version guest.pintle.dev/v1").at("apiVersion"));
    }
    Ok(fields)
}

fn no_such_view() -> Failure {
    invalid("is no view of this guest").at("view")
}

/// What a view shows of objects: an item for each, whatever the others are.
pub(crate) fn items<V: View>(objects: Vec<Value>, config: &V::Config) -> Vec<ShowItem> {
    let show = |object| match backing::<V>(object).and_then(|backing| V::show(backing, config)) {
        Ok(shown) => ShowItem::Object(crate::fields(&shown)),
        Err(failure) => ShowItem::Failure(failure),
    };
    objects.into_iter().map(show).collect()
}

/// What a view stores.
pub(crate) fn stored<V: View>(
    object: Value,
    current: Option<Value>,
    config: &V::Config,
) -> Result<Map<String, Value>, Failure> {
    let shown = read(object).map_err(|misfit| blame(reasons::INVALID_SPEC, &misfit))?;
    V::store(shown, current.map(backing::<V>).transpose()?, config)
}

/// An object of the backing kind, as far as the view reads it.
fn backing<V: View>(object: Value) -> Result<V::Backing, Failure> {
    read(object).map_err(|misfit| blame("InvalidBacking", &misfit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, NoConfig, Shown, ViewManifest, fields, json};

    #[derive(serde::Deserialize, serde::Serialize)]
    struct Sized {
        spec: Size,
    }

    #[derive(serde::Deserialize, serde::Serialize)]
    struct Size {
        size: u32,
    }

    #[derive(serde::Deserialize)]
    struct ConfigMap {
        data: Data,
    }

    #[derive(serde::Deserialize)]
    struct Data {
        size: String,
    }

    struct Things;

    impl View for Things {
        type Backing = ConfigMap;
        type Shown = Sized;
        type Config = NoConfig;
        const NAME: &'static str = "things";
        fn manifest() -> ViewManifest {
            let shown = Shown::new("example.com/v1", "Thing", "things");
            ViewManifest::new(Kind::new("v1", "ConfigMap"), &["data"], shown).writing(&["data"])
        }
        fn show(backing: ConfigMap, _: &NoConfig) -> Result<Sized, Failure> {
            let size = backing.data.size.parse();
            let odd = |_| Failure::terminal("Odd", "must be a number").at("data.size");
            Ok(Sized { spec: Size { size: size.map_err(odd)? } })
        }
        fn store(shown: Sized, _: Option<ConfigMap>, _: &NoConfig) -> Result<Map<String, Value>, Failure> {
            Ok(fields(&json!({"data": {"size": shown.spec.size.to_string()}})))
        }
    }

    struct Glances;

    impl View for Glances {
        const NAME: &'static str = "glances";
        type Backing = Value;
        type Shown = Value;
        type Config = NoConfig;
        fn manifest() -> ViewManifest {
            let mut shown = Shown::new("example.com/v1", "Glance", "glances");
            shown.schema = json!({"type": "object", "description": "its own"});
            ViewManifest::new(Kind::new("v1", "Pod"), &["spec"], shown)
        }
        fn show(_: Value, _: &NoConfig) -> Result<Value, Failure> {
            Ok(json!({}))
        }
    }

    struct Both;

    impl Views for Both {
        const NAME: &'static str = "both";
        const VERSION: &'static str = "0.1.0";
        type All = (Things, Glances);
    }

    fn request(fields: Value) -> String {
        let mut request = json!({"apiVersion": "guest.pintle.dev/v1"});
        for (name, value) in fields.as_object().unwrap() {
            request[name] = value.clone();
        }
        request.to_string()
    }

    fn value(text: String) -> Value {
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn what_does_not_fit_or_cannot_be_shown_is_the_failure_of_its_item_alone() {
        let objects = json!([{"data": {"size": "7"}}, {"data": {"size": 7}}, {"data": {"size": "large"}}]);
        let answer = value(show::<Both>(&request(json!({"view": "things", "objects": objects}))).unwrap());
        let items = &answer["items"];
        assert_eq!(items[0], json!({"object": {"spec": {"size": 7}}}));
        assert_eq!(items[1]["failure"]["reason"], "InvalidBacking");
        assert_eq!(items[1]["failure"]["path"], "data.size");
        assert_eq!(items[2]["failure"]["reason"], "Odd");
        assert_eq!(items.as_array().unwrap().len(), 3);
    }

    #[test]
    fn what_is_written_becomes_fields_of_the_backing_object() {
        let store = |object: Value| store::<Both>(&request(json!({"view": "things", "object": object})));
        let answer = value(store(json!({"metadata": {"name": "a"}, "spec": {"size": 7}})).unwrap());
        assert_eq!(answer["object"], json!({"data": {"size": "7"}}));
        let failure = value(store(json!({"spec": {"size": -7}})).unwrap_err());
        assert_eq!((&failure["reason"], &failure["path"]), (&json!("InvalidSpec"), &json!("spec.size")));
    }

    #[test]
    fn a_view_that_stores_nothing_says_that_it_is_read_only() {
        let failure = store::<Both>(&request(json!({"view": "glances", "object": {}}))).unwrap_err();
        assert_eq!(value(failure)["reason"], "ReadOnly");
    }

    #[test]
    fn a_view_that_there_is_not_and_a_config_that_does_not_fit_are_failures_of_the_call() {
        let failure = |fields: Value| value(show::<Both>(&request(fields)).unwrap_err());
        assert_eq!(failure(json!({"view": "thing", "objects": []}))["path"], "view");
        let failure = failure(json!({"view": "things", "objects": [], "config": {"a": 1}}));
        assert_eq!((&failure["reason"], &failure["path"]), (&json!("ConfigInvalid"), &json!("a")));
    }

    #[test]
    fn the_manifest_has_the_names_and_the_generated_schemas_where_views_state_none() {
        let generated = json!({"configSchema": {"type": "object"}, "views": {"things": {"type": "object"}}});
        let manifest: ViewsManifest =
            serde_json::from_str(&describe::<Both>(&generated.to_string())).unwrap();
        assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("both", "0.1.0"));
        assert_eq!(manifest.config_schema, Some(json!({"type": "object"})));
        let [things, glances] = manifest.views.as_slice() else { panic!("{manifest:?}") };
        let generated = json!({"type": "object"});
        assert_eq!((things.name.as_str(), things.schema()), ("things", Some(&generated)));
        assert_eq!(glances.schema().unwrap()["description"], "its own");
        assert_eq!((things.is_writable(), glances.is_writable()), (true, false));
        assert_eq!(manifest.check(), Ok(()));
    }
}
