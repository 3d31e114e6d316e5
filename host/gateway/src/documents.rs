//! The documents of Views, for the console's door: what the directory has, shown and stored by the gateway's guests.
//!
//! Objects are read and written as the caller, by the console. The gateway only knows the Views, and calls their guests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use pintle_console::{Caller, DocumentGuest, DocumentView, Provider, Shown as Told};
use pintle_core::view::{
    BackingObject, Lens,
    document::problem::{Doing, Refusal},
};
use pintle_engine::Origin;
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::{
    directory::{Directory, Resource},
    reply::RETRY_SECONDS,
    show::{Guests, Shown},
};

/// The documents that a directory has.
pub struct Documents {
    guests: Arc<Guests>,
    /// None: the Views have not been read yet.
    directory: watch::Receiver<Option<Arc<Directory>>>,
    made: Made,
}

/// The views of resources, made once for each.
#[derive(Default)]
pub(crate) struct Made(Mutex<BTreeMap<String, MadeOf>>);

/// A view, and the resource that it was made of.
type MadeOf = (Arc<Resource>, Arc<DocumentView>);

impl Documents {
    pub(crate) fn new(guests: Arc<Guests>, directory: watch::Receiver<Option<Arc<Directory>>>) -> Self {
        Self { guests, directory, made: Made::default() }
    }

    fn known(&self) -> Result<Arc<Directory>, Refusal> {
        let directory = self.directory.borrow().clone();
        directory.ok_or_else(|| Refusal::unavailable("the Views have not been read yet", RETRY_SECONDS))
    }
}

impl Provider for Documents {
    fn view<'a>(
        &'a self,
        path: &'a str,
        _: &'a Caller,
    ) -> BoxFuture<'a, Result<Option<Arc<DocumentView>>, Refusal>> {
        Box::pin(async move {
            let directory = self.known()?;
            self.made.of(&directory, path, &self.guests)
        })
    }

    fn paths<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Vec<String>, Refusal>> {
        Box::pin(async move {
            let directory = self.known()?;
            Ok(paths(&directory))
        })
    }
}

/// The paths of all documents.
pub(crate) fn paths(directory: &Directory) -> Vec<String> {
    directory.all_documents().map(|(path, _)| path.clone()).collect()
}

impl Made {
    /// The view at a path.
    ///
    /// # Errors
    /// 503 while the View answers nothing.
    pub(crate) fn of(
        &self,
        directory: &Directory,
        path: &str,
        guests: &Arc<Guests>,
    ) -> Result<Option<Arc<DocumentView>>, Refusal> {
        let Some(resource) = directory.documents(path) else { return Ok(None) };
        resource.open().map_err(|status| Refusal::of_status(Doing::Get, &status))?;
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|path, (resource, _)| {
            directory.documents(path).is_some_and(|present| Arc::ptr_eq(present, resource))
        });
        let (_, view) = made.entry(path.to_owned()).or_insert_with(|| {
            let guest = Guest { guests: Arc::clone(guests), resource: Arc::clone(resource) };
            let view = DocumentView {
                lens: resource.lens.clone(),
                cut: resource.cut.clone(),
                schema: resource.schema.clone(),
                guest: Arc::new(guest),
            };
            (Arc::clone(resource), Arc::new(view))
        });
        Ok(Some(Arc::clone(view)))
    }
}

/// The guest of a resource.
struct Guest {
    guests: Arc<Guests>,
    resource: Arc<Resource>,
}

impl DocumentGuest for Guest {
    fn show<'a>(
        &'a self,
        lens: &'a Lens,
        objects: &'a [BackingObject],
    ) -> BoxFuture<'a, Result<Vec<Told>, Refusal>> {
        Box::pin(async move {
            let refused = |status| Refusal::of_status(Doing::Get, &status);
            let in_force = self.resource.in_force().map_err(refused)?;
            let shown = match objects {
                // Whoever asks for the same at the same time waits for the same call: many watches cost one.
                [one] => vec![self.guests.show_one(lens, in_force, one).await.map_err(refused)?],
                all => self.guests.show(lens, in_force, all).await.map_err(refused)?,
            };
            let told = shown.into_iter().map(|shown| match shown {
                Shown::Fields(fields) => Told::Fields(fields),
                Shown::Failed(failure) => Told::Failed(failure),
            });
            Ok(told.collect())
        })
    }

    fn store<'a>(
        &'a self,
        lens: &'a Lens,
        written: &'a Value,
        current: Option<&'a BackingObject>,
    ) -> BoxFuture<'a, Result<Map<String, Value>, Refusal>> {
        Box::pin(async move {
            let refused = |status| Refusal::of_status(Doing::Update, &status);
            let in_force = self.resource.in_force().map_err(refused)?;
            let stored = self.guests.store(lens, in_force, written, current).await.map_err(refused)?;
            stored.map_err(|(failure, origin)| match origin {
                Origin::Guest => Refusal::of_guest(&failure),
                Origin::Engine => Refusal::guest_failed(&failure.message),
            })
        })
    }

    fn over(&self) -> BoxFuture<'static, ()> {
        let over = self.resource.over.clone();
        Box::pin(async move { over.wait().await })
    }
}
