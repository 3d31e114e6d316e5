//! The options of requests: which are valid. The gateway answers the same options, so both judge them by the same code.

use pintle_core::view::query::{ListOptions, Query, Write, WriteOptions};

use crate::{Failure, failure::cause, faults::Verb, request::Request};

/// Checks the options of a create, an update, a patch or an apply.
pub(super) fn of_write(request: &Request) -> Result<(), Failure> {
    let write = match request.verb {
        Verb::Create => Write::Create,
        Verb::Update => Write::Update,
        _ => Write::Patch,
    };
    let mut query = request.query.clone();
    if request.verb == Verb::Apply {
        // Nothing else can be forced.
        query.remove("force");
    }
    WriteOptions::read(&Query::new(query), write)?;
    Ok(())
}

/// Checks the options of a list or watch.
pub(crate) fn of_list(request: &Request) -> Result<(), Failure> {
    request.version()?;
    ListOptions::read(&Query::new(request.query.clone()))?;
    Ok(())
}

/// A version that a list or a watch asks for, and that there is not yet. The API server waits a moment for it, and then gives up.
pub(crate) fn too_new(asked: u64, current: u64) -> Failure {
    Failure {
        retry_after_seconds: Some(1),
        causes: vec![cause("", "ResourceVersionTooLarge", "Too large resource version")],
        ..Failure::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {asked}, current: {current}"),
        )
    }
}
