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

/// Finalizer on a Module that a Reconciler uses.
pub const FINALIZER_IN_USE: &str = "pintle.dev/in-use";

/// Whether a label, annotation or finalizer key belongs to the host.
pub fn is_ours(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN)
}
