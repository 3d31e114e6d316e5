//! Checks the patches of an answer, which are about objects that the root does not own.

use std::{collections::BTreeSet, fmt};

use pintle_wit::{Kind, Patch};
use serde_json::Value;

use super::{AllowedPatch, GateContext, Violations, children, pods, reasons};
use crate::object;

pub(super) fn check(
    context: &GateContext<'_>,
    patches: Vec<Patch>,
    found: &mut Violations,
) -> Vec<AllowedPatch> {
    let limit = context.limits.children as usize;
    if patches.len() > limit {
        let message = format_args!("{} patches, the limit is that of children, {limit}", patches.len());
        found.add(reasons::TOO_MANY_PATCHES, "patches", message);
        return Vec::new();
    }
    let mut seen = BTreeSet::new();
    let mut allowed = Vec::with_capacity(patches.len());
    for (index, Patch { object }) in patches.into_iter().enumerate() {
        let (before, path) = (found.count(), format!("patches[{index}].object"));
        let label = children::label_of(&object, "patch", object::name(&object));
        if let Some(object) = children::shape(object, &path, found) {
            let kind = object::kind(&object);
            if !seen.insert((kind.group().to_owned(), kind.kind.clone(), object::name(&object).to_owned())) {
                let message = format_args!("{label} is patched twice");
                found.add(reasons::DUPLICATE_PATCH, format_args!("{path}.metadata.name"), message);
            }
            kinds(context, &kind, &path, found);
            let object = place(context, object, &path, found);
            fields(context, &kind, &object, &path, found);
            pods::check(context, &BTreeSet::new(), &object, &label, &path, found);
            if found.count() == before {
                let mut grants = context.grants.patches.iter();
                let force = grants.any(|one| one.force && is_kind(&kind, &one.api_version, &one.kind));
                allowed.push(AllowedPatch { reference: object::reference(&object), object, force });
            }
        }
        found.name_since(before, &label);
    }
    allowed
}

fn kinds(context: &GateContext<'_>, kind: &Kind, path: &str, found: &mut Violations) {
    let at = format_args!("{path}.kind");
    if children::is_forbidden(kind) && object::namespace(context.root).is_some() {
        found.add(reasons::KIND_FORBIDDEN, at, format_args!("no namespaced root may patch {kind}"));
    } else if !context.manifest.patches.iter().any(|one| is_kind(kind, &one.api_version, &one.kind)) {
        let message = format_args!("the manifest does not declare that it patches {kind}");
        found.add(reasons::PATCH_NOT_DECLARED, at, message);
    } else if !context.grants.patches.iter().any(|one| is_kind(kind, &one.api_version, &one.kind)) {
        let message = format_args!("Reconciler {} does not grant patches of {kind}", context.reconciler);
        found.add(reasons::PATCH_NOT_GRANTED, at, message);
    }
}

fn is_kind(kind: &Kind, api_version: &str, name: &str) -> bool {
    kind.api_version == api_version && kind.kind == name
}

/// The object to patch, in the root's namespace: no grant allows a patch in another one.
fn place(context: &GateContext<'_>, mut object: Value, path: &str, found: &mut Violations) -> Value {
    let namespaced = context.kinds.get(&object::kind(&object)).is_none_or(|info| info.namespaced);
    let (root, named) = (object::namespace(context.root), object::namespace(&object));
    let refusal = match (namespaced, root, named) {
        (true, Some(root), None) => {
            object["metadata"]["namespace"] = root.into();
            return object;
        }
        (true, Some(root), Some(named)) if root == named => return object,
        (true, None, Some(_)) | (false, None, None) => return object,
        (true, None, None) => "the root is of cluster scope, so that the patch must name a namespace",
        (true, Some(_), Some(_)) => "a patch is of an object in the root's namespace",
        (false, Some(_), _) => "a namespaced root may not patch what is of cluster scope",
        (false, None, Some(_)) => "the kind is of cluster scope: its objects have no namespace",
    };
    found.add(reasons::NAMESPACE_FORBIDDEN, format_args!("{path}.metadata.namespace"), refusal);
    object
}

/// Every field that is set must be at or below a field that the manifest declares, and one that the Reconciler grants.
fn fields(context: &GateContext<'_>, kind: &Kind, object: &Value, path: &str, found: &mut Violations) {
    let declared = context.manifest.patches.iter().filter(|one| is_kind(kind, &one.api_version, &one.kind));
    let declared: Vec<&str> = declared.flat_map(|one| one.fields.iter().map(String::as_str)).collect();
    let granted = context.grants.patches.iter().filter(|one| is_kind(kind, &one.api_version, &one.kind));
    let granted: Vec<&str> = granted.flat_map(|one| one.fields.iter().map(String::as_str)).collect();
    let mut is_empty = true;
    each_leaf(object, &mut Vec::new(), &mut |leaf| {
        if matches!(leaf, ["apiVersion" | "kind"] | ["metadata", "name" | "namespace"]) {
            return;
        }
        is_empty = false;
        let covers = |paths: &[&str]| paths.iter().any(|path| is_below(leaf, path));
        let at = format_args!("{path}.{}", Dotted(leaf));
        if !covers(&declared) {
            let message = "the manifest does not declare that it sets this field";
            found.add(reasons::PATCH_NOT_DECLARED, at, message);
        } else if !covers(&granted) {
            let message =
                format_args!("Reconciler {} does not grant that this field is set", context.reconciler);
            found.add(reasons::PATCH_FIELD_NOT_GRANTED, at, message);
        }
    });
    if is_empty {
        found.add(reasons::PATCH_FIELD_NOT_GRANTED, path, "the patch sets nothing");
    }
}

/// A list of keys, written as a path.
struct Dotted<'a>(&'a [&'a str]);

impl fmt::Display for Dotted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, key) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { "." } else { "" })?;
            f.write_str(key)?;
        }
        Ok(())
    }
}

/// Whether a field, given by its keys, is at a dotted path or below it.
fn is_below(leaf: &[&str], path: &str) -> bool {
    let mut keys = leaf.iter();
    path.split('.').all(|step| keys.next().is_some_and(|key| *key == step))
}

/// Calls a function with the keys of every field that a value sets. A list is one field.
fn each_leaf<'a>(value: &'a Value, at: &mut Vec<&'a str>, see: &mut impl FnMut(&[&str])) {
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (key, value) in fields {
                at.push(key);
                each_leaf(value, at, see);
                at.pop();
            }
        }
        None => see(at),
    }
}
