#![allow(dead_code, reason = "only the schemas of the types matter")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::IpAddr,
    num::NonZeroI32,
    time::Duration,
};

use pintle_wit::schema::structural;
use schemars::JsonSchema;
use serde::Serialize;

use super::*;

#[derive(JsonSchema)]
enum Mode {
    Fast,
    Slow,
}

#[derive(JsonSchema)]
enum Documented {
    /// At once.
    Fast,
    /// With care.
    Slow,
}

#[derive(JsonSchema)]
enum External {
    Size { width: i32 },
    Text(String),
}

#[derive(JsonSchema)]
#[serde(tag = "type")]
enum Internal {
    Plain,
    /// Has a width.
    Sized {
        /// How wide.
        width: i32,
    },
    Scaled {
        width: i32,
        height: i32,
    },
}

#[derive(JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(i32),
    Name(String),
}

#[derive(JsonSchema)]
enum Mixed {
    Nothing,
    Text(String),
}

#[derive(JsonSchema)]
struct Values {
    /// Anything.
    extra: Value,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

#[derive(JsonSchema)]
struct Texts {
    name: String,
    #[serde(flatten)]
    others: BTreeMap<String, String>,
}

#[derive(JsonSchema)]
struct Flattened {
    name: String,
    #[serde(flatten)]
    more: Internal,
}

#[derive(JsonSchema)]
#[schemars(extend("anyOf" = [{"required": ["a"]}, {"required": ["b"]}]))]
struct Either {
    a: Option<i32>,
    b: Option<i32>,
}

#[derive(JsonSchema)]
struct Tree {
    children: Vec<Tree>,
}

#[derive(JsonSchema)]
struct Nested {
    #[serde(default)]
    limits: Limits,
}

#[derive(Default, JsonSchema, Serialize)]
struct Limits {
    memory: Option<String>,
    cpus: i32,
}

#[derive(JsonSchema)]
#[schemars(extend("x-kubernetes-embedded-resource" = true))]
struct Manifest(Value);

/// What schemars says of the times of chrono and jiff.
#[derive(JsonSchema)]
struct Times {
    #[schemars(extend("format" = "date-time"))]
    timestamp: String,
    #[schemars(extend("format" = "zoned-date-time"))]
    zoned: String,
    #[schemars(extend("format" = "duration"))]
    span: String,
}

/// The schema is the one expected, the API server admits it, and takes these values as they are.
fn gives<T: JsonSchema>(expected: Value, values: Vec<Value>) {
    let name = std::any::type_name::<T>();
    let schema = structural::<T>();
    assert_eq!(schema, expected, "{name}");
    assert_eq!(config(&schema), Vec::<Cause>::new(), "{name}");
    let root = json!({"type": "object", "properties": {"spec": schema}});
    let definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": root}}]}});
    assert_eq!(crd(&definition), Vec::<Cause>::new(), "{name}");
    let structural = Structural::of_crd(&root).expect("all of it is evaluated");
    for value in values {
        let object = json!({"spec": value});
        let mut stored = object.clone();
        assert_eq!(structural.prune(&mut stored), Vec::<String>::new(), "{name}");
        structural.default(&mut stored).expect("there are few");
        assert_eq!((&stored, structural.validate(&stored, None)), (&object, Vec::new()), "{name}");
    }
}

fn any() -> Value {
    json!({PRESERVES: true})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn width() -> Value {
    json!({"type": "integer", "format": "int32"})
}

#[test]
fn a_free_form_field_gives_a_schema_that_the_api_server_takes_and_keeps_its_value() {
    let object = json!({"a": {"b": [1, null], "c": null}});

    gives::<Value>(any(), vec![object.clone(), json!("x"), json!([1])]);
    gives::<Option<Value>>(any(), vec![object.clone()]);
    gives::<Vec<Value>>(json!({"type": "array", "items": any()}), vec![json!([object, 1, null])]);
    gives::<BTreeMap<String, Value>>(
        json!({"type": "object", PRESERVES: true}),
        vec![object.clone(), json!({"a": null})],
    );
    gives::<HashMap<String, Vec<Value>>>(
        json!({"type": "object", "additionalProperties": {"type": "array", "items": any()}}),
        vec![json!({"a": [object]})],
    );
    gives::<Values>(
        json!({"type": "object", "required": ["extra"], PRESERVES: true,
            "properties": {"extra": {"description": "Anything.", PRESERVES: true}}}),
        vec![json!({"extra": object, "more": object})],
    );
    gives::<Texts>(
        json!({"type": "object", "required": ["name"], PRESERVES: true, "properties": {"name": text()}}),
        vec![json!({"name": "a", "more": "b"})],
    );
    gives::<Manifest>(
        json!({"type": "object", "x-kubernetes-embedded-resource": true, PRESERVES: true}),
        vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}})],
    );
    gives::<Tree>(
        json!({"type": "object", "required": ["children"], "properties": {"children": {"type": "array", "items": any()}}}),
        vec![json!({"children": [{"children": []}]})],
    );
}

