//! Options of a delete. They stand in the body, or without one in the query.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Query, version_of_epoch, write::wrong_dry_run};
use crate::view::{
    cut::BackingObject,
    served::Lens,
    status::{Status, fault},
    version::Sent,
};

/// The options of a delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    uid: Option<String>,
    version: Option<String>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    grace_period_seconds: Option<i64>,
    /// Whether nothing is to be deleted.
    pub dry_run: bool,
}

/// The body, as clients write it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    api_version: Option<String>,
    kind: Option<String>,
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
    orphan_dependents: Option<bool>,
    propagation_policy: Option<String>,
    dry_run: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    /// Whether what names the object as its owner is to be deleted first. It is deleted afterwards: a view has no finalizer with which the
    /// garbage collector could hold the object meanwhile.
    pub fn is_foreground(&self) -> bool {
        self.propagation_policy.as_deref() == Some("Foreground")
    }

    /// Reads the options: those of the body, or of the query if there is none.
    ///
    /// # Errors
    /// 400 for a body that is no DeleteOptions; 422 for options that do not go together.
    pub fn read(query: &Query, body: Option<&Value>) -> Result<Self, Status> {
        let written = match body {
            Some(body) => Written::of_body(body)?,
            None => Written::of_query(query)?,
        };
        let mut faults = Vec::new();
        if let Some(policy) = &written.propagation_policy {
            if written.orphan_dependents.is_some() {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                faults.push(fault::invalid("propagationPolicy", policy, why));
            }
            let supported = ["Foreground", "Background", "Orphan"];
            if !supported.contains(&policy.as_str()) {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                faults.push(fault::not_supported("propagationPolicy", &format!("{policy:?}"), &supported));
            }
        }
        let is_orphan = written.propagation_policy.as_deref() == Some("Orphan");
        if faults.is_empty() && (is_orphan || written.orphan_dependents == Some(true)) {
            let field = if is_orphan { "propagationPolicy" } else { "orphanDependents" };
            faults
                .push(fault::forbidden(field, "what names an object of a view as its owner is not orphaned"));
        }
        let dry_run = written.dry_run.unwrap_or_default();
        faults.extend(wrong_dry_run(&dry_run.iter().map(String::as_str).collect::<Vec<_>>()));
        if !faults.is_empty() {
            return Err(Status::invalid_options("DeleteOptions", faults));
        }
        let preconditions = written.preconditions.unwrap_or_default();
        Ok(Self {
            uid: preconditions.uid,
            version: preconditions.resource_version,
            propagation_policy: written.propagation_policy,
            orphan_dependents: written.orphan_dependents,
            grace_period_seconds: written.grace_period_seconds,
            dry_run: !dry_run.is_empty(),
        })
    }

    /// The same for the backing kind, as the body of a delete of the object that is shown under this name. For a collection, the name is
    /// empty.
    ///
    /// # Errors
    /// 409 for a version that this epoch did not show: the object, as it is shown now, has another one.
    pub fn backing(&self, lens: &Lens, name: &str) -> Result<Value, Status> {
        let mut preconditions = Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid".into(), lens.mask.map(uid).into());
        }
        if let Some(version) = &self.version {
            let sent = Sent::read(version).unwrap_or(Sent::Foreign);
            let Some(version) = version_of_epoch(lens, &sent) else {
                return Err(Status::modified(&lens.served, name));
            };
            preconditions.insert("resourceVersion".into(), version.into());
        }
        let policy = self.propagation_policy.as_ref().map(|_| "Background");
        let fields = [
            ("preconditions", (!preconditions.is_empty()).then(|| preconditions.into())),
            ("propagationPolicy", policy.map(Value::from)),
            ("orphanDependents", self.orphan_dependents.map(Value::from)),
            ("gracePeriodSeconds", self.grace_period_seconds.map(Value::from)),
            ("dryRun", self.dry_run.then(|| json!(["All"]))),
        ];
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
        if let Some(body) = body.as_object_mut() {
            body.extend(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        }
        Ok(body)
    }
}

impl Written {
    fn of_body(body: &Value) -> Result<Self, Status> {
        let written: Self = serde_json::from_value(body.clone())
            .map_err(|error| Status::bad_request(format!("the body is no DeleteOptions: {error}")))?;
        let api_version = written.api_version.as_deref().filter(|of| !of.is_empty()).unwrap_or("v1");
        let kind = written.kind.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("DeleteOptions");
        // As the API server: the options are the same in every version.
        if kind != "DeleteOptions" {
            let message = format!("no kind {kind:?} is registered for version {api_version:?}");
            return Err(Status::bad_request(message));
        }
        Ok(written)
    }

    fn of_query(query: &Query) -> Result<Self, Status> {
        let text = |name: &str| query.first(name).filter(|text| !text.is_empty()).map(str::to_owned);
        let dry_run: Vec<String> = query.all("dryRun").map(str::to_owned).collect();
        Ok(Self {
            grace_period_seconds: query.number("gracePeriodSeconds")?,
            preconditions: Some(Preconditions {
                uid: text("uid"),
                resource_version: text("resourceVersion"),
            }),
            orphan_dependents: query.flag("orphanDependents"),
            propagation_policy: query.first("propagationPolicy").map(str::to_owned),
            dry_run: Some(dry_run),
            ..Self::default()
        })
    }
}

