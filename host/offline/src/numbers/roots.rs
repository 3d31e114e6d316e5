//! Asks a guest that reconciles about roots with hard numbers, one at a time.

use pintle_core::reasons;
use pintle_engine::{CallError, CallLimits, Guest, Origin};
use pintle_schema::{generate, shape::Shape, structural::Structural};
use pintle_wit::{Failure, Request, Response};
use serde_json::{Number, Value, json};

use super::changed;
use crate::guest::text_of;

/// The most fields of a root that are tried, so that a long list does not take all the time.
const PLACES_MAX: usize = 64;

/// How deep below fields that the root does not have numbers are looked for. A CRD may be recursive in all but name.
const DEPTH_MAX: usize = 12;

/// The parts of a root that nobody writes: they are the host's, or the guest's memory.
const NOT_WRITTEN: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// What ended a call that says nothing about numbers: a root may ask for more than a guest may take.
const LIMITS: [&str; 7] = [
    reasons::DEADLINE,
    reasons::FUEL,
    reasons::MEMORY,
    reasons::TOO_LARGE,
    reasons::TOO_DEEP,
    reasons::TOO_COMPLEX,
    reasons::BEYOND_GRANT,
];

/// What came of the numbers of a root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers {
    /// How many numbers went through the guest.
    pub tried: usize,
    /// How many the guest refused, or did not get to for a limit.
    pub refused: usize,
    /// The first that came out as another.
    pub failure: Option<Failure>,
    /// Why none were tried.
    pub untried: Option<String>,
}

/// Asks about roots like that of `request`, each with another number at one of the fields that take numbers: those that the root has, and
/// those that the schema of its CRD declares. Roots that the CRD refuses are left out.
pub fn tried(guest: &Guest, limits: &CallLimits, request: &Request, schema: Option<&Value>) -> Numbers {
    let structural = match schema.map(Structural::of_crd).transpose() {
        Ok(structural) => structural,
        Err(unsupported) => {
            let untried = Some(format!("the schema of the CRD: {unsupported}"));
            return Numbers { untried, ..Numbers::default() };
        }
    };
    let allows =
        |root: &Value| structural.as_ref().is_none_or(|schema| schema.validate(root, None).is_empty());
    let ask = |request: &Request| guest.reconcile(&text_of(request), limits).map(|answer| answer.response);
    judge(request, schema, allows, ask)
}

/// The same with functions: what the CRD allows, and the guest.
fn judge(
    request: &Request,
    schema: Option<&Value>,
    allows: impl Fn(&Value) -> bool,
    ask: impl Fn(&Request) -> Result<Response, CallError>,
) -> Numbers {
    let mut numbers = Numbers::default();
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let shape = Shape::new(&Value::Null, schema.unwrap_or(&any));
    for Variant { path, number, value } in variants(shape, &request.object, 0, &mut 0) {
        if !allows(&value) {
            continue;
        }
        let asked = Request { object: value, ..request.clone() };
        let path = path.trim_start_matches('.');
        match ask(&asked) {
            Ok(response) => {
                numbers.tried += 1;
                let answer = serde_json::to_value(&response).unwrap_or_default();
                if let Some(changed) = changed(&asked.object, &answer) {
                    let message = format!("asked about a root with {path}: {number}, {changed}");
                    numbers.failure = Some(Failure::terminal(reasons::NUMBER_CHANGED, message));
                    return numbers;
                }
            }
            Err(CallError { origin: Origin::Engine, failure, .. })
                if !LIMITS.contains(&failure.reason.as_str()) =>
            {
                let broke = &failure.message;
                let message = format!("asked about a root with {path}: {number}, the guest broke: {broke}");
                numbers.failure = Some(Failure { message, ..*failure });
                return numbers;
            }
            Err(_) => numbers.refused += 1,
        }
    }
    numbers
}

/// A value with another number.
struct Variant {
    /// Where the number stands: `.spec.ports[0].number`.
    path: String,
    number: Number,
    value: Value,
}

impl Variant {
    /// The same of what the value is a part of.
    fn within(self, step: &str, whole: impl FnOnce(Value) -> Value) -> Self {
        Self { path: format!("{step}{}", self.path), number: self.number, value: whole(self.value) }
    }
}

