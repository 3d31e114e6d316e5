//! The command `pintle get`: it lists Reconcilers, Modules and roots.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use pintle_api::{Module, Reconciler};
use pintle_core::{reasons, text};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use serde_json::{Value, json};

use super::{
    completion, live,
    output::{self, Data},
    problem::{CommandStatus, Problem},
    readiness::Readiness,
    roots::{self, Root, Unread},
    table::{self, Table},
};

/// How much of a message stands in a table without `-o wide`, in bytes.
const MESSAGE_BYTES: usize = 60;

/// List Reconcilers, Modules or roots
///
/// A root is a custom resource that a Reconciler is for. The command lists roots of all such kinds in one table. What you may not
/// list is named on the standard error, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # List Reconcilers, with why roots fail
  pintle get reconcilers -o wide

  # List the roots in a namespace, or in all
  pintle get roots -n shop
  pintle get roots -A

  # List the roots of a Reconciler
  pintle get roots -A --reconciler webserver

  # Print a Module as YAML
  pintle get module webserver-0.1.0 -o yaml")]
pub(super) struct Get {
    /// What to list. One of reconcilers, modules or roots
    #[arg(hide_possible_values = true)]
    what: What,

    /// Name of the object to print
    name: Option<String>,

    /// Only roots of this Reconciler
    #[arg(long, value_name = "NAME", add = completion::reconcilers())]
    reconciler: Option<String>,

    /// Namespace of the roots [default: that of the kubeconfig context]
    #[arg(short, long, conflicts_with = "all_namespaces")]
    namespace: Option<String>,

    /// Roots in all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,

    /// Output format. One of wide, json, yaml or name
    #[arg(short, long, value_name = "FORMAT", hide_possible_values = true)]
    output: Option<Form>,

    #[command(flatten)]
    connect: Connect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    #[value(alias = "reconciler", alias = "prec")]
    Reconcilers,
    #[value(alias = "module", alias = "pmod")]
    Modules,
    #[value(alias = "root")]
    Roots,
}

/// How a list is printed; a table when left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Wide,
    Json,
    Yaml,
    Name,
}

impl Form {
    fn data(self) -> Option<Data> {
        match self {
            Self::Json => Some(Data::Json),
            Self::Yaml => Some(Data::Yaml),
            Self::Wide | Self::Name => None,
        }
    }
}

/// What a list comes to: what goes to the standard output, and what could not be read.
#[derive(Debug, Default)]
struct Listed {
    text: String,
    unread: Vec<Unread>,
}

