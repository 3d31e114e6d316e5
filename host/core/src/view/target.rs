//! [`Target`]: what the path of a request names.

use std::borrow::Cow;

use super::Status;
use crate::object;

/// What the path of a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/apis/GROUP/VERSION`
    Version(GroupVersion),
    /// The objects of a resource, or one of them.
    Objects(Objects),
    /// Something else of a group: a subresource, or the path of a watch as it was once written.
    Other(Other),
    /// `/openapi/v3`
    OpenApi,
    /// `/openapi/v3/apis/GROUP/VERSION`
    OpenApiOf(GroupVersion),
    /// `/version`
    Build,
    /// Nothing of ours.
    Nothing,
}

/// A group and one of its versions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupVersion {
    /// The group.
    pub group: String,
    /// The version.
    pub version: String,
}

/// The objects of a resource, or one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Group and version.
    pub group_version: GroupVersion,
    /// The resource.
    pub resource: String,
    /// The namespace; none for all of them, and for a resource of cluster scope.
    pub namespace: Option<String>,
    /// The object; none for all of them.
    pub name: Option<String>,
}

/// What is neither a resource nor an object of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Group and version.
    pub group_version: GroupVersion,
    /// The resource that it is of.
    pub resource: String,
    /// The object that it is of, if it is of one.
    pub name: String,
}

impl Target {
    /// Reads the path of a URI. Its segments are decoded here, once: what follows works with names.
    ///
    /// # Errors
    /// 400 for a segment that, decoded, can be no name: it would become another path at the API server.
    pub fn read(path: &str) -> Result<Self, Status> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let mut segments = Vec::new();
        for segment in path.split('/').skip(1) {
            segments.push(decoded(segment)?);
        }
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        Ok(match segments.as_slice() {
            ["apis"] => Self::Groups,
            ["apis", group] => Self::Group(named(group)?),
            ["apis", group, version] => Self::Version(GroupVersion::read(group, version)?),
            ["apis", group, version, rest @ ..] => Self::of_group(GroupVersion::read(group, version)?, rest)?,
            ["openapi", "v3"] => Self::OpenApi,
            ["openapi", "v3", "apis", group, version] => Self::OpenApiOf(GroupVersion::read(group, version)?),
            ["version"] => Self::Build,
            _ => Self::Nothing,
        })
    }

    fn of_group(group_version: GroupVersion, rest: &[&str]) -> Result<Self, Status> {
        let (is_watch, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
                if !object::is_namespace(namespace) {
                    return Err(Status::bad_request(format!("{namespace:?} is no name of a namespace")));
                }
                (Some((*namespace).to_owned()), rest)
            }
            rest => (None, rest),
        };
        Ok(match rest {
            [resource] if !is_watch => {
                Self::Objects(Objects { group_version, resource: named(resource)?, namespace, name: None })
            }
            [resource, name] if !is_watch => {
                let name = Some(name_of_object(name)?);
                Self::Objects(Objects { group_version, resource: named(resource)?, namespace, name })
            }
            rest => {
                let part = |at: usize| rest.get(at).map_or_else(String::new, |part| (*part).to_owned());
                Self::Other(Other { group_version, resource: part(0), name: part(1) })
            }
        })
    }
}

impl GroupVersion {
    fn read(group: &str, version: &str) -> Result<Self, Status> {
        Ok(Self { group: named(group)?, version: named(version)? })
    }

    /// Both as an object has them: `farm.example.com/v1alpha`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }
}

fn decoded(segment: &str) -> Result<Cow<'_, str>, Status> {
    percent_encoding::percent_decode_str(segment)
        .decode_utf8()
        .map_err(|_| Status::bad_request(format!("the path has {segment:?}, which is no UTF-8")))
}

/// The name of an object may be anything that leads to no other path: there is none with another name than a DNS subdomain. The words are
/// the API server's.
fn name_of_object(segment: &str) -> Result<String, Status> {
    let wrong = match segment {
        "." | ".." => Some(format!("may not be '{segment}'")),
        segment => segment
            .chars()
            .find(|letter| "/%".contains(*letter))
            .map(|letter| format!("may not contain '{letter}'")),
    };
    match wrong {
        None => Ok(segment.to_owned()),
        Some(wrong) => Err(Status::bad_request(format!("Name parameter invalid: {segment:?}: {wrong}"))),
    }
}

