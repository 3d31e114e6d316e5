//! Every root of a Reconciler before a module: [`Preview::plan`].

use std::sync::Arc;

use futures::{StreamExt, stream};
use pintle_api::{Namespaces, Reconciler};
use pintle_core::{
    Apply, object,
    pass::Fate,
    plan::{Instead, KindRights, PlannedRoot, Problem, Summary, Tally, Verdict, planned},
    reasons,
};
use pintle_kubernetes::Cluster;
use pintle_offline::run::misfits;
use pintle_runtime::clock;
use pintle_wit::{Failure, ObjectRef};
use serde_json::Value;

use crate::{
    Caller, PlanRequest, Preview, PreviewError,
    ask::{Asked, Asking},
    children::Children,
    needs::Needs,
    newcomers,
    reader::{Reader, reference},
    target::{Target, random},
    text,
};

/// How many roots are in work at once. Most wait for nothing but their turn to compute.
const ROOTS_AT_ONCE: usize = 32;

/// How often a plan says how far it is, in roots.
const TOLD_EVERY: usize = 10;

/// What a plan tells while it is made.
#[derive(Clone, Debug)]
pub enum Told {
    /// How far it is.
    Progress {
        /// How many roots were looked at.
        done: usize,
        /// How many there are.
        total: usize,
    },
    /// A root that would not stay as it is.
    Root(Box<PlannedRoot>),
}

impl Preview {
    /// Puts every root before a module, and says what its answers would change. Nothing is written. It ends early when its future is
    /// dropped.
    ///
    /// # Errors
    /// When there is nothing to plan: no Reconciler, a module or config that cannot come into force, or roots that may not be read.
    pub async fn plan(
        &self,
        caller: &Caller,
        request: &PlanRequest,
        tell: &mut (dyn FnMut(Told) + Send),
    ) -> Result<Summary, PreviewError> {
        let started = clock::monotonic();
        let reader = Reader::new(Cluster::new(caller.user.clone()), self.budget.clone());
        let reconciler = reader.own::<Reconciler>(&request.reconciler).await?;
        let (module, config) = (request.module.clone(), request.config.clone());
        let target = self.target(caller, &reader, reconciler, module, config).await?;
        let roots = roots(&reader, &target, request).await?;
        let alone = match roots.as_slice() {
            [root] if request.root.is_some() => Some(object::uid(root).to_owned()),
            _ => None,
        };
        let namespace = request.namespace.as_deref();
        let children = Children::list(&reader, &target, namespace, alone.as_deref()).await;
        reader.memory.sufficed()?;
        let needs = Needs::new(alone.is_none(), request.namespace.clone());
        let asking = Arc::new(Asking { reader, target, children, needs, now: clock::now() });
        let key = random()?;
        let (total, mut done, mut tally) = (roots.len(), 0, Tally::default());
        tell(Told::Progress { done, total });
        let roots = roots.into_iter().map(Arc::new);
        let mut planned = stream::iter(roots)
            .map(|root| self.plan_root(&asking, root, key, request.server))
            .buffer_unordered(ROOTS_AT_ONCE);
        while let Some(root) = planned.next().await {
            let root = root?;
            tally.add(&root);
            done += 1;
            if root.verdict != Verdict::Unchanged {
                tell(Told::Root(Box::new(root)));
            }
            if done % TOLD_EVERY == 0 || done == total {
                tell(Told::Progress { done, total });
            }
        }
        drop(planned);
        let target = &asking.target;
        let mut new_kinds =
            newcomers::newcomers(&target.binding.manifest, target.before.as_ref(), &target.binding.grants);
        // Another account, which writes the children, has roles of its own: the module's would give the host more than it needs.
        let is_host = matches!(target.account, Ok(None));
        if is_host && !new_kinds.is_empty() {
            new_kinds = newcomers::review(&asking.reader, new_kinds).await?;
        }
        let lacks = |new: &KindRights| new.missing.as_ref().is_none_or(|all| !all.is_empty());
        let may_lack = is_host && new_kinds.iter().any(lacks);
        Ok(Summary {
            reconciler: target.name.clone(),
            module: pintle_core::plan::ModuleName {
                name: target.judged.name.clone(),
                digest: target.judged.digest.clone(),
            },
            in_force: target.in_force.clone(),
            role_command: may_lack.then(|| target.reconciler.role_command(Some(&target.judged.name))),
            new_kinds,
            seconds: clock::monotonic().saturating_sub(started).as_secs_f64(),
            ..tally.summary()
        })
    }

