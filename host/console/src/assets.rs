//! The files of the pages: in the program, or read from a folder by whoever works on them.

mod generated;

use std::{path::PathBuf, sync::LazyLock};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::{headers, problem::Problem};

/// Below this are the pages.
pub const PREFIX: &str = "/console/";

/// The page for everything that is no file.
const INDEX: &str = "index.html";

/// One file.
pub(crate) struct Asset {
    path: &'static str,
    content_type: &'static str,
    /// The beginning of its sha256, in quotes.
    etag: &'static str,
    /// Whether its name has its hash in it.
    immutable: bool,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
}

/// Where the files are.
#[derive(Clone, Debug, Default)]
pub enum Assets {
    /// In the program.
    #[default]
    Embedded,
    /// In a folder. They are read again for every request.
    Folder(PathBuf),
}

impl Assets {
    /// The answer to a request below [`PREFIX`].
    ///
    /// # Errors
    /// 404 for a file that is not there, 405 for a request that wants to change something.
    pub async fn serve(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "pages are read"));
        }
        let missing = || Problem::not_found("there is no such file");
        let path = path.strip_prefix(PREFIX).ok_or_else(missing)?;
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let wants_page = path.is_empty() || (accept.contains("text/html") && !path.starts_with("assets/"));
        match self {
            Self::Embedded => {
                let found = embedded(path).or_else(|| embedded(INDEX).filter(|_| wants_page));
                Ok(found.ok_or_else(missing)?.respond(headers))
            }
            Self::Folder(folder) => {
                let names = || {
                    path.split('/')
                        .all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains('\\'))
                };
                let file = match (names(), wants_page) {
                    (true, _) if folder.join(path).is_file() => folder.join(path),
                    (_, true) => folder.join(INDEX),
                    (_, false) => return Err(missing()),
                };
                let read = tokio::task::spawn_blocking(move || {
                    let bytes = std::fs::read(&file);
                    bytes.map(|bytes| (bytes, content_type(&file.to_string_lossy())))
                });
                let (bytes, form) = read.await.map_err(|_| missing())?.map_err(|_| missing())?;
                let policy = form.starts_with("text/html").then(|| headers::policy_for(&bytes));
                let mut response =
                    ([(header::CONTENT_TYPE, form), (header::CACHE_CONTROL, "no-store")], bytes)
                        .into_response();
                response.headers_mut().extend(policy.map(|policy| (header::CONTENT_SECURITY_POLICY, policy)));
                Ok(response)
            }
        }
    }
}

/// The policy of the page in the program: its hash is computed once.
static INDEX_POLICY: LazyLock<HeaderValue> =
    LazyLock::new(|| headers::policy_for(embedded(INDEX).map_or(&[][..], |index| index.plain)));

/// A file in the program.
fn embedded(path: &str) -> Option<&'static Asset> {
    generated::ASSETS.iter().find(|asset| asset.path == path)
}

impl Asset {
    fn respond(&self, headers: &HeaderMap) -> Response {
        let brotli = self.brotli.filter(|_| accepts_brotli(headers));
        let cache = if self.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
        let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let is_known = known.is_some_and(|known| known.split(',').any(|one| one.trim() == self.etag));
        let mut response = match is_known {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false => Response::new(Body::from(brotli.unwrap_or(self.plain))),
        };
        let fields = response.headers_mut();
        fields.insert(header::ETAG, HeaderValue::from_static(self.etag));
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
        // An answer that says that nothing has changed changes the headers all the same.
        if self.path == INDEX {
            fields.insert(header::CONTENT_SECURITY_POLICY, INDEX_POLICY.clone());
        }
        fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if !is_known {
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            if brotli.is_some() {
                fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("br"));
            }
        }
        response
    }
}

/// Whether a client takes brotli: named, and not refused by `q=0`.
fn accepts_brotli(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_brotli = parts.next() == Some("br");
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok());
        is_brotli && weight.is_none_or(|weight| weight > 0.0)
    })
}

