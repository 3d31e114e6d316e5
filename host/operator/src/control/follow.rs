//! Watches Modules, Reconcilers, Views and CRDs, and keeps the host's cache of them up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::StreamExt;
use kube::{Api, runtime::watcher};
use pintle_core::StatusSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::error;

use crate::{
    state::{CrdInfo, Listed, Shared, State},
    watch::persistent,
};

pub(super) fn put<T>(map: &mut BTreeMap<String, T>, name: &str, object: Option<T>) {
    match object {
        Some(object) => map.insert(name.into(), object),
        None => map.remove(name),
    };
}

/// Keeps the host's own objects of one kind up to date.
pub(super) async fn follow<K>(
    shared: Arc<Shared>,
    put: fn(&mut State, &str, Option<K>),
    seen: fn(&mut Listed) -> &mut bool,
) where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let api: Api<K> = Api::all(shared.cluster.client());
    let mut stream = std::pin::pin!(persistent(move || watcher(api.clone(), watcher::Config::default())));
    let mut listed: BTreeMap<String, K> = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let name = |object: &K| object.meta().name.clone().unwrap_or_default();
    let kind = K::kind(&());
    while let Some(event) = stream.next().await {
        let mut state = shared.state();
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                listed.insert(name(&object), object);
            }
            Ok(watcher::Event::InitDone) => {
                for gone in known.iter().filter(|name| !listed.contains_key(*name)) {
                    put(&mut state, gone, None);
                }
                known = listed.keys().cloned().collect();
                for (name, object) in std::mem::take(&mut listed) {
                    put(&mut state, &name, Some(object));
                }
                *seen(&mut state.own.listed) = true;
                state.own.errors.remove(&*kind);
            }
            Ok(watcher::Event::Apply(object)) => {
                known.insert(name(&object));
                put(&mut state, &name(&object), Some(object));
            }
            Ok(watcher::Event::Delete(object)) => {
                known.remove(&name(&object));
                put(&mut state, &name(&object), None);
            }
            Err(failed) => {
                let message = match &failed {
                    watcher::Error::InitialListFailed(kube::Error::Api(status)) => match status.code {
                        404 => format!(
                            "the CRD of {kind} is missing; apply deploy/install.yaml, or the output of: pintle crds"
                        ),
                        403 => format!(
                            "{kind}s may not be listed or watched; apply deploy/install.yaml: {}",
                            status.message
                        ),
                        _ => status.message.clone(),
                    },
                    other => other.to_string(),
                };
                if state.own.errors.get(&*kind) != Some(&message) {
                    error!(kind = %kind, error = message, "The host's own resources cannot be watched");
                }
                state.own.errors.insert(kind.to_string(), message);
                continue;
            }
        }
        drop(state);
        shared.control.notify_one();
    }
}

pub(super) async fn follow_crds(shared: Arc<Shared>) {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition as Crd;
    follow::<Crd>(
        shared,
        |state, name, object| {
            let info = object.as_ref().and_then(crd_info);
            let group_kind = info
                .as_ref()
                .or(state.own.crds.get(name))
                .map(|info| (info.group.clone(), info.kind.clone()));
            if state.own.crds.get(name) == info.as_ref() {
                return;
            }
            if let Some((group, kind)) = group_kind {
                state.served.forget(&group, &kind);
            }
            put(&mut state.own.crds, name, info);
        },
        |listed| &mut listed.crds,
    )
    .await;
}

pub(super) fn crd_info(
    crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
) -> Option<CrdInfo> {
    let value = serde_json::to_value(&crd.spec.versions).ok()?;
    let versions = value
        .as_array()?
        .iter()
        .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true));
    let versions = versions.filter_map(|version| {
        Some((version.get("name")?.as_str()?.to_owned(), StatusSchema::of_crd_version(version)))
    });
    let conditions = crd.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    Some(CrdInfo {
        group: crd.spec.group.clone(),
        kind: crd.spec.names.kind.clone(),
        plural: crd.spec.names.plural.clone(),
        namespaced: crd.spec.scope == "Namespaced",
        established: conditions
            .into_iter()
            .any(|condition| condition.type_ == "Established" && condition.status == "True"),
        versions: versions.collect(),
    })
}
