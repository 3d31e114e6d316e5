//! Tests of the schema of a guest's config: which schemas are refused, and what is said about a wrong config.

use std::collections::BTreeMap;

use jsonschema::Draft;
use schemars::JsonSchema;
use serde_json::json;

use super::*;
use crate::openapi;

fn manifest(schema: Value) -> Manifest {
    Manifest { name: "g".into(), config_schema: Some(schema), ..Manifest::default() }
}

fn compiled(schema: Value) -> ConfigSchema {
    ConfigSchema::compile(manifest(schema).config_schema.as_ref()).expect("the schema is taken")
}

/// The path at which a schema is refused, and the limit that it hit.
fn refused(schema: Value) -> (String, Option<Excess>) {
    let refused =
        ConfigSchema::compile(manifest(schema).config_schema.as_ref()).expect_err("the schema is refused");
    assert_eq!(refused.failure.reason, reasons::CONFIG_SCHEMA_INVALID);
    assert!(!refused.failure.retry);
    (refused.failure.path.expect("a path"), refused.excess)
}

fn hits(schema: Value) -> Excess {
    refused(schema).1.expect("a limit")
}

#[test]
fn a_config_is_checked_against_the_guests_schema() {
    let schema = compiled(
        json!({"type": "object", "properties": {"suffix": {"type": "string"}}, "additionalProperties": false}),
    );
    let check = |config: Value| schema.check(&config).map_err(|failure| failure.path.unwrap());
    assert_eq!(check(json!({"suffix": "a"})), Ok(()));
    assert_eq!(check(Value::Null), Ok(()));
    assert_eq!(check(json!({"suffix": 1})), Err("spec.config.suffix".into()));
    assert_eq!(check(json!({"sufix": "a"})), Err("spec.config".into()));
    let failure = schema.check(&json!({"sufix": "a"})).unwrap_err();
    assert_eq!(failure.message, r#"the guest knows no field "sufix", only suffix"#);
}

#[test]
fn a_guest_without_a_schema_takes_no_config() {
    let schema = ConfigSchema::compile(None).unwrap();
    assert!(schema.check(&json!({})).is_ok());
    assert_eq!(schema.check(&json!({"a": 1})).unwrap_err().reason, "ConfigInvalid");
}

/// The message for the operator: with no schema at all, and with that of the SDK's NoConfig.
#[test]
fn whoever_gives_a_config_to_a_guest_without_one_is_told_what_to_remove() {
    let none = compiled(json!({"type": "object", "additionalProperties": false}));
    for schema in [ConfigSchema::compile(None).unwrap(), none] {
        let failure = schema.check(&json!({"image": "nginx"})).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "ConfigInvalid: spec.config.image: this guest takes no config; remove it"
        );
    }
}

/// `l0` is all of two `l1`, each of two `l2`, and so on.
fn doubling(levels: usize) -> Value {
    let definitions: serde_json::Map<String, Value> = (0..levels)
        .map(|level| {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            (format!("l{level}"), json!({"allOf": [next, next]}))
        })
        .chain([(format!("l{levels}"), json!({"type": "object"}))])
        .collect();
    json!({"$ref": "#/$defs/l0", "$defs": definitions})
}

#[test]
fn what_grows_by_references_is_refused_before_it_has_grown() {
    assert_eq!(hits(doubling(20)), Excess::Nodes);
    // It reaches the largest depth before it has read much of that.
    assert_eq!(hits(doubling(40)), Excess::Depth);
    compiled(doubling(10));
}

#[test]
fn a_chain_of_references_is_refused_before_it_has_used_up_a_stack() {
    let chain = |links: usize| {
        let definitions: serde_json::Map<String, Value> = (0..links)
            .map(|link| (format!("l{link}"), json!({"$ref": format!("#/$defs/l{}", link + 1)})))
            .chain([(format!("l{links}"), json!({"type": "object"}))])
            .collect();
        json!({"$ref": "#/$defs/l0", "$defs": definitions})
    };
    assert_eq!(hits(chain(25_000)), Excess::Depth);
    compiled(chain(60));
}

