//! The control loop: it turns Views, Modules and APIServices into what is served, and writes what it finds out into the Views.
//!
//! It is level-triggered: it looks at everything whenever anything has changed. Every gateway runs it. What is in force stands in the status
//! of a View, written over the version that was read, so that gateways agree on it without a leader.

pub(crate) mod bind;
mod loads;
mod objects;
mod registration;
pub(crate) mod serving;
pub(crate) mod wanted;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kube::{Client, ResourceExt};
use pintle_api::{View, ViewStatus};
use pintle_core::{
    conditions::{self, READY},
    view::Backing,
};
use pintle_kubernetes::{Cluster, REQUEST_TIMEOUT, Resource, builtin};
use pintle_modules::Loader;
use pintle_runtime::{Spawner, clock};
use pintle_schema::config_schema;
use pintle_wit::Kind;
use tokio::sync::{Notify, watch};
use tracing::{debug, info, warn};

use crate::directory::Directory;
use bind::{Decision, KindState, World, decide};
use loads::Loads;
use objects::Objects;
use registration::Registration;
use serving::Table;

/// How long an answer about a kind holds. CRDs come and go rarely, and a View says when its own is missing.
const KIND_HOLDS: Duration = Duration::from_secs(60);

/// The same of a kind that is missing.
const MISSING_HOLDS: Duration = Duration::from_secs(5);

/// How often everything is looked at although nothing has changed.
const RESYNC: Duration = Duration::from_secs(30);

/// How long after a failed write everything is looked at again.
const RETRY: Duration = Duration::from_secs(1);

/// What the control loop works with.
pub(crate) struct Control {
    cluster: Cluster,
    /// The resource of Views.
    resource: Resource,
    spawner: Spawner,
    objects: Objects,
    loads: Loads,
    kinds: BTreeMap<Kind, (KindState, Duration)>,
    world: World,
    /// Whether the API server has said a version that lets the gateway ask as the caller.
    is_new_enough: bool,
    table: Table,
    directory: watch::Sender<Option<Arc<Directory>>>,
    registration: Registration,
    recorder: Recorder,
}

/// Tells people in Events.
type Recorder = kube::runtime::events::Recorder;

impl Control {
    /// A control loop. `own` is the gateway's own Service: its namespace and name.
    pub(crate) fn new(
        client: Client,
        spawner: Spawner,
        loader: Loader,
        identity: String,
        own: (String, String),
        directory: watch::Sender<Option<Arc<Directory>>>,
        bundle: watch::Receiver<String>,
    ) -> Self {
        let woken = Arc::new(Notify::new());
        let reporter = kube::runtime::events::Reporter {
            controller: pintle_api::GATEWAY_SERVICE.into(),
            instance: Some(identity),
        };
        Self {
            recorder: Recorder::new(client.clone(), reporter),
            objects: Objects::follow(&client, &spawner, &woken),
            loads: Loads::new(Arc::new(loader), spawner.clone(), woken),
            registration: Registration::new(client.clone(), own.clone(), bundle),
            world: World { own, ..World::default() },
            is_new_enough: false,
            cluster: Cluster::new(client),
            resource: builtin("pintle.dev/v1alpha1", "View", "views", false),
            spawner,
            kinds: BTreeMap::new(),
            table: Table::default(),
            directory,
        }
    }

