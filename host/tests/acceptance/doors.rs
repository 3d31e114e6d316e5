//! The same bodies at two doors: as documents of REST, and as Darkrooms from kubectl. What one refuses, the other does not let pass.

use std::collections::BTreeSet;

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use kit::{Look, eventually};
use kube::config::{KubeConfigOptions, Kubeconfig};
use pintle_simulation::scenario::Backend;
use pintle_testbed::ControlPlane;
use pintle_wit::{ObjectRef, names::ANNOTATION_SUSPEND};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    console::{Answer, Console},
    real::{Real, condition},
    repository,
};

pub(crate) const NAME: &str = "REST and kubectl take the same bodies and refuse the same bodies";

const NAMESPACE: &str = "doors";

/// The credentials that bodies have. No output may have them.
const KEYS: [&str; 2] = ["AKIAEXAMPLE", "s3cr3t-example"];

/// A body of doors.yaml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    about: String,
    body: Value,
    is: Is,
    field: Option<String>,
    says: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Is {
    Accepted,
    Guest,
    Schema,
}

/// One field that is at fault: its path and what is said of it.
type Cause = (String, String);

pub(crate) async fn check(plane: &ControlPlane, real: &Real<'_>) -> anyhow::Result<()> {
    real.make_namespace(NAMESPACE)?;
    let text = std::fs::read_to_string(repository().join("deploy/samples/view-darkrooms.yaml"))?;
    real.apply(&serde_saphyr::from_str::<Value>(&text)?).await?;
    let console = Console::on_loopback(plane.kubeconfig(), &real.directory().join("doors-console.log"))?;
    console.wait_until_answered("/darkrooms?namespace=default", 200).await?;
    let text = std::fs::read_to_string(repository().join("host/tests/acceptance/doors.yaml"))?;
    let entries: Vec<Entry> = serde_saphyr::from_str(&text)?;
    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig())?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = kube::Client::try_from(config)?;
    let mut wrong = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if let Err(error) = both(real, &client, &console, index, entry).await {
            wrong.push(format!("{}: {error:#}", entry.about));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    the_story_of_a_document(&console).await?;
    an_edit_of_a_document_leaves_it_suspended(real, &console).await?;
    let log = std::fs::read_to_string(real.directory().join("doors-console.log"))?;
    for key in KEYS {
        ensure!(!log.contains(key), "a key is in the log");
    }
    real.delete_namespace(NAMESPACE)
}

/// What the guest of a Darkroom is asked and answers, as the console shows it. Its children have the key too.
async fn in_and_out_has_no_key(console: &Console, name: &str) -> anyhow::Result<()> {
    let path = format!(
        "/api/v1/objects/deployments.example.com/v1alpha1/darkrooms/namespaces/{NAMESPACE}/{name}/inspect"
    );
    // The engine starts and compiles while documents are served already, and may take longer than they do.
    let shown = eventually(format!("the console shows what {name} is asked"), async || {
        let shown = console.ask("GET", &path, "", None)?;
        Ok(match shown.code {
            503 => Look::NotYet(shown.body.to_string()),
            _ => Look::Reached(shown),
        })
    })
    .await?;
    ensure!(shown.code == 200, "{} {}", shown.code, shown.body);
    let encoded = KEYS.map(|key| base64::prelude::BASE64_STANDARD.encode(key));
    for key in KEYS.into_iter().chain(encoded.iter().map(String::as_str)) {
        ensure!(!shown.body.to_string().contains(key), "a key is in what {name} is asked and answers");
    }
    Ok(())
}

