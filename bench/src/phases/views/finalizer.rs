//! Llamas that are created and deleted under a controller that has a finalizer on each of them, beside the same of a CRD.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::{AsyncBufReadExt, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use crate::{
    api::{Api, refused},
    calls::{Moment, tally},
    farm::{Farm, LLAMAS, TWINS, llama, llama_name, llamas},
    figures::median,
    settings::Phase,
};

/// How often each resource has its turn under each controller.
const ROUNDS: u32 = 3;

/// How many creates, and afterwards deletes, are in flight.
const IN_FLIGHT: usize = 16;

/// How many objects the controller works on at once.
const WORKERS: usize = 8;

/// How long the controller may take.
const PATIENCE: Duration = Duration::from_secs(300);

const FINALIZER: &str = "bench.pintle.dev/kept";

/// How the controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By a merge patch that names the version.
    Patch,
    /// By a replacement that names the version.
    Update,
}

/// What one resource took.
#[derive(Debug, Default)]
struct Took {
    seconds: Vec<f64>,
    cpu_seconds: f64,
    apiserver_cpu_seconds: f64,
}

pub(super) async fn run(farm: &mut Farm<'_>) -> Result<()> {
    println!("  view-finalizer: {} Llamas", farm.flags.llamas);
    let begun = farm.begin()?;
    let (mut of_crd, mut of_view) = ((0.0, 0.0), (0.0, 0.0));
    for (way, names) in
        [(Way::Patch, ["crd_patch_s", "view_patch_s"]), (Way::Update, ["crd_update_s", "view_update_s"])]
    {
        let (mut crd, mut view) = (Took::default(), Took::default());
        for round in 0..ROUNDS {
            for turn in [round % 2, (round + 1) % 2] {
                match turn {
                    0 => one(farm, TWINS, way, round, &mut crd).await.context("the CRD")?,
                    _ => one(farm, LLAMAS, way, round, &mut view).await.context("the view")?,
                }
            }
        }
        for (sum, took, name) in [(&mut of_crd, crd, names[0]), (&mut of_view, view, names[1])] {
            sum.0 += took.cpu_seconds;
            sum.1 += took.apiserver_cpu_seconds;
            farm.put(Phase::ViewFinalizer, name, median(took.seconds).unwrap_or(f64::NAN));
        }
    }
    let each = |seconds: f64| seconds * 1e3 / f64::from(2 * ROUNDS * farm.flags.llamas);
    let figures = [
        ("gateway_cpu_ms_a_llama", each(of_view.0)),
        ("crd_apiserver_cpu_ms_a_llama", each(of_crd.1)),
        ("view_apiserver_cpu_ms_a_llama", each(of_view.1)),
    ];
    for (name, value) in figures {
        farm.put(Phase::ViewFinalizer, name, value);
    }
    farm.end(Phase::ViewFinalizer, &begun)
}

/// One round of one resource.
async fn one(farm: &mut Farm<'_>, api_version: &str, way: Way, round: u32, took: &mut Took) -> Result<()> {
    let (count, of) = (farm.flags.llamas, if api_version == TWINS { "crd" } else { "view" });
    let namespace = format!("bench-{of}-{way:?}-{round}").to_lowercase();
    farm.create_namespace(&namespace).await?;
    let collection = llamas(api_version, &namespace);
    let (client, mut calls, since) = (farm.keeper().await?, farm.calls()?, Moment::now());
    // Whoever makes them and the controller have connections of their own.
    let (mut controller, progress) = Controller::start(farm.keeper().await?, &collection, way).await?;
    let begun = farm.begin()?;
    let began = Instant::now();
    let (client, path) = (&client, collection.as_str());
    stream::iter(0..count)
        .map(|number| async move { client.create(path, &llama(api_version, number, 31)).await })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    controller.until(&progress, |progress| progress.held.len() == count as usize).await?;
    let held = began.elapsed().as_secs_f64();
    stream::iter(0..count)
        .map(|number| async move { client.delete(&format!("{path}/{}", llama_name(number))).await })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    controller.until(&progress, |progress| progress.gone == count as usize).await?;
    let seconds = began.elapsed().as_secs_f64();
    let used = farm.used(&begun)?;
    println!("    {of}, {way:?}: {seconds:.2} s, {held:.2} s until all have the finalizer");
    println!("      the gateway's calls: {:?}", tally(&calls.since(since)?));
    took.seconds.push(seconds);
    took.cpu_seconds += used.cpu_seconds;
    took.apiserver_cpu_seconds += used.apiserver_cpu_seconds;
    Ok(())
}

/// What the controller's watch has shown.
#[derive(Debug, Default)]
struct Progress {
    /// The names of the objects that have had the finalizer.
    held: BTreeSet<String>,
    /// How many objects are gone.
    gone: usize,
}

/// Names that wait for a worker, as client-go queues them: each is there once, and none is worked on twice at once.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<String>,
    due: BTreeSet<String>,
    in_work: BTreeSet<String>,
}

impl Queue {
    fn add(&mut self, name: &str) {
        if self.due.insert(name.to_owned()) && !self.in_work.contains(name) {
            self.waiting.push_back(name.to_owned());
        }
    }

    fn take(&mut self) -> Option<String> {
        let name = self.waiting.pop_front()?;
        self.due.remove(&name);
        self.in_work.insert(name.clone());
        Some(name)
    }

    fn done(&mut self, name: &str) {
        self.in_work.remove(name);
        if self.due.contains(name) {
            self.waiting.push_back(name.to_owned());
        }
    }
}

/// What the watch and the workers have in common.
struct Shared {
    api: Api,
    collection: String,
    way: Way,
    objects: Mutex<BTreeMap<String, Value>>,
    queue: Mutex<Queue>,
    queued: Notify,
    progress: watch::Sender<Progress>,
}

