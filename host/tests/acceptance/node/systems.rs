//! What Pintle is as Pods: the operator, the gateway behind its Service, the ports of both, and the systems, whose Pods run too.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use http::{Request, header};
use kit::{
    Look, eventually,
    host::{self, or_error},
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use pintle_core::object;
use pintle_simulation::scenario::{Backend, Cascade};
use pintle_testbed::{ControlPlane, NODE_ADDRESS};
use pintle_wit::names::ANNOTATION_SUSPEND;
use serde_json::{Value, json};

use super::{NAMESPACE, OPERATOR, leaders::Leader, process_of, ready_pods};
use crate::{
    Check, check,
    commands::Case,
    install,
    real::{Real, is_ready},
};

/// The two Deployments. Each has a ServiceAccount of its own name, and so has the label `app.kubernetes.io/name` of its Pods.
const PROGRAMS: [&str; 2] = ["pintle", "pintle-gateway"];

/// What the gateway is told of its console, as in docs/console.md.
pub(super) const CONSOLE_FLAGS: [&str; 4] = [
    "--console-bind=0.0.0.0:8444",
    "--console-host=console.example.com",
    "--console-tls-cert-file=/console-tls/tls.crt",
    "--console-tls-private-key-file=/console-tls/tls.key",
];

const CONSOLE_HOST: &str = "console.example.com";

/// The commands of the farm.
const FARM: Case =
    Case { claim: "the gateway's Pods serve the farm", steps: include_str!("../commands/pods.txt") };

/// How a process of a container runs that Pod Security `restricted` lets in, as the kernel says.
const RESTRICTED: [&str; 5] = [
    "Uid:\t65532\t65532\t65532\t65532",
    "Gid:\t65532\t65532\t65532\t65532",
    "CapEff:\t0000000000000000",
    "NoNewPrivs:\t1",
    "Seccomp:\t2",
];

/// The fields that every line of a log has: docs/operators.md.
const LOG_FIELDS: [&str; 4] = ["timestamp", "level", "target", "message"];

/// How long a server may take to reply. It is asked again.
const REPLY: Duration = Duration::from_secs(10);

/// The node port of the check, at the node's address.
const NODE_PORT: u16 = 30010;

pub(super) fn checks<'a>(plane: &'a ControlPlane, real: &'a Real<'a>) -> Vec<Check<'a>> {
    vec![
        check("the operator and the gateway run as Pods under restricted Pod Security", move || {
            check_security(real)
        }),
        check(
            "the gateway's Pods serve the farm, documents and the console behind their Service",
            move || serve(plane, real),
        ),
        check("a Darkroom's image proxy makes a picture 32 pixels wide", move || scale_picture(real)),
        check("a WebServer starts nginx, which answers at the node's port", move || run_nginx(real)),
        check("a ConfigMonitor restarts Pods, which then show the new message", move || change_message(real)),
        check("logs are one JSON object a line, and kubectl logs, port-forward and debug work", move || {
            look_into_pods(plane, real)
        }),
        check("the NetworkPolicies allow each port that the Pods were seen to use", move || {
            compare_policies(plane, real)
        }),
    ]
}

/// Makes the certificate of the console, in the Secret that the chart mounts.
pub(super) fn make_certificate(plane: &ControlPlane) -> anyhow::Result<()> {
    let pair = rcgen::generate_simple_self_signed([CONSOLE_HOST.to_owned()])?;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "pintle-console-tls", "namespace": NAMESPACE},
        "stringData": {"tls.crt": pair.cert.pem(), "tls.key": pair.signing_key.serialize_pem()},
    });
    plane.run_kubectl(&["apply", "--server-side", "--filename", "-"], Some(&secret.to_string())).map(drop)
}

async fn check_security(real: &Real<'_>) -> anyhow::Result<()> {
    for program in PROGRAMS {
        for pod in ready_pods(real, NAMESPACE, &format!("app.kubernetes.io/name={program}"), 2).await? {
            ensure_restricted(program, &pod).with_context(|| object::name(&pod).to_owned())?;
        }
    }
    Leader::find(real).await.map(drop)
}

