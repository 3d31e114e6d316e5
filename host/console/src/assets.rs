//! The files of the pages: in the program, or read from a folder by whoever works on them.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::{headers, problem::Problem};

/// Below this are the pages.
pub const PREFIX: &str = "/console/";

/// The page for everything that is no file.
const INDEX: &str = "index.html";

/// Below this is what pages load.
const FOLDER: &str = "assets/";

/// The files of console/dist with their paths there, as `build.rs` lists them.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The same files as they are served, compressed once, for the first request. What pages load is below a hash of all files: a browser may
/// keep it, and never mixes the files of two versions.
static EMBEDDED: LazyLock<BTreeMap<String, Asset>> = LazyLock::new(|| {
    let hash = hash_of(FILES.iter().flat_map(|&(path, bytes)| [path.as_bytes(), bytes]));
    let folder = format!("{FOLDER}{hash}/");
    let assets = FILES.iter().map(|&(path, bytes)| {
        let plain = match path {
            INDEX => {
                let page = String::from_utf8_lossy(bytes);
                page.replace(&format!("{PREFIX}{FOLDER}"), &format!("{PREFIX}{folder}")).into()
            }
            _ => Bytes::from_static(bytes),
        };
        let asset = Asset::new(path, plain).compressed();
        match path.strip_prefix(FOLDER) {
            Some(name) => {
                let cache = "public, max-age=31536000, immutable";
                (format!("{folder}{name}"), Asset { cache, ..asset })
            }
            None => (path.to_owned(), asset),
        }
    });
    assets.collect()
});

/// The beginning of the sha256 of these bytes.
fn hash_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let hash = parts.into_iter().fold(Sha256::new(), Sha256::chain_update).finalize();
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// One file.
struct Asset {
    content_type: &'static str,
    cache: &'static str,
    /// The beginning of its sha256, in quotes.
    etag: HeaderValue,
    /// What a page may do.
    policy: Option<HeaderValue>,
    plain: Bytes,
    gzip: Option<Bytes>,
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
    pub fn serve(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "pages are read"));
        }
        let missing = || Problem::not_found("there is no such file");
        let path = path.strip_prefix(PREFIX).ok_or_else(missing)?;
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let wants_page = path.is_empty() || (accept.contains("text/html") && !path.starts_with(FOLDER));
        let mut paths = [Some(path), wants_page.then_some(INDEX)].into_iter().flatten();
        let found = match self {
            Self::Embedded => paths.find_map(|path| EMBEDDED.get(path)).map(|asset| asset.respond(headers)),
            Self::Folder(folder) => {
                paths.find_map(|path| read(folder, path)).map(|asset| asset.respond(headers))
            }
        };
        found.ok_or_else(missing)
    }
}

/// A file of a folder, and of none outside of it.
fn read(folder: &Path, path: &str) -> Option<Asset> {
    let mut parts = path.split('/');
    if !parts.all(|part| !part.is_empty() && !part.starts_with('.') && !part.contains('\\')) {
        return None;
    }
    Some(Asset::new(path, fs::read(folder.join(path)).ok()?.into()))
}

impl Asset {
    fn new(path: &str, plain: Bytes) -> Self {
        let content_type = content_type(path);
        let hash = hash_of([&plain[..]]);
        Self {
            content_type,
            cache: "no-cache",
            etag: HeaderValue::try_from(format!("\"{hash}\"")).unwrap_or(HeaderValue::from_static("\"\"")),
            policy: content_type.starts_with("text/html").then(|| headers::policy_for(&plain)),
            plain,
            gzip: None,
        }
    }

    /// The same, and for browsers that take it so, compressed, if that is smaller.
    fn compressed(self) -> Self {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let gzip = gzip.write_all(&self.plain).and_then(|()| gzip.finish());
        let gzip = gzip.ok().filter(|gzip| gzip.len() < self.plain.len()).map(Bytes::from);
        Self { gzip, ..self }
    }

