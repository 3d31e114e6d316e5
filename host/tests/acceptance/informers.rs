//! Informers, which believe what they were told: of client-go, as controllers in Go have them, and of kube-rs. One of each lists and then
//! watches, and one lists by watching.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, LazyLock, Mutex, PoisonError, mpsc},
    thread,
};

use anyhow::{Context, ensure};
use futures::{FutureExt as _, StreamExt as _};
use kit::{Look, Patience, eventually, process::Running};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt as _, reflector, watcher},
};
use pintle_kubernetes::connect::Connect;
use pintle_testbed::ControlPlane;
use serde_json::{Number, Value};
use tokio::task::JoinHandle;

use crate::real::make_namespace;

pub(crate) const NAME: &str = "informers of client-go and of kube-rs are in step with what is stored";

const NAMESPACE: &str = "informers";

/// Objects by namespace and name.
type Objects = BTreeMap<String, Value>;

/// How an informer gets what there is at first.
#[derive(Clone, Copy, Debug)]
enum First {
    ByList,
    ByWatch,
}

/// Four informers of one resource. They end with this value.
pub(crate) struct Informers {
    go: Vec<(First, GoInformer)>,
    rust: Vec<(First, RustInformer)>,
    live: Api<DynamicObject>,
}

impl Informers {
    /// Starts informers of this resource, in one namespace or in all, with the rights of this kubeconfig.
    pub(crate) async fn start(
        kubeconfig: &Path,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let connect = Connect { kubeconfig: Some(kubeconfig.to_owned()), context: None };
        let client = connect.client().await?;
        let ways = [First::ByList, First::ByWatch];
        let go = |first| Ok((first, GoInformer::start(first, kubeconfig, resource, namespace)?));
        let rust = |first| (first, RustInformer::start(first, &client, resource, namespace));
        Ok(Self {
            go: ways.into_iter().map(go).collect::<anyhow::Result<_>>()?,
            rust: ways.into_iter().map(rust).collect(),
            live: api(&client, resource, namespace),
        })
    }

    /// Waits until each has heard of everything, and believes what the API server lists.
    pub(crate) async fn wait_until_in_step(&mut self) -> anyhow::Result<()> {
        eventually("every informer believes what is live", async || {
            let live = match self.live.list(&Default::default()).await {
                Ok(live) => by_name(live.items.iter())?,
                Err(error) => return Ok(Look::NotYet(format!("what is live: {error}"))),
            };
            let Some((who, believed)) = self.first_out_of_step(&live)? else { return Ok(Look::Reached(())) };
            let is_synced = believed.is_some();
            let believed = believed.unwrap_or_default();
            let differing =
                live.keys().chain(believed.keys()).find(|key| live.get(*key) != believed.get(*key));
            let key = differing.map_or("", String::as_str);
            Ok(Look::NotYet(format!(
                "{who} (synced: {is_synced}) does not know what {key:?} is:\nlive      {:?}\nbelieved  {:?}",
                live.get(key),
                believed.get(key)
            )))
        })
        .await
    }

    /// The first informer that does not believe what is live, and what it believes. One that has not been told everything that there was
    /// at first believes nothing yet, also where nothing is live.
    fn first_out_of_step(&mut self, live: &Objects) -> anyhow::Result<Option<(String, Option<Objects>)>> {
        for (first, informer) in &mut self.go {
            let believed = informer.believed()?;
            if believed.as_ref() != Some(live) {
                return Ok(Some((format!("client-go ({first:?})"), believed)));
            }
        }
        for (first, informer) in &self.rust {
            let believed = informer.believed()?;
            if believed.as_ref() != Some(live) {
                return Ok(Some((format!("kube-rs ({first:?})"), believed)));
            }
        }
        Ok(None)
    }

    /// What each informer of client-go was told about one object, in order: `add`, `update`, `delete`.
    pub(crate) fn told(&self, key: &str) -> Vec<Vec<String>> {
        let about = |(_, informer): &(First, GoInformer)| {
            let changes = informer.changes.lock().unwrap_or_else(PoisonError::into_inner);
            let about = changes.iter().filter(|change| change["key"] == key);
            about.filter_map(|change| change["event"].as_str().map(ToOwned::to_owned)).collect()
        };
        self.go.iter().map(about).collect()
    }
}

/// The program of host/tests/informer, as a process of its own.
struct GoInformer {
    process: Running,
    changes: Arc<Mutex<Vec<Value>>>,
    dumps: mpsc::Receiver<Value>,
}

impl GoInformer {
    fn start(
        first: First,
        kubeconfig: &Path,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> anyhow::Result<Self> {
        let program = PROGRAM.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let mut process = Command::new(program)
            .args(["-namespace", namespace.unwrap_or_default()])
            .arg(format!("{}.{}.{}", resource.plural, resource.version, resource.group))
            .env("KUBECONFIG", kubeconfig)
            .env("KUBE_FEATURE_WatchListClient", matches!(first, First::ByWatch).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map(Running)
            .context("starting the informer")?;
        let lines = BufReader::new(process.0.stdout.take().context("its output")?).lines();
        let changes = Arc::<Mutex<Vec<Value>>>::default();
        let (to, dumps) = mpsc::channel();
        let told = Arc::clone(&changes);
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line: Value = serde_json::from_str(&line).unwrap_or_default();
                if line["event"] != "dump" {
                    told.lock().unwrap_or_else(PoisonError::into_inner).push(line);
                } else if to.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, changes, dumps })
    }

