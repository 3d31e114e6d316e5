//! What the gate refuses in an answer. A root stays so until its guest or the Reconciler changes.

use super::registry;

registry! {
    APP_ARMOR = "AppArmor", [Root], Stalled,
        "A pod template switches AppArmor off.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [AppArmor]`.";
    CAPABILITIES = "Capabilities", [Root], Stalled,
        "A pod template adds a capability beyond the baseline.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Capabilities]`.";
    CHILD_STATUS_FORBIDDEN = "ChildStatusForbidden", [Root], Stalled,
        "A child has a status, which its own controller writes.",
        "Mend the guest.";
    CLUSTER_SCOPED_CHILD = "ClusterScopedChild", [Root], Stalled,
        "A child is of cluster scope, and a namespaced root cannot own it.",
        "Mend the guest.";
    CONDITION_INVALID = "ConditionInvalid", [Root], Stalled,
        "The guest sets a condition that the API server would not take, or too many of them.",
        "Mend the guest: type and reason are one CamelCase word.";
    CONDITION_RESERVED = "ConditionReserved", [Root], Stalled,
        "The guest sets `Ready`, `Reconciling` or `Stalled`, or one condition twice.",
        "Mend the guest.";
    DUPLICATE_CHILD = "DuplicateChild", [Root], Stalled,
        "Two children of the answer have one id or one name, or a child has no id.",
        "Mend the guest.";
    DUPLICATE_PATCH = "DuplicatePatch", [Root], Stalled,
        "Two patches of the answer are of one object.",
        "Mend the guest.";
    EVENT_INVALID = "EventInvalid", [Root], Stalled,
        "The guest publishes an Event that the API server would not take, or too many of them.",
        "Mend the guest: the reason is one CamelCase word, and the message says something.";
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
    EXTERNAL_IPS_NOT_GRANTED = "ExternalIPsNotGranted", [Root], Stalled,
        "A Service has external IPs, which are not granted.",
        "Mend the guest, or set `spec.grants.services.externalIps` of the Reconciler.";
    FIELD_UNDECLARED = "FieldUndeclared", [Root], Stalled,
        "A child or patch has a field that its kind does not have.",
        "Mend the guest, or the CRD of that kind.";
    FINALIZER_NOT_DECLARED = "FinalizerNotDeclared", [Root], Stalled,
        "The answer says `finalized`, and the guest's manifest declares no finalizer.",
        "Declare the finalizer in the guest's manifest, or leave `finalized` out.";
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
    INDEX_NOT_DECLARED = "IndexNotDeclared", [Root], Stalled,
        "The guest selects by a field of which its manifest declares no index.",
        "Declare the index in the guest's manifest.";
    INGRESS_ANNOTATION_NOT_GRANTED = "IngressAnnotationNotGranted", [Root], Stalled,
        "An Ingress has an annotation that injects configuration and is not granted.",
        "Mend the guest, or name the annotation in `spec.grants.ingressAnnotations` of the Reconciler.";
    KIND_FORBIDDEN = "KindForbidden", [Root], Stalled,
        "A namespaced root may neither have children of this kind nor patch such objects, whatever is \
         granted.",
        "Mend the guest.";
    KIND_NOT_DECLARED = "KindNotDeclared", [Root], Stalled,
        "The guest's manifest does not declare children of this kind.",
        "Declare the kind in the guest's manifest, and grant it.";
    KIND_NOT_GRANTED = "KindNotGranted", [Root], Stalled,
        "The Reconciler does not grant children of this kind.",
        "Grant the kind in `spec.grants.children` of the Reconciler, and apply the role that `pintle rbac` \
         prints.";
    METADATA_FORBIDDEN = "MetadataForbidden", [Root], Stalled,
        "A child sets a part of metadata that is not the guest's to set.",
        "Have the guest set name, namespace, labels and annotations alone.";
    METADATA_RESERVED = "MetadataReserved", [Root], Stalled,
        "A child sets a label or annotation of the host, below `pintle.dev`.",
        "Mend the guest.";
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
    NODE_NAME = "NodeName", [Root], Stalled,
        "A pod template names its node, and so bypasses the scheduler.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [NodeName]`.";
    OBJECT_INVALID = "ObjectInvalid", [Root], Stalled,
        "A child or patch is no Kubernetes object: apiVersion, kind, metadata, data, labels or annotations \
         are missing or of the wrong type.",
        "Mend the guest.";
    OBJECT_TOO_LARGE = "ObjectTooLarge", [Root], Stalled,
        "A child or patch is larger than 256 KiB.",
        "Have the guest split the object.";
    PATCH_FIELD_NOT_GRANTED = "PatchFieldNotGranted", [Root], Stalled,
        "The Reconciler does not grant that this field is set, or the patch sets nothing.",
        "Add the field to `spec.grants.patches[].fields` of the Reconciler, or mend the guest.";
    PATCH_NOT_DECLARED = "PatchNotDeclared", [Root], Stalled,
        "The guest's manifest does not declare patches of this kind, or of this field.",
        "Declare the patch in the guest's manifest, and grant it.";
    PATCH_NOT_GRANTED = "PatchNotGranted", [Root], Stalled,
        "The Reconciler does not grant patches of this kind.",
        "Grant the kind and its fields in `spec.grants.patches` of the Reconciler, and apply the role that \
         `pintle rbac` prints.";
    PRIVILEGED = "Privileged", [Root], Stalled,
        "A pod template has a privileged container.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Privileged]`.";
    PROC_MOUNT = "ProcMount", [Root], Stalled,
        "A pod template has a /proc mount that hides nothing.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [ProcMount]`.";
    REFERENCE_IN_LATER_STAGE = "ReferenceInLaterStage", [Root], Stalled,
        "A pod template refers to a child of a later stage, so that each would wait for the other.",
        "Have the guest put the child that is referred to into the same stage or an earlier one.";
    REFERENCE_NOT_GRANTED = "ReferenceNotGranted", [Root], Stalled,
        "A pod template refers to an object that is neither a child nor granted.",
        "Mend the guest, or grant the reference in `spec.grants.podTemplates.references` of the Reconciler.";
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
    STAMP_INVALID = "StampInvalid", [Root], Stalled,
        "A stamp is not the host's to set, or the guest's status or another stamp names it as well.",
        "Mend the guest.";
    STATUS_CANNOT_RECORD = "StatusCannotRecord", [Root], Stalled,
        "The root's CRD has no `status.pintle.patched` or `status.pintle.evicting` in which the host could \
         name what it is about to do.",
        "Add the field to the CRD. `pintle crds DIR` prints a guest's CRD with both.";
    STATUS_FIELD_RESERVED = "StatusFieldReserved", [Root], Stalled,
        "The guest's status names a field that is the host's to write.",
        "Mend the guest.";
    STATUS_FIELD_UNDECLARED = "StatusFieldUndeclared", [Root], Stalled,
        "The guest's status, or a stamp, names a field that the root's CRD does not declare.",
        "Add the field to the CRD's schema, or mend the guest.";
    STATUS_TOO_LARGE = "StatusTooLarge", [Root], Stalled,
        "The guest's status is larger than 64 KiB.",
        "Mend the guest.";
    SYSCTLS = "Sysctls", [Root], Stalled,
        "A pod template sets a sysctl beyond the baseline.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [Sysctls]`.";
    TOKEN_PROJECTION = "TokenProjection", [Root], Stalled,
        "A pod template projects a service account token.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [TokenProjection]`.";
    TOO_MANY_CHILDREN = "TooManyChildren", [Root], Stalled,
        "The answer has more children than the Reconciler's limit.",
        "Mend the guest, or raise `spec.limits.children` of the Reconciler.";
    TOO_MANY_NEEDS = "TooManyNeeds", [Root], Stalled,
        "The answer has more needs than a pass looks up.",
        "Have the guest ask for less.";
    TOO_MANY_PATCHES = "TooManyPatches", [Root], Stalled,
        "The answer has more patches than the Reconciler's limit of children.",
        "Mend the guest, or raise `spec.limits.children` of the Reconciler.";
    VOLUME_TYPE = "VolumeType", [Root], Stalled,
        "A pod template has a volume of a type that can carry credentials or reach the node.",
        "Mend the guest, or except the rule in the Reconciler with `spec.grants.podTemplates.allow: \
         [VolumeType]`.";
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
