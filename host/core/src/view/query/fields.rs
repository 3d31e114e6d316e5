//! Field selectors: of the fields of an object, its name and its namespace can be asked for.

/// The field of the name.
const NAME: &str = "metadata.name";
/// The field of the namespace.
const NAMESPACE: &str = "metadata.namespace";

/// One term of a field selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) field: Field,
    /// Whether the field is to be this, or anything but this.
    pub(super) is_equal: bool,
    pub(super) value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Namespace,
}

/// Reads a field selector.
///
/// # Errors
/// What is wrong with it, as the API server says it.
pub(super) fn read(selector: &str) -> Result<Vec<Term>, String> {
    let terms = split(selector).into_iter().filter(|term| !term.is_empty());
    terms
        .map(|term| {
            let unread = || format!("invalid selector: '{selector}'; can't understand '{term}'");
            let is_operator = |at: &usize| term[*at..].starts_with("!=") || term[*at..].starts_with('=');
            let at = term.char_indices().map(|(at, _)| at).find(is_operator).ok_or_else(unread)?;
            let (field, behind) = term.split_at(at);
            let (is_equal, value) = match behind.strip_prefix("!=") {
                Some(value) => (false, value),
                None => (true, behind.strip_prefix("==").unwrap_or(&behind[1..])),
            };
            let value = unescaped(value)?;
            let field = match field {
                NAME => Field::Name,
                NAMESPACE => Field::Namespace,
                other => {
                    return Err(format!("field label not supported: {other}"));
                }
            };
            Ok(Term { field, is_equal, value })
        })
        .collect()
}

impl Term {
    /// The term as the API server reads it, with this value.
    pub(super) fn written(&self, value: &str) -> String {
        let field = match self.field {
            Field::Name => NAME,
            Field::Namespace => NAMESPACE,
        };
        let value = value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
        format!("{field}{}{value}", if self.is_equal { "=" } else { "!=" })
    }
}

/// The terms between commas. A backslash takes a letter's meaning away.
fn split(selector: &str) -> Vec<&str> {
    let (mut terms, mut begin, mut is_escaped) = (Vec::new(), 0, false);
    for (at, letter) in selector.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                terms.push(&selector[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&selector[begin..]);
    terms
}

fn unescaped(value: &str) -> Result<String, String> {
    let mut letters = value.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let escaped = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{escaped}"));
                }
            },
            // The API server says the letter's number.
            '=' => {
                return Err(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from('=')
                ));
            }
            other => plain.push(other),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(field: Field, is_equal: bool, value: &str) -> Term {
        Term { field, is_equal, value: value.to_owned() }
    }

    #[test]
    fn name_and_namespace_are_read_with_each_operator() {
        assert_eq!(read(""), Ok(vec![]));
        assert_eq!(
            read("metadata.name=a,metadata.namespace!=b,metadata.name==c"),
            Ok(vec![
                term(Field::Name, true, "a"),
                term(Field::Namespace, false, "b"),
                term(Field::Name, true, "c")
            ])
        );
        assert_eq!(read(r"metadata.name=a\,b\=c\\"), Ok(vec![term(Field::Name, true, r"a,b=c\")]));
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        let odd = term(Field::Name, false, r"a,b=c\");
        assert_eq!(read(&odd.written(&odd.value)), Ok(vec![odd]));
    }

    #[test]
    fn other_fields_and_what_is_no_selector_are_refused_in_the_api_servers_words() {
        for (bad, why) in [
            ("spec.x=1", "field label not supported: spec.x"),
            ("a", "invalid selector: 'a'; can't understand 'a'"),
            ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
            (r"metadata.name=\a", r"invalid field selector: invalid escape sequence: \a"),
            (r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \"),
        ] {
            assert_eq!(read(bad), Err(why.to_owned()), "{bad}");
        }
        assert!(read("!metadata.name=a").is_err());
    }
}
