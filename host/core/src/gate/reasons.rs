//! The reasons with which the gate refuses. They are stable: people match on them. The first block of pod rules can be excepted by
//! name in `grants.podTemplates.allow`.

/// A child is no Kubernetes object: apiVersion, kind, metadata or name is missing or of the wrong type.
pub const OBJECT_INVALID: &str = "ObjectInvalid";
/// A child is larger than an object may be.
pub const OBJECT_TOO_LARGE: &str = "ObjectTooLarge";
/// More children than the Reconciler's limit.
pub const TOO_MANY_CHILDREN: &str = "TooManyChildren";
/// Two children have one id, or one name.
pub const DUPLICATE_CHILD: &str = "DuplicateChild";
/// The manifest does not declare this kind of child.
pub const KIND_NOT_DECLARED: &str = "KindNotDeclared";
/// The Reconciler does not grant this kind of child.
pub const KIND_NOT_GRANTED: &str = "KindNotGranted";
/// A kind that no grant can give to a namespaced root.
pub const KIND_FORBIDDEN: &str = "KindForbidden";
/// The API server does not serve this kind.
pub const KIND_MISSING: &str = "KindMissing";
/// A child of cluster scope.
pub const CLUSTER_SCOPED: &str = "ClusterScopedChild";
/// A child in a namespace that is neither the root's nor granted, or without one where it needs one.
pub const NAMESPACE_FORBIDDEN: &str = "NamespaceForbidden";
/// A name that the API server would not take, or would read as a path.
pub const NAME_INVALID: &str = "NameInvalid";
/// A part of metadata that is not the guest's to set.
pub const METADATA_FORBIDDEN: &str = "MetadataForbidden";
/// A label or annotation of the host.
pub const METADATA_RESERVED: &str = "MetadataReserved";
/// A child with a status.
pub const STATUS_FORBIDDEN: &str = "ChildStatusForbidden";
/// More needs than a pass looks up.
pub const TOO_MANY_NEEDS: &str = "TooManyNeeds";
/// A need that means nothing: no name, no time, a wrong selector or field.
pub const NEED_INVALID: &str = "NeedInvalid";
/// A need with more fields, a longer path or a larger selector than a look-up takes.
pub const NEED_TOO_COMPLEX: &str = "NeedTooComplex";
/// The manifest does not declare this kind of need.
pub const NEED_NOT_DECLARED: &str = "NeedNotDeclared";
/// The manifest does not declare this index.
pub const INDEX_NOT_DECLARED: &str = "IndexNotDeclared";
/// The Reconciler does not grant this need.
pub const NEED_NOT_GRANTED: &str = "NeedNotGranted";
/// More patches than the Reconciler's limit of children.
pub const TOO_MANY_PATCHES: &str = "TooManyPatches";
/// Two patches of one object.
pub const DUPLICATE_PATCH: &str = "DuplicatePatch";
/// The manifest does not declare patches of this kind, or of this field.
pub const PATCH_NOT_DECLARED: &str = "PatchNotDeclared";
/// The Reconciler does not grant patches of this kind.
pub const PATCH_NOT_GRANTED: &str = "PatchNotGranted";
/// The Reconciler does not grant that this field is patched.
pub const PATCH_FIELD_NOT_GRANTED: &str = "PatchFieldNotGranted";
/// The manifest does not declare that Pods are evicted.
pub const EVICTION_NOT_DECLARED: &str = "EvictionNotDeclared";
/// The Reconciler does not grant that Pods are evicted, or deleted.
pub const EVICTION_NOT_GRANTED: &str = "EvictionNotGranted";
/// An eviction without a name or uid, or too many of them.
pub const EVICTION_INVALID: &str = "EvictionInvalid";
/// The root's CRD has no place where the host could name what it is about to do: a patch that is to be taken away, Pods that are to go.
pub const STATUS_CANNOT_RECORD: &str = "StatusCannotRecord";
/// A stamp that is not the host's to set, or that the guest sets itself.
pub const STAMP_INVALID: &str = "StampInvalid";
/// An answer says `finalized`, and the manifest declares no finalizer.
pub const FINALIZER_NOT_DECLARED: &str = "FinalizerNotDeclared";
/// A Secret of a type that gives credentials.
pub const SECRET_TYPE_FORBIDDEN: &str = "SecretTypeForbidden";
/// A Service of a type that is not granted.
pub const SERVICE_TYPE_NOT_GRANTED: &str = "ServiceTypeNotGranted";
/// A Service with external IPs that are not granted.
pub const EXTERNAL_IPS_NOT_GRANTED: &str = "ExternalIPsNotGranted";
/// An Ingress annotation that injects configuration and is not granted.
pub const INGRESS_ANNOTATION_NOT_GRANTED: &str = "IngressAnnotationNotGranted";
/// A pod template refers to an object that is neither a child nor granted.
pub const REFERENCE_NOT_GRANTED: &str = "ReferenceNotGranted";
/// A pod template refers to a child of a later stage: each would wait for the other.
pub const REFERENCE_IN_LATER_STAGE: &str = "ReferenceInLaterStage";
/// The status names a field of the host.
pub const STATUS_FIELD_RESERVED: &str = "StatusFieldReserved";
/// The status names a field that the root's CRD does not declare.
pub const STATUS_FIELD_UNDECLARED: &str = "StatusFieldUndeclared";
/// The status is too large.
pub const STATUS_TOO_LARGE: &str = "StatusTooLarge";
/// A condition of the host, or one that stands twice.
pub const CONDITION_RESERVED: &str = "ConditionReserved";
/// A condition that the API server would not take.
pub const CONDITION_INVALID: &str = "ConditionInvalid";
/// An Event that the API server would not take, or too many of them.
pub const EVENT_INVALID: &str = "EventInvalid";

