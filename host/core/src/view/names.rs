//! Names: what is shown has the backing object's name behind a prefix, so that the host can map names without asking anybody.

use crate::object;

/// How names are mapped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// What stands before the backing object's name.
    pub prefix: Prefix,
}

/// What stands before the backing object's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefix(String);

impl Prefix {
    /// This prefix.
    pub fn new(prefix: &str) -> Self {
        Self(prefix.to_owned())
    }

    /// The prefix as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Names {
    /// The name under which the object of the backing kind is shown.
    pub fn shown(&self, backing: &str) -> String {
        format!("{}{backing}", self.prefix.0)
    }

    /// The name of the object of the backing kind that is shown under this name. None if no object can be: its name does not begin with the
    /// prefix, or what stands behind it is no name. So whatever comes out of here can stand in a path.
    pub fn backing<'a>(&self, shown: &'a str) -> Option<&'a str> {
        self.backing_beginning(shown).filter(|name| object::is_name(name))
    }

    /// The same for the beginning of a name, to which the API server adds the rest. It may end with a dash.
    pub fn backing_beginning<'a>(&self, shown: &'a str) -> Option<&'a str> {
        shown.strip_prefix(self.prefix.0.as_str()).filter(|name| !name.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_maps_there_and_back_and_others_map_to_nothing() {
        let names = Names { prefix: Prefix::new("farm-") };
        assert_eq!(names.shown("web"), "farm-web");
        assert_eq!(names.backing("farm-web"), Some("web"));
        assert_eq!(names.backing("farm-farm-web"), Some("farm-web"));
        for other in ["web", "farm", "farm-", "", "farm-A", "farm-a/b", "farm-..", "farm-a%2fb", "farm-a?b"] {
            assert_eq!(names.backing(other), None, "{other}");
        }
        assert_eq!(Names::default().backing("web"), Some("web"));
        assert_eq!(names.backing_beginning("farm-web-"), Some("web-"));
        assert_eq!(names.backing_beginning("farm-"), None);
    }
}