#[test]
fn a_recursive_schema_is_refused_by_the_reference_that_closes_the_circle() {
    let list = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/List"}}});
    let (path, _) = refused(json!({"$ref": "#/$defs/List", "$defs": {"List": list}}));
    assert_eq!(path, "configSchema.$ref.properties.next.$ref");
    assert_eq!(refused(json!({"properties": {"a": {"$ref": "#"}}})).0, "configSchema.properties.a.$ref");
    // A definition without a reference to it may be anything.
    compiled(json!({"type": "object", "$defs": {"List": list}}));
}

#[test]
fn there_may_be_ten_thousand_nodes_and_no_more() {
    let of = |fields: usize| {
        let fields: serde_json::Map<String, Value> =
            (0..fields).map(|field| (format!("f{field}"), json!({}))).collect();
        json!({"properties": fields})
    };
    compiled(of(NODES_MAX - 1));
    assert_eq!(hits(of(NODES_MAX)), Excess::Nodes);
    let values: Vec<usize> = (0..NODES_MAX).collect();
    assert_eq!(hits(json!({"enum": values})), Excess::Nodes, "the values of an enum are nodes");
    let long = "x".repeat(BYTES_MAX / 4);
    let all = vec![json!({"$ref": "#/$defs/long"}); 5];
    assert_eq!(hits(json!({"allOf": all, "$defs": {"long": {"const": long}}})), Excess::Bytes);
}

#[test]
fn there_may_be_a_hundred_patterns_of_a_bounded_size() {
    let of = |patterns: usize| {
        let fields: serde_json::Map<String, Value> =
            (0..patterns).map(|n| (format!("f{n}"), json!({"pattern": format!("^a{n}$")}))).collect();
        json!({"properties": fields})
    };
    compiled(of(PATTERNS_MAX));
    assert_eq!(hits(of(PATTERNS_MAX + 1)), Excess::Patterns);
    let keys: serde_json::Map<String, Value> =
        (0..=PATTERNS_MAX).map(|n| (format!("^a{n}$"), json!({}))).collect();
    assert_eq!(hits(json!({"patternProperties": keys})), Excess::Patterns);
    // A pattern that occurs a thousand times counts once.
    compiled(
        json!({"properties": (0..1000).map(|n| (n.to_string(), json!({"pattern": "^a$"}))).collect::<serde_json::Map<_, _>>()}),
    );

    assert_eq!(
        refused(json!({"pattern": "(a{1000}){1000}"})),
        ("configSchema.pattern".into(), Some(Excess::PatternBytes))
    );
    assert_eq!(hits(json!({"pattern": r"\p{L}".repeat(100_000)})), Excess::PatternBytes);
    for ordinary in [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^\w+\s\d{1,3}$",
        r"^(https?):\/\/[^\s]+$",
        r"^sha256:[0-9a-f]{64}$",
        r"^\p{Lu}",
        &"a".repeat(2000),
    ] {
        compiled(json!({"pattern": ordinary}));
    }
    assert_eq!(refused(json!({"pattern": r"(a)\1"})), ("configSchema.pattern".into(), None));
    assert_eq!(refused(json!({"pattern": "(?=a)b"})), ("configSchema.pattern".into(), None));
}

#[test]
fn what_is_not_taken_is_refused_by_name() {
    for (schema, path) in [
        (json!({"$ref": "https://example.com/schema"}), "configSchema.$ref"),
        (json!({"$ref": "#/properties/a", "properties": {"a": {}}}), "configSchema.$ref"),
        (json!({"$ref": "#/$defs/missing"}), "configSchema.$ref"),
        (json!({"$ref": 1}), "configSchema.$ref"),
        (json!({"properties": {"a": {"$dynamicRef": "#a"}}}), "configSchema.properties.a.$dynamicRef"),
        (json!({"$dynamicAnchor": "a"}), "configSchema.$dynamicAnchor"),
        (json!({"allOf": [{"$anchor": "a"}]}), "configSchema.allOf[0].$anchor"),
        (json!({"items": {"$id": "https://example.com"}}), "configSchema.items.$id"),
        (json!({"items": [{}]}), "configSchema.items"),
        (json!({"dependencies": {}}), "configSchema.dependencies"),
        (json!({"type": "text"}), "configSchema.type"),
        (json!({"type": []}), "configSchema.type"),
        (json!({"required": "a"}), "configSchema.required"),
        (json!({"properties": []}), "configSchema.properties"),
        (json!({"properties": {"a": 1}}), "configSchema.properties.a"),
        (json!({"minLength": -1}), "configSchema.minLength"),
        (json!({"multipleOf": 0}), "configSchema.multipleOf"),
        (json!({"anyOf": []}), "configSchema.anyOf"),
        (json!(1), "configSchema"),
    ] {
        assert_eq!(refused(schema.clone()), (path.into(), None), "{schema}");
    }
    compiled(json!({"$id": "https://example.com/config", "x-anything": {"$ref": "#"}, "type": "object"}));
}

