//! Policies and quotas that name what is shown, and the policy of docs/views.md, which names what is stored.

use anyhow::{Context, ensure};
use kit::{Look, host::or_error};
use pintle_testbed::eventually;
use serde_json::json;

use super::{Farm, NAMESPACE};
use crate::repository;

/// The policy and its binding, as docs/views.md has them.
fn documented() -> anyhow::Result<String> {
    let page = std::fs::read_to_string(repository().join("docs/views.md"))?;
    let mut blocks = page.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
    let found = blocks.find(|block| block.contains("kind: ValidatingAdmissionPolicyBinding"));
    found.map(ToOwned::to_owned).context("docs/views.md has no policy")
}

/// What would allow no write of a Llama, if it were asked.
fn naming_llamas() -> String {
    let (admission, name) = ("admissionregistration.k8s.io/v1", json!({"name": "no-llamas"}));
    let rules = json!([{"apiGroups": ["farm.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["llamas"]}]);
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": admission, "kind": "ValidatingAdmissionPolicy", "metadata": name,
            "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "false"}]}},
        {"apiVersion": admission, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name,
            "spec": {"policyName": "no-llamas", "validationActions": ["Deny"]}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "no-llamas", "namespace": NAMESPACE},
            "spec": {"hard": {"count/llamas.farm.example.com": "0"}}},
    ]})
    .to_string()
}

impl Farm<'_> {
    /// What names Llamas sees nothing, and the View says so. What names LlamaRecords sees every write.
    pub(super) fn admission_is_that_of_what_is_stored(&self) -> anyhow::Result<()> {
        let (naming, documented) = (naming_llamas(), documented()?);
        for objects in [&naming, &documented] {
            self.run("create --filename=-", Some(objects))?;
        }
        let says = |wanted: &str| {
            let said =
                self.field("view/llamas", ".status.conditions[?(@.type==\"AdmissionBypassed\")].message");
            or_error(said.map(|said| Look::reached_if(said == wanted, || format!("the View says: {said}"))))
        };
        // The gateways look once a minute, and when a View changes.
        self.set_unshowable("Omit")?;
        let wanted = format!(
            "ValidatingAdmissionPolicy no-llamas and ResourceQuota {NAMESPACE}/no-llamas name llamas.farm.example.com, and see no write: \
             write them for llamarecords.store.farm.example.com"
        );
        eventually("the View says what sees nothing", || says(&wanted))?;
        let patch = |weight: u32| {
            let patch = format!("--patch={{\"spec\":{{\"weight\":{weight}}}}}");
            self.kubectl(&format!("patch llama dolly --type=merge --dry-run=server {patch}"))
        };
        eventually("the policy of docs/views.md is in force", || {
            let (succeeds, said) = patch(200)?;
            let is_refused = !succeeds && said.contains("the backing object cannot be stored like this");
            Ok(Look::reached_if(is_refused, || said))
        })?;
        let (succeeds, said_of_light) = patch(199)?;
        ensure!(succeeds, "what names Llamas was asked: {said_of_light}");
        let (succeeds, said_of_new) = self.asked(
            &format!("create --namespace={NAMESPACE} --filename=- --dry-run=server"),
            &super::DOLLY.replace("dolly", "polly"),
        )?;
        ensure!(succeeds, "what names Llamas was asked: {said_of_new}");
        for objects in [&naming, &documented] {
            self.run("delete --filename=-", Some(objects))?;
        }
        self.set_unshowable("Fail")?;
        eventually("the View says nothing any more", || says(""))
    }
}
