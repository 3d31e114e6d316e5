//! Plans against what the host then really does: each scenario of scenarios.yaml is planned, then swapped, and then compared. Afterwards
//! every root is recorded, and the case must pass.
//!
//! It needs a cluster with a host, and knows nothing of what kind of cluster it is: an API server in memory, or a real one.

mod scenario;
mod shows;

use std::{collections::BTreeSet, fs, path::PathBuf};

use crate::{Look, eventually};
use anyhow::{Context, bail, ensure};
use futures::{StreamExt, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, ListParams, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use pintle_core::{
    object,
    plan::{ChildChange, PlannedRoot, Verdict},
};
use pintle_engine::{Digest, Engine, EngineConfig, Meter, fixtures};
use pintle_kubernetes::{Cluster, Resource};
use pintle_modules::Budget;
use pintle_offline::case;
use pintle_preview::{Caller, InspectRequest, ModuleChoice, PlanRequest, Preview, Told};
use pintle_runtime::{Spawner, clock};
use pintle_wit::{Kind, ObjectRef, schema::host_status_properties};
use serde_json::{Value, json};

use scenario::Scenario;
use shows::{Snapshot, changes, essence, happened, has_none_of, own_status, secrets_of};

/// How many scenarios run at once: they mostly wait.
const AT_ONCE: usize = 6;

const GROUP: &str = "acceptance.pintle.dev";

/// A custom section of a component, called `note` and empty: other bytes with the same logic.
const NOTE: [u8; 7] = [0, 5, 4, b'n', b'o', b't', b'e'];

/// What the scenarios run on.
pub struct Bench {
    client: Client,
    cluster: Cluster,
    preview: Preview,
    caller: Caller,
    guests: PathBuf,
    /// Tells this run from others on the same cluster: letters.
    run: String,
}

impl Bench {
    pub fn new(client: Client, guests: PathBuf, run: &str) -> anyhow::Result<Self> {
        let engine = Engine::new(EngineConfig::new(Meter::Fuel, clock::monotonic))?;
        Ok(Self {
            cluster: Cluster::new(client.clone()),
            preview: Preview::new(engine, None, Budget::fixed(1 << 30), Spawner::default()),
            caller: Caller { user: client.clone(), modules: client.clone() },
            client,
            guests,
            run: run.into(),
        })
    }

    /// Runs every scenario whose name has one of these parts, one after the other, and says how each ended.
    pub async fn run(
        &self,
        filters: &[String],
        mut say: impl FnMut(&str, Result<(), anyhow::Error>),
    ) -> anyhow::Result<()> {
        let text = include_str!("previews/scenarios.yaml").replace("$RUN", &self.run);
        let scenarios: Vec<Scenario> = serde_saphyr::from_str(&text)?;
        let is_wanted = |scenario: &Scenario| {
            filters.is_empty() || filters.iter().any(|filter| scenario.name.contains(filter))
        };
        let wanted = scenarios.iter().enumerate().filter(|(_, scenario)| is_wanted(scenario));
        let places = wanted.map(|(index, scenario)| Place::of(self, scenario, index));
        // A kind of this repository's guests has one Reconciler at a time.
        let (guests, fixtures): (Vec<Place<'_>>, Vec<Place<'_>>) =
            places.partition(|place| place.scenario.guest.is_some());
        let mut running = stream::iter(&fixtures).map(Place::whole).buffer_unordered(AT_ONCE);
        while let Some((name, outcome)) = running.next().await {
            say(name, outcome);
        }
        for place in &guests {
            let (name, outcome) = place.whole().await;
            say(name, outcome);
        }
        Ok(())
    }

    fn api(&self, resource: &Resource, namespace: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk(resource.kind.group(), resource.kind.version(), &resource.kind.kind);
        let known = ApiResource::from_gvk_with_plural(&gvk, &resource.plural);
        match resource.namespaced {
            true => Api::namespaced_with(self.client.clone(), namespace, &known),
            false => Api::all_with(self.client.clone(), &known),
        }
    }

    async fn resource(&self, kind: &Kind) -> anyhow::Result<Resource> {
        let found = self.cluster.discover(kind).await.map_err(|error| anyhow::anyhow!("{error}"))?;
        found.with_context(|| format!("{kind} is not served"))
    }

    async fn create(&self, namespace: &str, value: &Value) -> anyhow::Result<Value> {
        let api = self.api(&self.resource(&object::kind(value)).await?, namespace);
        let value: DynamicObject = serde_json::from_value(value.clone())?;
        Ok(serde_json::to_value(api.create(&Default::default(), &value).await?)?)
    }

    async fn merge(&self, namespace: &str, reference: &ObjectRef, patch: &Value) -> anyhow::Result<Value> {
        let api = self.api(&self.resource(&reference.kind()).await?, namespace);
        let params = PatchParams { field_manager: Some("somebody".into()), ..PatchParams::default() };
        let patched = api.patch(&reference.name, &params, &Patch::Merge(patch)).await?;
        Ok(serde_json::to_value(patched)?)
    }

    /// Deletes an object, and waits until it is gone.
    async fn delete(&self, namespace: &str, reference: &ObjectRef) -> anyhow::Result<()> {
        let Ok(resource) = self.resource(&reference.kind()).await else { return Ok(()) };
        let api = self.api(&resource, namespace);
        eventually(format!("{reference} goes"), async || {
            Ok(match api.get_opt(&reference.name).await {
                Ok(None) => Look::Reached(()),
                Ok(Some(found)) => {
                    let _ = api.delete(&reference.name, &Default::default()).await;
                    Look::NotYet(format!("its metadata is {:?}", found.metadata))
                }
                Err(error) => Look::NotYet(error.to_string()),
            })
        })
        .await
    }
}

/// A scenario, and what it calls things.
struct Place<'a> {
    bench: &'a Bench,
    scenario: &'a Scenario,
    namespace: String,
    /// The Reconciler.
    name: String,
    kind: Kind,
}