#[test]
fn a_config_that_takes_too_many_steps_is_refused() {
    let any: Vec<Value> = (0..3000).map(|n| json!({"items": {"const": n}})).collect();
    let schema = compiled(json!({"properties": {"list": {"not": {"anyOf": any}}}}));
    let list: Vec<usize> = vec![2999; 4000];
    let failure = schema.check(&json!({"list": list})).unwrap_err();
    assert_eq!(failure.reason, reasons::CONFIG_INVALID, "each schema but the last says no at the first item");
    // Each schema checks each item.
    let nested: Vec<Value> = (0..3000).map(|n| json!({"contains": {"const": n}})).collect();
    let schema = compiled(json!({"properties": {"list": {"oneOf": nested}}}));
    let list: Vec<i32> = vec![-1; 4000];
    let failure = schema.check(&json!({"list": list})).unwrap_err();
    assert_eq!(
        (failure.reason.as_str(), failure.path.as_deref()),
        (reasons::CONFIG_TOO_EXPENSIVE, Some("spec.config"))
    );
    let patterns: Vec<Value> =
        (0..100).map(|n| json!({"not": {"pattern": format!("(a|b)*c{n}$")}})).collect();
    let failure = compiled(json!({"properties": {"text": {"allOf": patterns}}}))
        .check(&json!({"text": "ab".repeat(8000)}));
    assert_eq!(failure.unwrap_err().reason, reasons::CONFIG_TOO_EXPENSIVE);
}

#[test]
fn a_message_is_short_whatever_it_is_about() {
    let schema = compiled(
        json!({"properties": {"a": {"enum": vec!["y".repeat(1000); 500]}}, "additionalProperties": false}),
    );
    for config in [json!({"a": "x".repeat(100_000)}), json!({"x".repeat(100_000): 1})] {
        let failure = schema.check(&config).unwrap_err();
        assert!(failure.message.chars().count() < 500, "{}", failure.message.len());
        assert!(failure.path.unwrap().chars().count() < 600);
    }
}

#[test]
fn what_is_wrong_with_an_optional_value_is_said_where_it_is() {
    let inner = json!({"type": "object", "properties": {"port": {"type": "integer"}}});
    let schema = compiled(
        json!({"properties": {"a": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "null"}]}}, "$defs": {"Inner": inner}}),
    );
    let failure = schema.check(&json!({"a": {"port": "http"}})).unwrap_err();
    assert_eq!(failure.path.as_deref(), Some("spec.config.a.port"));
    assert_eq!(failure.message, r#""http" is not a whole number"#);
}

// === Compared with jsonschema ===

/// Asks both. Returns what they say.
fn both(schema: &Value, config: &Value) -> bool {
    let ours = compiled(schema.clone()).check(config).is_ok();
    let theirs = openapi::validate(schema, config, Draft::Draft202012).is_ok();
    assert_eq!(ours, theirs, "schema {schema}\nconfig {config}\nours {ours}, jsonschema {theirs}");
    ours
}

