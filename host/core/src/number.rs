//! Numbers, as the API server keeps them.
//!
//! To it a number without fraction and exponent that fits 64 bits is an integer, and every other one is a double. A double is written with
//! the fewest digits that tell it apart, and read again: so 1.0 becomes 1, and 2^60 as a double becomes the integer 1152921504606847000.

use serde_json::Number;

/// What an API server makes of a number when it stores it.
pub fn stored(number: &Number) -> Number {
    if number.as_i64().is_some() {
        return number.clone();
    }
    let double = number.as_f64().unwrap_or_default();
    // Beyond 2^63 no integer fits. Below, the standard library writes a double as the API server does: the fewest digits, and zeros.
    let is_whole = double.fract() == 0.0 && double.abs() <= -(i64::MIN as f64);
    match is_whole.then(|| format!("{double}").parse::<i64>()) {
        Some(Ok(integer)) => integer.into(),
        _ => Number::from_f64(double).unwrap_or_else(|| number.clone()),
    }
}

/// Whether two numbers are the same to an API server.
pub fn is_same(one: &Number, other: &Number) -> bool {
    stored(one) == stored(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a control plane of Kubernetes 1.36 was seen to store in a field of type number.
    #[test]
    fn a_number_is_stored_as_an_api_server_stores_it() {
        for (written, read) in [
            ("1", "1"),
            ("1.0", "1"),
            ("-0.0", "0"),
            ("1.5e3", "1500"),
            ("254.62859566035834", "254.62859566035834"),
            ("9007199254740993", "9007199254740993"),
            ("9007199254740993.0", "9007199254740992"),
            ("1152921504606846976", "1152921504606846976"),
            ("1152921504606846976.0", "1152921504606847000"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("1e16", "10000000000000000"),
            ("1e19", "10000000000000000000"),
            ("1e22", "1e+22"),
        ] {
            let [written, read] = [written, read].map(|text| serde_json::from_str::<Number>(text).unwrap());
            assert!(is_same(&written, &read), "{written} is stored as {}, not as {read}", stored(&written));
            assert_eq!(stored(&read), stored(&stored(&read)), "{read}");
        }
    }

    #[test]
    fn integers_that_are_one_double_are_two_numbers() {
        let number = |number: i64| Number::from(number);
        assert!(!is_same(&number(9_007_199_254_740_993), &number(9_007_199_254_740_992)));
        assert!(!is_same(&number(i64::MAX), &number(i64::MAX - 1)));
        assert!(!is_same(&number(i64::MAX), &Number::from_f64(i64::MAX as f64).unwrap()));
    }
}
