//! Lists, page by page, for whoever looks at many objects once. The operator watches instead.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use pintle_core::{ApiError, bulk::Bulk, object};
use serde::Deserialize;
use serde_json::Value;

use super::{Call, Cluster, Reduced, Resource, escape, items::Items, no_json, no_reply, too_late};

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
}

/// What a list says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListMeta {
    r#continue: String,
}

impl ListMeta {
    /// Where the next page begins, unless this is the last one.
    pub(crate) fn next(self) -> Option<String> {
        Some(self.r#continue).filter(|token| !token.is_empty())
    }
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

    fn call(&self, resource: &Resource) -> Call {
        Call { patience: PAGE_TIMEOUT, ..Call::get(self.path(resource)) }
    }
}

impl Cluster {
    /// A page of a list.
    ///
    /// # Errors
    /// Every error of the API server, 404 for a kind that it does not serve, and 413 for a page that is too long to be read, or takes too
    /// much memory.
    pub async fn page(&self, resource: &Resource, of: &PageOf<'_>) -> Result<Page, ApiError> {
        let (mut items, mut bulk) = (Vec::new(), Bulk::default());
        let list = self.each(of.call(resource), |text| {
            bulk.add(&text);
            bulk.add(b",");
            if bulk.text_bytes() > of.bytes_max {
                return Err(too_long(of.bytes_max));
            }
            if (bulk.text_bytes() + bulk.value_bytes()) as u64 > of.memory_max {
                let message = format!("the page takes more than {} MiB of memory", of.memory_max >> 20);
                return Err(ApiError { code: 413, message, ..ApiError::default() });
            }
            let Reduced(mut item) = serde_json::from_slice(&text).map_err(no_json)?;
            object::set_kind(&mut item, resource.kind.clone());
            items.push(item);
            Ok(())
        });
        let next = list.await?.next();
        Ok(Page { items, next })
    }

    /// A document that is no object, for instance the schemas of a group; none where there is none.
    ///
    /// # Errors
    /// Every error of the API server except 404.
    pub async fn document(&self, path: &str) -> Result<Option<Value>, ApiError> {
        self.document_of(Call { bytes_max: DOCUMENT_BYTES_MAX, ..Call::get(path.to_owned()) }).await
    }

    /// Asks for a list, and takes each of its objects while it arrives: so no tenant's objects make a list too long to be read.
    pub(crate) async fn each(
        &self,
        call: Call,
        mut take: impl FnMut(Bytes) -> Result<(), ApiError>,
    ) -> Result<ListMeta, ApiError> {
        #[derive(Deserialize)]
        struct List {
            #[serde(default)]
            metadata: ListMeta,
        }
        let patience = call.patience;
        let request = self.request(call)?;
        let read = async {
            let mut body = self.response(request).await?.into_body();
            let (mut reader, mut items) = (Items::default(), Vec::new());
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| no_reply(error.to_string()))?;
                let Ok(chunk) = frame.into_data() else { continue };
                reader.push(&chunk, &mut items).map_err(|error| no_reply(error.to_string()))?;
                items.drain(..).try_for_each(&mut take)?;
            }
            let rest = reader.rest().map_err(|error| no_reply(error.to_string()))?;
            let List { metadata } = serde_json::from_slice(&rest).map_err(no_json)?;
            Ok(metadata)
        };
        tokio::time::timeout(patience, read).await.unwrap_or_else(|_| Err(too_late(patience)))
    }
}

fn too_long(most: usize) -> ApiError {
    let message = format!("the page is longer than {most} bytes");
    ApiError { code: 413, message, ..ApiError::default() }
}
