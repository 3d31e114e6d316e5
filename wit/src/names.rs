//! The labels, annotations and finalizers that belong to the host. A guest may neither set nor see them.

/// The domain of every label, annotation and finalizer of the host.
pub const DOMAIN: &str = "pintle.dev";

/// Label on a child: the name of the Reconciler that manages it.
pub const LABEL_RECONCILER: &str = "pintle.dev/reconciler";

/// Label on a child: the uid of its root.
pub const LABEL_ROOT: &str = "pintle.dev/root";

/// Annotation on a child: the hash of the object as the host last sent it.
pub const ANNOTATION_DESIRED: &str = "pintle.dev/desired";

/// Annotation that a person sets on an existing object, so that the root with this uid may take it over.
pub const ANNOTATION_ADOPT: &str = "pintle.dev/adopt";

/// Annotation that a person sets on a root, so that the host leaves it as it is.
pub const ANNOTATION_SUSPEND: &str = "pintle.dev/suspend";

/// Annotation that a person sets on a root, to any new value (by convention a time), so that the host reconciles it as if for the first
/// time.
pub const ANNOTATION_RECONCILE_AT: &str = "pintle.dev/reconcile-at";

/// Annotation that a person sets on a root that is being deleted, so that it may go although its guest has not agreed.
pub const ANNOTATION_RELEASE: &str = "pintle.dev/release";

/// Finalizer on a Module that a Reconciler uses.
pub const FINALIZER_IN_USE: &str = "pintle.dev/in-use";

/// Finalizer on a Reconciler while some of its roots may have finalizers of ours.
pub const FINALIZER_ROOTS: &str = "pintle.dev/roots";

/// Finalizer on a Reconciler that has worked, until the statuses of its roots say that nobody reconciles them any more. The host waits
/// for these no longer than half a minute.
pub const FINALIZER_STATUSES: &str = "pintle.dev/statuses";

/// Finalizer on a root whose guest has something to clean up. The host removes it when the guest answers `finalized`.
pub const FINALIZER_GUEST: &str = "pintle.dev/guest";

/// Whether a label, annotation or finalizer key belongs to the host.
pub fn is_ours(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain == DOMAIN)
}
