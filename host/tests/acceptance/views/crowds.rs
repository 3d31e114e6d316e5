//! Whoever sends slowly, or much, takes the gateway from nobody.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use futures::{StreamExt, stream};
use http::{Request, header};
use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use kit::{Look, host::or_error};
use kube::{Config, client::ConfigExt};
use tokio::task::JoinSet;

use super::{Farm, NAMESPACE};

/// How many slow requests each of them sends at a time to each gateway: as many as one caller may have in work.
const OF_EACH: usize = 50;

impl Farm<'_> {
    /// Strangers and two accounts that may write send bodies that do not end. The API server still finds the gateway there, so that
    /// namespaces can be deleted.
    pub(super) async fn slow_bodies_hold_up_nobody(&self) -> anyhow::Result<()> {
        let mut slow = JoinSet::new();
        let mut tried = Vec::new();
        let mut callers = vec![None];
        for account in ["slow-1", "slow-2"] {
            self.run(&format!("create serviceaccount {account} --namespace={NAMESPACE}"), None)?;
            self.run(
                &format!("create rolebinding {account} --clusterrole=edit --serviceaccount={NAMESPACE}:{account} --namespace={NAMESPACE}"),
                None,
            )?;
            let token = self.run(&format!("create token {account} --namespace={NAMESPACE}"), None)?;
            callers.push(Some(format!("Bearer {}", token.trim())));
        }
        for gateway in self.gateways.iter().flatten() {
            let mut config = Config::new(format!("https://{}", gateway.address).parse()?);
            // Its certificate is for the name of its Service.
            config.accept_invalid_certs = true;
            let url =
                format!("{}apis/farm.example.com/v1alpha/namespaces/{NAMESPACE}/llamas", config.cluster_url);
            for caller in callers.iter().flat_map(|caller| std::iter::repeat_n(caller, OF_EACH)) {
                let client: Client<_, UnsyncBoxBody<Bytes, Infallible>> =
                    Client::builder(TokioExecutor::new())
                        .timer(TokioTimer::new())
                        .build(config.rustls_https_connector()?);
                let mut request = Request::post(&url).header(header::CONTENT_TYPE, "application/json");
                if let Some(token) = caller {
                    request = request.header(header::AUTHORIZATION, token);
                }
                let request = request.body(())?;
                let has_tried = Arc::<AtomicBool>::default();
                tried.push(Arc::clone(&has_tried));
                slow.spawn(async move {
                    loop {
                        let body = endless(Arc::clone(&has_tried));
                        // Whatever the answer is, they come again.
                        let _ = client.request(request.clone().map(|()| body)).await;
                        has_tried.store(true, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                });
            }
        }
        // So that they hold what they can.
        let sent =
            kit::eventually("everybody has sent the beginning of a body, or was turned away", async || {
                let count = tried.iter().filter(|tried| tried.load(Ordering::Relaxed)).count();
                Ok(Look::reached_if(count == tried.len(), || format!("{count} of {} have", tried.len())))
            })
            .await;
        let outcome = sent.and_then(|()| self.others_are_answered());
        slow.shutdown().await;
        outcome
    }

    fn others_are_answered(&self) -> anyhow::Result<()> {
        for _ in 0..10 {
            let discovery = self.run("get --raw /apis/farm.example.com/v1alpha", None)?;
            ensure!(discovery.contains("llamas"), "{discovery}");
            let (succeeds, said) = self.kubectl("get llamas --as=ann")?;
            ensure!(succeeds, "{said}");
        }
        self.run("create namespace farm-4", None)?;
        self.run("apply --namespace=farm-4 --filename=-", Some(super::DOLLY))?;
        self.run("delete namespace farm-4 --timeout=180s", None)?;
        pintle_testbed::eventually("the API server finds the gateway there", || {
            let conditions =
                self.field("apiservice v1alpha.farm.example.com", ".status.conditions[*].status");
            or_error(conditions.map(|available| Look::reached_if(available == "True", || available)))
        })
    }
}

/// A body that begins, which is noted, and does not end.
fn endless(begun: Arc<AtomicBool>) -> UnsyncBoxBody<Bytes, Infallible> {
    let first = stream::once(async move {
        begun.store(true, Ordering::Relaxed);
        Ok(Frame::data(Bytes::from_static(b"{")))
    });
    UnsyncBoxBody::new(StreamBody::new(first.chain(stream::pending())))
}
