use super::*;
use crate::view::Backing;

const GATEWAY: Service<'_> = Service { namespace: "pintle-system", name: "pintle-gateway", port: 443 };

fn served(version: &str, verbs: &[Verb]) -> Served {
    Served {
        api_version: format!("farm.example.com/{version}"),
        plural: "llamas".into(),
        verbs: verbs.to_vec(),
        backing: Backing {
            api_version: "store.example.com/v1".into(),
            kind: "Record".into(),
            plural: "records".into(),
            namespaced: true,
        },
        ..Served::default()
    }
}

fn exposed(access: Access, served: Vec<Served>) -> Exposed {
    Exposed { view: "a".into(), access, served }
}

/// Each right as `group/resource verb`, with the names of objects behind it.
fn rights(rules: &[Rule]) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    for rule in rules {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let names = rule.resource_names.join(" ");
                rights.insert(format!("{}/{resource} {verb} {names}", rule.api_groups[0]).trim_end().into());
            }
        }
    }
    rights
}

fn on_records(rules: &[Rule]) -> Vec<String> {
    let rights = rights(rules).into_iter();
    rights.filter_map(|right| Some(right.strip_prefix("store.example.com/records ")?.to_owned())).collect()
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
}

#[test]
fn a_private_kind_is_asked_by_the_gateway_alone_and_never_replaced() {
    let rules = of_gateway(Access::View, &[served("v1", &Verb::ALL)]);
    assert_eq!(
        on_records(&rules),
        ["create", "delete", "deletecollection", "get", "list", "patch", "watch"],
        "an update is a patch of what was read"
    );
    assert!(!rights(&rules).iter().any(|right| right.contains("impersonate")), "{rules:?}");
    assert_eq!(on_records(&of_gateway(Access::View, &[served("v1", &[Verb::Update])])), ["get", "patch"]);
}

#[test]
fn callers_are_impersonated_for_the_verbs_on_the_backing_kind_and_nothing_else() {
    let rules = of_gateway(Access::ViewAndBacking, &[served("v1", &[Verb::Get, Verb::Create])]);
    let wanted = [
        "create",
        "get",
        "impersonate-on:serviceaccount:create",
        "impersonate-on:serviceaccount:get",
        "impersonate-on:user-info:create",
        "impersonate-on:user-info:get",
    ];
    assert_eq!(on_records(&rules), wanted);
    let of_identity = "authentication.k8s.io/";
    let identity: Vec<String> =
        rights(&rules).into_iter().filter(|right| right.starts_with(of_identity)).collect();
    assert_eq!(identity.len(), USER_INFO.len() + 1);
    assert!(!rights(&rules).iter().any(|right| right.ends_with(" impersonate")), "{rules:?}");
}

#[test]
fn a_delete_reads_first_where_a_selector_says_what_the_view_has() {
    let mut served = served("v1", &[Verb::Delete]);
    assert_eq!(on_records(&of_gateway(Access::View, std::slice::from_ref(&served))), ["delete"]);
    served.selector.insert("app".into(), "a".into());
    assert_eq!(on_records(&of_gateway(Access::View, std::slice::from_ref(&served))), ["delete", "get"]);
    served.verbs = vec![Verb::DeleteCollection];
    assert_eq!(on_records(&of_gateway(Access::View, &[served])), ["delete", "get", "list"]);
}

#[test]
fn viewers_read_and_editors_do_what_the_view_can_unless_it_is_only_read() {
    let writable = [served("v1", &[Verb::Get, Verb::Patch])];
    let of = |rules: &[Rule]| rights(rules).into_iter().collect::<Vec<_>>();
    assert_eq!(of(&of_viewers(&writable)), ["farm.example.com/llamas get"]);
    assert_eq!(of(&of_editors(&writable)), ["farm.example.com/llamas get", "farm.example.com/llamas patch"]);
    assert_eq!(of_editors(&[served("v1", &[Verb::Get, Verb::Watch])]), []);
    assert_eq!(of_viewers(&[served("v1", &[Verb::Create])]), []);
}

