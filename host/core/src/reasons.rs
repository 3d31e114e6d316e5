//! Every reason and every condition that the host gives: what it means, and what to do.
//!
//! People match on reasons, so they are stable, and so there is one place for them. [`ALL`] is the whole list; `docs/reasons.md` is made
//! of it, and a test sees to it that the code has no other. The words of the contract stand in [`pintle_wit::reasons`], since guests use
//! them as well; here they are said what they mean to an operator. A guest's own reasons are its own.

use std::fmt::Write;

use pintle_wit::reasons as contract;

/// A reason.
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The word itself, in CamelCase.
    pub name: &'static str,
    /// Where somebody meets it.
    pub on: &'static [Object],
    /// What it says of the work.
    pub is: Is,
    /// What it means: one or two sentences.
    pub means: &'static str,
    /// What to do: one or two sentences.
    pub remedy: &'static str,
}

/// Where a reason stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A custom resource that a guest reconciles.
    Root,
    /// A Reconciler.
    Reconciler,
    /// A Module.
    Module,
    /// An Event that is published for it alone. Whatever fails a root has an Event of its reason besides.
    Event,
    /// What `pintle check`, `test` and `render` print.
    Offline,
    /// Inside the host: nobody is shown the word, at most its message in the log.
    Internal,
}

/// What a reason says of the work, which decides the condition that it stands in beside `Ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// `Ready` is True.
    Ready,
    /// The host goes on trying.
    Reconciling,
    /// Only a change can help.
    Stalled,
    /// One or the other, by what has happened.
    Either,
    /// It is no reason of `Ready`, but of another condition, or of an Event.
    Other,
}

