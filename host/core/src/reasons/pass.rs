//! What a pass says of its root: what it waits for, and what the API server answered.

use super::registry;

registry! {
    ACCESS_DENIED = "AccessDenied", [Root], Reconciling,
        "The account may not read what the guest observes or asks to see. The message says what.",
        "Grant the account get and list on it.";
    ADOPTION_CONFLICT = "AdoptionConflict", [Root], Reconciling,
        "An object of that name exists and is not this root's, or is not any more.",
        "Delete or rename one of them. If nothing controls the object, the message prints a \
         `kubectl annotate` that lets the root take it over. If something does, the message names it.";
    API_ERROR = "ApiError", [Root], Either,
        "The API server, or a proxy before it, refused or failed without a reason of its own.",
        "Read the message.";
    BAD_REQUEST = "BadRequest", [Root], Either,
        "The API server could not read an object, or an admission webhook refuses it. The message has its \
         words.",
        "Mend the guest, or change the policy.";
    CHILD_HELD = "ChildHeld", [Root], Reconciling,
        "A child is not written yet: one that its pod template refers to is not the root's yet, or an \
         object of its name is still being deleted. The message names it.",
        "Look at that object.";
    CHILD_NOT_READY = "ChildNotReady", [Root], Reconciling,
        "A child is not ready yet. The message names it.",
        "Look at the child.";
    CHILD_REFUSED = "ChildRefused", [Root], Either,
        "A child is refused for a reason that is no word which a condition can have.",
        "Read the message.";
    CONFLICT = "Conflict", [Root], Reconciling,
        "What is to be written has changed meanwhile, or depends on other objects. It is tried again.",
        "Nothing is to be done.";
    DELETING = "Deleting", [Root, Reconciler, View], Reconciling,
        "It is being deleted. A root waits for its guest to clean up; a Reconciler takes its finalizers off \
         its roots; of a View, the gateway takes the garbage collector's finalizers off the backing objects, and answers no request any more.",
        "Wait, or set `pintle.dev/release` on the root.";
    DRIVER_ERROR = "DriverError", [Root], Reconciling,
        "The host gave a pass an outcome that does not answer its step.",
        "Report it with the message: it is a mistake of the host.";
    ENGINE_FAILED = "EngineFailed", [Root, Module], Either,
        "The host's own code panicked while it called the guest or loaded the module. A call is tried again.",
        "Report it with the host's log: it is a mistake of the host.";
    EVICTION_BLOCKED = "EvictionBlocked", [Root, Event], Reconciling,
        "A PodDisruptionBudget does not allow an eviction. It is tried again after the delay that the API \
         server asks for.",
        "Wait, or make room in the budget.";
    EVICTION_REFUSED = "EvictionRefused", [Root, Event], Reconciling,
        "The API server refuses an eviction. The message has its words.",
        "Where a right is lacking, apply the role: `pintle rbac MODULE | kubectl apply -f -`.";
    EVICTION_WAITING = "EvictionWaiting", [Root], Reconciling,
        "Pods go one at a time, and the replacement of the one before is not ready. For one that nobody \
         makes it waits a minute.",
        "See why the replacement is not ready.";
    FORBIDDEN = "Forbidden", [Root], Reconciling,
        "The host, or the account, lacks a right, or a quota or policy refuses. It is tried again at most a \
         minute apart.",
        "Apply the role: `pintle rbac MODULE | kubectl apply -f -`; where the message says \
         `impersonate`, `deploy/namespace/impersonate.yaml`. `pintle.dev/reconcile-at` hurries it.";
    GUEST_FAILED = "GuestFailed", [Root], Either,
        "The guest failed for a reason that is no word which a condition can have.",
        "Read the message.";
    INVALID = "Invalid", [Root, Offline], Either,
        "The API server refused an object, which does not fit its kind. The message has its words. A taken \
         port is tried again.",
        "Mend the root or the guest. Where a field may not be changed, delete the child, and it comes back \
         as it should be.";
    KIND_MISSING = "KindMissing", [Root, Reconciler], Reconciling,
        "The API server does not serve a kind: the Reconciler's own, at this version, or that of a child. \
         Work begins when it comes.",
        "Apply the CRD. `pintle crds DIR` prints a guest's own.";
    LABEL_REMOVED = "LabelRemoved", [Root], Reconciling,
        "Something takes Pintle's labels away from a child, most often an admission policy, so that its \
         watch cannot see it.",
        "Exempt labels of `pintle.dev` from the policy.";
    MODULE_MISSING = "ModuleMissing", [Reconciler, Root, View], Reconciling,
        "There is no Module of the name in `spec.module`, or none is in force. One that was in force keeps \
         working.",
        "Push it: `pintle push NAME FILE`.";
    NEED_UNREAD = "NeedUnread", [Root], Reconciling,
        "The host cannot list or read what the guest asks to see. The message says why.",
        "Apply the role: `pintle rbac MODULE | kubectl apply -f -`.";
    NO_REPLY = "NoReply", [Root], Reconciling,
        "The API server did not reply. It is tried again.",
        "If it stays, see whether the API server can be reached from the host.";
    NOT_FOUND = "NotFound", [Root], Reconciling,
        "What is to be written, or its namespace, is not there. It is tried again.",
        "Create the namespace that the message names.";
    NOT_LEADING = "NotLeading", [Root], Reconciling,
        "A write was not sent, since another host leads. That one does it.",
        "Nothing is to be done.";
    PATCH_CONFLICT = "PatchConflict", [Root], Reconciling,
        "Somebody else has set a field that is to be patched to another value. The message names whom.",
        "Take theirs away, or set `force` in `spec.grants.patches` of the Reconciler.";
    PATCH_REFUSED = "PatchRefused", [Root], Either,
        "A patch is refused for a reason that is no word which a condition can have.",
        "Read the message.";
    PATCH_TARGET_MISSING = "PatchTargetMissing", [Root], Reconciling,
        "What is to be patched is not there. A patch never creates it.",
        "Create it, or let the guest not ask for it.";
    PROGRESSING = "Progressing", [Root, Reconciler], Reconciling,
        "The children are being applied, or the objects of a Reconciler are not all listed yet.",
        "Wait.";
    PRUNING = "Pruning", [Root], Reconciling,
        "An object that is no longer wanted is still there. The message names it.",
        "Wait. If it stays, see which finalizer keeps the object.";
    REQUEST_INVALID = "RequestInvalid", [Root], Reconciling,
        "The host could not write the request to the guest as JSON.",
        "Report it: it is a mistake of the host.";
    STAGE_WAITING = "StageWaiting", [Root], Reconciling,
        "A stage waits for children of the stages before it. The message names them.",
        "Look at those children.";
    STATUS_REFUSED = "StatusRefused", [Root], Stalled,
        "The API server does not take the guest's status. The message has its words.",
        "Mend the guest or the CRD.";
    SUCCEEDED = "Succeeded", [Root, Reconciler, Module], Ready,
        "Everything is as it should be. It is also the reason of each step that a Module has passed.",
        "Nothing is to be done.";
    SUSPENDED = "Suspended", [Root, Reconciler, View], Stalled,
        "The work is suspended by somebody: children and statuses stay as they are, and a View answers every \
         request with 503.",
        "Take the annotation `pintle.dev/suspend` off the root, or `spec.suspend` out of the Reconciler or View.";
    THROTTLED = "Throttled", [Root, Event], Reconciling,
        "The root is slowed, because it kept being changed without getting anywhere: another controller \
         writes the same field, or the guest cannot make up its mind. The message says what.",
        "End the fight; then set `pintle.dev/reconcile-at` on the root, or wait.";
    TOO_MANY_REQUESTS = "TooManyRequests", [Root], Reconciling,
        "The API server asks to be left alone. It is tried again.",
        "If it stays, see what burdens the API server.";
}
