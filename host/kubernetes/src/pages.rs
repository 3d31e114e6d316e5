//! [`bounded`]: a client whose lists come in pages of few bytes.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{Request, Response, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::{Client, client::Body};
use tower::{BoxError, service_fn};

use super::REPLY_BYTES_MAX;

/// How long a page of several objects may be, in bytes. Whoever reads it has it three times for a moment.
const PAGE_BYTES_MAX: usize = 4 << 20;

/// The same client for one that lists in pages. A page that is too long is asked for again with fewer objects, down to one, and so are
/// those after it until they are short: who asks for a hundred objects does not know how large somebody else has made them.
pub(crate) fn bounded(client: &Client) -> Client {
    let (client, namespace) = (client.clone(), client.default_namespace().to_owned());
    let objects_max = Arc::new(AtomicU32::new(u32::MAX));
    let sent = move |request: Request<Body>| {
        let (client, objects_max) = (client.clone(), Arc::clone(&objects_max));
        async move {
            match limit_of(request.uri()) {
                Some(limit) => page(&client, request, limit, &objects_max).await,
                None => Ok(client.send(request).await?),
            }
        }
    };
    Client::new(service_fn(sent), namespace)
}

async fn page(
    client: &Client,
    request: Request<Body>,
    limit: u32,
    objects_max: &AtomicU32,
) -> Result<Response<Body>, BoxError> {
    let (mut head, _) = request.into_parts();
    let mut objects = limit.min(objects_max.load(Ordering::Relaxed));
    loop {
        head.uri = with_limit(&head.uri, objects)?;
        let (parts, body) = client.send(Request::from_parts(head.clone(), Body::empty())).await?.into_parts();
        let bytes_max = if objects == 1 { REPLY_BYTES_MAX } else { PAGE_BYTES_MAX };
        match Limited::new(body, bytes_max).collect().await {
            Ok(page) => {
                let page = page.to_bytes();
                let is_short = page.len() < PAGE_BYTES_MAX / 2;
                let next = if is_short { objects.saturating_mul(2) } else { objects };
                objects_max.store(next, Ordering::Relaxed);
                return Ok(Response::from_parts(parts, Body::from(page)));
            }
            Err(error) if objects > 1 && error.is::<LengthLimitError>() => objects = (objects / 10).max(1),
            Err(error) => return Err(error),
        }
    }
}

fn limit_of(uri: &Uri) -> Option<u32> {
    uri.query()?.split('&').find_map(|part| part.strip_prefix("limit="))?.parse().ok()
}

fn with_limit(uri: &Uri, limit: u32) -> Result<Uri, http::Error> {
    let parts = uri.query().unwrap_or_default().split('&').map(|part| match part.starts_with("limit=") {
        true => format!("limit={limit}"),
        false => part.to_owned(),
    });
    let query = parts.collect::<Vec<String>>().join("&");
    Uri::builder().path_and_query(format!("{}?{query}", uri.path())).build()
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex};

    use super::*;

    #[tokio::test]
    async fn a_page_has_few_bytes_however_large_its_objects_are() {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        let service = service_fn(move |request: Request<Body>| {
            let objects = limit_of(request.uri()).unwrap_or(7) as usize;
            seen.lock().unwrap().push(request.uri().to_string());
            let body = Body::from(vec![b' '; objects * (1400 << 10)]);
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let client = bounded(&Client::new(service, "default"));
        let read = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            client.send(request).await.unwrap().into_body().collect().await.unwrap().to_bytes().len()
        };
        for _ in 0..3 {
            assert!(read("/api/v1/configmaps?&limit=100&continue=a%2Fb").await <= PAGE_BYTES_MAX);
        }
        let path = |limit: u32| format!("/api/v1/configmaps?&limit={limit}&continue=a%2Fb");
        assert_eq!(*asked.lock().unwrap(), [100, 10, 1, 2, 2].map(path));
        assert_eq!(read("/api/v1/configmaps?watch=true").await, 7 * (1400 << 10), "this is no page");
    }
}
