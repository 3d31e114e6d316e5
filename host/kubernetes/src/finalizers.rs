//! Whether any object of a kind has a finalizer.

use pintle_core::ApiError;
use serde::Deserialize;

use super::{Call, Cluster, METADATA_OF_ALL, Resource, escape, if_found, no_json, reading::ListMeta};

/// How many objects a page has. Of each only the metadata are read.
const PAGE_OBJECTS: u32 = 100;

/// What is read of an object. Its annotations may be large, and are not.
#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    finalizers: Vec<String>,
}

impl Cluster {
    /// Whether any object of a kind has one of these finalizers. This asks the API server, because a watch may be behind.
    ///
    /// # Errors
    /// As [`Cluster::get`].
    pub async fn any_has_finalizer(
        &self,
        resource: &Resource,
        finalizers: &[&str],
    ) -> Result<bool, ApiError> {
        let mut next = Some(String::new());
        while let Some(from) = next {
            let mut path = format!("{}?limit={PAGE_OBJECTS}", resource.path(None, None));
            if !from.is_empty() {
                path.push_str(&format!("&continue={}", escape(&from)));
            }
            let mut is_held = false;
            let list = self.each(Call::get(path).accepting(METADATA_OF_ALL), |text| {
                let Object { metadata } = serde_json::from_slice(&text).map_err(no_json)?;
                is_held |= metadata.finalizers.iter().any(|name| finalizers.contains(&name.as_str()));
                Ok(())
            });
            // With its kind every object is gone.
            next = if_found(list.await)?.and_then(ListMeta::next);
            if is_held {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
