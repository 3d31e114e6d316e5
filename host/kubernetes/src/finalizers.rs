//! Finalizers of all objects of a kind: whether there are any, and how they are taken off.

use http::{Method, Request, header};
use http_body_util::BodyExt;
use pintle_core::ApiError;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Cluster, METADATA_OF_ALL, Projection, REQUEST_TIMEOUT, Resource, bytes_of, escape, items::Items, no_json,
    no_reply, too_late,
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
#[derive(Default)]
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

    /// The objects of a page that have one of these finalizers; none where the kind is gone. Each object is looked at while the page
    /// arrives, so that no tenant's annotations make a page too long to be read.
    async fn held(&self, resource: &Resource, finalizers: &[&str], from: &str) -> Result<Held, ApiError> {
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
                Err(error) if error.code == 404 => return Ok(Held::default()),
                Err(error) => return Err(error),
            };
            let (mut reader, mut items, mut objects) = (Items::default(), Vec::new(), Vec::new());
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| no_reply(error.to_string()))?;
                let Ok(chunk) = frame.into_data() else { continue };
                reader.push(&chunk, &mut items).map_err(|error| no_reply(error.to_string()))?;
                for item in items.drain(..) {
                    let Object { metadata } = serde_json::from_slice(&item).map_err(no_json)?;
                    if metadata.has_finalizer(finalizers) {
                        objects.push(metadata);
                    }
                }
            }
            let rest = reader.rest().map_err(|error| no_reply(error.to_string()))?;
            let list: Value = serde_json::from_slice(&rest).map_err(no_json)?;
            let next = list["metadata"]["continue"].as_str().filter(|token| !token.is_empty());
            Ok(Held { objects, next: next.map(Into::into) })
        };
        tokio::time::timeout(REQUEST_TIMEOUT, read).await.unwrap_or_else(|_| Err(too_late()))
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
            let Object { metadata: now } = serde_json::from_value(now).map_err(no_json)?;
            if now.uid != seen.uid || !now.has_finalizer(wanted) {
                return Ok(());
            }
            seen = now;
        }
    }
}
