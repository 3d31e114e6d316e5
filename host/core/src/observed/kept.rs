//! [`Kept`]: the form in which a child is stored between passes. It is as small as possible, but every field of [`Observed`] can be
//! restored from it.

use std::{collections::BTreeSet, mem::size_of, sync::Arc};

use pintle_wit::{ConditionStatus, Kind, ObjectRef};
use serde_json::Value;

use super::Observed;
use crate::readiness::Ready;

/// Texts that many objects have in common, each stored once: kinds, namespaces, and names of Reconcilers.
#[derive(Debug, Default)]
pub struct Names {
    texts: BTreeSet<Arc<str>>,
    kinds: BTreeSet<Arc<Kind>>,
}

impl Names {
    /// The one copy of a text.
    pub fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = text.into();
        self.texts.insert(Arc::clone(&new));
        new
    }

    /// The one copy of a kind.
    pub fn kind(&mut self, kind: Kind) -> Arc<Kind> {
        if let Some(known) = self.kinds.get(&kind) {
            return Arc::clone(known);
        }
        let new = Arc::new(kind);
        self.kinds.insert(Arc::clone(&new));
        new
    }

    /// Drops texts that nothing refers to any more, since namespaces are created and deleted.
    pub fn forget_unused(&mut self) {
        self.texts.retain(|text| Arc::strong_count(text) > 1);
        self.kinds.retain(|kind| Arc::strong_count(kind) > 1);
    }
}

/// A uid. Nearly all uids are UUIDs, which take 16 bytes instead of 36, but they need not be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Uid {
    /// A UUID as Kubernetes writes it: in lower case, with hyphens.
    Uuid([u8; 16]),
    /// Anything else.
    Other(Box<str>),
}

impl Uid {
    /// Where a UUID has its hyphens.
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];

    /// A uid from its text.
    pub fn new(text: &str) -> Self {
        Self::uuid(text).map_or_else(|| Self::Other(text.into()), Self::Uuid)
    }

    fn uuid(text: &str) -> Option<[u8; 16]> {
        let has_hyphens = Self::HYPHENS.iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        if has_hyphens { unhex(&text.replace('-', "")) } else { None }
    }

    /// The bytes that it takes beside itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Uuid(_) => 0,
            Self::Other(text) => text.len(),
        }
    }
}

impl std::fmt::Display for Uid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Other(text) => f.write_str(text),
            Self::Uuid(bytes) => {
                for (index, byte) in bytes.iter().enumerate() {
                    if matches!(index, 4 | 6 | 8 | 10) {
                        f.write_str("-")?;
                    }
                    write!(f, "{byte:02x}")?;
                }
                Ok(())
            }
        }
    }
}

/// A child between passes. It takes about 250 bytes and its name; fields that few children have are boxed.
#[derive(Clone, Debug)]
pub struct Kept {
    kind: Arc<Kind>,
    namespace: Option<Arc<str>>,
    name: Box<str>,
    uid: Uid,
    /// Its resourceVersion, or 0 if that is no plain number; in that case it is in `rare`.
    version: u64,
    controller: Option<Uid>,
    root_label: Label,
    reconciler: Option<Arc<str>>,
    desired: Desired,
    entry: Option<Box<[u8]>>,
    entry_hash: [u8; 32],
    last_writer: Option<Arc<str>>,
    object: Option<Box<[u8]>>,
    rare: Option<Box<Rare>>,
    deleting: bool,
    covered: bool,
    owns_root_label: bool,
    owns_replicas: bool,
}

/// The label with the root's uid: nearly always the controller's.
#[derive(Clone, Debug)]
enum Label {
    None,
    AsController,
    Other(Box<str>),
}

/// The annotation `pintle.dev/desired`.
#[derive(Clone, Debug)]
enum Desired {
    None,
    V1([u8; 32]),
    Other(Box<str>),
}

