//! The host: which version serves this, and who leads.

use axum::response::Response;
use http::StatusCode;
use pintle_core::object;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    caller::Ask,
    endpoint::{self, Call, Endpoint},
    kinds::Unread,
    place::{Place, Resource},
    problem::Problem,
};

/// The Lease of the hosts.
const LEASE: &str = "pintle";

/// The host.
#[derive(Debug, Serialize, JsonSchema)]
struct Host {
    /// The version of this server.
    version: String,
    /// Who leads, if somebody does.
    leader: Option<Leader>,
    /// Why that is not known.
    unread: Option<Unread>,
}

/// The host that works, as the Lease names it.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Leader {
    /// Its name.
    holder: String,
    /// Since when it leads (RFC 3339).
    since: String,
    /// When it last said so (RFC 3339).
    renewed: String,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let summary = "Which version serves this, and which host leads";
    vec![Endpoint::get("/api/v1/host", "getHost", summary, get).gives::<Host>()]
}

async fn get(call: Call) -> Result<Response, Problem> {
    let version = call.app.about.version.clone();
    let leases = Resource::new("coordination.k8s.io", "v1", "leases");
    let place = Place::within(&leases, Some(pintle_api::NAMESPACE))?.named(LEASE)?;
    let host = match call.caller()?.ask(Ask::get(place.path())).await {
        Ok(answer) => {
            let lease = answer.json()?;
            let text = |key: &str| object::text(&lease, &["spec", key]).unwrap_or_default().to_owned();
            let leader = Leader {
                holder: text("holderIdentity"),
                since: text("acquireTime"),
                renewed: text("renewTime"),
            };
            Host { version, leader: Some(leader).filter(|leader| !leader.holder.is_empty()), unread: None }
        }
        Err(problem) if problem.status == StatusCode::UNAUTHORIZED => return Err(problem),
        Err(problem) => Host { version, leader: None, unread: Some(Unread { why: problem.detail }) },
    };
    endpoint::json(StatusCode::OK, &host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::fake::{self, ask, refused, request, upstream};

    #[tokio::test]
    async fn the_host_that_leads_is_the_one_in_the_lease() {
        let (client, log) = upstream(|_| {
            (
                200,
                json!({"spec": {"holderIdentity": "pod-1", "acquireTime": "2026-01-01T00:00:00.000000Z",
                "renewTime": "2026-01-01T00:00:05.000000Z"}}),
            )
        });
        let app = fake::app(fake::cluster(), client);
        let (_, host) = ask(&app, request("GET", "/api/v1/host", None)).await;
        assert_eq!((&host["version"], &host["leader"]["holder"]), (&json!("0.1.0"), &json!("pod-1")));
        assert_eq!(
            log.lock().unwrap()[0].path,
            "/apis/coordination.k8s.io/v1/namespaces/pintle-system/leases/pintle"
        );
    }

    #[tokio::test]
    async fn who_may_not_read_the_lease_is_told_so() {
        let (client, _) = upstream(|_| refused(403, "Forbidden", "no"));
        let app = fake::app(fake::cluster(), client);
        let (code, host) = ask(&app, request("GET", "/api/v1/host", None)).await;
        assert_eq!((code, &host["leader"], &host["unread"]), (200, &json!(null), &json!({"why": "no"})));
    }
}
