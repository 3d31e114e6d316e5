//! Whether a number goes through a guest as it is: as the same 64-bit integer, or as the same double.
//!
//! What a guest computes of a number is its own matter, and what it hands on must be what it was given. The two are told apart by what
//! careless reading and writing make of a number: the neighbours of a double, its nearest `f32`, and of an integer the nearest double. Only
//! numbers count ([`generate::is_hard`]) from which no rounding that somebody means leads there.

mod roots;

use std::fmt;

use pintle_core::number;
use pintle_schema::generate;
use serde_json::{Number, Value};

pub use roots::{Numbers, tried};

/// How far from a double its neighbours are looked for, in units of its last place: 15 digits are that near.
const NEIGHBOURS: f64 = 32.0;

/// A number that did not go through a guest as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Where it stands in the answer.
    pub path: String,
    /// The number that the guest was given.
    pub given: Number,
    /// What became of it.
    pub found: Number,
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, given, found } = self;
        write!(f, "{path}: {found} is not the number {given} that the guest was given")
    }
}

/// The first number in an answer that is what carelessness makes of a number in the question. Numbers within texts count, as in arguments and
/// files of configuration.
pub fn changed(given: &Value, answer: &Value) -> Option<Changed> {
    let mut all = Vec::new();
    visit(given, "", &mut |_, number| all.push(number));
    if !all.iter().any(generate::is_hard) {
        return None;
    }
    let mut found = Vec::new();
    visit(answer, "", &mut |path, number| found.push((path.to_owned(), number)));
    found.into_iter().find_map(|(path, found)| {
        // What stands in the question is nothing that something else became.
        let is_given = all.iter().any(|given| is_amount(given, &found));
        let given = all.iter().find(|given| generate::is_hard(given) && is_careless(given, &found));
        given.filter(|_| !is_given).map(|given| Changed { path, given: given.clone(), found })
    })
}

/// Whether two numbers are the same but for the sign, which a text may use as a hyphen.
fn is_amount(one: &Number, other: &Number) -> bool {
    let negated = other.as_i64().and_then(i64::checked_neg).map(Number::from);
    let negated = negated.or_else(|| Number::from_f64(-other.as_f64()?));
    number::is_same(one, other) || negated.is_some_and(|other| number::is_same(one, &other))
}

/// Shows every number of a value, with its path.
fn visit(value: &Value, path: &str, see: &mut impl FnMut(&str, Number)) {
    match value {
        Value::Number(number) => see(path, number.clone()),
        Value::String(text) => in_text(text).for_each(|number| see(path, number)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| visit(item, &format!("{path}[{index}]"), see));
        }
        Value::Object(fields) => {
            let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            fields.iter().for_each(|(name, value)| visit(value, &at(name), see));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The numbers that stand in a text.
fn in_text(text: &str) -> impl Iterator<Item = Number> {
    let is_part = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E' | '+' | '-');
    let words = text.split(move |letter| !is_part(letter));
    words.filter_map(|word| {
        serde_json::from_str(word.trim_matches(|letter: char| !letter.is_ascii_digit())).ok()
    })
}

/// Whether carelessness makes this of a hard number, or of its amount.
fn is_careless(given: &Number, found: &Number) -> bool {
    let is = |double: f64| Number::from_f64(double).is_some_and(|double| is_amount(&double, found));
    let (Some(double), Some(other)) = (given.as_f64(), found.as_f64()) else { return false };
    let short = f64::from(double as f32);
    match given.as_i64() {
        Some(_) => {
            let is_nearest =
                found.as_i64().is_some_and(|found| i128::from(found).abs() == (double as i128).abs());
            is_nearest || is(double) || is(short)
        }
        None => {
            let last_place = double.abs() * f64::EPSILON;
            (double.abs() - other.abs()).abs() <= NEIGHBOURS * last_place || is(short)
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_schema::shape::Shape;
    use serde_json::json;

    use super::*;

    fn numbers(value: &Value) -> Vec<Number> {
        let mut all = Vec::new();
        visit(value, "", &mut |_, number| all.push(number));
        all
    }

    /// Every hard number that a place of any type takes.
    fn hard() -> Vec<Number> {
        let schema = json!({"type": "number"});
        generate::hard(Shape::new(&Value::Null, &schema))
    }

    /// What serde_json reads without its feature `float_roundtrip`: the digits as a double, shifted by a power of ten.
    fn sloppy(number: &Number) -> f64 {
        let text = number.to_string();
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let digits: f64 = format!("{whole}{fraction}").parse().unwrap();
        digits / 10_f64.powi(i32::try_from(fraction.len()).unwrap())
    }

    #[test]
    fn what_carelessness_makes_of_a_hard_number_is_found_in_fields_and_in_texts() {
        for number in hard() {
            let double = number.as_f64().unwrap();
            let mut careless = vec![sloppy(&number), f64::from(double as f32)];
            // 15 digits. Of an integer they may be meant: hundreds of thousands.
            careless.extend(format!("{double:.14e}").parse::<f64>().ok().filter(|_| number.is_f64()));
            for found in careless {
                let given = json!({"spec": {"weight": number}});
                let texts =
                    [format!("--weight={found}"), format!("weight: {found};"), format!("[0, {found:?}]")];
                for answer in texts.map(Value::from).into_iter().chain([json!(found)]) {
                    let changed = changed(&given, &json!({"data": [answer.clone()]}));
                    let changed = changed.unwrap_or_else(|| panic!("{number} as {answer}"));
                    assert_eq!((changed.path.as_str(), &changed.given), ("data[0]", &number));
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_handed_on_or_computed_or_rounded_by_intent_is_none_of_them() {
        for number in hard() {
            let given = json!({"spec": {"weight": number, "port": 80}});
            let double = number.as_f64().unwrap();
            let mut sound = vec![
                json!(number),
                json!(format!("weight={number}")),
                json!(format!("x-{number}.")),
                json!(80),
            ];
            sound.extend(
                (0..7)
                    .map(|decimals| json!(format!("{double:.decimals$}").parse::<f64>().unwrap()))
                    .filter(|_| number.is_f64()),
            );
            sound.extend([0.5, 2.0, 1000.0, 0.001, 60.0, 2.204_62].map(|factor| json!(double * factor)));
            if let Some(integer) = number.as_i64() {
                let units = [10_i64, 100, 1000, 1_000_000, 1 << 10, 1 << 20, 1 << 30, 1 << 40, 60, 3600];
                sound.extend(units.map(|unit| json!(integer / unit)));
                sound.extend(units.map(|unit| json!(integer / unit * unit)));
                sound.extend(units.map(|unit| {
                    json!((integer / unit).saturating_add(integer.signum()).saturating_mul(unit))
                }));
                sound.extend((-10..=10).map(|step| json!(integer.saturating_add(step))));
            }
            for answer in sound {
                assert_eq!(changed(&given, &json!({"a": answer})), None, "{number} and {answer}");
            }
        }
    }

    #[test]
    fn numbers_stand_in_texts_between_whatever_is_no_part_of_a_number() {
        let found = numbers(&json!({"a": "x=1.5,y=-2 v1.2.3 1e3 10Gi {\"z\":7}", "b": [true, null, 8]}));
        assert_eq!(
            found,
            [json!(1.5), json!(2), json!(1e3), json!(10), json!(7), json!(8)]
                .map(|number| number.as_number().cloned().unwrap())
        );
    }
}
