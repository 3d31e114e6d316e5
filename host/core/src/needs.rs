//! Needs: which objects a guest's need selects, and which parts of them the guest is shown.

use jiff::Timestamp;
use pintle_wit::{
    Failure, Kind, LabelSelector, Need, NeedAnswer, ObjectRef, Select, SelectorOperator, reasons,
};
use serde_json::{Map, Value};

use crate::{object, request};

/// A namespace that stands for all of them, in a need.
pub const ALL_NAMESPACES: &str = "*";

/// The most JSON that one call is shown, in bytes: a quarter of what a guest with a small memory limit can read. The metadata of a
/// thousand Pods are half of it.
pub const SHOWN_BYTES_MAX: usize = 2 << 20;

/// The most objects that one call is shown: four times the number of Pods in a large namespace.
pub const SHOWN_OBJECTS_MAX: usize = 4096;

/// How much a call may still be shown. Objects are charged while they are found, before anything is allocated for them.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    bytes: usize,
    objects: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: SHOWN_BYTES_MAX, objects: SHOWN_OBJECTS_MAX }
    }
}

impl Budget {
    /// Charges one object of this many bytes. Returns false if not enough is left.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes).zip(self.objects.checked_sub(1));
        if let Some((bytes, objects)) = left {
            *self = Self { bytes, objects };
        }
        left.is_some()
    }

    /// As [`Budget::take`], for an object as it is shown.
    #[must_use]
    pub fn take_object(&mut self, shown: &Value) -> bool {
        self.take(object::json_bytes(shown))
    }
}

/// The failure of a need that found more than a call is shown.
pub fn too_large(kind: &Kind, select: &Select) -> Failure {
    let which = match select {
        Select::Name(name) => format!("{name:?}"),
        Select::Labels(_) => "by labels".into(),
        Select::Field(field) => format!("by {}", field.path),
    };
    let message = format!(
        "with {kind} {which} what the guest asks to see is more than {SHOWN_BYTES_MAX} bytes or {SHOWN_OBJECTS_MAX} objects; ask for \
         fewer objects or fields"
    );
    Failure::terminal(reasons::NEEDS_TOO_LARGE, message)
}

/// Who has set which field.
const MANAGED_FIELDS: &str = "metadata.managedFields";

/// Objects to look up: for a need that the gate has allowed, or for the pass itself, which follows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LookUp {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) select: Select,
    pub(crate) fields: Vec<String>,
}

impl LookUp {
    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }
    /// The namespace to look in; none for all namespaces, and for cluster scope.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
    /// Which objects.
    pub fn select(&self) -> &Select {
        &self.select
    }
    /// The fields wanted besides metadata.
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Whether the pass itself follows the object. The guest is shown nothing of it.
    pub fn is_followed(&self) -> bool {
        self.fields.iter().any(|field| field == MANAGED_FIELDS)
    }

    /// A look-up of the managed fields of an object. No guest may ask for it.
    pub(crate) fn of_managed_fields(object: &ObjectRef) -> Self {
        Self {
            kind: object.kind(),
            namespace: object.namespace.clone(),
            select: Select::Name(object.name.clone()),
            fields: vec![MANAGED_FIELDS.into()],
        }
    }

    /// Whether the look-up selects this object of its kind.
    pub fn means(&self, live: &Value) -> bool {
        let in_place = self.namespace.is_none() || self.namespace.as_deref() == object::namespace(live);
        in_place
            && match &self.select {
                Select::Name(name) => object::name(live) == name,
                Select::Labels(selector) => {
                    matches(selector, |key| object::text(live, &["metadata", "labels", key]))
                }
                Select::Field(field) => {
                    object::strings_at(live, &field.path).contains(&field.equals.as_str())
                }
            }
    }
}

/// Whether labels match a selector.
pub fn matches<'a>(selector: &LabelSelector, label: impl Fn(&str) -> Option<&'a str>) -> bool {
    let expressions = selector.match_expressions.iter().all(|requirement| {
        let found = label(&requirement.key);
        let is_listed = found.is_some_and(|found| requirement.values.iter().any(|value| value == found));
        match requirement.operator {
            SelectorOperator::In => is_listed,
            SelectorOperator::NotIn => !is_listed,
            SelectorOperator::Exists => found.is_some(),
            SelectorOperator::DoesNotExist => found.is_none(),
        }
    });
    expressions && selector.match_labels.iter().all(|(key, value)| label(key) == Some(value.as_str()))
}

