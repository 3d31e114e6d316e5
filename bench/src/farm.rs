//! The farm behind a gateway, on a control plane of its own: what the phases about views measure.

use std::{
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::{
    api::Api,
    calls::Audit,
    contestant::{self, Running},
    figures::Figures,
    plane,
    process::{self, Machine, Usage},
    settings::{Flags, Phase, Who},
    stage::PATIENCE,
};

/// The namespace of the Pods.
const PODS_NAMESPACE: &str = "bench-pods";

/// The Pods, as the API server has them.
pub(crate) const PODS: &str = "/api/v1/namespaces/bench-pods/pods";

/// The same, as the view shows them.
pub(crate) const FARM_PODS: &str = "/apis/farm.example.com/v1alpha/namespaces/bench-pods/farmpods";

/// What the view puts before the name of a Pod.
const PREFIX: &str = "farm-";

/// The annotation that a write changes.
pub(crate) const TOKEN: &str = "bench.pintle.dev/token";

/// The namespace and name of whoever reads: a ServiceAccount with the rights to read Pods and what the farm shows, and no others. So each
/// request through the view has a review on the view, and is made in its name by constrained impersonation.
const READER: (&str, &str) = ("bench-system", "reader");

/// The namespace and name of whoever keeps Llamas: a ServiceAccount with all rights on them, and no others. So each write through the view has
/// a review.
const KEEPER: (&str, &str) = ("bench-system", "keeper");

/// The group and version of Llamas, as the view shows them.
pub(crate) const LLAMAS: &str = "farm.example.com/v1alpha";

/// The group and version of a CRD of the same schema, which stores them itself.
pub(crate) const TWINS: &str = "twin.example.com/v1alpha";

/// The gateway's own account.
const GATEWAY: (&str, &str) = ("pintle-system", "pintle-gateway");

/// How many creates are in flight.
const IN_FLIGHT: usize = 32;

/// How long the API server may take to notice that an API is there: it asks once a minute when nobody tells it.
const REGISTERED_WITHIN: Duration = Duration::from_secs(120);

/// The farm on its control plane.
pub(crate) struct Farm<'a> {
    pub(crate) flags: &'a Flags,
    pub(crate) run: u32,
    /// The administrator, who writes.
    pub(crate) admin: Api,
    figures: &'a mut Figures,
    reader: PathBuf,
    keeper: PathBuf,
    gateway_kubeconfig: PathBuf,
    log: PathBuf,
    address: SocketAddr,
    pods: u32,
    running: Option<Running>,
    // After the gateway, so that it is dropped later.
    pub(crate) plane: ControlPlane,
}

/// The beginning of a measurement.
pub(crate) struct Begun {
    usage: Usage,
    machine: Machine,
    guest_calls: u64,
    speed: f64,
    at: Instant,
}

/// What the gateway used since then.
pub(crate) struct Used {
    pub(crate) cpu_seconds: f64,
    pub(crate) apiserver_cpu_seconds: f64,
    pub(crate) guest_calls: u64,
    pub(crate) seconds: f64,
    pub(crate) usage: Usage,
}

impl<'a> Farm<'a> {
    /// Starts the control plane, with controllers, and installs what the gateway needs. The gateway does not run yet, and the API server
    /// does not know the farm.
    pub(crate) async fn start(flags: &'a Flags, run: u32, figures: &'a mut Figures) -> Result<Self> {
        let Installed { plane, reader, keeper, gateway_kubeconfig } = tokio::task::block_in_place(install)?;
        let admin = Api::connect(plane.kubeconfig()).await?;
        let log = plane.directory().join("logs/gateway.log");
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let (running, pods) = (None, 0);
        Ok(Self {
            flags,
            run,
            admin,
            figures,
            reader,
            keeper,
            gateway_kubeconfig,
            log,
            address,
            pods,
            running,
            plane,
        })
    }

