//! Reports every request to the API server to an observer, including those of watches, of the election and of Events, which kube makes.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response};
use pintle_runtime::clock;
use tower::{Layer, Service};

/// Receives a report of each request.
pub trait Observer: Send + Sync {
    /// A request with this method to this host got a reply with this status code, or none, after this long.
    fn requested(&self, method: &str, host: &str, code: Option<u16>, took: Duration);
}

/// Puts an [`Observer`] around a client's requests.
#[derive(Clone)]
pub(super) struct ObserverLayer(pub(super) Arc<dyn Observer>);

/// A service whose requests are observed.
pub(super) struct ObservedService<S> {
    inner: S,
    observer: Arc<dyn Observer>,
}

impl<S> Layer<S> for ObserverLayer {
    type Service = ObservedService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        ObservedService { inner, observer: Arc::clone(&self.0) }
    }
}

impl<S, B, R> Service<Request<B>> for ObservedService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (method, host) = (request.method().clone(), host(request.uri()));
        let observer = Arc::clone(&self.observer);
        let (reply, began) = (self.inner.call(request), clock::monotonic());
        Box::pin(async move {
            let reply = reply.await;
            let code = reply.as_ref().ok().map(|reply| reply.status().as_u16());
            observer.requested(method.as_str(), &host, code, clock::monotonic().saturating_sub(began));
            reply
        })
    }
}

fn host(uri: &http::Uri) -> String {
    uri.authority().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<Vec<(String, String, Option<u16>)>>);

    impl Observer for Seen {
        fn requested(&self, method: &str, host: &str, code: Option<u16>, _: Duration) {
            self.0.lock().unwrap().push((method.into(), host.into(), code));
        }
    }

    #[tokio::test]
    async fn replies_and_their_absence_are_told() {
        let seen = Arc::new(Seen::default());
        let inner = tower::service_fn(|request: Request<u16>| async move {
            let code = *request.body();
            if code == 0 { Err("gone") } else { Ok(Response::builder().status(code).body(()).unwrap()) }
        });
        let mut service = ObserverLayer(Arc::clone(&seen) as Arc<dyn Observer>).layer(inner);
        for code in [201, 0] {
            let request = Request::post("https://127.0.0.1:6443/api/v1/pods?x=y").body(code).unwrap();
            let _ = service.call(request).await;
        }
        let host = || "127.0.0.1:6443".to_owned();
        let wanted = vec![("POST".to_owned(), host(), Some(201)), ("POST".to_owned(), host(), None)];
        assert_eq!(*seen.0.lock().unwrap(), wanted);
    }
}