/// A controller as client-go has them: a watch fills a cache and a queue, and workers bring what is queued to where it should be.
struct Controller {
    tasks: JoinSet<Result<()>>,
}

impl Controller {
    async fn start(api: Api, collection: &str, way: Way) -> Result<(Self, watch::Receiver<Progress>)> {
        let version = api.version(collection).await?;
        let path = format!("{collection}?watch=1&allowWatchBookmarks=true&resourceVersion={version}");
        let events = api.watch(&path).await?;
        let (progress, seen) = watch::channel(Progress::default());
        let shared = Arc::new(Shared {
            api,
            collection: collection.to_owned(),
            way,
            objects: Mutex::default(),
            queue: Mutex::default(),
            queued: Notify::new(),
            progress,
        });
        let mut tasks = JoinSet::new();
        for _ in 0..WORKERS {
            let shared = Arc::clone(&shared);
            tasks.spawn(async move { shared.work().await });
        }
        tasks.spawn(async move {
            let mut lines = std::pin::pin!(events.lines());
            while let Some(line) = lines.next().await {
                shared.see(serde_json::from_str(&line?)?)?;
            }
            bail!("the controller's watch ended")
        });
        Ok((Self { tasks }, seen))
    }

    /// Waits until the watch has shown something.
    async fn until(
        &mut self,
        progress: &watch::Receiver<Progress>,
        reached: impl FnMut(&Progress) -> bool,
    ) -> Result<()> {
        let mut progress = progress.clone();
        tokio::select! {
            reached = tokio::time::timeout(PATIENCE, progress.wait_for(reached)) => {
                reached.context("the controller is too slow")?.map(drop).context("the controller ended")
            }
            Some(ended) = self.tasks.join_next() => ended?.and(Err(anyhow::anyhow!("a worker ended"))),
        }
    }
}

impl Shared {
    fn see(&self, mut event: Value) -> Result<()> {
        let object = event["object"].take();
        let r#type = event["type"].as_str().unwrap_or_default();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match r#type {
            "BOOKMARK" => return Ok(()),
            "ADDED" | "MODIFIED" => {
                if has_finalizer(&object) {
                    self.progress.send_modify(|progress| {
                        progress.held.insert(name.clone());
                    });
                }
                locked(&self.objects).insert(name.clone(), object);
            }
            "DELETED" => {
                locked(&self.objects).remove(&name);
                self.progress.send_modify(|progress| progress.gone += 1);
            }
            _ => bail!("the controller's watch shows {type}: {object}"),
        }
        locked(&self.queue).add(&name);
        self.queued.notify_one();
        Ok(())
    }

    async fn work(&self) -> Result<()> {
        loop {
            let next = locked(&self.queue).take();
            let Some(name) = next else {
                self.queued.notified().await;
                continue;
            };
            let object = locked(&self.objects).get(&name).cloned();
            if let Some(due) = object.and_then(|object| due(object, self.way)) {
                let path = format!("{}/{name}", self.collection);
                let written = match self.way {
                    Way::Patch => self.api.merge_patch(&path, &due).await,
                    Way::Update => self.api.update(&path, &due).await,
                };
                match written {
                    // It has changed or is gone: an event of that comes.
                    Err(error) if matches!(refused(&error), Some(404 | 409)) => {}
                    written => written?,
                }
            }
            locked(&self.queue).done(&name);
            self.queued.notify_one();
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn has_finalizer(object: &Value) -> bool {
    object["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|finalizers| finalizers.contains(&json!(FINALIZER)))
}

/// What the controller writes to an object, if anything: a finalizer to a new one, and none to one that is being deleted.
fn due(mut object: Value, way: Way) -> Option<Value> {
    let is_deleted = object["metadata"].get("deletionTimestamp").is_some();
    if is_deleted != has_finalizer(&object) {
        return None;
    }
    let finalizers = if is_deleted { json!([]) } else { json!([FINALIZER]) };
    match way {
        Way::Patch => Some(json!({"metadata": {
            "resourceVersion": object["metadata"]["resourceVersion"], "finalizers": finalizers,
        }})),
        Way::Update => {
            object["metadata"]["finalizers"] = finalizers;
            Some(object)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_waits_once_and_is_worked_on_once_at_a_time() {
        let mut queue = Queue::default();
        queue.add("a");
        queue.add("a");
        assert_eq!((queue.take().as_deref(), queue.take()), (Some("a"), None));
        queue.add("a");
        assert_eq!(queue.take(), None, "it is in work");
        queue.done("a");
        assert_eq!(queue.take().as_deref(), Some("a"));
        queue.done("a");
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn a_new_object_gets_the_finalizer_and_a_deleted_one_loses_it() {
        let object = |finalizers: Value, deleted: bool| {
            let mut object = json!({"metadata": {"resourceVersion": "7", "finalizers": finalizers}});
            if deleted {
                object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
            object
        };
        let patch =
            |finalizers: Value| json!({"metadata": {"resourceVersion": "7", "finalizers": finalizers}});
        for (finalizers, deleted, expected) in [
            (json!([]), false, Some(patch(json!([FINALIZER])))),
            (json!([FINALIZER]), false, None),
            (json!([FINALIZER]), true, Some(patch(json!([])))),
            (json!(["another"]), true, None),
        ] {
            assert_eq!(due(object(finalizers, deleted), Way::Patch), expected);
        }
        let replaced = due(object(json!([FINALIZER]), true), Way::Update).unwrap();
        assert_eq!(replaced["metadata"]["finalizers"], json!([]));
    }
}
