//! The garbage collector and the namespace controller see viewed objects as they see others, and never take an object for gone that
//! cannot be asked for.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use kit::{Look, host::or_error};
use pintle_testbed::eventually;
use serde_json::json;

use super::{DOLLY, Farm, Gateway, NAMESPACE};

/// An owner, as its dependents name it.
struct Owner<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    uid: String,
}

impl Farm<'_> {
    pub(super) fn garbage_is_collected(&self) -> anyhow::Result<()> {
        self.the_ways_to_delete()?;
        // A whole namespace, with a llama in it.
        self.run("create namespace farm-2", None)?;
        self.run("apply --namespace=farm-2 --filename=-", Some(DOLLY))?;
        self.run("delete namespace farm-2 --timeout=180s", None).map(drop)
    }

    /// What a Llama is stored as is deleted in the way that was asked for, and so is what the Llama owns.
    fn the_ways_to_delete(&self) -> anyhow::Result<()> {
        for way in ["background", "foreground", "orphan"] {
            self.run(&format!("apply --namespace={NAMESPACE} --filename=-"), Some(DOLLY))?;
            let config_map = || json!({"apiVersion": "v1", "kind": "ConfigMap"});
            self.owned(config_map(), "of-the-llama", &self.llama("dolly")?)?;
            let uid = self.field(&format!("llamarecord dolly --namespace={NAMESPACE}"), ".metadata.uid")?;
            let record = Owner {
                api_version: "store.farm.example.com/v1",
                kind: "LlamaRecord",
                name: "dolly",
                uid: uid.clone(),
            };
            ensure!(uid != self.llama("dolly")?.uid, "two kinds with one uid");
            self.owned(config_map(), "of-the-record", &record)?;
            self.run(
                &format!("delete llama dolly --namespace={NAMESPACE} --cascade={way} --timeout=180s"),
                None,
            )?;
            ensure!(!self.is_there("llamarecord/dolly")?, "{way}: the record is left");
            if way == "orphan" {
                for left in ["of-the-llama", "of-the-record"] {
                    let left = format!("configmap {left} --namespace={NAMESPACE}");
                    let owners = self.field(&left, ".metadata.ownerReferences")?;
                    ensure!(owners.is_empty(), "{way}: {left} still names {owners}");
                    self.run(&format!("delete {left}"), None)?;
                }
            } else {
                // Foreground deletion ends with what the Llama owns. What the record owns follows.
                ensure!(
                    way == "background" || !self.is_there("configmap/of-the-llama")?,
                    "{way}: a dependent outlives the Llama"
                );
                eventually(format!("{way}: what the Llama and the record owned is gone"), || {
                    self.are_gone(&["configmap/of-the-llama", "configmap/of-the-record"])
                })?;
            }
        }
        Ok(())
    }

    /// While nobody can be asked, a namespace stays, and so does what a Llama owns.
    pub(super) fn a_namespace_waits_for_the_gateway(&mut self) -> anyhow::Result<()> {
        self.run("create namespace farm-3", None)?;
        self.run("apply --namespace=farm-3 --filename=-", Some(DOLLY))?;
        self.run(&format!("apply --namespace={NAMESPACE} --filename=-"), Some(DOLLY))?;
        self.owned(json!({"apiVersion": "v1", "kind": "ConfigMap"}), "straw", &self.llama("dolly")?)?;
        let addresses: Vec<_> = self.gateways.drain(..).flatten().map(|gateway| gateway.address).collect();
        self.run(
            "wait --for=condition=Available=false --timeout=180s apiservice/v1alpha.farm.example.com",
            None,
        )?;
        self.run("delete namespace farm-3 --wait=false", None)?;
        eventually("the namespace says what it waits for", || {
            let reasons = self.field("namespace farm-3", ".status.conditions[*].reason");
            or_error(reasons.map(|reasons| Look::reached_if(reasons.contains("DiscoveryFailed"), || reasons)))
        })?;
        self.the_collector_comes_by("v1", "ConfigMap")?;
        ensure!(
            self.is_there("configmap/straw")?,
            "the collector took what a Llama owns while no Llama could be asked for"
        );
        for address in addresses {
            self.gateways.push(Some(Gateway::start_at(address, &self.kubeconfig, &self.log)?));
        }
        self.run("wait --for=delete namespace/farm-3 --timeout=180s", None)?;
        self.the_collector_comes_by("farm.example.com/v1alpha", "Llama")?;
        ensure!(
            self.is_there("configmap/straw")?,
            "the collector took what a Llama owns when the gateway came back"
        );
        Ok(())
    }

    /// Uninstalling a view loses nothing: first the APIService goes, then the View.
    pub(super) fn what_is_stored_outlives_the_view(&self) -> anyhow::Result<()> {
        self.run("delete apiservice v1alpha.farm.example.com", None)?;
        self.run("delete view llamas", None)?;
        self.the_collector_comes_by("v1", "ConfigMap")?;
        for there in ["llamarecord/dolly", "configmap/straw"] {
            ensure!(self.is_there(there)?, "{there} went with the view");
        }
        self.run(&format!("delete namespace {NAMESPACE} --timeout=180s"), None).map(drop)
    }

    /// Waits until the collector has taken something whose owner of this kind is not there. It comes to it after all that it had to judge
    /// before.
    fn the_collector_comes_by(&self, api_version: &str, kind: &str) -> anyhow::Result<()> {
        // It remembers of whom it has asked.
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
        let uid = format!("6f9619ff-8b86-4011-b42d-{:012x}", nanos & 0xffff_ffff_ffff);
        let nobody = Owner { api_version, kind, name: "nobody", uid };
        self.owned(json!({"apiVersion": "v1", "kind": "ConfigMap"}), "stray", &nobody)?;
        eventually(format!("what a {kind} that is not there owns is gone"), || {
            self.are_gone(&["configmap/stray"])
        })
    }

    fn are_gone(&self, objects: &[&str]) -> anyhow::Result<Look<()>> {
        for object in objects {
            match self.is_there(object) {
                Ok(false) => {}
                Ok(true) => return Ok(Look::NotYet(format!("{object} is there"))),
                Err(error) => return Ok(Look::NotYet(format!("{error:#}"))),
            }
        }
        Ok(Look::Reached(()))
    }

    fn llama(&self, name: &'static str) -> anyhow::Result<Owner<'static>> {
        let uid = self.field(&format!("llama {name} --namespace={NAMESPACE}"), ".metadata.uid")?;
        Ok(Owner { api_version: "farm.example.com/v1alpha", kind: "Llama", name, uid })
    }

    /// Makes an object with an owner.
    fn owned(&self, mut object: serde_json::Value, name: &str, owner: &Owner<'_>) -> anyhow::Result<()> {
        let Owner { api_version, kind, name: owner, uid } = owner;
        object["metadata"] = json!({"name": name, "namespace": NAMESPACE, "ownerReferences": [
            {"apiVersion": api_version, "kind": kind, "name": owner, "uid": uid, "blockOwnerDeletion": true},
        ]});
        self.run("apply --filename=-", Some(&object.to_string())).map(drop)
    }

    fn is_there(&self, object: &str) -> anyhow::Result<bool> {
        let found = self
            .run(&format!("get {object} --namespace={NAMESPACE} --ignore-not-found --output=name"), None)?;
        Ok(!found.trim().is_empty())
    }
}
