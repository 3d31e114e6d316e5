//! What the gateway says of Views.

use super::registry;

registry! {
    ADMISSION_NOT_ASKED = "AdmissionNotAsked", [View], Other,
        "It is a reason of `AdmissionBypassed`: policies, webhooks or ResourceQuotas name the resource of the View, and not the backing kind. \
         The API server asks them about what it stores, which is the backing object.",
        "Write them for the backing kind.";
    ALL_SHOWN = "AllShown", [View], Other,
        "It is a reason of `Unshowable`: the last list of all objects showed each of them.",
        "Nothing is to be done.";
    API_SERVICE_ELSEWHERE = "APIServiceElsewhere", [View], Other,
        "It is a reason of `Registered`: the APIService of the View's group and version leads to another Service.",
        "Point it to the gateway, or serve the View under another group.";
    API_SERVICE_MISSING = "APIServiceMissing", [View], Other,
        "It is a reason of `Registered`: there is no APIService for the View's group and version, so the API server does not send \
         requests to the gateway.",
        "Run the command in the message: it applies what `pintle rbac` prints.";
    API_SERVICE_UNAVAILABLE = "APIServiceUnavailable", [View], Other,
        "It is a reason of `Registered`: the API server does not reach the gateway, or does not trust its certificate yet.",
        "Look at the conditions of the APIService. While it is unavailable, no namespace can be deleted.";
    BACKING_FORBIDDEN = "BackingForbidden", [View], Stalled,
        "The backing kind is one that no View may show: Secrets, RBAC kinds, or a kind of an aggregated API; or one that no View may write: \
         kinds of `pintle.dev`, `apps`, `batch` and `networking.k8s.io`, and Pods, PodTemplates, ReplicationControllers, Services and \
         PersistentVolumeClaims.",
        "Use another view of the module.";
    BACKING_KIND_MISSING = "BackingKindMissing", [View], Reconciling,
        "The API server does not serve the backing kind.",
        "Apply the CRD of that kind.";
    FINALIZERS_LEFT = "FinalizersLeft", [View], Reconciling,
        "The View is being deleted, and the gateway cannot take the garbage collector's finalizers of the view off the backing objects. \
         Without the View, nobody would.",
        "Where the message names a right, run the command in it. Or take them off by hand, as docs/views.md says.";
    GROUP_TAKEN = "GroupTaken", [View], Stalled,
        "The API server itself, a CRD or another aggregated API serves the group that the view declares.",
        "A view needs a group of its own. Have the guest declare another.";
    OBJECTS_UNSHOWABLE = "ObjectsUnshowable", [View], Other,
        "It is a reason of `Unshowable`: the guest fails over some objects, and will as long as they are as they are.",
        "The log of the gateway names them. Mend them, or swap to a module that shows them.";
    REGISTERED_AND_AVAILABLE = "Available", [View], Other,
        "It is a reason of `Registered`: the API server sends requests to the gateway.",
        "Nothing is to be done.";
    RESOURCE_TAKEN = "ResourceTaken", [View], Stalled,
        "An older View serves this resource, or this path, already. This one takes over when that is deleted.",
        "Delete one of them.";
    SERVING = "Serving", [View], Ready,
        "The view is served.",
        "Nothing is to be done.";
    VERB_UNSUPPORTED = "VerbUnsupported", [View], Stalled,
        "`spec.verbs` names create, update or patch, and the view is read-only.",
        "Take those verbs out of `spec.verbs`.";
    VERSIONS_DIFFER = "VersionsDiffer", [View], Stalled,
        "An older View serves another version of this resource, over another backing kind, with other labels or under other names.",
        "Two versions show the same objects under the same names. Mend one of the two views.";
    VIEW_INVALID = "ViewInvalid", [View], Stalled,
        "The host cannot evaluate what the view declares: a part of its schema, or the path of a column.",
        "Build the module anew. `pintle check` says the same.";
    VIEW_MISSING = "ViewMissing", [View], Stalled,
        "The module has no view of the name in `spec.view`.",
        "Mend `spec.module` or `spec.view`. `pintle check` lists the views of a module.";
}