#[test]
fn a_plain_type_gives_a_schema_that_the_api_server_takes() {
    let whole = json!({"type": "integer", "minimum": 0});
    gives::<HashMap<String, u64>>(
        json!({"type": "object", "additionalProperties": whole}),
        vec![json!({"a": 1})],
    );
    gives::<BTreeMap<u32, String>>(
        json!({"type": "object", "additionalProperties": text()}),
        vec![json!({"80": "http"})],
    );
    gives::<BTreeMap<Mode, bool>>(
        json!({"type": "object", "properties": {"Fast": {"type": "boolean"}, "Slow": {"type": "boolean"}}}),
        vec![json!({"Fast": true})],
    );
    gives::<BTreeSet<String>>(
        json!({"type": "array", "items": text(), "x-kubernetes-list-type": "set"}),
        vec![json!(["a", "b"])],
    );
    gives::<(String, i32)>(
        json!({"type": "array", "items": any(), "minItems": 2, "maxItems": 2}),
        vec![json!(["a", 1])],
    );

    gives::<u64>(whole.clone(), vec![json!(i64::MAX)]);
    gives::<i128>(json!({"type": "integer"}), vec![json!(-1)]);
    gives::<i8>(json!({"type": "integer", "minimum": -128, "maximum": 127}), vec![json!(-1)]);
    gives::<NonZeroI32>(json!({"type": "integer", "format": "int32", "not": {"enum": [0]}}), vec![json!(1)]);
    gives::<f64>(json!({"type": "number", "format": "double"}), vec![json!(0.5)]);
    gives::<IpAddr>(text(), vec![json!("::1")]);
    gives::<Duration>(
        json!({"type": "object", "required": ["secs", "nanos"], "properties": {"secs": whole, "nanos": whole}}),
        vec![json!({"secs": 1, "nanos": 0})],
    );
    let described = json!({"type": "object", "required": ["timestamp", "zoned", "span"], "properties": {
        "timestamp": {"type": "string", "format": "date-time"}, "zoned": text(), "span": text()},
        "description": "What schemars says of the times of chrono and jiff."});
    let times = json!({"timestamp": "2026-01-01T00:00:00Z", "zoned": "2026-01-01T00:00:00+01:00[Europe/Berlin]", "span": "PT1H30M"});
    gives::<Times>(described, vec![times]);

    let limits = json!({"type": "object", "required": ["cpus"], "default": {"cpus": 0},
        "properties": {"memory": text(), "cpus": width()}});
    gives::<Nested>(
        json!({"type": "object", "properties": {"limits": limits}}),
        vec![json!({"limits": {"cpus": 1}})],
    );
}