/// The fields that few children have.
#[derive(Clone, Debug, Default, PartialEq)]
struct Rare {
    version: Option<String>,
    adopt: Option<String>,
    /// Kept only where the label does not name the controller: nobody is told that a root controls its own child.
    controller_name: Option<String>,
    scaler: Option<String>,
    ready: Ready,
    conditions: Vec<(String, ConditionStatus, String)>,
}

impl Kept {
    /// A child as it is kept.
    pub fn of(child: Observed, names: &mut Names) -> Self {
        let Observed {
            reference,
            uid,
            resource_version,
            controller,
            controller_name,
            root_label,
            reconciler_label,
            desired,
            adopt,
            deleting,
            entry,
            entry_hash,
            last_writer,
            covered,
            owns_root_label,
            owns_replicas,
            scaler,
            ready,
            mut conditions,
            object,
        } = child;
        let version = resource_version.parse().ok().filter(|number: &u64| {
            // Only if it can be restored exactly.
            *number != 0 && number.to_string() == resource_version
        });
        conditions.shrink_to_fit();
        let rare = Rare {
            version: version.is_none().then_some(resource_version),
            adopt,
            controller_name: controller_name.filter(|_| controller != root_label),
            scaler,
            ready,
            conditions,
        };
        Self {
            kind: names.kind(Kind::new(reference.api_version, reference.kind)),
            namespace: reference.namespace.map(|namespace| names.text(&namespace)),
            name: reference.name.into(),
            uid: Uid::new(&uid),
            version: version.unwrap_or(0),
            root_label: match root_label {
                None => Label::None,
                Some(label) if controller.as_ref() == Some(&label) => Label::AsController,
                Some(label) => Label::Other(label.into()),
            },
            controller: controller.map(|uid| Uid::new(&uid)),
            reconciler: reconciler_label.map(|name| names.text(&name)),
            desired: Desired::new(desired),
            entry: entry.map(|entry| packed(&entry)),
            entry_hash,
            last_writer: last_writer.map(|manager| names.text(&manager)),
            object: object.map(|object| packed(&object)),
            rare: (rare != Rare::default()).then(|| Box::new(rare)),
            deleting,
            covered,
            owns_root_label,
            owns_replicas,
        }
    }

    /// Whether this is the object with this uid, in this version or a later one. One whose version is no plain number never is.
    pub fn is_as_new_as(&self, uid: &Uid, version: u64) -> bool {
        version != 0 && self.version >= version && self.uid == *uid
    }

    /// The child in the form with which passes work.
    pub fn observed(&self) -> Observed {
        let rare = self.rare.as_deref().cloned().unwrap_or_default();
        Observed {
            reference: self.reference(),
            uid: self.uid.to_string(),
            resource_version: rare.version.unwrap_or_else(|| self.version.to_string()),
            controller: self.controller.as_ref().map(ToString::to_string),
            controller_name: rare.controller_name,
            root_label: self.root_label(),
            reconciler_label: self.reconciler.as_deref().map(Into::into),
            desired: self.desired.text(),
            adopt: rare.adopt,
            deleting: self.deleting,
            entry: self.entry.as_deref().and_then(unpacked),
            entry_hash: self.entry_hash,
            last_writer: self.last_writer.as_deref().map(Into::into),
            covered: self.covered,
            owns_root_label: self.owns_root_label,
            owns_replicas: self.owns_replicas,
            scaler: rare.scaler,
            ready: rare.ready,
            conditions: rare.conditions,
            object: self.object.as_deref().and_then(unpacked),
        }
    }