fn ensure_restricted(program: &str, pod: &Value) -> anyhow::Result<()> {
    let account = &pod["spec"]["serviceAccountName"];
    ensure!(account == program, "its account is {account}");
    let restarts = &pod["status"]["containerStatuses"][0]["restartCount"];
    ensure!(restarts == 0, "it was restarted {restarts} times");
    let process = PathBuf::from(format!("/proc/{}", process_of(pod)?));
    let status = fs::read_to_string(process.join("status"))?;
    for wanted in RESTRICTED {
        ensure!(status.lines().any(|line| line == wanted), "not {wanted:?}: {status}");
    }
    let mounts = fs::read_to_string(process.join("mounts"))?;
    let is_read_only = mounts.lines().any(|mount| {
        let mut fields = mount.split(' ').skip(1);
        fields.next() == Some("/") && fields.nth(1).is_some_and(|options| options.starts_with("ro,"))
    });
    ensure!(is_read_only, "its root file system can be written to: {mounts}");
    Ok(())
}

async fn serve(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "gallery";
    FARM.run(plane).context(FARM.claim)?;

    real.make_namespace(namespace)?;
    install::apply_files(plane, &["deploy/samples/view-darkrooms.yaml", "deploy/samples/console.yaml"])?;
    let mut root = darkroom(namespace, "shown", "https://example.com");
    root["metadata"]["annotations"] = json!({ANNOTATION_SUSPEND: "true"});
    real.apply(&root).await?;
    let run = |words: &str| real.kubectl(&words.split(' ').collect::<Vec<_>>(), None);
    run("create serviceaccount reader --namespace=gallery")?;
    run(
        "create role reader --namespace=gallery --verb=get,list --resource=darkrooms.deployments.example.com",
    )?;
    run("create rolebinding reader --namespace=gallery --role=reader --serviceaccount=gallery:reader")?;
    let token = run("create token reader --namespace=gallery")?;
    let console = console(real, token.trim()).await?;
    for (path, wanted) in [
        ("/darkrooms?namespace=gallery", r#""name":"shown""#),
        ("/console/", "<!doctype html>"),
        ("/api/v1/session", "system:serviceaccount:gallery:reader"),
    ] {
        eventually(format!("the console shows {wanted} at {path}"), async || {
            let request = Request::get(path).header(header::HOST, CONSOLE_HOST).body(Vec::new())?;
            let reply = console.request_text(request).await.map_err(anyhow::Error::from);
            or_error(reply.map(|text| {
                let has_it = text.contains(wanted);
                Look::reached_if(has_it, || text)
            }))
        })
        .await?;
    }
    real.delete_namespace(namespace)
}

/// A client of the console with this token. The name of the console leads to the Service for it alone.
async fn console(real: &Real<'_>, token: &str) -> anyhow::Result<kube::Client> {
    let address = service(real, NAMESPACE, "pintle-console")?;
    let secret = real.kubectl_json(&["get", "secret", "pintle-console-tls", "--namespace", NAMESPACE])?;
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "console",
        "contexts": [{"name": "console", "context": {"cluster": "console", "user": "reader"}}],
        "clusters": [{"name": "console", "cluster": {
            "server": format!("https://{address}"),
            "tls-server-name": CONSOLE_HOST,
            // It is signed by itself.
            "certificate-authority-data": secret["data"]["tls.crt"],
        }}],
        "users": [{"name": "reader", "user": {"token": token}}],
    }))?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok(kube::Client::try_from(config)?)
}

