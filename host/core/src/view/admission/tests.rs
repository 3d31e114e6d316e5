use AdmissionKind::{
    MutatingAdmissionPolicy, MutatingWebhookConfiguration, ResourceQuota, ValidatingAdmissionPolicy,
    ValidatingWebhookConfiguration,
};
use serde_json::json;

use super::*;
use crate::view::served::Backing;

const WRITES: [Verb; 5] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete, Verb::DeleteCollection];

fn served(verbs: &[Verb]) -> Served {
    Served {
        api_version: "farm.example.com/v1alpha".into(),
        plural: "llamas".into(),
        verbs: verbs.to_vec(),
        backing: Backing {
            api_version: "store.farm.example.com/v1".into(),
            plural: "llamarecords".into(),
            namespaced: true,
            ..Backing::default()
        },
        ..Served::default()
    }
}

fn llamas() -> Target {
    Target::of(&served(&WRITES)).unwrap()
}

/// A rule for every operation and version.
fn rule(groups: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": resources, "scope": "*"})
}

fn policy(rules: &[Value]) -> Value {
    json!({"metadata": {"name": "limit"}, "spec": {"matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": rules}}})
}

fn quota(hard: Value) -> Value {
    json!({"metadata": {"name": "few", "namespace": "farm"}, "spec": {"hard": hard}})
}

#[test]
fn a_rule_that_names_the_resource_or_its_group_is_missed_and_one_for_everything_is_not() {
    const FARM: &str = "farm.example.com";
    for (groups, resources, is_missed) in [
        (&[FARM][..], &["llamas"][..], true),
        (&[FARM], &["llamas/*"], true),
        (&[FARM], &["*"], true),
        (&[FARM], &["*/*"], true),
        (&["*"], &["llamas"], true),
        (&["*"], &["llamas/*"], true),
        (&["apps", FARM], &["deployments", "llamas"], true),
        // Whoever sees everything sees the record.
        (&["*"], &["*"], false),
        (&["*"], &["*/*"], false),
        (&["*"], &["*", "llamas"], false),
        // No view serves a subresource, and so none is missed.
        (&[FARM], &["llamas/status"], false),
        (&["*"], &["*/scale"], false),
        (&[FARM], &["alpacas"], false),
        (&["barn.example.com"], &["llamas"], false),
        (&["barn.example.com"], &["*"], false),
        (&["store.farm.example.com"], &["llamarecords"], false),
        (&[], &[], false),
    ] {
        let of = rule(groups, resources);
        let webhooks = json!({"webhooks": [{"rules": [rule(&["apps"], &["*"])]}, {"rules": [of]}]});
        for (kind, object) in [
            (ValidatingAdmissionPolicy, policy(std::slice::from_ref(&of))),
            (MutatingAdmissionPolicy, policy(&[rule(&["apps"], &["*"]), of.clone()])),
            (ValidatingWebhookConfiguration, webhooks.clone()),
            (MutatingWebhookConfiguration, webhooks),
        ] {
            assert_eq!(llamas().is_missed_by(kind, &object), is_missed, "{kind:?} {of}");
        }
    }
}

#[test]
fn who_names_the_backing_kind_too_sees_the_writes() {
    let (shown, stored) =
        (rule(&["farm.example.com"], &["llamas"]), rule(&["store.farm.example.com"], &["llamarecords"]));
    let both = [shown.clone(), stored.clone()];
    assert!(!llamas().is_missed_by(ValidatingAdmissionPolicy, &policy(&both)));
    let groups = rule(&["farm.example.com", "store.farm.example.com"], &["*"]);
    assert!(!llamas().is_missed_by(ValidatingAdmissionPolicy, &policy(&[groups])));
    let mut created = stored.clone();
    created["operations"] = json!(["CREATE"]);
    assert!(
        llamas().is_missed_by(ValidatingAdmissionPolicy, &policy(&[shown.clone(), created])),
        "updates are missed"
    );
    let one = json!({"webhooks": [{"rules": both}]});
    assert!(!llamas().is_missed_by(ValidatingWebhookConfiguration, &one));
    let each = json!({"webhooks": [{"rules": [shown]}, {"rules": [stored]}]});
    assert!(llamas().is_missed_by(ValidatingWebhookConfiguration, &each), "the first one is never called");
}

#[test]
fn what_a_rule_leaves_out_is_not_missed() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut policy = policy(&[rule(&["farm.example.com"], &["llamas"])]);
        change(&mut policy["spec"]["matchConstraints"]);
        llamas().is_missed_by(ValidatingAdmissionPolicy, &policy)
    };
    assert!(changed(&|_| {}));
    assert!(!changed(&|of| of["resourceRules"][0]["operations"] = json!(["CONNECT"])));
    assert!(changed(&|of| of["resourceRules"][0]["operations"] = json!(["CONNECT", "DELETE"])));
    assert!(!changed(&|of| of["resourceRules"][0]["scope"] = "Cluster".into()));
    assert!(changed(&|of| of["resourceRules"][0]["scope"] = "Namespaced".into()));
    // Another version of the resource is looked at as the one that is named, unless only that one is meant.
    assert!(changed(&|of| of["resourceRules"][0]["apiVersions"] = json!(["v1"])));
    assert!(!changed(&|of| {
        of["resourceRules"][0]["apiVersions"] = json!(["v1"]);
        of["matchPolicy"] = "Exact".into();
    }));
    let excluded = rule(&["farm.example.com"], &["*"]);
    assert!(!changed(&|of| of["excludeResourceRules"] = json!([excluded])));
    let mut dolly = excluded.clone();
    dolly["resourceNames"] = json!(["dolly"]);
    assert!(changed(&|of| of["excludeResourceRules"] = json!([dolly])), "the others are missed");
}