impl Get {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let of_roots = self.reconciler.is_some() || self.namespace.is_some() || self.all_namespaces;
        if of_roots && self.what != What::Roots {
            return Err(Problem::new("--reconciler, --namespace and --all-namespaces are for roots")
                .hint("Reconcilers and Modules belong to no namespace"));
        }
        live::block_on(async {
            let client = live::client(&self.connect).await?;
            let listed = self.list(&client).await?;
            output::print(&listed.text)?;
            listed.unread.iter().for_each(|unread| eprintln!("error: {}", unread.text()));
            Ok(if listed.unread.is_empty() { CommandStatus::Fine } else { CommandStatus::Failed })
        })
    }

    async fn list(&self, client: &Client) -> Result<Listed, Problem> {
        let now = clock::now();
        let wide = self.output == Some(Form::Wide);
        let text = match self.what {
            What::Reconcilers => {
                let found =
                    named(live::list::<Reconciler>(client, "Reconcilers").await?, self.name.as_deref())
                        .ok_or_else(|| self.missing("Reconciler"))?;
                self.print(&found, |found| reconcilers(found, wide, now))?
            }
            What::Modules => {
                let found = named(live::list::<Module>(client, "Modules").await?, self.name.as_deref())
                    .ok_or_else(|| self.missing("Module"))?;
                self.print(&found, |found| modules(found, wide, now))?
            }
            What::Roots => return self.roots(client, now).await,
        };
        Ok(Listed { text, unread: Vec::new() })
    }

    /// Objects of cluster scope in the form that was asked for.
    fn print<K>(&self, found: &[K], table: impl Fn(&[K]) -> Table) -> Result<String, Problem>
    where
        K: kube::Resource<DynamicType = ()> + serde::Serialize,
    {
        match self.output {
            Some(Form::Name) => Ok(found
                .iter()
                .map(|object| {
                    format!("{}.{}/{}\n", K::kind(&()).to_lowercase(), K::group(&()), object.name_any())
                })
                .collect()),
            Some(form @ (Form::Json | Form::Yaml)) => {
                let mut values: Vec<Value> =
                    found.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
                for value in &mut values {
                    // As kubectl leaves them out.
                    if let Some(metadata) = value["metadata"].as_object_mut() {
                        metadata.remove("managedFields");
                    }
                }
                self.data(values, form)
            }
            None | Some(Form::Wide) => {
                let table = table(found);
                if table.is_empty() {
                    eprintln!("No resources found");
                    return Ok(String::new());
                }
                Ok(table.text(table::width()))
            }
        }
    }

    fn data(&self, mut values: Vec<Value>, form: Form) -> Result<String, Problem> {
        let form = form.data().unwrap_or(Data::Yaml);
        match (self.name.is_some(), values.len()) {
            (true, 1) => output::text(&values.remove(0), form),
            _ => output::text(&json!({"apiVersion": "v1", "kind": "List", "items": values}), form),
        }
    }

    async fn roots(&self, client: &Client, now: Timestamp) -> Result<Listed, Problem> {
        let all = live::list::<Reconciler>(client, "Reconcilers").await?;
        let of = named(all, self.reconciler.as_deref()).ok_or_else(|| {
            Problem::failed(format!(
                "there is no Reconciler {}",
                self.reconciler.as_deref().unwrap_or_default()
            ))
            .hint("see which there are with: pintle get reconcilers")
        })?;
        let namespace = self.namespace.as_deref().unwrap_or(client.default_namespace());
        let namespace = (!self.all_namespaces).then_some(namespace);
        let kinds = roots::kinds(&of, namespace);
        let wanted = |root: &Root| {
            self.name.as_ref().is_none_or(|name| *name == root.name)
                && of.iter().any(|reconciler| roots::is_of(root, reconciler))
        };
        let roots::Roots { mut found, unread } = roots::read(client, &kinds, |value, resource| {
            // The whole of it is kept only where it is printed.
            let root = Root::of(&value, resource);
            wanted(&root).then(|| (root, self.output.and_then(Form::data).map(|_| value)))
        })
        .await;
        let mut found: Vec<(Root, Option<Value>)> = found.drain(..).flatten().collect();
        found.sort_by(|(one, _), (other, _)| {
            (&one.namespace, &one.kind, &one.name).cmp(&(&other.namespace, &other.kind, &other.name))
        });
        if found.is_empty() && unread.is_empty() {
            let place = namespace.map_or_else(String::new, |name| format!(" in namespace {name}"));
            if let Some(name) = &self.name {
                return Err(Problem::failed(format!("there is no root {name}{place}"))
                    .hint("see which there are with: pintle get roots -A"));
            }
            if self.output.and_then(Form::data).is_none() {
                eprintln!("No resources found{place}");
                return Ok(Listed::default());
            }
        }
        let text = match self.output {
            Some(Form::Name) => found.iter().map(|(root, _)| root.resource_name() + "\n").collect(),
            Some(form @ (Form::Json | Form::Yaml)) => {
                self.data(found.into_iter().filter_map(|(_, value)| value).collect(), form)?
            }
            None | Some(Form::Wide) if found.is_empty() => String::new(),
            form @ (None | Some(Form::Wide)) => {
                let found: Vec<Root> = found.into_iter().map(|(root, _)| root).collect();
                table_of_roots(&found, form.is_some(), now).text(table::width())
            }
        };
        Ok(Listed { text, unread })
    }

    fn missing(&self, kind: &str) -> Problem {
        let name = self.name.as_deref().unwrap_or_default();
        Problem::failed(format!("there is no {kind} {name}"))
            .hint(format!("see which there are with: pintle get {}s", kind.to_lowercase()))
    }
}

