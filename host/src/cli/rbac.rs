//! The command `pintle rbac`: it prints the rights that the guest of a module needs, or those who use its kind, or what it takes to serve
//! its views.

mod declared;
mod views;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use clap::Args;
use pintle_api as api;
use pintle_core::{
    reconciler,
    view::rights::{self, Exposed},
};
use pintle_kubernetes::{Cluster, connect::Connect};
use pintle_wit::{Kind, Manifest};
use serde_json::{Value, json};

use super::{
    completion, live, module,
    output::{self, Data},
    plural,
    problem::{CommandStatus, Problem},
};
use declared::Declared;

/// Print roles for a guest, its users or a View
///
/// For a guest that reconciles, a ClusterRole lets the operator read the custom resources, write their status, and manage the kinds of
/// children that the guest declares. It is aggregated into the role of the operator by its label. It never allows to list or watch
/// Secrets.
///
/// With the files of Views (-f), the output has the ClusterRole of the gateway, the ClusterRoles that Kubernetes adds to `view` and
/// `edit`, and the APIService, which makes the API server send requests to the gateway. A module that only serves views can be given
/// alone.
///
/// With --users, the output is for the people who use a guest's kind. Kubernetes adds two ClusterRoles to `view` and `edit`, so that a
/// RoleBinding to one of these is enough for kubectl and the console in that namespace. Reconcilers and Modules are in no namespace:
/// for `pintle inspect`, and for the console to find the children of a root, bind the ClusterRole `pintle-reader` and the Role
/// `pintle-module-reader` too. Whoever has them can read the config of every Reconciler.
///
/// A module is a file if its name ends in `.wasm` or has a `/`, and otherwise a Module in the cluster. While a Reconciler or a View
/// switches to another Module, give both: the roles are then for both. Children of kinds that only the old module has need its role until
/// they are deleted. `status.childKinds` of the Reconciler names them.
///
/// Patches and evictions need more than the role. The Reconciler must grant them. For evictions, the CRD must have
/// `status.pintle.evicting`. CRDs that `pintle build` generates have it.
///
/// The roles name resources by their plural. With a Module, the cluster is asked for it. For files, it is taken from `crd.yaml` beside
/// the file or guessed from the kind. If it is wrong, set --plural.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Let the operator do what a guest needs
  pintle rbac webserver.wasm | kubectl apply -f -

  # The same of a Module in the cluster
  pintle rbac webserver-0.1.0 | kubectl apply -f -

  # Before a swap, and until it is done
  pintle rbac webserver-0.2.0 webserver-0.1.0 \\
    | kubectl apply -f -

  # Let the team blog edit the guest's kind in its namespace
  pintle rbac webserver.wasm --users | kubectl apply -f -
  kubectl create rolebinding blog-edit -n blog \\
    --clusterrole edit --group blog

  # And let it use `pintle inspect` there
  kubectl create clusterrolebinding blog-reads-pintle \\
    --clusterrole pintle-reader --group blog
  kubectl create rolebinding blog-reads-modules \\
    -n pintle-system --role pintle-module-reader \\
    --group blog

  # Let the gateway serve Views, and people use them.
  # Apply the APIService when the Views are Ready
  pintle rbac farm.wasm -f views.yaml | kubectl apply -f -

  # The same of a View in the cluster
  kubectl get view llamas -o yaml \\
    | pintle rbac farm-0.1.0 -f - | kubectl apply -f -

  # Set the plural of a kind
  pintle rbac shop.wasm --plural Cactus=cacti")]
pub(super) struct Rbac {
    /// The file that `pintle build` wrote, or the name of a Module. Can be repeated
    #[arg(value_name = "FILE|MODULE", required = true, add = completion::modules_and_files())]
    modules: Vec<String>,

    /// File or directory with Views of the module. Use - for the standard input. Can be repeated
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1)]
    filenames: Vec<PathBuf>,

    /// Plural of a kind. Can be repeated
    #[arg(long = "plural", value_name = "KIND=PLURAL", value_parser = pair)]
    plurals: Vec<(String, String)>,

    /// Add what is needed if the Reconciler grants the deletion of Pods, which ignores PodDisruptionBudgets
    #[arg(long)]
    pod_deletions: bool,

    /// Print the roles for those who use the guest's kind, instead of the operator's
    #[arg(long, conflicts_with_all = ["filenames", "pod_deletions"])]
    users: bool,

    /// Output format. One of yaml or json
    #[arg(short, long, value_name = "yaml|json", default_value = "yaml", hide_possible_values = true)]
    output: Data,

    #[command(flatten)]
    connect: Connect,
}