    /// How it is named.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            api_version: self.kind.api_version.clone(),
            kind: self.kind.kind.clone(),
            namespace: self.namespace.as_deref().map(Into::into),
            name: self.name.as_ref().into(),
        }
    }

    /// Whether this is its name.
    pub fn is(&self, reference: &ObjectRef) -> bool {
        *self.name == *reference.name
            && self.namespace.as_deref() == reference.namespace.as_deref()
            && self.kind.kind == reference.kind
            && self.kind.api_version == reference.api_version
    }

    /// Its kind.
    pub fn kind(&self) -> &Arc<Kind> {
        &self.kind
    }

    /// Its namespace.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its uid.
    pub fn uid(&self) -> &Uid {
        &self.uid
    }

    /// The name in its label `pintle.dev/reconciler`.
    pub fn reconciler(&self) -> Option<&Arc<str>> {
        self.reconciler.as_ref()
    }

    /// The uids of the roots that it concerns: its controller, and the one that its label names.
    pub fn roots(&self) -> impl Iterator<Item = Uid> + '_ {
        let labelled = match &self.root_label {
            Label::Other(text) => Some(Uid::new(text)),
            Label::None | Label::AsController => None,
        };
        self.controller.iter().cloned().chain(labelled)
    }

    /// Keeps the verdict of a pass that the entry with this hash covers the object whose hash is `desired`, and drops the entry. A child
    /// that has changed since is left as it is.
    pub fn judged(&mut self, uid: &Uid, desired: &str, entry_hash: &[u8; 32]) {
        if self.uid == *uid && self.entry_hash == *entry_hash && self.desired.is(desired) {
            self.covered = true;
            self.entry = None;
        }
    }

    /// The memory that it takes, in bytes, without what it shares with others.
    pub fn bytes(&self) -> usize {
        let packed = |bytes: &Option<Box<[u8]>>| bytes.as_ref().map_or(0, |bytes| bytes.len());
        let rare = self.rare.as_ref().map_or(0, |rare| {
            let text = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
            let ready = match &rare.ready {
                Ready::Yes => 0,
                Ready::Waiting(message) | Ready::Failed(message) => message.capacity(),
            };
            let conditions = rare.conditions.iter().map(|(name, _, message)| {
                size_of::<(String, ConditionStatus, String)>() + name.capacity() + message.capacity()
            });
            let texts =
                text(&rare.version) + text(&rare.adopt) + text(&rare.controller_name) + text(&rare.scaler);
            size_of::<Rare>() + texts + ready + conditions.sum::<usize>()
        });
        let label = match &self.root_label {
            Label::Other(text) => text.len(),
            Label::None | Label::AsController => 0,
        };
        let desired = match &self.desired {
            Desired::Other(text) => text.len(),
            Desired::None | Desired::V1(_) => 0,
        };
        size_of::<Self>()
            + self.name.len()
            + self.uid.heap_bytes()
            + self.controller.as_ref().map_or(0, Uid::heap_bytes)
            + label
            + desired
            + packed(&self.entry)
            + packed(&self.object)
            + rare
    }

    fn root_label(&self) -> Option<String> {
        match &self.root_label {
            Label::None => None,
            Label::AsController => self.controller.as_ref().map(ToString::to_string),
            Label::Other(text) => Some(text.as_ref().into()),
        }
    }
}

impl Desired {
    const PREFIX: &'static str = "v1:";

    fn new(text: Option<String>) -> Self {
        let Some(text) = text else { return Self::None };
        match text.strip_prefix(Self::PREFIX).and_then(unhex) {
            Some(bytes) => Self::V1(bytes),
            None => Self::Other(text.into()),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::V1(bytes) => Some(format!("{}{}", Self::PREFIX, crate::desired::hex(bytes))),
            Self::Other(text) => Some(text.as_ref().into()),
        }
    }

    fn is(&self, text: &str) -> bool {
        match self {
            Self::None => false,
            Self::V1(bytes) => text.strip_prefix(Self::PREFIX).and_then(unhex::<32>).as_ref() == Some(bytes),
            Self::Other(other) => **other == *text,
        }
    }
}

/// The bytes of digits in lower-case hex, if there are so many.
fn unhex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    if text.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        for digit in digits {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *byte = *byte << 4 | value;
        }
    }
    Some(bytes)
}

