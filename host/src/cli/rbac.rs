//! The command `pintle rbac`: it prints the ClusterRole that a guest's Reconciler needs.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use pintle_core::reconciler;
use pintle_offline as offline;
use pintle_wit::{Kind, Manifest};
use serde_json::{Value, json};

use super::{
    module,
    output::{self, Data},
    plural,
    problem::{CommandStatus, Problem},
};

/// Print the ClusterRole that a guest needs
///
/// The role lets the operator read the custom resources, write their status, and manage the kinds of children that the guest
/// declares. It is aggregated into the role of the operator by its label. It never allows to list or watch Secrets.
///
/// Patches and evictions need more than the role. The Reconciler must grant them. The CRD must have `status.pintle.patched` for
/// patches that are removed later, and `status.pintle.evicting` for evictions. CRDs that `pintle build` generates have both.
///
/// The role names resources by their plural. The plural is guessed from the kind. If the guess is wrong, set --plural.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Let the operator do what the guest needs
  pintle rbac webserver.wasm | kubectl apply -f -

  # Set the plural of a kind
  pintle rbac shop.wasm --plural Cactus=cacti")]
pub(super) struct Rbac {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// Plural of a kind. Can be repeated
    #[arg(long = "plural", value_name = "KIND=PLURAL", value_parser = pair)]
    plurals: Vec<(String, String)>,

    /// Add what is needed if the Reconciler grants children in other namespaces. The operator then sets a finalizer on the custom resources
    #[arg(long)]
    elsewhere: bool,

    /// Add what is needed if the Reconciler grants the deletion of Pods, which ignores PodDisruptionBudgets
    #[arg(long)]
    pod_deletions: bool,

    /// Output format. One of yaml or json
    #[arg(short, long, value_name = "yaml|json", default_value = "yaml", hide_possible_values = true)]
    output: Data,
}

/// The label that the operator's role gathers.
const LABEL_AGGREGATE: &str = "pintle.dev/aggregate-to-host";

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((kind, plural)) if !kind.is_empty() && !plural.is_empty() => Ok((kind.into(), plural.into())),
        _ => Err("write it as Cactus=cacti".into()),
    }
}

impl Rbac {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let engine = offline::engine()?;
        let module = module::load(&engine, &self.module)?;
        if self.pod_deletions && !module.manifest().evictions {
            let message = "--pod-deletions is for a guest that evicts Pods, and this one's manifest declares no evictions";
            return Err(Problem::new(message));
        }
        let plurals: BTreeMap<String, String> = self.plurals.into_iter().collect();
        let asked = Asked { elsewhere: self.elsewhere, pod_deletions: self.pod_deletions };
        output::print(&output::text(&role(module.manifest(), &plurals, asked), self.output)?)?;
        Ok(CommandStatus::Fine)
    }
}

/// What the Reconciler grants that its manifest does not tell.
#[derive(Clone, Copy, Default)]
struct Asked {
    elsewhere: bool,
    pod_deletions: bool,
}

fn role(manifest: &Manifest, plurals: &BTreeMap<String, String>, asked: Asked) -> Value {
    let plural = |kind: &Kind| plurals.get(&kind.kind).cloned().unwrap_or_else(|| plural::plural(&kind.kind));
    let root = &manifest.reconciles;
    let resource = plural(root);
    let rule = |group: &str, resources: &[String], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    // A finalizer is a field of the root's metadata.
    let of_roots: &[&str] = match manifest.finalizer || asked.elsewhere || !manifest.patches.is_empty() {
        true => &["get", "list", "watch", "patch"],
        false => &["get", "list", "watch"],
    };
    let mut rules = vec![
        rule(root.group(), std::slice::from_ref(&resource), of_roots),
        rule(root.group(), &[format!("{resource}/status")], &["get", "patch"]),
        // Where the API server wants it of whoever makes an object the owner of others and blocks its deletion.
        rule(root.group(), &[format!("{resource}/finalizers")], &["update"]),
    ];
    let mut watched: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unwatched = watched.clone();
    for child in &manifest.children {
        let kind = child.kind();
        let groups = if reconciler::is_watchable(&kind) { &mut watched } else { &mut unwatched };
        let resources = groups.entry(kind.group().to_owned()).or_default();
        let resource = plural(&kind);
        if !resources.contains(&resource) {
            resources.push(resource);
        }
    }
    let is_child = |kind: &Kind| manifest.children.iter().any(|child| child.kind() == *kind);
    let seen = manifest.needs.iter().map(|need| (Kind::new(&need.api_version, &need.kind), false));
    let patched = manifest.patches.iter().map(|patch| (Kind::new(&patch.api_version, &patch.kind), true));
    let evicted = manifest.evictions.then(|| (Kind::new("v1", "Pod"), false));
    let mut others: BTreeMap<Kind, bool> = BTreeMap::new();
    for (kind, patches) in
        seen.chain(patched).chain(evicted).filter(|(kind, _)| !is_child(kind) && kind != root)
    {
        *others.entry(kind).or_default() |= patches;
    }
    let mut of_verbs: BTreeMap<(String, Vec<&str>), Vec<String>> = BTreeMap::new();
    for (kind, patches) in &others {
        let mut verbs = match reconciler::is_watchable(kind) {
            true => vec!["get", "list", "watch"],
            false => vec!["get"],
        };
        verbs.extend(patches.then_some("patch"));
        if asked.pod_deletions && kind.group().is_empty() && kind.kind == "Pod" {
            verbs.push("delete");
        }
        of_verbs.entry((kind.group().to_owned(), verbs)).or_default().push(plural(kind));
    }
    for ((group, verbs), resources) in &of_verbs {
        rules.push(rule(group, resources, verbs));
    }
    if manifest.evictions {
        rules.push(rule("", &["pods/eviction".to_owned()], &["create"]));
    }
    // An apply creates with `patch`; the API server asks for `create` as well.
    for (group, resources) in &watched {
        rules.push(rule(group, resources, &["get", "list", "watch", "create", "patch", "delete"]));
    }
    for (group, resources) in &unwatched {
        rules.push(rule(group, resources, &["get", "create", "patch", "delete"]));
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": format!("pintle-guest-{}", manifest.name), "labels": {LABEL_AGGREGATE: "true"}},
        "rules": rules,
    })
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
        let rules = |asked| {
            let role = role(&manifest, &BTreeMap::new(), asked);
            let rules = role["rules"].as_array().unwrap().iter().skip(3);
            rules.map(|rule| format!("{} {}", rule["resources"], rule["verbs"])).collect::<Vec<_>>()
        };
        let read = r#"["get","list","watch"]"#;
        let deployments = r#"["deployments"] ["get","list","watch","patch"]"#.to_owned();
        let eviction = r#"["pods/eviction"] ["create"]"#.to_owned();
        assert_eq!(
            rules(Asked::default()),
            [
                r#"["secrets"] ["get"]"#.to_owned(),
                format!(r#"["configmaps","pods"] {read}"#),
                deployments.clone(),
                eviction.clone()
            ]
        );
        assert!(
            rules(Asked { pod_deletions: true, ..Asked::default() })
                .contains(&r#"["pods"] ["get","list","watch","delete"]"#.to_owned())
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
        let role = role(&manifest, &BTreeMap::from([("Cactus".into(), "cacti".into())]), Asked::default());
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
        assert_eq!(of("cacti").1, ["get", "list", "watch"], "no more than is needed");
        assert_eq!(of("cacti/status"), ("example.com".into(), vec!["get".into(), "patch".into()]));
    }
}
