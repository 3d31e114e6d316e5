//! How the API server serves kinds.

use pintle_wit::syntax;
use serde::Deserialize;

use crate::{
    caller::{Ask, Caller},
    place::Resource,
    problem::Problem,
};

/// A kind as the API server serves it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Served {
    /// Its name in paths; with a slash for a subresource.
    pub(crate) name: String,
    /// The kind.
    pub(crate) kind: String,
    /// Whether its objects live in namespaces.
    #[serde(default)]
    pub(crate) namespaced: bool,
    /// Its short names.
    #[serde(default)]
    pub(crate) short_names: Vec<String>,
    /// What may be done with it at all.
    #[serde(default)]
    pub(crate) verbs: Vec<String>,
}

/// A group and version, as objects name them, whose parts are sound.
fn resource_of(api_version: &str) -> Option<Resource> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    syntax::is_api_version(api_version).then(|| Resource::new(group, version, ""))
}

/// The kinds of a group and version; `None` if it is not served.
///
/// # Errors
/// When the API server does not say.
pub(crate) async fn served(caller: &Caller, api_version: &str) -> Result<Option<Vec<Served>>, Problem> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        resources: Vec<Served>,
    }
    let Some(Resource { group, version, .. }) = resource_of(api_version) else { return Ok(None) };
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    match caller.ask(Ask::get(path)).await {
        Ok(answer) => {
            let List { mut resources } = answer.parse()?;
            resources.retain(|served| !served.name.contains('/') && syntax::is_label(&served.name));
            Ok(Some(resources))
        }
        Err(problem) if problem.status == http::StatusCode::NOT_FOUND => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// One kind by its name; `None` if it is not served.
///
/// # Errors
/// When the API server does not say.
pub(crate) async fn of_kind(
    caller: &Caller,
    api_version: &str,
    kind: &str,
) -> Result<Option<(Resource, Served)>, Problem> {
    let found = served(caller, api_version).await?.unwrap_or_default();
    Ok(found.into_iter().find(|served| served.kind == kind).and_then(|served| {
        let resource = Resource { plural: served.name.clone(), ..resource_of(api_version)? };
        Some((resource, served))
    }))
}

/// One kind by its plural.
///
/// # Errors
/// 404 if it is not served.
pub(crate) async fn of_resource(caller: &Caller, resource: &Resource) -> Result<Served, Problem> {
    let found = served(caller, &resource.api_version()).await?.unwrap_or_default();
    let served = found.into_iter().find(|served| served.name == resource.plural);
    served.ok_or_else(|| Problem::not_found("the API server serves no such kind"))
}
