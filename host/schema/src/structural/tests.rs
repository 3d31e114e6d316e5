use serde_json::json;

use super::*;

fn compile(spec: Value) -> Structural {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    Structural::compile(&schema).expect("all of it is evaluated")
}

fn widget() -> Structural {
    compile(json!({"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 5},
        "color": {"type": "string", "enum": ["red", "blue"]},
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 3},
        "share": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 0.5},
        "when": {"type": "string", "format": "date-time"},
        "port": {"x-kubernetes-int-or-string": true},
        "note": {"type": "string", "nullable": true},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 3, "items": {"type": "string"}},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}}}},
        "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}},
    }}))
}

/// The causes as `field: message`, with the reason where it is not plain.
fn told(structural: &Structural, spec: Value, old: Option<Value>) -> Vec<String> {
    let (object, old) = (json!({"spec": spec}), old.map(|old| json!({"spec": old})));
    let causes = structural.validate(&object, old.as_ref());
    causes.into_iter().map(|cause| format!("{} {}: {}", cause.reason, cause.field, cause.message)).collect()
}

#[test]
fn what_the_schema_does_not_have_is_cut_away_and_named() {
    let mut object = json!({
        "apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "odd": 1}, "other": 1,
        "spec": {"size": 1, "nope": 2, "parts": [{"name": "a", "nmae": "b"}],
            "labels": {"any": "thing"}, "free": {"any": {"thing": 1}, "known": {"a": "x", "b": "y"}},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "odd": 1}, "spec": {"a": "x", "b": "y"}, "status": {}}},
    });
    let unknown = widget().prune(&mut object);
    assert_eq!(
        unknown,
        [
            "other",
            "spec.free.known.b",
            "spec.nope",
            "spec.parts[0].nmae",
            "spec.template.spec.b",
            "spec.template.status",
            "spec.template.metadata.odd"
        ]
    );
    assert_eq!(
        object,
        json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "odd": 1}, "spec": {
            "size": 1, "parts": [{"name": "a"}], "labels": {"any": "thing"}, "free": {"any": {"thing": 1}, "known": {"a": "x"}},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"a": "x"}}}})
    );
}

#[test]
fn null_is_kept_where_it_may_be_becomes_the_default_where_there_is_one_and_is_dropped_elsewhere() {
    let structural = compile(json!({"type": "object", "properties": {
        "kept": {"type": "string", "nullable": true, "default": "x"},
        "secret": {"type": "string", "nullable": true, "writeOnly": true},
        "filled": {"type": "string", "default": "x"},
        "gone": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
    }}));
    let nulls = json!({"kept": null, "secret": null, "filled": null, "gone": null, "list": [null], "map": {"a": null}});
    let mut object = json!({"spec": nulls});
    assert_eq!(structural.prune(&mut object), Vec::<String>::new());
    structural.default(&mut object).unwrap();
    let expected = json!({"kept": null, "secret": null, "filled": "x", "list": [null], "map": {}});
    assert_eq!(object["spec"], expected);
    let message = r#"FieldValueTypeInvalid spec.list[0]: Invalid value: "null": spec.list[0] in body must be of type string: "null""#;
    assert_eq!(told(&structural, expected, None), [message]);
}

#[test]
fn defaults_are_set_also_within_defaults_items_and_maps() {
    let structural = Structural::compile(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "default": {"odd": 1}, "properties": {"size": {"type": "integer", "default": 3}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "boolean", "default": true}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"on": {"type": "boolean", "default": true}}}},
    }}))
    .unwrap();
    let mut object = json!({"items": [{}, {"on": false}], "map": {"a": {}}});
    structural.default(&mut object).unwrap();
    let expected =
        json!({"spec": {"size": 3}, "items": [{"on": true}, {"on": false}], "map": {"a": {"on": true}}});
    assert_eq!(object, expected);
}

