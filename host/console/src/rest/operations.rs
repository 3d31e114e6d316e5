//! [`Operation`]: what may be done with documents. Requests are answered by this table, and the OpenAPI document of each view is made of it.

use http::Method;
use pintle_core::view::Verb;

use crate::{
    endpoint::MERGE_PATCH,
    query::{Form, Param},
};

/// How many documents a page has when nobody says, and at most.
pub(super) const LIMIT: u64 = 500;
pub(super) const LIMIT_MAX: u64 = 1000;

/// One thing that may be done with documents.
pub(crate) struct Operation {
    /// The method.
    pub(crate) method: Method,
    /// Whether it is about one document, and not about all of them.
    pub(crate) is_one: bool,
    /// What it is for RBAC. A list with `watch=true` is a watch.
    pub(crate) verb: Verb,
    /// What it does.
    pub(crate) summary: &'static str,
    /// The parameters of its query.
    pub(crate) query: &'static [Param],
    /// The form of its body, if it has one.
    pub(crate) takes: Option<&'static str>,
    /// The codes with which it answers when all goes well, and whether a document comes with each.
    pub(crate) answers: &'static [(u16, bool)],
}

const NAMESPACE: Param = Param {
    name: "namespace",
    form: Form::Text,
    summary: "Where the document is: `default` unless it is said. A list without it has those of all namespaces",
};
const DRY_RUN: Param = Param {
    name: "dryRun",
    form: Form::Word(&["All"]),
    summary: "Everything is judged, and nothing is stored",
};
const FIELD_MANAGER: Param =
    Param { name: "fieldManager", form: Form::Text, summary: "Who owns the fields that are written" };
const FIELD_VALIDATION: Param = Param {
    name: "fieldValidation",
    form: Form::Word(&["Ignore", "Warn", "Strict"]),
    summary: "What becomes of fields that there are not",
};
const RESOURCE_VERSION: Param = Param {
    name: "resourceVersion",
    form: Form::Text,
    summary: "Where a watch goes on; the version that a deletion is about",
};
const WRITE: &[Param] = &[NAMESPACE, DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];

/// Everything that may be done.
pub(crate) const OPERATIONS: [Operation; 6] = [
    Operation {
        method: Method::GET,
        is_one: false,
        verb: Verb::List,
        summary: "Documents, a page at a time; with watch=true, changes of documents as server-sent events",
        query: &[
            NAMESPACE,
            Param {
                name: "search",
                form: Form::Text,
                summary: "Only names that have this in them, in any case",
            },
            Param { name: "labelSelector", form: Form::Text, summary: "Only objects with these labels" },
            Param {
                name: "limit",
                form: Form::Number(1, LIMIT_MAX),
                summary: "How many at most; 500 unless it is said",
            },
            Param {
                name: "continue",
                form: Form::Text,
                summary: "Asks for the next page, with what a page says",
            },
            Param { name: "watch", form: Form::Flag, summary: "Changes, and no list" },
            RESOURCE_VERSION,
        ],
        takes: None,
        answers: &[(200, true)],
    },
    Operation {
        method: Method::POST,
        is_one: false,
        verb: Verb::Create,
        summary: "Creates a document",
        query: WRITE,
        takes: Some("application/json"),
        answers: &[(200, true)],
    },
    Operation {
        method: Method::GET,
        is_one: true,
        verb: Verb::Get,
        summary: "A document",
        query: &[NAMESPACE],
        takes: None,
        answers: &[(200, true)],
    },
    Operation {
        method: Method::PUT,
        is_one: true,
        verb: Verb::Update,
        summary: "Replaces a document, of which it names the version",
        query: WRITE,
        takes: Some("application/json"),
        answers: &[(200, true)],
    },
    Operation {
        method: Method::PATCH,
        is_one: true,
        verb: Verb::Patch,
        summary: "Changes fields of a document",
        query: WRITE,
        takes: Some(MERGE_PATCH),
        answers: &[(200, true)],
    },
    Operation {
        method: Method::DELETE,
        is_one: true,
        verb: Verb::Delete,
        summary: "Deletes a document; 202 while a finalizer holds it",
        query: &[
            NAMESPACE,
            DRY_RUN,
            RESOURCE_VERSION,
            Param {
                name: "propagationPolicy",
                form: Form::Word(&["Background", "Foreground", "Orphan"]),
                summary: "What becomes of what the object owns",
            },
        ],
        takes: None,
        answers: &[(204, false), (202, true)],
    },
];

/// What a request does. A HEAD is a GET whose body is left out.
pub(crate) fn of(method: &Method, is_one: bool) -> Option<&'static Operation> {
    const ALL: &[Operation] = &OPERATIONS;
    let method = if method == Method::HEAD { &Method::GET } else { method };
    ALL.iter().find(|operation| operation.method == *method && operation.is_one == is_one)
}

/// Whether some operation has a parameter of this name.
pub(crate) fn is_known(name: &str) -> bool {
    OPERATIONS.iter().flat_map(|operation| operation.query).any(|param| param.name == name)
}
