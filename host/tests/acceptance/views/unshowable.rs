//! Objects that a guest cannot show, and objects that are as large as they may be, beside others that people list.

use anyhow::{Context, ensure};
use kit::{Look, host::or_error};
use pintle_testbed::eventually;
use serde_json::{Map, Value, json};

use super::{Farm, NAMESPACE};
use crate::informers::Informers;

/// So many labels that the object, with what the API server notes of each, is little less than the 1.5 MiB that etcd takes.
const LABELS: usize = 14_364;

/// So many of them are more than eight mebibytes.
const MANY: usize = 12;

const RECORD: &str = "store.farm.example.com/v1";

impl Farm<'_> {
    /// One big object holds up nobody, and one that cannot be shown only where the View says so.
    pub(super) async fn one_object_holds_up_nobody(&self) -> anyhow::Result<()> {
        let llamas = kube::core::ApiResource::from_gvk_with_plural(
            &kube::core::GroupVersionKind::gvk("farm.example.com", "v1alpha", "Llama"),
            "llamas",
        );
        self.write_llamas(0..3)?;
        self.a_big_object_is_one_of_many()?;
        // A CRD that is laxer than the guest.
        self.require(&json!([]))?;
        self.create_unborn()?;
        let list = format!("get llamas --namespace={NAMESPACE} --output=name");
        let (succeeds, said) = self.asked(&list, "")?;
        ensure!(
            !succeeds && said.contains("some objects cannot be shown: unborn: spec.weight: is required"),
            "it said: {said}"
        );
        self.a_long_list_is_whole_or_none(&list)?;
        self.set_unshowable("Omit")?;
        eventually("a list leaves her out, and says so", || {
            let (succeeds, said) = self.asked(&list, "")?;
            let warns = said.contains("Warning: 1 object cannot be shown, and is left out");
            let has_others = said.contains("/llama-1");
            let is_so = succeeds && warns && has_others && !said.contains("/unborn");
            Ok(Look::reached_if(is_so, || said))
        })?;
        let (succeeds, said) =
            self.asked(&format!("get llama unborn --namespace={NAMESPACE} -o name"), "")?;
        ensure!(!succeeds && said.contains("unborn cannot be shown"), "it said: {said}");
        let (_, table) = self.asked(&format!("get llamas --namespace={NAMESPACE}"), "")?;
        ensure!(table.contains("<cannot be shown: "), "a table has no row that says so: {table}");
        let mut informers =
            Informers::start(self.plane.kubeconfig(), &llamas, Some(NAMESPACE)).await.context("informers")?;
        informers.wait_until_in_step().await.context("beside one that cannot be shown")?;
        self.merge("unborn", &json!({"spec": {"weight": 1, "height": 1}}))?;
        self.merge("llama-1", &json!({"spec": {"weight": null}}))?;
        informers.wait_until_in_step().await.context("after they changed places")?;
        eventually("they have changed places in lists, too", || {
            or_error(self.run(&list, None).map(|listed| {
                let is_so = listed.contains("/unborn") && !listed.contains("/llama-1");
                Look::reached_if(is_so, || listed)
            }))
        })?;
        eventually("the View counts what cannot be shown", || {
            let message = ".status.conditions[?(@.type==\"Unshowable\")].message";
            // The list of all that the count is of.
            let listed = self.run("get llamas --all-namespaces --output=name", None);
            or_error(
                listed.and_then(|_| self.field("view/llamas", message)).map(|message| {
                    Look::reached_if(message.starts_with("1 object cannot be shown"), || message)
                }),
            )
        })?;
        self.run(&format!("delete llamas unborn llama-0 llama-1 llama-2 --namespace={NAMESPACE}"), None)?;
        self.require(&json!(["weight", "height"]))?;
        self.set_unshowable("Fail")
    }

    /// A Llama with as many labels as it may have is listed beside others, in each way.
    fn a_big_object_is_one_of_many(&self) -> anyhow::Result<()> {
        let big = record("big", labels(), json!({"weight": 1, "height": 1}));
        self.run("create --filename=-", Some(&big.to_string()))?;
        for form in ["name", "yaml", "wide"] {
            let listed = self.run(&format!("get llamas --namespace={NAMESPACE} --output={form}"), None)?;
            ensure!(listed.contains("big") && listed.contains("llama-1"), "{form}: not all are listed");
        }
        self.run(
            &format!(
                "patch llama big --namespace={NAMESPACE} --type=merge --patch={{\"spec\":{{\"weight\":2}}}}"
            ),
            None,
        )?;
        let weight = self.field(&format!("llama big --namespace={NAMESPACE}"), ".spec.weight")?;
        ensure!(weight == "2", "it weighs {weight}");
        Ok(())
    }

    /// A list of more than is built whole: it comes to its end, or is broken off and said to be when it is asked for again.
    fn a_long_list_is_whole_or_none(&self, list: &str) -> anyhow::Result<()> {
        let many: Vec<Value> = (0..MANY)
            .map(|at| record(&format!("big-{at}"), labels(), json!({"weight": 1, "height": 1})))
            .collect();
        let many = json!({"apiVersion": "v1", "kind": "List", "items": many});
        self.run("create --filename=-", Some(&many.to_string()))?;
        // Each gateway breaks one off, and says why when it is asked again.
        eventually("who asks again is told why a list was broken off", || {
            let (succeeds, said) = self.asked(list, "")?;
            ensure!(!succeeds, "a list was broken off, and taken for whole: {said}");
            Ok(Look::reached_if(said.contains("cannot be shown: unborn: "), || said))
        })?;
        self.run(&format!("delete llamarecord unborn --namespace={NAMESPACE}"), None)?;
        let listed = self.run(list, None)?;
        let count = listed.lines().filter(|line| line.contains("/big-")).count();
        ensure!(count == MANY, "{count} of {MANY} are listed");
        self.run(&format!("delete llamas --selector=many --namespace={NAMESPACE}"), None)?;
        self.create_unborn()
    }

    /// Makes a record that no guest can show. A CRD that was just changed is taken note of a moment later.
    fn create_unborn(&self) -> anyhow::Result<()> {
        let unborn = record("unborn", json!({}), json!({})).to_string();
        eventually("the record can be made", || {
            or_error(self.run("create --filename=-", Some(&unborn)).map(|_| Look::Reached(())))
        })
    }

    /// Has the CRD of LlamaRecords require these fields of the spec.
    fn require(&self, fields: &Value) -> anyhow::Result<()> {
        let path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/required";
        let patch = json!([{"op": "replace", "path": path, "value": fields}]);
        self.plane
            .run_kubectl(
                &[
                    "patch",
                    "crd",
                    "llamarecords.store.farm.example.com",
                    "--type=json",
                    "--patch",
                    &patch.to_string(),
                ],
                None,
            )
            .map(drop)
    }

    pub(super) fn set_unshowable(&self, unshowable: &str) -> anyhow::Result<()> {
        let patch = json!({"spec": {"unshowable": unshowable}}).to_string();
        self.plane
            .run_kubectl(&["patch", "view", "llamas", "--type=merge", "--patch", &patch], None)
            .map(drop)
    }

    /// Changes a record, besides the view.
    fn merge(&self, name: &str, patch: &Value) -> anyhow::Result<()> {
        let patch = patch.to_string();
        let words =
            ["patch", "llamarecord", name, "--namespace", NAMESPACE, "--type=merge", "--patch", &patch];
        // A CRD that was just changed is taken note of a moment later.
        eventually("the record can be changed", || {
            or_error(self.plane.run_kubectl(&words, None).map(|_| Look::Reached(())))
        })
    }
}

/// As many as an object may have.
pub(super) fn labels() -> Value {
    let mut labels: Map<String, Value> =
        (0..LABELS).map(|at| (format!("l{at:0>20}"), format!("{at:0>30}").into())).collect();
    labels.insert("many".into(), "yes".into());
    labels.into()
}

fn record(name: &str, labels: Value, spec: Value) -> Value {
    json!({"apiVersion": RECORD, "kind": "LlamaRecord", "spec": spec,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}})
}