#[test]
fn an_enum_gives_a_schema_that_the_api_server_takes() {
    let modes = json!({"type": "string", "enum": ["Fast", "Slow"]});
    gives::<Mode>(modes.clone(), vec![json!("Fast")]);
    gives::<Option<Mode>>(modes.clone(), vec![json!("Fast")]);
    gives::<Option<Documented>>(modes, vec![json!("Slow")]);
    gives::<Port>(json!({INT_OR_STRING: true}), vec![json!(80), json!("http")]);
    gives::<Mixed>(any(), vec![json!("Nothing"), json!({"Text": "a"})]);
    let size = json!({"type": "object", "required": ["width"], "properties": {"width": width()}});
    gives::<Option<External>>(
        json!({"type": "object", "properties": {"Size": size, "Text": text()}, "oneOf": [{"required": ["Size"]}, {"required": ["Text"]}]}),
        vec![json!({"Size": {"width": 1}}), json!({"Text": "a"})],
    );
    let told = |name: &str| json!({"type": {"enum": [name]}});
    let kinds = json!({"type": "string", "enum": ["Plain", "Sized", "Scaled"]});
    let wide = json!({"type": "integer", "format": "int32", "description": "How wide."});
    let either = json!([
        {"properties": told("Plain"), "required": ["type"]},
        {"properties": told("Sized"), "required": ["type", "width"]},
        {"properties": told("Scaled"), "required": ["type", "width", "height"]},
    ]);
    let sized = json!({"type": "Sized", "width": 1});
    gives::<Internal>(
        json!({"type": "object", "oneOf": either, "properties": {"type": kinds, "width": wide, "height": width()}}),
        vec![json!({"type": "Plain"}), sized],
    );
    gives::<Flattened>(
        json!({"type": "object", "required": ["name"], "oneOf": either,
            "properties": {"name": text(), "type": kinds, "width": wide, "height": width()}}),
        vec![json!({"name": "a", "type": "Scaled", "width": 1, "height": 2})],
    );

    gives::<Either>(
        json!({"type": "object", "properties": {"a": width(), "b": width()}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        vec![json!({"a": 1})],
    );
}

/// An object with a name, and these keywords.
fn named(more: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {"name": text()}});
    for (keyword, value) in more.as_object().into_iter().flatten() {
        schema[keyword.as_str()] = value.clone();
    }
    schema
}

#[test]
fn what_the_api_server_refuses_of_a_schema_is_said_in_its_words() {
    for (schema, expected) in [
        (json!({}), "type: Required value: must not be empty for specified object fields"),
        (
            json!({"type": "array", "items": {}}),
            "items.type: Required value: must not be empty for specified array items",
        ),
        (json!({"type": "array"}), "items: Required value: must be specified"),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            "items: Forbidden: items must be a schema object and not an array",
        ),
        (
            json!({"type": "object", "additionalProperties": {}}),
            "additionalProperties.type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (
            json!({"type": "null"}),
            r#"type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string""#,
        ),
        (
            json!({"type": "object", "patternProperties": {"a": {}}}),
            "patternProperties: Forbidden: patternProperties is not supported",
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
            "uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (
            json!({"type": "string", "anyOf": [{"type": "string"}]}),
            "anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            json!({"type": "object", "oneOf": [{"properties": {"a": {"enum": [1]}}}]}),
            "properties[a]: Required value: because it is defined in configSchema.oneOf[0].properties[a]",
        ),
        (
            json!({"type": "object", "properties": {}, "default": {"a": 1}}),
            r#"default: Invalid value: {"a":1}: must not have unknown fields"#,
        ),
        (
            json!({"type": "array", LIST_TYPE: "map", "items": named(json!({}))}),
            "x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
        (
            json!({"type": "array", LIST_TYPE: "map", LIST_KEYS: ["id"], "items": named(json!({}))}),
            r#"x-kubernetes-list-map-keys: Invalid value: ["id"]: entries must all be names of item properties"#,
        ),
        (
            json!({"type": "array", LIST_TYPE: "map", LIST_KEYS: ["name"], "items": named(json!({}))}),
            "items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            json!({"type": "array", LIST_KEYS: ["name"], "items": named(json!({}))}),
            "x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty",
        ),
        (
            json!({"type": "object", LIST_TYPE: "atomic"}),
            r#"type: Invalid value: "object": must be array if x-kubernetes-list-type is specified"#,
        ),
    ] {
        let said: Vec<String> =
            config(&schema).iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        assert_eq!(said, [format!("configSchema.{expected}")], "{schema}");
    }
    for items in
        [json!({"required": ["name"]}), json!({"properties": {"name": {"type": "string", "default": "a"}}})]
    {
        let keyed = json!({"type": "array", LIST_TYPE: "map", LIST_KEYS: ["name"], "items": named(items)});
        assert_eq!(config(&keyed), Vec::<Cause>::new(), "{keyed}");
    }
    let either = json!({INT_OR_STRING: true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
    assert_eq!(config(&either), Vec::<Cause>::new());
}

#[test]
fn a_path_of_a_column_or_of_the_scale_that_the_api_server_refuses_is_said() {
    let version = json!({
        "schema": {"openAPIV3Schema": {"type": "object"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "string", "jsonPath": "spec.size"}],
        "subresources": {"scale": {"specReplicasPath": ".size", "statusReplicasPath": ".status.size"}},
    });
    let causes = crd(&json!({"spec": {"versions": [version]}}));
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "spec.versions[0].additionalPrinterColumns[0].jsonPath",
            "spec.versions[0].subresources.scale.specReplicasPath"
        ]
    );
}

