//! The words that the host gives: the reasons of conditions and Events, and the types of its conditions.
//!
//! People match on them, so they are stable. `docs/reasons.md` says where each is met, what it means and what to do. A guest's own reasons
//! are its own.

pub use pintle_wit::reasons::*;
use pintle_wit::words;

words! {
    /// What the gate refuses in an answer.
    pub const GATE;

    /// A pod template switches AppArmor off.
    pub const APP_ARMOR: &str = "AppArmor";
    /// A pod template adds a capability beyond the baseline.
    pub const CAPABILITIES: &str = "Capabilities";
    /// A child is the root itself, or an owner of the root.
    pub const CHILD_IS_ROOT: &str = "ChildIsRoot";
    /// A child has a status, which its own controller writes.
    pub const CHILD_STATUS_FORBIDDEN: &str = "ChildStatusForbidden";
    /// A child is of cluster scope, and a namespaced root cannot own it.
    pub const CLUSTER_SCOPED_CHILD: &str = "ClusterScopedChild";
    /// The guest sets a condition that the API server would not take, or too many of them.
    pub const CONDITION_INVALID: &str = "ConditionInvalid";
    /// The guest sets `Ready`, `Reconciling` or `Stalled`, or one condition twice.
    pub const CONDITION_RESERVED: &str = "ConditionReserved";
    /// Two children of the answer have one id or one name, or a child has no id.
    pub const DUPLICATE_CHILD: &str = "DuplicateChild";
    /// Two patches of the answer are of one object.
    pub const DUPLICATE_PATCH: &str = "DuplicatePatch";
    /// The guest publishes an Event that the API server would not take, or too many of them.
    pub const EVENT_INVALID: &str = "EventInvalid";
    /// An eviction has no name or uid of a Pod, or the answer has too many, or the root is of cluster scope.
    pub const EVICTION_INVALID: &str = "EvictionInvalid";
    /// The guest's manifest does not declare that it evicts Pods.
    pub const EVICTION_NOT_DECLARED: &str = "EvictionNotDeclared";
    /// The Reconciler does not grant that Pods are evicted, or deleted.
    pub const EVICTION_NOT_GRANTED: &str = "EvictionNotGranted";
    /// A Service has external IPs, which are not granted.
    pub const EXTERNAL_IPS_NOT_GRANTED: &str = "ExternalIPsNotGranted";
    /// The answer says `finalized`, and the guest's manifest declares no finalizer.
    pub const FINALIZER_NOT_DECLARED: &str = "FinalizerNotDeclared";
    /// A pod template sets hostNetwork, hostPID or hostIPC.
    pub const HOST_NAMESPACES: &str = "HostNamespaces";
    /// A pod template mounts a path of the node.
    pub const HOST_PATH: &str = "HostPath";
    /// A pod template uses a port of the node.
    pub const HOST_PORTS: &str = "HostPorts";
    /// A pod template has a probe or hook that calls another host.
    pub const HOST_PROBES: &str = "HostProbes";
    /// A pod template has a Windows host process.
    pub const HOST_PROCESS: &str = "HostProcess";
    /// The guest selects by a field of which its manifest declares no index.
    pub const INDEX_NOT_DECLARED: &str = "IndexNotDeclared";
    /// An Ingress has an annotation that injects configuration and is not granted.
    pub const INGRESS_ANNOTATION_NOT_GRANTED: &str = "IngressAnnotationNotGranted";
    /// A namespaced root may neither have children of this kind nor patch such objects, whatever is granted.
    pub const KIND_FORBIDDEN: &str = "KindForbidden";
    /// The guest's manifest does not declare children of this kind.
    pub const KIND_NOT_DECLARED: &str = "KindNotDeclared";
    /// The Reconciler does not grant children of this kind.
    pub const KIND_NOT_GRANTED: &str = "KindNotGranted";
    /// A child sets a part of metadata that is not the guest's to set.
    pub const METADATA_FORBIDDEN: &str = "MetadataForbidden";
    /// A child sets a label or annotation of the host, below `pintle.dev`.
    pub const METADATA_RESERVED: &str = "MetadataReserved";
    /// A name is none that an object can have.
    pub const NAME_INVALID: &str = "NameInvalid";
    /// A child or patch is not in the root's namespace, or names none or one that is not granted where the root is of cluster scope.
    pub const NAMESPACE_FORBIDDEN: &str = "NamespaceForbidden";
    /// A need means nothing: it stands twice, or its name, time, namespace, selector or field is wrong.
    pub const NEED_INVALID: &str = "NeedInvalid";
    /// The guest's manifest does not declare that it needs this kind.
    pub const NEED_NOT_DECLARED: &str = "NeedNotDeclared";
    /// The Reconciler does not grant that the guest sees these objects.
    pub const NEED_NOT_GRANTED: &str = "NeedNotGranted";
    /// A need has more fields, a longer path or a larger selector than a look-up takes.
    pub const NEED_TOO_COMPLEX: &str = "NeedTooComplex";
    /// A pod template names its node, and so bypasses the scheduler.
    pub const NODE_NAME: &str = "NodeName";
    /// A child or patch is no Kubernetes object: a part of it is missing or of the wrong type.
    pub const OBJECT_INVALID: &str = "ObjectInvalid";
    /// The Reconciler does not grant that this field is set, or the patch sets nothing.
    pub const PATCH_FIELD_NOT_GRANTED: &str = "PatchFieldNotGranted";
    /// The guest's manifest does not declare patches of this kind, or of this field.
    pub const PATCH_NOT_DECLARED: &str = "PatchNotDeclared";
    /// The Reconciler does not grant patches of this kind.
    pub const PATCH_NOT_GRANTED: &str = "PatchNotGranted";
    /// A pod template has a privileged container.
    pub const PRIVILEGED: &str = "Privileged";
    /// A pod template has a /proc mount that hides nothing.
    pub const PROC_MOUNT: &str = "ProcMount";
    /// A pod template refers to a child of a later stage, so that each would wait for the other.
    pub const REFERENCE_IN_LATER_STAGE: &str = "ReferenceInLaterStage";
    /// A pod template refers to an object that is neither a child nor granted.
    pub const REFERENCE_NOT_GRANTED: &str = "ReferenceNotGranted";
    /// A pod template has SELinux options beyond the baseline.
    pub const SELINUX: &str = "SELinux";
    /// A pod template switches seccomp off, or sets it by an annotation.
    pub const SECCOMP: &str = "Seccomp";
    /// A Secret is of a type that hands out credentials of the cluster.
    pub const SECRET_TYPE_FORBIDDEN: &str = "SecretTypeForbidden";
    /// A pod template has a service account other than the default one.
    pub const SERVICE_ACCOUNT: &str = "ServiceAccount";
    /// A Service is of a type that is not granted.
    pub const SERVICE_TYPE_NOT_GRANTED: &str = "ServiceTypeNotGranted";
    /// A stamp is not the host's to set, or the guest's status or another stamp names it as well.
    pub const STAMP_INVALID: &str = "StampInvalid";
    /// The root's CRD has no field in which the host could name what it is about to evict.
    pub const STATUS_CANNOT_RECORD: &str = "StatusCannotRecord";
    /// The guest's status names a field that is the host's to write.
    pub const STATUS_FIELD_RESERVED: &str = "StatusFieldReserved";
    /// The guest's status, or a stamp, names a field that the root's CRD does not declare.
    pub const STATUS_FIELD_UNDECLARED: &str = "StatusFieldUndeclared";
    /// The guest's status is larger than its limit.
    pub const STATUS_TOO_LARGE: &str = "StatusTooLarge";
    /// A pod template sets a sysctl beyond the baseline.
    pub const SYSCTLS: &str = "Sysctls";
    /// A pod template projects a service account token.
    pub const TOKEN_PROJECTION: &str = "TokenProjection";
    /// The answer has more children than the Reconciler's limit.
    pub const TOO_MANY_CHILDREN: &str = "TooManyChildren";
    /// The answer has more needs than a pass looks up.
    pub const TOO_MANY_NEEDS: &str = "TooManyNeeds";
    /// The answer has more patches than the Reconciler's limit of children.
    pub const TOO_MANY_PATCHES: &str = "TooManyPatches";
    /// A pod template has a volume of a type that can carry credentials or reach the node.
    pub const VOLUME_TYPE: &str = "VolumeType";
}

