//! [`Key`]: which object it is.

use pintle_wit::ObjectRef;

/// The name of an object without its kind's version, since one object may be known by two versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl From<&ObjectRef> for Key {
    fn from(reference: &ObjectRef) -> Self {
        Self {
            group: reference.kind().group().into(),
            kind: reference.kind.clone(),
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        }
    }
}
