//! Request and answer of one root: [`Preview::inspect`].

use std::{collections::BTreeMap, sync::Arc};

use pintle_core::{
    Allowed, conditions, object,
    observed::status_conditions,
    plan::{ChildChange, Inspected, InspectedChild, Instead, Mask, Unknown, changes_of, plain, sources},
    reasons, request,
};
use pintle_kubernetes::Cluster;
use pintle_offline::shown::Shown;
use pintle_runtime::clock;
use pintle_wit::{Condition, Failure, ObjectRef, Request};
use serde_json::{Value, json};

use crate::{
    Caller, InspectRequest, Preview, PreviewError,
    ask::{Asked, Asking},
    children::Children,
    needs::Needs,
    plan::{one_root, why},
    reader::Reader,
    target::{Target, random, reconciler_of},
    text,
};

/// The uid of a root that no API server has seen yet. It is the uid of nothing.
const UID_OF_NONE: &str = "00000000-0000-0000-0000-000000000000";

impl Preview {
    /// Makes request and answer of a root again, from what the user may read.
    ///
    /// # Errors
    /// When there is no such root, or no Reconciler for it, or no module that could be asked.
    pub async fn inspect(
        &self,
        caller: &Caller,
        request: &InspectRequest,
    ) -> Result<Inspected, PreviewError> {
        let (asking, root) = self.about(caller, request).await?;
        let asked = self.ask(&asking, &root).await;
        asking.reader.memory.sufficed()?;
        let mask = asking.mask(random()?, Instead::Word, &root, &asked);
        Ok(inspected(&asking, &root, &asked, &mask))
    }

    /// Reads what a root is asked with.
    pub(crate) async fn about(
        &self,
        caller: &Caller,
        request: &InspectRequest,
    ) -> Result<(Asking, Arc<Value>), PreviewError> {
        let reader = Reader::new(Cluster::new(caller.user.clone()), self.budget.clone());
        let reconciler = reconciler_of(&reader, &request.kind).await?;
        let target = self.target(caller, &reader, reconciler, request.module.clone(), None).await?;
        let root = match &request.proposed {
            None => one_root(&reader, &target, request.namespace.as_deref(), &request.name).await?,
            Some(proposed) => proposed_root(&target, request, proposed.clone())?,
        };
        let uid = object::uid(&root).to_owned();
        let children = Children::list(&reader, &target, object::namespace(&root), Some(&uid)).await;
        let needs = Needs::new(false, request.namespace.clone());
        Ok((Asking { reader, target, children, needs, now: clock::now() }, Arc::new(root)))
    }
}

/// A root that is not stored, with the name that was asked for. Its children are those of its uid, so that a new one has none.
fn proposed_root(
    target: &Target,
    request: &InspectRequest,
    mut proposed: Value,
) -> Result<Value, PreviewError> {
    let resource = &target.resource;
    if !proposed.is_object() {
        return Err(Failure::terminal(reasons::SPEC_INVALID, "the root is no object").into());
    }
    object::set_kind(&mut proposed, resource.kind.clone());
    let metadata = &mut proposed["metadata"];
    if metadata.is_null() {
        *metadata = json!({});
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Failure::terminal(reasons::SPEC_INVALID, "must be an object").at("metadata").into());
    };
    metadata.insert("name".into(), request.name.as_str().into());
    match request.namespace.as_deref().filter(|_| resource.namespaced) {
        Some(namespace) => metadata.insert("namespace".into(), namespace.into()),
        None => metadata.remove("namespace"),
    };
    for (key, default) in [("uid", UID_OF_NONE), ("resourceVersion", "0")] {
        if metadata.get(key).and_then(Value::as_str).is_none_or(str::is_empty) {
            metadata.insert(key.into(), default.into());
        }
    }
    Ok(proposed)
}

