//! Finalizers of all objects of a kind: whether there are any, and how they are taken off.

use pintle_core::ApiError;
use serde::Deserialize;
use serde_json::json;

use super::{
    Call, Cluster, MERGE_PATCH, METADATA_OF_ALL, OWN_MANAGER, Projection, Resource, escape, if_found,
    no_json, reading::ListMeta,
};

/// How many objects a page has. Of each only the metadata are read.
const PAGE_OBJECTS: u32 = 100;

/// What is kept of an object. Its annotations may be large, and are not.
#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: Option<String>,
    uid: String,
    resource_version: String,
    finalizers: Vec<String>,
}

impl Metadata {
    fn has_finalizer(&self, wanted: &[&str]) -> bool {
        self.finalizers.iter().any(|name| wanted.contains(&name.as_str()))
    }
}

/// The objects of a page that have finalizers, and where the next page begins.
struct Held {
    objects: Vec<Metadata>,
    next: Option<String>,
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
            let page = self.held(resource, finalizers, &from).await?;
            if !page.objects.is_empty() {
                return Ok(true);
            }
            next = page.next;
        }
        Ok(false)
    }

    /// Takes these finalizers off all objects of a kind, and returns off how many.
    ///
    /// # Errors
    /// As [`Cluster::get`]. Some objects may have lost them by then: it is well to do it again.
    pub async fn take_off(&self, resource: &Resource, finalizers: &[String]) -> Result<usize, ApiError> {
        let wanted: Vec<&str> = finalizers.iter().map(String::as_str).collect();
        let (mut count, mut next) = (0, Some(String::new()));
        while let Some(from) = next {
            let page = self.held(resource, &wanted, &from).await?;
            count += page.objects.len();
            for object in page.objects {
                self.take_off_one(resource, object, &wanted).await?;
            }
            next = page.next;
        }
        Ok(count)
    }

    /// The objects of a page that have one of these finalizers; none where the kind is gone.
    async fn held(&self, resource: &Resource, finalizers: &[&str], from: &str) -> Result<Held, ApiError> {
        let mut path = format!("{}?limit={PAGE_OBJECTS}", resource.path(None, None));
        if !from.is_empty() {
            path.push_str(&format!("&continue={}", escape(from)));
        }
        let mut objects = Vec::new();
        let list = self.each(Call::get(path).accepting(METADATA_OF_ALL), |text| {
            let Object { metadata } = serde_json::from_slice(&text).map_err(no_json)?;
            if metadata.has_finalizer(finalizers) {
                objects.push(metadata);
            }
            Ok(())
        });
        let next = if_found(list.await)?.and_then(ListMeta::next);
        Ok(Held { objects, next })
    }

    async fn take_off_one(
        &self,
        resource: &Resource,
        mut seen: Metadata,
        wanted: &[&str],
    ) -> Result<(), ApiError> {
        let path = resource.path(seen.namespace.as_deref(), Some(&seen.name));
        loop {
            let left: Vec<&String> =
                seen.finalizers.iter().filter(|name| !wanted.contains(&name.as_str())).collect();
            let patch = json!({"metadata": {
                "uid": seen.uid, "resourceVersion": seen.resource_version, "finalizers": left,
            }});
            let call = Call::patch(&path, OWN_MANAGER, MERGE_PATCH, &patch);
            match self.send(call.accepting(Projection::Metadata.accept())).await {
                Ok(_) => return Ok(()),
                // Gone, or changed since it was read.
                Err(error) if error.code == 404 => return Ok(()),
                Err(error) if error.code == 409 => {}
                Err(error) => return Err(error),
            }
            let call = Call::get(path.clone()).accepting(Projection::Metadata.accept());
            let Some(now) = self.document_of(call).await? else { return Ok(()) };
            let Object { metadata: now } = serde_json::from_value(now).map_err(no_json)?;
            if now.uid != seen.uid || !now.has_finalizer(wanted) {
                return Ok(());
            }
            seen = now;
        }
    }
}