/// A condition that the host sets on its own objects besides `Ready`, `Reconciling` and `Stalled`.
#[derive(Clone, Copy, Debug)]
pub struct ConditionType {
    /// Its type.
    pub name: &'static str,
    /// On what.
    pub on: Object,
    /// Whether True is how it should be. Otherwise it is absent when all is well.
    pub is_good: bool,
    /// What it means while it is True.
    pub means: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// Makes a constant of each reason, and the list of all. So none has a constant and no text.
macro_rules! registry {
    ($($constant:ident = $name:expr, [$($on:ident),+], $is:ident, $means:literal, $remedy:literal;)+) => {
        $(
            #[doc = $means]
            pub const $constant: &str = $name;
        )+
        /// Every reason, sorted by name.
        pub const ALL: &[Reason] = &[$(
            Reason { name: $constant, on: &[$(Object::$on),+], is: Is::$is, means: $means, remedy: $remedy },
        )+];
    };
}

registry! {
    ACCESS_DENIED = "AccessDenied", [Root], Reconciling,
        "The account may not read what the guest observes or asks to see. The message says what.",
        "Grant the account get and list on it.";
    ADOPTION_CONFLICT = "AdoptionConflict", [Root], Reconciling,
        "An object of that name exists and is not this root's, or is not any more.",
        "Delete or rename one of them, or let the root take it over with the `kubectl annotate` that the \
         message prints.";
    BEYOND_GRANT = contract::BEYOND_GRANT, [Root, Module], Reconciling,
        "The guest's answer would take more memory than the call was granted. The host calls again with \
         more.",
        "If it stays, have the guest answer with less.";
    OUT_OF_BOUNDS = contract::OUT_OF_BOUNDS, [Root, Module], Stalled,
        "The guest answered with a string that lies outside its memory.",
        "Build the guest with the SDK, or mend its bindings.";
    API_ERROR = "ApiError", [Root], Either,
        "The API server, or a proxy before it, refused or failed without a reason of its own.",
        "Read the message.";
    APP_ARMOR = "AppArmor", [Root], Stalled,
        "A pod template switches AppArmor off.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [AppArmor]`.";
    BAD_REQUEST = "BadRequest", [Root], Either,
        "The API server could not read an object, or an admission webhook refuses it. The message has its \
         words.",
        "Mend the guest, or change the policy.";
    CAPABILITIES = "Capabilities", [Root], Stalled,
        "A pod template adds a capability beyond the baseline.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Capabilities]`.";
    CAPABILITY_MISSING = contract::CAPABILITY_MISSING, [Reconciler], Stalled,
        "The Reconciler asks for what this host does not honour: a `spec.rollout.strategy` other than \
         `Immediate`.",
        "Take the field away.";
    CHILD_HELD = "ChildHeld", [Root], Reconciling,
        "A child is not written yet: one that its pod template refers to is not the root's yet, or an \
         object of its name is still being deleted. The message names it.",
        "Look at that object.";
    CHILD_KIND_MISSING = "ChildKindMissing", [Reconciler], Reconciling,
        "The API server does not serve a kind of children that the guest may have.",
        "Apply the CRD of that kind.";
    CHILD_NOT_READY = "ChildNotReady", [Root], Reconciling,
        "A child is not ready yet. The message names it.",
        "Look at the child.";
    CHILD_REFUSED = "ChildRefused", [Root], Either,
        "A child is refused for a reason that is no word which a condition can have.",
        "Read the message.";
    CHILD_STATUS_FORBIDDEN = "ChildStatusForbidden", [Root], Stalled,
        "A child has a status, which its own controller writes.",
        "Mend the guest.";
    CLUSTER_SCOPED_CHILD = "ClusterScopedChild", [Root], Stalled,
        "A child is of cluster scope, and a namespaced root cannot own it.",
        "Mend the guest.";
    COMPILE_TOO_EXPENSIVE = contract::COMPILE_TOO_EXPENSIVE, [Module], Stalled,
        "Compiling the module takes more of a processor's time, or makes more machine code, than the host \
         grants. It is not tried again while the host runs.",
        "Make the module's functions smaller, and push it under another name.";
    COMPILER_FAILED = contract::COMPILER_FAILED, [Module], Reconciling,
        "The module was not compiled this time: the compiler had too little memory, took too long, or was \
         ended. It is tried again, at most five minutes apart.",
        "If it stays, make the module smaller, or give the host a machine that is less busy.";
    CONDITION_INVALID = "ConditionInvalid", [Root], Stalled,
        "The guest sets a condition that the API server would not take, or too many of them.",
        "Mend the guest: type and reason are one CamelCase word.";
    CONDITION_RESERVED = "ConditionReserved", [Root], Stalled,
        "The guest sets `Ready`, `Reconciling` or `Stalled`, or one condition twice.",
        "Mend the guest.";
    CONFIG_INVALID = contract::CONFIG_INVALID, [Reconciler, Root], Stalled,
        "The config does not fit the module's schema, or the guest refused it. The path names the field.",
        "Mend `spec.config` of the Reconciler.";
    CONFIG_SCHEMA_INVALID = contract::CONFIG_SCHEMA_INVALID, [Module], Stalled,
        "The schema of the guest's config is no schema, is too large or recursive, or uses what this host \
         does not take. The message names the place.",
        "Mend the guest's config type; see the limits in operators.md.";
    CONFIG_TOO_EXPENSIVE = contract::CONFIG_TOO_EXPENSIVE, [Reconciler], Stalled,
        "Checking the config against the module's schema takes more than 10,000,000 steps.",
        "Make `spec.config` smaller, or the guest's schema simpler.";
    CONFLICT = "Conflict", [Root], Reconciling,
        "What is to be written has changed meanwhile, or depends on other objects. It is tried again.",
        "Nothing is to be done.";
    CORE_MODULE = contract::CORE_MODULE, [Module], Stalled,
        "The bytes are a core module, and a guest is a component.",
        "Build the guest with `pintle build`, and push it again under another name.";
    DEADLINE = contract::DEADLINE, [Root, Module], Reconciling,
        "The guest ran longer than its deadline. It is tried again, and its Reconciler gets fewer workers \
         until that ends.",
        "Mend the guest, or raise `spec.limits.timeoutMilliseconds` of the Reconciler.";
    DELETED = "Deleted", [Internal], Reconciling,
        "The Module went while it waited to be compiled.",
        "Nothing is to be done.";
    DELETING = "Deleting", [Root, Reconciler], Reconciling,
        "It is being deleted. A root waits for its guest to clean up; a Reconciler takes its finalizers off \
         its roots.",
        "Wait, or set `pintle.dev/release` on the root.";
    DIGEST_MISMATCH = contract::DIGEST_MISMATCH, [Module], Stalled,
        "The bytes do not have the digest in `spec.digest`, or that is no digest.",
        "Push the module again under another name.";
    DRIVER_ERROR = "DriverError", [Root], Reconciling,
        "The host gave a pass an outcome that does not answer its step.",
        "Report it with the message: it is a mistake of the host.";
    DUPLICATE_CHILD = "DuplicateChild", [Root], Stalled,
        "Two children of the answer have one id or one name, or a child has no id.",
        "Mend the guest.";
    DUPLICATE_PATCH = "DuplicatePatch", [Root], Stalled,
        "Two patches of the answer are of one object.",
        "Mend the guest.";
    ENGINE_FAILED = "EngineFailed", [Root, Module], Either,
        "The host's own code panicked while it called the guest or loaded the module. A call is tried again.",
        "Report it with the host's log: it is a mistake of the host.";
    EVENT_INVALID = "EventInvalid", [Root], Stalled,
        "The guest publishes an Event that the API server would not take, or too many of them.",
        "Mend the guest: the reason is one CamelCase word, and the message says something.";
    EVICTION_BLOCKED = "EvictionBlocked", [Root, Event], Reconciling,
        "A PodDisruptionBudget does not allow an eviction. It is tried again after the delay that the API \
         server asks for.",
        "Wait, or make room in the budget.";
    EVICTION_INVALID = "EvictionInvalid", [Root], Stalled,
        "An eviction has no name or uid of a Pod, there are more than the limit of children, or the root is \
         of cluster scope.",
        "Mend the guest.";
    EVICTION_NOT_DECLARED = "EvictionNotDeclared", [Root], Stalled,
        "The guest's manifest does not declare that it evicts Pods.",
        "Declare evictions in the guest's manifest, and grant them.";
    EVICTION_NOT_GRANTED = "EvictionNotGranted", [Root], Stalled,
        "The Reconciler does not grant that Pods are evicted, or deleted.",
        "Set `spec.grants.evictions` or `spec.grants.podDeletions` of the Reconciler.";
    EVICTION_REFUSED = "EvictionRefused", [Root, Event], Reconciling,
        "The API server refuses an eviction. The message has its words.",
        "Where a right is lacking, apply the role that `pintle rbac` prints, with `--pod-deletions` for \
         deletions.";
    EVICTION_WAITING = "EvictionWaiting", [Root], Reconciling,
        "Pods go one at a time, and the replacement of the one before is not ready. For one that nobody \
         makes it waits a minute.",
        "See why the replacement is not ready.";
    EXTERNAL_IPS_NOT_GRANTED = "ExternalIPsNotGranted", [Root], Stalled,
        "A Service has external IPs, which are not granted.",
        "Mend the guest, or set `spec.grants.services.externalIps` of the Reconciler.";
    FIELD_MANAGER_TAKEN = "FieldManagerTaken", [Reconciler], Stalled,
        "An older Reconciler writes as this field manager already.",
        "Set another `spec.fieldManager`, or delete one of them.";
    FIELD_UNDECLARED = "FieldUndeclared", [Root], Stalled,
        "A child or patch has a field that its kind does not have.",
        "Mend the guest, or the CRD of that kind.";
    FIELDS_UNDECLARED = "FieldsUndeclared", [Reconciler], Other,
        "It is the reason of `StatusSchemaIncomplete`: the CRD does not declare all that the host writes.",
        "See that condition.";
    FINALIZER_NOT_DECLARED = "FinalizerNotDeclared", [Root], Stalled,
        "The answer says `finalized`, and the guest's manifest declares no finalizer.",
        "Declare the finalizer in the guest's manifest, or leave `finalized` out.";
    FORBIDDEN = "Forbidden", [Root], Reconciling,
        "The host, or the account, lacks a right, or a quota or policy refuses. It is tried again at most a \
         minute apart.",
        "Apply the role that `pintle rbac` prints; where the message says `impersonate`, \
         `deploy/namespace/impersonate.yaml`. `pintle.dev/reconcile-at` hurries it.";
    FUEL = contract::FUEL, [Offline], Stalled,
        "The guest spent its fuel. Calls are counted in fuel without a cluster, and in time by a host.",
        "Mend the guest.";
    GUEST_FAILED = "GuestFailed", [Root], Either,
        "The guest failed for a reason that is no word which a condition can have.",
        "Read the message.";
    TRAP = contract::TRAP, [Root, Module], Stalled,
        "The guest's code trapped: it panicked, or did what WebAssembly forbids. Its panic message stays in \
         the sandbox.",
        "Run the guest natively on the same resource, and mend it.";
    HOST_NAMESPACES = "HostNamespaces", [Root], Stalled,
        "A pod template sets hostNetwork, hostPID or hostIPC.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [HostNamespaces]`.";
    HOST_PATH = "HostPath", [Root], Stalled,
        "A pod template mounts a path of the node.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [HostPath]`.";
    HOST_PORTS = "HostPorts", [Root], Stalled,
        "A pod template uses a port of the node.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [HostPorts]`.";
    HOST_PROBES = "HostProbes", [Root], Stalled,
        "A pod template has a probe or hook that calls another host.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [HostProbes]`.";
    HOST_PROCESS = "HostProcess", [Root], Stalled,
        "A pod template has a Windows host process.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [HostProcess]`.";
    IMPORTS = contract::IMPORTS, [Module], Stalled,
        "The component imports something. A guest imports nothing.",
        "Build the guest with `pintle build`, which builds for wasm32-unknown-unknown, without WASI.";
    INDEX_FORBIDDEN = "IndexForbidden", [Module], Stalled,
        "The manifest declares an index of a kind that the host may not watch: Secrets.",
        "Have the guest ask for them by name.";
    INDEX_NOT_DECLARED = "IndexNotDeclared", [Root], Stalled,
        "The guest selects by a field of which its manifest declares no index.",
        "Declare the index in the guest's manifest.";
    INGRESS_ANNOTATION_NOT_GRANTED = "IngressAnnotationNotGranted", [Root], Stalled,
        "An Ingress has an annotation that injects configuration and is not granted.",
        "Mend the guest, or name the annotation in `spec.grants.ingressAnnotations` of the Reconciler.";
    INVALID = "Invalid", [Root, Offline], Either,
        "The API server refused an object, which does not fit its kind. The message has its words. A taken \
         port is tried again.",
        "Mend the root or the guest. Where a field may not be changed, delete the child, and it comes back \
         as it should be.";
    INVALID_DOCUMENT = contract::INVALID_DOCUMENT, [Root, Module], Stalled,
        "The guest's answer is JSON, but not the document that it should be. The path names the place.",
        "Mend the guest.";
    INVALID_JSON = contract::INVALID_JSON, [Root, Module], Stalled,
        "The guest's answer is not JSON, has a key twice, or has a number beyond 2^53.",
        "Mend the guest.";
    INVALID_SPEC = contract::INVALID_SPEC, [Root], Stalled,
        "The resource does not fit the guest's type, or the guest refused it. The path names the field.",
        "Mend the resource.";
    NOT_UTF8 = contract::NOT_UTF8, [Root, Module], Stalled,
        "The guest's answer is not UTF-8.",
        "Build the guest with the SDK, or mend its bindings.";
    INVALID_WASM = contract::INVALID_WASM, [Module], Stalled,
        "The bytes are WebAssembly that is not valid, or that uses a feature which guests may not use.",
        "Build the guest with `pintle build`, and push it again under another name.";
    KIND_FORBIDDEN = "KindForbidden", [Root], Stalled,
        "A namespaced root may neither have children of this kind nor patch such objects, whatever is \
         granted.",
        "Mend the guest.";
    KIND_MISMATCH = "KindMismatch", [Reconciler, Offline], Stalled,
        "The module reconciles another kind than the Reconciler is for.",
        "Mend `spec.module` or `spec.for` of the Reconciler.";
    KIND_MISSING = "KindMissing", [Root, Reconciler], Reconciling,
        "The API server does not serve a kind: the Reconciler's own, at this version, or that of a child. \
         Work begins when it comes.",
        "Apply the CRD. `pintle crds DIR` prints a guest's own.";
    KIND_NOT_DECLARED = "KindNotDeclared", [Root], Stalled,
        "The guest's manifest does not declare children of this kind.",
        "Declare the kind in the guest's manifest, and grant it.";
    KIND_NOT_GRANTED = "KindNotGranted", [Root], Stalled,
        "The Reconciler does not grant children of this kind.",
        "Grant the kind in `spec.grants.children` of the Reconciler, and apply the role that `pintle rbac` \
         prints.";
    KIND_NOT_WATCHED = "KindNotWatched", [Reconciler], Other,
        "It is the reason of `DriftUnwatched` and `NeedsUnwatched`: the host may not watch the kind.",
        "See those conditions.";
    KIND_TAKEN = "KindTaken", [Reconciler], Stalled,
        "An older Reconciler reconciles this kind already. This one takes over when that is deleted.",
        "Delete one of them.";
    LABEL_REMOVED = "LabelRemoved", [Root], Reconciling,
        "Something takes Pintle's labels away from a child, most often an admission policy, so that its \
         watch cannot see it.",
        "Exempt labels of `pintle.dev` from the policy.";
    LEADER_ELECTION = "LeaderElection", [Event], Other,
        "A host has become the leader. The Event is about the Lease.",
        "Nothing is to be done.";
    LEFT_BEHIND = "LeftBehind", [Event], Other,
        "A root was let go by `pintle.dev/release`, and an object that could not be deleted, or a patch, is \
         left. The message names it.",
        "Delete the object by hand, if nobody wants it.";
    LOADING = "Loading", [Module], Reconciling,
        "The module is being loaded.",
        "Wait.";
    MANIFEST_TOO_LARGE = contract::MANIFEST_TOO_LARGE, [Module], Stalled,
        "The manifest is larger, or declares more, than a host takes. The message names the place.",
        "Declare less. Several guests may reconcile what one does.";
    MEMORY_BUDGET = contract::MEMORY_BUDGET, [Root], Reconciling,
        "The call takes more memory than this host ever has for one. It is tried again.",
        "Raise the memory limit of the host (`resources.limits.memory`, `--memory-budget`), or lower \
         `spec.limits` of the Reconciler.";
    MEMORY = contract::MEMORY, [Root, Module], Either,
        "The guest asked for more memory than its limit, or a module begins with more. A call is tried \
         again; the module is not.",
        "Mend the guest, or raise `spec.limits.memoryMebibytes` of the Reconciler.";
    METADATA_FORBIDDEN = "MetadataForbidden", [Root], Stalled,
        "A child sets a part of metadata that is not the guest's to set.",
        "Have the guest set name, namespace, labels and annotations alone.";
    METADATA_RESERVED = "MetadataReserved", [Root], Stalled,
        "A child sets a label or annotation of the host, below `pintle.dev`.",
        "Mend the guest.";
    MISSING_EXPORT = contract::MISSING_EXPORT, [Module], Stalled,
        "The component lacks an export of the contract. The message names it.",
        "Build the guest with the SDK that fits the host's version of the contract.";
    MODULE_IN_FORCE = "ModuleInForce", [Event], Other,
        "Another module is in force for a Reconciler.",
        "Nothing is to be done.";
    MODULE_LOADING = "ModuleLoading", [Reconciler], Reconciling,
        "The Module is being loaded, or the config is being checked against its schema.",
        "Wait.";
    MODULE_MISSING = "ModuleMissing", [Reconciler, Root], Reconciling,
        "There is no Module of the name in `spec.module`, or none is in force. One that was in force keeps \
         working.",
        "Push it: `pintle push NAME FILE`.";
    MODULE_NOT_READY = "ModuleNotReady", [Reconciler], Either,
        "The Module cannot be loaded, or not yet. One that was in force keeps working.",
        "Look at the conditions of the Module.";
    MODULE_TOO_LARGE = contract::MODULE_TOO_LARGE, [Module], Stalled,
        "The module, or a function of it, is larger than the host accepts, or it has too many functions. \
         The message has the limit.",
        "Make the module smaller, and push it again under another name.";
    NAME_INVALID = "NameInvalid", [Root], Stalled,
        "A name is none that an object can have. Nothing was sent.",
        "Mend the guest: lower-case letters, digits, `-` and `.`, at most 253 characters.";
    NAMESPACE_FORBIDDEN = "NamespaceForbidden", [Root], Stalled,
        "A child or patch is in a namespace that is neither the root's nor granted, or has no namespace \
         where it needs one.",
        "Mend the guest, or name the namespace in `spec.grants.children[].namespaces`. No grant lets a \
         patch leave the root's namespace.";
    NEED_INVALID = "NeedInvalid", [Root], Stalled,
        "A need means nothing: it stands twice, or its name, time, namespace, selector or field is wrong. \
         The message says which.",
        "Mend the guest.";
    NEED_NOT_DECLARED = "NeedNotDeclared", [Root], Stalled,
        "The guest's manifest does not declare that it needs this kind.",
        "Declare the need in the guest's manifest, and grant it.";
    NEED_NOT_GRANTED = "NeedNotGranted", [Root], Stalled,
        "The Reconciler does not grant that the guest sees these objects. The message says which, and where.",
        "Grant it in `spec.grants.needs` of the Reconciler, and apply the role that `pintle rbac` prints.";
    NEED_TOO_COMPLEX = "NeedTooComplex", [Root], Stalled,
        "A need has more fields, a longer path or a larger selector than a look-up takes.",
        "Have the guest ask for less.";
    NEED_UNREAD = "NeedUnread", [Root], Reconciling,
        "The host cannot list or read what the guest asks to see. The message says why.",
        "Apply the role that `pintle rbac` prints.";
    NEEDS_TOO_LARGE = contract::NEEDS_TOO_LARGE, [Root], Stalled,
        "What the guest asks to see is more than a call is shown. The message names the kind.",
        "Have the guest ask for fewer objects or fields.";
    NEEDS_UNSTABLE = contract::NEEDS_UNSTABLE, [Root], Stalled,
        "The guest still asks to see something else after it was shown what it had asked for.",
        "Mend the guest: it asks for everything that it needs every time, and for the same when it is shown \
         the same.";
    NO_REPLY = "NoReply", [Root], Reconciling,
        "The API server did not reply. It is tried again.",
        "If it stays, see whether the API server can be reached from the host.";
    NO_SUBRESOURCE = "NoSubresource", [Reconciler], Other,
        "It is the reason of `StatusSubresourceMissing`: the CRD has no status subresource.",
        "See that condition.";
    NODE_NAME = "NodeName", [Root], Stalled,
        "A pod template names its node, and so bypasses the scheduler.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [NodeName]`.";
    NOT_DETERMINISTIC = "NotDeterministic", [Offline], Stalled,
        "The guest's answer depends on more than its request.",
        "Mend the guest.";
    NOT_FOUND = "NotFound", [Root], Reconciling,
        "What is to be written, or its namespace, is not there. It is tried again.",
        "Create the namespace that the message names.";
    NOT_IDEMPOTENT = "NotIdempotent", [Offline], Stalled,
        "The guest is never content with what it got: its answer changes although everything is as it \
         wanted.",
        "Mend the guest.";
    NOT_LEADING = "NotLeading", [Root], Reconciling,
        "A write was not sent, since another host leads. That one does it.",
        "Nothing is to be done.";
    NOT_WASM = contract::NOT_WASM, [Module], Stalled,
        "The bytes are not WebAssembly in binary form.",
        "Build the guest with `pintle build`, and push it again under another name.";
    OBJECT_INVALID = "ObjectInvalid", [Root], Stalled,
        "A child or patch is no Kubernetes object: apiVersion, kind, metadata, data, labels or annotations \
         are missing or of the wrong type.",
        "Mend the guest.";
    OBJECT_TOO_LARGE = "ObjectTooLarge", [Root], Stalled,
        "A child or patch is larger than 256 KiB.",
        "Have the guest split the object.";
    OBSERVE_FORBIDDEN = "ObserveForbidden", [Module], Stalled,
        "The manifest declares that the guest observes children of a kind that the host may not watch: \
         Secrets.",
        "Do not observe them.";
    PATCH_CONFLICT = "PatchConflict", [Root], Reconciling,
        "Somebody else has set a field that is to be patched to another value. The message names whom.",
        "Take theirs away, or set `force` in `spec.grants.patches` of the Reconciler.";
    PATCH_FIELD_NOT_GRANTED = "PatchFieldNotGranted", [Root], Stalled,
        "The Reconciler does not grant that this field is set, or the patch sets nothing.",
        "Add the field to `spec.grants.patches[].fields` of the Reconciler, or mend the guest.";
    PATCH_FORBIDDEN = "PatchForbidden", [Module], Stalled,
        "The manifest declares patches of a kind that no guest may patch: Secrets.",
        "Do not patch them.";
    PATCH_NOT_DECLARED = "PatchNotDeclared", [Root], Stalled,
        "The guest's manifest does not declare patches of this kind, or of this field.",
        "Declare the patch in the guest's manifest, and grant it.";
    PATCH_NOT_GRANTED = "PatchNotGranted", [Root], Stalled,
        "The Reconciler does not grant patches of this kind.",
        "Grant the kind and its fields in `spec.grants.patches` of the Reconciler, and apply the role that \
         `pintle rbac` prints.";
    PATCH_REFUSED = "PatchRefused", [Root], Either,
        "A patch is refused for a reason that is no word which a condition can have.",
        "Read the message.";
    PATCH_TARGET_MISSING = "PatchTargetMissing", [Root], Reconciling,
        "What is to be patched is not there. A patch never creates it.",
        "Create it, or let the guest not ask for it.";
    PRIVILEGED = "Privileged", [Root], Stalled,
        "A pod template has a privileged container.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Privileged]`.";
    PROC_MOUNT = "ProcMount", [Root], Stalled,
        "A pod template has a /proc mount that hides nothing.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [ProcMount]`.";
    PROGRESSING = "Progressing", [Root, Reconciler], Reconciling,
        "The children are being applied, or the objects of a Reconciler are not all listed yet.",
        "Wait.";
    PRUNING = "Pruning", [Root], Reconciling,
        "An object that is no longer wanted is still there. The message names it.",
        "Wait. If it stays, see which finalizer keeps the object.";
    READY = "Ready", [Event], Other,
        "A Reconciler or a Module has become ready.",
        "Nothing is to be done.";
    RECOVERED = "Recovered", [Event], Other,
        "A root that was Stalled is ready again.",
        "Nothing is to be done.";
    REFERENCE_IN_LATER_STAGE = "ReferenceInLaterStage", [Root], Stalled,
        "A pod template refers to a child of a later stage, so that each would wait for the other.",
        "Have the guest put the child that is referred to into the same stage or an earlier one.";
    REFERENCE_NOT_GRANTED = "ReferenceNotGranted", [Root], Stalled,
        "A pod template refers to an object that is neither a child nor granted.",
        "Mend the guest, or grant the reference in `spec.grants.podTemplates.references` of the Reconciler.";
    REFUSALS_UNSTABLE = contract::REFUSALS_UNSTABLE, [Root], Stalled,
        "The guest's answer and what the API server refuses did not settle within three calls.",
        "Mend the guest: it gives the same answer to the same refusals.";
    REQUEST_INVALID = "RequestInvalid", [Root], Reconciling,
        "The host could not write the request to the guest as JSON.",
        "Report it: it is a mistake of the host.";
    TOO_COMPLEX = contract::TOO_COMPLEX, [Root, Module], Stalled,
        "The guest's answer has more values than 64 for each KiB that it may have. The path names the first \
         one too many.",
        "Mend the guest, or raise `spec.limits.responseKibibytes` of the Reconciler.";
    TOO_DEEP = contract::TOO_DEEP, [Root, Module], Stalled,
        "The guest's answer is nested too deeply. The path names the place.",
        "Mend the guest.";
    TOO_LARGE = contract::TOO_LARGE, [Root, Module], Stalled,
        "The guest's answer has more bytes than its limit.",
        "Mend the guest, or raise `spec.limits.responseKibibytes` of the Reconciler.";
    ROOTS_HELD = "RootsHeld", [Internal], Reconciling,
        "Roots have finalizers that their watch has not shown yet, so that the Reconciler keeps its own.",
        "Nothing is to be done.";
    SELINUX = "SELinux", [Root], Stalled,
        "A pod template has SELinux options beyond the baseline.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [SELinux]`.";
    SECCOMP = "Seccomp", [Root], Stalled,
        "A pod template switches seccomp off, or sets it by an annotation.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Seccomp]`.";
    SECRET_TYPE_FORBIDDEN = "SecretTypeForbidden", [Root], Stalled,
        "A Secret is of a type that hands out credentials of the cluster. No grant allows it.",
        "Mend the guest.";
    SERVICE_ACCOUNT = "ServiceAccount", [Root], Stalled,
        "A pod template has a service account other than the default one.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [ServiceAccount]`.";
    SERVICE_ACCOUNT_INVALID = "ServiceAccountInvalid", [Root], Stalled,
        "The field of the root that names the account is empty, or names none that can be. Nothing is \
         written for the root.",
        "Mend the root, in the field that `spec.serviceAccount.fromRoot` of the Reconciler names.";
    SERVICE_TYPE_NOT_GRANTED = "ServiceTypeNotGranted", [Root], Stalled,
        "A Service is of a type that is not granted.",
        "Mend the guest, or add the type to `spec.grants.services.types` of the Reconciler.";
    SOURCE_FORBIDDEN = "SourceForbidden", [Module], Reconciling,
        "The host may not read the ConfigMap of the Module.",
        "Push the module into `pintle-system`, where the host may read ConfigMaps, or give it a role there.";
    SOURCE_INVALID = "SourceInvalid", [Module], Reconciling,
        "The ConfigMap of the Module has something other than base64 under its key.",
        "Push the module again.";
    SOURCE_MISSING = "SourceMissing", [Module], Stalled,
        "The source of the Module names no ConfigMap.",
        "Push the module again under another name.";
    SOURCE_NOT_FOUND = "SourceNotFound", [Module], Reconciling,
        "The ConfigMap of the Module, or its key, is not there. It is looked for until it comes.",
        "Push the module again.";
    SOURCE_UNAVAILABLE = "SourceUnavailable", [Module], Reconciling,
        "The ConfigMap of the Module could not be read. The message says why, and it is tried again.",
        "If it stays, read the message.";
    SPEC_INVALID = "SpecInvalid", [Reconciler], Stalled,
        "A field of the Reconciler is wrong in a way that its schema cannot say. The message names the \
         field.",
        "Mend the field.";
    STACK = contract::STACK, [Root, Module], Stalled,
        "The guest used up its stack.",
        "Mend the guest: most often it recurses without end.";
    STAGE_WAITING = "StageWaiting", [Root], Reconciling,
        "A stage waits for children of the stages before it. The message names them.",
        "Look at those children.";
    STAMP_INVALID = "StampInvalid", [Root], Stalled,
        "A stamp is not the host's to set, or the guest's status or another stamp names it as well.",
        "Mend the guest.";
    STATUS_CANNOT_RECORD = "StatusCannotRecord", [Root], Stalled,
        "The root's CRD has no `status.pintle.patched` or `status.pintle.evicting` in which the host could \
         name what it is about to do.",
        "Add the field to the CRD. `pintle crds DIR` prints a guest's CRD with both.";
    STATUS_ENTRIES_IGNORED = "StatusEntriesIgnored", [Event], Other,
        "Entries of `status.pintle` name no object, or are too many. The host has not written them, and \
         passes them over.",
        "See who may write the status of the root.";
    STATUS_FIELD_RESERVED = "StatusFieldReserved", [Root], Stalled,
        "The guest's status names a field that is the host's to write.",
        "Mend the guest.";
    STATUS_FIELD_UNDECLARED = "StatusFieldUndeclared", [Root], Stalled,
        "The guest's status, or a stamp, names a field that the root's CRD does not declare.",
        "Add the field to the CRD's schema, or mend the guest.";
    STATUS_REFUSED = "StatusRefused", [Root], Stalled,
        "The API server does not take the guest's status. The message has its words.",
        "Mend the guest or the CRD.";
    STATUS_TOO_LARGE = "StatusTooLarge", [Root], Stalled,
        "The guest's status is larger than 64 KiB.",
        "Mend the guest.";
    SUCCEEDED = "Succeeded", [Root, Reconciler, Module], Ready,
        "Everything is as it should be. It is also the reason of each step that a Module has passed.",
        "Nothing is to be done.";
    SUSPENDED = "Suspended", [Root, Reconciler], Stalled,
        "The work is suspended by somebody: children and statuses stay as they are.",
        "Take the annotation `pintle.dev/suspend` off the root, or `spec.suspend` out of the Reconciler.";
    SYSCTLS = "Sysctls", [Root], Stalled,
        "A pod template sets a sysctl beyond the baseline.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Sysctls]`.";
    THROTTLED = "Throttled", [Root, Event], Reconciling,
        "The root is slowed, because it kept being changed without getting anywhere: another controller \
         writes the same field, or the guest cannot make up its mind. The message says what.",
        "End the fight; then set `pintle.dev/reconcile-at` on the root, or wait.";
    TOKEN_PROJECTION = "TokenProjection", [Root], Stalled,
        "A pod template projects a service account token.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [TokenProjection]`.";
    TOO_MANY_CHILDREN = "TooManyChildren", [Root], Stalled,
        "The answer has more children than the Reconciler's limit.",
        "Mend the guest, or raise `spec.limits.children` of the Reconciler.";
    TOO_MANY_FIELDS = contract::TOO_MANY_FIELDS, [Root], Reconciling,
        "The roots of the Reconciler ask for more different fields of one kind than the host keeps for \
         them. It is tried again.",
        "Have the guest ask for a field that holds them, for instance `spec`.";
    TOO_MANY_NEEDS = "TooManyNeeds", [Root], Stalled,
        "The answer has more needs than a pass looks up.",
        "Have the guest ask for less.";
    TOO_MANY_PATCHES = "TooManyPatches", [Root], Stalled,
        "The answer has more patches than the Reconciler's limit of children.",
        "Mend the guest, or raise `spec.limits.children` of the Reconciler.";
    TOO_MANY_REQUESTS = "TooManyRequests", [Root], Reconciling,
        "The API server asks to be left alone. It is tried again.",
        "If it stays, see what burdens the API server.";
    UNKNOWN_FIELD = contract::UNKNOWN_FIELD, [Root, Module], Stalled,
        "The guest's answer has a field or a variant that the contract does not know. The path names it.",
        "Mend the guest, or run a host that knows the field.";
    USED_BY_RECONCILER = "UsedByReconciler", [Module], Other,
        "It is the reason of `InUse`: the Module was deleted while a Reconciler uses it.",
        "See that condition.";
    VOLUME_TYPE = "VolumeType", [Root], Stalled,
        "A pod template has a volume of a type that can carry credentials or reach the node.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [VolumeType]`.";
    WAITING = "Waiting", [Module], Other,
        "It is the reason of a step (`Fetched`, `Verified`, `Compiled`) while an earlier one is not done.",
        "Look at the step that is False.";
    WATCH_FAILING = "WatchFailing", [Reconciler], Reconciling,
        "A kind cannot be watched, most often because the guest's role is not applied.",
        "Apply the role: `pintle rbac MODULE | kubectl apply -f -`; for Secrets of a namespace \
         `deploy/namespace/secrets.yaml`.";
    WRONG_TYPE = contract::WRONG_TYPE, [Module], Stalled,
        "An export of the contract has another type. The message has both types.",
        "Build the guest with the SDK that fits the host's version of the contract.";
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
/// A CRD without a status.
pub const STATUS_SUBRESOURCE_MISSING: &str = "StatusSubresourceMissing";
/// A CRD whose status lacks something.
pub const STATUS_SCHEMA_INCOMPLETE: &str = "StatusSchemaIncomplete";

/// Every condition that the host sets besides `Ready`, `Reconciling` and `Stalled`.
pub const CONDITION_TYPES: &[ConditionType] = &[
    ConditionType {
        name: FETCHED,
        on: Object::Module,
        is_good: true,
        means: "The host has read the module's bytes from its source.",
        remedy: "Where it is False, look at the ConfigMap that `spec.source` names.",
    },
    ConditionType {
        name: VERIFIED,
        on: Object::Module,
        is_good: true,
        means: "The bytes have the digest in `spec.digest`, and are not too large.",
        remedy: "Where it is False, push the module again under another name.",
    },
    ConditionType {
        name: COMPILED,
        on: Object::Module,
        is_good: true,
        means: "The bytes are a guest, and the host has compiled it.",
        remedy: "Where it is False, build the guest as its reason says.",
    },
    ConditionType {
        name: IN_USE,
        on: Object::Module,
        is_good: false,
        means: "The Module was deleted while a Reconciler uses it. It goes when none does any more.",
        remedy: "Swap the Reconcilers that the message names to another module.",
    },
    ConditionType {
        name: DRIFT_UNWATCHED,
        on: Object::Reconciler,
        is_good: false,
        means: "Children of a kind that the host may not watch are put right only when their root changes.",
        remedy: "Apply `deploy/namespace/secrets.yaml` in the namespace and name it in `spec.watchSecretsIn`, or leave it.",
    },
    ConditionType {
        name: NEEDS_UNWATCHED,
        on: Object::Reconciler,
        is_good: false,
        means: "The guest is shown objects that the host may not watch. It learns of a change with the root's next pass.",
        remedy: "Apply `deploy/namespace/secrets.yaml` in the namespace and name it in `spec.watchSecretsIn`, or leave it.",
    },
    ConditionType {
        name: STATUS_SUBRESOURCE_MISSING,
        on: Object::Reconciler,
        is_good: false,
        means: "The CRD of the roots has no status subresource, so that nothing but Events can be said of them.",
        remedy: "Add it to the CRD. `pintle crds DIR` prints a guest's CRD with it.",
    },
    ConditionType {
        name: STATUS_SCHEMA_INCOMPLETE,
        on: Object::Reconciler,
        is_good: false,
        means: "The CRD of the roots does not declare all that the host writes into a status. The message names what.",
        remedy: "Add it to the CRD, or leave it where no guest needs it.",
    },
];

/// The page about reasons, `docs/reasons.md`.
pub fn page() -> String {
    let mut page = String::from(INTRODUCTION);
    for (object, title) in SECTIONS {
        let _ = write!(page, "\n## {title}\n\n");
        let has_condition = !matches!(object, Object::Event | Object::Offline | Object::Internal);
        page.push_str(match has_condition {
            true => "| reason | beside `Ready` | what it means | what to do |\n| --- | --- | --- | --- |\n",
            false => "| reason | what it means | what to do |\n| --- | --- | --- |\n",
        });
        for Reason { name, is, means, remedy, .. } in ALL.iter().filter(|one| one.on.contains(object)) {
            let beside = match is {
                Is::Ready => "none; it is True",
                Is::Reconciling => "`Reconciling`",
                Is::Stalled => "`Stalled`",
                Is::Either => "`Reconciling` or `Stalled`",
                Is::Other => "not of `Ready`",
            };
            let beside = if has_condition { format!(" {beside} |") } else { String::new() };
            let _ = writeln!(page, "| `{name}` |{beside} {} | {} |", cell(means), cell(remedy));
        }
    }
    page.push_str(
        "\n## Other conditions\n\n| condition | on | True is | what True means | what to do |\n| --- | --- | --- | --- | --- |\n",
    );
    for ConditionType { name, on, is_good, means, remedy } in CONDITION_TYPES {
        let on = if *on == Object::Module { "a Module" } else { "a Reconciler" };
        let is = if *is_good { "as it should be" } else { "something to know" };
        let _ = writeln!(page, "| `{name}` | {on} | {is} | {} | {} |", cell(means), cell(remedy));
    }
    page
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = "# Reasons

What conditions and Events say. Generated from the code; see host/core/src/reasons.rs.

`Ready` is True, with the reason `Succeeded`, when everything is as it should be. Otherwise it is False, and its reason and message say \
what is first in the way. `Reconciling` is True while Pintle goes on trying, and `Stalled` when only a change can help; both are absent \
when all is well, and may have the reason of something further behind. Look at the custom resource first, then at its Reconciler, then \
at the Module. When a custom resource begins to fail, or the `Ready` of a Reconciler or a Module turns, there is also an Event of the \
same reason.

A reason that is not listed here is the guest's own, or the API server's word for what it refused: what failed on its side \
(`InternalError`, `ServiceUnavailable`) is tried again.
";

const SECTIONS: &[(Object, &str)] = &[
    (Object::Root, "Custom resources"),
    (Object::Reconciler, "Reconcilers"),
    (Object::Module, "Modules"),
    (Object::Event, "Events"),
    (Object::Offline, "What `pintle check`, `test` and `render` print"),
    (Object::Internal, "Inside the host: at most the message is logged"),
];

#[cfg(test)]
mod tests;