#[derive(JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Config {
    /// A name.
    #[schemars(length(min = 1, max = 10), regex(pattern = r"^[a-z\d]+$"))]
    name: String,
    #[serde(default)]
    replicas: u8,
    #[serde(default)]
    ratio: f32,
    #[serde(default)]
    inner: Option<Inner>,
    #[serde(default)]
    list: Vec<Inner>,
    #[serde(default)]
    by_name: BTreeMap<String, Inner>,
    #[serde(default)]
    by_number: BTreeMap<u32, bool>,
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    action: Option<Action>,
    #[serde(default)]
    pair: Option<(u32, String)>,
    #[serde(default)]
    set: std::collections::BTreeSet<String>,
    #[serde(default)]
    tagged: Option<Tagged>,
    #[serde(default)]
    untagged: Option<Untagged>,
    #[serde(default)]
    flat: Option<Flat>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Inner {
    port: u16,
    host: Option<String>,
    #[serde(default)]
    mode: Mode,
}

#[derive(JsonSchema, Default, serde::Serialize)]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Mode {
    #[default]
    Fast,
    /// It takes its time.
    Slow,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Action {
    Nothing,
    Wait(u32),
    Call { inner: Inner },
}

#[derive(JsonSchema)]
#[serde(tag = "type")]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Tagged {
    One { a: u32 },
    Two { b: Inner },
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Untagged {
    Text(String),
    Inner(Inner),
}

#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Flat {
    own: bool,
    #[serde(flatten)]
    inner: Inner,
}

#[test]
fn what_schemars_makes_means_the_same_as_to_jsonschema() {
    let schema = schemars::schema_for!(Config).to_value();
    assert!(both(&schema, &json!({"name": "a"})));
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(255),
        json!(256),
        json!(1.0),
        json!(1.5),
        json!(65535),
        json!(65536),
        json!(4294967295_u32),
        json!(4294967296_u64),
        json!(""),
        json!("abc"),
        json!("a b"),
        json!("٣"),
        json!("elevenchars"),
        json!("Fast"),
        json!("Slow"),
        json!("fast"),
        json!("Nothing"),
        json!([]),
        json!([1, "a"]),
        json!([1, "a", 2]),
        json!(["a", 1]),
        json!(["a", "b"]),
        json!(["a", "a"]),
        json!([{"port": 1}]),
        json!([{"port": "a"}]),
        json!({}),
        json!({"port": 1}),
        json!({"port": 1, "host": null}),
        json!({"port": 1, "host": 2}),
        json!({"port": 1, "more": 1}),
        json!({"port": 1, "mode": "Slow"}),
        json!({"port": 1, "mode": "slow"}),
        json!({"a": {"port": 1}}),
        json!({"a": {"port": -1}}),
        json!({"1": true}),
        json!({"x": true}),
        json!({"Wait": 1}),
        json!({"Wait": "a"}),
        json!({"Call": {"inner": {"port": 1}}}),
        json!({"Call": {"inner": {}}}),
        json!({"Call": {"inner": {"port": 1}}, "Wait": 1}),
        json!({"type": "One", "a": 1}),
        json!({"type": "Two", "a": 1}),
        json!({"type": "Two", "b": {"port": 1}}),
        json!({"own": true, "port": 1}),
        json!({"own": true}),
        json!({"own": true, "port": 1, "more": 1}),
    ];
    let fields = [
        "name", "replicas", "ratio", "inner", "list", "byName", "byNumber", "mode", "action", "pair", "set",
        "tagged", "untagged", "flat", "unknown",
    ];
    let mut fits = 0;
    for field in fields {
        for value in &values {
            let mut config = json!({"name": "a"});
            config[field] = value.clone();
            fits += usize::from(both(&schema, &config));
        }
    }
    assert!(fits > 60, "{fits} fit");
    for value in &values {
        both(&schema, value);
    }
}