    /// Works. Does not end.
    pub(crate) async fn run(mut self) {
        self.objects.listed().await;
        let mut pause = Duration::ZERO;
        loop {
            tokio::select! {
                // In an order that a simulation can repeat. Each leads to the same look at everything.
                biased;
                () = self.loads.woken() => {}
                () = self.registration.bundle_changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
            pause = match self.round().await {
                true => RESYNC
                    .min(self.loads.retry_in())
                    .min(self.kinds_hold_for())
                    .min(self.registration.due_in()),
                false => RETRY,
            };
        }
    }

    /// Looks at everything once. Returns whether everything that was to be written was.
    async fn round(&mut self) -> bool {
        self.world.views = self.objects.views();
        self.world.services = self.objects.services();
        let wanted = wanted::modules(&self.world.views);
        self.world.modules = self.loads.look(&wanted, &self.objects.modules());
        self.ask_for_version().await;
        self.ask_for_kinds().await;
        self.check_configs().await;
        self.check_shown().await;
        let now = clock::now();
        let decisions: Vec<(String, Decision)> =
            self.world.views.keys().map(|name| (name.clone(), decide(&self.world, name, now))).collect();
        let mut is_written = true;
        let mut servings = Vec::new();
        for (name, Decision { status, serving }) in decisions {
            let Some(view) = self.world.views.get(&name) else { continue };
            let is_known = match status {
                Some(status) if view.status.as_ref() != Some(&status) => self.write(view, &status).await,
                _ => true,
            };
            is_written &= is_known;
            match (is_known, serving) {
                (true, Some(serving)) => servings.push((view.clone(), serving)),
                // What others have not been told is not served: the epoch must be the same everywhere.
                (false, _) if view.metadata.deletion_timestamp.is_none() => {
                    servings.extend(self.table.kept(&name));
                }
                (_, None | Some(_)) => {}
            }
        }
        let all_loaded = self.loads.is_settled();
        let directory = self.table.renewed(servings);
        if all_loaded || self.directory.borrow().is_some() {
            self.registration.keep(&self.world, &directory).await;
            self.directory.send_replace(Some(directory));
        }
        is_written
    }

    /// Asks the API server for its version, if a View has it act as the caller, until it is new enough for that: it may be upgraded.
    async fn ask_for_version(&mut self) {
        if self.is_new_enough || !self.world.views.values().any(|view| bind::acts_as_caller(&view.spec)) {
            return;
        }
        match tokio::time::timeout(REQUEST_TIMEOUT, self.cluster.client().apiserver_version()).await {
            Ok(Ok(version)) => {
                self.world.too_old = bind::too_old(&version.major, &version.minor);
                self.is_new_enough = self.world.too_old.is_none();
            }
            Ok(Err(error)) => debug!(%error, "The API server does not say its version"),
            Err(_) => debug!("The API server did not say its version in time"),
        }
    }

    /// Asks the API server how it serves the backing kinds.
    async fn ask_for_kinds(&mut self) {
        let wanted = wanted::kinds(&self.world);
        let now = clock::monotonic();
        self.kinds.retain(|kind, (state, at)| {
            let holds = if matches!(state, KindState::Found(_)) { KIND_HOLDS } else { MISSING_HOLDS };
            wanted.contains(kind) && *at + holds > now
        });
        for kind in wanted {
            if self.kinds.contains_key(&kind) {
                continue;
            }
            let state = state_of(&self.cluster, &kind).await;
            self.kinds.insert(kind, (state, now));
        }
        self.world.kinds =
            self.kinds.iter().map(|(kind, (state, _))| (kind.clone(), state.clone())).collect();
    }

    fn kinds_hold_for(&self) -> Duration {
        let missing = self.kinds.values().any(|(state, _)| !matches!(state, KindState::Found(_)));
        if missing { MISSING_HOLDS } else { KIND_HOLDS }
    }

    /// Checks the configs of Views. A schema comes from a guest, so a check may take long, and runs where that holds up nobody.
    async fn check_configs(&mut self) {
        for (views, config) in wanted::configs(&self.world) {
            let key = (views.digest().to_string(), config.to_string());
            let check = move || config_schema::supports_views(views.manifest())?.check(&config);
            match self.spawner.block(check).await {
                Ok(outcome) => {
                    self.world.configs.insert(key, outcome);
                }
                Err(error) => warn!(%error, "A check of a config panicked"),
            }
        }
        let digests: Vec<String> = self.loads.digests();
        self.world.configs.retain(|(digest, _), _| digests.contains(digest));
    }

    /// Checks the schemas and columns of views: once for a module and view, where that holds up nobody.
    async fn check_shown(&mut self) {
        for (views, name) in wanted::shown(&self.world) {
            let key = (views.digest().to_string(), name.clone());
            let check = move || views.manifest().view(&name).map(bind::can_be_shown);
            match self.spawner.block(check).await {
                // That a module has no such view is said before this is asked for.
                Ok(outcome) => self.world.shown.extend(outcome.map(|outcome| (key, outcome))),
                Err(error) => warn!(%error, "A check of a view's schema panicked"),
            }
        }
        let digests: Vec<String> = self.loads.digests();
        self.world.shown.retain(|(digest, _), _| digests.contains(digest));
    }

    /// Writes the status of a View over the version that was read.
    async fn write(&self, view: &View, status: &ViewStatus) -> bool {
        let name = view.name_any();
        let read = view.resource_version().unwrap_or_default();
        let value = serde_json::to_value(status).unwrap_or_default();
        match self.cluster.write_own_status(&self.resource, &name, &read, &value).await {
            Ok(version) => {
                let mut written = view.clone();
                written.metadata.resource_version = Some(version);
                written.status = Some(status.clone());
                self.objects.wrote(written);
                self.tell(view, status).await;
                true
            }
            Err(error) if error.code == 409 => {
                debug!(view = name, "Another gateway wrote the View");
                false
            }
            Err(error) => {
                warn!(view = name, %error, "The status of a View cannot be written");
                false
            }
        }
    }

    /// Logs what has become of a View, and publishes an Event.
    async fn tell(&self, view: &View, status: &ViewStatus) {
        use kube::{
            Resource,
            runtime::events::{Event, EventType},
        };
        let ready = |status: Option<&ViewStatus>| {
            let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
            conditions::find(conditions, READY).cloned()
        };
        let (before, Some(after)) = (ready(view.status.as_ref()), ready(Some(status))) else { return };
        let (was, is) =
            (view.status.as_ref().and_then(|status| status.active.as_ref()), status.active.as_ref());
        let is_swapped = was.map(|active| active.epoch) != is.map(|active| active.epoch);
        if before
            .as_ref()
            .is_some_and(|before| before.status == after.status && before.reason == after.reason)
            && !is_swapped
        {
            return;
        }
        let (r#type, note) = match after.status.as_str() {
            "True" => (
                EventType::Normal,
                match is {
                    Some(active) if is_swapped => {
                        format!("Module {} is in force, in epoch {}", active.module, active.epoch)
                    }
                    _ => after.message.clone(),
                },
            ),
            _ => (EventType::Warning, after.message.clone()),
        };
        info!(view = view.name_any(), reason = after.reason, message = note, "A View has changed");
        let reason = if is_swapped && is.is_some() {
            pintle_core::reasons::MODULE_IN_FORCE.to_owned()
        } else {
            after.reason
        };
        let note = Some(pintle_core::text::note(&note));
        let event = Event { type_: r#type, reason, note, action: "Serve".into(), secondary: None };
        let about = view.object_ref(&());
        match tokio::time::timeout(REQUEST_TIMEOUT, self.recorder.publish(&event, &about)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "An Event was not published"),
            Err(_) => debug!("An Event was not published in time"),
        }
    }
}

/// What the API server knows of a kind.
pub(crate) async fn state_of(cluster: &Cluster, kind: &Kind) -> KindState {
    match cluster.discover(kind).await {
        Ok(Some(resource)) => KindState::Found(Backing {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            plural: resource.plural,
            namespaced: resource.namespaced,
        }),
        Ok(None) => KindState::Missing,
        Err(error) => KindState::Unknown(error.to_string()),
    }
}