#[test]
fn a_rule_that_does_not_compile_is_an_error_of_the_crd_at_its_place() {
    let rules = json!([
        {"rule": "self.replicas != 3"},
        {"rule": "self.replcias != 3", "messageExpression": "string(self.sise)"},
        {"rule": "self.replicas =="},
    ]);
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}, RULES: rules});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
    let causes = super::rules(&definition);
    let at = "spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations";
    let fields: Vec<&str> = causes.iter().map(|cause| cause.field.trim_start_matches(at)).collect();
    assert_eq!(fields, ["[1].rule", "[1].messageExpression", "[2].rule"]);
    assert_eq!(
        causes[0].message,
        r#"Invalid value: "self.replcias != 3": compilation failed: undefined field 'replcias'; did you mean replicas?"#
    );
    assert!(
        causes[2].message.contains("compilation failed: ERROR: <input>:1:17: Syntax error"),
        "{causes:?}"
    );
}

#[test]
fn a_name_that_the_api_server_refuses_is_said() {
    let with = |place: &str, value: Value| {
        let mut definition = json!({"metadata": {"name": "things.example.com"}, "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing", "shortNames": ["th"]},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object"}}}],
        }});
        *definition.pointer_mut(place).expect(place) = value;
        crd(&definition).into_iter().map(|cause| cause.field).collect::<Vec<_>>()
    };
    for (place, value, expected) in [
        ("/spec/names/plural", "things", vec![]),
        ("/spec/names/plural", "Things", vec!["spec.names.plural", "metadata.name"]),
        ("/spec/names/singular", "my thing", vec!["spec.names.singular"]),
        ("/spec/names/shortNames/0", "TH", vec!["spec.names.shortNames[0]"]),
        ("/spec/versions/0/name", "1", vec!["spec.versions[0].name"]),
        ("/spec/group", "example", vec!["spec.group", "metadata.name"]),
        ("/metadata/name", "thing.example.com", vec!["metadata.name"]),
    ] {
        assert_eq!(with(place, json!(value)), expected, "{place}: {value}");
    }
}

#[test]
fn the_path_of_a_column_is_closed() {
    for path in [
        ".",
        ".spec.a",
        ".spec.a[0].b",
        r#".status.conditions[?(@.type=="Ready")].reason"#,
        ".a['b.c']",
        ".a[*]",
    ] {
        assert!(is_json_path(path), "{path}");
    }
    for path in [".spec.a[", ".a[?(@.b=='c)]", ".a[?(@.b=='c'].d", ".a]"] {
        assert!(!is_json_path(path), "{path}");
    }
}
