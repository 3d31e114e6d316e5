//! What the commands that talk to a cluster share.

use std::{fmt, future::Future, time::Duration};

use jiff::SignedDuration;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, Client, Error, Resource, api::ListParams, core::ClusterResourceScope};
use pintle_core::conditions::{self, READY, STALLED};
use pintle_kubernetes::{connect::Connect, host_account};
use pintle_runtime::clock;
use pintle_wit::{Condition, ConditionStatus};
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The name under which the command line writes.
pub(super) const FIELD_MANAGER: &str = "pintle-cli";

/// How often an object is read that is waited for: a person sees no difference, and an API server no load.
pub(super) const POLL: Duration = Duration::from_millis(250);

/// What helps when nothing happens.
pub(super) const PODS: &str = "see whether the host and the gateway run: kubectl -n pintle-system get pods";

/// What helps whoever lacks a right.
const RIGHTS: &str = "see who you are with: kubectl auth whoami; pintle rbac MODULE --users prints the roles of those who use a kind";
/// What helps whoever may not read the host's own objects.
const READER: &str = "these are in no namespace; an administrator lets you read them with: pintle rbac MODULE --users | kubectl apply -f -; kubectl create clusterrolebinding NAME --clusterrole pintle-reader --user YOU";

/// What helps somebody of whom the API server said this.
pub(super) fn rights(said: &str) -> &'static str {
    let is_read = said.contains("cannot get resource") || said.contains("cannot list resource");
    if is_read && said.contains(r#"in API group "pintle.dev""#) { READER } else { RIGHTS }
}

/// How many objects a reply may bring.
const PAGE_OBJECTS: u32 = 500;

/// Threads for what blocks, beside two a processor for calls of guests (of which as many run as there are processors): one compiles,
/// one looks up the API server's name. Each thread has a heap of its own that rarely shrinks, so there are no more than do something.
const BLOCKING_BESIDE_CALLS: usize = 2;

/// Runs what talks to a cluster, on half of the processors. Guests that compute for long have threads of their own, and it is the API
/// server that most is waited for; with a thread a processor, two processors spent a tenth to a quarter more on 1000 new roots, and
/// the heaps of the threads grew by a quarter more.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads((processors / 2).max(1))
        .max_blocking_threads(processors * 2 + BLOCKING_BESIDE_CALLS)
        .build()?
        .block_on(work)
}

/// A client of a cluster that has the host's CRDs.
pub(super) async fn client(connect: &Connect) -> Result<Client, Problem> {
    let client = connect.client().await?;
    match client.list_api_group_resources("pintle.dev/v1alpha1").await {
        Ok(_) => Ok(client),
        Err(Error::Api(status)) if status.code == 404 => Err(Problem::new(
            "Pintle is not installed in this cluster: it does not serve pintle.dev/v1alpha1",
        )
        .hint("run: kubectl apply --server-side -f deploy/install.yaml")),
        Err(error) => Err(problem("the API server", &error)),
    }
}

/// The namespace of the host's account, if it has one.
pub(super) async fn host_namespace(client: &Client) -> Result<Option<String>, Error> {
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    let binding = bindings.get_opt("pintle").await?;
    let binding = binding.and_then(|binding| serde_json::to_value(binding).ok());
    Ok(binding.as_ref().and_then(host_account).map(|account| account.namespace().to_owned()))
}

/// Refuses a namespace where the host is in another one.
pub(super) fn refuse_elsewhere(host: Option<&str>, namespace: &str) -> Result<(), Problem> {
    match host {
        Some(place) if place != namespace => {
            Err(Problem::new(format!("Pintle is in namespace {place}, not in {namespace}"))
                .hint(format!("add: --namespace {place}")))
        }
        _ => Ok(()),
    }
}

/// What the API server, or the way to it, said about something.
pub(super) fn problem(about: impl fmt::Display, error: &Error) -> Problem {
    if let Error::Api(status) = error {
        let said = format!("{} ({} {})", status.message, status.code, status.reason);
        let problem = Problem::new(format!("{about}: {said}"));
        return match status.code {
            401 => problem.hint("the credentials in the kubeconfig are not accepted"),
            403 => problem.hint(rights(&status.message)),
            _ => problem,
        };
    }
    // The innermost error says what happened, the ones around it only that something did.
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Problem::new(format!("{about} cannot be reached: {innermost}"))
        .hint("see which cluster is meant with: kubectl config current-context")
}

