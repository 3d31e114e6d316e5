//! Version 0.2.0 of guest-darkroom, as if somebody had changed its logic: where a Darkroom does not say for how long
//! images may be kept, it is a day at most, and not a year.

use guest_darkroom::{Config, Darkroom, Darkrooms, Root};
use pintle_guest::{Failure, Guest, Manifest, Request, Response, Views};

/// The most that the config may say, in seconds.
const CACHE_TIME_SECONDS_MAX: i64 = 86_400;

/// The guest.
pub struct Next;

/// Its views, which are those of guest-darkroom.
pub struct Documents;

pintle_guest::export!(Next, views: Documents);

impl Guest for Next {
    type Root = Root;
    type Config = Config;
    const READS_NEEDS: bool = Darkroom::READS_NEEDS;

    fn manifest() -> Manifest {
        Manifest { version: env!("CARGO_PKG_VERSION").to_owned(), ..Darkroom::manifest() }
    }

    fn reconcile(mut request: Request<Root, Config>) -> Result<Response, Failure> {
        let seconds = &mut request.config.cache_time_seconds;
        *seconds = CACHE_TIME_SECONDS_MAX.min(*seconds);
        Darkroom::reconcile(request)
    }
}

impl Views for Documents {
    const NAME: &'static str = guest_darkroom::Documents::NAME;
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type All = (Darkrooms,);
}