/// A value with each of the hard numbers that it takes in the place of each of its numbers: those that it has, and those that it could have.
/// What is on the way to a number is made where it is missing.
fn variants(shape: Shape<'_>, value: &Value, depth: usize, places: &mut usize) -> Vec<Variant> {
    if depth > DEPTH_MAX || *places >= PLACES_MAX {
        return Vec::new();
    }
    let mut found = Vec::new();
    match value {
        Value::Object(fields) => {
            let is_written = |name: &str| depth > 0 || !NOT_WRITTEN.contains(&name);
            let nothing = |shape: Shape<'_>| match shape.type_name() {
                Some("object") => json!({}),
                _ => Value::Null,
            };
            let present =
                fields.iter().filter_map(|(name, value)| Some((name, shape.member(name)?, value.clone())));
            let absent = shape.fields().filter(|(name, _)| !fields.contains_key(*name));
            let absent = absent.map(|(name, shape)| (name, shape, nothing(shape)));
            for (name, shape, value) in present.chain(absent).filter(|(name, ..)| is_written(name)) {
                let whole = |value| {
                    let mut fields = fields.clone();
                    fields.insert(name.clone(), value);
                    Value::Object(fields)
                };
                let below = variants(shape, &value, depth + 1, places).into_iter();
                found.extend(below.map(|variant| variant.within(&format!(".{name}"), whole)));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let whole = |value| {
                    let mut items = items.clone();
                    if let Some(item) = items.get_mut(index) {
                        *item = value;
                    }
                    Value::Array(items)
                };
                let below = variants(shape.items(), item, depth + 1, places).into_iter();
                found.extend(below.map(|variant| variant.within(&format!("[{index}]"), whole)));
            }
        }
        _ => {
            let hard = match (shape.type_name(), value) {
                // Of a field that nobody declares the value says what it takes.
                (None, Value::Number(number)) if !shape.is_int_or_string() => {
                    let number = json!({"type": if number.is_f64() { "number" } else { "integer" }});
                    generate::hard(Shape::new(&Value::Null, &number))
                }
                _ => generate::hard(shape),
            };
            *places += usize::from(!hard.is_empty());
            let variant =
                |number: Number| Variant { path: String::new(), value: number.clone().into(), number };
            found.extend(hard.into_iter().map(variant));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use pintle_engine::CallStats;
    use pintle_wit::Child;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "weight": {"type": "number", "minimum": 0},
                "limits": {"type": "object", "properties": {"bytes": {"type": "integer"}, "port": {"type": "integer", "format": "int32"}}},
                "ports": {"type": "array", "items": {"type": "object", "properties": {"number": {"x-kubernetes-int-or-string": true}}}},
                "more": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }},
            "status": {"type": "object", "properties": {"seen": {"type": "integer"}}},
        }})
    }

    fn root() -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "generation": 1},
            "spec": {"weight": 1, "ports": [{"number": "http"}], "more": {"deep": [{"rate": 0.5}]}}, "status": {"seen": 1}})
    }

    /// A guest that has one child with the spec of its root, and with it as text.
    fn child(spec: &Value) -> Response {
        let data = json!({"spec.json": spec.to_string()});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data, "spec": spec});
        Response { children: vec![Child::new("a", object)], ..Response::default() }
    }

    fn judged(ask: impl Fn(&Request) -> Result<Response, CallError>) -> Numbers {
        let structural = Structural::of_crd(&schema()).unwrap();
        let allows = |root: &Value| structural.validate(root, None).is_empty();
        judge(&Request::about(root()), Some(&schema()), allows, ask)
    }

    fn error(origin: Origin, reason: &str) -> CallError {
        let failure = Box::new(Failure::terminal(reason, "must be smaller").at("spec.weight"));
        CallError { failure, origin, stats: CallStats::default() }
    }

    #[test]
    fn each_number_that_a_root_has_or_could_have_is_tried() {
        let schema = schema();
        let all = variants(Shape::new(&Value::Null, &schema), &root(), 0, &mut 0);
        let mut places: Vec<&str> = all.iter().map(|variant| variant.path.as_str()).collect();
        places.dedup();
        assert_eq!(
            places,
            [".spec.more.deep[0].rate", ".spec.ports[0].number", ".spec.weight", ".spec.limits.bytes"],
            "neither what is the host's, nor what is the guest's, nor what takes no hard number"
        );
        let last = all.last().unwrap();
        assert_eq!(last.value["spec"]["limits"], json!({"bytes": last.number}));
    }

    #[test]
    fn a_guest_that_hands_numbers_on_or_refuses_them_is_sound() {
        let honest = judged(|request| Ok(child(&request.object["spec"])));
        assert!(honest.tried > 20 && honest.refused == 0 && honest.failure.is_none(), "{honest:?}");
        let strict = judged(|_| Err(error(Origin::Guest, reasons::INVALID_SPEC)));
        assert!(
            strict.tried == 0 && strict.refused == honest.tried && strict.failure.is_none(),
            "{strict:?}"
        );
        let slow = judged(|_| Err(error(Origin::Engine, reasons::FUEL)));
        assert!(slow.refused == honest.tried && slow.failure.is_none(), "{slow:?}");
    }

    #[test]
    fn a_guest_that_reads_doubles_inexactly_is_told_with_both_numbers() {
        // As serde_json reads without its feature `float_roundtrip`.
        let sloppy = |request: &Request| {
            let mut spec = request.object["spec"].clone();
            let text = spec["weight"].to_string();
            if let Some((whole, fraction)) = text.split_once('.') {
                let digits: f64 = format!("{whole}{fraction}").parse().unwrap();
                spec["weight"] = json!(digits / 10_f64.powi(i32::try_from(fraction.len()).unwrap()));
            }
            Ok(child(&spec))
        };
        let failure = judged(sloppy).failure.unwrap();
        assert_eq!(failure.reason, reasons::NUMBER_CHANGED);
        assert_eq!(
            failure.message,
            "asked about a root with spec.weight: 254.62859566035834, children[0].object.data.spec.json: 254.62859566035831 is not the \
             number 254.62859566035834 that the guest was given"
        );
    }

    #[test]
    fn a_guest_that_takes_integers_for_doubles_or_breaks_on_them_is_found() {
        let doubles = |request: &Request| {
            let bytes = request.object.pointer("/spec/limits/bytes").and_then(Value::as_f64);
            Ok(child(&json!({"bytes": bytes})))
        };
        let failure = judged(doubles).failure.unwrap();
        assert!(failure.message.contains("with spec.limits.bytes: 574393847421449695"), "{failure}");
        let breaks = judged(|_| Err(error(Origin::Engine, reasons::TRAP))).failure.unwrap();
        assert!(breaks.reason == reasons::TRAP && breaks.message.contains("the guest broke"), "{breaks}");
    }
}
