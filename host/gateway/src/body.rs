//! Bodies of requests: they arrive at a pace, and are JSON or YAML, read strictly.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use pintle_core::view::{Status, accept::Body, query::FieldValidation};
use pintle_runtime::clock;
use pintle_schema::strict;
use serde::de::Error;
use serde_json::Value;

/// The largest body, in bytes: as much as the API server takes.
pub(crate) const BODY_BYTES_MAX: usize = 3 << 20;

/// How long the first byte of a body may take, and how far the others may be behind their pace: a lost packet is sent again by then.
pub(crate) const BODY_HEAD_START: Duration = Duration::from_secs(5);

/// The pace of a body, in bytes a second: what the slowest lines have that anybody works over.
pub(crate) const BODY_BYTES_PER_SECOND: u64 = 16 << 10;

/// How long a body may take in all: as long as the API server lets a request take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// When the next byte of a body must be there, of which so many are, since the reading began. A short body is not late for being short.
fn due(bytes: usize) -> Duration {
    let millis = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000) / BODY_BYTES_PER_SECOND;
    BODY_HEAD_START.saturating_add(Duration::from_millis(millis)).min(BODY_TIMEOUT)
}

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
    let mut body = std::pin::pin!(body);
    let mut read = BytesMut::new();
    let began = clock::monotonic();
    loop {
        let due = began + due(read.len());
        let frame = tokio::time::timeout(due.saturating_sub(clock::monotonic()), body.frame()).await;
        // Of a body that always has something, if only a little, the next piece is there whenever it is asked for.
        let frame = frame.ok().filter(|_| clock::monotonic() <= due).ok_or_else(Status::too_slow)?;
        let Some(frame) = frame else { return Ok(read.freeze()) };
        let frame = frame.map_err(|_| Status::bad_request("the body is not complete"))?;
        if let Ok(data) = frame.into_data() {
            if read.len() + data.len() > BODY_BYTES_MAX {
                return Err(Status::too_large(BODY_BYTES_MAX));
            }
            read.extend_from_slice(&data);
        }
    }
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

/// The refusal of a patch that cannot be read, with the field at which reading ends, if that is within one.
pub(crate) fn at_its_field(refused: Status, patch: &[u8]) -> Status {
    match strict::parse(patch) {
        Err(unreadable) if !unreadable.path.is_empty() => {
            Status::bad_request(format!("error decoding patch: {unreadable}"))
        }
        _ => refused,
    }
}

/// What becomes of fields that the schema does not have.
///
/// # Errors
/// 400 where the client wants to be strict.
pub(crate) fn unknown_fields(
    unknown: &[String],
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    warnings.extend(validation.judge(&[], unknown).map_err(Status::bad_request)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt, stream};
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use serde_json::json;

    use super::*;
    use crate::reviews::tests::with_clock;

    /// Pieces of so many bytes, each after so many milliseconds, and then none for ever, or the end.
    fn pieces(pieces: &[(u64, usize)], ends: bool) -> impl http_body::Body<Data = Bytes, Error = Infallible> {
        let pieces = stream::iter(pieces.to_vec()).then(|(millis, bytes)| async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok(Frame::data(Bytes::from(vec![b' '; bytes])))
        });
        let rest = stream::poll_fn(move |_| match ends {
            true => std::task::Poll::Ready(None),
            false => std::task::Poll::Pending,
        });
        StreamBody::new(pieces.chain(rest))
    }

    #[test]
    fn a_body_is_due_after_a_head_start_at_its_pace_and_within_a_minute() {
        for (bytes, seconds) in
            [(0, 5), (1, 5), (16 << 10, 6), (160 << 10, 15), (1 << 20, 60), (BODY_BYTES_MAX, 60)]
        {
            assert_eq!(due(bytes).as_secs(), seconds, "{bytes}");
        }
        assert_eq!(due(usize::MAX), BODY_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_slowly_is_not_waited_for_and_a_short_one_is() {
        let second = 16 << 10;
        let steady = |pieces: usize| vec![(900, second); pieces];
        for (what, sent, ends, expected) in [
            ("at once", vec![(0, 2_000)], true, Ok(2_000)),
            ("nothing", vec![], true, Ok(0)),
            ("short and late", vec![(4_900, 1)], true, Ok(1)),
            ("a quick half, and a pause", vec![(0, second), (5_500, second)], true, Ok(2 * second)),
            ("at the pace", steady(50), true, Ok(50 * second)),
            ("not at all", vec![], false, Err(408)),
            ("too late", vec![(5_100, 1)], true, Err(408)),
            ("a byte a second", vec![(1_000, 1); 60], true, Err(408)),
            ("a byte, and no more", vec![(0, 1)], false, Err(408)),
            ("at the pace for too long", steady(100), true, Err(408)),
            ("too large", vec![(0, BODY_BYTES_MAX), (0, 1)], true, Err(413)),
        ] {
            let read = with_clock(async { read(&HeaderMap::new(), pieces(&sent, ends)).await }).await;
            assert_eq!(read.map(|body| body.len()).map_err(|status| status.code), expected, "{what}");
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
}
