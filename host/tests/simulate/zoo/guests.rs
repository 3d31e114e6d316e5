//! Guests that are broken.

use serde_json::{Value, json};

use super::{Animal, answers, data};

pub(super) const ANIMALS: &[Animal] = &[
    Animal {
        name: "guest-flip-flops",
        about: "A guest whose answer changes with every call",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                if let Some(data) = data(answer) {
                    data["FLIP"] = (broken.count() % 2).to_string().into();
                }
            })
        },
    },
    Animal {
        name: "guest-counts",
        about: "A guest that remembers how often it was asked",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                if let Some(data) = data(answer) {
                    data["CALLS"] = broken.count().to_string().into();
                }
            })
        },
    },
    Animal {
        name: "guest-random-name",
        about: "A guest whose child has another name each time",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                let name = format!("extra-{}", broken.count());
                if let Some(children) = answer["children"].as_array_mut() {
                    children.push(json!({"id": "extra", "object": {
                        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"},
                    }}));
                }
            })
        },
    },
    Animal {
        name: "guest-map-order",
        about: "A guest that lists what is in a map in an order that differs from call to call",
        scenario: "scenarios/darkroom.yaml",
        seams: || {
            answers(|broken, _, answer| {
                if broken.count() % 3 == 1
                    && let Some(children) = answer["children"].as_array_mut()
                {
                    children.reverse();
                }
            })
        },
    },
    Animal {
        name: "guest-child-order",
        about: "A guest whose answer depends on the order of its children",
        scenario: "scenarios/webserver.yaml",
        seams: || {
            answers(|_, request, answer| {
                let first = &request["children"][0]["metadata"]["name"];
                answer["events"] =
                    json!([{"type": "Normal", "reason": "First", "message": first.to_string()}]);
            })
        },
    },
    Animal {
        name: "guest-keeps-what-it-sees",
        about: "A guest that takes what it observes of a child for what is wanted of it",
        scenario: "scenarios/webserver.yaml",
        seams: || {
            answers(|_, request, answer| {
                let observed = request["children"].as_array().into_iter().flatten();
                let observed = observed
                    .filter(|child| child["kind"] == "Deployment")
                    .map(|child| &child["spec"]["replicas"]);
                for replicas in observed {
                    let children = answer.get_mut("children").and_then(Value::as_array_mut);
                    for child in
                        children.into_iter().flatten().filter(|child| child["object"]["kind"] == "Deployment")
                    {
                        child["object"]["spec"]["replicas"] = replicas.clone();
                    }
                }
            })
        },
    },
    Animal {
        name: "guest-needs-its-status",
        about: "A guest that wants no patch any more once its status has been written",
        scenario: "scenarios/configmonitor.yaml",
        seams: || {
            answers(|_, request, answer| {
                if !request["object"]["status"].is_null()
                    && let Some(patches) = answer["patches"].as_array_mut()
                {
                    patches.clear();
                }
            })
        },
    },
    Animal {
        name: "guest-asks-for-more",
        about: "A guest that asks to see one field more each time it is shown what it asked for",
        scenario: "scenarios/configmonitor.yaml",
        seams: || {
            answers(|_, request, answer| {
                let is_more = |field: &&Value| field.as_str().is_some_and(|field| field.starts_with("more"));
                let shown = request.pointer("/needs/0/need/objects/fields").and_then(Value::as_array);
                let shown = shown.into_iter().flatten().filter(is_more).count();
                let needs = answer.get_mut("needs").and_then(Value::as_array_mut);
                for need in needs.into_iter().flatten() {
                    if let Some(fields) = need.pointer_mut("/objects/fields").and_then(Value::as_array_mut) {
                        fields.extend((0..=shown).map(|number| Value::from(format!("more{number}"))));
                    }
                }
            })
        },
    },
];