/// As a control plane of Kubernetes 1.36 answered.
#[test]
fn an_integer_is_one_of_64_bits_and_a_double_is_one_only_up_to_2_53() {
    let numbers = compile(json!({"type": "object", "properties": {
        "any": {"type": "number"}, "whole": {"type": "integer"}, "long": {"type": "integer", "format": "int64"},
        "either": {"x-kubernetes-int-or-string": true},
    }}));
    for number in ["9007199254740993", "9223372036854775807", "-9223372036854775808", "9007199254740991.0"] {
        let number: Value = serde_json::from_str(number).unwrap();
        for field in ["any", "whole", "long", "either"] {
            assert_eq!(
                told(&numbers, json!({field: number}), None),
                Vec::<String>::new(),
                "{field} {number}"
            );
        }
    }
    for number in ["1e16", "9223372036854775808", "-9223372036854775809", "18446744073709551615", "1e22"] {
        let value: Value = serde_json::from_str(number).unwrap();
        assert_eq!(told(&numbers, json!({"any": value}), None), Vec::<String>::new(), "{number}");
        let said = |field: &str| told(&numbers, json!({field: value}), None);
        let type_of = |field: &str, wanted: &str, is: &str| {
            format!(
                r#"FieldValueTypeInvalid spec.{field}: Invalid value: "{is}": spec.{field} in body must be of type {wanted}: "{is}""#
            )
        };
        assert_eq!(said("either"), [type_of("either", "integer,string", "number")], "{number}");
        let checked = |field: &str, of: &str| {
            format!(
                r#"FieldValueInvalid <nil>: Invalid value: "": Checked value must be of type integer {of} in spec.{field}"#
            )
        };
        let whole = [type_of("whole", "integer", "number"), checked("whole", "(default format)")];
        let long = [type_of("long", "int64", "float64"), checked("long", "with format int64")];
        // What fits 64 bits once it is stored is only of the wrong type.
        let causes = if number == "1e16" { 1 } else { 2 };
        assert_eq!(said("whole"), whole[..causes], "{number}");
        assert_eq!(said("long"), long[..causes], "{number}");
    }
}

