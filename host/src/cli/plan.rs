//! The command `pintle plan`: it shows what a module would change, before it is put in force.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use kube::Client;
use pintle_core::plan::{ChildChange, PlannedRoot, Roots, Summary};
use pintle_kubernetes::connect::Connect;
use pintle_preview::{PlanRequest, Told};
use serde_json::json;

use super::{
    completion, live,
    output::{self, Data},
    problem::{CommandStatus, Problem},
    seeing,
    table::Table,
};

/// Show what a module would change
///
/// Nothing is changed. Every root of the Reconciler is put before the module, as the operator would do it, and the answers are compared
/// with what is in the cluster. Without a module it is the one in force: that shows what this version of Pintle would change.
///
/// Everything is read with your own rights. What you may not read makes a root unknown. Secrets are compared by their values, and
/// other values are printed in their place.
///
/// The exit code is 0 if nothing would change, 1 if something would, and 2 if that cannot be told.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Show what a swap would change
  pintle plan webserver webserver-0.2.0

  # The same for a module that is not uploaded yet
  pintle plan webserver guest.wasm

  # Only how many, by kind and field
  pintle plan webserver guest.wasm -o summary

  # One root, or those in a namespace
  pintle plan webserver guest.wasm --for blog/web
  pintle plan webserver guest.wasm -n blog

  # Ask the API server too whether it would take it
  pintle plan webserver guest.wasm --server

  # What an upgrade of Pintle would change
  pintle plan webserver")]
pub(super) struct Plan {
    /// Name of the Reconciler
    #[arg(add = completion::reconcilers())]
    reconciler: String,

    /// Name of a Module, or a file [default: the module in force]
    #[arg(value_name = "MODULE|FILE", add = completion::modules_and_files())]
    module: Option<String>,

    /// Only roots in this namespace
    #[arg(short, long)]
    namespace: Option<String>,

    /// Only roots with these labels
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,

    /// Only this root, as NAME or NAMESPACE/NAME
    #[arg(long = "for", value_name = "ROOT", conflicts_with = "selector")]
    root: Option<String>,

    /// Ask the API server what it would say to each change (a dry run)
    #[arg(long)]
    server: bool,

    /// Output format. One of diff, json or summary
    #[arg(short, long, value_name = "FORMAT", default_value = "diff", hide_possible_values = true)]
    output: Form,

    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The difference of each object, and the summary.
    Diff,
    /// Everything, as JSON.
    Json,
    /// The summary alone.
    Summary,
}

/// How many of several roots or objects are named.
pub(super) const NAMED: usize = 10;

impl Plan {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(self.plan())
    }

    async fn plan(&self) -> Result<CommandStatus, Problem> {
        let client = live::client(&self.connect).await?;
        let namespace = match (&self.namespace, &self.root) {
            (None, Some(root)) if !root.contains('/') => Some(client.default_namespace().to_owned()),
            (namespace, _) => namespace.clone(),
        };
        let request = PlanRequest {
            reconciler: self.reconciler.clone(),
            module: self.module.as_deref().map(seeing::choice).transpose()?,
            config: None,
            namespace,
            label_selector: self.selector.clone(),
            root: self.root.clone(),
            server: self.server,
        };
        let mut roots: Vec<PlannedRoot> = Vec::new();
        let summary = make(&client, &request, |root| roots.push(root)).await?;
        roots.sort_by_key(|root| (root.root.namespace.clone(), root.root.name.clone()));
        output::print(&match self.output {
            Form::Json => output::text(&json!({"summary": summary, "roots": roots}), Data::Json)?,
            Form::Summary => summary_text(&summary),
            Form::Diff => format!("{}{}", diff_text(&roots), summary_text(&summary)),
        })?;
        outcome(&summary)
    }
}