#[test]
fn every_keyword_means_the_same_as_to_jsonschema() {
    let schemas = [
        json!({"type": ["integer", "null"]}),
        json!({"enum": [1, "a", null, [1.0], {"a": 1}]}),
        json!({"const": {"a": [1, 2]}}),
        json!({"minimum": 1, "maximum": 3.5}),
        json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}),
        json!({"multipleOf": 2}),
        json!({"multipleOf": 0.1}),
        json!({"minLength": 2, "maxLength": 3}),
        json!({"pattern": "^a\\d?"}),
        json!({"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}),
        json!({"items": {"type": "integer"}}),
        json!({"contains": {"const": 1}}),
        json!({"contains": {"const": 1}, "minContains": 2}),
        json!({"contains": {"const": 1}, "minContains": 0, "maxContains": 1}),
        json!({"minItems": 2, "maxItems": 2.0}),
        json!({"uniqueItems": true}),
        json!({"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}),
        json!({"patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": false}),
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"minProperties": 1, "maxProperties": 1}),
        json!({"required": ["a"]}),
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"dependentSchemas": {"a": {"required": ["b"]}}}),
        json!({"allOf": [{"type": "integer"}, {"minimum": 2}]}),
        json!({"anyOf": [{"type": "string"}, {"minimum": 2}]}),
        json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}),
        json!({"not": {"type": "string"}}),
        json!({"if": {"type": "object"}, "then": {"required": ["a"]}, "else": {"type": "integer"}}),
        json!({"then": false, "else": false}),
        json!({"unevaluatedProperties": false, "anyOf": [{"properties": {"a": true}}, {"required": ["b"], "properties": {"b": true}}]}),
        json!({"unevaluatedProperties": {"type": "integer"}, "patternProperties": {"^a": true}}),
        json!({"unevaluatedItems": false, "prefixItems": [true], "contains": {"const": 1}}),
        json!({"unevaluatedProperties": false, "if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "else": {"properties": {"b": true}}}),
        json!({"unevaluatedProperties": false, "not": {"properties": {"a": {"const": 2}}, "required": ["a"]}}),
        json!({"unevaluatedProperties": false, "dependentSchemas": {"a": {"properties": {"a": true, "b": true}}}}),
        json!({"$ref": "#/$defs/a~1b%20c", "minimum": 2, "$defs": {"a/b c": {"type": "integer"}}}),
        json!({"$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}}),
        json!({"$ref": "#/$defs/a", "unevaluatedProperties": false, "$defs": {"a": {"properties": {"a": true}}}}),
        json!({"format": "email", "contentEncoding": "base64", "title": "a", "default": 1}),
        json!(true),
        json!(false),
    ];
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(2),
        json!(2.5),
        json!(3),
        json!(3.5),
        json!(4),
        json!(0.3),
        json!(-2),
        json!(""),
        json!("a"),
        json!("a1"),
        json!("ab"),
        json!("äöü"),
        json!("abcd"),
        json!([]),
        json!([1]),
        json!([1.0]),
        json!([1, 1.0]),
        json!([1, "a"]),
        json!([1, "a", 2]),
        json!([2, 1]),
        json!([2, 2]),
        json!(["a"]),
        json!([[1], [1.0]]),
        json!([{"a": 1, "b": 2}, {"b": 2, "a": 1.0}]),
        json!({"a": 1}),
        json!({"a": [1, 2]}),
        json!({"a": "x"}),
        json!({"b": "x"}),
        json!({"a": 1, "b": "x"}),
        json!({"ab": 1}),
        json!({"ab": "x"}),
        json!({"a": 1, "c": 2}),
        json!({"c": 3}),
        json!({"a": 2, "b": 1}),
        json!({"c": "x", "a": 1}),
    ];
    for schema in &schemas {
        for value in &values {
            // The config itself is an object, or null.
            let outer = json!({"properties": {"v": {"$ref": "#/$defs/whole"}}, "$defs": {"whole": schema}});
            if schema.get("$defs").is_some() || schema.get("definitions").is_some() {
                both(schema, value);
            } else {
                both(&outer, &json!({"v": value}));
            }
        }
    }
}

#[test]
fn the_schemas_of_our_own_guests_are_taken() {
    for guest in ["darkroom", "webserver", "configmonitor"] {
        let path = format!("{}/../../guest-{guest}/config.schema.json", env!("CARGO_MANIFEST_DIR"));
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(both(&schema, &json!({})), "{guest}");
        assert!(!both(&schema, &json!({"unknown": 1})), "{guest}");
    }
}