#[test]
fn what_the_schema_forbids_is_said_in_the_words_of_the_api_server() {
    let widget = widget();
    for (spec, expected) in [
        (json!({}), "FieldValueRequired spec.size: Required value"),
        (
            json!({"size": 9}),
            "FieldValueInvalid spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5",
        ),
        (
            json!({"size": "x"}),
            r#"FieldValueTypeInvalid spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        ),
        (
            json!({"size": 1, "share": 0.0}),
            "FieldValueInvalid spec.share: Invalid value: 0: spec.share in body should be greater than 0",
        ),
        (
            json!({"size": 1, "share": 0.7}),
            "FieldValueInvalid spec.share: Invalid value: 0.7: spec.share in body should be a multiple of 0.5",
        ),
        (
            json!({"size": 1, "color": "green"}),
            r#"FieldValueNotSupported spec.color: Unsupported value: "green": supported values: "red", "blue""#,
        ),
        (
            json!({"size": 1, "name": "X"}),
            r#"FieldValueInvalid spec.name: Invalid value: "X": spec.name in body should match '^[a-z]+$'"#,
        ),
        (
            json!({"size": 1, "name": ""}),
            r#"FieldValueInvalid spec.name: Invalid value: "": spec.name in body should be at least 1 chars long"#,
        ),
        (
            json!({"size": 1, "name": "long"}),
            "FieldValueTooLong spec.name: Too long: may not be more than 3 bytes",
        ),
        (
            json!({"size": 1, "when": "noon"}),
            r#"FieldValueTypeInvalid spec.when: Invalid value: "noon": spec.when in body must be of type date-time: "noon""#,
        ),
        (
            json!({"size": 1, "port": true}),
            r#"FieldValueTypeInvalid spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"size": 1, "tags": ["a", "b", "c", "d"]}),
            "FieldValueTooMany spec.tags: Too many: 4: must have at most 3 items",
        ),
        (
            json!({"size": 1, "tags": ["a", "a", "a"]}),
            r#"FieldValueDuplicate spec.tags[1]: Duplicate value: "a""#,
        ),
        (
            json!({"size": 1, "parts": [{"name": "a"}, {"name": "a", "count": 2}]}),
            r#"FieldValueDuplicate spec.parts[1]: Duplicate value: {"name":"a"}"#,
        ),
        (
            json!({"size": 1, "labels": {"a": "", "b": "", "c": ""}}),
            "FieldValueTooMany spec.labels: Too many: 3: must have at most 2 items",
        ),
        (
            json!({"size": 1, "template": {"apiVersion": "v1"}}),
            "FieldValueRequired spec.template.kind: Required value",
        ),
        (
            json!({"size": 1, "template": {"apiVersion": "", "kind": "A"}}),
            r#"FieldValueInvalid spec.template.apiVersion: Invalid value: "": must not be empty"#,
        ),
    ] {
        assert_eq!(told(&widget, spec.clone(), None), [expected], "{spec}");
    }
    // A step of less than one is none for a whole number.
    let message = "FieldValueInvalid spec.share: Invalid value: 0: factor MultipleOf declared for spec.share must be positive: 0";
    assert_eq!(told(&widget, json!({"size": 1, "share": 1}), None), [message]);
    let fine = json!({"size": 2.0, "share": 1.0, "note": null, "port": "http", "labels": {"a.b/c": "d"}});
    assert_eq!(told(&widget, fine, None), Vec::<String>::new());
}

#[test]
fn several_schemas_of_one_place_all_count() {
    let structural = compile(json!({"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "c": {"type": "integer"}, "d": {"type": "integer"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]},
        "allOf": [{"properties": {"d": {"maximum": 5}}}]}));
    let told = |spec: Value| told(&structural, spec, None);
    assert!(told(json!({"a": 1})).is_empty() && told(json!({"b": 1, "d": 5})).is_empty());
    assert_eq!(
        told(json!({})),
        [
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found none valid"#,
            "FieldValueRequired spec.a: Required value",
        ]
    );
    assert_eq!(
        told(json!({"a": 1, "b": 1})),
        [
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert_eq!(
        told(json!({"a": 1, "c": 1})),
        [r#"FieldValueInvalid <nil>: Invalid value: "": "spec" must not validate the schema (not)"#]
    );
    assert_eq!(
        told(json!({"a": 1, "d": 6})),
        [
            "FieldValueInvalid spec.d: Invalid value: 6: spec.d in body should be less than or equal to 5",
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec" must validate all the schemas (allOf). None validated"#,
        ]
    );
}

/// If a schema were checked twice at each level, this test would not end.
#[test]
fn schemas_within_schemas_are_checked_once_each() {
    for combined in ["anyOf", "oneOf", "allOf"] {
        let node = (0..60).fold(json!({"maximum": 1}), |node, _| json!({combined: [node]}));
        let causes = told(&compile(node), json!(2), None);
        let last = "FieldValueInvalid spec: Invalid value: 2: spec in body should be less than or equal to 1";
        assert!(causes.contains(&last.to_owned()), "{combined}: {causes:?}");
    }
}

#[test]
fn what_has_not_changed_is_not_held_against_an_object() {
    let widget = widget();
    let old = json!({"size": 9, "parts": [{"name": "a", "count": "x"}, {"name": "b"}]});
    assert!(
        told(
            &widget,
            json!({"size": 9, "parts": [{"name": "b"}, {"name": "a", "count": "x"}]}),
            Some(old.clone())
        )
        .is_empty()
    );
    assert_eq!(told(&widget, json!({"size": 8}), Some(old)).len(), 1);
    let twice = json!({"size": 1, "tags": ["a", "a"]});
    assert!(told(&widget, json!({"size": 1, "tags": ["a", "a", "b"]}), Some(twice)).is_empty());
}

fn ruled() -> Structural {
    compile(json!({"type": "object",
        "x-kubernetes-validations": [
            {"rule": "has(self.a) || has(self.b)", "message": "a or b"},
            {"rule": "!has(oldSelf.kind) || self.kind == oldSelf.kind", "message": "kind is immutable", "reason": "FieldValueForbidden", "fieldPath": ".kind"},
        ],
        "properties": {
            "a": {"type": "string"}, "kind": {"type": "string"}, "max": {"type": "integer", "maximum": 9},
            "b": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')", "message": "letters"}]}},
            "map": {"type": "object", "additionalProperties": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 0 && self >= oldSelf"}]}},
            "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object",
                "properties": {"name": {"type": "string"}, "size": {"type": "number", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "messageExpression": "'not below ' + string(oldSelf)"}]}}}},
            "once": {"type": "string", "x-kubernetes-validations": [{"rule": "oldSelf.hasValue() ? self == oldSelf.value() : self == 'first'", "optionalOldSelf": true, "message": "first"}]},
        },
    }))
}

#[test]
fn a_rule_that_is_broken_is_named_by_its_place_and_in_its_own_words() {
    let told = |spec: Value| told(&ruled(), spec, None);
    assert_eq!(told(json!({"a": "x"})), Vec::<String>::new());
    assert_eq!(told(json!({})), ["FieldValueInvalid spec: Invalid value: a or b"]);
    assert_eq!(
        told(json!({"b": ["ok", "N0"]})),
        [r#"FieldValueInvalid spec.b[1]: Invalid value: "N0": letters"#]
    );
    assert_eq!(
        told(json!({"max": 99, "b": "x"})),
        [
            r#"FieldValueTypeInvalid spec.b: Invalid value: "string": spec.b in body must be of type array: "string""#,
            "FieldValueInvalid spec.max: Invalid value: 99: spec.max in body should be less than or equal to 9",
            &format!("FieldValueInvalid <nil>: Invalid value: null: {NOT_CHECKED}"),
        ]
    );
}

#[test]
fn a_rule_about_what_was_before_holds_for_changes_of_the_same_thing() {
    let told = |old: Value, next: Value| told(&ruled(), next, Some(old));
    let of = |kind: &str| json!({"a": "x", "kind": kind});
    assert!(told(of("one"), of("one")).is_empty());
    assert_eq!(told(of("one"), of("two")), ["FieldValueForbidden spec.kind: Forbidden: kind is immutable"]);
    let map = |number: i64| json!({"a": "x", "map": {"k": number}});
    assert_eq!(
        told(map(3), map(2)),
        ["FieldValueInvalid spec.map[k]: Invalid value: 2: failed rule: self > 0 && self >= oldSelf"]
    );
    let parts = |sizes: [f64; 2]| json!({"a": "x", "parts": [{"name": "p", "size": sizes[0]}, {"name": "q", "size": sizes[1]}]});
    let swapped = json!({"a": "x", "parts": [{"name": "q", "size": 2.5}, {"name": "p", "size": 0.5}]});
    assert_eq!(
        told(parts([1.5, 2.5]), swapped),
        ["FieldValueInvalid spec.parts[1].size: Invalid value: 0.5: not below 1.5"]
    );
    let once = |text: &str| json!({"a": "x", "once": text});
    assert_eq!(
        told(json!({"a": "x"}), once("second")),
        [r#"FieldValueInvalid spec.once: Invalid value: "second": first"#]
    );
    assert!(told(json!({"a": "x"}), once("first")).is_empty());
    assert_eq!(
        told(once("first"), once("other")),
        [r#"FieldValueInvalid spec.once: Invalid value: "other": first"#]
    );
}

#[test]
fn a_rule_that_has_no_result_is_an_error_of_the_object() {
    let structural = compile(
        json!({"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "integer"}}, "namespace": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.a['x'] > 0"}, {"rule": "self.__namespace__ == 'n'", "message": "n"}]}),
    );
    assert_eq!(
        told(&structural, json!({"a": {}, "namespace": "n"}), None),
        [
            r#"FieldValueInvalid spec: Invalid value: "object": no such key: x evaluating rule: self.a['x'] > 0"#
        ]
    );
    assert!(told(&structural, json!({"a": {"x": 1}, "namespace": "n"}), None).is_empty());
}

#[test]
fn a_rule_reads_a_field_that_is_named_by_a_word_of_cel_by_this_word_or_escaped() {
    let words = "as break const continue else for function if import let loop namespace package return var void while";
    for word in words.split(' ') {
        let rule = "has(self.WORD) && has(self.__WORD__) && self.WORD == 'x' && self.__WORD__ == 'x'";
        let rule = rule.replace("WORD", word);
        let structural = compile(json!({"type": "object", "properties": {word: {"type": "string"}},
            "x-kubernetes-validations": [{"rule": rule, "message": "both"}]}));
        assert_eq!(told(&structural, json!({word: "x"}), None), Vec::<String>::new(), "{word}");
        assert_eq!(
            told(&structural, json!({}), None),
            ["FieldValueInvalid spec: Invalid value: both"],
            "{word}"
        );
    }
}

#[test]
fn a_rule_that_would_cost_too_much_is_not_evaluated() {
    let structural = compile(
        json!({"type": "object", "properties": {"list": {"type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, self.all(z, x + y + z > 0)))", "message": "sums"}]}}}),
    );
    assert!(told(&structural, json!({"list": [1, 2, 3]}), None).is_empty());
    let long: Vec<u32> = (1..2_000).collect();
    assert_eq!(
        told(&structural, json!({"list": long}), None),
        [
            r#"FieldValueInvalid spec.list: Invalid value: "array": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: sums"#
        ]
    );
}