fn content_type(path: &str) -> &'static str {
    const FORMS: [(&str, &str); 10] = [
        (".html", "text/html; charset=utf-8"),
        (".js", "text/javascript; charset=utf-8"),
        (".css", "text/css; charset=utf-8"),
        (".svg", "image/svg+xml"),
        (".json", "application/json"),
        (".webmanifest", "application/manifest+json"),
        (".png", "image/png"),
        (".woff2", "font/woff2"),
        (".ico", "image/x-icon"),
        (".txt", "text/plain; charset=utf-8"),
    ];
    let found = FORMS.iter().find(|(end, _)| path.ends_with(end));
    found.map_or("application/octet-stream", |(_, form)| form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    async fn get(assets: &Assets, path: &str, pairs: &[(&'static str, &str)]) -> Result<Response, u16> {
        let served = assets.serve(&Method::GET, path, &map(pairs)).await;
        served.map_err(|problem| problem.status.as_u16())
    }

    #[tokio::test]
    async fn pages_are_the_index_and_files_that_are_missing_are_not() {
        let assets = Assets::Embedded;
        let index = get(&assets, "/console/", &[]).await.unwrap();
        assert_eq!(index.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(index.headers()["cache-control"], "no-cache");
        let etag = index.headers()["etag"].to_str().unwrap().to_owned();
        let known = get(&assets, "/console/", &[("if-none-match", &format!("\"x\", {etag}"))]).await.unwrap();
        assert_eq!(known.status(), 304);
        let html = [("accept", "text/html,*/*")];
        assert!(get(&assets, "/console/engine/modules", &html).await.is_ok());
        assert_eq!(get(&assets, "/console/engine/modules", &[("accept", "*/*")]).await.unwrap_err(), 404);
        assert_eq!(get(&assets, "/console/assets/gone-1234.js", &html).await.unwrap_err(), 404);
        let post = assets.serve(&Method::POST, "/console/", &HeaderMap::new()).await;
        assert_eq!(post.unwrap_err().status, 405);
    }

    #[tokio::test]
    async fn the_script_in_the_page_may_run_and_no_other() {
        let script_sources = |response: &Response| {
            let policy = response.headers()["content-security-policy"].to_str().unwrap();
            let sources = policy.split("; ").find_map(|rule| rule.strip_prefix("script-src "));
            sources.unwrap().to_owned()
        };
        let assets = Assets::Embedded;
        let index = get(&assets, "/console/", &[]).await.unwrap();
        let sources = script_sources(&index);
        let hashes: Vec<&str> = sources.split(' ').skip(1).collect();
        assert!(sources.starts_with("'self' 'sha256-") && hashes.len() == 1, "{sources}");
        let etag = index.headers()["etag"].to_str().unwrap();
        let unchanged = get(&assets, "/console/", &[("if-none-match", etag)]).await.unwrap();
        assert_eq!(script_sources(&unchanged), sources);
        let page = headers::policy_for(b"<script src=\"a.js\"></script><script>alert(1)</script>");
        // By `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`.
        let hash = "script-src 'self' 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';";
        assert!(page.to_str().unwrap().contains(hash), "{page:?}");
        assert!(!headers::policy_for(b"").to_str().unwrap().contains("sha256"));
    }

    #[tokio::test]
    async fn a_folder_is_read_and_never_left() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("dist");
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        std::fs::write(outside.path().join("secret.js"), "no").unwrap();
        std::fs::write(folder.join("index.html"), "index").unwrap();
        std::fs::write(folder.join("assets/a.js"), "1").unwrap();
        let assets = Assets::Folder(folder);
        let script = get(&assets, "/console/assets/a.js", &[]).await.unwrap();
        assert_eq!(script.headers()["content-type"], "text/javascript; charset=utf-8");
        for wrong in [
            "../secret.js",
            "assets/../../secret.js",
            "..\\secret.js",
            "/etc/passwd",
            "assets/gone.js",
            ".hidden",
        ] {
            assert_eq!(get(&assets, &format!("/console/{wrong}"), &[]).await.unwrap_err(), 404, "{wrong}");
        }
    }

    #[test]
    fn brotli_is_sent_to_who_takes_it() {
        let takes = |value: &str| accepts_brotli(&map(&[("accept-encoding", value)]));
        assert!(takes("gzip, deflate, br") && takes("br;q=0.5") && takes("br"));
        assert!(!takes("gzip") && !takes("br;q=0") && !takes("br; q=0.0") && !takes("brotli"));
    }

    #[test]
    fn every_file_in_the_program_has_a_form_and_a_hash_of_its_bytes() {
        use sha2::{Digest, Sha256};
        assert!(generated::ASSETS.iter().any(|asset| asset.path == INDEX));
        for asset in generated::ASSETS {
            let hash: String =
                Sha256::digest(asset.plain).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(asset.etag, format!("\"{hash}\""), "{}", asset.path);
            assert_eq!(asset.content_type, content_type(asset.path), "{}", asset.path);
            assert_eq!(asset.immutable, asset.path.starts_with("assets/"), "{}", asset.path);
        }
    }
}