    fn respond(&self, headers: &HeaderMap) -> Response {
        let gzip = self.gzip.as_ref().filter(|_| accepts_gzip(headers));
        let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        let is_own = |etag: &str| etag.trim().as_bytes() == self.etag.as_bytes();
        let is_known = known.is_some_and(|known| known.split(',').any(is_own));
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            Response::new(Body::from(gzip.unwrap_or(&self.plain).clone()))
        };
        let fields = response.headers_mut();
        fields.insert(header::ETAG, self.etag.clone());
        fields.insert(header::CACHE_CONTROL, HeaderValue::from_static(self.cache));
        fields.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        // An answer that says that nothing has changed changes the headers all the same.
        if let Some(policy) = &self.policy {
            fields.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
        }
        if !is_known {
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
            if gzip.is_some() {
                fields.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        response
    }
}

/// Whether a client takes gzip: named, and not refused by `q=0`.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next() == Some("gzip");
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.trim().parse::<f32>().ok());
        is_gzip && weight.is_none_or(|weight| weight > 0.0)
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
    use std::io::Read;

    use flate2::read::GzDecoder;
    use http_body_util::BodyExt;

    use super::*;

    fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn get(assets: &Assets, path: &str, pairs: &[(&'static str, &str)]) -> Result<Response, u16> {
        let served = assets.serve(&Method::GET, path, &map(pairs));
        served.map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn pages_are_the_index_and_files_that_are_missing_are_not() {
        let assets = Assets::Embedded;
        let index = get(&assets, "/console/", &[]).unwrap();
        assert_eq!(index.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(index.headers()["cache-control"], "no-cache");
        let etag = index.headers()["etag"].to_str().unwrap().to_owned();
        let known = get(&assets, "/console/", &[("if-none-match", &format!("\"x\", {etag}"))]).unwrap();
        assert_eq!(known.status(), 304);
        let html = [("accept", "text/html,*/*")];
        assert!(get(&assets, "/console/engine/modules", &html).is_ok());
        assert_eq!(get(&assets, "/console/engine/modules", &[("accept", "*/*")]).unwrap_err(), 404);
        assert_eq!(get(&assets, "/console/assets/gone-1234.js", &html).unwrap_err(), 404);
        let post = assets.serve(&Method::POST, "/console/", &HeaderMap::new());
        assert_eq!(post.unwrap_err().status, 405);
    }

    #[test]
    fn what_the_page_names_is_there_and_may_be_kept() {
        let index = String::from_utf8(EMBEDDED[INDEX].plain.to_vec()).unwrap();
        let named: Vec<&str> = index.split('"').filter(|part| part.starts_with("/console/assets/")).collect();
        assert!(named.len() >= 4, "{index}");
        for path in named {
            let file = get(&Assets::Embedded, path, &[]).unwrap();
            assert!(file.headers()["cache-control"].to_str().unwrap().ends_with("immutable"), "{path}");
        }
        // A page of an older version, whose files had another hash.
        assert_eq!(get(&Assets::Embedded, "/console/assets/main.js", &[]).unwrap_err(), 404);
    }

    #[test]
    fn the_script_in_the_page_may_run_and_no_other() {
        let script_sources = |response: &Response| {
            let policy = response.headers()["content-security-policy"].to_str().unwrap();
            let sources = policy.split("; ").find_map(|rule| rule.strip_prefix("script-src "));
            sources.unwrap().to_owned()
        };
        let assets = Assets::Embedded;
        let index = get(&assets, "/console/", &[]).unwrap();
        let sources = script_sources(&index);
        let hashes: Vec<&str> = sources.split(' ').skip(1).collect();
        assert!(sources.starts_with("'self' 'sha256-") && hashes.len() == 1, "{sources}");
        let etag = index.headers()["etag"].to_str().unwrap();
        let unchanged = get(&assets, "/console/", &[("if-none-match", etag)]).unwrap();
        assert_eq!(script_sources(&unchanged), sources);
        let page = headers::policy_for(b"<script src=\"a.js\"></script><script>alert(1)</script>");
        // By `printf 'alert(1)' | openssl dgst -sha256 -binary | base64`.
        let hash = "script-src 'self' 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';";
        assert!(page.to_str().unwrap().contains(hash), "{page:?}");
        assert!(!headers::policy_for(b"").to_str().unwrap().contains("sha256"));
    }

    #[test]
    fn a_folder_is_read_and_never_left() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("dist");
        std::fs::create_dir_all(folder.join("assets")).unwrap();
        std::fs::write(outside.path().join("secret.js"), "no").unwrap();
        std::fs::write(folder.join("index.html"), "index").unwrap();
        std::fs::write(folder.join("assets/a.js"), "1").unwrap();
        let assets = Assets::Folder(folder);
        let script = get(&assets, "/console/assets/a.js", &[]).unwrap();
        assert_eq!(script.headers()["content-type"], "text/javascript; charset=utf-8");
        for wrong in [
            "../secret.js",
            "assets/../../secret.js",
            "..\\secret.js",
            "/etc/passwd",
            "assets/gone.js",
            ".hidden",
        ] {
            assert_eq!(get(&assets, &format!("/console/{wrong}"), &[]).unwrap_err(), 404, "{wrong}");
        }
    }

    #[test]
    fn gzip_is_sent_to_who_takes_it() {
        let takes = |value: &str| accepts_gzip(&map(&[("accept-encoding", value)]));
        assert!(takes("gzip, deflate, br") && takes("gzip;q=0.5") && takes("gzip"));
        assert!(!takes("br") && !takes("gzip;q=0") && !takes("gzip; q=0.0") && !takes("x-gzip"));
    }

    #[tokio::test]
    async fn what_is_compressed_is_the_same_file_and_smaller() {
        let index = get(&Assets::Embedded, "/console/", &[("accept-encoding", "gzip")]).unwrap();
        assert_eq!(index.headers()["content-encoding"], "gzip");
        let sent = index.into_body().collect().await.unwrap().to_bytes();
        let (mut read, plain) = (Vec::new(), &EMBEDDED[INDEX].plain);
        GzDecoder::new(&sent[..]).read_to_end(&mut read).unwrap();
        assert!(read == plain[..] && sent.len() < plain.len());
    }

    #[test]
    fn every_file_in_the_program_has_a_form() {
        for (path, _) in FILES {
            assert_ne!(content_type(path), "application/octet-stream", "{path}");
        }
    }
}
