//! The differences that are documented. Each forgives some fields of an answer; the others are compared.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::side::Said;

/// A difference, as docs/views.md has it.
pub(crate) struct Difference {
    /// What is different, as the beginning of a sentence or a sentence.
    pub(crate) name: &'static str,
    /// Why.
    pub(crate) reason: &'static str,
    /// Whether an answer has it: the CRD's answer, and the view's.
    pub(crate) is_in: fn(&Said, &Said) -> bool,
    /// The fields that then may be anything, as JSON pointers.
    pub(crate) forgives: &'static [&'static str],
}

pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "Server-side apply is refused with 415.",
        reason: "A view stores nothing, so it cannot store who manages which field.",
        is_in: |_, view| {
            let is_of_kubectl = view.asked.contains("--server-side")
                && view.code() == 1
                && view.body()["err"].to_string().contains("--server-side=false");
            let is_refused =
                view.asked.contains("apply-patch") && is_refusal(view, 415, "UnsupportedMediaType");
            is_of_kubectl || is_refused
        },
        forgives: &["/code", "/body"],
    },
    Difference {
        name: "The refusal of a form names the forms that a view takes: neither protobuf nor server-side apply.",
        reason: "Both refuse the same forms, strategic merge patches among them.",
        is_in: |_, view| {
            is_refusal(view, 415, "UnsupportedMediaType")
                || (view.code() == 1 && view.asked.contains("--type=strategic"))
        },
        forgives: &["/body/message", "/body/err"],
    },
    Difference {
        name: "A delete is answered with a Status, also where a finalizer holds the object, and so is a delete of many.",
        reason: "A delete calls no guest, so that a broken one holds up neither the garbage collector nor a namespace.",
        is_in: |crd, view| {
            let mut details = json!({"group": "GROUP", "kind": "llamas"});
            if !crd.body()["items"].is_array() {
                details["name"] = crd.body()["metadata"]["name"].clone();
                details["uid"] = crd.body()["metadata"]["uid"].clone();
            }
            let status = json!({
                "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "details": details,
            });
            view.asked.starts_with("DELETE ") && view.code() == 200 && *view.body() == status
        },
        forgives: &["/body"],
    },
    Difference {
        name: "A delete in the foreground is one in the background, with a Warning.",
        reason: "A view has no finalizer by which the garbage collector could hold an object.",
        is_in: |_, view| {
            view.asked.contains("Foreground")
                && text(&view.answer, "/headers/warning").contains("in the background")
        },
        forgives: &["/headers/warning"],
    },
    Difference {
        name: "A delete that is to orphan dependents is refused with 422.",
        reason: "The garbage collector orphans by a finalizer too.",
        is_in: |crd, view| crd.code() == 200 && is_refusal_with(view, 422, "Invalid", "is not orphaned"),
        forgives: &["/code", "/body"],
    },
    Difference {
        name: "A resource of the group that no View serves is 503, and not 404.",
        reason: "A 404 would be proof to the garbage collector that its objects are gone, and a View may only be away.",
        is_in: |crd, view| {
            crd.code() == 404 && is_refusal_with(view, 503, "ServiceUnavailable", "no View serves")
        },
        forgives: &["/code", "/body", "/headers/content-type", "/headers/retry-after"],
    },
    Difference {
        name: "Annotations other than those of kubectl's apply pass only where the View lists them.",
        reason: "The backing kind of Llamas is private (`access: View`), and annotations are read by others.",
        is_in: |crd, view| {
            let is_told = |line: &&Value| line.to_string().contains("the View does not let the annotation");
            let (told, others): (Vec<&Value>, Vec<&Value>) = errors(view).partition(is_told);
            !told.is_empty() && errors(crd).eq(others)
        },
        forgives: &["/body/err"],
    },
    Difference {
        name: "A path that there is not has a Status, and a CRD's has the text `404 page not found`.",
        reason: "Clients read both as 404.",
        is_in: |crd, view| *crd.body() == "404 page not found\n" && is_refusal(view, 404, "NotFound"),
        forgives: &["/body", "/headers/content-type"],
    },
    Difference {
        name: "Refusals have the code, the reason, the object and the causes of a CRD's, and the words may be others.",
        reason: "The API server repeats what its libraries say, and counts some causes twice. A view names the object and the cause also where a CRD does not: of a JSON patch that does not fit, for instance.",
        is_in: |crd, view| {
            let event = |said: &Said| said.body()[0]["object"].clone();
            crd.code() == view.code()
                && (says_as_much(crd.body(), view.body()) || says_as_much(&event(crd), &event(view)))
        },
        forgives: &[
            "/body/message",
            "/body/details",
            // Of a watch that ends with it.
            "/body/0/object/message",
            "/body/0/object/details",
        ],
    },
    Difference {
        name: "Some mistakes of the caller are 400, 406 or 422, and the API server answers 500.",
        reason: "Such are a create that names a version, a version that is no number, and one object as a list.",
        is_in: |crd, view| {
            let is_mistake = [(400, "BadRequest"), (406, "NotAcceptable"), (422, "Invalid")]
                .into_iter()
                .any(|(code, reason)| is_refusal(view, code, reason));
            crd.code() == 500 && is_mistake
        },
        forgives: &["/code", "/body/code", "/body/reason", "/body/message", "/body/details"],
    },
    Difference {
        name: "The paths `/watch/...` are 404.",
        reason: "They are deprecated, and `?watch=1` does the same.",
        is_in: |crd, view| {
            view.asked.contains("/v1alpha/watch/") && crd.code() == 200 && is_refusal(view, 404, "NotFound")
        },
        forgives: &["/code", "/body"],
    },
    Difference {
        name: "OpenAPI of an old hash is the present document, and not a redirect to it.",
        reason: "The API server lets no redirect of an aggregated API through. Clients may not keep it under that hash.",
        is_in: |crd, view| view.asked == "of another hash" && (crd.code(), view.code()) == (301, 200),
        forgives: &["/code"],
    },
    Difference {
        name: "Nothing is written in protobuf or CBOR, also no refusal.",
        reason: "Custom resources are not either, but their refusals are.",
        is_in: |_, view| view.asked.contains("protobuf") && is_refusal(view, 406, "NotAcceptable"),
        forgives: &["/body", "/headers/content-type"],
    },
    Difference {
        name: "Who reads only YAML, or only the `v1beta1` of tables and metadata, is refused with 406.",
        reason: "No client of Kubernetes reads nothing else.",
        is_in: |_, view| {
            let is_old =
                view.asked.contains("v=v1beta1") || view.asked.contains("(accept: application/yaml)");
            is_old && is_refusal(view, 406, "NotAcceptable")
        },
        forgives: &["/code", "/body", "/headers/content-type"],
    },
    Difference {
        name: "Who reads YAML and JSON gets JSON.",
        reason: "Nothing is written in YAML.",
        is_in: |crd, view| {
            let form = |said: &Said| text(&said.answer, "/headers/content-type").to_owned();
            form(crd) == "application/yaml" && form(view) == "application/json"
        },
        forgives: &["/headers/content-type"],
    },
    Difference {
        name: "kubectl ends in the same way and says the same in the end where a refusal has other words.",
        reason: "It prints what it is answered.",
        is_in: |crd, view| {
            view.asked.starts_with("kubectl ")
                && view.code() != 0
                && last_words(crd).is_some_and(|words| last_words(view) == Some(words))
        },
        forgives: &["/body/err"],
    },
];

