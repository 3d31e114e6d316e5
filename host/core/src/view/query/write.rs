//! Options of a create, an update or a patch.

use pintle_wit::Cause;

use super::{Pairs, Query, pair};
use crate::view::status::{Status, fault};

/// The longest name of a field manager, in bytes.
const MANAGER_BYTES_MAX: usize = 128;

/// Which options are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Those of a create.
    Create,
    /// Those of an update.
    Update,
    /// Those of a patch.
    Patch,
}

/// The options of a create, an update or a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// What is to become of fields that the schema does not have.
    pub field_validation: FieldValidation,
    field_manager: String,
}

/// What is to become of fields that the schema does not have, or that stand there twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the client is warned.
    #[default]
    Warn,
    /// The request is refused.
    Strict,
}

impl FieldValidation {
    /// The value of the parameter `fieldValidation`; `None` if there is no such value. Without a value it is `Warn`.
    pub fn of(parameter: &str) -> Option<Self> {
        match parameter {
            "Ignore" => Some(Self::Ignore),
            "" | "Warn" => Some(Self::Warn),
            "Strict" => Some(Self::Strict),
            _ => None,
        }
    }

    /// What comes of the fields of a body. Returns the warnings for the client, in the words of the API server.
    ///
    /// # Errors
    /// The write is refused, with these words.
    pub fn judge(self, duplicate: &[String], unknown: &[String]) -> Result<Vec<String>, String> {
        let named = |what: &'static str| move |path: &String| format!("{what} field \"{path}\"");
        let duplicate = duplicate.iter().map(named("duplicate"));
        let found: Vec<String> = duplicate.chain(unknown.iter().map(named("unknown"))).collect();
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Strict if !found.is_empty() => Err(format!("strict decoding error: {}", found.join(", "))),
            Self::Warn | Self::Strict => Ok(found),
        }
    }
}

impl WriteOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// 422 for values that there are not, in the words of the API server.
    pub fn read(query: &Query, write: Write) -> Result<Self, Status> {
        let mut faults = Vec::new();
        if write == Write::Patch && query.first("force").is_some() {
            faults.push(fault::forbidden("force", "may not be specified for non-apply patch"));
        }
        let field_manager = query.text("fieldManager");
        faults.extend(wrong_manager(&field_manager));
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        faults.extend(wrong_dry_run(&dry_run));
        let validation = query.first("fieldValidation").unwrap_or_default();
        let field_validation = FieldValidation::of(validation).unwrap_or_else(|| {
            let supported = ["", "Ignore", "Strict", "Warn"];
            faults.push(fault::not_supported("fieldValidation", &format!("{validation:?}"), &supported));
            FieldValidation::default()
        });
        if faults.is_empty() {
            return Ok(Self { dry_run: !dry_run.is_empty(), field_validation, field_manager });
        }
        let kind = match write {
            Write::Create => "CreateOptions",
            Write::Update => "UpdateOptions",
            Write::Patch => "PatchOptions",
        };
        Err(Status::invalid_options(kind, faults))
    }

    /// The same for the backing kind. Without a field manager, it is what the API server makes of the client's `User-Agent`, which is not
    /// the gateway's.
    pub fn backing(&self, user_agent: Option<&str>) -> Pairs {
        let mut pairs = Vec::new();
        if self.dry_run {
            pairs.push(pair("dryRun", "All"));
        }
        let manager = match self.field_manager.as_str() {
            "" => manager_of(user_agent.unwrap_or_default()),
            manager => manager.to_owned(),
        };
        if !manager.is_empty() {
            pairs.push(pair("fieldManager", manager));
        }
        pairs
    }
}

/// What the API server calls a client of this `User-Agent`: what stands before the first slash, as far as it is printable.
fn manager_of(user_agent: &str) -> String {
    let mut manager: String = user_agent
        .split('/')
        .next()
        .unwrap_or_default()
        .chars()
        .filter(|letter| is_printable(*letter))
        .collect();
    while manager.len() > MANAGER_BYTES_MAX {
        manager.pop();
    }
    manager
}

fn is_printable(letter: char) -> bool {
    letter == ' ' || !letter.is_control() && !letter.is_whitespace()
}

fn wrong_manager(manager: &str) -> Vec<Cause> {
    let is_long = manager.len() > MANAGER_BYTES_MAX;
    let long = is_long.then(|| fault::too_long("fieldManager", MANAGER_BYTES_MAX as u64));
    let letters = manager.char_indices().filter(|(_, letter)| !is_printable(*letter)).map(|(at, letter)| {
        let why = format!("invalid character U+{:04X} (at position {at})", u32::from(letter));
        fault::invalid("fieldManager", manager, &why)
    });
    long.into_iter().chain(letters).collect()
}

/// What is wrong with the values of `dryRun`, if anything is.
pub(super) fn wrong_dry_run(values: &[&str]) -> Option<Cause> {
    let is_wrong = values.iter().any(|value| *value != "All");
    is_wrong.then(|| {
        let values: serde_json::Value = values.iter().copied().collect();
        fault::not_supported("dryRun", &values.to_string(), &["All"])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::query::tests::query;

    #[test]
    fn a_dry_run_and_the_field_manager_reach_the_backing_kind_and_nothing_else() {
        let read = |text: &str| WriteOptions::read(&query(text), Write::Create).expect(text);
        let options = read("dryRun=All&fieldManager=me&fieldValidation=Strict&pretty=1");
        assert_eq!((options.dry_run, options.field_validation), (true, FieldValidation::Strict));
        assert_eq!(options.backing(Some("x/1")), [pair("dryRun", "All"), pair("fieldManager", "me")]);
        let options = read("");
        assert_eq!((options.dry_run, options.field_validation), (false, FieldValidation::Warn));
        assert_eq!(options.backing(None), []);
    }

    #[test]
    fn without_a_field_manager_it_is_the_clients_name() {
        let options = WriteOptions::read(&Query::default(), Write::Update).expect("it has none");
        let agent = Some("kubectl-edit/v1.36 (linux/amd64)");
        assert_eq!(options.backing(agent), [pair("fieldManager", "kubectl-edit")]);
        assert_eq!(manager_of("a\tb\u{7}c"), "abc");
        assert_eq!(manager_of(&"ä".repeat(100)).len(), 128);
    }
}