    /// Starts the gateway and puts the farm into force.
    pub(crate) async fn open(&mut self) -> Result<()> {
        self.start_gateway()?;
        tokio::task::block_in_place(|| {
            self.connect_api()?;
            plane::apply_file(&self.plane, &farm_file("views.yaml"))?;
            self.push_farm()?;
            let available = "--timeout=120s";
            self.plane.run_kubectl(
                &["wait", "--for=condition=Available", available, "apiservice/v1alpha.farm.example.com"],
                None,
            )?;
            let views = ["wait", "--for=condition=Registered", available, "views", "--all"];
            self.plane.run_kubectl(&views, None)
        })
        .with_context(|| self.log_tail())?;
        self.wait_served().await
    }

    /// Makes the API server ask the gateway.
    pub(crate) fn connect_api(&self) -> Result<()> {
        let file = farm_file("apiservice.yaml");
        let file = file.to_str().context("the path of the repository is no text")?;
        let read = ["create", "--dry-run=client", "--output=json", "--filename", file];
        let service: Value = serde_json::from_str(&self.plane.run_kubectl(&read, None)?)?;
        self.plane.serve_api_on_loopback(&service, self.address.port())
    }

    fn push_farm(&self) -> Result<()> {
        let mut push = Command::new(&self.flags.pintle);
        push.args(["push", "farm-0.1.0"]).arg(self.flags.guests.join("farm.wasm"));
        let output = push.env("KUBECONFIG", self.plane.kubeconfig()).output()?;
        ensure!(output.status.success(), "pintle push: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    fn start_gateway(&mut self) -> Result<()> {
        let health = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = contestant::open_log(&self.log)?;
        let child = Command::new(&self.flags.pintle)
            .args(["gateway", "--aggregated-bind", &self.address.to_string()])
            .args(["--health-bind", &health.to_string(), "--kubeconfig"])
            .arg(&self.gateway_kubeconfig)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("starting {}", self.flags.pintle.display()))?;
        self.running = Some(Running::of(child, health));
        Ok(())
    }

    /// Starts the gateway again, so that what it takes is not what an earlier phase made it take.
    pub(crate) async fn restart(&mut self) -> Result<()> {
        if let Some(running) = self.running.take() {
            running.stop().await?;
        }
        self.start_gateway()?;
        self.wait_served().await
    }

