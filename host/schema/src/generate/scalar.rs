//! Values that are neither objects nor lists, and the names of fields.

use proptest::{
    collection::{btree_map, vec},
    prelude::{RngExt, any, prop_oneof},
    sample::select,
    strategy::{BoxedStrategy, Just, Strategy},
    string::string_regex,
    test_runner::TestRunner,
};
use serde_json::{Number, Value, json};

use crate::shape::Shape;

/// Letters that somebody who thinks of ASCII, of bytes, or of one line forgets.
const ODD: [char; 14] =
    ['Z', '0', ' ', '-', '.', '/', '"', '\\', '\n', 'ß', 'é', '\u{301}', '日', '\u{1f999}'];
/// The most letters of a text whose schema gives no limit.
const LETTERS: usize = 12;
/// The most bytes that a text is made with where its schema asks for more.
const LETTERS_MAX: usize = 300;

/// Whether something happens that happens once in so many times.
pub(super) fn one_in(runner: &mut TestRunner, times: u32) -> bool {
    runner.rng().random_ratio(1, times)
}

pub(super) fn boolean() -> impl Strategy<Value = Value> {
    any::<bool>().prop_map(Value::from)
}

/// Text by format, pattern and length.
pub(super) fn text(shape: Shape<'_>) -> BoxedStrategy<Value> {
    let keyword = |name| shape.get(name).and_then(Value::as_str);
    let of_format: &[&str] = match keyword("format") {
        Some("date-time") => &[
            "2000-01-01T00:00:00Z",
            "1970-01-01T00:00:00Z",
            "2026-02-28T23:59:59.999999Z",
            "9999-12-31T23:59:59Z",
        ],
        Some("date") => &["2000-01-01", "2024-02-29"],
        Some("byte") => &["", "aGVsbG8=", "AAECAw=="],
        Some("duration") => &["0s", "1h30m", "500ms"],
        Some("uuid") => &["6f1c1e5e-0d3c-4c11-9df1-3f3f0f3c2b1a"],
        Some("ipv4") => &["10.0.0.1", "255.255.255.255"],
        Some("ipv6") => &["::1", "2001:db8::1"],
        Some("ip") => &["10.0.0.1", "::1"],
        Some("cidr") => &["10.0.0.0/8", "2001:db8::/32"],
        Some("hostname") => &["a", "web.example.com"],
        Some("uri") => &["https://example.com/a?b=c"],
        Some("email") => &["a@example.com"],
        _ => &[],
    };
    if !of_format.is_empty() {
        return select(of_format).prop_map(Value::from).boxed();
    }
    let limit =
        |name| shape.get(name).and_then(Value::as_u64).and_then(|letters| usize::try_from(letters).ok());
    // A pattern may be found anywhere in a text, and is therefore one that is found from its beginning to its end.
    let pattern = keyword("pattern").map(|text| text.trim_start_matches('^').trim_end_matches('$'));
    if let Some(of_pattern) = pattern.and_then(|pattern| string_regex(pattern).ok()) {
        return of_pattern.prop_map(Value::from).boxed();
    }
    let least = limit("minLength").unwrap_or(0).min(LETTERS_MAX);
    let most = limit("maxLength").unwrap_or(LETTERS.max(least)).min(LETTERS_MAX).max(least);
    let letter = prop_oneof![4 => proptest::char::range('a', 'z'), 1 => select(&ODD[..])];
    vec(letter, least..=most).prop_map(|letters| letters.into_iter().collect::<String>().into()).boxed()
}

/// Text, a number or a list: what stands where a schema says nothing.
pub(super) fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("text")),
        any::<bool>().prop_map(Value::from),
        (-1_i64..=1000).prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{"name": "a"}])),
        Just(json!({"a": {"b": 1}})),
    ]
}

pub(super) fn int_or_string() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0_i64..=65_535).prop_map(Value::from),
        select(&["http", "25%", "100%", "0"][..]).prop_map(Value::from)
    ]
}

pub(super) fn quantity() -> impl Strategy<Value = Value> {
    select(&["0", "1", "100m", "1.5", "1Gi", "128974848", "12e6", "9223372036854775807"][..])
        .prop_map(Value::from)
}

/// A number that is a limit of a schema, and whether it is allowed itself. The API server takes `exclusiveMinimum: true`; JSON Schema has
/// a number there.
fn limit(shape: Shape<'_>, keyword: &str, exclusive: &str) -> Option<(f64, bool)> {
    let own = shape.get(keyword).and_then(Value::as_f64);
    match shape.get(exclusive) {
        Some(Value::Bool(is_exclusive)) => own.map(|limit| (limit, !is_exclusive)),
        Some(Value::Number(limit)) => limit.as_f64().map(|limit| (limit, false)),
        _ => own.map(|limit| (limit, true)),
    }
}

/// Integers that no double is. What becomes of them where a program takes them for doubles, or for shorter ones, is neither what rounding to
/// digits or to binary units makes of them nor a small step away.
const HARD_INTEGERS: [i64; 5] = [
    574_393_847_421_449_695,
    -574_393_847_421_449_695,
    278_315_789_095_531_247,
    -278_315_789_095_531_247,
    i64::MAX,
];