    async fn plan_root(
        &self,
        asking: &Arc<Asking>,
        root: Arc<Value>,
        key: [u8; 32],
        server: bool,
    ) -> Result<PlannedRoot, PreviewError> {
        let asked = self.ask(asking, &root).await;
        asking.reader.memory.sufficed()?;
        let refused = if server { asking.try_applies(&asked).await } else { asking.unfit(&asked) };
        let shared = Arc::clone(asking);
        // To compare and to write YAML takes as long as the call.
        let compared = self.spawner.block(move || judge(&shared, &root, &asked, refused, key));
        compared.await.map_err(|error| {
            PreviewError::Refused(Failure::terminal(reasons::ENGINE_FAILED, error.to_string()))
        })
    }
}

/// What is said of a root.
fn judge(
    asking: &Asking,
    root: &Value,
    asked: &Asked,
    mut refused: Vec<Refused>,
    key: [u8; 32],
) -> PlannedRoot {
    let target = &asking.target;
    let mask = asking.mask(key, Instead::Word, root, asked);
    let live = |reference: &ObjectRef| asked.known.get(reference).map(Arc::as_ref);
    let mut planned =
        planned(root, &target.binding, &asked.previewed, asked.unknown.clone(), &live, &mask, &text::diff);
    if !target.judged.in_force {
        // A swap forgets them.
        planned.standing_refusals.clear();
    }
    // API servers repeat what they refuse.
    refused.iter_mut().for_each(|(_, problem)| mask.replace_in_text(&mut problem.message));
    refuse(&mut planned, refused);
    planned
}

/// What the API server would refuse: the object, and why.
pub(crate) type Refused = (ObjectRef, Problem);

/// Why a child stays as it is.
pub(crate) fn why(problem: &Problem) -> String {
    format!("the API server refuses it: {}", problem.with_path())
}

/// What the API server would refuse stands in the way of the root.
fn refuse(planned: &mut PlannedRoot, refused: Vec<Refused>) {
    for (reference, mut problem) in refused {
        let objects = planned.children.iter_mut().chain(&mut planned.patches);
        for object in objects.filter(|object| object.reference == reference) {
            object.why = Some(why(&problem));
        }
        let name = reference.to_string();
        if !problem.message.starts_with(&name) {
            problem.message = format!("{name}: {}", problem.message);
        }
        planned.failure.get_or_insert(problem);
        planned.verdict = Verdict::Fails;
    }
}

impl Asking {
    /// The children and patches that would be applied and do not fit their kinds, in the words of `pintle render`.
    pub(crate) fn unfit(&self, asked: &Asked) -> Vec<Refused> {
        let previewed = &asked.previewed;
        let children = previewed.applies.iter().flatten().map(Apply::object);
        let patches = previewed.patches.iter().filter(|patch| patch.fate == Fate::Update);
        let patches = patches.map(|patch| &patch.sent);
        let found = misfits(&self.target.schemas, children, patches, |_, _| String::new());
        found.into_iter().map(|(reference, found)| (reference, found.failure().into())).collect()
    }

    /// What the API server would say to the applies, where it refuses them.
    async fn try_applies(&self, asked: &Asked) -> Vec<Refused> {
        let mut refused = Vec::new();
        for apply in asked.previewed.applies.iter().flatten() {
            let reference = apply.reference();
            let Ok(Some(resource)) = self.reader.resource(&reference.kind()).await else { continue };
            if let Err(error) = self.reader.cluster().try_apply(&resource, apply).await {
                let reason = error.reason_word();
                refused.push((reference.clone(), Problem { reason, message: error.message, path: None }));
            }
        }
        refused
    }
}

