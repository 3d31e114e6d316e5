//! Forms of an answer: tables, metadata, YAML, compression.

use http::{Method, header::ACCEPT_ENCODING};
use serde_json::json;

use super::{case, lists::herd};
use crate::beside::{
    Case,
    side::{create, delete, get, list, llama, llama_with, merge},
};

const AREA: &str = "Tables, metadata and other forms";

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub(super) const CASES: &[Case] = &[
    case!(AREA, "rows are those of a CRD with the same columns", |side| {
        side.ask(list().accept(TABLE)).await?;
        herd(side).await?;
        side.ask(list().accept(TABLE)).await?;
        side.ask(get("llama-1").accept(TABLE)).await?;
        side.ask(list().accept(TABLE).query("limit=2")).await?;
        side.ask(list().accept(TABLE).query("labelSelector=breed%3Dwool")).await?;
        side.ask(get("nobody").accept(TABLE)).await?;
        for include in ["None", "Object", "Metadata", "", "All"] {
            side.ask(list().accept(TABLE).query(&format!("includeObject={include}"))).await?;
        }
        side.ask(list().accept("application/json;as=Table;g=meta.k8s.io;v=v1beta1")).await?;
        side.ask(list().accept("application/json;as=Table;g=meta.k8s.io;v=v2")).await?;
        side.ask(list().accept(&format!("{TABLE},application/json"))).await?;
        side.ask(list().accept("application/json;as=Table;g=meta.k8s.io;v=v2,application/json")).await?;
    }),
    case!(AREA, "writes are answered as rows and as metadata", |side| {
        side.ask(create(llama("dolly")).accept(TABLE)).await?;
        side.ask(merge("dolly", json!({"spec": {"weight": 2}})).accept(TABLE)).await?;
        side.ask(merge("dolly", json!({"metadata": {"labels": {"a": "b"}}})).accept(METADATA)).await?;
        side.ask(create(llama("molly")).accept(METADATA)).await?;
        side.ask(create(llama("holly")).accept(METADATA_LIST)).await?;
        side.ask(delete("molly", json!(null)).accept(METADATA)).await?;
    }),
    case!(AREA, "metadata alone are those of a CRD", |side| {
        herd(side).await?;
        side.must(create(llama_with(
            "held",
            &json!({"finalizers": ["example.com/a"], "labels": {"a": "b"}}),
        )))
        .await?;
        side.ask(list().accept(METADATA_LIST)).await?;
        side.ask(list().accept(METADATA)).await?;
        side.ask(get("held").accept(METADATA)).await?;
        side.ask(get("held").accept(METADATA_LIST)).await?;
        side.ask(list().accept("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1"))
            .await?;
        side.ask(list().accept(METADATA_LIST).query("limit=1")).await?;
        side.must(merge("held", json!({"metadata": {"finalizers": null}}))).await?;
    }),
    case!(AREA, "objects are given in YAML to whoever wants it", |side| {
        side.must(create(llama("dolly"))).await?;
        for accept in [
            "application/yaml",
            "application/yaml, application/json",
            "application/json;q=0.5, application/yaml",
        ] {
            side.yaml(get("dolly").accept(accept)).await?;
        }
        side.yaml(list().accept("application/yaml")).await?;
        side.yaml(get("nobody").accept("application/yaml")).await?;
        side.yaml(create(llama("molly")).accept("application/yaml")).await?;
    }),
    case!(AREA, "what nobody can give is 406", |side| {
        side.must(create(llama("dolly"))).await?;
        for accept in [
            "*/*",
            "application/*",
            "text/html",
            "text/html, */*",
            "application/json;charset=utf-8",
            "application/vnd.kubernetes.protobuf",
            "application/vnd.kubernetes.protobuf, application/json",
            "application/cbor",
            "application/json;as=Nothing;g=meta.k8s.io;v=v1",
            "application/json;as=Table",
            "application/json;stream=watch",
            "",
            ";;;",
        ] {
            side.ask(get("dolly").accept(accept)).await?;
        }
        side.ask(list().accept("text/html")).await?;
    }),
    case!(AREA, "HEAD is a read without its body", |side| {
        side.must(create(llama("dolly"))).await?;
        for ask in [get("dolly"), list(), get("nobody")] {
            let said = side.answer(&ask.with(Method::HEAD)).await?;
            side.note("HEAD", json!([said.code, said.headers, said.body]));
        }
    }),
    case!(AREA, "a long list is compressed for who takes it, and a short one is not", |side| {
        let note = "x".repeat(20_000);
        let many = |name: &str| {
            llama_with(
                name,
                &json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": note}}),
            )
        };
        side.must(create(many("llama-0"))).await?;
        let gzip = |ask: crate::beside::side::Ask| ask.header(ACCEPT_ENCODING, "gzip");
        for ask in [list(), get("llama-0")] {
            let said = side.answer(&gzip(ask)).await?;
            side.note("short", json!([said.code, said.headers.get("content-encoding")]));
        }
        for number in 1..10 {
            side.must(create(many(&format!("llama-{number}")))).await?;
        }
        let said = side.answer(&gzip(list())).await?;
        side.note("long", json!([said.code, said.headers.get("content-encoding")]));
        let said = side.answer(&list()).await?;
        side.note("plain", json!([said.code, said.headers.get("content-encoding")]));
        let said = side.answer(&list().header(ACCEPT_ENCODING, "br, deflate")).await?;
        side.note("another", json!([said.code, said.headers.get("content-encoding")]));
    }),
];
