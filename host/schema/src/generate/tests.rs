use pintle_wit::Kind;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng};
use serde_json::json;

use super::*;
use crate::{builtin, fit::Kinds, structural::Structural};

fn runner(seed: u8) -> TestRunner {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]))
}

fn paths(texts: &[&str]) -> Vec<Vec<String>> {
    texts.iter().map(|text| text.split('.').map(ToOwned::to_owned).collect()).collect()
}

fn made(values: &Values<'_>, seed: u8, count: usize) -> Vec<Value> {
    let mut runner = runner(seed);
    (0..count).map(|_| values.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn objects_of_every_built_in_kind_have_only_what_the_kind_declares() {
    let mut kinds = 0;
    for name in builtin::definitions().as_object().unwrap().keys() {
        let Some((package, kind)) = name.rsplit_once('.') else { continue };
        let Some(version) = package.rsplit('.').next() else { continue };
        let groups = ["", "apps/", "batch/", "policy/", "networking.k8s.io/", "rbac.authorization.k8s.io/"];
        for api_version in groups.map(|group| format!("{group}{version}")) {
            let found = Kind::new(&api_version, kind);
            let Some(schema) = builtin::schema(&found) else { continue };
            let shape = Shape::new(builtin::definitions(), &schema);
            if ["apiVersion", "kind", "metadata"].iter().any(|name| shape.field(name).is_none()) {
                continue;
            }
            kinds += 1;
            for object in made(&Values::of_whole_objects(shape), 1, 30) {
                let mut whole = object;
                whole["apiVersion"] = api_version.as_str().into();
                whole["kind"] = kind.into();
                // A selector of any labels selects no Pods of other ones.
                if let Some(spec) = whole.get_mut("spec").and_then(Value::as_object_mut) {
                    spec.remove("selector");
                }
                assert_eq!(Kinds::default().fit(&whole, ""), Ok(()), "{whole}");
            }
        }
    }
    assert!(kinds >= 15, "only {kinds} kinds were found");
}

fn sample() -> Value {
    json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 9},
            "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "mode": {"type": "string", "enum": ["Fast", "Slow"]},
            "code": {"type": "string", "pattern": "^[a-c]{2,4}$"},
            "note": {"type": "string", "minLength": 1, "maxLength": 40, "nullable": true},
            "ports": {"type": "array", "maxItems": 90, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        }},
        "status": {"type": "object", "properties": {"seen": {"type": "boolean"}}},
    }})
}

#[test]
fn objects_of_a_crd_fit_its_schema_and_reach_its_limits() {
    let schema = sample();
    let values = Values::of_whole_objects(Shape::new(&Value::Null, &schema));
    let (structural, objects) = (Structural::compile(&schema).unwrap(), made(&values, 7, 600));
    for object in &objects {
        assert_eq!(structural.validate(object, None), [], "{object}");
        assert!(structural.prune(&mut object.clone()).is_empty(), "{object}");
    }
    let is_some = |test: &dyn Fn(&Value) -> bool| objects.iter().any(|object| test(&object["spec"]));
    assert!(is_some(&|spec| spec["size"] == 1) && is_some(&|spec| spec["size"] == 9), "the limits");
    assert!(is_some(&|spec| spec.get("weight").is_none()) && is_some(&|spec| spec["weight"].is_f64()));
    assert!(is_some(&|spec| spec["ports"].as_array().is_some_and(|ports| ports.len() > 20)), "a long list");
    assert!(is_some(&|spec| spec["ports"] == json!([])), "an empty list");
    assert!(
        is_some(&|spec| spec["note"].as_str().is_some_and(|note| !note.is_ascii())),
        "letters of any language"
    );
    assert!(is_some(&|spec| spec.get("note") == Some(&Value::Null)), "null where it is allowed");
}

#[test]
fn backing_objects_have_fields_that_nobody_declares_and_shown_objects_have_not() {
    let (schema, wanted) = (sample(), paths(&["spec"]));
    let shape = Shape::new(&Value::Null, &schema);
    let count = |values: &Values<'_>| {
        made(values, 1, 300).iter().filter(|object| object["spec"].get(UNDECLARED).is_some()).count()
    };
    assert!(count(&Values::of_objects(shape, &wanted, &[])) > 5);
    assert_eq!(count(&Values::of_whole_objects(shape)), 0);
}

#[test]
fn equal_seeds_make_equal_objects() {
    let schema = sample();
    let values = Values::of_whole_objects(Shape::new(&Value::Null, &schema));
    assert_eq!(made(&values, 3, 50), made(&values, 3, 50));
    assert_ne!(made(&values, 3, 50), made(&values, 4, 50));
}

#[test]
fn only_fields_that_are_wanted_or_required_are_made() {
    let pod = builtin::schema(&Kind::new("v1", "Pod")).unwrap();
    let wanted = paths(&["spec.nodeName", "status.phase"]);
    let values = Values::of_objects(Shape::new(builtin::definitions(), &pod), &wanted, &["spec", "status"]);
    let objects = made(&values, 1, 100);
    for object in &objects {
        let names = |part: &str| object[part].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert!(names("spec").iter().all(|name| name == "containers" || name == "nodeName"), "{object}");
        assert!(names("status").iter().all(|name| name == "phase"), "{object}");
    }
    assert!(objects.iter().any(|object| object["spec"].get("nodeName").is_none()), "it is optional");
}

#[test]
fn what_breaks_shrinks_to_the_least_that_breaks() {
    let schema = sample();
    let values = Values::of_whole_objects(Shape::new(&Value::Null, &schema));
    let broken = runner(1).run(&values, |object| match object["spec"]["ports"].as_array() {
        Some(ports) if ports.len() > 2 => Err(TestCaseError::fail("more than two")),
        _ => Ok(()),
    });
    let Err(TestError::Fail(_, least)) = broken else { unreachable!("{broken:?}") };
    assert_eq!(least["spec"]["ports"].as_array().map(Vec::len), Some(3), "{least}");
    assert_eq!(least["spec"]["size"], 1, "{least}");
    assert_eq!(least["spec"].as_object().unwrap().len(), 2, "{least}");
}
