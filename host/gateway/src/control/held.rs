//! The finalizer of a View. While objects of a resource may have finalizers of the garbage collector for the view, the last View of that
//! resource stays: nobody else knows what they are for, and what has one could not be deleted any more.

use std::collections::BTreeMap;

use kube::ResourceExt;
use pintle_api::View;
use pintle_core::{
    ApiError,
    view::{Collected, Served},
};
use pintle_wit::names::FINALIZER_VIEW;

/// What is to be done about the finalizer of a View.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// The View gets it.
    Take,
    /// The View loses it, after these are taken off the objects of the backing kind, if any are.
    Release(Option<Collected>),
}

/// What is to be done about a View. None: nothing. A View that stays and that nobody can write through any more loses it too, since then
/// the garbage collector could not finish its work through the view.
pub(crate) fn due(views: &BTreeMap<String, View>, name: &str) -> Option<Due> {
    let view = views.get(name)?;
    let has = view.finalizers().iter().any(|finalizer| finalizer == FINALIZER_VIEW);
    let served = view.status.as_ref().and_then(|status| status.served.as_ref());
    match (has, served) {
        (false, Some(served)) if !is_deleted(view) && served.has_graph() => Some(Due::Take),
        (true, None) if is_deleted(view) => Some(Due::Release(None)),
        (true, Some(served)) if is_deleted(view) || !served.has_graph() => {
            let is_last = !views.values().any(|other| is_shown_by(other, served));
            Some(Due::Release(Collected::of(served).filter(|_| is_last)))
        }
        _ => None,
    }
}

/// What a View leaves behind that shows another resource, or another backing kind, from now on. It is taken off before that is so: afterwards
/// nobody knows what it was for.
pub(crate) fn left_behind(
    views: &BTreeMap<String, View>,
    name: &str,
    next: Option<&Served>,
) -> Option<Collected> {
    let served = views.get(name)?.status.as_ref()?.served.as_ref()?;
    let is_same = next.is_none_or(|next| is_same_resource(next, served));
    if is_same || views.iter().any(|(other, view)| other != name && is_shown_by(view, served)) {
        return None;
    }
    Collected::of(served).filter(|_| served.has_graph())
}

/// Whether a View that stays shows the same resource, so that the garbage collector can go on through it.
fn is_shown_by(other: &View, served: &Served) -> bool {
    let of_other = other.status.as_ref().and_then(|status| status.served.as_ref());
    !is_deleted(other) && of_other.is_some_and(|other| other.has_graph() && is_same_resource(other, served))
}

fn is_same_resource(one: &Served, other: &Served) -> bool {
    (one.group(), &one.plural, &one.backing) == (other.group(), &other.plural, &other.backing)
}

/// Whether somebody has deleted it.
pub(crate) fn is_deleted(view: &View) -> bool {
    view.metadata.deletion_timestamp.is_some()
}

/// What gives the gateway the rights that a View needs, and makes its APIService: a command to paste.
pub(crate) fn apply_the_rights(view: &View) -> String {
    let modules = Vec::from_iter(view.modules()).join(" ");
    format!("kubectl get view {} -o yaml | pintle rbac {modules} -f - | kubectl apply -f -", view.name_any())
}