    async fn wait_served(&self) -> Result<()> {
        let reader = self.reader().await?;
        let until = Instant::now() + REGISTERED_WITHIN;
        while let Err(error) = reader.read(&format!("{FARM_PODS}?limit=1")).await {
            ensure!(Instant::now() < until, "the farm is not served: {error:#}\n{}", self.log_tail());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }

    /// Ends everything.
    pub(crate) async fn stop(self) -> Result<()> {
        let Self { plane, running, .. } = self;
        if let Some(running) = running {
            running.stop().await?;
        }
        tokio::task::block_in_place(|| plane.stop())
    }

    /// A new client of whoever reads, with connections of its own.
    pub(crate) async fn reader(&self) -> Result<Api> {
        Api::connect(&self.reader).await
    }

    /// A new client of whoever keeps Llamas, with connections of its own.
    pub(crate) async fn keeper(&self) -> Result<Api> {
        Api::connect(&self.keeper).await
    }

    /// The calls of the gateway, by the audit log.
    pub(crate) fn calls(&self) -> Result<Audit> {
        let (namespace, name) = GATEWAY;
        let path = self.plane.audit_log().context("this control plane shows no audit log")?;
        Ok(Audit::new(path, format!("system:serviceaccount:{namespace}:{name}")))
    }

    /// Makes a CRD of the schema that the view shows.
    pub(crate) fn add_twin(&self) -> Result<()> {
        tokio::task::block_in_place(|| {
            let read = ["get", "view", "llamas", "--output=jsonpath={.status.served}"];
            let served: Value = serde_json::from_str(&self.plane.run_kubectl(&read, None)?)?;
            plane::apply(&self.plane, &[twin(&served)])?;
            let wait =
                ["wait", "--for=condition=Established", "--timeout=30s", "crd/llamas.twin.example.com"];
            self.plane.run_kubectl(&wait, None).map(drop)
        })
    }

    /// Takes the CRD away again.
    pub(crate) fn remove_twin(&self) -> Result<()> {
        let delete = ["delete", "crd", "llamas.twin.example.com", "--timeout=60s"];
        tokio::task::block_in_place(|| self.plane.run_kubectl(&delete, None)).map(drop)
    }

    /// Creates Pods until there are this many. No scheduler takes them, and no kubelet runs them.
    pub(crate) async fn wait_pods(&mut self, pods: u32) -> Result<()> {
        if self.pods == 0 {
            self.create_namespace(PODS_NAMESPACE).await?;
        }
        let admin = &self.admin;
        stream::iter(self.pods..pods)
            .map(|number| async move { admin.create(PODS, &pod(number)).await })
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await?;
        self.pods = self.pods.max(pods);
        Ok(())
    }

    /// Creates a namespace, and waits until Pods can be made in it.
    pub(crate) async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.admin.create("/api/v1/namespaces", &namespace).await?;
        let until = Instant::now() + PATIENCE;
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        while self.admin.get(&account).await.is_err() {
            ensure!(Instant::now() < until, "namespace {name} gets no ServiceAccount");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Begins a measurement.
    pub(crate) fn begin(&mut self) -> Result<Begun> {
        let speed = tokio::task::block_in_place(process::speed);
        let (usage, guest_calls) = self.usage()?;
        Ok(Begun { usage, machine: Machine::now()?, guest_calls, speed, at: Instant::now() })
    }

    /// What the gateway used since the beginning of a measurement.
    pub(crate) fn used(&mut self, begun: &Begun) -> Result<Used> {
        let seconds = begun.at.elapsed().as_secs_f64();
        let (usage, guest_calls) = self.usage()?;
        let cpu_seconds = usage.cpu_seconds - begun.usage.cpu_seconds;
        let apiserver_cpu_seconds = Machine::now()?.program_since(&begun.machine, "kube-apiserver");
        let guest_calls = guest_calls - begun.guest_calls;
        Ok(Used { cpu_seconds, apiserver_cpu_seconds, guest_calls, seconds, usage })
    }

    /// Ends a phase: records how far its figures can be trusted.
    pub(crate) fn end(&mut self, phase: Phase, begun: &Begun) -> Result<()> {
        let seconds = begun.at.elapsed().as_secs_f64();
        let machine = Machine::now()?;
        let speed = tokio::task::block_in_place(process::speed);
        self.put(phase, "others_cores", machine.others_since(&begun.machine, seconds));
        self.put(phase, "apiserver_cpu_s", machine.program_since(&begun.machine, "kube-apiserver"));
        self.put(phase, "machine_speed", f64::midpoint(begun.speed, speed));
        Ok(())
    }

    fn usage(&mut self) -> Result<(Usage, u64)> {
        let running = self.running.as_mut().context("the gateway does not run")?;
        let usage = running.usage().and_then(|usage| Ok((usage, running.guest_calls()?)));
        usage.with_context(|| self.log_tail())
    }

    pub(crate) fn put(&mut self, phase: Phase, figure: &'static str, value: f64) {
        println!("    {figure}: {value:.2}");
        self.figures.put(self.run, phase, Who::Pintle, figure, value);
    }

    fn log_tail(&self) -> String {
        contestant::log_tail(&self.log)
    }
}

/// A control plane, and the kubeconfigs of who is known there.
struct Installed {
    plane: ControlPlane,
    reader: PathBuf,
    keeper: PathBuf,
    gateway_kubeconfig: PathBuf,
}

/// Starts the control plane.
fn install() -> Result<Installed> {
    let plane = plane::start(true)?;
    let deploy = plane::repository().join("deploy");
    for file in ["install.yaml", "gateway.yaml", "samples/farm/crd.yaml", "samples/farm/rbac.yaml"] {
        plane::apply_file(&plane, &deploy.join(file))?;
    }
    // The gateway runs beside the control plane, with the same account and roles.
    let scale = ["scale", "deployment", "--all", "--namespace=pintle-system", "--replicas=0"];
    plane.run_kubectl(&scale, None)?;
    plane.run_kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], None)?;
    let (namespace, name) = READER;
    let rule = |group: &str, resources: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]});
    let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
    plane::apply(
        &plane,
        &[
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "bench-reader"},
                "rules": [rule("", &["pods"]), rule("farm.example.com", &["farmpods", "llamas"])],
            }),
            plane::binding("bench-reader", "bench-reader", namespace, name),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": KEEPER.1, "namespace": KEEPER.0}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "bench-keeper"},
                "rules": [{"apiGroups": ["farm.example.com", "twin.example.com"], "resources": ["llamas"], "verbs": all}],
            }),
            plane::binding("bench-keeper", "bench-keeper", KEEPER.0, KEEPER.1),
        ],
    )?;
    let reader = plane.kubeconfig_for_service_account(namespace, name)?;
    let keeper = plane.kubeconfig_for_service_account(KEEPER.0, KEEPER.1)?;
    let gateway_kubeconfig = plane.kubeconfig_for_service_account(GATEWAY.0, GATEWAY.1)?;
    Ok(Installed { plane, reader, keeper, gateway_kubeconfig })
}