/// A value as the bytes of its JSON, which take about a fifth of its memory.
pub(crate) fn packed(value: &Value) -> Box<[u8]> {
    // A value is plain data with string keys, so that writing it as JSON cannot fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

pub(crate) fn unpacked(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn live() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "name": "web", "namespace": "shops", "uid": "0a1b2c3d-0000-4000-8000-00000000000f", "resourceVersion": "12",
            "generation": 2, "deletionTimestamp": "2000-01-01T00:00:00Z",
            "labels": {"pintle.dev/root": "ffffffff-0000-4000-8000-000000000000", "pintle.dev/reconciler": "shop"},
            "annotations": {"pintle.dev/desired": format!("v1:{}", "ab".repeat(32)), "pintle.dev/adopt": "x"},
            "ownerReferences": [{"uid": "ffffffff-0000-4000-8000-000000000000", "controller": true}],
            "managedFields": [{"manager": "kubectl", "operation": "Update"}, {"manager": "m", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:labels": {"f:pintle.dev/root": {}}}}}]},
            "spec": {"replicas": 1.5},
            "status": {"observedGeneration": 1, "conditions": [{"type": "Available", "status": "False", "message": "m"}]}})
    }

    fn returns(observed: Observed) {
        assert_eq!(Kept::of(observed.clone(), &mut Names::default()).observed(), observed);
    }

    #[test]
    fn what_is_kept_comes_back_as_it_was() {
        let observed = Observed::of(&live(), "m", true);
        assert!(observed.owns_root_label && observed.entry.is_some() && observed.object.is_some());
        returns(observed.clone());
        returns(Observed::of(&json!({"kind": "X", "metadata": {"name": "x"}}), "m", false));
        for (odd_version, odd_text) in
            [("007", "v1:"), ("0", "v2:AB"), ("", ""), ("18446744073709551616", "x")]
        {
            returns(Observed {
                resource_version: odd_version.into(),
                desired: Some(odd_text.into()),
                root_label: Some(odd_text.into()),
                controller: None,
                uid: odd_text.into(),
                ..observed.clone()
            });
        }
        returns(Observed {
            root_label: None,
            controller_name: Some("ReplicaSet web".into()),
            ..observed.clone()
        });
        let upper = format!("v1:{}", "AB".repeat(32));
        returns(Observed {
            desired: Some(upper),
            uid: "0A1B2C3D-0000-4000-8000-00000000000F".into(),
            ..observed
        });
    }

    #[test]
    fn an_entry_is_kept_until_it_is_judged_and_a_verdict_while_nothing_changes() {
        let observed = Observed::of(&live(), "m", false);
        let mut kept = Kept::of(observed.clone(), &mut Names::default());
        let (uid, desired) = (Uid::new(&observed.uid), observed.desired.clone().unwrap());
        kept.judged(&uid, &desired, &[0; 32]);
        kept.judged(&Uid::new("other"), &desired, &observed.entry_hash);
        kept.judged(&uid, "v1:", &observed.entry_hash);
        assert_eq!(kept.observed(), observed, "a verdict on another sight says nothing of this one");
        let before = kept.bytes();
        kept.judged(&uid, &desired, &observed.entry_hash);
        let judged = kept.observed();
        assert!(judged.covered && judged.entry.is_none() && kept.bytes() < before);

        let mut later = Observed { resource_version: "13".into(), ..observed.clone() };
        later.inherit(&judged);
        assert!(later.covered && !later.differs_from(&judged));
        let mut drifted = Observed { entry_hash: [1; 32], ..observed };
        drifted.inherit(&judged);
        assert!(!drifted.covered && drifted.entry.is_some());
    }

    #[test]
    fn shared_names_are_held_once_and_not_for_ever() {
        let mut names = Names::default();
        let kept: Vec<Kept> =
            (0..3).map(|_| Kept::of(Observed::of(&live(), "m", false), &mut names)).collect();
        assert!(Arc::ptr_eq(&kept[0].kind, &kept[2].kind));
        assert_eq!((names.texts.len(), names.kinds.len()), (3, 1));
        drop(kept);
        names.forget_unused();
        assert_eq!((names.texts.len(), names.kinds.len()), (0, 0));
    }

    proptest! {
        #[test]
        fn every_uid_comes_back_as_it_was(text in "([0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})|.{0,40}") {
            prop_assert_eq!(Uid::new(&text).to_string(), text);
        }
    }
}
