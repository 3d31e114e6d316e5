//! The headers of every answer.

use base64::prelude::{BASE64_STANDARD, Engine};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};

/// What a page may do: load from here alone, run no script that is made of text, be framed by nobody.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; font-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types pintle-worker";

/// The policy for a page with scripts in it, as `npm run build` puts them there: these may run too, told by their hashes, and no others.
pub(crate) fn policy_for(page: &[u8]) -> HeaderValue {
    let page = String::from_utf8_lossy(page);
    let scripts = page.split("<script>").skip(1).filter_map(|rest| rest.split_once("</script>"));
    let sources: String = scripts
        .map(|(script, _)| format!(" 'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()))))
        .collect();
    let policy = CONTENT_SECURITY_POLICY.replace("script-src 'self'", &format!("script-src 'self'{sources}"));
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static(CONTENT_SECURITY_POLICY))
}

const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// For how long a browser is to insist on TLS, where we serve it.
const STRICT_TRANSPORT_SECURITY: &str = "max-age=31536000";

/// Sets what every answer has. An answer without a rule for caches is not kept, and one without a policy has the strictest.
pub fn secure(headers: &mut HeaderMap, serves_tls: bool) {
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if serves_tls {
        let value = HeaderValue::from_static(STRICT_TRANSPORT_SECURITY);
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}