/// The rules of the gate that `grants.podTemplates.allow` can except.
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

words! {
    /// What a pass says of its root that does not fail: something is still to come, or somebody has suspended the work.
    pub const WAITS;

    /// A child waits for an object that its pod template refers to, or for one of its name to be gone.
    pub const CHILD_HELD: &str = "ChildHeld";
    /// A child is not ready yet, or has failed.
    pub const CHILD_NOT_READY: &str = "ChildNotReady";
    /// The object is being deleted.
    pub const DELETING: &str = "Deleting";
    /// Pods go one at a time, and the replacement of the one before is not ready.
    pub const EVICTION_WAITING: &str = "EvictionWaiting";
    /// The children are being applied, or the objects of a Reconciler are not all listed yet.
    pub const PROGRESSING: &str = "Progressing";
    /// An object that is no longer wanted is still there.
    pub const PRUNING: &str = "Pruning";
    /// A stage waits for children of the stages before it.
    pub const STAGE_WAITING: &str = "StageWaiting";
    /// The work is suspended by somebody.
    pub const SUSPENDED: &str = "Suspended";
    /// The root is slowed, because it kept being changed without getting anywhere.
    pub const THROTTLED: &str = "Throttled";
}

words! {
    /// What else a pass says of its root: what fails, and what the API server answered.
    pub const PASS;

    /// The account may not read what the guest observes or asks to see.
    pub const ACCESS_DENIED: &str = "AccessDenied";
    /// An admission webhook or policy refuses a write.
    pub const ADMISSION_DENIED: &str = "AdmissionDenied";
    /// An object of that name exists and is not this root's, or is not any more.
    pub const ADOPTION_CONFLICT: &str = "AdoptionConflict";
    /// The API server, or a proxy before it, refused or failed without a reason of its own.
    pub const API_ERROR: &str = "ApiError";
    /// The API server could not read an object.
    pub const BAD_REQUEST: &str = "BadRequest";
    /// A child is refused for a reason that is no word which a condition can have.
    pub const CHILD_REFUSED: &str = "ChildRefused";
    /// What is to be written has changed meanwhile, or depends on other objects.
    pub const CONFLICT: &str = "Conflict";
    /// The host gave a pass an outcome that does not answer its step.
    pub const DRIVER_ERROR: &str = "DriverError";
    /// The host's own code panicked while it called the guest or loaded the module.
    pub const ENGINE_FAILED: &str = "EngineFailed";
    /// A PodDisruptionBudget does not allow an eviction.
    pub const EVICTION_BLOCKED: &str = "EvictionBlocked";
    /// The API server refuses an eviction.
    pub const EVICTION_REFUSED: &str = "EvictionRefused";
    /// A child or patch has a field that its kind does not have.
    pub const FIELD_UNDECLARED: &str = "FieldUndeclared";
    /// The host, or the account, lacks a right.
    pub const FORBIDDEN: &str = "Forbidden";
    /// The guest failed for a reason that is no word which a condition can have.
    pub const GUEST_FAILED: &str = "GuestFailed";
    /// The API server refused an object, which does not fit its kind.
    pub const INVALID: &str = "Invalid";
    /// The API server does not serve a kind: the Reconciler's own, or that of a child.
    pub const KIND_MISSING: &str = "KindMissing";
    /// Something takes Pintle's labels away from a child, so that its watch cannot see it.
    pub const LABEL_REMOVED: &str = "LabelRemoved";
    /// A LimitRange of the namespace does not allow what an object asks for.
    pub const LIMIT_RANGE: &str = "LimitRange";
    /// There is no Module of the name in `spec.module`, or none is in force.
    pub const MODULE_MISSING: &str = "ModuleMissing";
    /// The namespace is being deleted and takes no new object.
    pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
    /// The host cannot list or read what the guest asks to see.
    pub const NEED_UNREAD: &str = "NeedUnread";
    /// What is to be written, or its namespace, is not there.
    pub const NOT_FOUND: &str = "NotFound";
    /// A write was not sent, since another host leads.
    pub const NOT_LEADING: &str = "NotLeading";
    /// `Ready` is Unknown: the Reconciler was deleted, and nobody keeps the children as they should be.
    pub const NOT_RECONCILED: &str = "NotReconciled";
    /// The API server did not reply.
    pub const NO_REPLY: &str = "NoReply";
    /// The API server takes no object as large as this child or patch.
    pub const OBJECT_TOO_LARGE: &str = "ObjectTooLarge";
    /// Somebody else has set a field that is to be patched to another value.
    pub const PATCH_CONFLICT: &str = "PatchConflict";
    /// A patch is refused for a reason that is no word which a condition can have.
    pub const PATCH_REFUSED: &str = "PatchRefused";
    /// What is to be patched is not there.
    pub const PATCH_TARGET_MISSING: &str = "PatchTargetMissing";
    /// A Pod does not fit the Pod Security level of its namespace.
    pub const POD_SECURITY: &str = "PodSecurity";
    /// A ResourceQuota of the namespace has no room for an object, or asks for fields that it lacks.
    pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
    /// The host could not write the request to the guest as JSON.
    pub const REQUEST_INVALID: &str = "RequestInvalid";
    /// The root is too large to be kept, or there is no room for it beside the others.
    pub const ROOT_TOO_LARGE: &str = "RootTooLarge";
    /// The field of the root that names the account is empty, or names none that can be.
    pub const SERVICE_ACCOUNT_INVALID: &str = "ServiceAccountInvalid";
    /// The API server does not take the guest's status.
    pub const STATUS_REFUSED: &str = "StatusRefused";
    /// Everything is as it should be.
    pub const SUCCEEDED: &str = "Succeeded";
    /// The API server asks to be left alone.
    pub const TOO_MANY_REQUESTS: &str = "TooManyRequests";
}

