//! Quantities: what the API server reads as one, and the form in which it returns it: `0.5` as `500m`, `1024Mi` as `1Gi`.

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Whether the API server reads a text as a quantity.
pub fn is_quantity(text: &str) -> bool {
    let text = text.trim();
    let amount = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = amount.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, suffix) = amount.split_at(end.unwrap_or(amount.len()));
    let is_number =
        number.contains(|letter: char| letter.is_ascii_digit()) && number.matches('.').count() < 2;
    let is_power = suffix.strip_prefix(['e', 'E']).is_some_and(|power| power.parse::<i64>().is_ok());
    is_number && (BINARY.contains(&suffix) || DECIMAL.contains(&suffix) || is_power)
}

/// The canonical form of a quantity. A text that is not a quantity stays as it is.
pub fn canonical(text: &str) -> String {
    let end =
        text.find(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != '-' && letter != '+');
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let Some((digits, places)) = digits(number) else { return text.into() };
    if let Some(power) = BINARY.iter().position(|unit| *unit == suffix) {
        if places > 0 {
            return text.into();
        }
        let (mut value, mut power) = (digits, power);
        while value != 0 && value % 1024 == 0 && power + 1 < BINARY.len() {
            value /= 1024;
            power += 1;
        }
        return if value == 0 { "0".into() } else { format!("{value}{}", BINARY[power]) };
    }
    let Some(power) = DECIMAL.iter().position(|unit| *unit == suffix) else { return text.into() };
    // Takes a unit a thousand times smaller until no digits are left after the point.
    let (mut value, mut power, mut places) = (digits, power, places);
    while places > 0 {
        let Some(next) = value.checked_mul(1000).filter(|_| power > 0) else { return text.into() };
        (value, power) = (next, power - 1);
        let shift = places.min(3);
        for _ in 0..shift {
            if value % 10 != 0 {
                return text.into();
            }
            value /= 10;
        }
        places -= shift;
    }
    while value != 0 && value % 1000 == 0 && power + 1 < DECIMAL.len() {
        value /= 1000;
        power += 1;
    }
    if value == 0 { "0".into() } else { format!("{value}{}", DECIMAL[power]) }
}

/// The digits of a number without its point, and how many of them are after the point.
fn digits(number: &str) -> Option<(i128, usize)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    Some((format!("{whole}{fraction}").parse().ok()?, fraction.len()))
}

#[cfg(test)]
mod tests {
    use super::{canonical, is_quantity};

    #[test]
    fn a_quantity_is_a_number_with_a_suffix_that_the_api_server_knows() {
        for text in
            ["0", "1000m", "0.5", "2Mi", "1.5Gi", ".5", "1.", "-1", "+1k", "12e6", "1E-3", "2E", " 1 "]
        {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "m", ".", "1.2.3", "2 Mi", "2MB", "2mi", "1K", "1e", "1e1.5", "--1", "lots"] {
            assert!(!is_quantity(text), "{text}");
        }
    }

    #[test]
    fn amounts_are_written_in_the_largest_unit_that_leaves_no_fraction() {
        for (given, expected) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("100m", "100m"),
            ("1", "1"),
            ("1024Mi", "1Gi"),
            ("128Mi", "128Mi"),
            ("1.5", "1500m"),
            ("0", "0"),
            ("2000", "2k"),
            ("words", "words"),
        ] {
            assert_eq!(canonical(given), expected, "{given}");
        }
    }
}
