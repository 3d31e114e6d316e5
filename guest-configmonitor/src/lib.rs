//! Reconciles ConfigMonitor (`magalix.com/v1`): restarts the Pods that use a ConfigMap when its content changes.
//!
//! It creates nothing. What it remembers is its status: the content that it last acted on, and what it restarted for it. The first
//! look at a ConfigMap restarts nothing; later, content that differs from the remembered one does, whenever that is noticed.

mod config;
mod pods;
mod resource;
mod selector;
#[cfg(test)]
mod tests;
mod workloads;

pub use config::Config;
pub use resource::{ConfigMonitorSpec, ConfigMonitorStatus, PodRef, Root, Strategy, Workload};

use pintle_guest::{
    Event, Failure, Guest, GuestCondition, Kind, Manifest, NeedKind, Needs, ObjectsNeed, PatchKind, Request,
    Response, Value, json, reasons, sha256_hex, status,
};

/// The kinds that can be restarted by a change of their pod template.
const RESTARTABLE: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// The guest.
pub struct ConfigMonitor;

pintle_guest::export!(ConfigMonitor);

impl Guest for ConfigMonitor {
    type Root = Root;
    type Config = Config;
    const READS_NEEDS: bool = true;

    fn manifest() -> Manifest {
        let needs = [("v1", "ConfigMap"), ("v1", "Pod"), ("apps/v1", "ReplicaSet")];
        let apps = RESTARTABLE.map(|kind| ("apps/v1", kind));
        Manifest {
            observe_status: true,
            needs: needs
                .into_iter()
                .chain(apps)
                .map(|(version, kind)| NeedKind::new(version, kind))
                .collect(),
            patches: RESTARTABLE
                .map(|kind| PatchKind::new("apps/v1", kind, &[workloads::ANNOTATIONS]))
                .to_vec(),
            evictions: true,
            ..Manifest::new(
                "configmonitor",
                env!("CARGO_PKG_VERSION"),
                Kind::new("magalix.com/v1", "ConfigMonitor"),
            )
        }
    }

    fn reconcile(request: Request<Root, Config>) -> Result<Response, Failure> {
        let root = &request.object;
        let name = config_map_name(&root.spec)?;
        let selector = selector::read(&root.spec.pod_selector)?;

        let mut needs = Needs::new(&request.needs);
        let config_map = needs.object(
            ObjectsNeed::named("v1", "ConfigMap", name)
                .with_fields(&["data", "binaryData"])
                .settled_for(request.config.settle_milliseconds),
        );
        // Pods that go one at a time wait for the one before to be replaced, which the host sees where the guest does.
        let fields: &[&str] = match root.spec.strategy {
            Strategy::Evict => &["metadata.ownerReferences", "status.conditions", "status.phase"],
            Strategy::RollingRestart | Strategy::Delete => &["metadata.ownerReferences"],
        };
        let pods = needs.objects(ObjectsNeed::labelled("v1", "Pod", selector).with_fields(fields));
        let pods = pods::live(pods);
        let change = Change::of(&root.status, name, config_map);

        let mut response = match root.spec.strategy {
            Strategy::RollingRestart => workloads::restart(root, &change, &pods, &mut needs),
            strategy => pods::replace(root, strategy, &change, &pods),
        };
        response.needs = needs.asked();
        if config_map.is_none() {
            let message =
                format!("there is no ConfigMap {name}; when it comes with other content, Pods are restarted");
            let missing = GuestCondition::new("ConfigMapNotFound", true, "ConfigMapNotFound", message);
            response.conditions.push(missing.blocking());
        }
        Ok(response)
    }
}

/// What the ConfigMap's content is to its ConfigMonitor.
struct Change<'a> {
    /// The ConfigMap's name.
    config_map: &'a str,
    /// The content that is acted on: that of the ConfigMap, or while there is none, what was remembered.
    hash: String,
    /// Whether it is other content than the remembered one.
    is_change: bool,
}

impl<'a> Change<'a> {
    fn of(before: &ConfigMonitorStatus, name: &'a str, config_map: Option<&Value>) -> Self {
        // Another ConfigMap than before is looked at for the first time.
        let remembered = if before.config_map == name { before.observed_config_hash.as_str() } else { "" };
        let hash = config_map.map_or_else(|| remembered.to_owned(), content_hash);
        let is_change = !remembered.is_empty() && hash != remembered;
        Self { config_map: name, hash, is_change }
    }

    /// What the status says whatever the strategy. `restarts` is whether this call restarts something.
    fn status(&self, before: &ConfigMonitorStatus, matched: usize, restarts: bool) -> ConfigMonitorStatus {
        ConfigMonitorStatus {
            config_map: self.config_map.to_owned(),
            observed_config_hash: self.hash.clone(),
            restart_count: match before.restart_count {
                Some(count) => Some(count.saturating_add(i64::from(restarts))),
                None => restarts.then_some(1),
            },
            matched_pods: i64::try_from(matched).unwrap_or(i64::MAX),
            ..ConfigMonitorStatus::default()
        }
    }

    /// The Event about the change, where this is one.
    fn event(&self, is_one: bool, what_follows: &str) -> Vec<Event> {
        let message = format!("ConfigMap {} has changed; {what_follows}", self.config_map);
        is_one.then(|| Event::normal("ConfigChanged", message)).into_iter().collect()
    }
}

/// A response that says this, with the restart time as the host's stamp.
fn response(next: &ConfigMonitorStatus, waiting_for: Option<String>, events: Vec<Event>) -> Response {
    let restarting = match waiting_for {
        Some(message) => GuestCondition::new("Restarting", true, "PodsOutdated", message),
        None => GuestCondition::new("Restarting", false, "UpToDate", ""),
    };
    Response {
        status: status(next),
        stamps: [("lastRestartTime".to_owned(), "restartCount".to_owned())].into(),
        conditions: vec![restarting],
        events,
        ..Response::default()
    }
}

/// The ConfigMap's name, under either name of the field. The CRD refuses the rest too; it is checked again because an object may
/// be older than the rule.
fn config_map_name(spec: &ConfigMonitorSpec) -> Result<&str, Failure> {
    let invalid = |message| Err(Failure::terminal(reasons::INVALID_SPEC, message).at("spec.configmap"));
    match (spec.configmap.as_deref(), spec.config_map.as_deref()) {
        (Some(one), Some(other)) if one != other => {
            invalid("configmap and configMap are two names for one field; give one of them")
        }
        (Some(name), _) | (None, Some(name)) if !name.is_empty() => Ok(name),
        _ => invalid("must name a ConfigMap"),
    }
}

/// The SHA-256 of what Pods can see of a ConfigMap. Labels and annotations are not in it.
fn content_hash(config_map: &Value) -> String {
    let part = |field: &str| match &config_map[field] {
        Value::Null => json!({}),
        entries => entries.clone(),
    };
    // As JSON, which is sorted and tells a key from a value.
    sha256_hex(json!([part("data"), part("binaryData")]).to_string())
}

/// Some names for a message: the first few, and how many more there are.
fn some_of(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