words! {
    /// What the control loop says of Modules and Reconcilers, Events, and what commands without a cluster print.
    pub const CONTROL;

    /// The API server does not serve a kind of children that the guest may have.
    pub const CHILD_KIND_MISSING: &str = "ChildKindMissing";
    /// An older Reconciler writes as this field manager already.
    pub const FIELD_MANAGER_TAKEN: &str = "FieldManagerTaken";
    /// `StatusSchemaIncomplete`: the CRD does not declare all that the host writes.
    pub const FIELDS_UNDECLARED: &str = "FieldsUndeclared";
    /// The manifest declares an index of a kind that the host may not watch: Secrets.
    pub const INDEX_FORBIDDEN: &str = "IndexForbidden";
    /// The module reconciles another kind than the Reconciler is for.
    pub const KIND_MISMATCH: &str = "KindMismatch";
    /// `DriftUnwatched` and `NeedsUnwatched`: the host may not watch the kind.
    pub const KIND_NOT_WATCHED: &str = "KindNotWatched";
    /// An older Reconciler reconciles this kind already.
    pub const KIND_TAKEN: &str = "KindTaken";
    /// A host has become the leader.
    pub const LEADER_ELECTION: &str = "LeaderElection";
    /// The module is being loaded.
    pub const LOADING: &str = "Loading";
    /// Another module is in force for a Reconciler.
    pub const MODULE_IN_FORCE: &str = "ModuleInForce";
    /// The Module is being loaded, or the config is being checked against its schema.
    pub const MODULE_LOADING: &str = "ModuleLoading";
    /// The Module cannot be loaded, or not yet.
    pub const MODULE_NOT_READY: &str = "ModuleNotReady";
    /// The guest answers with other children in another namespace.
    pub const NAMESPACE_DEPENDENT: &str = "NamespaceDependent";
    /// `StatusSubresourceMissing`: the CRD has no status subresource.
    pub const NO_SUBRESOURCE: &str = "NoSubresource";
    /// A view breaks a law.
    pub const NOT_A_LENS: &str = "NotALens";
    /// The guest's answer depends on more than its request.
    pub const NOT_DETERMINISTIC: &str = "NotDeterministic";
    /// The guest is never content with what it got.
    pub const NOT_IDEMPOTENT: &str = "NotIdempotent";
    /// A number goes through the guest and comes out as another one that is nearly the same.
    pub const NUMBER_CHANGED: &str = "NumberChanged";
    /// The manifest declares that the guest observes children of a kind that the host may not watch: Secrets.
    pub const OBSERVE_FORBIDDEN: &str = "ObserveForbidden";
    /// The manifest declares patches of a kind that no guest may patch: Secrets.
    pub const PATCH_FORBIDDEN: &str = "PatchForbidden";
    /// A Reconciler or a Module has become ready.
    pub const READY: &str = "Ready";
    /// A root that was Stalled is ready again.
    pub const RECOVERED: &str = "Recovered";
    /// Roots have finalizers that their watch has not shown yet, so that the Reconciler keeps its own.
    pub const ROOTS_HELD: &str = "RootsHeld";
    /// The host may not read the ConfigMap of the Module.
    pub const SOURCE_FORBIDDEN: &str = "SourceForbidden";
    /// The ConfigMap of the Module has something other than base64 under its key.
    pub const SOURCE_INVALID: &str = "SourceInvalid";
    /// The source of the Module names no ConfigMap.
    pub const SOURCE_MISSING: &str = "SourceMissing";
    /// The ConfigMap of the Module, or its key, is not there.
    pub const SOURCE_NOT_FOUND: &str = "SourceNotFound";
    /// The ConfigMap of the Module could not be read.
    pub const SOURCE_UNAVAILABLE: &str = "SourceUnavailable";
    /// A field of the Reconciler or View is wrong in a way that its schema cannot say.
    pub const SPEC_INVALID: &str = "SpecInvalid";
    /// Entries of `status.pintle` name no object, or are too many.
    pub const STATUS_ENTRIES_IGNORED: &str = "StatusEntriesIgnored";
    /// `InUse`: the Module was deleted while a Reconciler uses it.
    pub const USED_BY_RECONCILER: &str = "UsedByReconciler";
    /// `InUse`: the Module was deleted while a View uses it, and no Reconciler does.
    pub const USED_BY_VIEW: &str = "UsedByView";
    /// A step of a Module: an earlier one is not done.
    pub const WAITING: &str = "Waiting";
    /// A kind cannot be watched, most often because the guest's role is not applied.
    pub const WATCH_FAILING: &str = "WatchFailing";
}

