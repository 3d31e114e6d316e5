//! The command `pintle get`: it lists Reconcilers, Modules, Views and roots.

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::{Client, ResourceExt};
use pintle_api::{Module, Reconciler, View};
use pintle_core::{reasons, text};
use pintle_kubernetes::connect::Connect;
use pintle_runtime::clock;
use serde_json::{Value, json};

use super::{
    completion, live,
    missing::missing,
    output::{self, Data},
    problem::{CommandStatus, Problem},
    readiness::Readiness,
    roots::{self, Root, Unread},
    table::{self, Table},
};

/// How much of a message stands in a table without `-o wide`, in bytes.
const MESSAGE_BYTES: usize = 60;

/// List Reconcilers, Modules, Views or roots
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
  pintle get module webserver-0.1.0 -o yaml

  # List Views, with whether the API server sends requests
  pintle get views -o wide")]
pub(super) struct Get {
    /// What to list. One of reconcilers, modules, views or roots
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
    #[value(alias = "view", alias = "pview")]
    Views,
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
                .hint("Reconcilers, Modules and Views belong to no namespace"));
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
                let found = self.named(live::list::<Reconciler>(client, "Reconcilers").await?)?;
                self.print(&found, |found| reconcilers(found, wide, now))?
            }
            What::Modules => {
                let found = self.named(live::list::<Module>(client, "Modules").await?)?;
                self.print(&found, |found| modules(found, wide, now))?
            }
            What::Views => {
                let found = self.named(live::list::<View>(client, "Views").await?)?;
                self.print(&found, |found| views(found, wide, now))?
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
        let of = named(all, self.reconciler.as_deref())?;
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

    /// The object that was asked for, or all of them.
    fn named<K: kube::Resource<DynamicType = ()>>(&self, all: Vec<K>) -> Result<Vec<K>, Problem> {
        named(all, self.name.as_deref())
    }
}

/// The object of this name, or all of them when no name is given.
fn named<K: kube::Resource<DynamicType = ()>>(all: Vec<K>, name: Option<&str>) -> Result<Vec<K>, Problem> {
    let Some(name) = name else { return Ok(all) };
    match all.iter().position(|object| object.name_any() == name) {
        Some(index) => Ok(all.into_iter().skip(index).take(1).collect()),
        None => Err(missing(name, &all).into_failure()),
    }
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

/// A value that is one word in YAML, as it stands there.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// The resource that a View serves, as group, version and plural.
fn serves(view: &View) -> String {
    let served = view.status.as_ref().and_then(|status| status.served.as_ref());
    served.map_or_else(String::new, |served| format!("{}/{}", served.api_version, served.plural))
}

fn views(found: &[View], wide: bool, now: Timestamp) -> Table {
    let mut head = vec!["NAME", "MODULE", "VIEW", "SERVES", "BACKING", "READY", "REASON", "AGE"];
    if wide {
        head.extend(["REGISTERED", "WANTED", "ACCESS", "EPOCH"]);
    }
    let mut table = Table::new(&head);
    for view in found {
        let status = view.status.clone().unwrap_or_default();
        let readiness = Readiness::of(&status.conditions, view.metadata.generation);
        let mut cells = vec![
            view.name_any(),
            status.active.as_ref().map(|active| active.module.clone()).unwrap_or_default(),
            view.spec.view.clone(),
            serves(view),
            status.served.as_ref().map(|served| served.backing.kind.clone()).unwrap_or_default(),
            readiness.status.as_str().into(),
            readiness.reason,
            age_of(view, now),
        ];
        if wide {
            let registered =
                status.conditions.iter().find(|condition| condition.r#type == reasons::REGISTERED);
            cells.extend([
                registered.map(|registered| registered.status.as_str().to_owned()).unwrap_or_default(),
                view.spec.module.clone(),
                word(&view.spec.access),
                status.active.map(|active| active.epoch.to_string()).unwrap_or_default(),
            ]);
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
