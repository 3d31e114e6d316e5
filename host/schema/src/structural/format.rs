//! The formats of values that the API server knows, as far as they are checked here.

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use regex::Regex;

/// A format that values are checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    DateTime,
    Date,
    Byte,
    Ipv4,
    Ipv6,
    Uuid,
    Int32,
    Int64,
    Float,
    Double,
}

/// Formats that the API server checks, and that are not checked here.
const UNCHECKED: [&str; 18] = [
    "bsonobjectid",
    "cidr",
    "creditcard",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid3",
    "uuid4",
];

impl Format {
    /// The format of this name, for values of this type. The API server ignores formats that it does not know.
    ///
    /// # Errors
    /// The API server checks the format, and this program does not.
    pub(super) fn of(name: &str, type_name: Option<&str>) -> Result<Option<Self>, ()> {
        let plain = name.replace('-', "");
        Ok(match (type_name, name) {
            (Some("integer"), "int32") => Some(Self::Int32),
            (Some("integer"), "int64") => Some(Self::Int64),
            (Some("number"), "float") => Some(Self::Float),
            (Some("number"), "double") => Some(Self::Double),
            (None | Some("string"), _) => match plain.as_str() {
                "datetime" => Some(Self::DateTime),
                "date" => Some(Self::Date),
                "byte" => Some(Self::Byte),
                "ipv4" => Some(Self::Ipv4),
                "ipv6" => Some(Self::Ipv6),
                "uuid" => Some(Self::Uuid),
                "uuid5" => return Err(()),
                unchecked if UNCHECKED.contains(&unchecked) => return Err(()),
                _ => None,
            },
            _ => None,
        })
    }

    /// The name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Byte => "byte",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Uuid => "uuid",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Double => "double",
        }
    }

    /// Whether a text has this format. The formats of numbers say nothing of texts.
    pub(crate) fn has(self, text: &str) -> bool {
        match self {
            Self::DateTime => is_date_time(text),
            Self::Date => is_date(text),
            Self::Byte => matches(&BASE64, text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Uuid => matches(&UUID, text),
            Self::Int32 | Self::Int64 | Self::Float | Self::Double => true,
        }
    }
}

type Pattern = LazyLock<Option<Regex>>;

static TIME: Pattern = LazyLock::new(|| {
    Regex::new(r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})$").ok()
});
static BASE64: Pattern = LazyLock::new(|| {
    Regex::new(r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$").ok()
});
static UUID: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$").ok()
});

fn matches(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.split_once('t').is_some_and(|(date, rest)| is_date(date) && matches(&TIME, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_the_format_that_its_rfc_describes() {
        for (format, text, is) in [
            (Format::DateTime, "2026-01-01T00:00:00Z", true),
            (Format::DateTime, "2026-01-01t00:00:00.5+01:00", true),
            (Format::DateTime, "2026-01-01", false),
            (Format::DateTime, "2026-13-01T00:00:00Z", false),
            (Format::DateTime, "2026-01-01T24:00:00Z", false),
            (Format::Date, "2026-02-29", false),
            (Format::Byte, "aGk=", true),
            (Format::Byte, "aGk", false),
            (Format::Ipv4, "10.0.0.01", false),
            (Format::Ipv6, "::1", true),
            (Format::Uuid, "123e4567e89b12d3a456426614174000", true),
        ] {
            assert_eq!(format.has(text), is, "{format:?} {text}");
        }
    }

    #[test]
    fn a_format_is_known_by_its_name_and_the_type_of_its_values() {
        assert_eq!(Format::of("date-time", Some("string")), Ok(Some(Format::DateTime)));
        assert_eq!(Format::of("int32", Some("string")), Ok(None));
        assert_eq!(Format::of("int32", Some("integer")), Ok(Some(Format::Int32)));
        assert_eq!(Format::of("made-up", Some("string")), Ok(None));
        assert_eq!(Format::of("hostname", None), Err(()));
    }
}
