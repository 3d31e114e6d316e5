//! The roots of Reconcilers: which kinds are read and where, and what is shown of each root.

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    api::{DynamicObject, ListParams},
};
use pintle_api::{Namespaces, Reconciler};
use pintle_core::{object, text};
use pintle_kubernetes::{Cluster, Resource};
use pintle_wit::Kind;
use serde_json::Value;

use super::{
    live,
    readiness::{self, Readiness},
};

/// What is shown of a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Root {
    /// Its kind.
    pub(super) kind: Kind,
    /// Its namespace, unless its kind has none.
    pub(super) namespace: Option<String>,
    /// Its name.
    pub(super) name: String,
    /// Whether it is Ready, and why.
    pub(super) readiness: Readiness,
}

impl Root {
    /// Reads a root as the API server sent it.
    pub(super) fn of(root: &Value, resource: &Resource) -> Self {
        Self {
            kind: resource.kind.clone(),
            namespace: object::namespace(root).map(Into::into),
            name: object::name(root).into(),
            readiness: Readiness::of(&readiness::conditions(root), object::generation(root)),
        }
    }
}

/// Whether a root is one of this Reconciler's.
pub(super) fn is_of(root: &Root, reconciler: &Reconciler) -> bool {
    root.kind == reconciler.spec.r#for && reconciler.spec.namespaces.includes(root.namespace.as_deref())
}

/// Where the roots of a kind are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// In every namespace.
    Everywhere,
    /// In these.
    In(Vec<String>),
}

impl Where {
    fn and(&mut self, other: &Namespaces) {
        match (&mut *self, other) {
            (Self::In(known), Namespaces::Listed(more)) => {
                known.extend(more.iter().cloned());
                known.sort();
                known.dedup();
            }
            // A Reconciler whose namespaces are invalid has no roots.
            (_, Namespaces::Invalid(_)) | (Self::Everywhere, _) => {}
            (Self::In(_), Namespaces::All) => *self = Self::Everywhere,
        }
    }
}

/// The kinds of roots of these Reconcilers, each once, and the namespaces in which they are reconciled.
pub(super) fn kinds<'a>(reconcilers: impl IntoIterator<Item = &'a Reconciler>) -> BTreeMap<Kind, Where> {
    let mut kinds: BTreeMap<Kind, Where> = BTreeMap::new();
    for Reconciler { spec, .. } in reconcilers {
        kinds.entry(spec.r#for.clone()).or_insert_with(|| Where::In(Vec::new())).and(&spec.namespaces);
    }
    kinds
}

/// A kind whose roots could not be read, or not in every namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// The kind.
    pub(super) kind: Kind,
    /// Why, and what helps.
    pub(super) why: String,
}

impl Unread {
    /// What is said of it, in one line.
    pub(super) fn text(&self) -> String {
        text::clean(&format!("{} ({}): {}", self.kind.kind, self.kind.api_version, self.why), 1024)
    }
}

/// What was read: everything that could be, and of what could not be the reason.
#[derive(Clone, Debug)]
pub(super) struct Roots<T> {
    /// The roots.
    pub(super) found: Vec<T>,
    /// The kinds that could not be read.
    pub(super) unread: Vec<Unread>,
}

/// Reads the roots of these kinds, and keeps of each what `keep` makes of it: there may be very many.
pub(super) async fn read<T>(
    client: &Client,
    kinds: &BTreeMap<Kind, Where>,
    keep: impl Fn(Value, &Resource) -> T,
) -> Roots<T> {
    let mut roots = Roots { found: Vec::new(), unread: Vec::new() };
    let cluster = Cluster::new(client.clone());
    for (kind, wanted) in kinds {
        let mut unread = |why: String| roots.unread.push(Unread { kind: kind.clone(), why });
        match cluster.discover(kind).await {
            Ok(Some(resource)) => {
                for namespace in namespaces(wanted, &resource) {
                    if let Err(error) = read_one(client, &resource, namespace, &keep, &mut roots.found).await
                    {
                        let problem = live::said(&error);
                        roots.unread.push(Unread { kind: kind.clone(), why: problem });
                    }
                }
            }
            Ok(None) => unread("the API server does not serve this kind; apply its CRD".into()),
            Err(error) => unread(error.to_string()),
        }
    }
    roots
}

/// The namespaces that are asked for one by one; none stands for all at once.
fn namespaces<'a>(wanted: &'a Where, resource: &Resource) -> Vec<Option<&'a str>> {
    match wanted {
        Where::In(names) if resource.namespaced => names.iter().map(|name| Some(name.as_str())).collect(),
        _ => vec![None],
    }
}

async fn read_one<T>(
    client: &Client,
    resource: &Resource,
    namespace: Option<&str>,
    keep: impl Fn(Value, &Resource) -> T,
    found: &mut Vec<T>,
) -> Result<(), kube::Error> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource.api_resource()),
        None => Api::all_with(client.clone(), &resource.api_resource()),
    };
    let mut params = ListParams::default().limit(live::PAGE_OBJECTS);
    loop {
        let page = api.list(&params).await?;
        for mut root in page.items {
            root.metadata.managed_fields = None;
            let mut value = serde_json::to_value(root).map_err(kube::Error::SerdeError)?;
            // The items of a list do not say their kind.
            object::set_kind(&mut value, resource.kind.clone());
            found.push(keep(value, resource));
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reconciler(kind: &str, namespaces: &Value) -> Reconciler {
        let spec =
            json!({"for": {"apiVersion": "a.io/v1", "kind": kind}, "module": "m", "namespaces": namespaces});
        Reconciler::new("r", serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn a_kind_is_read_once_where_any_reconciler_works_on_it() {
        let all = [
            reconciler("A", &json!(["x", "y"])),
            reconciler("A", &json!(["y", "z"])),
            reconciler("B", &json!(["x"])),
            reconciler("B", &json!("All")),
        ];
        let kind = |name: &str| Kind::new("a.io/v1", name);
        let found = kinds(&all);
        assert_eq!(found[&kind("A")], Where::In(vec!["x".into(), "y".into(), "z".into()]));
        assert_eq!(found[&kind("B")], Where::Everywhere);
    }

    #[test]
    fn a_root_belongs_to_the_reconciler_of_its_kind_and_namespace() {
        let resource = Resource { kind: Kind::new("a.io/v1", "A"), plural: "as".into(), namespaced: true };
        let value = json!({"metadata": {"name": "n", "namespace": "x"}});
        let root = Root::of(&value, &resource);
        assert!(is_of(&root, &reconciler("A", &json!(["x"]))));
        assert!(!is_of(&root, &reconciler("A", &json!(["y"]))));
        assert!(!is_of(&root, &reconciler("B", &json!("All"))));
    }
}