/// If the steps were not counted, these would take hours, or all memory.
#[test]
fn a_validation_counts_its_steps() {
    let branches: Vec<Value> = vec![json!({"items": {"type": "integer"}}); 3_000];
    let loops = (0..30).fold("true".to_owned(), |rule, level| format!("self.all(x{level}, {rule})"));
    for (schema, list) in [
        (json!({"oneOf": branches}), json!(vec![1; 100_000])),
        (json!({"items": {"enum": ["x".repeat(100_000)]}}), json!(vec![1; 100_000])),
        (json!({"type": "array", "x-kubernetes-validations": [{"rule": loops}]}), json!([])),
    ] {
        let told = told(&compile(schema), list, None);
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("takes more than 10000000 steps"), "{told:?}");
    }
}

/// A short list of empty items would take all memory otherwise, or hours.
#[test]
fn defaults_count_their_steps() {
    let items = |fields: Value| compile(json!({"type": "array", "items": {"properties": fields}}));
    let list = items(json!({"deep": {"default": [vec![0; 1_000]]}}));
    let fields: serde_json::Map<String, Value> =
        (0..5_000).map(|field| (format!("f{field}"), json!({}))).collect();
    for (structural, count, is_done) in
        [(&list, 10, true), (&list, 1_000, false), (&items(fields.into()), 10_000, false)]
    {
        let mut object = json!({"spec": vec![json!({}); count]});
        let why = structural.default(&mut object).err().map(|cause| cause.message).unwrap_or_default();
        assert_eq!(why.is_empty(), is_done);
        assert!(is_done || why.contains("takes more than 10000000 steps"), "{why}");
    }
}