/// The options of a deletion of the object as it was looked at, and no other: of that object at that version. Beside them, whether a conflict
/// may be due to that: not if whoever deletes it named another uid, or a version.
pub fn pinned(options: &Value, object: &BackingObject) -> (Value, bool) {
    let mut options = options.clone();
    let mut preconditions =
        options.get("preconditions").and_then(Value::as_object).cloned().unwrap_or_default();
    let is_other = |uid: &Value| uid.as_str() != Some(object.uid());
    let is_ours =
        !preconditions.contains_key("resourceVersion") && !preconditions.get("uid").is_some_and(is_other);
    preconditions.entry("uid").or_insert_with(|| object.uid().into());
    preconditions.entry("resourceVersion").or_insert_with(|| object.version().into());
    options["preconditions"] = preconditions.into();
    (options, is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Served;
    use crate::view::{query::tests::query, served::Access, version::Epoch};

    const UID: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

    fn lens() -> Lens {
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            plural: "llamas".into(),
            ..Served::default()
        };
        Lens::new("llamas", served, Access::View, Vec::new(), Epoch::default())
    }

    fn asked(text: &str, body: Option<&Value>) -> Result<Value, Status> {
        DeleteOptions::read(&query(text), body)?.backing(&lens(), "x")
    }

    #[test]
    fn options_of_the_body_and_of_the_query_are_the_same() {
        let body = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "propagationPolicy": "Foreground",
            "preconditions": {"uid": lens().mask.map(UID), "resourceVersion": "77000000"}, "dryRun": ["All"],
            "ignoreStoreReadErrorWithClusterBreakingPotential": true, "unknown": 1,
        });
        let expected = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 5, "propagationPolicy": "Background",
            "preconditions": {"uid": UID, "resourceVersion": "77"}, "dryRun": ["All"],
        });
        assert_eq!(asked("", Some(&body)), Ok(expected.clone()));
        let uid = lens().mask.map(UID);
        let text = format!(
            "gracePeriodSeconds=5&propagationPolicy=Foreground&uid={uid}&resourceVersion=77000000&dryRun=All&x=y"
        );
        assert_eq!(asked(&text, None), Ok(expected));
        let plain = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        assert_eq!(asked("", None), Ok(plain.clone()));
        assert_eq!(asked("propagationPolicy=Orphan", Some(&json!({}))), Ok(plain), "a body counts alone");
        assert_eq!(
            asked("orphanDependents=false", None).map(|body| body["orphanDependents"].clone()),
            Ok(json!(false))
        );
    }

    #[test]
    fn options_may_be_of_any_version_and_of_no_other_kind() {
        let of =
            |api_version: &str| asked("", Some(&json!({"apiVersion": api_version, "kind": "DeleteOptions"})));
        for known in ["v1", "meta.k8s.io/v1", "farm.example.com/v1alpha", "apps/v1", "v7", ""] {
            assert!(of(known).is_ok(), "{known}");
        }
        assert_eq!(asked("", Some(&json!({"kind": "Pod"}))).expect_err("no options").code, 400);
        assert_eq!(asked("", Some(&json!({"dryRun": "All"}))).expect_err("no list").code, 400);
    }

    #[test]
    fn a_version_that_this_epoch_did_not_show_is_a_conflict() {
        for version in ["77000001", "77", "0", "", "x"] {
            let body = json!({"preconditions": {"resourceVersion": version}});
            assert_eq!(asked("", Some(&body)), Err(Status::modified(&lens().served, "x")), "{version:?}");
        }
    }

    #[test]
    fn a_dry_run_of_what_there_is_not_is_422_in_the_api_servers_words() {
        let refused = asked("dryRun=Some", None).expect_err("refused");
        let why = "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"";
        assert_eq!(
            (refused.code, refused.message),
            (422, format!("DeleteOptions.meta.k8s.io \"\" is invalid: {why}"))
        );
    }

    #[test]
    fn a_deletion_is_of_the_object_as_it_was_looked_at_and_what_the_caller_named_stays() {
        let mut object = BackingObject::default();
        object.metadata.extend([("uid".into(), json!("u1")), ("resourceVersion".into(), json!("7"))]);
        let preconditions = |given: Value| {
            let (options, is_ours) = pinned(&json!({"preconditions": given, "dryRun": ["All"]}), &object);
            assert_eq!(options["dryRun"], json!(["All"]));
            (options["preconditions"].clone(), is_ours)
        };
        let both = json!({"uid": "u1", "resourceVersion": "7"});
        assert_eq!(preconditions(Value::Null), (both.clone(), true));
        assert_eq!(preconditions(json!({"uid": "u1"})), (both, true));
        let of_another = json!({"uid": "u2", "resourceVersion": "7"});
        assert_eq!(preconditions(json!({"uid": "u2"})), (of_another, false));
        let of_before = json!({"uid": "u1", "resourceVersion": "6"});
        assert_eq!(preconditions(json!({"resourceVersion": "6"})), (of_before, false));
    }

    #[test]
    fn foreground_is_carried_out_as_background_and_orphaning_is_refused() {
        for (text, is_foreground, below) in [
            ("", false, json!(null)),
            ("propagationPolicy=Background", false, json!("Background")),
            ("propagationPolicy=Foreground", true, json!("Background")),
            ("orphanDependents=false", false, json!(null)),
        ] {
            let options = DeleteOptions::read(&query(text), None).expect(text);
            assert_eq!(options.is_foreground(), is_foreground, "{text}");
            assert_eq!(options.backing(&lens(), "x").expect(text)["propagationPolicy"], below, "{text}");
        }
        for (text, field) in
            [("propagationPolicy=Orphan", "propagationPolicy"), ("orphanDependents=true", "orphanDependents")]
        {
            let refused = DeleteOptions::read(&query(text), None).expect_err(text);
            let why =
                format!("{field}: Forbidden: what names an object of a view as its owner is not orphaned");
            assert_eq!(refused.code, 422, "{text}");
            assert!(refused.message.ends_with(&why), "{}", refused.message);
        }
    }
}