/// Doubles of 17 digits, all of which matter: whoever reads or writes them with less care gets a neighbour.
const HARD_DOUBLES: [f64; 9] = [
    254.628_595_660_358_34,
    0.001_189_152_906_466_227_3,
    0.241_232_152_639_523_58,
    2.336_886_415_328_447_4,
    28.912_790_706_978_086,
    1_458.347_457_935_711_9,
    47_921.708_529_163_836,
    -2.336_886_415_328_447_4,
    -1_458.347_457_935_711_9,
];

/// Whether a number is one of [`hard`].
pub fn is_hard(number: &Number) -> bool {
    match number.as_i64() {
        Some(integer) => HARD_INTEGERS.contains(&integer),
        None => number.as_f64().is_some_and(|double| HARD_DOUBLES.contains(&double)),
    }
}

/// Numbers that a place takes and that get lost where a program is careless with numbers.
pub fn hard(shape: Shape<'_>) -> Vec<Number> {
    let (has_integers, has_doubles) = match shape.type_name() {
        _ if shape.is_int_or_string() => (true, false),
        Some("integer") => (true, false),
        Some("number") => (true, true),
        _ => (false, false),
    };
    let integers = HARD_INTEGERS.into_iter().filter(|_| has_integers).map(Number::from);
    let doubles = HARD_DOUBLES.into_iter().filter(|_| has_doubles).filter_map(Number::from_f64);
    let is_allowed = |number: &Number| {
        let is_within = |number: f64| {
            let least = limit(shape, "minimum", "exclusiveMinimum");
            let most = limit(shape, "maximum", "exclusiveMaximum");
            least.is_none_or(|(least, _)| least < number) && most.is_none_or(|(most, _)| number < most)
        };
        let is_short =
            ["int32", "float"].map(Value::from).iter().any(|format| shape.get("format") == Some(format));
        !is_short && shape.get("enum").is_none() && number.as_f64().is_some_and(is_within)
    };
    integers.chain(doubles).filter(is_allowed).collect()
}

/// Whole numbers: small ones, those at the limits of the schema and of its format, and any between.
pub(super) fn integer(shape: Shape<'_>) -> BoxedStrategy<Value> {
    let of_format = match shape.get("format").and_then(Value::as_str) {
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let least = limit(shape, "minimum", "exclusiveMinimum")
        .map_or(i64::MIN, |(limit, is_allowed)| (limit.ceil() as i64).saturating_add(i64::from(!is_allowed)));
    let most = limit(shape, "maximum", "exclusiveMaximum").map_or(i64::MAX, |(limit, is_allowed)| {
        (limit.floor() as i64).saturating_sub(i64::from(!is_allowed))
    });
    let least = least.max(of_format.0);
    let most = most.min(of_format.1).max(least);
    let small = least.max(0).min(most)..=least.max(0).saturating_add(10).min(most);
    let edges: Vec<i64> =
        [0, 1, -1, (1 << 53) + 1, least, least.saturating_add(1), most.saturating_sub(1), most]
            .into_iter()
            .filter(|edge| (least..=most).contains(edge))
            .collect();
    let edges: Vec<Value> =
        edges.into_iter().map(Value::from).chain(hard(shape).into_iter().map(Value::Number)).collect();
    prop_oneof![4 => small.prop_map(Value::from), 2 => select(edges), 1 => (least..=most).prop_map(Value::from)]
        .boxed()
}

/// Numbers: whole and broken ones, and those at the limits of the schema.
pub(super) fn number(shape: Shape<'_>) -> BoxedStrategy<Value> {
    let (least, least_is_allowed) = limit(shape, "minimum", "exclusiveMinimum").unwrap_or((-1e15, true));
    let (most, most_is_allowed) = limit(shape, "maximum", "exclusiveMaximum").unwrap_or((1e15, true));
    let is_allowed = |number: &f64| {
        (*number > least || least_is_allowed && *number == least)
            && (*number < most || most_is_allowed && *number == most)
    };
    let middle = least.max(0.0).min(most);
    let near = [0.0, 1.0, 0.5, 31.4, 1e-6, 100.25, -1.0, -0.5].map(|step| middle + step);
    let edges: Vec<f64> =
        near.into_iter().chain([least, most, (least + most) / 2.0]).filter(is_allowed).collect();
    if edges.is_empty() {
        return Just(json!(middle)).boxed();
    }
    let hard = hard(shape).into_iter().map(Value::Number);
    select(edges.into_iter().map(written).chain(hard).collect::<Vec<_>>()).boxed()
}

/// A number as somebody writes it: 1 and not 1.0.
fn written(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 {
        return (number as i64).into();
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

/// The name of a field that the schema leaves open: of a label, of an entry of a ConfigMap.
pub(super) fn key() -> impl Strategy<Value = String> {
    select(&["a", "b", "app", "index.html", "example.com/part-of", "_", "9"][..]).prop_map(ToOwned::to_owned)
}

/// The name of an object: a DNS name.
pub(super) fn name() -> impl Strategy<Value = String> {
    let ordinary =
        (proptest::char::range('a', 'z'), 0_u8..100).prop_map(|(letter, number)| format!("{letter}{number}"));
    prop_oneof![4 => ordinary, 1 => Just("a.b-c.0".to_owned()), 1 => Just("a".repeat(63))]
}

/// Labels or annotations.
pub(super) fn strings() -> impl Strategy<Value = Value> {
    btree_map(key(), select(&["", "a", "web-1"][..]), 0..=3).prop_map(|entries| json!(entries))
}
