//! Bodies of requests: they arrive at a pace, and are JSON or YAML, read strictly.

use std::{pin::pin, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use pintle_core::view::{Status, accept::Body, query::FieldValidation};
use pintle_schema::strict;
use serde::de::Error;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// The largest body, in bytes: as much as the API server takes.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// How long the first bytes may take: a client that has something to send does so at once.
const BEGINS: Duration = Duration::from_secs(5);

/// How many bytes come in each second from then on, at least: less than the slowest telephone sends.
const BYTES_A_SECOND: u32 = 16 << 10;

/// How long a body may take.
const WHOLE: Duration = Duration::from_secs(60);

/// Reads a body whole.
///
/// # Errors
/// 413 for one that is too large, 408 for one that comes too slowly, and 400 for one that breaks off.
pub(crate) async fn read<B>(headers: &HeaderMap, body: B) -> Result<Bytes, Status>
where
    B: http_body::Body<Data = Bytes>,
{
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX) {
        return Err(Status::too_large(BODY_BYTES_MAX));
    }
    let mut body = pin!(body);
    let mut read = BytesMut::new();
    let began = Instant::now();
    loop {
        let deadline = began + due(read.len());
        let frame = timeout_at(deadline, body.frame()).await.map_err(|_| Status::too_slow())?;
        // Of a body that always has something, if only a little, the next piece is there whenever it is asked for.
        if Instant::now() > deadline {
            return Err(Status::too_slow());
        }
        let Some(frame) = frame else { return Ok(read.freeze()) };
        let frame = frame.map_err(|_| Status::bad_request("the body is not complete"))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > BODY_BYTES_MAX {
            return Err(Status::too_large(BODY_BYTES_MAX));
        }
        read.extend_from_slice(&data);
    }
}

/// When the next bytes are due, from the beginning, after so many came.
fn due(received: usize) -> Duration {
    let sent = Duration::from_secs_f64(received as f64 / f64::from(BYTES_A_SECOND));
    BEGINS.saturating_add(sent).min(WHOLE)
}

/// Reads an object.
///
/// # Errors
/// 400 for what is none, or has a field twice where the client wants to be strict.
pub(crate) fn object(
    form: Body,
    bytes: &[u8],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let (object, duplicates) = match form {
        Body::Json => {
            let parsed = strict::parse(bytes)
                .map_err(|error| Status::bad_request(format!("the body is no JSON: {error}")))?;
            (parsed.value, parsed.duplicates)
        }
        Body::Yaml => (yaml(bytes)?, Vec::new()),
    };
    match object.is_object() {
        true => {
            warnings.extend(validation.judge(&duplicates, &[]).map_err(Status::bad_request)?);
            Ok(object)
        }
        false => Err(Status::bad_request("the body is no object")),
    }
}

/// Reads a YAML document. A key that is there twice is always an error in YAML.
fn yaml(bytes: &[u8]) -> Result<Value, Status> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Status::bad_request(format!("the body is no UTF-8: {error}")))?;
    // Read as JSON is, so that a number means the same, and none is lost: YAML knows infinity.
    let read =
        serde_saphyr::with_deserializer_from_str(text, |yaml| strict::read(yaml).map_err(Error::custom));
    read.map(|parsed| parsed.value)
        .map_err(|error| Status::bad_request(format!("the body is no YAML: {error}")))
}

/// The fields that a patch has twice. Of a list of operations none are told.
pub(crate) fn duplicates(patch: &[u8]) -> Vec<String> {
    strict::parse(patch)
        .ok()
        .filter(|parsed| parsed.value.is_object())
        .map_or_else(Vec::new, |parsed| parsed.duplicates)
}