fn own(kind: &str, name: &str) -> ObjectRef {
    let api_version = "pintle.dev/v1alpha1".into();
    ObjectRef { api_version, kind: kind.into(), namespace: None, name: name.into() }
}

fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 404)
}

fn named(api_version: &str, kind: &str, name: &str) -> ObjectRef {
    ObjectRef { api_version: api_version.into(), kind: kind.into(), namespace: None, name: name.into() }
}

impl<'a> Place<'a> {
    fn of(bench: &'a Bench, scenario: &'a Scenario, index: usize) -> Self {
        let (run, custom) = (&bench.run, format!("Previewed{}{index:02}", bench.run));
        Self {
            kind: scenario.r#for.clone().unwrap_or_else(|| Kind::new(format!("{GROUP}/v1"), &custom)),
            namespace: format!("previews-{run}-{index:02}"),
            name: scenario.guest.clone().unwrap_or_else(|| format!("previewed-{run}-{index:02}")),
            bench,
            scenario,
        }
    }

    async fn whole(&self) -> (&'a str, anyhow::Result<()>) {
        let outcome = self.run().await;
        let cleaned = self.clean_up().await;
        (&self.scenario.name, outcome.and(cleaned))
    }

    async fn run(&self) -> anyhow::Result<()> {
        self.begin().await?;
        let [old, new] = self.push().await?;
        let config = &self.scenario.config;
        let reconciler = json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "Reconciler", "metadata": {"name": self.name},
            "spec": {
                "for": self.kind, "module": old, "config": config, "grants": self.grants(), "namespaces": [self.namespace],
            },
        });
        self.bench.create("", &reconciler).await?;
        let before = self.at_rest(&old, config, false).await?;
        let roots = self.roots().await?;
        self.edit(&roots).await?;
        let edited = if self.scenario.edits.is_empty() { before } else { self.snapshot().await? };

        let then = self.scenario.then.as_ref().unwrap_or(config);
        let (planned, words) = self.plan(&new, then).await?;
        self.check_plan(&planned, &words)?;

        let patch = json!({"spec": {"module": new, "config": then, "suspend": null}});
        self.bench.merge("", &own("Reconciler", &self.name), &patch).await?;
        let fails = self.scenario.verdict == Some(Verdict::Fails);
        let after = self.at_rest(&new, then, fails).await?;
        let happened = happened(&edited, &after);
        let plan = changes(&planned, true);
        ensure!(happened == plan, "planned {plan:?}, and what happened is {happened:?}");
        if self.scenario.guest.is_none() {
            self.check_status(&roots, &planned).await?;
        }
        self.record().await
    }

    /// The namespace, the kind, the roots, and what is there besides.
    async fn begin(&self) -> anyhow::Result<()> {
        let bench = self.bench;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        bench.create("", &namespace).await?;
        let mut roots = self.scenario.roots.clone();
        if self.scenario.guest.is_none() {
            bench.create("", &self.crd()).await?;
            roots.push(json!({"metadata": {"name": "r"}, "spec": {}}));
        }
        eventually(format!("{} is served", self.kind), async || {
            let found = bench.resource(&self.kind).await;
            Ok(found.map_or_else(|error| Look::NotYet(format!("{error:#}")), |_| Look::Reached(())))
        })
        .await?;
        for object in &self.scenario.beside {
            bench.create(&self.namespace, object).await?;
        }
        for mut root in roots {
            object::set_kind(&mut root, self.kind.clone());
            // A kind that is new may be served for a moment before it takes objects.
            eventually("a root is taken", async || match bench.create(&self.namespace, &root).await {
                Ok(_) => Ok(Look::Reached(())),
                Err(error) if is_not_found(&error) => Ok(Look::NotYet(format!("{error:#}"))),
                Err(error) => Err(error),
            })
            .await?;
        }
        Ok(())
    }

    async fn clean_up(&self) -> anyhow::Result<()> {
        let bench = self.bench;
        if let Ok(roots) = self.roots().await {
            for root in roots {
                bench.delete(&self.namespace, &object::reference(&root)).await?;
            }
        }
        bench.delete("", &own("Reconciler", &self.name)).await?;
        for module in self.modules() {
            bench.delete("", &own("Module", &module)).await?;
        }
        if self.scenario.guest.is_none() {
            let crd = named("apiextensions.k8s.io/v1", "CustomResourceDefinition", &self.crd_name());
            bench.delete("", &crd).await?;
        }
        let namespaces: Api<DynamicObject> =
            bench.api(&bench.resource(&Kind::new("v1", "Namespace")).await?, "");
        let _ = namespaces.delete(&self.namespace, &Default::default()).await;
        Ok(())
    }

    fn crd_name(&self) -> String {
        format!("{}s.{GROUP}", self.kind.kind.to_lowercase())
    }

    fn crd(&self) -> Value {
        let singular = self.kind.kind.to_lowercase();
        let mut status = json!({"phase": {"type": "string"}, "url": {"type": "string"}});
        for (name, property) in host_status_properties() {
            status[name] = property;
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd_name()},
            "spec": {
                "group": GROUP, "scope": "Namespaced",
                "names": {"kind": self.kind.kind, "listKind": format!("{}List", self.kind.kind), "plural": format!("{singular}s"),
                    "singular": singular},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "status": {"type": "object", "properties": status},
                    }}}}],
            },
        })
    }

    /// The kinds of the children in both answers.
    fn child_kinds(&self) -> BTreeSet<Kind> {
        let answers = self.scenario.before.iter().chain(&self.scenario.after);
        let children = answers.filter_map(|answer| answer["children"].as_array()).flatten();
        let mut kinds: BTreeSet<Kind> = children.map(|child| object::kind(&child["object"])).collect();
        kinds.insert(Kind::new("v1", "ConfigMap"));
        kinds
    }

    fn grants(&self) -> Value {
        self.scenario.grants.clone().unwrap_or_else(|| {
            let children = self.child_kinds();
            let children: Vec<Value> = children
                .iter()
                .map(|kind| json!({"apiVersion": kind.api_version, "kinds": [kind.kind]}))
                .collect();
            json!({"children": children})
        })
    }

    fn modules(&self) -> [String; 2] {
        ["old", "new"].map(|which| format!("{}-{which}", self.namespace))
    }

    async fn push(&self) -> anyhow::Result<[String; 2]> {
        let names = self.modules();
        let bytes = match &self.scenario.guest {
            Some(guest) => {
                let path = self.bench.guests.join(format!("{guest}.wasm"));
                let bytes = fs::read(&path)
                    .with_context(|| format!("{}; run: cargo xtask guests", path.display()))?;
                let mut other = bytes.clone();
                if self.scenario.padded {
                    other.extend(NOTE);
                }
                [bytes, other]
            }
            None => self.fixtures()?,
        };
        for (name, bytes) in names.iter().zip(&bytes) {
            for object in pintle_api::module_objects(name, bytes, &Digest::of(bytes).to_string()) {
                let namespace = object::namespace(&object).unwrap_or_default().to_owned();
                self.bench.create(&namespace, &object).await?;
            }
        }
        Ok(names)
    }

    fn fixtures(&self) -> anyhow::Result<[Vec<u8>; 2]> {
        let kinds: Vec<String> =
            self.child_kinds().iter().map(|kind| format!("{}/{}", kind.api_version, kind.kind)).collect();
        let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
        let manifest = fixtures::manifest("previewed", &self.kind.api_version, &self.kind.kind, &kinds);
        let document = |value: &Value| {
            let mut value = value.clone();
            value["apiVersion"] = "guest.pintle.dev/v1".into();
            value.to_string()
        };
        let before = self.scenario.before.as_ref().context("a scenario has an answer, or a guest")?;
        let old = fixtures::answers(&manifest, &document(before));
        let mut new = match (&self.scenario.after, &self.scenario.fails) {
            (Some(after), None) => fixtures::answers(&manifest, &document(after)),
            (None, Some(failure)) => fixtures::fails(&manifest, &document(failure)),
            _ => bail!("the other module answers or fails"),
        };
        new.extend(NOTE);
        Ok([old, new])
    }

    async fn roots(&self) -> anyhow::Result<Vec<Value>> {
        let resource = self.bench.resource(&self.kind).await?;
        let listed = self.bench.api(&resource, &self.namespace).list(&ListParams::default()).await?;
        let mut roots = Vec::new();
        for root in listed.items {
            let mut root = serde_json::to_value(root)?;
            object::set_kind(&mut root, self.kind.clone());
            roots.push(root);
        }
        Ok(roots)
    }

    /// Waits until this module and config are in force, every root had a pass on them, and a plan finds nothing to do, except for what fails.
    async fn at_rest(&self, module: &str, config: &Value, fails: bool) -> anyhow::Result<Snapshot> {
        eventually("all is at rest", async || {
            let look = self.look_at_rest(module, config, fails).await;
            Ok(look.unwrap_or_else(|error| Look::NotYet(format!("{error:#}"))))
        })
        .await?;
        self.snapshot().await
    }

    async fn look_at_rest(&self, module: &str, config: &Value, fails: bool) -> anyhow::Result<Look<()>> {
        let (metadata, status) = self.reconciler().await?;
        let active = &status["active"];
        let wanted = self.roots().await?.len();
        let is_there = active["module"] == module
            && active.get("config").unwrap_or(&Value::Null) == config
            && status["observedGeneration"] == metadata["generation"]
            && status["roots"]["total"] == wanted
            && active["roots"]["reconciled"] == wanted;
        if !is_there {
            return Ok(Look::NotYet(format!("of {wanted} roots: {status}")));
        }
        let request = PlanRequest { reconciler: self.name.clone(), ..PlanRequest::default() };
        let mut planned = Vec::new();
        let mut tell = |told: Told| {
            if let Told::Root(root) = told {
                planned.push(*root);
            }
        };
        let summary = self.bench.preview.plan(&self.bench.caller, &request, &mut tell).await?;
        let left = changes(&planned, false);
        let is_so = summary.module.name == module
            && left.is_empty()
            && summary.would_change() == Some(false)
            && (summary.roots.fails > 0) == fails;
        Ok(Look::reached_if(is_so, || {
            format!("{} would still do {left:?}: {:?}: {planned:?}", summary.module.name, summary.roots)
        }))
    }

    /// The metadata and the status of the Reconciler.
    async fn reconciler(&self) -> anyhow::Result<(Value, Value)> {
        let api = self.bench.api(&self.bench.resource(&own("Reconciler", "").kind()).await?, "");
        let found = serde_json::to_value(api.get(&self.name).await?)?;
        Ok((found["metadata"].clone(), found["status"].clone()))
    }

    async fn snapshot(&self) -> anyhow::Result<Snapshot> {
        let mut shows = Snapshot::new();
        let kinds = [
            ("v1", "ConfigMap"),
            ("v1", "Secret"),
            ("v1", "Service"),
            ("apps/v1", "Deployment"),
            ("networking.k8s.io/v1", "Ingress"),
        ];
        for (api_version, kind) in kinds {
            let kind = Kind::new(api_version, kind);
            let resource = self.bench.resource(&kind).await?;
            for found in self.bench.api(&resource, &self.namespace).list(&ListParams::default()).await?.items
            {
                let mut found = serde_json::to_value(found)?;
                object::set_kind(&mut found, kind.clone());
                if object::name(&found) != "kube-root-ca.crt" {
                    shows.insert(object::reference(&found), essence(&found));
                }
            }
        }
        Ok(shows)
    }

    async fn edit(&self, roots: &[Value]) -> anyhow::Result<()> {
        if self.scenario.edits.is_empty() {
            return Ok(());
        }
        let bench = self.bench;
        bench.merge("", &own("Reconciler", &self.name), &json!({"spec": {"suspend": true}})).await?;
        eventually("the host knows that it is suspended", async || {
            let (metadata, status) = self.reconciler().await?;
            let is_known = status["observedGeneration"] == metadata["generation"];
            Ok(Look::reached_if(is_known, || format!("generation {}: {status}", metadata["generation"])))
        })
        .await?;
        for edit in &self.scenario.edits {
            if let Some(patch) = &edit.patch {
                bench.merge(&self.namespace, &edit.object, patch).await?;
            }
            if let Some(create) = &edit.create {
                let mut object = create.clone();
                object::set_kind(&mut object, edit.object.kind());
                object["metadata"]["name"] = edit.object.name.as_str().into();
                if edit.adopt {
                    let uid = roots.first().map(object::uid).unwrap_or_default();
                    object["metadata"]["annotations"] = json!({"pintle.dev/adopt": uid});
                }
                bench.create(&self.namespace, &object).await?;
            }
            if edit.delete {
                bench.delete(&self.namespace, &edit.object).await?;
            }
        }
        Ok(())
    }

    /// The roots that would not stay as they are, and all that is said.
    async fn plan(&self, module: &str, config: &Value) -> anyhow::Result<(Vec<PlannedRoot>, String)> {
        let request = PlanRequest {
            reconciler: self.name.clone(),
            module: Some(ModuleChoice::Named(module.into())),
            config: Some(config.clone()),
            ..PlanRequest::default()
        };
        let mut planned = Vec::new();
        let mut tell = |told: Told| {
            if let Told::Root(root) = told {
                planned.push(*root);
            }
        };
        let summary = self.bench.preview.plan(&self.bench.caller, &request, &mut tell).await?;
        let words = format!("{}{}", serde_json::to_string(&planned)?, serde_json::to_string(&summary)?);
        Ok((planned, words))
    }

    fn check_plan(&self, planned: &[PlannedRoot], words: &str) -> anyhow::Result<()> {
        let scenario = self.scenario;
        let found = changes(planned, false);
        ensure!(found == scenario.changes, "planned {found:?}, and not {:?}", scenario.changes);
        let fields =
            |change: &ChildChange| change.fields.iter().map(|field| field.path.clone()).collect::<Vec<_>>();
        let paths: Vec<String> = planned.iter().flat_map(|root| &root.children).flat_map(fields).collect();
        for path in &scenario.paths {
            ensure!(paths.contains(path), "{path} is not among {paths:?}");
        }
        for word in &scenario.never {
            ensure!(!words.contains(word.as_str()), "{word:?} stands in the plan");
        }
        if scenario.guest.is_none() {
            let status: BTreeSet<String> = planned
                .iter()
                .flat_map(|root| &root.status)
                .flat_map(|status| status.changes.iter().map(|field| field.path.clone()))
                .collect();
            ensure!(
                status == scenario.status,
                "planned {status:?} in the status, and not {:?}",
                scenario.status
            );
        }
        let writes = !scenario.changes.is_empty() || !scenario.status.is_empty();
        let usual = if writes { Verdict::Changed } else { Verdict::Unchanged };
        let wanted = scenario.verdict.unwrap_or(usual);
        let verdicts: Vec<Verdict> = planned.iter().map(|root| root.verdict).collect();
        let is_so = match wanted {
            Verdict::Unchanged => scenario.guest.is_some() || planned.is_empty(),
            wanted => verdicts.iter().all(|verdict| *verdict == wanted) && !verdicts.is_empty(),
        };
        ensure!(is_so, "the verdicts are {verdicts:?}, and not {wanted:?}: {words}");
        ensure!(!words.contains(r#""verdict":"unknown""#), "something is unknown: {words}");
        Ok(())
    }

    /// The guest's part of the status changed where the plan says so, and nowhere else.
    async fn check_status(&self, before: &[Value], planned: &[PlannedRoot]) -> anyhow::Result<()> {
        for after in self.roots().await? {
            let before = before.iter().find(|root| object::uid(root) == object::uid(&after));
            let changed = before.map(own_status) != Some(own_status(&after));
            let mut said = planned.iter().filter(|root| root.root.uid == object::uid(&after));
            let says = said.any(|root| root.status.is_some());
            ensure!(changed == says, "the status changed: {changed}; the plan says so: {says}");
        }
        Ok(())
    }

    /// Every root can be recorded, and its case passes.
    async fn record(&self) -> anyhow::Result<()> {
        for root in self.roots().await? {
            let request = InspectRequest {
                kind: self.kind.clone(),
                namespace: Some(self.namespace.clone()),
                name: object::name(&root).into(),
                module: None,
                proposed: None,
            };
            let recorded = self.bench.preview.record(&self.bench.caller, &request).await?;
            let inspected = self.bench.preview.inspect(&self.bench.caller, &request).await?;
            let keys = secrets_of(&root);
            has_none_of(&keys, "in and out", &serde_json::to_string(&inspected)?)?;
            ensure!(inspected.answer.is_some() == inspected.failure.is_none(), "{inspected:?}");
            let made = case::record(&recorded.guest, recorded.objects, &recorded.now);
            let (case, result) = made.with_context(|| format!("recording {}", object::name(&root)))?;
            ensure!(
                result.passed(),
                "the case does not pass: {:?} {:?}\n{case:?}",
                result.problems,
                result.message
            );
            has_none_of(&keys, "the case", &serde_json::to_string(&case)?)?;
        }
        Ok(())
    }
}