/// Where APIServices lead to.
const GATEWAY: rights::Service<'_> =
    rights::Service { namespace: api::NAMESPACE, name: api::GATEWAY_SERVICE, port: 443 };

/// The label that the operator's role gathers.
const LABEL_AGGREGATE: &str = "pintle.dev/aggregate-to-host";

/// The label of the ClusterRoles of users.
const LABEL_USERS: &str = "pintle.dev/users";

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((kind, plural)) if !kind.is_empty() && !plural.is_empty() => Ok((kind.into(), plural.into())),
        _ => Err("write it as Cactus=cacti".into()),
    }
}

/// Whose rights are printed.
enum Subject {
    /// A guest's that reconciles.
    Guest(Manifest),
    /// Views'. The plurals of their backing kinds are still to be found.
    Views(Vec<Exposed>),
}

impl Rbac {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let (files, names): (Vec<&String>, Vec<&String>) =
            self.modules.iter().partition(|module| module::is_file(module));
        let mut modules = files.iter().map(|file| Declared::in_file(file)).collect::<Result<Vec<_>, _>>()?;
        if names.is_empty() {
            let mut known = Plurals::new();
            for file in files {
                known.extend(declared::beside(file)?);
            }
            return self.print(self.subject(&modules)?, &known);
        }
        live::block_on(async {
            let client = live::client(&self.connect).await?;
            for name in names {
                modules.push(Declared::of_module(&client, name).await?);
            }
            let subject = self.subject(&modules)?;
            let kinds: BTreeSet<Kind> = match &subject {
                Subject::Guest(manifest) => reconciler::rights(manifest, false).into_keys().collect(),
                Subject::Views(exposed) => {
                    let served = exposed.iter().flat_map(|exposed| &exposed.served);
                    served.map(|served| served.backing.kind()).collect()
                }
            };
            let known = declared::served(&Cluster::new(client), kinds).await?;
            self.print(subject, &known)
        })
    }

    fn subject(&self, modules: &[Declared]) -> Result<Subject, Problem> {
        if !self.filenames.is_empty() {
            return Ok(Subject::Views(views::in_files(modules, &self.filenames)?));
        }
        if modules.iter().all(|module| module.guest.is_none()) {
            eprintln!(
                "note: the rights are for Views that have the names of the views, every verb and access ViewAndBacking; for other ones, \
                 name their files with -f"
            );
            return Ok(Subject::Views(views::all(modules)?));
        }
        if modules.iter().any(|module| module.views.is_some()) {
            eprintln!(
                "note: the role is for what the module reconciles; it also serves views: name the files of their Views with -f"
            );
        }
        Ok(Subject::Guest(declared::union(modules)?))
    }

    fn print(&self, subject: Subject, known: &Plurals) -> Result<CommandStatus, Problem> {
        let plural = |kind: &Kind| {
            // What the command line says goes before everything else.
            let named = self.plurals.iter().find(|(name, _)| *name == kind.kind).map(|(_, plural)| plural);
            let known = named.or_else(|| known.get(&(kind.group().to_owned(), kind.kind.clone())));
            known.cloned().unwrap_or_else(|| plural::plural(&kind.kind))
        };
        let objects = match subject {
            Subject::Guest(manifest) if self.users => for_users(&manifest, plural),
            Subject::Guest(manifest) => vec![role(&manifest, plural, self.pod_deletions)],
            Subject::Views(_) if self.pod_deletions => {
                let message = "--pod-deletions is for a guest that reconciles, and this is about views";
                return Err(Problem::new(message));
            }
            Subject::Views(_) if self.users => {
                let message =
                    "--users is for a guest that reconciles; the roles for Views are printed without it";
                return Err(Problem::new(message));
            }
            Subject::Views(mut exposed) => {
                for served in exposed.iter_mut().flat_map(|exposed| &mut exposed.served) {
                    served.backing.plural = plural(&served.backing.kind());
                }
                rights::objects(&exposed, GATEWAY)
            }
        };
        output::print(&output::objects(&objects, self.output)?)?;
        Ok(CommandStatus::Fine)
    }
}

