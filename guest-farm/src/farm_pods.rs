//! The view `farmpods`: of each Pod, how many containers it has.

use pintle_guest::{Column, ColumnType, Failure, Kind, NoConfig, Shown, View, ViewManifest};
use serde::{Deserialize, Serialize, de::IgnoredAny};

/// A Pod, as far as the view reads it.
#[derive(Deserialize)]
pub struct Pod {
    spec: PodSpec,
}

#[derive(Deserialize)]
struct PodSpec {
    containers: Vec<IgnoredAny>,
}

/// A Pod as the farm sees it.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FarmPod {
    /// What there is of the Pod.
    pub spec: FarmPodSpec,
}

/// What there is of a Pod.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FarmPodSpec {
    /// How many regular containers the Pod has. Init containers and ephemeral containers do not count.
    pub containers: u32,
}

/// The view.
pub struct FarmPods;

impl View for FarmPods {
    type Backing = Pod;
    type Shown = FarmPod;
    type Config = NoConfig;

    const NAME: &'static str = "farmpods";

    fn manifest() -> ViewManifest {
        let columns = vec![Column::new("Containers", ColumnType::Integer, ".spec.containers")];
        let shown = Shown { columns, ..Shown::new(crate::API_VERSION, "FarmPod", "farmpods") };
        ViewManifest {
            prefix: "farm-".to_owned(),
            ..ViewManifest::new(Kind::new("v1", "Pod"), &["spec.containers"], shown)
        }
    }

    fn show(pod: Pod, _: &NoConfig) -> Result<FarmPod, Failure> {
        let containers = u32::try_from(pod.spec.containers.len()).unwrap_or(u32::MAX);
        Ok(FarmPod { spec: FarmPodSpec { containers } })
    }
}

#[cfg(test)]
mod tests {
    use pintle_guest::{json, serde_json};

    use super::*;

    #[test]
    fn only_regular_containers_count() {
        let pod = json!({"metadata": {"name": "web"}, "spec": {
            "initContainers": [{"name": "a"}],
            "containers": [{"name": "b", "image": "b:1"}, {"name": "c", "image": "c:1"}],
            "ephemeralContainers": [{"name": "d"}],
        }});
        let shown = FarmPods::show(serde_json::from_value(pod).unwrap(), &NoConfig {}).unwrap();
        assert_eq!(shown.spec.containers, 2);
    }
}