/// All objects of a kind of cluster scope, page by page, sorted by name; none where the cluster does not have the kind, because its CRDs are
/// older than this program, or gone. The manifests of Modules are long, and a reply has a limit.
pub(super) async fn list<K>(client: &Client) -> Result<Vec<K>, Problem>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let mut params = ListParams::default().limit(PAGE_OBJECTS);
    let mut found = Vec::new();
    loop {
        let page = match api.list(&params).await {
            Err(error) if is(&error, 404) => return Ok(found),
            page => page.map_err(|error| problem(format!("{}s", K::kind(&())), &error))?,
        };
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => break,
        }
    }
    found.sort_by(|one, other| one.meta().name.cmp(&other.meta().name));
    Ok(found)
}

/// Whether it is a reply with this code.
pub(super) fn is(error: &Error, code: u16) -> bool {
    matches!(error, Error::Api(status) if status.code == code)
}

/// How far what is waited for has come.
pub(super) enum Progress {
    /// It is there.
    Done,
    /// It will not come by itself.
    Failed(String),
    /// It may come; why it is not there yet.
    Waiting(String),
}

/// Looks again and again, until what is waited for is there, or cannot come, or the time is up. Then the hint says what may help.
pub(super) async fn wait<F>(timeout: Duration, hint: &str, look: impl Fn() -> F) -> Result<(), Problem>
where
    F: Future<Output = Result<Progress, Problem>>,
{
    let end = clock::monotonic() + timeout;
    loop {
        match look().await? {
            Progress::Done => return Ok(()),
            Progress::Failed(why) => return Err(Problem::failed(why)),
            Progress::Waiting(why) if clock::monotonic() >= end => {
                let message = format!("not done after {} s: {why}", timeout.as_secs());
                return Err(Problem::failed(message).hint(hint));
            }
            Progress::Waiting(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// What the conditions say, once they are about this generation of the object.
pub(super) fn progress(conditions: &[Condition], observed: Option<i64>, generation: Option<i64>) -> Progress {
    let silent = Progress::Waiting("the host has not said anything of it yet".into());
    if observed < generation {
        return silent;
    }
    let find = |name: &str| conditions::find(conditions, name);
    let is_true = |condition: &Condition| condition.status == ConditionStatus::True;
    match (find(READY), find(STALLED)) {
        (Some(ready), _) if is_true(ready) => Progress::Done,
        (_, Some(stalled)) if is_true(stalled) => {
            Progress::Failed(format!("{}: {}", stalled.reason, stalled.message))
        }
        (Some(ready), _) => Progress::Waiting(format!("{}: {}", ready.reason, ready.message)),
        (None, _) => silent,
    }
}

/// A time as people write it: `60s`, `2m`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<SignedDuration>().ok().and_then(|duration| duration.try_into().ok());
    duration.ok_or_else(|| "write it as 60s or 2m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: &str, status: ConditionStatus) -> Condition {
        Condition {
            r#type: name.into(),
            status,
            observed_generation: None,
            last_transition_time: String::new(),
            reason: "NotWasm".into(),
            message: "m".into(),
        }
    }

    #[test]
    fn who_may_not_read_the_hosts_own_objects_is_told_the_role() {
        let said = |verb: &str, group: &str| {
            rights(&format!(
                r#"x is forbidden: User "ann" cannot {verb} resource "x" in API group "{group}" at the cluster scope"#
            ))
        };
        assert_eq!((said("list", "pintle.dev"), said("get", "pintle.dev")), (READER, READER));
        assert_eq!((said("patch", "pintle.dev"), said("list", "apps")), (RIGHTS, RIGHTS));
    }

    #[test]
    fn waiting_ends_with_ready_or_stalled_of_this_generation() {
        let ready = [condition(READY, ConditionStatus::True)];
        assert!(matches!(progress(&ready, Some(2), Some(2)), Progress::Done));
        assert!(matches!(progress(&ready, Some(1), Some(2)), Progress::Waiting(_)));
        let stalled = [condition(READY, ConditionStatus::False), condition(STALLED, ConditionStatus::True)];
        assert!(matches!(progress(&stalled, Some(2), Some(2)), Progress::Failed(why) if why == "NotWasm: m"));
        assert!(matches!(progress(&[], None, Some(1)), Progress::Waiting(_)));
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert!(duration("soon").is_err() && duration("-1s").is_err());
    }
}