/// An object with its metadata as guests see it, and with these fields, which are dotted paths of maps.
pub fn project(live: &Value, fields: &[String]) -> Value {
    let mut shown = head(live);
    for path in fields {
        if let Some(value) = field(live, path) {
            put(&mut shown, path, value.clone());
        }
    }
    shown
}

/// The part of an object that is shown for every need: apiVersion, kind, and its metadata as guests see it.
pub fn head(live: &Value) -> Value {
    let mut head = Map::new();
    for key in ["apiVersion", "kind", "metadata"] {
        head.extend(live.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    request::project(&Value::Object(head))
}

/// The field at a dotted path of maps, if it is there.
pub fn field<'a>(live: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(live, |value, step| value.get(step))
}

/// Sets the field at a dotted path of maps.
pub fn put(shown: &mut Value, path: &str, value: Value) {
    let mut at = shown;
    for step in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(fields) = at.as_object_mut() else { return };
        at = fields.entry(step.to_owned()).or_insert(Value::Null);
    }
    *at = value;
}

/// The answer to a need that found these objects.
///
/// # Errors
/// [`too_large`], as soon as the objects are more than the budget has left.
pub fn answer(need: &Need, found: Vec<Value>, budget: &mut Budget) -> Result<NeedAnswer, Failure> {
    let Need::Objects(asked) = need else {
        return Ok(NeedAnswer { need: need.clone(), ..NeedAnswer::default() });
    };
    let mut objects = Vec::new();
    for live in found {
        let shown = project(&live, &asked.fields);
        if !budget.take_object(&shown) {
            return Err(too_large(&Kind::new(&asked.api_version, &asked.kind), &asked.select));
        }
        objects.push(shown);
    }
    request::sort(&mut objects);
    Ok(NeedAnswer { need: need.clone(), objects, ..NeedAnswer::default() })
}

