//! [`Named`]: an object that a command line names: a Reconciler by its name alone, a View as `view/NAME`.

use std::fmt;

use pintle_wit::syntax;

/// A Reconciler or a View, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A Reconciler.
    Reconciler(String),
    /// A View.
    View(String),
}

/// What may stand before the name of a View: what kubectl takes, and what it prints.
const OF_VIEWS: [&str; 5] = ["view", "views", "pview", "view.pintle.dev", "views.pintle.dev"];

/// What stands before the name of a View where its name is to be completed.
pub(super) const VIEW_PREFIX: &str = "view/";

impl Named {
    /// The name alone.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Reconciler(name) | Self::View(name) => name,
        }
    }

    /// Reads `NAME` or `view/NAME`.
    fn read(text: &str) -> Option<Self> {
        match text.split_once('/') {
            None => Some(Self::Reconciler(text.to_owned())),
            Some((kind, name)) if OF_VIEWS.contains(&kind) && syntax::is_subdomain(name) => {
                Some(Self::View(name.to_owned()))
            }
            Some(_) => None,
        }
    }

    /// The same, for a command that takes nothing else.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).ok_or_else(|| "write the name of a Reconciler, or of a View as view/NAME".to_owned())
    }
}

/// As the command line has it.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reconciler(name) => f.write_str(name),
            Self::View(name) => write!(f, "{VIEW_PREFIX}{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_named_as_kubectl_names_objects() {
        for text in ["view/llamas", "views/llamas", "pview/llamas", "view.pintle.dev/llamas"] {
            let read = Named::read(text).unwrap();
            assert_eq!((read.name(), read.to_string()), ("llamas", "view/llamas".to_owned()), "{text}");
        }
        assert_eq!(Named::read("llamas"), Some(Named::Reconciler("llamas".into())));
        for path in ["./llamas", "view/", "view/a/b", "view/A", "guests/llamas", "/view/a"] {
            assert_eq!(Named::read(path), None, "{path}");
        }
    }
}
