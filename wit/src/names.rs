//! The labels, annotations and finalizers that belong to the host. A guest may neither set nor see them.

/// The domain of everything that is the host's on an object.
pub const DOMAIN: &str = "pintle.dev";

/// Label on a child: the name of the Reconciler that keeps it.
pub const LABEL_RECONCILER: &str = "pintle.dev/reconciler";

/// Label on a child: the uid of its root.
pub const LABEL_ROOT: &str = "pintle.dev/root";

/// Annotation on a child: the hash of the object as it was last sent.
pub const ANNOTATION_DESIRED: &str = "pintle.dev/desired";

/// Annotation that a person sets on an existing object to let a root with this uid take it over.
pub const ANNOTATION_ADOPT: &str = "pintle.dev/adopt";

/// Annotation that a person sets on a root to have it left as it is.
pub const ANNOTATION_SUSPEND: &str = "pintle.dev/suspend";

/// Annotation that a person sets on a root, to any new value (a time, by custom), to have it looked at as if for the first time.
pub const ANNOTATION_RECONCILE_AT: &str = "pintle.dev/reconcile-at";

/// Annotation that a person sets on a root that is being deleted, to let it go although its guest has not said that it may.
pub const ANNOTATION_RELEASE: &str = "pintle.dev/release";

/// Finalizer on a Module that a Reconciler uses.
pub const FINALIZER_IN_USE: &str = "pintle.dev/in-use";

/// Finalizer on a Reconciler of whose roots some may have finalizers of ours.
pub const FINALIZER_ROOTS: &str = "pintle.dev/roots";

/// Finalizer on a root whose guest has something to clean up: it is taken off when the guest answers `finalized`.
pub const FINALIZER_GUEST: &str = "pintle.dev/guest";

/// Finalizer on a root with children in other namespaces, which no garbage collector takes away.
pub const FINALIZER_INVENTORY: &str = "pintle.dev/inventory";

/// Finalizer on a root with patches that are to be taken away when the root goes.
pub const FINALIZER_PATCHES: &str = "pintle.dev/patches";

/// Whether a label, annotation or finalizer key belongs to the host.
pub fn is_ours(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN)
}