/// The answer to a need for time, and when it will change. None for a need for objects.
pub fn time(need: &Need, now: Timestamp) -> Option<(NeedAnswer, Option<std::time::Duration>)> {
    let until = |at: Timestamp| std::time::Duration::try_from(at.duration_since(now)).ok();
    match need {
        Need::Objects(_) => None,
        Need::Clock { step_seconds } => {
            let step = i64::from((*step_seconds).max(1));
            let begun = now.as_second().div_euclid(step) * step;
            let text = Timestamp::from_second(begun).map(crate::conditions::time).ok();
            let next = Timestamp::from_second(begun.saturating_add(step)).ok().and_then(until);
            Some((NeedAnswer { need: need.clone(), time: text, ..NeedAnswer::default() }, next))
        }
        Need::Deadline(at) => {
            let at: Option<Timestamp> = at.parse().ok();
            let reached = at.is_some_and(|at| at <= now);
            let next = at.filter(|at| *at > now).and_then(until);
            Some((NeedAnswer { need: need.clone(), reached: Some(reached), ..NeedAnswer::default() }, next))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_wit::{FieldEquals, SelectorRequirement};
    use serde_json::json;

    fn look(select: Select) -> LookUp {
        LookUp { kind: Kind::new("v1", "Pod"), namespace: Some("n".into()), select, fields: vec![] }
    }

    fn pod() -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"app": "web", "x.io/y": "1"},
                "ownerReferences": [{"uid": "r"}], "managedFields": [{}]},
            "spec": {"hosts": ["h1", "h2"], "nodeName": "node"}, "status": {"phase": "Running"}})
    }

    #[test]
    fn a_need_means_what_has_its_name_labels_or_value_in_its_namespace() {
        let by_name = look(Select::Name("a".into()));
        assert!(by_name.means(&pod()));
        assert!(!LookUp { namespace: Some("m".into()), ..by_name.clone() }.means(&pod()));
        assert!(LookUp { namespace: None, ..by_name }.means(&pod()));
        let field = |equals: &str| {
            look(Select::Field(FieldEquals { path: "spec.hosts[]".into(), equals: equals.into() }))
        };
        assert!(field("h2").means(&pod()) && !field("h3").means(&pod()));
    }

    #[test]
    fn a_selector_matches_as_kubernetes_has_it() {
        let requirement = |key: &str, operator, values: &[&str]| SelectorRequirement {
            key: key.into(),
            operator,
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        use SelectorOperator::*;
        let matches = |expressions: Vec<SelectorRequirement>| {
            let selector = LabelSelector { match_expressions: expressions, ..LabelSelector::default() };
            look(Select::Labels(selector)).means(&pod())
        };
        assert!(matches(vec![]), "nothing is required");
        assert!(matches(vec![requirement("app", In, &["web", "db"]), requirement("x.io/y", Exists, &[])]));
        assert!(matches(vec![requirement("gone", NotIn, &["a"]), requirement("gone", DoesNotExist, &[])]));
        for wrong in [
            requirement("app", In, &["db"]),
            requirement("app", NotIn, &["web"]),
            requirement("gone", Exists, &[]),
            requirement("app", DoesNotExist, &[]),
            requirement("gone", In, &[""]),
        ] {
            assert!(!matches(vec![wrong.clone()]), "{wrong:?}");
        }
        let labels = |value: &str| {
            let match_labels = [("app".to_owned(), value.to_owned())].into();
            look(Select::Labels(LabelSelector { match_labels, ..LabelSelector::default() })).means(&pod())
        };
        assert!(labels("web") && !labels("db"));
    }

    #[test]
    fn a_guest_is_shown_metadata_and_the_fields_that_it_asked_for() {
        let fields: Vec<String> =
            ["metadata.ownerReferences", "spec.nodeName", "spec.gone", "status"].map(Into::into).into();
        assert_eq!(
            project(&pod(), &fields),
            json!({"apiVersion": "v1", "kind": "Pod", "spec": {"nodeName": "node"}, "status": {"phase": "Running"},
                "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"app": "web", "x.io/y": "1"},
                    "ownerReferences": [{"uid": "r"}]}})
        );
        assert_eq!(project(&project(&pod(), &fields), &fields), project(&pod(), &fields));
    }

    #[test]
    fn what_is_shown_is_counted_object_by_object() {
        let need = |fields: &[&str]| {
            Need::Objects(pintle_wit::ObjectsNeed::named("v1", "Pod", "a").with_fields(fields))
        };
        let mut budget = Budget::default();
        assert!(answer(&need(&[]), vec![pod(); SHOWN_OBJECTS_MAX], &mut budget).is_ok());
        let failure = answer(&need(&[]), vec![pod()], &mut budget).expect_err("one too many");
        assert_eq!(failure.reason, reasons::NEEDS_TOO_LARGE);
        assert!(failure.message.contains("v1 Pod \"a\""), "{failure}");
        let mut large = pod();
        large["spec"]["large"] = "x".repeat(SHOWN_BYTES_MAX).into();
        assert!(
            answer(&need(&[]), vec![large.clone()], &mut Budget::default()).is_ok(),
            "it is not asked for"
        );
        assert!(answer(&need(&["spec"]), vec![large], &mut Budget::default()).is_err());
    }

    #[test]
    fn time_is_rounded_down_and_says_when_it_moves_on() {
        let now: Timestamp = "2000-01-01T00:01:59.5Z".parse().unwrap();
        let (answer, next) = time(&Need::Clock { step_seconds: 60 }, now).unwrap();
        assert_eq!(answer.time.as_deref(), Some("2000-01-01T00:01:00Z"));
        assert_eq!(next, Some(std::time::Duration::from_millis(500)));
        let deadline = |at: &str| {
            let (answer, next) = time(&Need::Deadline(at.into()), now).unwrap();
            (answer.reached, next.map(|next| next.as_millis()))
        };
        assert_eq!(deadline("2000-01-01T00:02:00Z"), (Some(false), Some(500)));
        assert_eq!(deadline("2000-01-01T01:01:59.5+01:00"), (Some(true), None));
        assert!(time(&Need::default(), now).is_none());
    }
}
