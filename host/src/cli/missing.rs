//! What is said of an object that does not exist.

use std::fmt::Debug;

use kube::{Api, Resource, ResourceExt, api::ListParams};
use pintle_schema::nearest::did_you_mean;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// What is said where there is no object of a name: the names that are like it, and how to see all of them. Exit code 2.
fn missing<K: Resource<DynamicType = ()>>(name: &str, all: &[K]) -> Problem {
    let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
    let meant = did_you_mean(name, names.iter().map(String::as_str));
    Problem::new(format!("there is no {} {name}{meant}", K::kind(&())))
        .hint(format!("see which there are with: kubectl get {}", K::plural(&())))
}

/// The same, with the names in the cluster. Who may not list them is told without.
pub(super) async fn missing_in<K>(api: &Api<K>, name: &str) -> Problem
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let all = api.list(&ListParams::default()).await;
    missing(name, &all.map(|list| list.items).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use pintle_api::{Reconciler, View};
    use serde_json::json;

    use super::{super::fixture::read, *};

    #[test]
    fn what_does_not_exist_is_told_with_the_names_that_are_like_it() {
        let all = read::<View>(&[json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": "llamas"},
            "spec": {"module": "m", "view": "llamas", "serve": {"aggregated": {}}}
        })]);
        assert_eq!(
            missing("lamas", &all).to_string(),
            "error: there is no View lamas; did you mean llamas?\nhint: see which there are with: kubectl get views\n"
        );
        assert_eq!(
            missing::<Reconciler>("x", &[]).to_string(),
            "error: there is no Reconciler x\nhint: see which there are with: kubectl get reconcilers\n"
        );
    }
}