/// The plurals of kinds, by group and kind, as far as a CRD or the API server has them.
type Plurals = BTreeMap<(String, String), String>;

/// The role of a guest. Its Reconciler may grant deletions of Pods, which the manifest does not tell.
fn role(manifest: &Manifest, plural: impl Fn(&Kind) -> String, pod_deletions: bool) -> Value {
    let root = &manifest.reconciles;
    let resource = plural(root);
    let rule = |group: &str, resources: &[String], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let mut rights = reconciler::rights(manifest, pod_deletions);
    let of_roots = rights.remove(root).unwrap_or_default();
    let mut rules = vec![
        rule(root.group(), std::slice::from_ref(&resource), &of_roots),
        rule(root.group(), &[format!("{resource}/status")], &["get", "patch"]),
        // Where the API server wants it of whoever makes an object the owner of others and blocks its deletion.
        rule(root.group(), &[format!("{resource}/finalizers")], &["update"]),
    ];
    let mut others: BTreeMap<(String, Vec<&str>), Vec<String>> = BTreeMap::new();
    for (kind, verbs) in rights {
        let resources = others.entry((kind.group().to_owned(), verbs)).or_default();
        let resource = plural(&kind);
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    rules.extend(others.iter().map(|((group, verbs), resources)| rule(group, resources, verbs)));
    if manifest.evictions {
        rules.push(rule("", &["pods/eviction".to_owned()], &["create"]));
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("pintle-guest-{}", manifest.name), "labels": {LABEL_AGGREGATE: "true"}},
        "rules": rules,
    })
}

const READ: [&str; 3] = ["get", "list", "watch"];

