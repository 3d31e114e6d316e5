//! What the gateway's account may do, asked of the API server itself.

use std::path::Path;

use kit::Look;
use pintle_testbed::{ControlPlane, eventually};

use crate::repository;

pub(crate) const NAME: &str =
    "the gateway's account acts as whoever asks, for the verbs and kinds of the farm alone";

const JANE: &str = "--as=jane --as-group=a --as-group=b --as-group=c --as-group=d --as-uid=1 \
     --as-user-extra=authentication.kubernetes.io/credential-id=x";
const ROBOT: &str = "--as=system:serviceaccount:default:default";

/// What the account asks for, and what the refusal says; nothing where it is granted. Jane and the robot may view everything.
const ASKED: [(&str, &str, &str); 16] = [
    ("get pods", "", ""),
    ("delete pods --all", "", "cannot delete resource \"pods\""),
    ("get pods", JANE, ""),
    ("get pods", ROBOT, ""),
    ("get pods", "--as=bob", "User \"bob\" cannot list resource \"pods\""),
    ("get configmaps", JANE, "cannot impersonate-on:user-info:list resource \"configmaps\""),
    ("create token default", JANE, "cannot impersonate-on:user-info:create"),
    // A ServiceAccount has the groups and the uid that it has: whoever names them asks for more than this right.
    (
        "get pods",
        "--as=system:serviceaccount:default:default --as-uid=1",
        "cannot impersonate resource \"serviceaccounts\"",
    ),
    ("get pods", "--as=jane --as-group=system:masters", "system:masters group is not allowed"),
    (
        "get pods",
        "--as=jane --as-user-extra=example.com/team=x",
        "cannot impersonate:user-info resource \"userextras/example.com/team\"",
    ),
    ("get pods", "--as=system:node:node-0", "cannot impersonate-on:arbitrary-node:list"),
    ("get llamarecords.store.farm.example.com", "", ""),
    ("get secrets", "", "cannot list resource \"secrets\""),
    ("get configmap extension-apiserver-authentication --namespace=kube-system", "", ""),
    ("annotate apiservice v1.apps example.com/a=b", "", "cannot patch resource \"apiservices\""),
    ("get modules", "", ""),
];

pub(crate) fn check(plane: &ControlPlane) -> anyhow::Result<()> {
    for file in ["gateway.yaml", "samples/farm/crd.yaml", "samples/farm/rbac.yaml"] {
        let path = repository().join("deploy").join(file);
        plane.run_kubectl(&["apply", "--server-side", "--filename", &path.to_string_lossy()], None)?;
    }
    let wait =
        ["wait", "--for=condition=Established", "--timeout=180s", "crd/llamarecords.store.farm.example.com"];
    plane.run_kubectl(&wait, None)?;
    let subjects = ["--user=jane", "--serviceaccount=default:default"];
    let binding = ["create", "clusterrolebinding", "viewers", "--clusterrole=view"];
    plane.run_kubectl(&[&binding[..], &subjects].concat(), None)?;
    let kubeconfig = plane.kubeconfig_for_service_account("pintle-system", "pintle-gateway")?;
    for (asked, whom, refusal) in ASKED {
        // The API server takes note of roles and bindings a moment after they were made.
        eventually(format!("kubectl {asked} {whom} is told {refusal:?}"), || {
            let said = ask(plane, &kubeconfig, asked, whom)?;
            let is_as_wanted = if refusal.is_empty() { said.is_empty() } else { said.contains(refusal) };
            Ok(Look::reached_if(is_as_wanted, || said))
        })?;
    }
    plane.run_kubectl(&["delete", "clusterrolebinding", "viewers"], None)?;
    Ok(())
}

/// Why kubectl was refused, or nothing.
fn ask(plane: &ControlPlane, kubeconfig: &Path, asked: &str, whom: &str) -> anyhow::Result<String> {
    let words = asked.split_whitespace().chain(whom.split_whitespace());
    let output = plane.kubectl_command().env("KUBECONFIG", kubeconfig).args(words).output()?;
    Ok(if output.status.success() { String::new() } else { String::from_utf8(output.stderr)? })
}