/// Why a View that is deleted is still there, for whoever waits: its finalizers could not be taken off. It says the same on every gateway, or
/// each would write the View as soon as another has.
pub(crate) fn why_left(view: &View, collected: &Collected, error: &ApiError) -> String {
    let Collected { backing, finalizers } = collected;
    let kind = backing.kind();
    match error.code {
        403 => format!(
            "the gateway may not take {} off the objects of {kind}, for which it needs get, list and patch: {}; apply the rights: {}",
            finalizers.join(" and "),
            error.message,
            apply_the_rights(view)
        ),
        422 => format!(
            "the API server refuses to take {} off objects of {kind}: look for a policy or webhook for that kind that refuses what is being \
             deleted, and let it pass",
            finalizers.join(" and ")
        ),
        _ => format!(
            "the API server does not answer as it should when {} are taken off the objects of {kind}; it is tried again",
            finalizers.join(" and ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn view(name: &str, finalizers: &[&str], deleted: bool, writes: &[&str]) -> (String, View) {
        let mut object = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"module": "m", "view": "llamas", "serve": {"aggregated": {}}},
            "status": {"served": {
                "apiVersion": "farm.example.com/v1", "kind": "Llama", "plural": "llamas", "singular": "llama", "listKind": "LlamaList",
                "verbs": ["get", "delete"], "schema": {}, "reads": [], "writes": writes,
                "backing": {"apiVersion": "a/v1", "kind": "Record", "plural": "records", "namespaced": true},
            }},
        });
        if deleted {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        (name.to_owned(), serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_view_that_writes_has_the_finalizer_and_one_that_reads_has_not() {
        let of = |finalizers: &[&str], writes: &[&str]| {
            due(&[view("llamas", finalizers, false, writes)].into(), "llamas")
        };
        assert_eq!(of(&[], &["spec"]), Some(Due::Take));
        assert_eq!(of(&[FINALIZER_VIEW], &["spec"]), None);
        assert_eq!(of(&[], &[]), None);
        let released = of(&[FINALIZER_VIEW], &[]);
        assert!(
            matches!(released, Some(Due::Release(Some(_)))),
            "it was written by another module: {released:?}"
        );
    }

    #[test]
    fn a_view_that_is_only_read_does_not_hold_what_another_one_left() {
        let deleted = view("llamas", &[FINALIZER_VIEW], true, &["spec"]);
        let views = [deleted, view("older", &[], false, &[])].into();
        assert!(matches!(due(&views, "llamas"), Some(Due::Release(Some(_)))));
    }

    #[test]
    fn whoever_waits_is_told_the_missing_right_and_the_command() {
        let (_, view) = view("llamas", &[], true, &["spec"]);
        let collected = Collected::of(view.status.as_ref().unwrap().served.as_ref().unwrap()).unwrap();
        let error = |code, message: &str| ApiError { code, message: message.into(), ..ApiError::default() };
        let told = why_left(&view, &collected, &error(403, "records.a is forbidden"));
        for part in [
            "needs get, list and patch",
            "records.a is forbidden",
            "kubectl get view llamas -o yaml | pintle rbac m -f - |",
            "pintle.dev/orphan.",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let one = why_left(&view, &collected, &error(500, "one"));
        assert_eq!(one, why_left(&view, &collected, &error(503, "another")));
    }

    #[test]
    fn a_view_that_shows_another_resource_leaves_no_finalizer_behind() {
        let (name, now) = view("llamas", &[FINALIZER_VIEW], false, &["spec"]);
        let served = now.status.as_ref().unwrap().served.clone().unwrap();
        let views = |others: Vec<(String, View)>| -> BTreeMap<_, _> {
            others.into_iter().chain([(name.clone(), now.clone())]).collect()
        };
        let left = |views: &BTreeMap<String, View>, next: Served| left_behind(views, "llamas", Some(&next));
        let other = Served { plural: "alpacas".into(), ..served.clone() };
        assert_eq!(left(&views(vec![]), other.clone()), Collected::of(&served));
        let mut elsewhere = served.clone();
        elsewhere.backing.plural = "archives".into();
        assert_eq!(left(&views(vec![]), elsewhere), Collected::of(&served));
        assert_eq!(left(&views(vec![]), served.clone()), None, "it is the same");
        assert_eq!(left_behind(&views(vec![]), "llamas", None), None, "it says nothing else");
        let both = views(vec![view("older", &[], false, &["spec"])]);
        assert_eq!(left(&both, other.clone()), None, "another View still shows it");
        let read = [view("llamas", &[], false, &[])].into();
        assert_eq!(left(&read, other), None, "nobody could write through it");
    }

    #[test]
    fn the_last_view_of_a_resource_goes_when_the_collectors_finalizers_are_gone() {
        let of = |others: Vec<(String, View)>| {
            let deleted = view("llamas", &[FINALIZER_VIEW], true, &["spec"]);
            due(&others.into_iter().chain([deleted]).collect(), "llamas")
        };
        let Some(Due::Release(Some(collected))) = of(vec![]) else { panic!("it is the last one") };
        assert_eq!(collected.backing.plural, "records");
        assert_eq!(
            collected.finalizers,
            pintle_core::view::metadata::collectors_of("farm.example.com", "llamas")
        );
        assert_eq!(of(vec![view("older", &[], false, &["spec"])]), Some(Due::Release(None)));
        assert!(matches!(of(vec![view("older", &[], true, &["spec"])]), Some(Due::Release(Some(_)))));
        assert_eq!(due(&[view("llamas", &["a/b"], true, &["spec"])].into(), "llamas"), None);
    }
}
