//! The command `pintle status`: the host, the Reconcilers, Views and Modules, and what is wrong with them.

use clap::Args;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{Api, Client, ResourceExt};
use pintle_api::{Module, NAMESPACE, Reconciler, View};
use pintle_core::{
    conditions::{self, READY},
    reasons::{
        DRIFT_UNWATCHED, IN_USE, NEEDS_UNWATCHED, REGISTERED, ROOTS_READY, STATUS_SCHEMA_INCOMPLETE,
        STATUS_SUBRESOURCE_MISSING,
    },
};
use pintle_kubernetes::connect::Connect;
use pintle_operator::LEASE;
use pintle_runtime::clock;
use pintle_wit::{Condition, ConditionStatus};

use super::{
    live, output,
    problem::{CommandStatus, Problem},
    table::Table,
};

/// Show what is not ready, and why
///
/// The command lists the host, the Reconcilers, Views and Modules. The host is ready while one of its processes renews the Lease
/// `pintle`; a host with `--leader-elect=false` has none. Below each other object, it says which of the conditions Ready, RootsReady and
/// Registered is not True, why, and what to do. RootsReady of a Reconciler names the first of the custom resources that fail. Other
/// conditions that are something to know, such as StatusSchemaIncomplete, are named too.
///
/// The exit code is 0 if everything is ready, and 1 if something is not. The conditions are what the host and the gateway have written
/// last.
///
/// With kubectl, `kubectl get pintle` lists the same objects, and `kubectl describe` shows their conditions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show everything
  pintle status

  # Wait until everything is ready
  until pintle status; do sleep 5; done")]
pub(super) struct Status {
    /// Namespace of the host
    #[arg(short, long, value_name = "NAMESPACE", default_value = "pintle-system")]
    namespace: String,

    #[command(flatten)]
    connect: Connect,
}

/// How far the clocks of a host and of this machine may be apart.
const CLOCK_DIFFERENCE: SignedDuration = SignedDuration::from_secs(30);

/// The conditions that are something to know where they are True. They make nothing fail.
const TO_KNOW: [&str; 5] =
    [STATUS_SUBRESOURCE_MISSING, STATUS_SCHEMA_INCOMPLETE, DRIFT_UNWATCHED, NEEDS_UNWATCHED, IN_USE];

/// The page about reasons. What a reason means depends on where it is met, so it has a section for each kind of object.
const REASONS: &str = include_str!("../../../docs/reasons.md");

impl Status {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(async {
            let client = live::client(&self.connect).await?;
            let screen = look(&client, &self.namespace).await?;
            output::print(&screen.text())?;
            Ok(if screen.is_well { CommandStatus::Fine } else { CommandStatus::Failed })
        })
    }
}

/// What is shown.
struct Screen<'a> {
    /// The namespace of the host.
    namespace: &'a str,
    table: Table,
    is_well: bool,
    /// Something is named that is no failure.
    has_notes: bool,
}

/// The commands that help with a Reconciler. None is taken from a message, which may have the words of guests and tenants.
#[derive(Default)]
struct Hints {
    /// How the host gets the guest's role, in the words with which it ends a message.
    role: Option<String>,
    /// How many roots fail since the last swap, and how to undo it.
    undo: Option<String>,
}

async fn look<'a>(client: &Client, namespace: &'a str) -> Result<Screen<'a>, Problem> {
    let table = Table::new(&["NAME", "READY", "REASON"]);
    let mut screen = Screen { namespace, table, is_well: true, has_notes: false };
    screen.add_host(lease(client, namespace).await?, clock::now());
    for object in live::list::<Reconciler>(client).await? {
        let name = object.name_any();
        let role = Some(object.role_hint());
        let status = object.status.unwrap_or_default();
        let failing = status.active.and_then(|active| active.roots).map_or(0, |roots| roots.newly_failing);
        let undo = (failing > 0 && !status.history.is_empty()).then(|| {
            format!("{failing} did not fail before the last swap; to go back: pintle swap {name} --undo")
        });
        let name = format!("reconciler/{name}");
        screen.add(name, "Reconcilers", &status.conditions, object.metadata.generation, Hints { role, undo });
    }
    for object in live::list::<View>(client).await? {
        let name = format!("view/{}", object.name_any());
        let conditions = object.status.unwrap_or_default().conditions;
        screen.add(name, "Views", &conditions, object.metadata.generation, Hints::default());
    }
    for object in live::list::<Module>(client).await? {
        let name = format!("module/{}", object.name_any());
        let conditions = object.status.unwrap_or_default().conditions;
        screen.add(name, "Modules", &conditions, object.metadata.generation, Hints::default());
    }
    Ok(screen)
}

