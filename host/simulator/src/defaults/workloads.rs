//! The defaults of the kinds that run Pods or scale what does, but for Deployments and ReplicaSets.

use serde_json::{Value, json};

use super::{claim, default, template};

pub(super) fn cron_job(object: &mut Value) {
    default(object, "spec", json!({}));
    let spec = &mut object["spec"];
    default(spec, "concurrencyPolicy", "Allow".into());
    default(spec, "suspend", false.into());
    default(spec, "successfulJobsHistoryLimit", 3.into());
    default(spec, "failedJobsHistoryLimit", 1.into());
    default(spec, "jobTemplate", json!({}));
    let job = &mut spec["jobTemplate"];
    default(job, "metadata", json!({}));
    default(job, "spec", json!({}));
    template(&mut job["spec"]);
    default(object, "status", json!({}));
}

pub(super) fn daemon_set(object: &mut Value) {
    default(object, "spec", json!({}));
    let spec = &mut object["spec"];
    default(spec, "revisionHistoryLimit", 10.into());
    rolling_update(spec, &[("maxUnavailable", 1), ("maxSurge", 0)]);
    template(spec);
    default(object, "status", json!({}));
    for field in ["currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"] {
        default(&mut object["status"], field, 0.into());
    }
}

pub(super) fn stateful_set(object: &mut Value) {
    default(object, "spec", json!({}));
    let spec = &mut object["spec"];
    default(spec, "replicas", 1.into());
    default(spec, "revisionHistoryLimit", 10.into());
    default(spec, "podManagementPolicy", "OrderedReady".into());
    default(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    for event in ["whenDeleted", "whenScaled"] {
        default(&mut spec["persistentVolumeClaimRetentionPolicy"], event, "Retain".into());
    }
    rolling_update(spec, &[("partition", 0)]);
    template(spec);
    for volume in spec.get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten() {
        default(volume, "apiVersion", "v1".into());
        default(volume, "kind", "PersistentVolumeClaim".into());
        claim(volume);
    }
    default(object, "status", json!({}));
    for field in ["replicas", "availableReplicas"] {
        default(&mut object["status"], field, 0.into());
    }
}

/// Sets how Pods are replaced by newer ones. The limits count only for rolling updates.
fn rolling_update(spec: &mut Value, limits: &[(&str, u32)]) {
    default(spec, "updateStrategy", json!({}));
    let strategy = &mut spec["updateStrategy"];
    default(strategy, "type", "RollingUpdate".into());
    if strategy["type"] == "RollingUpdate" {
        default(strategy, "rollingUpdate", json!({}));
        for (field, limit) in limits {
            default(&mut strategy["rollingUpdate"], field, (*limit).into());
        }
    }
}

pub(super) fn autoscaler(object: &mut Value) {
    default(object, "spec", json!({}));
    default(&mut object["spec"], "minReplicas", 1.into());
    let processor = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
    default(&mut object["spec"], "metrics", json!([{"type": "Resource", "resource": processor}]));
    default(object, "status", json!({}));
    default(&mut object["status"], "desiredReplicas", 0.into());
    // The list is shown also where nothing was measured yet.
    default(&mut object["status"], "currentMetrics", Value::Null);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an API server of Kubernetes 1.36 filled in for the same objects.
    #[test]
    fn the_defaults_are_those_of_the_api_server() {
        let mut set = json!({"spec": {}});
        stateful_set(&mut set);
        assert_eq!(
            set["spec"]["updateStrategy"],
            json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
        );
        assert_eq!(
            set["spec"]["persistentVolumeClaimRetentionPolicy"],
            json!({"whenDeleted": "Retain", "whenScaled": "Retain"})
        );
        assert_eq!(set["status"], json!({"replicas": 0, "availableReplicas": 0}));
        let mut set = json!({"spec": {"updateStrategy": {"type": "OnDelete"}}});
        daemon_set(&mut set);
        assert_eq!(set["spec"]["updateStrategy"], json!({"type": "OnDelete"}));
        let mut job = json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {}}}});
        cron_job(&mut job);
        assert_eq!(job["spec"]["jobTemplate"]["spec"]["template"]["metadata"], json!({}));
        assert_eq!(
            (&job["spec"]["suspend"], &job["spec"]["failedJobsHistoryLimit"]),
            (&false.into(), &1.into())
        );
        let mut scaler = json!({"spec": {"maxReplicas": 3}});
        autoscaler(&mut scaler);
        assert_eq!(scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
        assert_eq!(scaler["status"], json!({"desiredReplicas": 0, "currentMetrics": null}));
    }
}