/// The roles of those who use a guest's kind. They see the children too, except of kinds that nobody lists: Secrets.
fn for_users(manifest: &Manifest, plural: impl Fn(&Kind) -> String) -> Vec<Value> {
    let mut seen = BTreeMap::from([("events.k8s.io".to_owned(), BTreeSet::from(["events".to_owned()]))]);
    let children = manifest.children.iter().map(pintle_wit::ChildKind::kind);
    for kind in children.filter(reconciler::is_watchable).chain([manifest.reconciles.clone()]) {
        seen.entry(kind.group().to_owned()).or_default().insert(plural(&kind));
    }
    let role = |kind: &str, metadata: Value, rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules});
    let aggregated = |to: &str, rules: Value| {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{to}");
        let name = format!("pintle-guest-{}-{to}", manifest.name);
        role("ClusterRole", json!({"name": name, "labels": {LABEL_USERS: "true", label: "true"}}), rules)
    };
    let seen = seen
        .iter()
        .map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": READ}));
    let root = &manifest.reconciles;
    let edited = json!([{"apiGroups": [root.group()], "resources": [plural(root)],
        "verbs": ["create", "update", "patch", "delete", "deletecollection"]}]);
    let own = json!([{"apiGroups": ["pintle.dev"], "resources": ["modules", "reconcilers", "views"], "verbs": READ}]);
    let bytes = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    vec![
        aggregated("view", seen.collect()),
        aggregated("edit", edited),
        role("ClusterRole", json!({"name": "pintle-reader", "labels": {LABEL_USERS: "true"}}), own),
        role("Role", json!({"name": "pintle-module-reader", "namespace": api::NAMESPACE}), bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_wit::ChildKind;

    #[test]
    fn what_a_guest_sees_patches_and_evicts_gets_no_more_than_that() {
        let need = |api_version: &str, kind: &str| pintle_wit::NeedKind {
            api_version: api_version.into(),
            kind: kind.into(),
            indexes: vec![],
        };
        let manifest = Manifest {
            needs: vec![
                need("v1", "Secret"),
                need("v1", "ConfigMap"),
                need("v1", "Pod"),
                need("example.com/v1", "Web"),
            ],
            patches: vec![pintle_wit::PatchKind {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                fields: vec![],
            }],
            evictions: true,
            ..Manifest::new("web", "0.1.0", Kind::new("example.com/v1", "Web"))
        };
        let rules = |pod_deletions| {
            let role = role(&manifest, |kind| plural::plural(&kind.kind), pod_deletions);
            let rules = role["rules"].as_array().unwrap().iter().skip(3);
            rules.map(|rule| format!("{} {}", rule["resources"], rule["verbs"])).collect::<Vec<_>>()
        };
        let read = r#"["get","list","watch"]"#;
        let deployments = r#"["deployments"] ["get","list","watch","patch"]"#.to_owned();
        let eviction = r#"["pods/eviction"] ["create"]"#.to_owned();
        assert_eq!(
            rules(false),
            [
                r#"["secrets"] ["get"]"#.to_owned(),
                format!(r#"["configmaps","pods"] {read}"#),
                deployments.clone(),
                eviction.clone()
            ]
        );
        assert!(rules(true).contains(&r#"["pods"] ["get","list","watch","delete"]"#.to_owned()));
    }

    #[test]
    fn users_get_the_kind_by_the_roles_of_kubernetes_and_no_secrets() {
        let children = vec![
            ChildKind::new("v1", "Secret"),
            ChildKind::new("v1", "ConfigMap"),
            ChildKind::new("example.com/v2", "Spine"),
        ];
        let manifest =
            Manifest { children, ..Manifest::new("web", "0.1.0", Kind::new("example.com/v1", "Cactus")) };
        let roles = for_users(&manifest, |kind| plural::plural(&kind.kind));
        let told = roles.iter().map(|role| {
            let rules = role["rules"].as_array().unwrap().iter();
            let rules: Vec<_> =
                rules.map(|rule| format!("{} {}", rule["resources"], rule["verbs"])).collect();
            let metadata = &role["metadata"];
            format!(
                "{} {} {}: {}",
                metadata["name"],
                metadata["namespace"],
                metadata["labels"],
                rules.join("; ")
            )
        });
        let read = r#"["get","list","watch"]"#;
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                format!(
                    r#""pintle-guest-web-view" null {{"pintle.dev/users":"true","rbac.authorization.k8s.io/aggregate-to-view":"true"}}: ["configmaps"] {read}; ["events"] {read}; ["cactuses","spines"] {read}"#
                ),
                r#""pintle-guest-web-edit" null {"pintle.dev/users":"true","rbac.authorization.k8s.io/aggregate-to-edit":"true"}: ["cactuses"] ["create","update","patch","delete","deletecollection"]"#.to_owned(),
                format!(r#""pintle-reader" null {{"pintle.dev/users":"true"}}: ["modules","reconcilers","views"] {read}"#),
                r#""pintle-module-reader" "pintle-system" null: ["configmaps"] ["get"]"#.to_owned(),
            ]
        );
    }

    #[test]
    fn secrets_are_neither_listed_nor_watched() {
        let children = vec![
            ChildKind::new("v1", "Secret"),
            ChildKind::new("v1", "ConfigMap"),
            ChildKind::new("v1", "Service"),
            ChildKind::new("networking.k8s.io/v1", "Ingress"),
        ];
        let manifest =
            Manifest { children, ..Manifest::new("web", "0.1.0", Kind::new("example.com/v1", "Cactus")) };
        let role = role(&manifest, |kind| plural::plural(&kind.kind), false);
        let of = |resource: &str| {
            let rules = role["rules"].as_array().unwrap();
            let rule = rules
                .iter()
                .find(|rule| rule["resources"].as_array().unwrap().contains(&resource.into()))
                .unwrap();
            (rule["apiGroups"][0].as_str().unwrap().to_owned(), rule["verbs"].as_array().unwrap().clone())
        };
        assert_eq!(of("secrets").1, ["get", "create", "patch", "delete"]);
        assert_eq!(of("services"), of("configmaps"));
        assert_eq!(of("ingresses").0, "networking.k8s.io");
        assert_eq!(of("cactuses").1, ["get", "list", "watch"], "no more than is needed");
        assert_eq!(of("cactuses/status"), ("example.com".into(), vec!["get".into(), "patch".into()]));
    }
}
