//! [`Views`]: the part of a module that serves views, and the ways to call it.

use std::{fmt, sync::Arc};

use pintle_wit::{
    Failure,
    views::{ShowItem, ShowResponse, StoreResponse, ViewManifest, ViewsManifest},
};

use crate::{
    call::{self, Answer, CallError, CallStats},
    digest::Digest,
    limits::CallLimits,
    loaded::{self, Loaded, Part},
    worlds::Viewer,
};

/// What a guest shows of some objects.
pub type ShowAnswer = Answer<ShowResponse>;

/// What a guest stores.
pub type StoreAnswer = Answer<StoreResponse>;

/// The part of a module that serves views. It is cheap to clone, and keeps its module.
#[derive(Clone)]
pub struct Views {
    loaded: Arc<Loaded>,
    part: Arc<Part<Viewer>>,
}

impl Views {
    pub(crate) fn of(loaded: &Arc<Loaded>) -> Option<Self> {
        let part = loaded.parts.views()?;
        Some(Self { part: Arc::clone(part), loaded: Arc::clone(loaded) })
    }

    /// Asks the guest what this view shows of some objects. The request is a [`pintle_wit::views::ShowRequest`] in JSON about the same view
    /// with this many `objects`; the answer has one item for each, in order, without the fields that are the host's.
    ///
    /// The time of `limits` is that of a short request; a longer one has longer ([`CallLimits::for_request`]).
    ///
    /// The call runs on this thread. If as many calls run already as the engine allows, it first waits for its turn. The thread must have a
    /// stack of at least 1 MiB.
    ///
    /// # Errors
    /// The guest's own failure of the whole call, or the engine's for a guest that broke a limit or the contract.
    pub fn show(
        &self,
        view: &str,
        request_json: &str,
        objects: usize,
        limits: &CallLimits,
    ) -> Result<ShowAnswer, CallError> {
        let (callee, limits) = (&self.loaded.callee, &limits.for_request(request_json.len()));
        let of_the_host = self.manifest().view(view).map(ViewManifest::of_the_host).unwrap_or_default();
        callee.ask(callee.enter(), &self.part.world.show, request_json, limits, |text| {
            let (weight, read) =
                pintle_wit::weigh_and_parse_show_response(text, objects, of_the_host, limits.response);
            (weight, read.and_then(with_checked_failures))
        })
    }

    /// Asks the guest what becomes of an object of the backing kind. The request is a [`pintle_wit::views::StoreRequest`] in JSON.
    ///
    /// # Errors
    /// The guest's own failure, which refuses the write, or the engine's as in [`Self::show`].
    pub fn store(&self, request_json: &str, limits: &CallLimits) -> Result<StoreAnswer, CallError> {
        let (callee, limits) = (&self.loaded.callee, &limits.for_request(request_json.len()));
        let read = |text: &str| pintle_wit::weigh_and_parse_store_response(text, limits.response);
        callee.ask(callee.enter(), &self.part.world.store, request_json, limits, read)
    }

    /// Asks the guest for its manifest again, and returns the text with the cost of the call. The manifest in force is [`Self::manifest`].
    ///
    /// # Errors
    /// As [`Self::show`].
    pub fn describe(&self, limits: &CallLimits) -> Result<(String, CallStats), CallError> {
        let (text, _, stats) = loaded::describe(&self.loaded.callee, &self.part.world, limits)?;
        Ok((text, stats))
    }

    /// The digest of the module's bytes.
    pub fn digest(&self) -> Digest {
        self.loaded.digest
    }

    /// The manifest that the guest declared when its module was loaded.
    pub fn manifest(&self) -> &ViewsManifest {
        &self.part.manifest
    }

    /// The same as the guest wrote it.
    pub fn manifest_text(&self) -> &str {
        &self.part.manifest_text
    }
}

/// The failure of an item is held to what a failure of a call is held to: people read both.
fn with_checked_failures(mut response: ShowResponse) -> Result<ShowResponse, Failure> {
    for (index, item) in response.items.iter_mut().enumerate() {
        if let ShowItem::Failure(failure) = item {
            *failure = call::checked(std::mem::take(failure))
                .map_err(|wrong| wrong.at(format!("items[{index}].failure.reason")))?;
        }
    }
    Ok(response)
}

impl fmt::Debug for Views {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Views")
            .field("digest", &self.loaded.digest)
            .field("name", &self.part.manifest.name)
            .field("version", &self.part.manifest.version)
            .finish_non_exhaustive()
    }
}