/// hostNetwork, hostPID or hostIPC.
pub const HOST_NAMESPACES: &str = "HostNamespaces";
/// A Windows host process.
pub const HOST_PROCESS: &str = "HostProcess";
/// A privileged container.
pub const PRIVILEGED: &str = "Privileged";
/// A capability beyond the baseline.
pub const CAPABILITIES: &str = "Capabilities";
/// A path of the node.
pub const HOST_PATH: &str = "HostPath";
/// A port of the node.
pub const HOST_PORTS: &str = "HostPorts";
/// A probe or hook that calls another host.
pub const HOST_PROBES: &str = "HostProbes";
/// AppArmor switched off.
pub const APP_ARMOR: &str = "AppArmor";
/// SELinux options beyond the baseline.
pub const SELINUX: &str = "SELinux";
/// A /proc mount that hides nothing.
pub const PROC_MOUNT: &str = "ProcMount";
/// Seccomp switched off.
pub const SECCOMP: &str = "Seccomp";
/// A sysctl beyond the baseline.
pub const SYSCTLS: &str = "Sysctls";
/// A Pod put onto a node past the scheduler.
pub const NODE_NAME: &str = "NodeName";
/// A service account other than the default one.
pub const SERVICE_ACCOUNT: &str = "ServiceAccount";
/// A projected service account token.
pub const TOKEN_PROJECTION: &str = "TokenProjection";
/// A volume of a type that can carry credentials or reach the node.
pub const VOLUME_TYPE: &str = "VolumeType";

/// The rules that `grants.podTemplates.allow` can except.
pub const EXCEPTABLE: [&str; 16] = [
    HOST_NAMESPACES,
    HOST_PROCESS,
    PRIVILEGED,
    CAPABILITIES,
    HOST_PATH,
    HOST_PORTS,
    HOST_PROBES,
    APP_ARMOR,
    SELINUX,
    PROC_MOUNT,
    SECCOMP,
    SYSCTLS,
    NODE_NAME,
    SERVICE_ACCOUNT,
    TOKEN_PROJECTION,
    VOLUME_TYPE,
];
