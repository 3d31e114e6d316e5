//! The same root in another namespace: a namespace that stands in a guest's code is found before somebody uses a second one.

use pintle_core::{object, reasons};
use pintle_engine::Guest;
use pintle_wit::{Failure, Kind};
use serde_json::Value;

use super::{cluster::CaseRefusal, documents::Document, run, setting::Setting};

/// What is wrong with a guest that answered with these children about a root, if it does otherwise in another namespace. The answer must be
/// allowed there, and have as many children of each kind. Names and texts may follow the namespace, as `web.blog.svc` does.
///
/// What the documents have in the root's namespace moves with it. Nothing is said where they are no setting then, for instance because the
/// Reconciler is for one namespace alone.
pub(crate) fn differs(
    guest: &Guest,
    setting: &Setting,
    mut documents: Vec<Document>,
    mut refusals: Vec<CaseRefusal>,
    children: &[Value],
) -> Option<Failure> {
    let kind = &setting.binding.manifest.reconciles;
    let here = object::namespace(&setting.root)?;
    let there = format!("{here}-2");
    for document in &mut documents {
        rename(&mut document.value, here, &there);
    }
    let root = documents.iter_mut().find(|document| object::kind(&document.value) == *kind)?;
    root.value["metadata"]["namespace"] = there.as_str().into();
    // Others may name it as their owner.
    root.value["metadata"]["uid"] = object::uid(&setting.root).into();
    for refusal in &mut refusals {
        refusal.child.namespace.take_if(|namespace| namespace.as_str() == here);
    }
    let moved = Setting::new(guest, documents, refusals, setting.now).ok()?;
    let answer = run::run(guest, &moved, false);
    if let Some(refused) = answer.refused.into_iter().next() {
        let message =
            format!("in another namespace, {there}, {}: {}", refused.blame.what(), refused.failure.message);
        return Some(Failure { message, ..refused.failure });
    }
    (kinds(children) != kinds(&answer.objects)).then(|| {
        let message =
            format!("in another namespace, {there}, the guest answers with other kinds of children");
        Failure::terminal(reasons::NAMESPACE_DEPENDENT, message)
    })
}

/// Renames a namespace wherever a field says that it is one.
fn rename(value: &mut Value, here: &str, there: &str) {
    if object::kind(value) == Kind::new("v1", "Namespace") && object::name(value) == here {
        value["metadata"]["name"] = there.into();
    }
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let is_namespace = key == "namespace" || key.ends_with("Namespace");
                match field {
                    Value::String(text) if is_namespace && text.as_str() == here => *text = there.to_owned(),
                    field => rename(field, here, there),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, here, there)),
        _ => {}
    }
}

fn kinds(children: &[Value]) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = children.iter().map(object::kind).collect();
    kinds.sort();
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_is_renamed_where_a_field_says_that_it_is_one() {
        let mut value = json!({"metadata": {"name": "default", "namespace": "default"},
            "spec": {"secretNamespace": "default", "class": "default", "refs": [{"namespace": "default"}, {"namespace": "other"}]}});
        rename(&mut value, "default", "default-2");
        assert_eq!(
            value,
            json!({"metadata": {"name": "default", "namespace": "default-2"},
                "spec": {"secretNamespace": "default-2", "class": "default", "refs": [{"namespace": "default-2"}, {"namespace": "other"}]}})
        );
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        rename(&mut namespace, "default", "default-2");
        assert_eq!(namespace["metadata"]["name"], "default-2");
    }
}
