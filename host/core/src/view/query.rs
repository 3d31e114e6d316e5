//! The options of a request, from its query and body; and the same options for the backing kind.
//!
//! Options are read into types, and written again from them: no parameter that is not known here reaches the API server.

mod delete;
mod fields;
mod list;
mod write;

pub use delete::{DeleteOptions, pinned};
pub use list::{ListOptions, shown_continue};
pub use write::{FieldValidation, Write, WriteOptions};

use super::{
    served::Lens,
    status::Status,
    version::{NotAVersion, Sent},
};

/// Parameters, decoded: name and value.
pub type Pairs = Vec<(String, String)>;

/// The parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Pairs);

impl Query {
    /// These parameters. A name may stand there more than once: the first counts, except for lists.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// The first value of a parameter.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// A parameter that is true unless it is absent, `0` or `false` in any case. None if it is absent.
    fn flag(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// Whether the request is a watch.
    pub fn is_watch(&self) -> bool {
        self.flag("watch").unwrap_or(false)
    }

    fn number(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.first(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: std::num::ParseIntError| {
            let why = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
    }

    fn version(&self) -> Result<Sent, Status> {
        let text = self.first("resourceVersion").unwrap_or_default();
        Sent::read(text).map_err(|NotAVersion| {
            let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
            Status::bad_request(format!("resourceVersion: Invalid value: {text:?}: {why}"))
        })
    }
}

/// The options of a get for the backing kind: the version that the object must at least have.
///
/// # Errors
/// 400 for what is no version.
pub fn of_get(query: &Query) -> Result<Pairs, Status> {
    let version = query.version()?;
    Ok(version_of_state(&version).into_iter().map(|version| pair("resourceVersion", version)).collect())
}

/// The version of the backing kind that a state must at least have. What another epoch showed of an object is not older for that, and
/// what no epoch showed says nothing.
fn version_of_state(version: &Sent) -> Option<&str> {
    match version {
        Sent::Unset => None,
        Sent::Any | Sent::Foreign => Some("0"),
        Sent::At { backing, .. } => Some(backing),
    }
}

/// The version of the backing kind behind a version of this epoch.
fn version_of_epoch<'a>(lens: &Lens, version: &'a Sent) -> Option<&'a str> {
    match version {
        Sent::At { backing, epoch } if *epoch == lens.epoch => Some(backing),
        _ => None,
    }
}

fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_owned(), value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn query(text: &str) -> Query {
        Query::new(text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        }))
    }

    #[test]
    fn a_watch_is_one_unless_it_is_absent_zero_or_false() {
        for (text, is_watch) in
            [("", false), ("watch=0", false), ("watch=FALSE", false), ("watch", true), ("watch=1", true)]
        {
            assert_eq!(query(text).is_watch(), is_watch, "{text}");
        }
        assert!(!query("watch=false&watch=true").is_watch(), "the first counts");
    }

    #[test]
    fn a_get_asks_for_a_state_that_is_not_older() {
        let backing = |text: &str| of_get(&query(text));
        assert_eq!(backing("pretty=true"), Ok(vec![]));
        assert_eq!(backing("resourceVersion=0"), Ok(vec![pair("resourceVersion", "0")]));
        assert_eq!(backing("resourceVersion=77000042"), Ok(vec![pair("resourceVersion", "77")]));
        assert_eq!(backing("resourceVersion=77"), Ok(vec![pair("resourceVersion", "0")]));
        let refused = backing("resourceVersion=x").expect_err("refused");
        assert_eq!(
            (refused.code, refused.message.as_str()),
            (400, "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax")
        );
    }
}
