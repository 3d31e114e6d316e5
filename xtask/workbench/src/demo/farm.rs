//! The farm: an API whose objects a guest computes, and which kubectl cannot tell from any other.

use std::net::SocketAddr;

use anyhow::Result;

use super::{Demo, Server};
use crate::{painted, say};

/// What sends requests for the farm's group to the gateway.
const APISERVICE: &str = "deploy/samples/farm/apiservice.yaml";

impl Demo<'_> {
    /// Serves the farm, and shows that people and watches see what is stored.
    pub(super) fn farm(&self) -> Result<Server> {
        say("serving an API of its own: deploy/gateway.yaml and the farm's roles");
        self.run("kubectl apply --server-side -f deploy/gateway.yaml")?;
        // As for the host: the image is not built here.
        self.quiet("kubectl scale deployment pintle-gateway -n pintle-system --replicas=0")?;
        self.run("kubectl apply -f deploy/samples/farm/crd.yaml -f deploy/samples/farm/rbac.yaml")?;
        let mut gateway = self.start("pintle-gateway", &["gateway", "--aggregated-bind", "127.0.0.1:0"])?;
        let address: SocketAddr = gateway.address("The gateway starts")?.parse()?;
        // In a cluster, this is `kubectl apply` of the same file, and the Service leads to the gateway's Pods.
        let service = self.output(&format!("kubectl create --dry-run=client -o json -f {APISERVICE}"))?;
        self.plane.serve_api_on_loopback(&serde_json::from_str(&service)?, address.port())?;
        println!("    {APISERVICE} leads to {address}");

        self.push("farm-0.1.0", "farm")?;
        self.run("kubectl apply -f deploy/samples/farm/views.yaml")?;
        for condition in ["Ready", "Registered"] {
            let what = format!("the Views to be {condition}");
            self.until(&what, &format!("condition={condition}"), "view/llamas view/farmpods")?;
        }
        let service = "apiservice/v1alpha.farm.example.com";
        self.until("the API server to reach the gateway", "condition=Available", service)?;
        self.wait("the views to be listed", "kubectl get llamas,farmpods")?;
        self.run("kubectl get views")?;
        self.run("kubectl apply -f deploy/samples/farm/dolly.yaml")?;
        self.run("kubectl get llamas,farmpods")?;

        say("editing a Llama while somebody watches");
        let line = "kubectl get llamas --watch";
        println!("{}", painted("2", &format!("$ {line} &")));
        let mut watch = Server::start(self.plane, "watch", self.shell(&format!("exec {line}")))?;
        watch.says("her weight", |said| said.contains("31.4").then_some(()))?;
        self.run("KUBE_EDITOR='sed -i /^..weight:/s/31.4/32/' kubectl edit llama dolly")?;
        let said = watch.says("the new weight", |said| said.contains("32").then(|| said.to_owned()))?;
        println!("{said}");
        self.reads("kubectl get llamarecord dolly -o jsonpath='{.spec.weight}'", "32")?;
        self.run("kubectl get llamarecords")?;
        Ok(gateway)
    }
}
