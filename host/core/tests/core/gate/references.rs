//! What pod templates may refer to.

use pintle_core::{reasons, reconciler::ReferenceGrant};
use serde_json::{Value, json};

use crate::gate::fixture::{binding, good, judge, judge_for, root, set};

const VOLUME: &str = "/children/0/object/spec/template/spec/volumes/0";

fn referring_to(volume: Value) -> Value {
    let mut answer = good();
    set(&mut answer, VOLUME, volume);
    answer
}

fn secret(name: &str) -> Value {
    referring_to(json!({"name": "a", "secret": {"secretName": name}}))
}

fn verdict(grant: Option<ReferenceGrant>, answer: Value) -> Result<(), Vec<&'static str>> {
    let mut binding = binding();
    binding.grants.pod_templates.references.extend(grant);
    judge(&binding, answer)
        .map(|_| ())
        .map_err(|found| found.into_iter().map(|violation| violation.reason).collect())
}

fn by_name(kind: &str, name: &str) -> Option<ReferenceGrant> {
    Some(ReferenceGrant { kind: kind.into(), name: Some(name.into()), ..ReferenceGrant::default() })
}

fn from_root(path: &str) -> Option<ReferenceGrant> {
    let from_root = Some(path.into());
    Some(ReferenceGrant { kind: "Secret".into(), from_root, ..ReferenceGrant::default() })
}

fn assert_refused(verdict: Result<(), Vec<&'static str>>) {
    assert_eq!(verdict, Err(vec![reasons::REFERENCE_NOT_GRANTED]));
}

#[test]
fn a_reference_that_is_granted_by_name_passes_and_another_does_not() {
    assert_eq!(verdict(by_name("Secret", "shared"), secret("shared")), Ok(()));
    assert_refused(verdict(by_name("Secret", "shared"), secret("shared-2")));
    assert_refused(verdict(by_name("ConfigMap", "shared"), secret("shared")));
    let claim = json!({"name": "a", "persistentVolumeClaim": {"claimName": "disk"}});
    assert_refused(verdict(None, referring_to(claim.clone())));
    assert_eq!(verdict(by_name("PersistentVolumeClaim", "disk"), referring_to(claim)), Ok(()));
}

#[test]
fn a_granted_name_holds_in_the_roots_namespace_or_where_the_root_has_none_in_the_one_that_the_grant_names() {
    let verdict = |scope: Option<&str>, namespace: Option<&str>, grant: Option<ReferenceGrant>| {
        let mut binding = binding();
        for children in &mut binding.grants.children {
            children.namespaces = vec!["stock".into()];
        }
        let namespace = namespace.map(Into::into);
        let grants = grant.map(|grant| ReferenceGrant { namespace, ..grant });
        binding.grants.pod_templates.references.extend(grants);
        let (mut root, mut answer) = (root(), secret("by-root"));
        root["metadata"]["namespace"] = json!(scope);
        for index in 0..5 {
            let namespace = json!(scope.unwrap_or("stock"));
            set(&mut answer, &format!("/children/{index}/object/metadata/namespace"), namespace);
        }
        let found = judge_for(&binding, &root, answer).map(|_| ());
        found.map_err(|found| found.listed().iter().map(|violation| violation.reason).collect::<Vec<_>>())
    };
    for grant in [by_name("Secret", "by-root"), from_root("spec.credentials[].name")] {
        assert_eq!(verdict(Some("stock"), None, grant.clone()), Ok(()));
        assert_eq!(verdict(Some("stock"), Some("stock"), grant.clone()), Ok(()));
        assert_refused(verdict(Some("stock"), Some("shops"), grant.clone()));
        assert_refused(verdict(Some("shops"), Some("stock"), grant.clone()));
        assert_refused(verdict(None, None, grant.clone()));
        assert_refused(verdict(None, Some("shops"), grant.clone()));
        assert_eq!(verdict(None, Some("stock"), grant), Ok(()));
    }
}

#[test]
fn a_reference_that_a_granted_field_of_the_root_names_passes_and_another_does_not() {
    assert_eq!(verdict(from_root("spec.credentials[].name"), secret("by-root")), Ok(()));
    assert_refused(verdict(from_root("spec.credentials[].name"), secret("by-root-2")));
    assert_refused(verdict(from_root("spec.missing"), secret("by-root")));
    assert_refused(verdict(from_root("spec.missing"), secret("")));
}

#[test]
fn a_kind_of_another_group_that_is_called_secret_does_not_make_a_reference_allowed() {
    let mut answer = secret("vault");
    let vault =
        json!({"apiVersion": "vault.example.com/v1", "kind": "Secret", "metadata": {"name": "vault"}});
    set(&mut answer, "/children/-", json!({"id": "vault", "object": vault}));
    assert_refused(verdict(None, answer));
}

#[test]
fn a_child_is_remembered_as_referred_to_and_a_granted_object_is_not() {
    let allowed = judge(&binding(), good()).expect("passes");
    let mut references = allowed.children()[0].references().to_vec();
    references.sort();
    references.dedup();
    assert_eq!(references, [("ConfigMap".into(), "page".into()), ("Secret".into(), "keys".into())]);
    let mut granting = binding();
    granting.grants.pod_templates.references.extend(by_name("Secret", "shared"));
    let allowed = judge(&granting, secret("shared")).expect("passes");
    assert!(!allowed.children()[0].references().iter().any(|(_, name)| name == "shared"));
}

#[test]
fn a_child_in_a_wrong_namespace_is_told_alone_though_others_refer_to_it() {
    for index in 0..5 {
        let mut answer = good();
        set(&mut answer, &format!("/children/{index}/object/metadata/namespace"), json!("other"));
        assert_eq!(verdict(None, answer), Err(vec![reasons::NAMESPACE_FORBIDDEN]), "{index}");
    }
    let mut answer = good();
    let page =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "page", "namespace": "other"}});
    set(&mut answer, "/children/-", json!({"id": "page-elsewhere", "object": page}));
    assert_eq!(verdict(None, answer), Err(vec![reasons::NAMESPACE_FORBIDDEN]), "beside one of the same name");
}

#[test]
fn a_reference_of_a_wrong_type_is_refused() {
    assert_refused(verdict(None, referring_to(json!({"name": "a", "secret": {"secretName": 5}}))));
    assert_refused(verdict(None, referring_to(json!({"name": "a", "configMap": {"name": ["page"]}}))));
}
