//! The namespace in memory.

use pintle_guest::{Failure, Need, NeedAnswer, ObjectsNeed, Response, Select, Value, call, json, serde_json};

use crate::ConfigMonitor;

/// A namespace: a ConfigMonitor, what it may ask to see, and what became of its answers.
pub(super) struct World {
    pub(super) root: Value,
    pub(super) objects: Vec<Value>,
}

impl World {
    pub(super) fn new(spec: Value, objects: Vec<Value>) -> Self {
        let root = json!({
            "apiVersion": "magalix.com/v1",
            "kind": "ConfigMonitor",
            "metadata": {"name": "flakapp-config-monitor", "namespace": "shop", "uid": "m", "generation": 1},
            "spec": spec,
        });
        Self { root, objects }
    }

    /// A Deployment of two Pods, and a ConfigMap whose content the guest has observed already.
    pub(super) fn sample() -> Self {
        Self::observing(json!({"configmap": "flaskapp-config", "podSelector": {"app": "frontend"}}))
    }

    pub(super) fn observing(spec: Value) -> Self {
        let mut world = Self::new(spec, vec![config_map("flaskapp-config", "Welcome to Kubernetes!")]);
        world.objects.extend(deployment("frontend", 2));
        let response = world.pass();
        assert!(
            response.patches.is_empty() && response.evictions.is_none(),
            "the first look restarts nothing"
        );
        world
    }

    pub(super) fn edit(&mut self, message: &str) {
        self.objects.retain(|object| object["kind"] != "ConfigMap");
        self.objects.push(config_map("flaskapp-config", message));
    }

    pub(super) fn object(&mut self, kind: &str, name: &str) -> &mut Value {
        let is = |object: &&mut Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter_mut().find(is).unwrap()
    }

    pub(super) fn found(&self, need: &ObjectsNeed) -> Vec<Value> {
        let selected = |object: &&Value| match &need.select {
            Select::Name(name) => object["metadata"]["name"] == name.as_str(),
            Select::Labels(selector) => {
                assert!(selector.match_expressions.is_empty(), "these tests have none");
                selector
                    .match_labels
                    .iter()
                    .all(|(key, value)| object["metadata"]["labels"][key] == value.as_str())
            }
            Select::Field(_) => unreachable!("the guest has no index"),
        };
        let of_kind = |object: &&Value| object["kind"] == need.kind.as_str();
        self.objects.iter().filter(of_kind).filter(selected).cloned().collect()
    }

    pub(super) fn call(&self, needs: &[Need]) -> Result<Response, Failure> {
        let answers: Vec<NeedAnswer> = needs
            .iter()
            .map(|need| {
                let Need::Objects(objects) = need else { unreachable!("the guest asks for no time") };
                NeedAnswer { need: need.clone(), objects: self.found(objects), ..NeedAnswer::default() }
            })
            .collect();
        let request = json!({"apiVersion": "guest.pintle.dev/v1", "object": self.root, "needs": answers});
        let answer = call::reconcile::<ConfigMonitor>(&request.to_string());
        answer
            .map(|text| serde_json::from_str(&text).unwrap())
            .map_err(|text| serde_json::from_str(&text).unwrap())
    }

    /// What the host does: calls until the needs are the ones that were answered, applies the patches, and writes the status.
    pub(super) fn pass(&mut self) -> Response {
        let mut asked = Vec::new();
        for _ in 0..5 {
            let response = self.call(&asked).unwrap();
            if response.needs == asked {
                for patch in &response.patches {
                    let (kind, name) = (&patch.object["kind"], &patch.object["metadata"]["name"]);
                    let live = self.object(kind.as_str().unwrap(), name.as_str().unwrap());
                    let annotations = &patch.object["spec"]["template"]["metadata"]["annotations"];
                    for (key, value) in annotations.as_object().unwrap() {
                        let there = &mut live["spec"]["template"]["metadata"]["annotations"][key];
                        if *there != *value {
                            *there = value.clone();
                            let generation = live["metadata"]["generation"].as_i64().unwrap();
                            live["metadata"]["generation"] = (generation + 1).into();
                        }
                    }
                }
                self.root["status"] = Value::Object(response.status.clone());
                return response;
            }
            asked = response.needs;
        }
        panic!("no fixed point: {asked:?}");
    }

    pub(super) fn failure(spec: Value) -> Failure {
        Self::new(spec, Vec::new()).call(&[]).unwrap_err()
    }
}

pub(super) fn config_map(name: &str, message: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"config.cfg": message}})
}

pub(super) fn pod(name: &str, app: &str, owner: Option<(&str, &str, &str)>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "labels": {"app": app, "tier": "web"}},
    });
    if let Some((version, kind, name)) = owner {
        pod["metadata"]["ownerReferences"] = json!([owned_by(version, kind, name)]);
    }
    pod
}

pub(super) fn owned_by(version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": name, "uid": format!("uid-{name}"), "controller": true})
}

/// A Deployment that has rolled out, its ReplicaSet and its Pods, labelled with its name.
pub(super) fn deployment(name: &str, replicas: usize) -> Vec<Value> {
    let set = format!("{name}-5d9");
    let mut objects = vec![workload("Deployment", name, replicas)];
    objects.push(json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": set, "uid": format!("uid-{set}"), "ownerReferences": [owned_by("apps/v1", "Deployment", name)]},
    }));
    objects.extend(pods(name, replicas, ("apps/v1", "ReplicaSet", &set)));
    objects
}

pub(super) fn workload(kind: &str, name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1},
        "spec": {"replicas": replicas},
        "status": {
            "observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas,
            "availableReplicas": replicas, "desiredNumberScheduled": replicas, "updatedNumberScheduled": replicas,
            "numberAvailable": replicas,
        },
    })
}

pub(super) fn pods(app: &str, count: usize, owner: (&str, &str, &str)) -> Vec<Value> {
    (0..count).map(|index| pod(&format!("{app}-{index}"), app, Some(owner))).collect()
}

/// What is restarted, as `Kind/name`.
pub(super) fn patched(response: &Response) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    response
        .patches
        .iter()
        .map(|patch| format!("{}/{}", text(&patch.object["kind"]), text(&patch.object["metadata"]["name"])))
        .collect()
}

pub(super) fn evicted(response: &Response) -> Vec<&str> {
    response.evictions.iter().flat_map(|evictions| &evictions.pods).map(|pod| pod.name.as_str()).collect()
}

pub(super) fn condition<'a>(response: &'a Response, kind: &str) -> Option<&'a pintle_guest::GuestCondition> {
    response.conditions.iter().find(|condition| condition.r#type == kind)
}