/// One body at both doors.
async fn both(
    real: &Real<'_>,
    client: &kube::Client,
    console: &Console,
    index: usize,
    entry: &Entry,
) -> anyhow::Result<()> {
    let (by_rest, by_kubectl) = (format!("rest-{index}"), format!("kubectl-{index}"));
    let body = |name: &str| -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&entry.body.to_string().replace("NAME", name))?)
    };
    let mut document = body(&by_rest)?;
    document["name"] = json!(by_rest);
    document["namespace"] = json!(NAMESPACE);
    let answer = console.ask("POST", "/darkrooms", "application/json", Some(&document))?;
    for key in KEYS {
        ensure!(!answer.body.to_string().contains(key), "a key is in the answer: {}", answer.body);
    }
    let refused = created(client, &by_kubectl, &as_spec(body(&by_kubectl)?)).await?;
    match entry.is {
        Is::Accepted => {
            ensure!(answer.code == 200, "REST: {} {}", answer.code, answer.body);
            ensure!(refused.is_none(), "kubectl: {refused:?}");
            let mut theirs = spec(real, &by_kubectl).await?;
            theirs = serde_json::from_str(&theirs.to_string().replace(&by_kubectl, &by_rest))?;
            let ours = spec(real, &by_rest).await?;
            ensure!(ours == theirs, "REST stores {ours}, kubectl {theirs}");
            in_and_out_has_no_key(console, &by_kubectl).await?;
        }
        Is::Guest => {
            ensure!(refused.is_none(), "kubectl: {refused:?}");
            let (field, says) =
                (entry.field.clone().unwrap_or_default(), entry.says.clone().unwrap_or_default());
            ensure!(answer.code == 422, "REST: {} {}", answer.code, answer.body);
            ensure!(
                answer.body["title"] == "Validation error" && answer.body["details"] == says.as_str(),
                "{}",
                answer.body
            );
            let cause = json!({"field": field, "message": says, "reason": "InvalidSpec"});
            ensure!(answer.body["causes"] == json!([cause]), "{}", answer.body);
            let root = reference(&by_kubectl);
            let message = format!("{field}: {says}");
            real.wait_for(&message, &root, |live| {
                let ready = condition(live, "Ready");
                ready["status"] == "False"
                    && ready["reason"] == "InvalidSpec"
                    && ready["message"] == message.as_str()
            })
            .await?;
            ensure!(real.get(&reference(&by_rest)).await?.is_none(), "what REST refuses is not stored");
        }
        Is::Schema => {
            ensure!(answer.code == 422, "REST: {} {}", answer.code, answer.body);
            let theirs = refused.context("kubectl takes it")?;
            let ours = causes(&answer.body["causes"]);
            let field = entry.field.clone().unwrap_or_default();
            ensure!(theirs.iter().any(|(at, _)| *at == field), "kubectl: {theirs:?}");
            match &entry.says {
                None => ensure!(ours == theirs, "REST: {ours:?}, kubectl: {theirs:?}"),
                Some(says) => ensure!(ours == BTreeSet::from([(field, says.clone())]), "REST: {ours:?}"),
            }
        }
    }
    Ok(())
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef {
        api_version: "deployments.example.com/v1alpha1".into(),
        kind: "Darkroom".into(),
        name: name.into(),
        namespace: Some(NAMESPACE.into()),
    }
}

/// What a document stands for.
fn as_spec(mut document: Value) -> Value {
    if let Some(ttl) = document.as_object_mut().and_then(|fields| fields.remove("cacheTTL")) {
        document["cache"] = json!({"ttlSeconds": ttl});
    }
    document
}

async fn spec(real: &Real<'_>, name: &str) -> anyhow::Result<Value> {
    let found = real.get(&reference(name)).await?.with_context(|| format!("there is no {name}"))?;
    let mut spec = found["spec"].clone();
    // An empty map that REST leaves out says nothing.
    if spec["cache"] == json!({}) {
        spec.as_object_mut().map(|fields| fields.remove("cache"));
    }
    Ok(spec)
}

/// Creates a Darkroom as kubectl does. Returns what is wrong with it, if it is refused.
async fn created(client: &kube::Client, name: &str, spec: &Value) -> anyhow::Result<Option<BTreeSet<Cause>>> {
    let object = json!({"apiVersion": "deployments.example.com/v1alpha1", "kind": "Darkroom",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec});
    let path = format!("/apis/deployments.example.com/v1alpha1/namespaces/{NAMESPACE}/darkrooms");
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&object)?)?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code == 422 => {
            let details = serde_json::to_value(&status)?;
            Ok(Some(causes(&details["details"]["causes"])))
        }
        Err(error) => bail!("{error}"),
    }
}

/// The fields that are at fault. The API server says the same of a field more than once, and that it has not looked at everything.
fn causes(causes: &Value) -> BTreeSet<Cause> {
    let text = |cause: &Value, key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    causes
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| (text(cause, "field"), text(cause, "message")))
        // What it adds of no field, when it has not come to the rules in CEL.
        .filter(|(field, _)| field != "<nil>" && !field.is_empty())
        .collect()
}