/// Makes a plan, and draws how far it is. `take` is given the roots that would not stay as they are: all of them with their differences
/// may be much.
pub(super) async fn make(
    client: &Client,
    request: &PlanRequest,
    mut take: impl FnMut(PlannedRoot) + Send,
) -> Result<Summary, Problem> {
    let preview = seeing::preview()?;
    let bar = output::roots_bar();
    let mut tell = |told: Told| match told {
        Told::Progress { done, total } => {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
        Told::Root(root) => take(*root),
    };
    let planned = preview.plan(&seeing::caller(client), request, &mut tell).await;
    drop(bar);
    planned.map_err(seeing::problem)
}

/// The exit code of a plan.
fn outcome(summary: &Summary) -> Result<CommandStatus, Problem> {
    match summary.would_change() {
        Some(false) => Ok(CommandStatus::Fine),
        Some(true) => Ok(CommandStatus::Failed),
        None => Err(Problem::new(format!(
            "of {} it cannot be told what would change",
            roots_in_words(summary.roots.unknown)
        ))
        .hint("-o json says of each what could not be read")),
    }
}

/// `1 root`, `2 roots`.
pub(super) fn roots_in_words(number: usize) -> String {
    format!("{number} root{}", if number == 1 { "" } else { "s" })
}

/// Every root that would not stay as it is, with the difference of each of its objects.
fn diff_text(roots: &[PlannedRoot]) -> String {
    let mut text = String::new();
    for root in roots {
        let verdict = json!(root.verdict);
        let word = verdict.as_str().unwrap_or_default();
        let _ = writeln!(text, "# {}: {word}", root.root.reference());
        let mut note = |note: &str| text.push_str(&format!("#   {}\n", note.replace('\n', "\n#     ")));
        if let Some(failure) = &root.failure {
            let now = if root.fails_now == Some(true) { " (it fails now, too)" } else { "" };
            note(&format!("{}{now}: {}", failure.reason, failure.with_path()));
        }
        for standing in &root.standing_refusals {
            note(&format!("refused at present: {}: {}", standing.reason, standing.message));
        }
        for unknown in &root.unknown {
            note(&format!("not known: {}: {}", unknown.what, unknown.why));
        }
        for pod in &root.evictions {
            note(&format!("{pod} would be evicted"));
        }
        for field in root.status.iter().flat_map(|status| &status.changes) {
            let side = |value: &Option<serde_json::Value>| {
                value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string)
            };
            note(&format!("{}: {} -> {}", field.path, side(&field.from), side(&field.to)));
        }
        for change in root.children.iter().chain(&root.patches) {
            text.push_str(&change_text(change));
        }
        text.push('\n');
    }
    text
}

/// The difference of an object, and why it is so where the word does not say it.
pub(super) fn change_text(change: &ChildChange) -> String {
    let mut text = String::new();
    if let Some(why) = &change.why {
        let _ =
            writeln!(text, "# {}: {}: {}", change.reference, change.change.word(), why.replace('\n', " "));
    }
    text.push_str(&change.diff);
    text
}

