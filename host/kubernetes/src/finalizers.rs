//! Whether any object of a kind has a finalizer.

use http::{Method, Request, header};
use http_body_util::BodyExt;
use pintle_core::ApiError;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Cluster, METADATA_OF_ALL, REQUEST_TIMEOUT, Resource, escape, items::Items, no_json, no_reply, too_late,
};

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

/// Whether an object of a page has a finalizer, and where the next page begins.
#[derive(Default)]
struct Found {
    is_held: bool,
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
            if page.is_held {
                return Ok(true);
            }
            next = page.next;
        }
        Ok(false)
    }

    /// Whether an object of a page has one of these finalizers; none where the kind is gone. Each object is looked at while the page
    /// arrives, so that no tenant's annotations make a page too long to be read.
    async fn held(&self, resource: &Resource, finalizers: &[&str], from: &str) -> Result<Found, ApiError> {
        let mut path = format!("{}?limit={PAGE_OBJECTS}", resource.path(None, None));
        if !from.is_empty() {
            path.push_str(&format!("&continue={}", escape(from)));
        }
        let request =
            Request::builder().method(Method::GET).uri(path).header(header::ACCEPT, METADATA_OF_ALL);
        let request = self.as_whom(request.body(Vec::new()))?;
        let read = async {
            let mut body = match self.response(request).await {
                Ok(response) => response.into_body(),
                Err(error) if error.code == 404 => return Ok(Found::default()),
                Err(error) => return Err(error),
            };
            let (mut reader, mut items, mut is_held) = (Items::default(), Vec::new(), false);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| no_reply(error.to_string()))?;
                let Ok(chunk) = frame.into_data() else { continue };
                reader.push(&chunk, &mut items).map_err(|error| no_reply(error.to_string()))?;
                for item in items.drain(..) {
                    let Object { metadata } = serde_json::from_slice(&item).map_err(no_json)?;
                    is_held |= metadata.finalizers.iter().any(|name| finalizers.contains(&name.as_str()));
                }
            }
            let rest = reader.rest().map_err(|error| no_reply(error.to_string()))?;
            let list: Value = serde_json::from_slice(&rest).map_err(no_json)?;
            let next = list["metadata"]["continue"].as_str().filter(|token| !token.is_empty());
            Ok(Found { is_held, next: next.map(Into::into) })
        };
        tokio::time::timeout(REQUEST_TIMEOUT, read).await.unwrap_or_else(|_| Err(too_late()))
    }
}