/// If each item were looked for in the whole list, this would take minutes.
#[test]
fn the_items_of_a_long_keyed_list_are_compared_with_what_they_were() {
    let list = compile(
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "integer"}, "v": {"type": "integer", "maximum": 1}}}}),
    );
    let items = |v: u32| (0..50_000).map(|k| json!({"k": k, "v": v})).collect::<Vec<_>>();
    let mut new = items(2);
    new.reverse();
    assert_eq!(told(&list, json!(new), Some(json!(items(2)))), Vec::<String>::new());
    assert_eq!(told(&list, json!(new), Some(json!(items(2)[1..].to_vec()))).len(), 1);
}

#[test]
fn the_schema_of_a_guest_is_held_to_bounds() {
    let fields = |count: usize, node: &dyn Fn(usize) -> Value| {
        let fields: serde_json::Map<String, Value> =
            (0..count).map(|field| (format!("f{field}"), node(field))).collect();
        json!({"properties": fields})
    };
    let rules: Vec<Value> = (0..NODES_MAX / 4).map(|_| json!({"rule": "true"})).collect();
    for (schema, what) in [
        (fields(NODES_MAX, &|_| json!({})), "more than 10000 schemas"),
        (json!({"enum": (0..NODES_MAX).collect::<Vec<_>>()}), "more than 10000 schemas"),
        (fields(PATTERNS_MAX + 1, &|field| json!({"pattern": field.to_string()})), "more than 100 different"),
        (json!({"pattern": r"\w{3}"}), "a pattern of more than 64 KiB when it is compiled in the schema"),
    ] {
        let unsupported = Structural::compile(&schema).unwrap_err();
        assert!(unsupported.is_excess && unsupported.what.starts_with(what), "{what}");
        assert!(Structural::of_crd(&schema).is_ok(), "{what}");
    }
    assert!(Structural::compile(&json!({"x-kubernetes-validations": rules})).is_err());
    Structural::compile(&fields(NODES_MAX - 1, &|_| json!({"pattern": "^a$"}))).unwrap();
}

