//! [`Collected`]: the finalizers that the garbage collector's work on a view leaves on backing objects, and where they are.

use super::{
    metadata::collectors_of,
    served::{Backing, Served},
};

/// The finalizers of the garbage collector for one resource, and the kind whose objects may have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The kind whose objects may have them.
    pub backing: Backing,
    /// The finalizers.
    pub finalizers: [String; 2],
}

impl Collected {
    /// Those of what is served. Documents have none: the garbage collector knows nothing of them.
    pub fn of(served: &Served) -> Option<Self> {
        let finalizers = || collectors_of(served.group(), &served.plural);
        (!served.is_of_documents())
            .then(|| Self { backing: served.backing.clone(), finalizers: finalizers() })
    }
}