#[test]
fn views_of_one_version_share_its_apiservice_and_each_has_roles_of_its_own() {
    let read = [Verb::Get, Verb::List, Verb::Watch];
    let pods = Exposed { view: "pods".into(), ..exposed(Access::View, vec![served("v1", &read)]) };
    let both = objects(&[exposed(Access::View, vec![served("v1", &Verb::ALL)]), pods], GATEWAY);
    assert_eq!(
        names(&both),
        [
            "pintle-gateway-view-a",
            "pintle-viewer-a",
            "pintle-editor-a",
            "pintle-gateway-view-pods",
            "pintle-viewer-pods",
            "v1.farm.example.com",
        ]
    );
    assert_eq!(both[0]["metadata"]["labels"], json!({"pintle.dev/aggregate-to-gateway": "true"}));
    assert_eq!(both[1]["metadata"]["labels"], json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"}));
    assert_eq!(
        both[5]["spec"],
        json!({
            "group": "farm.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"namespace": "pintle-system", "name": "pintle-gateway", "port": 443},
        })
    );
}

#[test]
fn two_versions_of_a_resource_have_an_apiservice_each_and_the_gateway_may_patch_no_other() {
    let newer = Exposed { view: "b".into(), ..exposed(Access::View, vec![served("v2", &[Verb::Get])]) };
    let both = objects(&[exposed(Access::View, vec![served("v1", &[Verb::Get])]), newer], GATEWAY);
    assert_eq!(names(&both)[4..], ["v1.farm.example.com", "v2.farm.example.com"]);
    assert_eq!(
        both[2]["rules"][0],
        json!({"apiGroups": ["apiregistration.k8s.io"], "resources": ["apiservices"],
            "resourceNames": ["v2.farm.example.com"], "verbs": ["get", "patch"]})
    );
}

#[test]
fn while_a_module_comes_into_force_the_rights_are_for_both() {
    let mut before = served("v1", &[Verb::Get]);
    before.backing.plural = "older".into();
    let both = objects(&[exposed(Access::View, vec![served("v2", &[Verb::List]), before])], GATEWAY);
    assert_eq!(
        names(&both),
        ["pintle-gateway-view-a", "pintle-viewer-a", "v1.farm.example.com", "v2.farm.example.com"]
    );
    let rules: Vec<(String, String)> = both[0]["rules"].as_array().unwrap()[1..]
        .iter()
        .map(|rule| (rule["resources"].to_string(), rule["verbs"].to_string()))
        .collect();
    let rule = |resource: &str, verb: &str| (format!("[\"{resource}\"]"), format!("[\"{verb}\"]"));
    assert_eq!(rules, [rule("older", "get"), rule("records", "list")]);
    assert_eq!(both[1]["rules"][0]["verbs"], json!(["get", "list"]));
}

#[test]
fn some_kinds_are_never_shown_and_some_never_written() {
    let refused = |api_version: &str, kind: &str, is_writable| {
        may_be_shown(&Kind::new(api_version, kind), is_writable).err().map(|failure| failure.reason)
    };
    let forbidden = Some(reasons::BACKING_FORBIDDEN.to_owned());
    assert_eq!(refused("v1", "Secret", false), forbidden);
    assert_eq!(refused("rbac.authorization.k8s.io/v1", "Role", false), forbidden);
    for (api_version, kind) in
        [("v1", "Pod"), ("v1", "Service"), ("apps/v1", "Deployment"), ("pintle.dev/v1alpha1", "Module")]
    {
        assert_eq!(refused(api_version, kind, false), None, "{kind}");
        assert_eq!(refused(api_version, kind, true), forbidden, "{kind}");
    }
    assert_eq!(refused("store.example.com/v1", "Record", true), None);
}
