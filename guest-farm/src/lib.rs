//! The farm: a guest that serves two views of `farm.example.com/v1alpha`.
//!
//! A [`FarmPod`](farm_pods) is what there is of a Pod, read-only. A [`Llama`](llamas) is an animal that people keep, stored as a
//! LlamaRecord.

pub mod farm_pods;
pub mod llamas;

use pintle_guest::Views;

pintle_guest::export!(views: Farm);

/// Group and version of what the farm shows.
const API_VERSION: &str = "farm.example.com/v1alpha";

/// The guest.
pub struct Farm;

impl Views for Farm {
    const NAME: &'static str = "farm";
    const VERSION: &'static str = "0.1.0";
    type All = (farm_pods::FarmPods, llamas::Llamas);
}

#[cfg(test)]
mod tests {
    use pintle_guest::{ViewsManifest, call::views, json, serde_json};

    use super::*;

    const GENERATED: &str = include_str!("../views.json");

    #[test]
    fn the_farm_declares_what_people_see() {
        let manifest: ViewsManifest = serde_json::from_str(&views::describe::<Farm>(GENERATED)).unwrap();
        assert_eq!(manifest.check(), Ok(()));
        let [pods, llamas] = manifest.views.as_slice() else { panic!("{manifest:?}") };
        assert_eq!((pods.prefix.as_str(), pods.is_writable()), ("farm-", false));
        assert_eq!((llamas.prefix.as_str(), llamas.is_writable()), ("", true));
        let shown = llamas.shown.as_ref().unwrap();
        assert_eq!(shown.short_names, ["ll"]);
        assert_eq!(shown.list_kind(), "LlamaList");
        assert_ne!(llamas.backing.group(), shown.kind().group(), "records are no part of what is shown");
        let weight = &shown.schema["properties"]["spec"]["properties"]["weight"];
        assert_eq!((&weight["minimum"], &weight["exclusiveMinimum"]), (&json!(0), &json!(true)));
    }

    #[test]
    fn a_pod_is_shown_as_a_host_asks_for_it() {
        let request = json!({
            "apiVersion": "guest.pintle.dev/v1", "view": "farmpods",
            "objects": [{"metadata": {"name": "web"}, "spec": {"containers": [{}]}}],
        });
        let answer = views::show::<Farm>(&request.to_string()).unwrap();
        assert_eq!(
            answer,
            r#"{"apiVersion":"guest.pintle.dev/v1","items":[{"object":{"spec":{"containers":1}}}]}"#
        );
    }
}
