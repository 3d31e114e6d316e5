//! [`Query`]: the parameters of a request, as its endpoint declares them. What is not declared is refused, so that nothing passes on.

use std::collections::BTreeMap;

use crate::problem::Problem;

/// The longest query, in bytes.
const BYTES_MAX: usize = 32 << 10;

/// One parameter of the query.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub form: Form,
    /// What it is for.
    pub summary: &'static str,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A number of this range.
    Number(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Text, and so many times at most.
    Many(usize),
}

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<&'static str, Vec<String>>);

impl Query {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// 400 for a parameter that is not declared, is there too often, or has another form.
    pub fn read(raw: Option<&str>, declared: &[Param]) -> Result<Self, Problem> {
        let raw = raw.unwrap_or_default();
        if raw.len() > BYTES_MAX {
            return Err(Problem::bad_request(format!("the query has more than {BYTES_MAX} bytes")));
        }
        let mut found: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(raw.as_bytes()) {
            let Some(param) = declared.iter().find(|param| param.name == name) else {
                let name: String = name.chars().take(64).collect();
                return Err(Problem::bad_request(format!("the parameter {name:?} is not known here")));
            };
            let values = found.entry(param.name).or_default();
            values.push(value.into_owned());
            let most = if let Form::Many(most) = param.form { most } else { 1 };
            if values.len() > most {
                let message = format!("the parameter {} is there more than {most} times", param.name);
                return Err(Problem::bad_request(message));
            }
        }
        for param in declared {
            for value in found.get(param.name).into_iter().flatten() {
                param.form.judge(param.name, value)?;
            }
        }
        Ok(Self(found))
    }

    /// The value of a parameter. One that is empty is not there.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    /// The value of a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// All values of a parameter.
    pub fn many(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Form {
    fn judge(self, name: &str, value: &str) -> Result<(), Problem> {
        let expected = match self {
            Self::Text | Self::Many(_) => return Ok(()),
            _ if value.is_empty() => return Ok(()),
            Self::Flag if ["true", "false"].contains(&value) => return Ok(()),
            Self::Flag => "true or false".to_owned(),
            Self::Number(least, most) => match value.parse::<u64>() {
                Ok(number) if (least..=most).contains(&number) => return Ok(()),
                _ => format!("a number from {least} to {most}"),
            },
            Self::Word(words) if words.contains(&value) => return Ok(()),
            Self::Word(words) => words.join(" or "),
        };
        Err(Problem::bad_request(format!("the parameter {name} is {expected}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: [Param; 4] = [
        Param { name: "limit", form: Form::Number(1, 1000), summary: "" },
        Param { name: "dryRun", form: Form::Word(&["All"]), summary: "" },
        Param { name: "search", form: Form::Text, summary: "" },
        Param { name: "watch", form: Form::Many(2), summary: "" },
    ];

    #[test]
    fn what_is_declared_is_read() {
        let query = Query::read(Some("limit=5&search=a%26b+c&watch=x&watch=y&dryRun="), &DECLARED).unwrap();
        assert_eq!(
            (query.number("limit"), query.text("search"), query.text("dryRun")),
            (Some(5), Some("a&b c"), None)
        );
        assert_eq!(query.many("watch"), ["x", "y"]);
        assert!(Query::read(None, &DECLARED).unwrap().text("limit").is_none());
    }

    #[test]
    fn everything_else_is_refused() {
        for wrong in [
            "follow=true",
            "limit=0",
            "limit=1001",
            "limit=x",
            "limit=1&limit=2",
            "dryRun=None",
            "watch=1&watch=2&watch=3",
        ] {
            assert_eq!(Query::read(Some(wrong), &DECLARED).unwrap_err().status, 400, "{wrong}");
        }
        let huge = format!("search={}", "a".repeat(BYTES_MAX));
        assert_eq!(Query::read(Some(&huge), &DECLARED).unwrap_err().status, 400);
    }
}
