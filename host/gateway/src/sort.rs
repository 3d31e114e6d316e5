//! [`Sort`]: what sort of request it is, which decides where it waits and sits. It is a function of the request line alone, so that nothing
//! that a client sends later moves a request to where it does not belong.

use http::Method;
use pintle_core::view::{Verb, query::Query, target::Target};

/// What sort of request it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// Discovery, OpenAPI, the version, and whatever leads to no objects.
    Description,
    /// A watch of objects.
    Watch,
    /// Any other request about objects. None: the method means nothing there.
    Request(Option<Verb>),
}

impl Sort {
    /// What sort of request this is. A watch is one of a collection: of an object by its name, or of a document, `?watch` makes none. HEAD is
    /// a read of which nobody wants the body. As on the API server, a create may have a name in its path, and what
    /// needs one is refused later where there is none.
    pub(crate) fn of(method: &Method, target: &Target, query: &Query) -> Self {
        let is_named = match target {
            Target::Objects(objects) => objects.name.is_some(),
            _ => return Self::Description,
        };
        Self::Request(Some(match (method, is_named) {
            (&Method::GET | &Method::HEAD, true) => Verb::Get,
            (&Method::GET, false) if query.is_watch() => return Self::Watch,
            (&Method::GET, false) => Verb::List,
            (&Method::HEAD, false) if !query.is_watch() => Verb::List,
            (&Method::POST, _) => Verb::Create,
            (&Method::PUT, _) => Verb::Update,
            (&Method::PATCH, _) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => return Self::Request(None),
        }))
    }

    /// What is done with objects.
    pub(crate) fn verb(self) -> Option<Verb> {
        match self {
            Self::Description => None,
            Self::Watch => Some(Verb::Watch),
            Self::Request(verb) => verb,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(method: &str, path: &str) -> Sort {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let query = Query::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Sort::of(&method.parse().unwrap(), &Target::read(path).unwrap(), &query)
    }

    #[test]
    fn a_watch_is_counted_as_one_only_where_it_is_one() {
        let request = |verb| Sort::Request(Some(verb));
        for (method, path, expected) in [
            ("GET", "/apis/a.b/v1/llamas", request(Verb::List)),
            ("GET", "/apis/a.b/v1/llamas?watch=1", Sort::Watch),
            ("GET", "/apis/a.b/v1/namespaces/n/llamas?watch=true&fieldSelector=metadata.name=x", Sort::Watch),
            ("GET", "/apis/a.b/v1/llamas?watch=0", request(Verb::List)),
            ("GET", "/apis/a.b/v1/namespaces/n/llamas/x?watch=1", request(Verb::Get)),
            ("POST", "/apis/a.b/v1/namespaces/n/llamas?watch=1", request(Verb::Create)),
            ("PUT", "/apis/a.b/v1/namespaces/n/llamas/x?watch=1", request(Verb::Update)),
            ("PATCH", "/apis/a.b/v1/namespaces/n/llamas/x?watch=1", request(Verb::Patch)),
            ("DELETE", "/apis/a.b/v1/namespaces/n/llamas/x?watch=1", request(Verb::Delete)),
            ("DELETE", "/apis/a.b/v1/namespaces/n/llamas?watch=1", request(Verb::DeleteCollection)),
            ("HEAD", "/apis/a.b/v1/llamas?watch=1", Sort::Request(None)),
            ("HEAD", "/apis/a.b/v1/llamas", request(Verb::List)),
            ("HEAD", "/apis/a.b/v1/namespaces/n/llamas/x", request(Verb::Get)),
            ("POST", "/apis/a.b/v1/namespaces/n/llamas/x", request(Verb::Create)),
            ("PUT", "/apis/a.b/v1/namespaces/n/llamas", request(Verb::Update)),
            ("OPTIONS", "/apis/a.b/v1/namespaces/n/llamas/x", Sort::Request(None)),
            ("GET", "/openapi/v3?watch=1", Sort::Description),
            ("GET", "/openapi/v3/apis/a.b/v1?watch=1", Sort::Description),
            ("GET", "/apis/a.b/v1?watch=1", Sort::Description),
            ("GET", "/apis?watch=1", Sort::Description),
            ("GET", "/version", Sort::Description),
            ("GET", "/apis/a.b/v1/namespaces/n/llamas/x/status?watch=1", Sort::Description),
            ("POST", "/nothing", Sort::Description),
        ] {
            assert_eq!(sort(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn only_requests_about_objects_have_a_verb() {
        assert_eq!(sort("GET", "/apis/a.b/v1/llamas?watch=1").verb(), Some(Verb::Watch));
        assert_eq!(sort("GET", "/apis/a.b/v1/llamas").verb(), Some(Verb::List));
        assert_eq!(sort("GET", "/apis/a.b/v1").verb(), None);
    }
}