/// The roots that the request is about.
async fn roots(reader: &Reader, target: &Target, request: &PlanRequest) -> Result<Vec<Value>, PreviewError> {
    let (resource, kind) = (&target.resource, &target.resource.kind.kind);
    if let Some(name) = &request.root {
        let (namespace, name) = match name.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (request.namespace.as_deref(), name.as_str()),
        };
        return Ok(vec![one_root(reader, target, namespace, name).await?]);
    }
    let labels = request.label_selector.as_deref();
    let spec = &target.reconciler.spec;
    let namespaces: Vec<Option<&str>> = match (request.namespace.as_deref(), &spec.namespaces) {
        (Some(namespace), _) => vec![Some(namespace)],
        (None, Namespaces::Listed(listed)) => listed.iter().map(|name| Some(name.as_str())).collect(),
        (None, _) => vec![None],
    };
    let mut roots = Vec::new();
    for namespace in namespaces {
        let namespace = namespace.filter(|_| resource.namespaced);
        let found = reader.list(resource, namespace, labels).await;
        roots.extend(found.map_err(|error| PreviewError::of(&format!("the roots of kind {kind}"), &error))?);
    }
    roots.retain(|root| spec.namespaces.includes(object::namespace(root)));
    Ok(roots)
}

/// One root of a Reconciler.
pub(crate) async fn one_root(
    reader: &Reader,
    target: &Target,
    namespace: Option<&str>,
    name: &str,
) -> Result<Value, PreviewError> {
    let resource = &target.resource;
    let namespace = namespace.filter(|_| resource.namespaced);
    let reference = reference(&resource.kind, namespace, name);
    let found = reader.get(resource, &reference).await;
    let found = found.map_err(|error| PreviewError::of(&reference.to_string(), &error))?;
    let mut found = found.ok_or_else(|| PreviewError::NotFound(format!("there is no {reference}")))?;
    object::set_kind(&mut found, resource.kind.clone());
    if !target.reconciler.spec.namespaces.includes(object::namespace(&found)) {
        let message = format!("Reconciler {} leaves out the namespace of {reference}", target.name);
        return Err(Failure::terminal(reasons::SPEC_INVALID, message).at("spec.namespaces").into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use pintle_schema::fit::Kinds;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_root_whose_child_or_patch_does_not_fit_its_kind_fails_with_the_path() {
        let deployment = |spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "blog"}, "spec": spec});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}});
        let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Thing"},
            "versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "blog"},
            "spec": {"sise": 1}});
        let kinds = Kinds::with_crds([&crd]);
        for (list, object, path, message) in [
            (
                "children",
                deployment(json!({"replicas": "3"})),
                "spec.replicas",
                r#"Deployment blog/web: "3" is not an integer"#,
            ),
            (
                "patches",
                deployment(json!({"replicas": "3"})),
                "spec.replicas",
                r#"Deployment blog/web: "3" is not an integer"#,
            ),
            ("children", thing, "spec.sise", "Thing blog/a has no field sise in its CRD; did you mean size?"),
        ] {
            let reference = object::reference(&object);
            let mut root: PlannedRoot = serde_json::from_value(json!({
                "root": {"apiVersion": "example.com/v1", "kind": "Web", "namespace": "blog", "name": "web", "uid": "u"},
                "verdict": "changed", "hasAnswer": true, "unknown": [], "standingRefusals": [], "patches": [], "evictions": [], "children": [],
                list: [{"reference": reference, "change": "update", "fields": [], "diff": ""}],
            }))
            .unwrap();
            let (children, patches) =
                if list == "children" { (vec![&object], vec![]) } else { (vec![], vec![&object]) };
            let found = misfits(&kinds, children, patches, |_, _| String::new());
            let found = found.into_iter().map(|(reference, found)| (reference, found.failure().into()));
            refuse(&mut root, found.collect());
            let problem = root.failure.expect(path);
            assert_eq!(
                (problem.path.as_deref(), problem.message.contains(message)),
                (Some(path), true),
                "{problem:?}"
            );
            assert_eq!(root.verdict, Verdict::Fails);
            let why =
                root.children.iter().chain(&root.patches).find_map(|object| object.why.clone()).expect(path);
            assert!(why.starts_with(&format!("the API server refuses it: {path}: ")), "{why}");
        }
    }
}