/// The refusal of a patch that cannot be read, with the field at which reading ends, if that is within one.
pub(crate) fn at_its_field(refused: Status, patch: &[u8]) -> Status {
    match strict::parse(patch) {
        Err(unreadable) if !unreadable.path.is_empty() => {
            Status::bad_request(format!("error decoding patch: {unreadable}"))
        }
        _ => refused,
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, task::Poll};

    use axum::body::Body as Sent;
    use futures::{StreamExt, stream};
    use http_body_util::Full;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_due_after_a_head_start_at_its_pace_and_within_a_minute() {
        for (bytes, seconds) in
            [(0, 5), (1, 5), (16 << 10, 6), (160 << 10, 15), (1 << 20, 60), (3 << 20, 60), (usize::MAX, 60)]
        {
            assert_eq!(due(bytes).as_secs(), seconds, "{bytes}");
        }
    }

    /// Pieces of so many bytes, each after so many milliseconds, and then the end, or none for ever.
    fn pieces(pieces: &[(u64, usize)], ends: bool) -> Sent {
        let pieces = stream::iter(pieces.to_vec()).then(|(milliseconds, bytes)| async move {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Ok::<_, Infallible>(Bytes::from(vec![b' '; bytes]))
        });
        let rest = stream::poll_fn(move |_| if ends { Poll::Ready(None) } else { Poll::Pending });
        Sent::from_stream(pieces.chain(rest))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_pauses_is_waited_for_until_it_is_behind_its_pace() {
        let second = 16 << 10;
        for (what, sent, ends, expected) in [
            ("at once", vec![(0, 2_000)], true, Ok(2_000)),
            ("nothing", vec![], true, Ok(0)),
            ("short and late", vec![(4_900, 1)], true, Ok(1)),
            ("a quick half, and a pause", vec![(0, second), (5_500, second)], true, Ok(2 * second)),
            ("a mebibyte in time", vec![(58, 1 << 10); 1_024], true, Ok(1 << 20)),
            ("a mebibyte too late", vec![(60, 1 << 10); 1_024], true, Err(408)),
            ("not at all", vec![], false, Err(408)),
            ("a byte a second", vec![(1_000, 1); 60], true, Err(408)),
            ("a byte, and no more", vec![(0, 1)], false, Err(408)),
            ("at the pace for too long", vec![(900, second); 100], true, Err(408)),
            ("too large", vec![(0, BODY_BYTES_MAX), (0, 1)], true, Err(413)),
        ] {
            let read = read(&HeaderMap::new(), pieces(&sent, ends)).await;
            let read = read.map(|body| body.len()).map_err(|status| status.code);
            assert_eq!(read, expected, "{what}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_announced_too_large_is_not_read() {
        let headers = HeaderMap::from_iter([(header::CONTENT_LENGTH, (BODY_BYTES_MAX + 1).into())]);
        let refused = read(&headers, Full::new(Bytes::new())).await.unwrap_err();
        assert_eq!(refused.code, 413);
    }

    fn parsed(form: Body, text: &str, validation: FieldValidation) -> (Result<Value, u16>, Vec<String>) {
        let mut warnings = Vec::new();
        let object = object(form, text.as_bytes(), validation, &mut warnings).map_err(|status| status.code);
        (object, warnings)
    }

    #[test]
    fn an_object_is_read_from_json_and_yaml() {
        let object = json!({"spec": {"weight": 31.4}});
        assert_eq!(parsed(Body::Json, &object.to_string(), FieldValidation::Strict).0, Ok(object.clone()));
        assert_eq!(parsed(Body::Yaml, "spec:\n  weight: 31.4\n", FieldValidation::Strict).0, Ok(object));
        for wrong in ["", "[]", "{", "1"] {
            assert_eq!(parsed(Body::Json, wrong, FieldValidation::Ignore).0, Err(400), "{wrong}");
            assert_eq!(parsed(Body::Yaml, wrong, FieldValidation::Ignore).0, Err(400), "{wrong}");
        }
    }

    #[test]
    fn a_number_that_no_double_is_is_refused_with_its_field() {
        for (form, text) in [
            (Body::Json, r#"{"spec": {"weight": 1e400}}"#),
            (Body::Yaml, "spec:\n  weight: 1e400\n"),
            (Body::Yaml, "spec:\n  weight: .inf\n"),
            (Body::Yaml, "spec:\n  weight: .nan\n"),
        ] {
            let refused =
                object(form, text.as_bytes(), FieldValidation::Ignore, &mut Vec::new()).unwrap_err();
            assert_eq!(refused.code, 400, "{text}");
            assert!(refused.message.contains("spec.weight: "), "{}", refused.message);
        }
        let refused = Status::bad_request("error decoding patch");
        let named =
            at_its_field(refused.clone(), br#"[{"op": "add", "path": "/spec/weight", "value": 1e400}]"#);
        assert!(named.message.starts_with("error decoding patch: [0].value: "), "{}", named.message);
        assert_eq!(at_its_field(refused.clone(), b"{").message, refused.message);
        let exact = json!({"spec": {"weight": 9_007_199_254_740_993_i64, "height": 254.628_595_660_358_34}});
        let text = "spec:\n  weight: 9007199254740993\n  height: 254.62859566035834\n";
        assert_eq!(parsed(Body::Yaml, text, FieldValidation::Strict).0, Ok(exact.clone()));
        assert_eq!(parsed(Body::Json, &exact.to_string(), FieldValidation::Strict).0, Ok(exact));
    }

    #[test]
    fn a_field_that_is_there_twice_is_refused_told_or_let_be() {
        let text = r#"{"spec": {"a": 1, "a": 2}}"#;
        assert_eq!(parsed(Body::Json, text, FieldValidation::Strict).0, Err(400));
        let (object, warnings) = parsed(Body::Json, text, FieldValidation::Warn);
        assert_eq!(
            (object.unwrap()["spec"]["a"].clone(), warnings),
            (json!(2), vec!["duplicate field \"spec.a\"".to_owned()])
        );
        assert!(parsed(Body::Json, text, FieldValidation::Ignore).1.is_empty());
    }

    #[test]
    fn a_field_that_a_merge_patch_has_twice_is_named() {
        assert_eq!(duplicates(br#"{"spec": {"a": 1, "a": 2}, "b": 3}"#), ["spec.a"]);
        assert!(duplicates(br#"[{"op": "test", "path": "/a", "path": "/b"}]"#).is_empty());
        assert!(duplicates(b"{").is_empty());
    }
}
