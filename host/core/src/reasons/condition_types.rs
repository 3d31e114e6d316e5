//! The conditions that the host sets on Modules, Reconcilers and Views besides `Ready`, `Reconciling` and `Stalled`.

use super::Object;

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

/// Whether something that judges writes names the resource of a View, and is not asked.
pub const ADMISSION_BYPASSED: &str = "AdmissionBypassed";
/// Whether there are objects that a View cannot show.
pub const UNSHOWABLE: &str = "Unshowable";

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
        means: "The Module was deleted while a Reconciler or a View uses it. It goes when none does any more.",
        remedy: "Swap the Reconcilers and Views that the message names to another module.",
    },
    ConditionType {
        name: ROOTS_READY,
        on: Object::Reconciler,
        is_good: true,
        means: "Every root of the Reconciler is ready. Where it is False, its reason is the commonest of those for which roots fail, and its \
                message names the first of them; it does not make the Reconciler's `Ready` False.",
        remedy: "Look at the roots that the message names.",
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
    ConditionType {
        name: REGISTERED,
        on: Object::View,
        is_good: true,
        means: "The API server sends requests for the View's group and version to the gateway.",
        remedy: "Where it is False, run the command in the message, or look at the APIService.",
    },
    ConditionType {
        name: ADMISSION_BYPASSED,
        on: Object::View,
        is_good: false,
        means: "A policy, a webhook or a ResourceQuota names the resource of the View, and sees no write of it: admission is that of the backing \
                kind. The message names up to three. It does not make `Ready` False.",
        remedy: "Write it for the backing kind: put that kind in the place of the resource of the View, or beside it. The gateway looks once a \
                 minute, and when a View changes.",
    },
    ConditionType {
        name: UNSHOWABLE,
        on: Object::View,
        is_good: false,
        means: "The guest could not show some objects, as of the last list of all of them. The message counts them; the log of the gateway \
                names them. It does not make `Ready` False.",
        remedy: "Mend the objects, or the guest. `pintle check` finds what a guest cannot show. With `spec.unshowable: Omit`, lists leave \
                 such objects out instead of failing.",
    },
];
