//! Whether a request comes from a page of ours: the scheme of Go 1.25 (`Sec-Fetch-Site`, else `Origin` is `Host`), with a list of other
//! origins. It stops requests that another site makes a browser send. It does not stop DNS rebinding, which [`hosts`](super::hosts) does.

use http::{HeaderMap, HeaderValue, Method, header, uri::Authority};

use crate::problem::Problem;

/// Judges whether a request comes from a page of ours, from a listed origin, or from no page at all. `is_page`: whether it asks for a page,
/// which any link may lead to.
///
/// # Errors
/// 403 where another site made the browser send it.
pub fn judge(
    method: &Method,
    headers: &HeaderMap,
    host: &Authority,
    cors: &[HeaderValue],
    is_page: bool,
) -> Result<(), Problem> {
    let origin = headers.get(header::ORIGIN);
    if origin.is_some_and(|origin| cors.contains(origin)) {
        return Ok(());
    }
    if (method == Method::GET || method == Method::HEAD) && is_page {
        return Ok(());
    }
    let refused = || {
        Problem::forbidden("the request comes from another site, which may not use the console")
            .because("CrossSite")
    };
    match headers.get("sec-fetch-site").map(HeaderValue::as_bytes) {
        Some(b"same-origin" | b"none") | None => {}
        // A neighbour by domain is another origin as well.
        Some(_) => return Err(refused()),
    }
    match origin {
        None => Ok(()),
        Some(origin) if is_of(origin, host) => Ok(()),
        Some(_) => Err(refused()),
    }
}

/// Whether an origin is that of the host which was called. The scheme is not compared: TLS may end before us.
fn is_of(origin: &HeaderValue, host: &Authority) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let authority = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(method: Method, pairs: &[(&'static str, &str)], is_page: bool) -> Result<(), u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        let cors = [HeaderValue::from_static("https://tools.example.com")];
        judge(&method, &headers, &"console.test:8443".parse().unwrap(), &cors, is_page)
            .map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn our_pages_and_programs_may_write() {
        for headers in [
            vec![],
            vec![("origin", "https://console.test:8443")],
            vec![("origin", "http://Console.test:8443"), ("sec-fetch-site", "same-origin")],
            vec![("sec-fetch-site", "none")],
        ] {
            assert_eq!(judged(Method::POST, &headers, false), Ok(()), "{headers:?}");
        }
    }

    #[test]
    fn other_sites_may_neither_write_nor_read_and_may_link_to_pages() {
        for headers in [
            vec![("origin", "https://evil.test")],
            vec![("origin", "null")],
            vec![("origin", "https://console.test")],
            vec![("origin", "https://console.test:8443.evil.test")],
            vec![("sec-fetch-site", "cross-site")],
            vec![("sec-fetch-site", "same-site")],
            vec![("sec-fetch-site", "same-origin"), ("origin", "https://evil.test")],
        ] {
            for method in [Method::POST, Method::DELETE, Method::GET] {
                assert_eq!(judged(method, &headers, false), Err(403), "{headers:?}");
            }
            assert_eq!(judged(Method::GET, &headers, true), Ok(()), "{headers:?}");
            assert_eq!(judged(Method::POST, &headers, true), Err(403), "{headers:?}");
        }
    }

    #[test]
    fn a_listed_origin_may_call_and_its_neighbours_may_not() {
        let listed = [("origin", "https://tools.example.com"), ("sec-fetch-site", "cross-site")];
        assert_eq!(judged(Method::PUT, &listed, false), Ok(()));
        assert_eq!(judged(Method::PUT, &[("origin", "http://tools.example.com")], false), Err(403));
    }
}