async fn scale_picture(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "pictures";
    real.make_namespace(namespace)?;
    // A picture of 64 by 48 pixels, whatever its name.
    apply(real, &hello(namespace, "pictures", &json!({"args": ["pictures"]})))?;
    let source = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "pictures", "namespace": namespace},
        "spec": {"selector": {"app": "pictures"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    apply(real, &source)?;
    let source = service(real, namespace, "pictures")?;
    let picture = async |address: &str, path: &str| -> anyhow::Result<(Option<i32>, Option<i32>)> {
        let (_, body) = eventually(format!("{address} has a picture at {path}"), async || {
            Ok(Look::of(get(address, path)))
        })
        .await?;
        ensure!(body.starts_with(b"BM"), "no bitmap: {:?}", body.get(..2));
        let number = |at: usize| body.get(at..at + 4)?.try_into().ok().map(i32::from_le_bytes);
        // A negative height is that of a picture whose first row is at the top.
        Ok((number(18), number(22).map(i32::abs)))
    };
    let size = picture(&source, "/a.bmp").await?;
    ensure!(size == (Some(64), Some(48)), "the source has {size:?}");

    let root = darkroom(namespace, "small", &format!("http://{source}"));
    real.apply(&root).await?;
    real.wait_until_ready(&object::reference(&root)).await?;
    ready_pods(real, namespace, "darkroom=small", 1).await?;
    let proxy = service(real, namespace, "small")?;
    let size = picture(&proxy, "/a.bmp?w=32").await?;
    ensure!(size == (Some(32), Some(24)), "the image proxy makes {size:?}");
    real.delete_namespace(namespace)
}

async fn run_nginx(real: &Real<'_>) -> anyhow::Result<()> {
    let (namespace, label) = ("nginx", "webserver_cr=web");
    real.make_namespace(namespace)?;
    let root = json!({
        "apiVersion": "my.domain/v1", "kind": "WebServer", "metadata": {"name": "web", "namespace": namespace},
        "spec": {"image": "nginx:1.23.1", "nodePort": NODE_PORT},
    });
    real.apply(&root).await?;
    let reference = object::reference(&root);
    real.wait_until_ready(&reference).await?;
    ready_pods(real, namespace, label, 1).await?;
    let address = format!("{NODE_ADDRESS}:{NODE_PORT}");
    let (head, _) = eventually("the node's port answers", async || Ok(Look::of(get(&address, "/")))).await?;
    ensure!(head.contains("\r\nServer: nginx"), "{head}");

    real.kubectl(&["scale", "webserver", "web", "--replicas=2", "--namespace", namespace], None)?;
    ready_pods(real, namespace, label, 2).await?;
    real.wait_until_ready(&reference).await?;

    real.delete(&reference, Cascade::Background).await?;
    eventually("nothing answers, and the Pods are gone", async || {
        let left = real.kubectl(&["get", "pods", "--output=name", "--namespace", namespace], None)?;
        let answer = get(&address, "/").ok();
        Ok(Look::reached_if(left.is_empty() && answer.is_none(), || format!("{left} {answer:?}")))
    })
    .await?;
    real.delete_namespace(namespace)
}

async fn change_message(real: &Real<'_>) -> anyhow::Result<()> {
    let namespace = "messages";
    real.make_namespace(namespace)?;
    apply(real, &message(namespace, "hello"))?;
    apply(real, &frontend(namespace))?;
    let before = pod_with_message(real, namespace, "hello").await?;

    let root = json!({
        "apiVersion": "magalix.com/v1", "kind": "ConfigMonitor",
        "metadata": {"name": "monitor", "namespace": namespace},
        "spec": {"configmap": "messages", "podSelector": {"app": "frontend"}},
    });
    real.apply(&root).await?;
    let reference = object::reference(&root);
    // A content is new if another one was seen before.
    let has_seen = |live: &Value| {
        let status = &live["status"];
        is_ready(live) && status["observedConfigHash"].is_string() && status["matchedPods"] == 1
    };
    real.wait_for("it has seen the ConfigMap and its Pod", &reference, has_seen).await?;

    apply(real, &message(namespace, "good morning"))?;
    let after = pod_with_message(real, namespace, "good morning").await?;
    ensure!(after != before, "the Pod is the same: {after}");
    real.delete_namespace(namespace)
}

/// The ConfigMap that has the message.
fn message(namespace: &str, text: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "messages", "namespace": namespace},
        "data": {"message": text},
    })
}

/// The Deployment whose one Pod says the message that there was when it started.
fn frontend(namespace: &str) -> Value {
    let env = json!([
        {"name": "MESSAGE", "valueFrom": {"configMapKeyRef": {"name": "messages", "key": "message"}}},
    ]);
    let pod = hello(namespace, "frontend", &json!({"args": ["serve"], "env": env}));
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "frontend", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": {"app": "frontend"}},
            "template": {"metadata": {"labels": {"app": "frontend"}}, "spec": pod["spec"]},
        },
    })
}

/// The uid of the Pod of the Deployment, once it says this.
async fn pod_with_message(real: &Real<'_>, namespace: &str, wanted: &str) -> anyhow::Result<String> {
    eventually(format!("the Pod says {wanted}"), async || {
        let pods = ready_pods(real, namespace, "app=frontend", 1).await?;
        let pod = pods.first().context("one Pod")?;
        let address = format!("{}:8080", pod["status"]["podIP"].as_str().unwrap_or_default());
        or_error(get(&address, "/").map(|(_, body)| {
            let text = String::from_utf8_lossy(&body);
            match text.contains(wanted) {
                true => Look::Reached(object::uid(pod).to_owned()),
                false => Look::NotYet(text.into_owned()),
            }
        }))
    })
    .await
}

