//! A view that is no farm: version 2 of a resource over what version 1 stores, with defaults, a label selector, and objects that cannot be
//! shown.

use anyhow::{Context as _, ensure};
use kit::{Look, host::or_error};
use kube::core::{ApiResource, GroupVersionKind};
use pintle_testbed::eventually;

use super::Farm;
use crate::{commands, informers::Informers, repository};

const NAMESPACE: &str = "tickets";

/// A record that no version can show.
const BROKEN: &str = r#"{"apiVersion": "store.tickets.example.com/v1", "kind": "TicketRecord", "metadata": {"name": "broken",
    "labels": {"tickets.example.com/open": "true"}}, "spec": {"title": "what", "minutes": -1}}"#;

impl Farm<'_> {
    pub(super) async fn two_versions_of_one_resource_are_served(&self) -> anyhow::Result<()> {
        let folder = repository().join("host/tests/tickets/deploy");
        let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
        self.run(&format!("apply --server-side --filename={}", file("crd.yaml")), None)?;
        self.run(
            "wait --for=condition=Established --timeout=180s crd/ticketrecords.store.tickets.example.com",
            None,
        )?;
        self.run(&format!("apply --filename={}", file("rbac.yaml")), None)?;
        for version in ["v1", "v2"] {
            self.serve(&file(&format!("apiservice-{version}.yaml")))?;
        }
        self.push("tickets-0.1.0", "tickets")?;
        self.run(&format!("apply --filename={}", file("views.yaml")), None)?;
        let views = "view/tickets-v1 view/tickets-v2";
        self.run(&format!("wait --for=condition=Ready --timeout=180s {views}"), None)?;
        let services = "apiservice/v1.tickets.example.com apiservice/v2.tickets.example.com";
        self.run(&format!("wait --for=condition=Available --timeout=180s {services}"), None)?;
        self.run(&format!("create namespace {NAMESPACE}"), None)?;
        eventually("both versions are discovered", || {
            or_error(self.run("api-versions", None).map(|found| {
                let has = |version: &str| found.contains(&format!("tickets.example.com/{version}"));
                Look::reached_if(has("v1") && has("v2"), || found.clone())
            }))
        })?;

        let resource = ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("tickets.example.com", "v2", "Ticket"),
            "tickets",
        );
        let mut informers = Informers::start(self.plane.kubeconfig(), &resource, Some(NAMESPACE)).await?;
        for step in commands::tickets() {
            step.run(self.plane)?;
            // After each, since an informer that was late would see the first and the last state alone.
            informers.wait_until_in_step().await.with_context(|| format!("after {}", step.steps))?;
        }
        for told in informers.told(&format!("{NAMESPACE}/a")) {
            ensure!(
                told.iter().any(|event| event == "delete"),
                "nobody was told that it was not shown: {told:?}"
            );
        }
        drop(informers);
        self.what_cannot_be_shown_holds_up_nothing()
    }

    /// An object that its lens fails on is named, and its namespace can be deleted.
    fn what_cannot_be_shown_holds_up_nothing(&self) -> anyhow::Result<()> {
        self.run(&format!("create --namespace={NAMESPACE} --filename=-"), Some(BROKEN))?;
        let (succeeds, said) =
            self.asked(&format!("--namespace={NAMESPACE} get tickets.v2.tickets.example.com"), "")?;
        ensure!(
            succeeds && said.contains("broken") && said.contains("mow"),
            "a table has a row for each: {said}"
        );
        let (succeeds, said) =
            self.asked(&format!("--namespace={NAMESPACE} get ticket broken --output=yaml"), "")?;
        ensure!(!succeeds && said.contains("InternalError"), "what cannot be shown is not shown: {said}");
        self.run(&format!("delete namespace {NAMESPACE} --timeout=180s"), None).map(drop)
    }
}