#[test]
fn a_quota_that_counts_the_resource_is_missed_and_one_that_counts_the_backing_kind_is_not() {
    for (hard, is_missed) in [
        (json!({"count/llamas.farm.example.com": "5"}), true),
        (json!({"count/llamas.farm.example.com": "5", "pods": "10"}), true),
        (
            json!({"count/llamas.farm.example.com": "5", "count/llamarecords.store.farm.example.com": "5"}),
            false,
        ),
        (json!({"count/llamarecords.store.farm.example.com": "5"}), false),
        (json!({"count/llamas.barn.example.com": "5", "count/llamas": "5", "llamas": "5"}), false),
        (json!({"requests.llamas.farm.example.com": "5", "llamas.farm.example.com": "5"}), false),
        (json!(null), false),
    ] {
        assert_eq!(llamas().is_missed_by(ResourceQuota, &quota(hard.clone())), is_missed, "{hard}");
    }
    let over_config_maps = |hard: Value| {
        let mut served = served(&WRITES);
        (served.backing.api_version, served.backing.plural) = ("v1".into(), "configmaps".into());
        Target::of(&served).unwrap().is_missed_by(ResourceQuota, &quota(hard))
    };
    assert!(over_config_maps(json!({"count/llamas.farm.example.com": "5"})));
    for counted in ["configmaps", "count/configmaps"] {
        assert!(!over_config_maps(json!({"count/llamas.farm.example.com": "5", counted: "5"})), "{counted}");
    }
    let mut of_cluster = served(&WRITES);
    of_cluster.backing.namespaced = false;
    let counts = quota(json!({"count/llamas.farm.example.com": "5"}));
    assert!(!Target::of(&of_cluster).unwrap().is_missed_by(ResourceQuota, &counts), "no quota counts these");
}

#[test]
fn nothing_is_missed_of_what_a_view_does_not_write() {
    assert_eq!(Target::of(&served(&[Verb::Get, Verb::List, Verb::Watch])), None);
    assert_eq!(Target::of(&served(&WRITES).at_path("llamas")), None, "documents are no resource");
    assert_eq!(Target::of(&Served::default()), None);
    let of = |verbs: &[Verb], operations: &[&str]| {
        let mut rule = rule(&["farm.example.com"], &["llamas"]);
        rule["operations"] = json!(operations);
        Target::of(&served(verbs)).unwrap().is_missed_by(ValidatingAdmissionPolicy, &policy(&[rule]))
    };
    assert!(of(&[Verb::DeleteCollection], &["DELETE"]));
    assert!(of(&[Verb::Patch], &["UPDATE"]));
    assert!(!of(&[Verb::Delete, Verb::Patch], &["CREATE"]));
    let counts = quota(json!({"count/llamas.farm.example.com": "5"}));
    assert!(!Target::of(&served(&[Verb::Delete])).unwrap().is_missed_by(ResourceQuota, &counts));
}

#[test]
fn a_message_names_the_first_in_order_however_they_are_found() {
    let named = |name: &str| json!({"metadata": {"name": name}});
    let few = quota(Value::Null);
    let mut found = vec![(ValidatingAdmissionPolicy, named("limit"))];
    let message = |found: &[(AdmissionKind, Value)]| {
        let mut bypassed = Bypassed::default();
        found.iter().for_each(|(kind, object)| bypassed.add(*kind, object));
        llamas().message(&bypassed)
    };
    assert_eq!(message(&[]), None);
    assert_eq!(
        message(&found).unwrap(),
        "ValidatingAdmissionPolicy limit names llamas.farm.example.com, and sees no write: write it for llamarecords.store.farm.example.com"
    );
    found.extend([(ResourceQuota, few), (MutatingWebhookConfiguration, named("fill"))]);
    let three = "ValidatingAdmissionPolicy limit, MutatingWebhookConfiguration fill and ResourceQuota farm/few name llamas.farm.example.com, \
                 and see no write: write them for llamarecords.store.farm.example.com";
    assert_eq!(message(&found).unwrap(), three);
    found
        .extend([(ValidatingWebhookConfiguration, named("b")), (ValidatingWebhookConfiguration, named("a"))]);
    let more = message(&found).unwrap();
    let first = "ValidatingAdmissionPolicy limit, ValidatingWebhookConfiguration a, ValidatingWebhookConfiguration b and 2 more name llamas";
    assert!(more.starts_with(first), "{more}");
    found.reverse();
    assert_eq!(message(&found), Some(more));
}