fn inspected(asking: &Asking, root: &Value, asked: &Asked, mask: &Mask) -> Inspected {
    let (target, previewed) = (&asking.target, &asked.previewed);
    let hidden = |text: &str| {
        let mut text = text.to_owned();
        mask.replace_in_text(&mut text);
        text
    };
    let request = asked.request.as_ref().map(|request| shown_request(request, mask));
    let live = |reference: &ObjectRef| asked.known.get(reference).map(Arc::as_ref);
    let answer =
        previewed.answer.as_ref().map(|allowed| shown_answer(root, allowed, asked.request.as_ref(), mask));
    let (children, patches) = changes_of(&target.binding, previewed, &live, mask, &text::diff);
    let wanted = |reference: &ObjectRef| {
        let mut children = previewed.answer.iter().flat_map(Allowed::children);
        let child = children.find(|child| child.reference() == reference)?;
        Some(mask.object(&plain(child.object())))
    };
    let refused: BTreeMap<_, _> = asking.unfit(asked).into_iter().collect();
    let children = children.into_iter().chain(patches).map(|change| InspectedChild {
        wanted: wanted(&change.reference),
        live: live(&change.reference).map(|live| mask.object(&request::project(live))),
        change: ChildChange {
            why: refused.get(&change.reference).map(why).or(change.why).as_deref().map(&hidden),
            ..change
        },
    });
    let children = children.collect();
    let mut unknown = asked.unknown.clone();
    unknown.extend(
        previewed
            .unread
            .iter()
            .map(|(reference, error)| Unknown { what: reference.to_string(), why: error.to_string() }),
    );
    let before = root.get("status").map(status_conditions).unwrap_or_default();
    let ready = conditions::find(&before, conditions::READY);
    let mut failure = previewed.failure.clone();
    failure.iter_mut().for_each(|failure| failure.message = hidden(&failure.message));
    unknown.iter_mut().for_each(|unknown| unknown.why = hidden(&unknown.why));
    let ready = ready.map(|ready| Condition { message: hidden(&ready.message), ..ready.clone() });
    Inspected {
        reconciler: target.name.clone(),
        module: target.judged.clone(),
        as_of: conditions::time(asking.now),
        request,
        answer,
        failure: failure.map(Into::into),
        note: previewed.idle.as_deref().map(hidden),
        ready,
        children,
        unknown,
        secrets_replaced: mask.is_used(),
    }
}

impl Asking {
    /// What hides in all that is said of a root what nobody is to read.
    pub(crate) fn mask(&self, key: [u8; 32], instead: Instead, root: &Value, asked: &Asked) -> Mask {
        let live = |reference: &ObjectRef| asked.known.get(reference).map(Arc::as_ref);
        let request = asked.request.iter();
        let shown = request.flat_map(|request| {
            let needed = request.needs.iter().flat_map(|need| &need.objects);
            std::iter::once(&request.object).chain(&request.children).chain(needed)
        });
        let read = asked.known.all().chain(&asked.needed);
        let objects = std::iter::once(root).chain(shown).chain(read).chain(sources(&asked.previewed, &live));
        Mask::new(key, instead, self.target.marks.clone(), objects)
    }
}

/// A request as it may be shown.
fn shown_request(request: &Request, mask: &Mask) -> Value {
    let mut request = request.clone();
    let needed = request.needs.iter_mut().flat_map(|need| &mut need.objects);
    std::iter::once(&mut request.object)
        .chain(&mut request.children)
        .chain(needed)
        .for_each(|object| mask.replace(object));
    // Plain data with string keys: it can be written as JSON.
    let mut shown = serde_json::to_value(&request).unwrap_or_default();
    mask.replace_copies(&mut shown);
    shown
}

/// An answer as `pintle render` prints it, and as it may be shown.
fn shown_answer(root: &Value, allowed: &Allowed, request: Option<&Request>, mask: &Mask) -> Value {
    let needs = request.iter().flat_map(|request| &request.needs).map(|answered| answered.need.clone());
    let mut shown = Shown::of(allowed.clone(), root, needs.collect()).without_empty();
    shown.needs.take_if(|needs| needs.is_empty());
    shown.children.iter_mut().flatten().for_each(|child| mask.replace(child));
    shown.patches.iter_mut().for_each(|patch| mask.replace(&mut patch["object"]));
    // Plain data with string keys: it can be written as JSON.
    let mut answer = serde_json::to_value(&shown).unwrap_or_default();
    if let Some(status) = answer.get_mut("status") {
        mask.replace_in(&object::kind(root), "status", status);
    }
    mask.replace_copies(&mut answer);
    answer
}
