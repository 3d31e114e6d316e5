//! The farm: an API whose objects a guest computes, and which kubectl cannot tell from any other.

use std::{
    fs,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use pintle_testbed::Look;

use super::{Demo, Server};
use crate::{painted, say};

/// What sends requests for the farm's group to the gateway.
const APISERVICE: &str = "deploy/samples/farm/apiservice.yaml";

impl Demo<'_> {
    /// Serves the farm, and shows that people and watches see what is stored.
    pub(super) fn farm(&self) -> Result<Server> {
        say("serving an API of its own: deploy/gateway.yaml and the farm's roles");
        self.kubectl("apply --server-side -f deploy/gateway.yaml")?;
        // As for the host: the image is not built here.
        self.quiet("scale deployment pintle-gateway -n pintle-system --replicas=0")?;
        self.kubectl("apply -f deploy/samples/farm/crd.yaml -f deploy/samples/farm/rbac.yaml")?;
        let arguments = ["gateway", "--aggregated-bind", "127.0.0.1:0"];
        let mut gateway = self.start("gateway", "pintle-gateway", &arguments)?;
        let address: SocketAddr = gateway.address("The gateway starts")?.parse()?;
        // In a cluster, this is `kubectl apply` of the same file, and the Service leads to the gateway's Pods.
        let service = self.output(&format!("create --dry-run=client -o json -f {APISERVICE}"))?;
        self.plane.serve_api_on_loopback(&serde_json::from_str(&service)?, address.port())?;
        println!("    {APISERVICE} leads to {address}");

        self.pintle(&["push", "farm-0.1.0", &self.guest("farm"), "--wait"])?;
        self.kubectl("apply -f deploy/samples/farm/views.yaml")?;
        for condition in ["Ready", "Registered"] {
            self.wait(&format!("the Views to be {condition}"), || {
                self.succeeds(&format!(
                    "wait --for=condition={condition} --timeout=10s view/llamas view/farmpods"
                ))
            })?;
        }
        self.wait("the API server to reach the gateway", || {
            self.succeeds("wait --for=condition=Available --timeout=10s apiservice/v1alpha.farm.example.com")
        })?;
        self.wait("the views to be listed", || self.succeeds("get llamas,farmpods"))?;
        self.kubectl("get views")?;
        self.kubectl("apply -f deploy/samples/farm/dolly.yaml")?;
        self.kubectl("get llamas,farmpods")?;

        say("editing a Llama while somebody watches");
        let watch = Watch::start(self, "get llamas --watch")?;
        self.wait("the watch to show her", || watch.shows("31.4"))?;
        self.edit("llama dolly", "/^..weight:/s/31.4/32/")?;
        self.wait("the watch to show the new weight", || watch.shows("32"))?;
        print!("{}", watch.said());
        let stored = self.output("get llamarecord dolly -o jsonpath={.spec.weight}")?;
        ensure!(stored == "32", "what is stored is not what was written: {stored}");
        self.kubectl("get llamarecords")?;
        Ok(gateway)
    }

    /// Runs `kubectl edit` with an editor that makes one change.
    fn edit(&self, object: &str, change: &str) -> Result<()> {
        let editor = format!("sed -i {change}");
        println!("{}", painted("2", &format!("$ KUBE_EDITOR='{editor}' kubectl edit {object}")));
        let status = self.command(&format!("edit {object}")).env("KUBE_EDITOR", editor).status()?;
        ensure!(status.success(), "kubectl edit {object}: {status}");
        Ok(())
    }
}

/// A kubectl that watches. It ends with this value.
struct Watch {
    process: Child,
    output: PathBuf,
}

impl Watch {
    fn start(demo: &Demo<'_>, line: &str) -> Result<Self> {
        println!("{}", painted("2", &format!("$ kubectl {line} &")));
        let output = demo.plane.directory().join("logs").join("watch.txt");
        let process = demo
            .command(line)
            .stdin(Stdio::null())
            .stdout(fs::File::create(&output)?)
            .spawn()
            .with_context(|| format!("kubectl {line}"))?;
        Ok(Self { process, output })
    }

    /// What it has printed so far.
    fn said(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Whether it has printed this.
    fn shows(&self, text: &str) -> Look<()> {
        let said = self.said();
        Look::reached_if(said.contains(text), || format!("it shows {said:?}"))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It never ends by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
