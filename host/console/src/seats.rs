//! [`Admission`]: how many requests one user, and all, may have in flight, and how many bodies may arrive. Whoever serves the console hands it in: in a cluster it is the
//! gateway's, so that documents and the aggregated API share their seats.

use futures::future::BoxFuture;

use crate::problem::Problem;

/// What a seat is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// A body, until all of it is there.
    Body,
    /// A request, until it is answered.
    Request,
    /// A watch, until it ends.
    Watch,
    /// A long answer, until it is sent.
    Large,
}

/// A seat. It is given back when it is dropped.
pub type Seat = Box<dyn Send + Sync>;

/// Gives seats to users.
pub trait Admission: Send + Sync {
    /// A seat for this user, if there is one to have soon.
    fn admit<'a>(&'a self, user: &'a str, stay: Stay) -> BoxFuture<'a, Option<Seat>>;
}

/// Takes a seat for a user.
///
/// # Errors
/// 429 when there is none.
pub(crate) async fn take(admission: &dyn Admission, user: &str, stay: Stay) -> Result<Seat, Problem> {
    let what = match stay {
        Stay::Body => "there are too many bodies that come slowly",
        Stay::Request => "there are too many requests",
        Stay::Watch => "there are too many watches",
        Stay::Large => "there are too many long answers that are not read yet",
    };
    admission.admit(user, stay).await.ok_or_else(|| Problem::busy(what, 1))
}
