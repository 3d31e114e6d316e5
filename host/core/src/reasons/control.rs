//! What the control loop says of Modules and Reconcilers, Events of the host, and what commands without a cluster print.

use super::registry;

registry! {
    CHILD_KIND_MISSING = "ChildKindMissing", [Reconciler], Reconciling,
        "The API server does not serve a kind of children that the guest may have.",
        "Apply the CRD of that kind.";
    DELETED = "Deleted", [Internal], Reconciling,
        "The Module went while it waited to be compiled.",
        "Nothing is to be done.";
    FIELD_MANAGER_TAKEN = "FieldManagerTaken", [Reconciler], Stalled,
        "An older Reconciler writes as this field manager already.",
        "Set another `spec.fieldManager`, or delete one of them.";
    FIELDS_UNDECLARED = "FieldsUndeclared", [Reconciler], Other,
        "It is the reason of `StatusSchemaIncomplete`: the CRD does not declare all that the host writes.",
        "See that condition.";
    INDEX_FORBIDDEN = "IndexForbidden", [Module], Stalled,
        "The manifest declares an index of a kind that the host may not watch: Secrets.",
        "Have the guest ask for them by name.";
    KIND_MISMATCH = "KindMismatch", [Reconciler, Offline], Stalled,
        "The module reconciles another kind than the Reconciler is for.",
        "Mend `spec.module` or `spec.for` of the Reconciler.";
    KIND_NOT_WATCHED = "KindNotWatched", [Reconciler], Other,
        "It is the reason of `DriftUnwatched` and `NeedsUnwatched`: the host may not watch the kind.",
        "See those conditions.";
    KIND_TAKEN = "KindTaken", [Reconciler], Stalled,
        "An older Reconciler reconciles this kind already. This one takes over when that is deleted.",
        "Delete one of them.";
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
    MODULE_IN_FORCE = "ModuleInForce", [Event], Other,
        "Another module is in force for a Reconciler.",
        "Nothing is to be done.";
    MODULE_LOADING = "ModuleLoading", [Reconciler, View], Reconciling,
        "The Module is being loaded, or the config is being checked against its schema.",
        "Wait.";
    MODULE_NOT_READY = "ModuleNotReady", [Reconciler, View], Either,
        "The Module cannot be loaded, or not yet. One that was in force keeps working.",
        "Look at the conditions of the Module.";
    NO_SUBRESOURCE = "NoSubresource", [Reconciler], Other,
        "It is the reason of `StatusSubresourceMissing`: the CRD has no status subresource.",
        "See that condition.";
    NOT_A_LENS = "NotALens", [Offline], Stalled,
        "A view breaks a law: it does not show every object of the backing kind, or does not show what was \
         stored through it. The message has the law.",
        "Mend `show` or `store` of the view; docs/views.md explains the laws.";
    NOT_DETERMINISTIC = "NotDeterministic", [Offline], Stalled,
        "The guest's answer depends on more than its request.",
        "Mend the guest.";
    NOT_IDEMPOTENT = "NotIdempotent", [Offline], Stalled,
        "The guest is never content with what it got: its answer changes although everything is as it \
         wanted.",
        "Mend the guest.";
    NUMBER_CHANGED = "NumberChanged", [Offline], Stalled,
        "A number goes through the guest and comes out as another one that is nearly the same. The message \
         has both.",
        "Build the guest with an SDK that reads doubles exactly, and read integers beyond 2^53 as integers.";
    OBSERVE_FORBIDDEN = "ObserveForbidden", [Module], Stalled,
        "The manifest declares that the guest observes children of a kind that the host may not watch: \
         Secrets.",
        "Do not observe them.";
    PATCH_FORBIDDEN = "PatchForbidden", [Module], Stalled,
        "The manifest declares patches of a kind that no guest may patch: Secrets.",
        "Do not patch them.";
    READY = "Ready", [Event], Other,
        "A Reconciler or a Module has become ready.",
        "Nothing is to be done.";
    RECOVERED = "Recovered", [Event], Other,
        "A root that was Stalled is ready again.",
        "Nothing is to be done.";
    ROOTS_HELD = "RootsHeld", [Internal], Reconciling,
        "Roots have finalizers that their watch has not shown yet, so that the Reconciler keeps its own.",
        "Nothing is to be done.";
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
    SPEC_INVALID = "SpecInvalid", [Reconciler, View], Stalled,
        "A field of the Reconciler or View is wrong in a way that its schema cannot say. The message names \
         the field.",
        "Mend the field.";
    STATUS_ENTRIES_IGNORED = "StatusEntriesIgnored", [Event], Other,
        "Entries of `status.pintle` name no object, or are too many. The host has not written them, and \
         passes them over.",
        "See who may write the status of the root.";
    USED_BY_RECONCILER = "UsedByReconciler", [Module], Other,
        "It is the reason of `InUse`: the Module was deleted while a Reconciler uses it.",
        "Swap that Reconciler to another module: `pintle swap RECONCILER ANOTHER-MODULE`.";
    USED_BY_VIEW = "UsedByView", [Module], Other,
        "It is the reason of `InUse`: the Module was deleted while a View uses it, and no Reconciler does.",
        "Swap that View to another module: `pintle swap view/NAME ANOTHER-MODULE`.";
    WAITING = "Waiting", [Module], Other,
        "It is the reason of a step (`Fetched`, `Verified`, `Compiled`) while an earlier one is not done.",
        "Look at the step that is False.";
    WATCH_FAILING = "WatchFailing", [Reconciler], Reconciling,
        "A kind cannot be watched, most often because the guest's role is not applied.",
        "Apply the role: `pintle rbac MODULE | kubectl apply -f -`; for Secrets of a namespace \
         `deploy/namespace/secrets.yaml`.";
}
