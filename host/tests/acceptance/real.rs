//! The real control plane, with a host that runs as the ServiceAccount of deploy/.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use http::{Method, Request, header};
use kit::{
    Look, Patience, eventually,
    host::{self, Host, or_error},
};
use kube::Client;
use pintle_kubernetes::{Cluster, Resource, connect::Connect};
use pintle_modules::Budget;
use pintle_preview::{Caller, Preview};
use pintle_runtime::Spawner;
use pintle_simulation::scenario::{Backend, Call, Cascade, Mark, Stop};
use pintle_testbed::ControlPlane;
use pintle_wit::{Kind, ObjectRef};
use serde_json::{Value, json};

use crate::audit::{self, Audit, Entry};

const NO_AUDIT_LOG: &str = "this control plane has no audit log";

pub(crate) struct Real<'a> {
    client: Client,
    cluster: Cluster,
    preview: Preview,
    kinds: Mutex<BTreeMap<Kind, Resource>>,
    kubeconfig: PathBuf,
    log: PathBuf,
    audit: Option<Audit>,
    host: Mutex<Option<Host>>,
    plane: &'a ControlPlane,
}

/// A condition of an object.
pub(crate) fn condition<'a>(live: &'a Value, name: &str) -> &'a Value {
    let mut conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == name).unwrap_or(&Value::Null)
}

/// Whether an object says that it is ready.
pub(crate) fn is_ready(live: &Value) -> bool {
    condition(live, "Ready")["status"] == "True"
}

/// The image of a Deployment.
pub(crate) fn image_of(live: &Value) -> &Value {
    &live["spec"]["template"]["spec"]["containers"][0]["image"]
}

/// Makes an empty namespace, also where an earlier try has left one.
pub(crate) fn make_namespace(plane: &ControlPlane, name: &str) -> anyhow::Result<()> {
    let delete = ["delete", "namespace", name, "--ignore-not-found", "--timeout=180s"];
    plane.run_kubectl(&delete, None)?;
    plane.run_kubectl(&["create", "namespace", name], None).map(drop)
}

/// A root without Pods, which has a Deployment and a Service.
pub(crate) fn web_server(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "my.domain/v1", "kind": "WebServer", "metadata": {"name": name, "namespace": namespace},
        "spec": {"image": image, "replicas": 0, "nodePort": 0},
    })
}

pub(crate) fn deployment(namespace: &str, name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some(namespace.into()),
        name: name.into(),
    }
}

pub(crate) fn reconciler(name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "pintle.dev/v1alpha1".into(),
        kind: "Reconciler".into(),
        namespace: None,
        name: name.into(),
    }
}

impl<'a> Real<'a> {
    pub(crate) async fn start(plane: &'a ControlPlane) -> anyhow::Result<Self> {
        let real = Self::without_host(plane).await?;
        real.start_host().await?;
        Ok(real)
    }

    /// The control plane alone, whose host somebody else runs.
    pub(crate) async fn without_host(plane: &'a ControlPlane) -> anyhow::Result<Self> {
        let connect = Connect { kubeconfig: Some(plane.kubeconfig().to_owned()), context: None };
        let client = connect.client().await?;
        let engine = pintle_offline::engine()?;
        Ok(Self {
            cluster: Cluster::new(client.clone()),
            preview: Preview::new(engine, None, Budget::fixed(1 << 30), Spawner::default()),
            client,
            kinds: Mutex::default(),
            kubeconfig: plane.kubeconfig_for_service_account("pintle-system", "pintle")?,
            log: host::log_path(plane.directory()),
            audit: plane.audit_log().map(|path| Audit::new(path.to_owned())),
            host: Mutex::default(),
            plane,
        })
    }