impl Screen<'_> {
    fn add_host(&mut self, lease: Option<LeaseSpec>, now: Timestamp) {
        let (reason, wrong) = match &lease {
            Some(lease) if is_held(lease, now) => ("Leading", None),
            Some(_) => ("NobodyLeads", Some("no host renews the Lease: nothing is reconciled")),
            None => {
                ("LeaseMissing", Some("no host has led here; one with --leader-elect=false makes no Lease"))
            }
        };
        let status = if wrong.is_none() { "True" } else { "False" };
        self.table.row(["host".into(), status.into(), reason.into()]);
        if let Some(wrong) = wrong {
            self.is_well = false;
            self.table.below(wrong);
            self.table.below(&format!("hint: kubectl get deployment,pods,lease -n {}", self.namespace));
        }
    }

    fn add(
        &mut self,
        name: String,
        section: &str,
        conditions: &[Condition],
        generation: Option<i64>,
        hints: Hints,
    ) {
        let ready = conditions::find(conditions, READY);
        let status = ready.map_or(ConditionStatus::Unknown, |ready| ready.status);
        let reason = ready.map(|ready| ready.reason.clone()).unwrap_or_default();
        self.table.row([name, status.as_str().into(), reason]);
        for line in self.wrong(section, conditions, generation, hints) {
            self.is_well = false;
            self.table.below(&line);
        }
        let is_note = |condition: &&Condition| {
            condition.status == ConditionStatus::True && TO_KNOW.contains(&condition.r#type.as_str())
        };
        for Condition { r#type, message, .. } in conditions.iter().filter(is_note) {
            self.has_notes = true;
            self.table.below(&format!("{}: {message}", r#type));
        }
    }

    /// What is wrong with an object, in lines: the conditions that should be True and are not, and what to do.
    fn wrong(
        &self,
        section: &str,
        conditions: &[Condition],
        generation: Option<i64>,
        mut hints: Hints,
    ) -> Vec<String> {
        let find = |name: &str| conditions::find(conditions, name);
        let Some(ready) = find(READY) else { return vec!["nothing has been said of it yet".into()] };
        if ready.observed_generation.is_some_and(|seen| Some(seen) < generation) {
            return vec!["it has changed, and nothing has been said of the change yet".into()];
        }
        let mut lines = Vec::new();
        let not_true = |condition: &&Condition| condition.status != ConditionStatus::True;
        for condition in [READY, ROOTS_READY, REGISTERED].into_iter().filter_map(find).filter(not_true) {
            let Condition { r#type, reason, message, .. } = condition;
            let said = format!("{}: {reason}: {message}", r#type);
            // Of several roots, and of several refusals of one, each has its line.
            let mut parts = parts(&said);
            let role = parts.extract_if(.., |part| Some(&*part) == hints.role.as_ref()).last();
            // No line of a message looks like a hint.
            parts.iter_mut().skip(1).for_each(|part| part.insert_str(0, "- "));
            lines.extend(parts);
            // The reason of RootsReady is that of roots. A swap may be the cause.
            let (section, undo) =
                if r#type == ROOTS_READY { ("Custom resources", hints.undo.take()) } else { (section, None) };
            // A command for this object makes the page's for any needless. The page names the namespace that Pintle has where nobody says
            // another.
            let remedy = remedy(section, reason).filter(|_| role.is_none());
            let remedy = remedy.map(|remedy| remedy.replace(NAMESPACE, self.namespace));
            lines.extend(undo.into_iter().chain(role).chain(remedy).map(|hint| format!("hint: {hint}")));
        }
        lines
    }

    fn text(&self) -> String {
        let table = self.table.text();
        match (self.is_well, self.has_notes) {
            (true, false) => table + "\nEverything is ready.\n",
            (true, true) => table + "\nNothing fails; see what is named above.\n",
            (false, _) => table,
        }
    }
}

async fn lease(client: &Client, namespace: &str) -> Result<Option<LeaseSpec>, Problem> {
    let lease = Api::<Lease>::namespaced(client.clone(), namespace).get_opt(LEASE).await;
    let lease = lease.map_err(|error| live::problem(format!("the Lease {namespace}/{LEASE}"), &error))?;
    Ok(lease.and_then(|lease| lease.spec))
}

/// Whether a host leads.
pub(super) async fn leads(client: &Client, namespace: &str) -> Result<bool, Problem> {
    let lease = lease(client, namespace).await?;
    Ok(lease.is_some_and(|lease| is_held(&lease, clock::now())))
}

/// Whether a host renews its Lease. It counts for a while longer, since clocks differ.
fn is_held(lease: &LeaseSpec, now: Timestamp) -> bool {
    let is_given_up = lease.holder_identity.as_deref().unwrap_or_default().is_empty();
    let duration = SignedDuration::from_secs(lease.lease_duration_seconds.unwrap_or_default().into());
    lease
        .renew_time
        .as_ref()
        .is_some_and(|renewed| !is_given_up && now.duration_since(renewed.0) <= duration + CLOCK_DIFFERENCE)
}

/// What semicolons separate in a message, but for those in parentheses.
fn parts(said: &str) -> Vec<String> {
    let (mut parts, mut open): (Vec<String>, usize) = (Vec::new(), 0);
    for piece in said.split("; ") {
        match parts.last_mut().filter(|_| open > 0) {
            Some(part) => part.push_str(&format!("; {piece}")),
            None => parts.push(piece.to_owned()),
        }
        let count = |letter: char| piece.matches(letter).count();
        open = (open + count('(')).saturating_sub(count(')'));
    }
    parts
}

/// What to do about a reason, as the page says it in a section.
fn remedy(section: &str, reason: &str) -> Option<String> {
    let (_, below) = REASONS.split_once(&format!("\n## {section}\n"))?;
    let start = format!("| `{reason}` |");
    let mut rows = below.lines().take_while(|line| !line.starts_with("## "));
    let (_, remedy) = rows.find(|row| row.starts_with(&start))?.strip_suffix(" |")?.rsplit_once(" | ")?;
    Some(remedy.replace("\\|", "|"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::fixture::{cluster, condition, crd_named, module, reconciler, view},
        *,
    };

    async fn shown(objects: &[serde_json::Value]) -> (String, bool) {
        let (_server, client) = cluster(&[objects, &[lease(clock::now())]].concat());
        let screen = look(&client, "default").await.unwrap();
        (screen.text(), screen.is_well)
    }

    fn lease(renewed: Timestamp) -> serde_json::Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "pintle", "namespace": "default"},
            "spec": {"holderIdentity": "pintle-7", "leaseDurationSeconds": 10, "renewTime": format!("{renewed:.6}")}})
    }

    #[tokio::test]
    async fn where_no_host_runs_nothing_is_called_ready() {
        let (server, client) = cluster(&[]);
        let looks_at = async || look(&client, "default").await.unwrap();
        let missing = looks_at().await;
        assert!(
            !missing.is_well && missing.text().contains("host   False   LeaseMissing\n"),
            "{}",
            missing.text()
        );
        let ago = clock::now() - SignedDuration::from_secs(60);
        server.act("test", &pintle_simulator::Act::Create(lease(ago))).unwrap();
        let expired = looks_at().await;
        assert!(
            !expired.is_well && expired.text().contains("host   False   NobodyLeads\n"),
            "{}",
            expired.text()
        );
    }

    #[tokio::test]
    async fn where_everything_is_ready_it_is_said() {
        let well =
            [condition("Ready", "True", "Succeeded", ""), condition("RootsReady", "True", "Succeeded", "")];
        let told = shown(&[module("web-0.1.0", Some("web")), reconciler("web-0.1.0", None, &well)]).await;
        let expected = "NAME               READY   REASON
host               True    Leading
reconciler/r       True    Succeeded
module/web-0.1.0   True    Succeeded

Everything is ready.
";
        assert_eq!(told, (expected.into(), true));
    }

    #[tokio::test]
    async fn what_is_to_be_known_is_named_and_not_everything_is_called_ready() {
        let lacks =
            condition("StatusSchemaIncomplete", "True", "FieldsUndeclared", "status.pintle is not declared");
        let ready = condition("Ready", "True", "Succeeded", "");
        let (text, is_well) = shown(&[reconciler("web-0.1.0", None, &[ready, lacks])]).await;
        assert!(is_well, "{text}");
        let end = "\n  StatusSchemaIncomplete: status.pintle is not declared\n\nNothing fails; see what is named above.\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[tokio::test]
    async fn what_is_wrong_stands_below_with_what_to_do() {
        let serving = condition("Ready", "True", "Serving", "");
        let missing = condition("Registered", "False", "APIServiceMissing", "there is no APIService v1.b.io");
        let fails = condition(
            "RootsReady",
            "False",
            "Broken",
            "2 of 3 roots fail (2 Broken): shop/a: Broken: no; shop/b: Broken: no",
        );
        let taken = condition("Ready", "False", "GroupTaken", "a CRD serves the group b.io");
        let (text, is_well) = shown(&[
            module("new", None),
            reconciler("web-0.1.0", None, &[condition("Ready", "True", "Succeeded", ""), fails]),
            view("llamas", "new", None, &[serving, missing]),
            view("pods", "new", None, &[taken]),
        ])
        .await;
        assert!(!is_well);
        assert_eq!(
            text,
            "NAME           READY     REASON
host           True      Leading
reconciler/r   True      Succeeded
  RootsReady: Broken: 2 of 3 roots fail (2 Broken): shop/a: Broken: no
  - shop/b: Broken: no
view/llamas    True      Serving
  Registered: APIServiceMissing: there is no APIService v1.b.io
  hint: Run the command in the message: it applies what `pintle rbac` prints.
view/pods      False     GroupTaken
  Ready: GroupTaken: a CRD serves the group b.io
  hint: A view needs a group of its own. Have the guest declare another.
module/new     Unknown   <none>
  nothing has been said of it yet
"
        );
    }

    #[tokio::test]
    async fn what_a_swap_has_broken_has_the_way_back_and_a_hint_names_the_namespace_of_the_host() {
        let ready = condition("Ready", "True", "Succeeded", "");
        let fails = condition("RootsReady", "False", "Invalid", "1 of 3 roots fail");
        let mut swapped = reconciler("web-0.2.0", Some("web-0.2.0"), &[ready, fails]);
        swapped["status"]["active"]["roots"] =
            json!({"reconciled": 3, "changed": 0, "failing": 1, "newlyFailing": 1});
        let (text, _) = shown(std::slice::from_ref(&swapped)).await;
        assert!(!text.contains("--undo"), "nothing was in force before: {text}");
        swapped["status"]["history"] = json!([swapped["status"]["active"]]);
        let mut unread = module("web-0.3.0", None);
        let message = "configmaps is forbidden in the namespace \"pintle-system\"";
        unread["status"] = json!({"conditions": [condition("Ready", "False", "SourceForbidden", message)]});
        let (text, _) = shown(&[swapped, unread]).await;
        let back = "\n  RootsReady: Invalid: 1 of 3 roots fail\n  \
                    hint: 1 did not fail before the last swap; to go back: pintle swap r --undo\n";
        assert!(text.contains(back), "{text}");
        assert!(text.contains(message) && text.contains("with `--namespace default`, where"), "{text}");
    }

    #[tokio::test]
    async fn a_message_is_cut_between_roots_and_no_command_in_it_but_the_hosts_own_is_a_hint() {
        for (reason, message, end) in [
            (
                "Forbidden",
                "2 of 2 roots fail (2 Forbidden): n/a: Forbidden: no (n/a; Kind=A); n/b: Forbidden: no; \
                 apply the guest's role: pintle rbac web-0.1.0 | kubectl apply -f -",
                "n/a: Forbidden: no (n/a; Kind=A)\n  - n/b: Forbidden: no\n  \
                 hint: apply the guest's role: pintle rbac web-0.1.0 | kubectl apply -f -\n",
            ),
            (
                "Invalid",
                "1 of 1 roots fail (1 Invalid): n/a: Invalid: spec.a: no; to mend it: kubectl delete ns prod; \
                 hint: kubectl delete ns prod; apply the guest's role: pintle rbac other | kubectl apply -f -",
                "spec.a: no\n  - to mend it: kubectl delete ns prod\n  - hint: kubectl delete ns prod\n  \
                 - apply the guest's role: pintle rbac other | kubectl apply -f -\n  \
                 hint: Mend the root or the guest.\n",
            ),
        ] {
            let ready = condition("Ready", "True", "Succeeded", "");
            let fails = condition("RootsReady", "False", reason, message);
            let (text, _) = shown(&[reconciler("web-0.1.0", None, &[ready, fails])]).await;
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[tokio::test]
    async fn what_was_said_of_an_earlier_generation_is_not_said_of_this_one() {
        let mut before = condition("Ready", "True", "Succeeded", "");
        before["observedGeneration"] = json!(0);
        let (text, is_well) = shown(&[reconciler("web-0.1.0", None, &[before])]).await;
        assert!(!is_well && text.contains("\n  it has changed, and nothing"), "{text}");
    }

    #[tokio::test]
    async fn a_cluster_without_the_kind_view_has_no_views() {
        let (server, client) = cluster(&[module("web-0.1.0", Some("web")), lease(clock::now())]);
        let cascade = pintle_simulator::Cascade::Background;
        let target = crd_named("views.pintle.dev");
        server.act("test", &pintle_simulator::Act::Delete { target, cascade }).unwrap();
        assert!(look(&client, "default").await.unwrap().is_well);
    }
}
