//! [`Faults`]: injects faults. It sees every request and every event of a watch before they take effect, and decides what happens to them.

use std::{sync::Arc, time::Duration};

pub use pintle_core::view::unshowable::Change;
use serde_json::Value;

use crate::{Failure, User};

/// Decides what happens to requests and events. It is called while the server is locked, so it must not call the server.
pub trait Faults: Send {
    /// What happens to a request that has not been carried out yet.
    fn request(&mut self, seen: &RequestSeen) -> Fate {
        let _ = seen;
        Fate::Pass
    }

    /// What happens to an event that a watch is about to send. It is not called for bookmarks.
    fn event(&mut self, stream: &StreamSeen, event: &EventSeen) -> EventFate {
        let _ = (stream, event);
        EventFate::Deliver
    }
}

/// Nothing goes wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads an object.
    Get,
    /// Reads many.
    List,
    /// Opens a watch.
    Watch,
    /// Creates an object.
    Create,
    /// A server-side apply.
    Apply,
    /// A JSON patch or a JSON merge patch.
    Patch,
    /// Replaces an object.
    Update,
    /// Deletes an object.
    Delete,
    /// Deletes many.
    DeleteCollection,
    /// Asks which kinds are served.
    Discover,
    /// Asks who somebody is, or whether somebody may do something.
    Review,
}

impl Verb {
    /// Whether a successful request changes anything.
    pub fn is_mutating(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Apply | Self::Patch | Self::Update | Self::Delete | Self::DeleteCollection
        )
    }

    /// The verb as roles name it.
    pub(crate) fn in_roles(self) -> &'static str {
        match self {
            Self::Get | Self::Discover => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create | Self::Review => "create",
            Self::Apply | Self::Patch => "patch",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A request, as it arrived.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSeen {
    /// Counts all requests, from 1. Those of [`ApiServer::act`](crate::ApiServer::act) count too, although they have no faults.
    pub number: u64,
    /// The name that the connection was given ([`ApiServer::service`](crate::ApiServer::service)), or who acts.
    pub client: String,
    /// The user that the client impersonates, or else the client itself.
    pub actor: String,
    /// The user that the client impersonates, with all that its headers say.
    pub impersonated: Option<User>,
    /// What the request does.
    pub verb: Verb,
    /// The kind's group; empty for the core group.
    pub group: String,
    /// The kind's version in its group.
    pub version: String,
    /// The plural name of the kind in paths, for instance `configmaps`. Empty for discovery.
    pub resource: String,
    /// The namespace, if the request names one.
    pub namespace: Option<String>,
    /// The object, if the request names one in its path. For a create, the name in its body.
    pub name: Option<String>,
    /// The subresource, `status` for instance.
    pub subresource: Option<String>,
    /// The field manager.
    pub manager: Option<String>,
    /// Whether an apply overrides what others have set.
    pub force: bool,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// The resourceVersion in the query: a list that has one may show an older state.
    pub resource_version: Option<String>,
    /// The body, or null if there is none.
    pub body: Value,
}

/// What happens to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It is carried out.
    Pass,
    /// It is refused, and nothing is done.
    Fail(Failure),
    /// The connection breaks before anything is done.
    LoseBefore,
    /// It is carried out, and the connection breaks before the reply.
    LoseAfter,
    /// It is carried out after this long.
    Delay(Duration),
    /// It is carried out at once, and the reply comes after this long.
    DelayReply(Duration),
    /// No reply ever comes, and nothing is done.
    SilenceBefore,
    /// It is carried out, and no reply ever comes.
    SilenceAfter,
    /// A get or list is answered with the state at this version ([`ApiServer::version`](crate::ApiServer::version)). Any other request is
    /// carried out.
    AsOf(u64),
}

/// A watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSeen {
    /// Counts watches, from 1. A client that connects again gets another number.
    pub number: u64,
    /// The name that the connection was given.
    pub client: String,
    /// The kind's name in paths.
    pub resource: String,
}

/// An event that a watch is about to send.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSeen {
    /// Counts the events of this watch, from 1.
    pub number: u64,
    /// Its type.
    pub change: Change,
    /// The version of the change.
    pub version: u64,
    /// The whole object, even if the watch shows only metadata.
    pub object: Arc<Value>,
}

/// What happens to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFate {
    /// It is sent.
    Deliver,
    /// This watch never sends it. A list, or another watch from an older version, shows it.
    Hide,
    /// It comes after this long, and so do the events after it. The faults are not asked about it again.
    Delay(Duration),
    /// It is sent twice.
    Duplicate,
    /// The watch ends before the event, as when a connection is closed.
    Close,
    /// The watch ends before the event with 410 Gone, so that the client lists again.
    Gone,
}
