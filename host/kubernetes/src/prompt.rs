//! [`prompt`]: a client for watches, whose requests have no deadline of their own.

use std::time::Duration;

use http::Request;
use kube::{Client, client::Body};
use tower::{BoxError, service_fn};

/// How long an answer may take to begin. The API server itself gives a list up after a minute, and begins a watch at once.
const BEGINS_WITHIN: Duration = Duration::from_secs(65);

/// The same client for whoever watches: a request whose answer does not begin in time fails, and is made again by the watch. Without a limit,
/// a connection on which nothing ever comes would leave the process blind until it is started again.
#[must_use]
pub fn prompt(client: &Client) -> Client {
    let (client, namespace) = (client.clone(), client.default_namespace().to_owned());
    let sent = move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let answer = tokio::time::timeout(BEGINS_WITHIN, client.send(request)).await;
            answer.map_err(BoxError::from)?.map_err(BoxError::from)
        }
    };
    Client::new(service_fn(sent), namespace)
}