/// Groups, versions and resources are all DNS subdomains.
fn named(segment: &str) -> Result<String, Status> {
    match object::is_name(segment) {
        true => Ok(segment.to_owned()),
        false => Err(Status::bad_request(format!("{segment:?} is no DNS subdomain, as names are"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::names::Names;

    fn objects(namespace: Option<&str>, name: Option<&str>) -> Target {
        Target::Objects(Objects {
            group_version: GroupVersion { group: "farm.example.com".into(), version: "v1alpha".into() },
            resource: "llamas".into(),
            namespace: namespace.map(Into::into),
            name: name.map(Into::into),
        })
    }

    #[test]
    fn a_path_names_objects_everywhere_in_a_namespace_or_one() {
        let read = |rest: &str| Target::read(&format!("/apis/farm.example.com/v1alpha/{rest}")).unwrap();
        assert_eq!(read("llamas"), objects(None, None));
        assert_eq!(read("llamas/dolly"), objects(None, Some("dolly")));
        assert_eq!(read("namespaces/a/llamas"), objects(Some("a"), None));
        assert_eq!(read("namespaces/a/llamas/dolly"), objects(Some("a"), Some("dolly")));
        assert_eq!(read("namespaces/a/llamas/dolly.1%2e2"), objects(Some("a"), Some("dolly.1.2")));
        let other = |rest: &str| match read(rest) {
            Target::Other(other) => (other.resource, other.name),
            other => panic!("{other:?}"),
        };
        for rest in
            ["namespaces/a/llamas/dolly/status", "llamas/dolly/scale/x", "watch/namespaces/a/llamas/dolly"]
        {
            assert_eq!(other(rest), ("llamas".to_owned(), "dolly".to_owned()), "{rest}");
        }
        assert_eq!(other("watch/llamas"), ("llamas".to_owned(), String::new()));
    }

    #[test]
    fn a_path_names_what_describes_a_group() {
        let of = GroupVersion { group: "a.b".into(), version: "v1".into() };
        for (path, target) in [
            ("/apis", Target::Groups),
            ("/apis/", Target::Groups),
            ("/apis/a.b", Target::Group("a.b".into())),
            ("/apis/a.b/v1", Target::Version(of.clone())),
            ("/openapi/v3", Target::OpenApi),
            ("/openapi/v3/apis/a.b/v1", Target::OpenApiOf(of)),
            ("/readyz", Target::Nothing),
            ("/version", Target::Build),
            ("/", Target::Nothing),
            ("/api/v1/pods", Target::Nothing),
        ] {
            assert_eq!(Target::read(path), Ok(target), "{path}");
        }
    }

    #[test]
    fn what_would_become_another_path_is_refused_and_what_is_no_name_is_nobodys() {
        let of = |name: &str| Target::read(&format!("/apis/a.b/v1/namespaces/n/llamas/{name}"));
        for name in ["farm-x%2Flog", "..", "%2e%2e", "%2e", "%ff", "a%25b"] {
            assert_eq!(of(name).map_err(|status| status.code), Err(400), "{name}");
        }
        for name in ["a%3Fwatch=1", "a%00", "A", "a b"] {
            let Ok(Target::Objects(objects)) = of(name) else { panic!("{name}") };
            let shown = objects.name.unwrap();
            assert_eq!(Names::default().backing(&shown), None, "nothing of it gets into a path: {shown:?}");
        }
        assert!(matches!(of(""), Ok(Target::Objects(Objects { name: None, .. }))));
        for name in ["farm-x%2Flog", "a%3Fwatch=1", "..", "a%00", "%ff", "A", "a b", ""] {
            let path = format!("/apis/a.b/v1/namespaces/{name}x%2F/llamas");
            assert_eq!(Target::read(&path).map_err(|status| status.code), Err(400), "{name}");
        }
    }
}
