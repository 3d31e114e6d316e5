//! Aggregated APIs whose server runs beside the control plane and not in a Pod.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::ControlPlane;

impl ControlPlane {
    /// Makes the API server send the requests for an API group and version to this port of the loopback interface. `apiservice` is the
    /// APIService as it is installed in a cluster; only the port of its Service is replaced. The Service that it names becomes one that
    /// leads to loopback, in a namespace that must exist.
    ///
    /// The server must have a certificate for `<service>.<namespace>.svc` by an authority in `spec.caBundle`, as in a cluster. Whether the
    /// API server has reached it is the APIService's condition Available.
    ///
    /// # Errors
    /// When the APIService names no Service, or the cluster refuses one of the two.
    pub fn serve_api_on_loopback(&self, apiservice: &Value, port: u16) -> Result<()> {
        let objects = on_loopback(apiservice, port)?.map(|object| object.to_string()).join("\n---\n");
        // In a cluster the Service has another type, which somebody may have applied before.
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
        self.run_kubectl(&apply, Some(&objects))?;
        Ok(())
    }
}

/// The Service and the APIService. Without `--enable-aggregator-routing` the API server takes the host from the Service's external name,
/// and the port from the APIService.
fn on_loopback(apiservice: &Value, port: u16) -> Result<[Value; 2]> {
    let name = |field: &str| {
        let named = apiservice.pointer(&format!("/spec/service/{field}")).and_then(Value::as_str);
        named.with_context(|| format!("the APIService has no spec.service.{field}"))
    };
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name("name")?, "namespace": name("namespace")?},
        // Kubernetes takes any DNS name, and has no objection to one that consists of numbers.
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
    });
    let mut apiservice = apiservice.clone();
    apiservice["spec"]["service"]["port"] = port.into();
    Ok([service, apiservice])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_port_of_the_apiservice_is_replaced() {
        let installed = json!({
            "kind": "APIService",
            "spec": {"group": "g", "versionPriority": 15, "service": {"name": "s", "namespace": "n", "port": 443}},
        });
        let [service, apiservice] = on_loopback(&installed, 4711).unwrap();
        assert_eq!(service["metadata"], json!({"name": "s", "namespace": "n"}));
        assert_eq!(service["spec"], json!({"type": "ExternalName", "externalName": "127.0.0.1"}));
        let mut wanted = installed;
        wanted["spec"]["service"]["port"] = json!(4711);
        assert_eq!(apiservice, wanted);
    }

    #[test]
    fn an_apiservice_of_the_api_server_itself_is_refused() {
        let refused = on_loopback(&json!({"spec": {"group": "g"}}), 1).unwrap_err();
        assert_eq!(refused.to_string(), "the APIService has no spec.service.name");
    }
}