words! {
    /// What the gateway says of Views.
    pub const VIEWS;

    /// `Registered`: the APIService of the View's group and version leads to another Service.
    pub const API_SERVICE_ELSEWHERE: &str = "APIServiceElsewhere";
    /// `Registered`: there is no APIService for the View's group and version.
    pub const API_SERVICE_MISSING: &str = "APIServiceMissing";
    /// `Registered`: the API server does not reach the gateway, or does not trust its certificate yet.
    pub const API_SERVICE_UNAVAILABLE: &str = "APIServiceUnavailable";
    /// The backing kind is one that no View may show, or that no View may write.
    pub const BACKING_FORBIDDEN: &str = "BackingForbidden";
    /// The API server does not serve the backing kind.
    pub const BACKING_KIND_MISSING: &str = "BackingKindMissing";
    /// The API server itself, a CRD or another aggregated API serves the group that the view declares.
    pub const GROUP_TAKEN: &str = "GroupTaken";
    /// The View acts as its callers, and the API server is too old for that.
    pub const IMPERSONATION_UNAVAILABLE: &str = "ImpersonationUnavailable";
    /// `Registered`: the API server sends requests to the gateway.
    pub const REGISTERED_AND_AVAILABLE: &str = "Available";
    /// An older View serves this resource, or this path, already.
    pub const RESOURCE_TAKEN: &str = "ResourceTaken";
    /// The view is served.
    pub const SERVING: &str = "Serving";
    /// `spec.verbs` names create, update or patch, and the view is read-only.
    pub const VERB_UNSUPPORTED: &str = "VerbUnsupported";
    /// An older View serves another version of this resource, and shows other objects or other names.
    pub const VERSIONS_DIFFER: &str = "VersionsDiffer";
    /// The host cannot evaluate what the view declares: a part of its schema, or the path of a column.
    pub const VIEW_INVALID: &str = "ViewInvalid";
    /// The module has no view of the name in `spec.view`.
    pub const VIEW_MISSING: &str = "ViewMissing";
}

