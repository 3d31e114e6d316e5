//! [`Directory`]: which resources are served at present, and with what.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use pintle_core::view::{
    Cut, Epoch, Lens, Served, Status, etag::Etag, openapi, table::Columns, target::GroupVersion,
};
use pintle_schema::structural::Structural;
use serde_json::Value;

use crate::{over::Over, reply::RETRY_SECONDS, show::InForce};

/// A resource that a View serves.
#[derive(Debug)]
pub struct Resource {
    /// How it is seen.
    pub lens: Lens,
    /// What is read of the backing kind.
    pub cut: Cut,
    /// The schema of what is written.
    pub schema: Structural,
    /// The columns of its tables.
    pub columns: Columns,
    /// What is called; or why nothing is, for a person.
    pub in_force: Result<InForce, String>,
    /// Why the View answers nothing at all, for a person.
    pub closed: Option<String>,
    /// Ends what shows objects as this resource does, when another takes its place.
    pub over: Over,
}

/// The resources that are served at present.
#[derive(Debug, Default)]
pub struct Directory {
    resources: BTreeMap<GroupVersion, BTreeMap<String, Arc<Resource>>>,
    /// The documents that are served by REST, by their paths.
    documents: BTreeMap<String, Arc<Resource>>,
    /// Made when it is asked for: the API server asks every minute, and each client once.
    openapi: OnceLock<OpenApi>,
}

/// The OpenAPI documents of everything that is served.
#[derive(Debug)]
pub struct OpenApi {
    /// Where the document of each version is.
    pub root: Document,
    /// The document of each version.
    pub versions: BTreeMap<GroupVersion, Document>,
}

/// A document as clients are sent it.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its hash.
    pub etag: Etag,
    /// Its JSON.
    pub text: Bytes,
}

impl Document {
    /// A document with this content.
    pub fn of(content: &Value) -> Self {
        Self { etag: Etag::of(content), text: content.to_string().into() }
    }
}

impl Directory {
    /// These resources.
    pub fn new(resources: impl IntoIterator<Item = Arc<Resource>>) -> Self {
        let mut directory = Self::default();
        for resource in resources {
            let served = &resource.lens.served;
            if served.is_of_documents() {
                directory.documents.insert(served.rest.clone(), resource);
                continue;
            }
            let of = GroupVersion { group: served.group().into(), version: served.version().into() };
            directory.resources.entry(of).or_default().insert(served.plural.clone(), resource);
        }
        directory
    }

    /// A resource.
    ///
    /// # Errors
    /// 503 for one that no View serves: that there is no View proves nothing about objects.
    pub fn resource(&self, of: &GroupVersion, plural: &str) -> Result<&Arc<Resource>, Status> {
        self.resources.get(of).and_then(|resources| resources.get(plural)).ok_or_else(|| {
            let resource = format!("{plural}.{}/{}", of.group, of.version);
            Status::unavailable(format!("no View serves {resource} at present"), RETRY_SECONDS)
        })
    }

    /// The documents at a path.
    pub fn documents(&self, path: &str) -> Option<&Arc<Resource>> {
        self.documents.get(path)
    }

    /// All documents that are served, by their paths.
    pub fn all_documents(&self) -> impl Iterator<Item = (&String, &Arc<Resource>)> {
        self.documents.iter()
    }

    /// What is served, of all groups or of one.
    pub fn served(&self, group: Option<&str>) -> Vec<&Served> {
        let of_group = self.resources.iter().filter(|(of, _)| group.is_none_or(|group| of.group == group));
        of_group.flat_map(|(_, resources)| resources.values()).map(|resource| &resource.lens.served).collect()
    }

    /// The epochs in which a resource is shown at present: one for each of its versions.
    pub fn epochs<'a>(&'a self, lens: &'a Lens) -> impl Iterator<Item = Epoch> + use<'a> {
        let (group, plural) = (lens.served.group(), &lens.served.plural);
        let versions = self.resources.iter().filter(move |(of, _)| of.group == group);
        versions.filter_map(move |(_, resources)| Some(resources.get(plural)?.lens.epoch))
    }

    /// The OpenAPI documents.
    pub fn openapi(&self) -> &OpenApi {
        self.openapi.get_or_init(|| {
            let served = self.served(None);
            let document = |of: &GroupVersion| {
                let content = openapi::document(&served, &of.api_version())?;
                Some((of.clone(), Document::of(&content)))
            };
            OpenApi {
                root: Document::of(&openapi::root(&served)),
                versions: self.resources.keys().filter_map(document).collect(),
            }
        })
    }

    /// Whether another directory has the very same resources.
    pub(crate) fn has_the_same_resources(&self, other: &Self) -> bool {
        let (ours, theirs): (Vec<_>, Vec<_>) = (self.resources().collect(), other.resources().collect());
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| Arc::ptr_eq(ours, theirs))
    }

    /// Every resource.
    fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values().flat_map(BTreeMap::values).chain(self.documents.values())
    }
}

impl Resource {
    /// What is called for it.
    ///
    /// # Errors
    /// 503 while its module cannot be called.
    pub fn in_force(&self) -> Result<&InForce, Status> {
        self.in_force.as_ref().map_err(|why| Status::unavailable(why, RETRY_SECONDS))
    }

    /// # Errors
    /// 503 while the View is suspended, or not valid.
    pub fn open(&self) -> Result<(), Status> {
        match &self.closed {
            Some(why) => Err(Status::unavailable(why, RETRY_SECONDS)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use pintle_core::view::Access;
    use serde_json::json;

    use super::*;
    use crate::over::Ending;

    /// A resource of which nothing is known, whose module is not there.
    pub(crate) fn resource() -> Resource {
        Resource {
            lens: Lens::new("things", Served::default(), Access::default(), Vec::new(), Epoch::default()),
            cut: Cut::metadata_alone(),
            schema: Structural::compile(&json!({"type": "object"})).unwrap(),
            columns: Columns::new(&[]).unwrap(),
            in_force: Err("there is no module".into()),
            closed: None,
            over: Ending::default().over(),
        }
    }
}