async fn look_into_pods(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    for program in PROGRAMS {
        for pod in ready_pods(real, NAMESPACE, &format!("app.kubernetes.io/name={program}"), 2).await? {
            let name = object::name(&pod);
            let log = real.kubectl(&["logs", "--namespace", NAMESPACE, name], None)?;
            ensure!(!log.is_empty(), "{name} has logged nothing");
            for line in log.lines() {
                let object: Value = serde_json::from_str(line).with_context(|| format!("{name}: {line}"))?;
                let has = |field: &&str| object[*field].is_string();
                ensure!(LOG_FIELDS.iter().all(has), "{name}: {line}");
            }
            let mut kubectl = plane.kubectl_command();
            kubectl.args(["port-forward", "--namespace", NAMESPACE, "--address=127.0.0.1", name, ":8080"]);
            let mut forward = plane.start_server("port-forward", &mut kubectl)?;
            let address = forward.address("Forwarding from")?.to_string();
            get(&address, "/readyz").with_context(|| name.to_owned())?;
            let (_, metrics) = get(&address, "/metrics").with_context(|| name.to_owned())?;
            let has_metrics = String::from_utf8_lossy(&metrics).contains("\nrest_client_requests_total{");
            ensure!(has_metrics, "{name} has no metrics");
        }
    }
    // As docs/operators.md says, with the image that is on this node in the place of one with a shell.
    let pods = ready_pods(real, NAMESPACE, OPERATOR, 2).await?;
    let name = object::name(pods.first().context("two Pods")?);
    let debug = ["debug", name, "--image=registry.test/hello:1", "--target=pintle", "--profile=restricted"];
    real.kubectl(&[&debug[..], &["--quiet", "--namespace", NAMESPACE]].concat(), None)?;
    eventually(format!("a container beside that of {name} runs"), async || {
        let pod = real.kubectl_json(&["get", "pod", name, "--namespace", NAMESPACE])?;
        let beside = pod["status"]["ephemeralContainerStatuses"].as_array();
        let runs = beside.into_iter().flatten().any(|status| status["state"]["running"].is_object());
        Ok(Look::reached_if(runs, || format!("{beside:?}")))
    })
    .await
}

