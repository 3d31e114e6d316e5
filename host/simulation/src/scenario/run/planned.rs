//! Steps with a plan: what a plan says of a swap, and what the swap then does.
//!
//! A plan that leaves a child as it is, and a swap that changes it, is a failure, and so is the other way round.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, ensure};
use http::Request;
use pintle_api::ReconcilerSpec;
use pintle_core::{
    conditions::HOST_CONDITIONS,
    object,
    plan::{PlannedRoot, Summary, Verdict},
    request,
};
use pintle_kubernetes::Cluster;
use pintle_offline::case;
use pintle_preview::{Caller, InspectRequest, ModuleChoice, PlanRequest, Preview, Told};
use pintle_wit::{Kind, ObjectRef};
use serde_json::{Map, Value, json};

use super::Runner;
use crate::scenario::{Backend, PlanExpectation, ScenarioStep};

/// A ConfigMap that every namespace of a cluster gets in its own time.
const CERTIFICATES: &str = "kube-root-ca.crt";

/// What a plan said of a swap, and what there was before.
pub(super) struct Planned<'a> {
    expected: &'a PlanExpectation,
    reconciler: String,
    /// Whether the module answers the same to everything.
    is_constant: bool,
    roots: Vec<PlannedRoot>,
    before: Picture,
}

/// The roots of a Reconciler, and the objects of the kinds that it may change.
struct Picture {
    roots: Vec<Value>,
    objects: BTreeMap<ObjectRef, Value>,
}