words! {
    /// The conditions that the host sets besides `Ready`, `Reconciling` and `Stalled`.
    pub const CONDITIONS;

    /// The step of a Module whose bytes were fetched.
    pub const FETCHED: &str = "Fetched";
    /// The step of a Module whose bytes are those that were asked for.
    pub const VERIFIED: &str = "Verified";
    /// The step of a Module that was compiled.
    pub const COMPILED: &str = "Compiled";
    /// A Module that is to go, and is still used.
    pub const IN_USE: &str = "InUse";
    /// Children whose changes are not seen at once.
    pub const DRIFT_UNWATCHED: &str = "DriftUnwatched";
    /// Objects shown to a guest whose changes are not seen at once.
    pub const NEEDS_UNWATCHED: &str = "NeedsUnwatched";
    /// Whether the API server sends requests for a View to the gateway.
    pub const REGISTERED: &str = "Registered";
    /// Whether the roots of a Reconciler are ready.
    pub const ROOTS_READY: &str = "RootsReady";
    /// A CRD without a status.
    pub const STATUS_SUBRESOURCE_MISSING: &str = "StatusSubresourceMissing";
    /// A CRD whose status lacks something.
    pub const STATUS_SCHEMA_INCOMPLETE: &str = "StatusSchemaIncomplete";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The words in the first columns of the tables of a text.
    fn listed(text: &str) -> Vec<&str> {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let words: BTreeSet<&str> = rows.map(|(word, _)| word).collect();
        words.into_iter().collect()
    }

    #[test]
    fn the_page_about_reasons_has_every_reason_and_condition_and_no_other() {
        let page = include_str!("../../../docs/reasons.md");
        let (reasons, conditions) = page.split_once("\n## Other conditions\n").unwrap();
        let mut words = [CONTRACT, GATE, WAITS, PASS, CONTROL, VIEWS].concat();
        words.sort_unstable();
        assert_eq!(words, listed(reasons));
        let mut words = CONDITIONS.to_vec();
        words.sort_unstable();
        assert_eq!(words, listed(conditions));
    }
}