/// What a Pod does with TCP and UDP, by the sockets of its network namespace.
struct Sockets {
    /// The ports at which it waits for others.
    listens: BTreeSet<String>,
    /// What it has a connection to, or had until a moment ago.
    asks: BTreeSet<(&'static str, SocketAddr)>,
}

/// A port of a protocol.
fn named(protocol: &str, port: u16) -> String {
    format!("{protocol}/{port}")
}

/// The node enforces no policy: they are only compared.
async fn compare_policies(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    install::apply_files(plane, &["deploy/samples/console.yaml"])?;
    let policies = real.kubectl_json(&["get", "networkpolicies", "--namespace", NAMESPACE])?;
    let network = real.kubectl_json(&["get", "services,endpointslices", "--all-namespaces"])?;
    for program in PROGRAMS {
        for pod in ready_pods(real, NAMESPACE, &format!("app.kubernetes.io/name={program}"), 2).await? {
            let name = object::name(&pod);
            let Sockets { listens, asks } = sockets(process_of(&pod)?)?;
            let inward = allowed(&policies, &pod, "ingress")?;
            ensure!(listens == inward, "{name} listens at {listens:?}, and the policies let in {inward:?}");
            let outward = allowed(&policies, &pod, "egress")?;
            ensure!(!asks.is_empty(), "{name} has no connection to the API server");
            for (protocol, address) in asks {
                let ports = behind(&network, protocol, address);
                ensure!(!ports.is_empty(), "{name} asks {protocol} {address}, and nothing is behind it");
                let is_allowed = ports.is_subset(&outward);
                ensure!(is_allowed, "{name} asks {address}, at {ports:?}; let out are {outward:?}");
            }
        }
    }
    Ok(())
}

fn sockets(process: u32) -> anyhow::Result<Sockets> {
    let mut all = Vec::new();
    for (protocol, file) in [("TCP", "tcp"), ("TCP", "tcp6"), ("UDP", "udp"), ("UDP", "udp6")] {
        // A kernel without IPv6 has one of the two.
        let table = fs::read_to_string(format!("/proc/{process}/net/{file}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, remote, ..] = fields.as_slice() else { bail!("no socket: {line}") };
            let address = |text: &str| socket_address(text).with_context(|| format!("no address: {line}"));
            all.push((protocol, address(local)?, address(remote)?));
        }
    }
    let outside: Vec<_> = all
        .into_iter()
        .filter(|(_, local, remote)| !local.ip().is_loopback() && !remote.ip().is_loopback())
        .collect();
    // One that waits for others has no other end yet.
    let (waiting, connected): (Vec<_>, Vec<_>) =
        outside.into_iter().partition(|(_, _, remote)| remote.port() == 0);
    let listens: BTreeSet<String> =
        waiting.iter().map(|(protocol, local, _)| named(protocol, local.port())).collect();
    // At the ports at which it listens, others have asked.
    let asking =
        connected.iter().filter(|(protocol, local, _)| !listens.contains(&named(protocol, local.port())));
    let asks = asking.map(|(protocol, _, remote)| (*protocol, *remote)).collect();
    Ok(Sockets { listens, asks })
}

/// An address as the kernel prints it: the bytes by fours, as numbers of this machine, and the port.
fn socket_address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let mut bytes = Vec::new();
    for at in (0..ip.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::from(four),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

/// The ports at which what is sent to this address ends, as policies see it: if it is a Service's, those behind it.
fn behind(network: &Value, protocol: &str, address: SocketAddr) -> BTreeSet<String> {
    let items = || network["items"].as_array().into_iter().flatten();
    let ip = address.ip().to_string();
    let Some(service) = items().find(|item| item["spec"]["clusterIP"] == ip.as_str()) else {
        return BTreeSet::from([named(protocol, address.port())]);
    };
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let asked = ports.filter(|port| port["protocol"] == protocol && port["port"] == address.port());
    let names: Vec<&Value> = asked.map(|port| &port["name"]).collect();
    let slices = items().filter(|item| {
        let metadata = &item["metadata"];
        metadata["labels"]["kubernetes.io/service-name"] == service["metadata"]["name"]
            && metadata["namespace"] == service["metadata"]["namespace"]
    });
    let ports = slices.flat_map(|slice| slice["ports"].as_array()).flatten();
    ports.filter(|port| names.contains(&&port["name"])).filter_map(port_of).collect()
}

/// A port of a policy or an EndpointSlice.
fn port_of(port: &Value) -> Option<String> {
    Some(named(port["protocol"].as_str()?, u16::try_from(port["port"].as_u64()?).ok()?))
}

/// The ports in the rules of this direction of the policies that select a Pod, whomever a rule is about.
fn allowed(policies: &Value, pod: &Value, direction: &str) -> anyhow::Result<BTreeSet<String>> {
    let policies = policies["items"].as_array().into_iter().flatten().filter(|policy| {
        let wanted = policy["spec"]["podSelector"]["matchLabels"].as_object();
        wanted.into_iter().flatten().all(|(name, value)| pod["metadata"]["labels"][name] == *value)
    });
    let mut allowed = BTreeSet::new();
    for rule in policies.flat_map(|policy| policy["spec"][direction].as_array()).flatten() {
        let ports = rule["ports"].as_array().filter(|ports| !ports.is_empty());
        for port in ports.with_context(|| format!("a rule of {direction} is for all ports: {rule}"))? {
            allowed.insert(port_of(port).with_context(|| format!("a port without a number: {port}"))?);
        }
    }
    Ok(allowed)
}

/// Where the machine reaches a Service.
fn service(real: &Real<'_>, namespace: &str, name: &str) -> anyhow::Result<String> {
    let service = real.kubectl_json(&["get", "service", name, "--namespace", namespace])?;
    let spec = &service["spec"];
    let address = spec["clusterIP"].as_str().context("a Service without an address")?;
    Ok(format!("{address}:{}", spec["ports"][0]["port"]))
}

/// The head and the body of what a server replies, which must be 200.
fn get(address: &str, path: &str) -> anyhow::Result<(String, Vec<u8>)> {
    let mut reply = host::ask(address.parse()?, path, REPLY)?;
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n").context("a reply without a head")?;
    let body = reply.split_off(end + 4);
    let head = String::from_utf8(reply)?;
    ensure!(head.starts_with("HTTP/1.1 200"), "{head}{}", String::from_utf8_lossy(&body));
    Ok((head, body))
}

fn apply(real: &Real<'_>, object: &Value) -> anyhow::Result<()> {
    real.kubectl(&["apply", "--server-side", "--filename", "-"], Some(&object.to_string())).map(drop)
}

/// A Pod of the image `hello`, with this of its container, and with its name as the label `app`.
fn hello(namespace: &str, name: &str, container: &Value) -> Value {
    let mut container = container.clone();
    container["name"] = name.into();
    container["image"] = "registry.test/hello:1".into();
    container["readinessProbe"] = json!({"tcpSocket": {"port": 8080}, "periodSeconds": 1});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        // It takes no notice when it is asked to end.
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
    })
}

fn darkroom(namespace: &str, name: &str, source: &str) -> Value {
    json!({
        "apiVersion": "deployments.example.com/v1alpha1", "kind": "Darkroom",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"source": {"type": "WebFolder", "baseUrl": source}, "subDomains": [name]},
    })
}