#[test]
fn a_pattern_of_a_rule_is_no_larger_than_another_and_a_validation_has_few_of_them() {
    let structural =
        compile(json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": [
            {"rule": "self.all(x, x.matches(x) && x.find(x) == x && x.findAll(x) == [x])", "message": "all"},
        ]}));
    let told = |items: Vec<String>| told(&structural, json!(items), None).join(" ");
    assert_eq!(told((0..PATTERNS_MAX).map(|item| item.to_string()).collect()), "");
    assert!(told(vec!["1*".into()]).ends_with("Invalid value: all"));
    let many = told((0..=PATTERNS_MAX).map(|item| item.to_string()).collect());
    assert!(many.contains("there are more than 100 different patterns"), "{many}");
    let large = told(vec![r"\w{3}".into()]);
    assert!(large.contains("is no pattern, or too large"), "{large}");
}

#[test]
fn an_address_is_taken_apart() {
    let structural = compile(json!({"type": "string", "x-kubernetes-validations": [
        {"rule": "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''", "message": "an address"},
    ]}));
    let fits = |text: &str| told(&structural, json!(text), None).is_empty();
    assert!(fits("https://example.com/a?b=c") && fits("http://[::1]:80/"));
    for text in ["example.com", "/path", "ftp://example.com", "", "https://", "not an address"] {
        assert!(!fits(text), "{text}");
    }
}

#[test]
fn what_a_schema_asks_for_and_nobody_looks_at_is_named() {
    let why = |node: Value| {
        let spec = json!({"type": "object", "properties": {"x": node}});
        Structural::compile(&json!({"properties": {"spec": spec}}))
            .err()
            .map(|why| why.to_string())
            .unwrap_or_default()
    };
    for (node, what) in [
        (json!({"oneOf": [{"required": ["a"]}], "uniqueItems": false}), ""),
        (json!({"type": "string", "format": "made-up"}), ""),
        (json!({"type": "array", "uniqueItems": true}), "uniqueItems in spec.x of the schema"),
        (
            json!({"type": "array", "items": {"type": "string", "format": "email"}}),
            "the format email in spec.x[] of the schema",
        ),
        (json!({"type": "string", "pattern": "(?=a)"}), r#"the pattern "(?=a)" in spec.x of the schema"#),
        (json!({"not": {"dependencies": {}}}), "dependencies in spec.x of the schema"),
        (json!({"additionalProperties": [1]}), "a schema that is not an object in spec.x.* of the schema"),
    ] {
        assert_eq!(why(node), what);
    }
    let rule = json!({"type": "string", "x-kubernetes-validations": [{"rule": "ip(self).family() == 4"}]});
    assert!(why(rule).contains("of the rule"));
}