/// How many roots, and which fields of which kinds.
pub(super) fn summary_text(summary: &Summary) -> String {
    let mut text = String::new();
    let in_force = match &summary.in_force {
        Some(active) if active.digest == summary.module.digest => "which is in force".to_owned(),
        Some(active) => format!("in the place of {}", active.name),
        None => "and none is in force".to_owned(),
    };
    let _ = writeln!(text, "Reconciler {}, module {}, {in_force}", summary.reconciler, summary.module.name);
    let Roots { total, unchanged, changed, fails, newly_failing, unknown } = summary.roots;
    let mut parts = vec![format!("{unchanged} unchanged"), format!("{changed} changed")];
    if fails > 0 {
        let already = fails - newly_failing;
        let already = if already > 0 { format!(" ({already} already do)") } else { String::new() };
        parts.push(format!("{fails} would fail{already}"));
    }
    if unknown > 0 {
        parts.push(format!("{unknown} unknown"));
    }
    let _ = writeln!(text, "{}: {}", roots_in_words(total), parts.join(", "));
    let mut table = Table::new(&["KIND", "FIELD", "CHANGE", "COUNT", "EXAMPLE"]);
    for line in &summary.changes {
        let example = &line.example;
        let name = match &example.namespace {
            Some(namespace) => format!("{namespace}/{}", example.name),
            None => example.name.clone(),
        };
        let path = if line.path.is_empty() { "-".to_owned() } else { line.path.clone() };
        table.row([line.kind.clone(), path, line.change.word().to_owned(), line.count.to_string(), name]);
    }
    if !table.is_empty() {
        let _ = write!(text, "\n{}", table.text());
    }
    if summary.limits.truncated {
        text.push_str("There are more kinds and fields than these.\n");
    }
    let deletions: Vec<String> = summary.deletions.iter().take(NAMED).map(ToString::to_string).collect();
    if !deletions.is_empty() {
        let more = match summary.deletion_count.saturating_sub(deletions.len()) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        let _ = writeln!(text, "Would be deleted: {}{more}", deletions.join(", "));
    }
    for (number, happens) in [(summary.restarts, "replaced"), (summary.stops, "ended")] {
        if number > 0 {
            let _ = writeln!(text, "{number} Pod{} would be {happens}", if number == 1 { "" } else { "s" });
        }
    }
    for new in &summary.new_kinds {
        let granted = if new.granted { "" } else { "; the Reconciler does not grant it" };
        let (may, verbs) = match &new.missing {
            Some(missing) if missing.is_empty() && new.granted => continue,
            Some(missing) if missing.is_empty() => ("The host may", &new.verbs),
            Some(missing) => ("The host may not", missing),
            None => ("The module needs to", &new.verbs),
        };
        let verbs = verbs.join(", ");
        let _ = writeln!(text, "{may} {verbs} {} ({}){granted}", new.kind, new.api_version);
    }
    if let Some(command) = &summary.role_command {
        let when = if summary.lacks_rights() {
            "Apply the module's role first"
        } else {
            "If the host may not, apply the module's role"
        };
        let _ = writeln!(text, "{when}: {command}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_core::plan::{Change, Example, ModuleName, SummaryLine};
    use pintle_wit::ObjectRef;

    #[test]
    fn a_summary_counts_roots_and_names_fields() {
        let summary = Summary {
            reconciler: "webserver".into(),
            module: ModuleName { name: "webserver-0.2.0".into(), digest: "sha256:1".into() },
            in_force: Some(ModuleName { name: "webserver-0.1.0".into(), digest: "sha256:0".into() }),
            roots: Roots { total: 4, unchanged: 1, changed: 1, fails: 2, newly_failing: 1, unknown: 0 },
            changes: vec![SummaryLine {
                kind: "Deployment".into(),
                path: "spec.replicas".into(),
                change: Change::Update,
                count: 1,
                example: Example { namespace: Some("blog".into()), name: "web".into() },
            }],
            deletions: (1..=12)
                .map(|number| ObjectRef {
                    api_version: "v1".into(),
                    kind: "Service".into(),
                    namespace: Some("blog".into()),
                    name: format!("web-{number}"),
                })
                .collect(),
            deletion_count: 1200,
            restarts: 3,
            stops: 1,
            ..Summary::default()
        };
        assert_eq!(
            summary_text(&summary),
            "Reconciler webserver, module webserver-0.2.0, in the place of webserver-0.1.0\n\
             4 roots: 1 unchanged, 1 changed, 2 would fail (1 already do)\n\n\
             KIND         FIELD           CHANGE   COUNT   EXAMPLE\n\
             Deployment   spec.replicas   update   1       blog/web\n\
             Would be deleted: Service blog/web-1, Service blog/web-2, Service blog/web-3, Service blog/web-4, Service blog/web-5, \
             Service blog/web-6, Service blog/web-7, Service blog/web-8, Service blog/web-9, Service blog/web-10, and 1190 more\n\
             3 Pods would be replaced\n\
             1 Pod would be ended\n"
        );
        assert_eq!(summary.would_change(), Some(true));
    }
}