/// Whether a request is refused with this code and reason, in words.
fn is_refusal(said: &Said, code: u64, reason: &str) -> bool {
    let status = said.body();
    said.code() == code
        && status["status"] == "Failure"
        && status["code"] == code
        && status["reason"] == reason
        && !text(status, "/message").is_empty()
}

/// Whether a request is refused with this code and reason, and with these words in its message.
fn is_refusal_with(said: &Said, code: u64, reason: &str, words: &str) -> bool {
    is_refusal(said, code, reason) && text(said.body(), "/message").contains(words)
}

/// Whether both are failures, and the view's has all the details and causes that the CRD's has.
fn says_as_much(crd: &Value, view: &Value) -> bool {
    let causes = |status: &Value| -> BTreeSet<(String, String)> {
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        causes.map(|cause| (text(cause, "/field").to_owned(), text(cause, "/reason").to_owned())).collect()
    };
    let has = |(key, value): (&String, &Value)| {
        // The API server says the kind or the resource, which depends on where it refuses.
        let is_named = key == "kind" && ["Llama", "llamas"].map(Value::from).contains(&view["details"][key]);
        key == "causes" || view["details"][key] == *value || is_named
    };
    crd["status"] == "Failure"
        && view["status"] == "Failure"
        && !text(view, "/message").is_empty()
        && crd["details"].as_object().into_iter().flatten().all(has)
        && causes(crd).is_subset(&causes(view))
}

/// What kubectl says behind the last colon of its errors.
fn last_words(said: &Said) -> Option<&str> {
    errors(said).last()?.as_str()?.rsplit(": ").next().filter(|words| !words.is_empty())
}

/// The lines of kubectl's errors.
fn errors(said: &Said) -> impl Iterator<Item = &Value> {
    said.body()["err"].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