    pub(crate) fn stop(&self) -> anyhow::Result<()> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner).take();
        host.map_or(Ok(()), |host| host.stop(Stop::Gracefully))
    }

    /// What the host replies to a request.
    pub(crate) fn ask_host(&self, path: &str) -> anyhow::Result<String> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        host.as_ref().context("no host runs")?.get(path)
    }

    /// The sum of the series of the host that begin like this.
    pub(crate) fn metric(&self, series: &str) -> anyhow::Result<f64> {
        host::sum_of(&self.ask_host("/metrics")?, series)
    }

    pub(crate) async fn stop_host_if_it_runs(&self) -> anyhow::Result<()> {
        let runs = self.host.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if runs { self.stop_host(Stop::Gracefully).await } else { Ok(()) }
    }

    pub(crate) async fn start_host_unless_it_runs(&self) -> anyhow::Result<()> {
        let runs = self.host.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if runs { Ok(()) } else { self.start_host().await }
    }

    /// Waits until the host has changed nothing for a second, and what scenarios made is gone.
    pub(crate) async fn wait_until_quiet(&self) -> anyhow::Result<()> {
        eventually("the host is quiet, and what scenarios made is gone", async || {
            let mark = self.mark();
            self.advance(Duration::from_secs(1)).await;
            let calls = self.calls_since(mark).await?.unwrap_or_default();
            let namespaces = self.plane.run_kubectl(&["get", "namespaces", "-o", "name"], None)?;
            let ours: Vec<&str> = namespaces
                .lines()
                .filter(|line| {
                    !line.contains("/kube-") && !line.contains("/default") && !line.contains("/pintle-system")
                })
                .collect();
            Ok(Look::reached_if(calls.is_empty() && ours.is_empty(), || format!("{calls:?}, {ours:?}")))
        })
        .await
    }

    /// The calls that the host had no right to, as `verb resource`.
    pub(crate) async fn forbidden(&self) -> anyhow::Result<Vec<String>> {
        let Some(audit) = &self.audit else {
            println!("        skipped: whether a call of the host was forbidden, no audit log");
            return Ok(Vec::new());
        };
        self.catch_up().await?;
        let entries = audit.entries_since(Mark(Duration::ZERO))?;
        Ok(entries
            .into_iter()
            .map(|entry| entry.call)
            .filter(|call| call.forbidden)
            .map(|call| format!("{} {}", call.verb, call.resource))
            .collect())
    }

    /// Waits until the audit log has what was answered before: a request that is made now is in it.
    pub(crate) async fn catch_up(&self) -> anyhow::Result<()> {
        let audit = self.audit.as_ref().context(NO_AUDIT_LOG)?;
        // How many there are in the audit log, by whichever of these.
        static MARKERS: AtomicU32 = AtomicU32::new(0);
        let marker = Audit::marker(MARKERS.fetch_add(1, Ordering::Relaxed));
        self.client.request_text(Request::get(&marker).body(Vec::new())?).await?;
        eventually(format!("the audit log has {marker}"), async || {
            Ok(Look::reached_if(audit.has(&marker)?, || "it is not there".into()))
        })
        .await
    }

    /// Whether it can be known what a host has asked for.
    pub(crate) fn has_audit_log(&self) -> bool {
        self.audit.is_some()
    }

    /// Where its hosts log.
    pub(crate) fn log(&self) -> PathBuf {
        self.log.clone()
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(crate) fn directory(&self) -> &Path {
        self.plane.directory()
    }

    /// The calls of all hosts since a moment.
    pub(crate) fn entries_since(&self, mark: Mark) -> anyhow::Result<Vec<Entry>> {
        self.audit.as_ref().context(NO_AUDIT_LOG)?.entries_since(mark)
    }

    pub(crate) fn kubectl(&self, args: &[&str], stdin: Option<&str>) -> anyhow::Result<String> {
        self.plane.run_kubectl(args, stdin)
    }

    pub(crate) fn kubectl_json(&self, args: &[&str]) -> anyhow::Result<Value> {
        let args: Vec<&str> = args.iter().copied().chain(["-o", "json"]).collect();
        Ok(serde_json::from_str(&self.kubectl(&args, None)?)?)
    }

    pub(crate) fn delete_namespace(&self, name: &str) -> anyhow::Result<()> {
        self.kubectl(&["delete", "namespace", name, "--timeout=180s"], None).map(drop)
    }

    pub(crate) fn make_namespace(&self, name: &str) -> anyhow::Result<()> {
        make_namespace(self.plane, name)
    }

    /// Waits until an object is like this. One that is not there is null.
    pub(crate) async fn wait_for(
        &self,
        what: &str,
        object: &ObjectRef,
        is_so: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<()> {
        eventually(format!("{object}: {what}"), async || {
            or_error(self.get(object).await.map(|live| {
                let live = live.unwrap_or_default();
                Look::reached_if(is_so(&live), || format!("{}, {}", live["spec"], live["status"]))
            }))
        })
        .await
    }

    /// Waits until an object says that it is ready.
    pub(crate) async fn wait_until_ready(&self, object: &ObjectRef) -> anyhow::Result<()> {
        self.wait_for("it is ready", object, is_ready).await
    }

    async fn resource(&self, kind: &Kind) -> anyhow::Result<Option<Resource>> {
        if let Some(known) = self.kinds.lock().unwrap_or_else(PoisonError::into_inner).get(kind) {
            return Ok(Some(known.clone()));
        }
        let found = self.cluster.discover(kind).await.map_err(|error| anyhow::anyhow!("{kind}: {error}"))?;
        if let Some(found) = &found {
            self.kinds.lock().unwrap_or_else(PoisonError::into_inner).insert(kind.clone(), found.clone());
        }
        Ok(found)
    }

    async fn served(&self, kind: &Kind) -> anyhow::Result<Resource> {
        eventually(format!("the API server serves {kind}"), async || {
            let found = self.resource(kind).await.map(|found| {
                found.map_or_else(|| Look::NotYet("it is not in discovery".into()), Look::Reached)
            });
            or_error(found)
        })
        .await
    }

    async fn send(&self, method: Method, path: String, content: &str, body: &Value) -> anyhow::Result<Value> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, content)
            .header(header::ACCEPT, "application/json")
            .body(body.to_string().into_bytes())?;
        Ok(self.client.request::<Value>(request).await?)
    }
}

