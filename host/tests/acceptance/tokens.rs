//! Who a caller of the gateway's console is, over the wire. The gateway here has a client certificate of an administrator, and an API server
//! looks at a certificate before it looks at a token: a token that were sent on over the gateway's own connection would count for nothing.

use anyhow::{Context, ensure};
use pintle_simulation::scenario::Backend;
use pintle_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::{console::Console, real::Real, repository};

pub(crate) const NAME: &str = "a caller of the console is who its token says, whatever the gateway may do";

const NAMESPACE: &str = "tokens";

const DARKROOMS: &str = "/api/v1/objects/deployments.example.com/v1alpha1/darkrooms";

pub(crate) async fn check(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    let is_administrator = std::fs::read_to_string(plane.kubeconfig())?.contains("client-certificate");
    ensure!(is_administrator, "the gateway of this check has a certificate");
    real.make_namespace(NAMESPACE)?;
    let text = std::fs::read_to_string(repository().join("deploy/samples/view-darkrooms.yaml"))?;
    real.apply(&serde_saphyr::from_str::<Value>(&text)?).await?;
    let run = |words: &str| plane.run_kubectl(&words.split(' ').collect::<Vec<_>>(), None);
    run("create serviceaccount reader --namespace=tokens")?;
    run(
        "create role reader --namespace=tokens --verb=get,list --resource=darkrooms.deployments.example.com",
    )?;
    run("create rolebinding reader --namespace=tokens --role=reader --serviceaccount=tokens:reader")?;
    let token = run("create token reader --namespace=tokens")?;
    let mut console =
        Console::of_gateway(plane.kubeconfig(), &real.directory().join("tokens-gateway.log")).await?;

    console.says(&format!("Authorization: Bearer {}", token.trim()));
    console.wait_until_answered(&format!("/darkrooms?namespace={NAMESPACE}"), 200).await?;
    nobody_but_the_reader(&console)?;
    // The headers by which somebody else could be named are not sent on.
    let with = |more: &str| format!("Authorization: Bearer {}\r\n{more}", token.trim());
    console.says(&with("Impersonate-User: admin\r\nImpersonate-Group: system:masters"));
    nobody_but_the_reader(&console).context("with headers that impersonate")?;
    console.says(&with("X-Remote-User: admin\r\nX-Remote-Group: system:masters"));
    nobody_but_the_reader(&console).context("with headers of a proxy")?;

    for nobody in ["X-Nothing: at-all", "Authorization: Bearer made.up.token", "Authorization: Basic YTpi"] {
        console.says(nobody);
        for path in ["/api/v1/session", DARKROOMS, "/darkrooms"] {
            console.expect(401, "GET", path, "", None).context(nobody)?;
        }
    }
    real.delete_namespace(NAMESPACE)
}

fn nobody_but_the_reader(console: &Console) -> anyhow::Result<()> {
    let session = console.ask("GET", "/api/v1/session", "", None)?;
    ensure!(session.body["user"]["name"] == "system:serviceaccount:tokens:reader", "{}", session.body);
    let code = |method: &str, path: &str, body: Option<&Value>| -> anyhow::Result<u16> {
        let form = if body.is_some() { "application/json" } else { "" };
        Ok(console.ask(method, path, form, body)?.code)
    };
    let own = format!("{DARKROOMS}?namespace={NAMESPACE}");
    ensure!(code("GET", &own, None)? == 200, "it may list its own namespace");
    for elsewhere in [DARKROOMS, &format!("{DARKROOMS}?namespace=default"), "/darkrooms"] {
        ensure!(code("GET", elsewhere, None)? == 403, "it may not list {elsewhere}");
    }
    let document = json!({"name": "mine", "namespace": NAMESPACE, "subDomains": ["mine"],
        "source": {"type": "WebFolder", "baseUrl": "https://example.com"}});
    ensure!(code("POST", "/darkrooms", Some(&document))? == 403, "it may not create a document");
    Ok(())
}