/// The object of this name, or all of them when no name is given. Nothing where there is none of that name.
fn named<K: ResourceExt>(all: Vec<K>, name: Option<&str>) -> Option<Vec<K>> {
    let Some(name) = name else { return Some(all) };
    let found: Vec<K> = all.into_iter().filter(|object| object.name_any() == name).collect();
    (!found.is_empty()).then_some(found)
}

/// When an object was created, as an age.
fn age_of(object: &impl ResourceExt, now: Timestamp) -> String {
    object.creation_timestamp().map_or_else(String::new, |created| table::age(created.0, now))
}

fn reconcilers(found: &[Reconciler], wide: bool, now: Timestamp) -> Table {
    let mut head = vec!["NAME", "KIND", "MODULE", "READY", "REASON", "ROOTS", "FAILING", "AGE"];
    if wide {
        head.extend(["ROOTS-REASON", "WANTED"]);
    }
    let mut table = Table::new(&head);
    for reconciler in found {
        let status = reconciler.status.clone().unwrap_or_default();
        let readiness = Readiness::of(&status.conditions, reconciler.metadata.generation);
        let count = |count: fn(&pintle_api::RootCounts) -> u32| {
            status.roots.as_ref().map_or_else(String::new, |roots| count(roots).to_string())
        };
        let mut cells = vec![
            reconciler.name_any(),
            reconciler.spec.r#for.kind.clone(),
            status.active.as_ref().map(|active| active.module.clone()).unwrap_or_default(),
            readiness.status.as_str().into(),
            readiness.reason,
            count(|roots| roots.total),
            count(|roots| roots.failing),
            age_of(reconciler, now),
        ];
        if wide {
            let roots = status.conditions.iter().find(|condition| condition.r#type == reasons::ROOTS_READY);
            cells.push(roots.map(|roots| roots.reason.clone()).unwrap_or_default());
            cells.push(reconciler.spec.module.clone());
        }
        table.add(cells);
    }
    table
}

fn modules(found: &[Module], wide: bool, now: Timestamp) -> Table {
    let mut head = vec!["NAME", "READY", "REASON", "GUEST", "VERSION", "USED-BY", "AGE"];
    if wide {
        head.extend(["SIZE", "DIGEST"]);
    }
    let mut table = Table::new(&head);
    for module in found {
        let status = module.status.clone().unwrap_or_default();
        let readiness = Readiness::of(&status.conditions, module.metadata.generation);
        let mut cells = vec![
            module.name_any(),
            readiness.status.as_str().into(),
            reason_of(module, &readiness.reason),
            manifest_text(module, "name"),
            manifest_text(module, "version"),
            status.used_by.join(","),
            age_of(module, now),
        ];
        if wide {
            cells.push(status.size.map(|size| size.to_string()).unwrap_or_default());
            cells.push(module.spec.digest.clone());
        }
        table.add(cells);
    }
    table
}

/// The reason of a Module, and that it is being deleted, as `kubectl get nodes` shows that no Pod may come: its conditions do not say it.
fn reason_of(module: &Module, reason: &str) -> String {
    let deleting = module.metadata.deletion_timestamp.is_some().then_some(reasons::DELETING);
    let words: Vec<&str> = [reason].into_iter().filter(|reason| !reason.is_empty()).chain(deleting).collect();
    words.join(",")
}

/// A word of the manifest that a Module's status shows; empty where there is none yet.
pub(super) fn manifest_text(module: &Module, key: &str) -> String {
    let manifest = module.status.as_ref().and_then(|status| status.manifest.as_ref());
    manifest.and_then(|manifest| manifest[key].as_str()).unwrap_or_default().to_owned()
}

fn table_of_roots(found: &[Root], wide: bool, now: Timestamp) -> Table {
    let mut table = Table::new(&["NAMESPACE", "KIND", "NAME", "READY", "REASON", "MESSAGE", "AGE"]);
    for root in found {
        let Readiness { status, reason, message, .. } = &root.readiness;
        table.row([
            root.namespace.clone().unwrap_or_default(),
            root.kind.kind.clone(),
            root.name.clone(),
            status.as_str().into(),
            reason.clone(),
            if wide { message.clone() } else { text::clean(message, MESSAGE_BYTES) },
            root.created.map_or_else(String::new, |created| table::age(created, now)),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