impl Backend for Real<'_> {
    async fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let reference = pintle_core::object::reference(object);
        let resource = self.served(&reference.kind()).await?;
        let path = resource.path(reference.namespace.as_deref(), Some(&reference.name));
        let mut object = object.clone();
        if let (false, Some(metadata)) = (resource.namespaced, object["metadata"].as_object_mut()) {
            metadata.remove("namespace");
        }
        let path = format!("{path}?fieldManager=kubectl&force=true");
        eventually(format!("the API server takes {reference}"), async || {
            match self.send(Method::PATCH, path.clone(), "application/apply-patch+yaml", &object).await {
                Ok(_) => Ok(Look::Reached(())),
                // A CRD that came back is served a moment after it was accepted.
                Err(error) if format!("{error}").contains("404 page not found") => {
                    Ok(Look::NotYet(format!("{error}")))
                }
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn patch(&self, object: &ObjectRef, patch: &Value) -> anyhow::Result<()> {
        let path = self.served(&object.kind()).await?.path(object.namespace.as_deref(), Some(&object.name));
        self.send(
            Method::PATCH,
            format!("{path}?fieldManager=kubectl-edit"),
            "application/merge-patch+json",
            patch,
        )
        .await?;
        Ok(())
    }

    async fn delete(&self, object: &ObjectRef, cascade: Cascade) -> anyhow::Result<()> {
        let path = self.served(&object.kind()).await?.path(object.namespace.as_deref(), Some(&object.name));
        let options =
            json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": format!("{cascade:?}")});
        self.send(Method::DELETE, path, "application/json", &options).await?;
        Ok(())
    }

    async fn get(&self, object: &ObjectRef) -> anyhow::Result<Option<Value>> {
        let Some(resource) = self.resource(&object.kind()).await? else { return Ok(None) };
        self.cluster
            .get(&resource, object)
            .await
            .map_err(|error| anyhow::anyhow!("reading {object}: {error}"))
    }

    async fn events(&self, object: &ObjectRef) -> anyhow::Result<Vec<String>> {
        let resource = self.served(&object.kind()).await?;
        // Events about what is of cluster scope are in the namespace default.
        let namespace = object.namespace.as_deref().filter(|_| resource.namespaced).unwrap_or("default");
        let path = format!(
            "/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.kind%3D{},involvedObject.name%3D{}",
            object.kind, object.name
        );
        let list: Value = self.client.request(Request::get(path).body(Vec::new())?).await?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        Ok(items.iter().filter_map(|event| Some(event["reason"].as_str()?.to_owned())).collect())
    }

    async fn stop_host(&self, how: Stop) -> anyhow::Result<()> {
        let host = self.host.lock().unwrap_or_else(PoisonError::into_inner).take();
        host.context("the host does not run")?.stop(how)
    }

    async fn start_host(&self) -> anyhow::Result<()> {
        let started = host::start_ready(&self.kubeconfig, &self.log).await?;
        *self.host.lock().unwrap_or_else(PoisonError::into_inner) = Some(started);
        Ok(())
    }

    async fn preview<T>(
        &self,
        look: impl AsyncFnOnce(&Preview, &Caller) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        look(&self.preview, &Caller { user: self.client.clone(), modules: self.client.clone() }).await
    }

    async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn mark(&self) -> Mark {
        audit::mark_of(pintle_runtime::clock::now())
    }

    /// How soon something comes is proved where time is simulated. Here it may take as long as all that is waited for.
    fn slack(&self) -> Duration {
        Patience::default().whole()
    }

    async fn calls_since(&self, mark: Mark) -> anyhow::Result<Option<Vec<Call>>> {
        static SKIPPED: Once = Once::new();
        let Some(audit) = &self.audit else {
            SKIPPED
                .call_once(|| println!("        skipped: what the host writes in scenarios, no audit log"));
            return Ok(None);
        };
        self.catch_up().await?;
        let calls = audit.entries_since(mark)?.into_iter().map(|entry| entry.call);
        // What was refused changed nothing: a conflict, or a server that had too much to do, after which the host comes again.
        let counts =
            |call: &Call| audit::is_mutating(call) && audit::is_accepted(call) && !audit::is_leadership(call);
        Ok(Some(calls.filter(counts).collect()))
    }

    fn host_log(&self, about: &[&str], lines: usize) -> Vec<String> {
        host::tail(&self.log, about, lines)
    }
}
