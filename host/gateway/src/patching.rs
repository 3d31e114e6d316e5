//! Patches are read and applied in memory that was reserved for them, on a thread that serves nobody else.

use std::sync::Arc;

use bytes::Bytes;
use pintle_core::view::{
    Status,
    accept::PatchType,
    patch::{self, Applying, Patch},
};
use serde_json::Value;

use crate::{answer::Parts, body, directory::Resource};

/// A patch as it was sent, and what it is about. It is read again each time it is applied: read, it may take a hundred times as much memory.
pub(crate) struct SentPatch {
    r#type: PatchType,
    body: Bytes,
    copies: usize,
    /// The fields that it has twice.
    pub(crate) duplicates: Vec<String>,
    /// [`Patch::is_of_metadata`].
    pub(crate) is_of_metadata: bool,
    /// [`Patch::names_version`].
    pub(crate) names_version: bool,
}

impl Parts {
    /// Reads a patch.
    ///
    /// # Errors
    /// As [`Patch::read`], and 429 or 503 when there is no memory for it.
    pub(crate) async fn read_patch(
        &self,
        resource: &Resource,
        r#type: PatchType,
        sent: &Bytes,
    ) -> Result<SentPatch, Status> {
        let bytes = patch::reading_bytes(sent);
        let sent = sent.clone();
        let read = move || {
            let patch = Patch::read(r#type, &sent).map_err(|refused| body::at_its_field(refused, &sent))?;
            Ok(SentPatch {
                r#type,
                copies: patch.copies(),
                duplicates: body::duplicates(&sent),
                is_of_metadata: patch.is_of_metadata(),
                names_version: patch.names_version(),
                body: sent,
            })
        };
        self.guests.work(&resource.lens.view, bytes, read).await?
    }

    /// What a patch makes of an object.
    ///
    /// # Errors
    /// As [`Patch::apply`], and 429 or 503 when there is no memory for it.
    pub(crate) async fn patched(
        &self,
        resource: &Arc<Resource>,
        name: &str,
        sent: &SentPatch,
        object: &Arc<Value>,
    ) -> Result<Value, Status> {
        let Applying { given, copies } = Applying::new(&sent.body, sent.copies, object);
        // On a small gateway the copies of one patch find less room.
        let copies = copies.min(self.guests.bytes_max().saturating_sub(given));
        let (of, name, object) = (Arc::clone(resource), name.to_owned(), Arc::clone(object));
        let (r#type, body) = (sent.r#type, sent.body.clone());
        let apply = move || {
            let patch = Patch::read(r#type, &body)?;
            patch.apply(&of.lens.served, &name, Value::clone(&object), copies)
        };
        self.guests.work(&resource.lens.view, given.saturating_add(copies), apply).await?
    }
}
