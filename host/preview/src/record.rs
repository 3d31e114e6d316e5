//! A root as a golden case: [`Preview::record`].

use std::{collections::BTreeMap, sync::Arc};

use pintle_core::{
    conditions, object,
    plan::{Instead, Unknown},
    request,
};
use pintle_engine::Guest;
use pintle_wit::{Failure, ObjectRef, names};
use serde_json::{Value, json};

use crate::{
    Caller, InspectRequest, Preview, PreviewError,
    ask::{Asked, Asking},
    target::{crd, random},
};

/// What a golden case is made of.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The root, the Reconciler, and what the guest was shown besides.
    pub objects: Vec<Value>,
    /// The time of the call (RFC 3339).
    pub now: String,
    /// Who was asked.
    pub guest: Guest,
    /// The name of its module.
    pub module: String,
    /// Why there is no answer.
    pub failure: Option<Failure>,
    /// What could not be read, and may be missing in the case.
    pub unknown: Vec<Unknown>,
    /// Whether what nobody is to read was replaced, so that the answer may differ from the one in the cluster.
    pub secrets_replaced: bool,
}

impl Preview {
    /// Records a root: what its guest is shown, so that it can be asked again without a cluster.
    ///
    /// # Errors
    /// As [`Preview::inspect`].
    pub async fn record(&self, caller: &Caller, request: &InspectRequest) -> Result<Recorded, PreviewError> {
        let (asking, root) = self.about(caller, request).await?;
        let asked = self.ask(&asking, &root).await;
        asking.reader.memory.sufficed()?;
        let mask = asking.mask(random()?, Instead::Value, &root, &asked);
        let mut objects = asking.scopes().await;
        objects.push(reconciler(&asking));
        let observe = asking.target.binding.manifest.observe_status;
        objects.push(request::project_root(&root, observe));
        objects.extend(others(&asking, &root, &asked));
        objects.iter_mut().for_each(|object| mask.replace(object));
        let previewed = &asked.previewed;
        let (mut failure, mut unknown) = (previewed.failure.clone(), asked.unknown.clone());
        failure.iter_mut().for_each(|failure| mask.replace_in_text(&mut failure.message));
        unknown.iter_mut().for_each(|unknown| mask.replace_in_text(&mut unknown.why));
        Ok(Recorded {
            objects,
            now: conditions::time(asking.now),
            guest: asking.target.guest.clone(),
            module: asking.target.judged.name.clone(),
            failure,
            unknown,
            secrets_replaced: mask.is_used(),
        })
    }
}

impl Asking {
    /// The CRDs of kinds that live in no namespace, since a case takes every kind for one that does. What other CRDs say is in the objects
    /// already.
    async fn scopes(&self) -> Vec<Value> {
        let mut found = Vec::new();
        for (kind, resource) in self.reader.known() {
            let is_custom = kind.group().contains('.') && !kind.group().ends_with(".k8s.io");
            if resource.namespaced || !is_custom || kind.group() == names::DOMAIN {
                continue;
            }
            if let Ok(Some(crd)) = crd(&self.reader, &resource).await {
                found.push(json!({
                    "apiVersion": crd["apiVersion"], "kind": crd["kind"],
                    "metadata": {"name": object::name(&crd)}, "spec": crd["spec"],
                }));
            }
        }
        found
    }
}

/// The Reconciler with what a run on files looks at: config, grants and limits.
fn reconciler(asking: &Asking) -> Value {
    let target = &asking.target;
    // Plain data with string keys: it can be written as JSON.
    let mut spec = serde_json::to_value(&target.reconciler.spec).unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        for left_out in ["serviceAccount", "suspend", "rollout", "watchSecretsIn"] {
            fields.remove(left_out);
        }
        fields.insert("config".into(), target.binding.config.value().clone());
        fields.insert("module".into(), target.judged.name.clone().into());
        fields.retain(|_, value| !value.is_null());
    }
    json!({
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": target.name}, "spec": spec,
    })
}

/// What the guest was shown besides its root, and what stands in the way of its children.
fn others(asking: &Asking, root: &Value, asked: &Asked) -> Vec<Value> {
    let (target, uid) = (&asking.target, object::uid(root));
    let mut all: BTreeMap<ObjectRef, Value> = BTreeMap::new();
    for needed in &asked.needed {
        all.insert(object::reference(needed), as_somebody_elses(needed, None));
    }
    let wanted = asked.previewed.answer.iter().flat_map(|answer| answer.children());
    let listed = asking.children.of(uid).iter().map(|child| object::reference(child));
    for reference in listed.chain(wanted.map(|child| child.reference().clone())) {
        let Some(live) = asked.known.get(&reference).map(Arc::as_ref) else { continue };
        let is_own = pintle_core::observed::controller(live) == Some(uid);
        let is_shown = target.observes(&reference.kind()) || all.contains_key(&reference);
        if is_own && is_shown && object::namespace(live) == object::namespace(root) {
            all.insert(reference, request::project(live));
        } else if !is_own {
            all.insert(reference, as_somebody_elses(&request::project(live), Some(live)));
        }
    }
    // The root may be one of the objects that it asks to see.
    all.remove(&object::reference(root));
    all.into_values().collect()
}

/// An object that is not the root's. A case takes an object that says nothing of its owners for the root's own.
fn as_somebody_elses(object: &Value, live: Option<&Value>) -> Value {
    let mut object = object.clone();
    let owners = live.unwrap_or(&object).pointer("/metadata/ownerReferences").cloned();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("ownerReferences".into(), owners.unwrap_or_else(|| json!([])));
    }
    object
}
