//! What is wrong with a name, or with the key or value of a label, in the words of the API server
//! (k8s.io/apimachinery, pkg/api/validate/content).

/// The longest name of an object, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// The longest name of a label, and the longest value, in bytes.
const PART_BYTES_MAX: usize = 63;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a DNS subdomain, which the name of an object is.
pub fn wrong_subdomain(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > NAME_BYTES_MAX {
        wrong.push(too_long(NAME_BYTES_MAX));
    }
    // The length is judged apart.
    if !name.split('.').all(is_dns_part) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with a qualified name, which the key of a label or an annotation is, and a finalizer.
pub fn wrong_qualified(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = match key.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        ["", name] => {
            wrong.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            wrong.extend(wrong_subdomain(prefix).into_iter().map(|why| format!("prefix part {why}")));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > PART_BYTES_MAX {
        wrong.push(format!("name part {}", too_long(PART_BYTES_MAX)));
    }
    if !is_label_part(name) {
        wrong.push(format!("name part {KEY}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub fn wrong_label_value(value: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if value.len() > PART_BYTES_MAX {
        wrong.push(too_long(PART_BYTES_MAX));
    }
    if !value.is_empty() && !is_label_part(value) {
        wrong.push(VALUE.to_owned());
    }
    wrong
}

fn too_long(bytes_max: usize) -> String {
    format!("must be no more than {bytes_max} bytes")
}

/// A part of a subdomain. Only the whole has a greatest length there.
fn is_dns_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(text, is_plain, b"-")
}

fn is_label_part(text: &str) -> bool {
    is_framed(text, |byte| byte.is_ascii_alphanumeric(), b"-_.")
}

/// Whether a text begins and ends with a plain byte, and has no others than these between.
fn is_framed(text: &str, is_plain: impl Fn(u8) -> bool, between: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let is_edge = |byte: Option<&u8>| byte.is_some_and(|byte| is_plain(*byte));
    is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|byte| is_plain(*byte) || between.contains(byte))
}

#[cfg(test)]
mod tests {
    use pintle_wit::syntax;

    use super::*;

    #[test]
    fn names_keys_and_values_are_judged_in_the_words_of_the_api_server() {
        let long = "x".repeat(64);
        let too_long = too_long(63);
        for (key, wrong) in [
            ("a", vec![]),
            ("A.b_c-1", vec![]),
            ("example.com/a", vec![]),
            ("", vec!["name part must be non-empty".to_owned(), format!("name part {KEY}")]),
            ("a b", vec![format!("name part {KEY}")]),
            ("/a", vec!["prefix part must be non-empty".to_owned()]),
            ("A/b", vec![format!("prefix part {SUBDOMAIN}")]),
            (&long, vec![format!("name part {too_long}")]),
        ] {
            assert_eq!(wrong_qualified(key), wrong, "{key}");
        }
        assert!(wrong_qualified("a/b/c")[0].starts_with("a valid label key must consist"));
        assert!(wrong_label_value("").is_empty() && wrong_label_value("a_b.C").is_empty());
        assert_eq!(wrong_label_value("-"), [VALUE]);
        assert_eq!(wrong_label_value(&long), [too_long.as_str()]);
        assert!(wrong_subdomain(&"x".repeat(253)).is_empty());
        assert_eq!(wrong_subdomain(&"x".repeat(254)), ["must be no more than 253 bytes"]);
        assert_eq!(wrong_subdomain("Dolly"), [SUBDOMAIN]);
    }

    #[test]
    fn what_is_not_wrong_is_what_the_syntax_takes() {
        for name in
            ["a", "a.b", "a-1.b", "", ".", "a..b", "-a", "a-", "A", "a_b", &"x".repeat(253), &"x".repeat(254)]
        {
            assert_eq!(wrong_subdomain(name).is_empty(), syntax::is_subdomain(name), "{name}");
        }
    }
}
