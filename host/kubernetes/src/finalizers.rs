//! Finalizers that are taken off all objects of a kind.

use http::{Method, Request, header};
use pintle_core::{ApiError, object};
use serde_json::{Value, json};

use super::{Cluster, METADATA_OF_ALL, Projection, Resource, bytes_of, escape};

/// How many objects a page has. Of each only the metadata are read.
const PAGE_OBJECTS: u32 = 100;

impl Cluster {
    /// Takes these finalizers off all objects of a kind, and returns off how many.
    ///
    /// # Errors
    /// As [`Cluster::get`]. Some objects may have lost them by then: it is well to do it again.
    pub async fn take_off(&self, resource: &Resource, finalizers: &[String]) -> Result<usize, ApiError> {
        let wanted: Vec<&str> = finalizers.iter().map(String::as_str).collect();
        let (mut count, mut next) = (0, String::new());
        loop {
            let path = format!("{}?limit={PAGE_OBJECTS}{next}", resource.path(None, None));
            // With its kind every object is gone.
            let Some(page) = self.read_unreduced(path, METADATA_OF_ALL).await? else { return Ok(count) };
            for item in page["items"].as_array().into_iter().flatten() {
                if object::has_finalizer(item, &wanted) {
                    self.take_off_one(resource, item, &wanted).await?;
                    count += 1;
                }
            }
            match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
                Some(token) => next = format!("&continue={}", escape(token)),
                None => return Ok(count),
            }
        }
    }

    async fn take_off_one(&self, resource: &Resource, item: &Value, wanted: &[&str]) -> Result<(), ApiError> {
        let path = resource.path(object::namespace(item), Some(object::name(item)));
        let mut seen = item.clone();
        loop {
            let left: Vec<&str> = object::finalizers(&seen).filter(|name| !wanted.contains(name)).collect();
            let patch = json!({"metadata": {
                "uid": object::uid(&seen), "resourceVersion": seen["metadata"]["resourceVersion"], "finalizers": left,
            }});
            let request = Request::builder()
                .method(Method::PATCH)
                .uri(format!("{path}?fieldManager=pintle"))
                .header(header::CONTENT_TYPE, "application/merge-patch+json")
                .header(header::ACCEPT, Projection::Metadata.accept())
                .body(bytes_of(&patch));
            match self.send(request).await {
                Ok(_) => return Ok(()),
                // Gone, or changed since it was read.
                Err(error) if error.code == 404 => return Ok(()),
                Err(error) if error.code == 409 => {}
                Err(error) => return Err(error),
            }
            let Some(now) = self.read_unreduced(path.clone(), Projection::Metadata.accept()).await? else {
                return Ok(());
            };
            if object::uid(&now) != object::uid(&seen) || !object::has_finalizer(&now, wanted) {
                return Ok(());
            }
            seen = now;
        }
    }
}
