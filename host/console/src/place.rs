//! [`Place`]: what a request is about, of parts that are checked to be names. Paths of the API server are built from it alone.

use pintle_wit::syntax;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;

/// A resource of the API server, by the names in its paths.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// The group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub plural: String,
}

/// A resource, or those of its objects in a namespace, or one of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The resource.
    pub resource: Resource,
    /// The namespace; without one, all of them, or none where objects are in no namespace.
    pub namespace: Option<String>,
    /// The object.
    pub name: Option<String>,
}

/// The events of a cluster.
pub fn events() -> Resource {
    Resource::new("events.k8s.io", "v1", "events")
}

/// Whether kinds of this group are served by these routes: those of CRDs, and of Pintle itself.
pub fn is_custom(group: &str) -> bool {
    syntax::is_subdomain(group) && group.contains('.') && group != "k8s.io" && !group.ends_with(".k8s.io")
}

impl Resource {
    /// A resource by names that are known to be sound.
    pub(crate) fn new(group: &str, version: &str, plural: &str) -> Self {
        Self { group: group.into(), version: version.into(), plural: plural.into() }
    }

    /// A custom resource by names that come from outside.
    ///
    /// # Errors
    /// 404 for every other one: these routes are for custom resources.
    pub fn custom(names: [&str; 3]) -> Result<Self, Problem> {
        let [group, ..] = names;
        if !is_custom(group) {
            return Err(Problem::not_found(
                "no custom resource has these names: GROUP/VERSION/PLURAL, as in deployments.example.com/v1/darkrooms",
            ));
        }
        Self::any(names)
    }

    /// A resource of any kind by names that come from outside.
    ///
    /// # Errors
    /// 404 for what can be no name.
    pub fn any([group, version, plural]: [&str; 3]) -> Result<Self, Problem> {
        let is_group = group.is_empty() || syntax::is_subdomain(group);
        if !is_group || !syntax::is_rfc_1035_label(version) || !syntax::is_rfc_1035_label(plural) {
            return Err(Problem::not_found("no resource has these names: GROUP/VERSION/PLURAL"));
        }
        Ok(Self::new(group, version, plural))
    }

    /// The group and version as objects name them.
    pub fn api_version(&self) -> String {
        let Self { group, version, .. } = self;
        if group.is_empty() { version.clone() } else { format!("{group}/{version}") }
    }

    /// All of its objects.
    pub fn everywhere(&self) -> Place {
        Place { resource: self.clone(), namespace: None, name: None }
    }
}

impl Place {
    /// The objects in a namespace whose name comes from outside; everywhere without one.
    ///
    /// # Errors
    /// 400 when it can be no namespace.
    pub fn within(resource: &Resource, namespace: Option<&str>) -> Result<Self, Problem> {
        if namespace.is_some_and(|name| !syntax::is_label(name)) {
            let message = "a namespace's name has lower-case letters, digits and '-', at most 63";
            return Err(Problem::bad_request(message));
        }
        Ok(Self { resource: resource.clone(), namespace: namespace.map(Into::into), name: None })
    }

    /// One object of these, by a name that comes from outside.
    ///
    /// # Errors
    /// 400 when it can be no name.
    pub fn named(self, name: &str) -> Result<Self, Problem> {
        if !syntax::is_subdomain(name) {
            let message = "a name has lower-case letters, digits, '-' and '.', at most 253";
            return Err(Problem::bad_request(message));
        }
        Ok(Self { name: Some(name.into()), ..self })
    }

    /// Its path.
    pub fn path(&self) -> String {
        let Resource { group, version, plural } = &self.resource;
        let mut path =
            if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if let Some(namespace) = &self.namespace {
            path.push_str("/namespaces/");
            path.push_str(namespace);
        }
        path.push('/');
        path.push_str(plural);
        if let Some(name) = &self.name {
            path.push('/');
            path.push_str(name);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_custom_resources_are_served() {
        for names in [["deployments.example.com", "v1", "darkrooms"], ["pintle.dev", "v1alpha1", "modules"]] {
            assert!(Resource::custom(names).is_ok(), "{names:?}");
        }
        for group in
            ["", "apps", "rbac.authorization.k8s.io", "k8s.io", "a b.c", "a/../b.c", "A.b", "a.b%2fc"]
        {
            assert_eq!(Resource::custom([group, "v1", "x"]).unwrap_err().status, 404, "{group}");
        }
        for rest in [["", "x"], ["v1/..", "x"], ["v1", ".."], ["v1", "x?watch=1"], ["v1", "x/status"]] {
            let [version, plural] = rest;
            assert_eq!(Resource::custom(["a.b", version, plural]).unwrap_err().status, 404, "{rest:?}");
        }
    }

    #[test]
    fn a_path_is_built_of_names_alone() {
        let rooms = Resource::custom(["example.com", "v1", "rooms"]).unwrap();
        let path = |namespace: Option<&str>, name: &str| {
            Place::within(&rooms, namespace).and_then(|place| place.named(name)).map(|place| place.path())
        };
        assert_eq!(path(Some("a"), "b.c").unwrap(), "/apis/example.com/v1/namespaces/a/rooms/b.c");
        assert_eq!(path(None, "b").unwrap(), "/apis/example.com/v1/rooms/b");
        assert_eq!(rooms.everywhere().path(), "/apis/example.com/v1/rooms");
        assert_eq!(Resource::new("", "v1", "namespaces").everywhere().path(), "/api/v1/namespaces");
        for wrong in ["..", ".", "", "a/b", "a%2fb", "A", "a?b", "a b", "a\u{202e}b", &"a".repeat(254)] {
            assert_eq!(path(Some("a"), wrong).unwrap_err().status, 400, "{wrong}");
            assert_eq!(path(Some(wrong), "a").unwrap_err().status, 400, "{wrong}");
        }
    }
}