/// A CRD of what a View serves, under a group of its own.
fn twin(served: &Value) -> Value {
    let mut schema = served["schema"].clone();
    for (field, of) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][field] = json!({"type": of});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "llamas.twin.example.com"},
        "spec": {
            "group": "twin.example.com", "scope": "Namespaced",
            "names": {
                "kind": served["kind"], "listKind": served["listKind"],
                "plural": served["plural"], "singular": served["singular"],
            },
            "versions": [{
                "name": "v1alpha", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "additionalPrinterColumns": served.get("columns").cloned().unwrap_or_else(|| json!([])),
            }],
        },
    })
}

/// The path of the Llamas of a group and version in a namespace.
pub(crate) fn llamas(api_version: &str, namespace: &str) -> String {
    format!("/apis/{api_version}/namespaces/{namespace}/llamas")
}

/// The name of the Llama with this number.
pub(crate) fn llama_name(number: u32) -> String {
    format!("llama-{number:05}")
}

/// A Llama of this weight.
pub(crate) fn llama(api_version: &str, number: u32, weight: u32) -> Value {
    json!({
        "apiVersion": api_version, "kind": "Llama", "metadata": {"name": llama_name(number)},
        "spec": {"weight": weight, "height": 0.5},
    })
}

fn farm_file(name: &str) -> PathBuf {
    plane::repository().join("deploy/samples/farm").join(name)
}

/// The name of the Pod with this number.
pub(crate) fn pod_name(number: u32) -> String {
    format!("pod-{number:05}")
}

/// The path of the Pod with this number.
pub(crate) fn pod_path(number: u32) -> String {
    format!("{PODS}/{}", pod_name(number))
}

/// The path of what the view shows of it.
pub(crate) fn farm_pod_path(number: u32) -> String {
    format!("{FARM_PODS}/{PREFIX}{}", pod_name(number))
}

/// A Pod as a small service has it: two containers, with environment, ports, probes and resources.
fn pod(number: u32) -> Value {
    let name = pod_name(number);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/name": "shop", "app.kubernetes.io/component": "front", "shard": format!("{}", number % 20)},
            "annotations": {TOKEN: "as created", "prometheus.io/scrape": "true"},
        },
        "spec": {
            // No scheduler has this name.
            "schedulerName": "nobody",
            "containers": [
                {
                    "name": "front", "image": "registry.example.com/shop/front:1.27.3",
                    "ports": [{"name": "http", "containerPort": 8080}],
                    "env": [
                        {"name": "SHOP_NAME", "value": name},
                        {"name": "DATABASE_URL", "value": "postgres://shop@database.shop.svc:5432/shop"},
                        {"name": "CACHE_URL", "value": "redis://cache.shop.svc:6379"},
                        {"name": "LOG_LEVEL", "value": "info"},
                    ],
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
                },
                {"name": "proxy", "image": "registry.example.com/mesh/proxy:2.4.1", "args": ["--port=15001"]},
            ],
        },
    })
}