impl<B: Backend> Runner<'_, B> {
    /// Plans the swap of a step, and checks what the plan says.
    pub(super) async fn plan<'a>(
        &self,
        step: &ScenarioStep,
        expected: &'a PlanExpectation,
    ) -> anyhow::Result<Planned<'a>> {
        let request = step.plan_request().context("there is nothing to plan")?;
        let module = match &request.module {
            Some(ModuleChoice::Named(name)) => self.scenario.modules.get(name),
            _ => None,
        };
        let is_constant = module.is_some_and(|module| module.guest.is_none());
        let reconciler = self.reconciler(&request.reconciler).await?;
        let (roots, text, before) = self
            .backend
            .preview(async |preview, caller| {
                let before = self.picture(caller, &reconciler).await?;
                let (roots, summary) = plan(preview, caller, &request).await?;
                let text = serde_json::to_string(&(&roots, &summary))?;
                Ok((roots, text, before))
            })
            .await?;
        check(&roots, expected, is_constant)?;
        hides("the plan", &text, expected)?;
        Ok(Planned { expected, reconciler: request.reconciler, is_constant, roots, before })
    }

    /// What is left to do of the swap of a step: it must be over, and another plan must find nothing to change.
    pub(super) async fn left_to_do(
        &self,
        step: &ScenarioStep,
        expected: &PlanExpectation,
    ) -> anyhow::Result<Option<String>> {
        let PlanRequest { reconciler: name, .. } = step.plan_request().unwrap_or_default();
        let reconciler = self.reconciler(&name).await?;
        let (spec, status) = (&reconciler["spec"], &reconciler["status"]);
        let active = &status["active"];
        let is_over = status["observedGeneration"] == reconciler["metadata"]["generation"]
            && active["module"] == spec["module"]
            && active["config"] == spec["config"]
            && active["roots"]["reconciled"] == status["roots"]["total"];
        if !is_over {
            return Ok(Some(format!("the swap is not over: {status}")));
        }
        let request = PlanRequest { reconciler: name, ..PlanRequest::default() };
        let planned = self.backend.preview(async |preview, caller| plan(preview, caller, &request).await);
        let (roots, summary) = planned.await?;
        let is_done = summary.would_change() == Some(false) && (summary.roots.fails > 0) == expected.fails;
        Ok((!is_done).then(|| format!("a plan still says {:?}: {roots:?}", changes(&roots))))
    }

    /// Checks that a swap did what its plan said, and records every root.
    pub(super) async fn compare(&self, planned: &Planned<'_>) -> anyhow::Result<()> {
        let reconciler = self.reconciler(&planned.reconciler).await?;
        self.backend
            .preview(async |preview, caller| {
                let after = self.picture(caller, &reconciler).await?;
                // What is adopted was there before.
                let said = changes(&planned.roots);
                let said: BTreeSet<String> =
                    said.iter().map(|change| change.replacen("adopt ", "update ", 1)).collect();
                let done = differences(&planned.before.objects, &after.objects);
                ensure!(done == said, "the plan said {said:?}, and the swap did {done:?}");
                for root in &after.roots {
                    if planned.is_constant {
                        planned.compare_status(root)?;
                    }
                    planned.record(preview, caller, root).await?;
                }
                Ok(())
            })
            .await
    }

    async fn reconciler(&self, name: &str) -> anyhow::Result<Value> {
        let found = self.backend.get(&self.own("Reconciler", name)).await?;
        found.with_context(|| format!("there is no Reconciler {name}"))
    }

    async fn picture(&self, caller: &Caller, reconciler: &Value) -> anyhow::Result<Picture> {
        let spec: ReconcilerSpec = serde_json::from_value(reconciler["spec"].clone())?;
        let children = spec.grants.children.iter().flat_map(|grant| {
            let kinds = grant.kinds.iter();
            kinds.map(move |kind| Kind::new(&grant.api_version, kind))
        });
        let patches = spec.grants.patches.iter().map(|grant| Kind::new(&grant.api_version, &grant.kind));
        let mut objects = BTreeMap::new();
        for kind in children.chain(patches).collect::<BTreeSet<Kind>>() {
            for found in self.list(caller, &kind).await? {
                objects.insert(object::reference(&found), essence(found));
            }
        }
        objects.retain(|reference, _| reference.name != CERTIFICATES);
        Ok(Picture { roots: self.list(caller, &spec.r#for).await?, objects })
    }

    /// The objects of a kind in the scenario's namespace.
    async fn list(&self, caller: &Caller, kind: &Kind) -> anyhow::Result<Vec<Value>> {
        let found = Cluster::new(caller.user.clone()).discover(kind).await;
        let found = found.map_err(|error| anyhow::anyhow!("{kind}: {error}"))?;
        let Some(resource) = found else { return Ok(Vec::new()) };
        let path = resource.path(Some(&self.names.namespace), None);
        let list: Value = caller.user.request(Request::get(path).body(Vec::new())?).await?;
        let mut items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter_mut().for_each(|item| object::set_kind(item, kind.clone()));
        Ok(items)
    }
}

impl Planned<'_> {
    /// Checks that the guest's part of a root's status changed if the plan said so, and only then.
    fn compare_status(&self, root: &Value) -> anyhow::Result<()> {
        let uid = object::uid(root);
        let before = self.before.roots.iter().find(|before| object::uid(before) == uid);
        let is_changed = before.map(own_status) != Some(own_status(root));
        let is_said = self.roots.iter().any(|planned| planned.root.uid == uid && planned.status.is_some());
        ensure!(
            is_changed == is_said,
            "the status of {} changed: {is_changed}; the plan said so: {is_said}",
            object::name(root)
        );
        Ok(())
    }

    /// Checks that the golden case of a root passes, and that nothing shows what it must not.
    async fn record(&self, preview: &Preview, caller: &Caller, root: &Value) -> anyhow::Result<()> {
        let request = InspectRequest {
            kind: object::kind(root),
            namespace: object::namespace(root).map(Into::into),
            name: object::name(root).into(),
            module: None,
            proposed: None,
        };
        let inspected = preview.inspect(caller, &request).await?;
        let has_reason = inspected.failure.is_some() || inspected.note.is_some();
        ensure!(inspected.answer.is_some() != has_reason, "{inspected:?}");
        hides("the inspection", &serde_json::to_string(&inspected)?, self.expected)?;
        let recorded = preview.record(caller, &request).await?;
        let (case, result) = case::record(&recorded.guest, recorded.objects, &recorded.now)?;
        ensure!(result.passed(), "the case does not pass: {:?} {:?}", result.problems, result.message);
        // A module that always answers the same has its Secrets in itself.
        if !self.is_constant {
            hides("the case", &serde_json::to_string(&case)?, self.expected)?;
        }
        Ok(())
    }
}

async fn plan(
    preview: &Preview,
    caller: &Caller,
    request: &PlanRequest,
) -> anyhow::Result<(Vec<PlannedRoot>, Summary)> {
    let mut roots = Vec::new();
    let mut tell = |told: Told| {
        if let Told::Root(root) = told {
            roots.push(*root);
        }
    };
    let summary = preview.plan(caller, request, &mut tell).await?;
    Ok((roots, summary))
}

/// Checks what a plan says.
fn check(roots: &[PlannedRoot], expected: &PlanExpectation, is_constant: bool) -> anyhow::Result<()> {
    let said = changes(roots);
    ensure!(said == expected.says, "the plan says {said:?}, and not {:?}", expected.says);
    let changed = roots.iter().flat_map(|root| root.children.iter().chain(&root.patches));
    let fields = changed.flat_map(|change| &change.fields).map(|field| field.path.clone());
    let fields: BTreeSet<String> = fields.collect();
    ensure!(fields.is_superset(&expected.fields), "the plan names the fields {fields:?}");
    let status = roots.iter().flat_map(|root| &root.status).flat_map(|status| &status.changes);
    let status: BTreeSet<String> = status.map(|field| field.path.clone()).collect();
    ensure!(!is_constant || status == expected.status, "the plan says of the status {status:?}");
    let verdict = if expected.fails { Verdict::Fails } else { Verdict::Changed };
    let has_verdict = roots.iter().all(|root| root.verdict == verdict);
    ensure!(has_verdict, "not every root has the verdict {verdict:?}: {roots:?}");
    // Nothing is said of roots that stay as they are.
    let is_change = expected.fails || !expected.says.is_empty() || !expected.status.is_empty();
    let is_told = if is_change { !roots.is_empty() } else { roots.is_empty() || !is_constant };
    ensure!(is_told, "the plan tells of these roots: {roots:?}");
    Ok(())
}

/// What a plan says of children and patched objects, each in a few words.
fn changes(roots: &[PlannedRoot]) -> BTreeSet<String> {
    let all = roots.iter().flat_map(|root| root.children.iter().chain(&root.patches));
    all.filter(|child| child.change.writes())
        .map(|child| format!("{} {} {}", child.change.word(), child.reference.kind, child.reference.name))
        .collect()
}

/// What became of objects, in the same words.
fn differences(before: &BTreeMap<ObjectRef, Value>, after: &BTreeMap<ObjectRef, Value>) -> BTreeSet<String> {
    let all: BTreeSet<&ObjectRef> = before.keys().chain(after.keys()).collect();
    all.into_iter()
        .filter_map(|reference| {
            let word = match (before.get(reference), after.get(reference)) {
                (None, Some(_)) => "create",
                (Some(_), None) => "delete",
                (Some(old), Some(new)) if old != new => "update",
                _ => return None,
            };
            Some(format!("{word} {} {}", reference.kind, reference.name))
        })
        .collect()
}

/// An object with the fields that were applied, and without what the API server and controllers write.
fn essence(mut found: Value) -> Value {
    let entries = found.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let applied: Map<String, Value> = entries
        .filter(|entry| entry["operation"] == "Apply")
        .map(|entry| (entry["manager"].to_string(), entry["fieldsV1"].clone()))
        .collect();
    if let Some(fields) = found.as_object_mut() {
        fields.remove("status");
        fields.insert("applied".into(), applied.into());
    }
    if let Some(metadata) = found.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !["resourceVersion", "generation", "managedFields"].contains(&key.as_str()));
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("deployment.kubernetes.io/revision");
        }
    }
    found
}

/// The guest's part of a root's status: its fields, and what its conditions say.
fn own_status(root: &Value) -> (Option<Value>, Vec<Value>) {
    let conditions = root.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let is_own =
        |condition: &&Value| condition["type"].as_str().is_some_and(|name| !HOST_CONDITIONS.contains(&name));
    let said = conditions.filter(is_own).map(|condition| {
        json!([condition["type"], condition["status"], condition["reason"], condition["message"]])
    });
    (root.get("status").and_then(request::own_status), said.collect())
}

/// Checks that a text has nothing that it must not show.
fn hides(what: &str, text: &str, expected: &PlanExpectation) -> anyhow::Result<()> {
    let shown = expected.never.iter().find(|secret| text.contains(secret.as_str()));
    ensure!(shown.is_none(), "{what} shows {shown:?}: {text}");
    Ok(())
}
