//! Lists, page by page, for whoever looks at many objects once. The operator watches instead.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use pintle_core::{ApiError, Apply, bulk::Bulk, object};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Cluster, Projection, REQUEST_TIMEOUT, Reduced, Resource, escape, no_json, no_reply, too_late};

/// How long a page may take. A page of large objects takes the API server longer than one object does.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// The longest document that is read, in bytes. The schemas of a group of Kubernetes have some hundred KiB.
const DOCUMENT_BYTES_MAX: usize = 64 << 20;

/// Which objects a page is of.
#[derive(Clone, Debug)]
pub struct PageOf<'a> {
    /// In this namespace alone.
    pub namespace: Option<&'a str>,
    /// With these labels, as kubectl writes a selector.
    pub labels: Option<&'a str>,
    /// How many at most.
    pub limit: u32,
    /// How long it may be as text, in bytes.
    pub bytes_max: usize,
    /// How much memory it may take as text and as values, in bytes.
    pub memory_max: u64,
    /// What the page before said of where it ended.
    pub next: Option<&'a str>,
}

/// A part of a list.
#[derive(Debug, Default)]
pub struct Page {
    /// The objects, without what [`Reduced`] leaves out, each with its kind.
    pub items: Vec<Value>,
    /// Where the next page begins, unless this is the last one.
    pub next: Option<String>,
    /// How many objects there are after this page, as far as the API server says so.
    pub remaining: Option<u64>,
    /// How long the page was as text, in bytes.
    pub bytes: usize,
}

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default, deserialize_with = "items")]
    items: Vec<Reduced>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    r#continue: Option<String>,
    #[serde(default)]
    remaining_item_count: Option<u64>,
}

/// An empty list may be null.
fn items<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Reduced>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl PageOf<'_> {
    fn path(&self, resource: &Resource) -> String {
        let mut path = format!("{}?limit={}", resource.path(self.namespace, None), self.limit);
        for (name, value) in [("labelSelector", self.labels), ("continue", self.next)] {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", escape(value)));
            }
        }
        path
    }
}

impl Cluster {
    /// A page of a list.
    ///
    /// # Errors
    /// Every error of the API server, 404 for a kind that it does not serve, and 413 for a page that is too long to be read, or takes too much memory.
    pub async fn page(&self, resource: &Resource, of: &PageOf<'_>) -> Result<Page, ApiError> {
        let bytes = self.bytes_at(of.path(resource), PAGE_TIMEOUT, of.bytes_max).await?;
        let bulk = Bulk::of(&bytes);
        if (bulk.text_bytes() + bulk.value_bytes()) as u64 > of.memory_max {
            let message = format!("the page takes more than {} MiB of memory", of.memory_max >> 20);
            return Err(ApiError { code: 413, message, ..ApiError::default() });
        }
        let list: List = serde_json::from_slice(&bytes).map_err(no_json)?;
        let items = list.items.into_iter().map(|Reduced(mut item)| {
            object::set_kind(&mut item, resource.kind.clone());
            item
        });
        Ok(Page {
            items: items.collect(),
            next: list.metadata.r#continue.filter(|token| !token.is_empty()),
            remaining: list.metadata.remaining_item_count,
            bytes: bytes.len(),
        })
    }

    /// A document that is no object, for instance the schemas of a group; none where there is none.
    ///
    /// # Errors
    /// Every error of the API server except 404.
    pub async fn document(&self, path: &str) -> Result<Option<Value>, ApiError> {
        match self.bytes_at(path.to_owned(), REQUEST_TIMEOUT, DOCUMENT_BYTES_MAX).await {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(no_json),
            Err(error) if error.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks what would come of an apply, and has it change nothing: every check of the API server is made, and nothing is stored.
    ///
    /// # Errors
    /// What the API server would say to the apply itself.
    pub async fn try_apply(&self, resource: &Resource, apply: &Apply) -> Result<Value, ApiError> {
        let reference = apply.reference();
        let path = resource.path(reference.namespace.as_deref(), Some(&reference.name));
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!(
                "{path}?dryRun=All&fieldManager={}&force={}",
                escape(apply.manager()),
                apply.force()
            ))
            .header(header::CONTENT_TYPE, "application/apply-patch+yaml")
            .header(header::ACCEPT, Projection::Whole.accept())
            .body(super::bytes_of(apply.object()));
        Ok(self.send(request).await?.object)
    }

    async fn bytes_at(&self, path: String, patience: Duration, most: usize) -> Result<Bytes, ApiError> {
        let request =
            Request::builder().method(Method::GET).uri(path).header(header::ACCEPT, "application/json");
        let request = self.as_whom(request.body(Vec::new()))?;
        let asked = async {
            let body = self.response(request).await?.into_body();
            match http_body_util::BodyExt::collect(http_body_util::Limited::new(body, most)).await {
                Ok(read) => Ok(read.to_bytes()),
                Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_long(most)),
                Err(error) => Err(no_reply(error.to_string())),
            }
        };
        tokio::time::timeout(patience, asked).await.unwrap_or_else(|_| Err(too_late()))
    }
}

fn too_long(most: usize) -> ApiError {
    let message = format!("the reply is longer than {most} bytes");
    ApiError { code: 413, message, ..ApiError::default() }
}
