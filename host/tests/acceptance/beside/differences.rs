//! The differences that are documented. Each explains answers that would not be equal otherwise, and no more than those.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::side::Said;

/// A difference, as docs/views.md has it.
pub(super) struct Difference {
    /// What is different, as the beginning of a sentence or a sentence.
    pub(super) name: &'static str,
    /// Why.
    pub(super) reason: &'static str,
    /// Makes of the view's answer what the CRD's would be but for this difference. Returns whether there was something to make.
    pub(super) explains: fn(&Said, &mut Said) -> bool,
}

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "Server-side apply and strategic merge patches are refused with 415.",
        reason: "A view stores nothing, so it cannot store who manages which field. A CRD refuses strategic merge patches too.",
        explains: |crd, view| {
            let asks = |form: &str| view.asked.contains(form);
            let is_apply = asks("apply-patch") || asks("--server-side") || asks("strategic");
            let is_refused = view.code == 415
                || view.body.to_string().contains("--server-side=false")
                || (asks("kubectl") && asks("strategic") && view.code == crd.code);
            (is_apply && is_refused).then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "A delete is answered with a Status, also where a finalizer holds the object, and so is a delete of many.",
        reason: "A delete calls no guest, so that a broken one holds up neither the garbage collector nor a namespace.",
        explains: |crd, view| {
            let is_delete = view.asked.starts_with("DELETE ") && (view.code, crd.code) == (200, 200);
            let is_status = view.body["kind"] == "Status" && crd.body["kind"] != "Status";
            (is_delete && is_status).then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "A resource of the group that no View serves is 503, and not 404.",
        reason: "A 404 would be proof to the garbage collector that its objects are gone, and a View may only be away.",
        explains: |crd, view| {
            let is_unknown =
                (view.code, crd.code) == (503, 404) && view.body.to_string().contains("no View serves");
            is_unknown.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "Annotations other than those of kubectl's apply pass only where the View lists them.",
        reason: "The backing kind of Llamas is private (`access: View`), and annotations are read by others.",
        explains: |crd, view| {
            let warning = "the View does not let the annotation";
            let is_told = view.body.to_string().contains(warning)
                || view.headers.get("warning").is_some_and(|told| told.contains(warning));
            is_told.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "Refusals have the code, the reason and the causes of a CRD's, and the words may be others.",
        reason: "The API server repeats what its libraries say, and counts some causes twice. A view names the cause also where a CRD does not: of a JSON patch that does not fit, for instance.",
        explains: |crd, view| {
            let is_path =
                crd.code == 404 && crd.body == "404 page not found\n" && view.body["reason"] == "NotFound";
            let is_same = crd.headers == view.headers && is_same_refusal(&crd.body, &view.body);
            let is_so = crd.code == view.code && (is_path || is_same);
            is_so.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "Some mistakes of the caller are 400, 406 or 422, and the API server answers 500.",
        reason: "Such are a create that names a version, a version that is no number, and one object as a list.",
        explains: |crd, view| {
            let is_so = crd.code == 500 && matches!(view.code, 400 | 406 | 422);
            is_so.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "The paths `/watch/...` are 404.",
        reason: "They are deprecated, and `?watch=1` does the same.",
        explains: |crd, view| {
            let is_so = view.asked.contains("/v1alpha/watch/") && (crd.code, view.code) == (200, 404);
            is_so.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "OpenAPI of an old hash is the present document, and not a redirect to it.",
        reason: "The API server lets no redirect of an aggregated API through. Clients may not keep it under that hash.",
        explains: |crd, view| {
            let is_so = view.asked == "of another hash"
                && (&crd.body, &view.body) == (&json!([301, false]), &json!([200, false]));
            is_so.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "Nothing is written in protobuf or CBOR, also no refusal.",
        reason: "Custom resources are not either, but their refusals are.",
        explains: |crd, view| {
            let is_so = (crd.code, view.code) == (406, 406) && view.asked.contains("protobuf");
            is_so.then(|| view.clone_from(crd)).is_some()
        },
    },
    Difference {
        name: "kubectl ends in the same way and says the same in the end where a refusal has other words.",
        reason: "It prints what it is answered.",
        explains: |crd, view| {
            let is_so = view.asked.starts_with("kubectl ")
                && crd.code == view.code
                && crd.code != 0
                && crd.body["out"] == view.body["out"]
                && last_words(&crd.body) == last_words(&view.body);
            is_so.then(|| view.clone_from(crd)).is_some()
        },
    },
];

/// Whether both are failures of the same sort: a Status, or the ERROR event of a watch that has one. Of the causes, the view has all that the
/// CRD has.
fn is_same_refusal(crd: &Value, view: &Value) -> bool {
    if let (Value::Array(crd), Value::Array(view)) = (crd, view) {
        let is_error = |event: &Value| event["type"] == "ERROR";
        return crd.len() == view.len()
            && crd.iter().zip(view).all(|(crd, view)| match is_error(crd) && is_error(view) {
                true => is_same_refusal(&crd["object"], &view["object"]),
                false => crd == view,
            });
    }
    let causes = |status: &Value| -> BTreeSet<(String, String)> {
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        causes.map(|cause| (text(cause, "/field").to_owned(), text(cause, "/reason").to_owned())).collect()
    };
    crd["status"] == "Failure"
        && view["status"] == "Failure"
        && !text(view, "/message").is_empty()
        && crd["code"] == view["code"]
        && crd["reason"] == view["reason"]
        && causes(crd).is_subset(&causes(view))
}

/// What kubectl says behind the last colon of its errors.
fn last_words(body: &Value) -> Option<&str> {
    body["err"].as_array()?.last()?.as_str()?.rsplit(": ").next().filter(|words| !words.is_empty())
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