    /// What it believes, once it has been told everything that there was at first.
    fn believed(&mut self) -> anyhow::Result<Option<Objects>> {
        let stdin = self.process.0.stdin.as_mut().context("its input")?;
        stdin.write_all(b"dump\n").context("the informer has ended")?;
        let dump =
            self.dumps.recv_timeout(Patience::default().whole()).context("the informer does not reply")?;
        let store = dump["store"].as_object().into_iter().flatten();
        let store = store.map(|(key, object)| (key.clone(), plain(object))).collect();
        Ok((dump["synced"] == true).then_some(store))
    }
}

/// Where the program is. It is built when the first test asks; Go keeps what it compiled, so that the next run builds nothing.
static PROGRAM: LazyLock<Result<PathBuf, String>> =
    LazyLock::new(|| build().map_err(|error| format!("{error:#}")));

fn build() -> anyhow::Result<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("informer");
    let built = Command::new("go")
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(crate::repository().join("host/tests/informer"))
        // As the control plane is built, which has compiled most of it.
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .output()
        .context("`go` cannot be run: install Go 1.26 or newer")?;
    ensure!(built.status.success(), "the informer is not built: {}", String::from_utf8_lossy(&built.stderr));
    Ok(program)
}

/// A reflector of kube-rs.
struct RustInformer {
    store: reflector::Store<DynamicObject>,
    task: JoinHandle<()>,
}

impl RustInformer {
    fn start(first: First, client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Self {
        let config = match first {
            First::ByList => watcher::Config::default(),
            First::ByWatch => watcher::Config::default().streaming_lists(),
        };
        let events = watcher(api(client, resource, namespace), config).default_backoff();
        let mut writer = reflector::store::Writer::new(resource.clone());
        let store = writer.as_reader();
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                // After an error the watcher goes on by itself.
                event.iter().for_each(|event| writer.apply_watcher_event(event));
            }
        });
        Self { store, task }
    }

    fn believed(&self) -> anyhow::Result<Option<Objects>> {
        let is_synced = self.store.wait_until_ready().now_or_never().is_some();
        is_synced.then(|| by_name(self.store.state().iter().map(AsRef::as_ref))).transpose()
    }
}

impl Drop for RustInformer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

fn by_name<'a>(objects: impl Iterator<Item = &'a DynamicObject>) -> anyhow::Result<Objects> {
    let named = |object: &DynamicObject| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let key = match &object.metadata.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        Ok((key, plain(&serde_json::to_value(object)?)))
    };
    objects.map(named).collect()
}

/// An object as every informer keeps it. In a list, the kind of the items may stand with the list alone; and Go writes 1.0 as 1.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    }
    with_plain_numbers(&mut object);
    object
}

fn with_plain_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(same) = number.as_f64().and_then(Number::from_f64) {
                *number = same;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(with_plain_numbers),
        Value::Object(fields) => fields.values_mut().for_each(with_plain_numbers),
        _ => {}
    }
}

/// Of a kind that the API server itself serves: what they do not notice there, they would not notice of a view either.
pub(crate) async fn check(plane: &ControlPlane) -> anyhow::Result<()> {
    let kubectl = |arguments: &[&str]| plane.run_kubectl(&[&["-n", NAMESPACE], arguments].concat(), None);
    make_namespace(plane, NAMESPACE)?;
    kubectl(&["create", "configmap", "stays", "--from-literal=k=1"])?;
    kubectl(&["create", "configmap", "goes", "--from-literal=k=1"])?;
    let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    let mut informers = Informers::start(plane.kubeconfig(), &resource, Some(NAMESPACE)).await?;
    informers.wait_until_in_step().await?;

    kubectl(&["patch", "configmap/stays", "-p", r#"{"data":{"k":"2"}}"#])?;
    kubectl(&["delete", "configmap/goes"])?;
    kubectl(&["create", "configmap", "comes"])?;
    informers.wait_until_in_step().await?;
    // An informer that lists again may be told once more what it knows.
    for (name, lasts) in [("stays", &["update"][..]), ("goes", &["delete"]), ("comes", &["add", "update"])] {
        for told in informers.told(&format!("{NAMESPACE}/{name}")) {
            let (first, last) = (told.first().context("nothing")?, told.last().context("nothing")?);
            ensure!(first == "add" && lasts.contains(&last.as_str()), "{name}: {told:?}");
        }
    }
    drop(informers);
    match plane.audit_log() {
        Some(log) => two_listed_by_watching(log).await?,
        None => println!("        skipped: whether informers list by watching, no audit log"),
    }
    plane.run_kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"], None)?;
    Ok(())
}

/// One of client-go and one of kube-rs, which have other names.
async fn two_listed_by_watching(log: &Path) -> anyhow::Result<()> {
    let first = format!("/namespaces/{NAMESPACE}/configmaps?");
    eventually("one informer of client-go and one of kube-rs list by watching", async || {
        let log = fs::read_to_string(log)?;
        let streamed =
            log.lines().filter(|line| line.contains(&first) && line.contains("sendInitialEvents=true"));
        let events = streamed.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let agents: BTreeSet<String> = events.map(|event| event["userAgent"].to_string()).collect();
        Ok(Look::reached_if(agents.len() == 2, || format!("{agents:?} do")))
    })
    .await
}