/// Created, read, listed, replaced, patched, followed and deleted.
async fn the_story_of_a_document(console: &Console) -> anyhow::Result<()> {
    let json = "application/json";
    let all = format!("/namespaces/{NAMESPACE}/darkrooms");
    let body = json!({"name": "story", "source": {"type": "S3", "bucket": "b", "region": "r", "accessKey": "AKIAEXAMPLE",
        "secretKey": "s3cr3t-example"}, "subDomains": ["story"]});
    let made = console.expect(200, "POST", &all, json, Some(&body))?;
    let location = format!("location: /darkrooms/story?namespace={NAMESPACE}");
    ensure!(made.head.contains(&location), "{}", made.head);
    let again = console.expect(409, "POST", &all, json, Some(&body))?;
    let said = again.body["details"].as_str().unwrap_or_default();
    let is_told = said.starts_with("Could not create object: ") && said.contains("already exists");
    ensure!(again.body["title"] == "Error" && is_told, "{}", again.body);
    let one = format!("/api/darkrooms/story?namespace={NAMESPACE}");
    let read = console.expect(200, "GET", &one, "", None)?;
    ensure!(read.body["source"]["bucket"] == "b", "{}", read.body);
    ensure!(read.body["source"].get("accessKey").is_none(), "{}", read.body);
    let items = |page: &Answer| page.body["items"].as_array().map(Vec::len);
    let list = console.ask("GET", &format!("/darkrooms?namespace={NAMESPACE}&search=STORY"), "", None)?;
    ensure!(items(&list) == Some(1), "{}", list.body);
    let two = format!("/darkrooms?namespace={NAMESPACE}&limit=2");
    let page = console.ask("GET", &two, "", None)?;
    let next = page.body["continue"].as_str().context("there are more than two")?;
    let page = console.expect(200, "GET", &format!("{two}&continue={next}"), "", None)?;
    ensure!(items(&page) == Some(2), "{}", page.body);
    let mut changed = read.body.clone();
    changed["source"]["bucket"] = json!("c");
    let unversioned = json!({"source": changed["source"], "subDomains": ["story"]});
    console.expect(428, "PUT", &one, json, Some(&unversioned)).context("a version is needed")?;
    // The host writes the status meanwhile, and each time there is another version.
    let put = eventually("a document is replaced", async || {
        changed["resourceVersion"] = console.ask("GET", &one, "", None)?.body["resourceVersion"].clone();
        let put = console.ask("PUT", &one, json, Some(&changed))?;
        Ok(match put.code {
            409 => Look::NotYet(put.body.to_string()),
            _ => Look::Reached(put),
        })
    })
    .await?;
    ensure!(put.code == 200 && put.body["source"]["bucket"] == "c", "{} {}", put.code, put.body);
    let stale = json!({"resourceVersion": "1000000", "source": changed["source"], "subDomains": ["a"]});
    console.expect(409, "PUT", &one, json, Some(&stale))?;
    let merge = "application/merge-patch+json";
    let without = json!({"source": {"secretKey": null}});
    let without = console.expect(422, "PATCH", &one, merge, Some(&without))?;
    let details = &without.body["details"];
    ensure!(details == "required fields missing: secretKey", "the keys were kept until now: {details}");
    let reference =
        json!({"source": {"accessKey": null, "secretKey": null, "credentialsSecretRef": {"name": "keys"}}});
    let patched = console.expect(200, "PATCH", &one, merge, Some(&reference))?;
    ensure!(patched.body["source"]["credentialsSecretRef"]["name"] == "keys", "{}", patched.body);
    let first = console.first_event(&format!("/darkrooms?namespace={NAMESPACE}&watch=true&search=story"))?;
    ensure!(first.starts_with("event: added\n") && first.contains("\"name\":\"story\""), "{first}");
    console.expect(204, "DELETE", &one, "", None)?;
    console.wait_until_answered(&one, 404).await.context("it is gone")?;
    console.expect(404, "GET", "/halls", "", None).context("nothing else is served")?;
    Ok(())
}

/// What kubectl sets on a Darkroom and its document does not show stays, whatever is changed through the document.
async fn an_edit_of_a_document_leaves_it_suspended(real: &Real<'_>, console: &Console) -> anyhow::Result<()> {
    let root = reference("paused");
    let body = json!({"name": "paused", "source": {"type": "WebFolder", "baseUrl": "https://example.com/a"}, "subDomains": ["paused"]});
    let all = format!("/namespaces/{NAMESPACE}/darkrooms");
    console.expect(200, "POST", &all, "application/json", Some(&body))?;
    real.patch(&root, &json!({"metadata": {"annotations": {ANNOTATION_SUSPEND: "true", "note": "n"}}}))
        .await?;
    let one = format!("/darkrooms/paused?namespace={NAMESPACE}");
    let patch = json!({"cacheTTL": 60});
    let patched = console.expect(200, "PATCH", &one, "application/merge-patch+json", Some(&patch))?;
    ensure!(patched.body["cacheTTL"] == 60, "{}", patched.body);
    let stored = real.get(&root).await?.context("it is there")?;
    ensure!(stored["spec"]["cache"]["ttlSeconds"] == 60, "{}", stored["spec"]);
    let annotations = &stored["metadata"]["annotations"];
    ensure!(annotations[ANNOTATION_SUSPEND] == "true" && annotations["note"] == "n", "{annotations}");
    Ok(())
}
