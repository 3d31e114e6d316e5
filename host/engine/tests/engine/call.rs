//! What a call of a guest returns: answers, failures, traps, and the limits on an answer's size.

use std::time::Duration;

use pintle_engine::{CallLimits, Meter, Origin, fixtures};
use pintle_wit::{Limits, Response, reasons};

use crate::support::{EMPTY_RESPONSE, call_error, engine, fails_with, load_guest, long_limits, manifest};

fn answer(rest: &str) -> String {
    format!(r#"{{"apiVersion":"guest.pintle.dev/v1",{rest}}}"#)
}

#[test]
fn an_answer_is_read_and_kept_as_it_was_written() {
    let text = answer(r#""status":{"b":1, "a":2}"#);
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::answers(&manifest(), &text));
    let answer = guest.reconcile("{}", &long_limits()).unwrap();
    assert_eq!(answer.text, text);
    assert_ne!(answer.response, Response::default());
    assert_eq!(answer.stats.response_bytes, text.len());
    assert!(answer.stats.duration > Duration::ZERO);
    assert_eq!(answer.stats.fuel, None);
    assert_eq!(answer.stats.peak_memory_bytes, 2 * 65536);
}

#[test]
fn a_request_reaches_the_guest_unchanged_whatever_its_size() {
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::echoes(&manifest()));
    for size in [0, 1, 1000, 1_000_000] {
        let request = answer(&format!(r#""status":{{"text":"{}"}}"#, "é".repeat(size / 2)));
        let answer = guest.reconcile(&request, &long_limits()).unwrap();
        assert_eq!(answer.text, request);
    }
}

#[test]
fn what_a_guest_says_of_itself_can_be_asked_again() {
    let guest = load_guest(&engine(Meter::Fuel), &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    let (text, stats) = guest.describe(&long_limits()).unwrap();
    assert_eq!(text, manifest());
    assert!(stats.fuel.is_some_and(|fuel| fuel > 0));
}

#[test]
fn the_failure_of_a_guest_is_its_own() {
    let text =
        answer(r#""reason":"BucketMissing","message":"name a bucket","path":"spec.source","retry":false"#);
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::fails(&manifest(), &text));
    let error = call_error(&guest, &long_limits());
    assert_eq!(error.origin, Origin::Guest);
    assert_eq!(error.failure.reason, "BucketMissing");
    assert_eq!(error.failure.path.as_deref(), Some("spec.source"));
    assert_eq!(error.stats.response_bytes, text.len());
}

#[test]
fn a_failure_that_is_no_failure_document_is_shown() {
    let (failure, _) = fails_with(&fixtures::fails(&manifest(), "oh\nno"), reasons::INVALID_JSON);
    assert!(failure.message.ends_with(r"the guest said `oh\nno`"), "{failure}");
    let text = answer(r#""reason":"X","message":"y","hint":"z""#);
    fails_with(&fixtures::fails(&manifest(), &text), reasons::UNKNOWN_FIELD);
    fails_with(&fixtures::fails(&manifest(), &answer(r#""reason":"X""#)), reasons::INVALID_DOCUMENT);
}

#[test]
fn a_reason_that_kubernetes_would_refuse_is_no_reason() {
    for reason in ["", "bucket missing", "bucketMissing", "Bücket", &"X".repeat(129)] {
        let text = answer(&format!(r#""reason":"{reason}","message":"m""#));
        let (failure, _) = fails_with(&fixtures::fails(&manifest(), &text), reasons::INVALID_DOCUMENT);
        assert_eq!(failure.path.as_deref(), Some("reason"));
    }
}

#[test]
fn a_trap_names_the_functions_that_led_to_it() {
    let (failure, _) = fails_with(&fixtures::traps(&manifest()), reasons::TRAP);
    assert!(!failure.retry);
    assert!(failure.message.contains("panic"), "{failure}");
    assert!(failure.message.ends_with(", in `begin_panic`, called by `reconcile`"), "{failure}");
}

#[test]
fn a_stack_in_memory_that_was_used_up_is_hinted_at() {
    let (failure, _) = fails_with(&fixtures::recurses_in_memory(&manifest()), reasons::TRAP);
    assert!(failure.message.contains("stack"), "{failure}");
}

#[test]
fn endless_recursion_uses_up_the_stack() {
    let (failure, _) = fails_with(&fixtures::recurses(&manifest()), reasons::STACK);
    assert!(!failure.retry);
}

#[test]
fn endless_allocation_ends_at_the_limit() {
    let (failure, stats) = fails_with(&fixtures::allocates(&manifest()), reasons::MEMORY);
    assert!(failure.retry);
    assert!(failure.message.ends_with("the limit is 67108864"), "{failure}");
    assert!((60 << 20..=64 << 20).contains(&stats.peak_memory_bytes), "{stats:?}");
}

#[test]
fn the_memory_that_a_guest_starts_with_counts() {
    fails_with(&fixtures::starts_with(&manifest(), 63 << 20), reasons::INVALID_JSON);
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::starts_with(&manifest(), 20 << 20));
    let limits = CallLimits { memory_bytes: 10 << 20, ..long_limits() };
    assert_eq!(call_error(&guest, &limits).failure.reason, reasons::MEMORY);
}

#[test]
fn an_answer_of_8_mib_is_refused_before_it_is_read() {
    let (failure, stats) = fails_with(&fixtures::returns_big(&manifest(), 8 << 20), reasons::TOO_LARGE);
    assert!(!failure.retry);
    assert_eq!(failure.message, "the guest's answer is larger than 1048576 bytes");
    assert_eq!(stats.response_bytes, 0);
}

#[test]
fn an_answer_as_large_as_its_limit_is_read() {
    let text = answer(r#""status":{"a":"bcd"}"#);
    let engine = engine(Meter::Deadline);
    let guest = load_guest(&engine, &fixtures::answers(&manifest(), &text));
    let limits = |bytes| CallLimits { response: Limits::of_bytes(bytes), ..long_limits() };
    assert!(guest.reconcile("{}", &limits(text.len())).is_ok());
    assert_eq!(call_error(&guest, &limits(text.len() - 1)).failure.reason, reasons::TOO_LARGE);
    let guest = load_guest(&engine, &fixtures::fails(&manifest(), &text));
    assert_eq!(call_error(&guest, &limits(text.len() - 1)).failure.reason, reasons::TOO_LARGE);
}

#[test]
fn an_answer_outside_the_memory_is_out_of_bounds() {
    fails_with(&fixtures::out_of_bounds(&manifest()), reasons::OUT_OF_BOUNDS);
    fails_with(&fixtures::answer_outside(&manifest()), reasons::OUT_OF_BOUNDS);
}

#[test]
fn an_answer_that_is_not_utf8_is_said_to_be_so() {
    let (failure, _) = fails_with(&fixtures::invalid_utf8(&manifest()), reasons::NOT_UTF8);
    assert!(failure.message.contains("index 51"), "{failure}");
}

#[test]
fn an_answer_that_breaks_the_contract_has_the_reason_of_the_contract() {
    let deep = answer(&format!(r#""status":{{"a":{}{}}}"#, "[".repeat(70), "]".repeat(70)));
    for (text, reason) in [
        ("{\"apiVersion\":", reasons::INVALID_JSON),
        (&answer(r#""status":{"a":1,"a":2}"#), reasons::INVALID_JSON),
        (&answer(r#""childern":[]"#), reasons::UNKNOWN_FIELD),
        (&deep, reasons::TOO_DEEP),
        (&answer(r#""status":7"#), reasons::INVALID_DOCUMENT),
        ("{}", reasons::INVALID_DOCUMENT),
    ] {
        let (failure, stats) = fails_with(&fixtures::answers(&manifest(), text), reason);
        assert!(!failure.retry, "{failure}");
        assert_eq!(stats.response_bytes, text.len());
    }
}

#[test]
fn an_answer_of_too_many_values_is_refused_before_any_is_made() {
    let begin = answer(r#""status":{"a":["#);
    let begin = begin.trim_end_matches('}');
    let bytes = fixtures::repeats(&manifest(), begin, r#"{"":0},"#, "0]}}", 1 << 20);
    assert!(bytes.len() < 10_000);
    let (failure, stats) = fails_with(&bytes, reasons::TOO_COMPLEX);
    assert!(!failure.retry);
    // The document, its version, its status and the list; two of each item.
    assert_eq!(failure.path.as_deref(), Some("status.a[32766]"));
    assert!(stats.response_bytes > 1_000_000 && stats.parsed_bytes == 0, "{stats:?}");
}

#[test]
fn an_answer_that_takes_more_memory_than_its_call_was_granted_says_how_much_it_is() {
    let text = answer(&format!(r#""status":{{"a":[{}]}}"#, vec![r#"{"":0}"#; 1000].join(",")));
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::answers(&manifest(), &text));
    let granted = |parsed_bytes| CallLimits {
        response: Limits { parsed_bytes, ..Limits::default() },
        ..CallLimits::default()
    };
    let error = call_error(&guest, &granted(100_000));
    assert_eq!(error.failure.reason, reasons::BEYOND_GRANT);
    let answer = guest.reconcile("{}", &granted(error.stats.parsed_bytes)).unwrap();
    assert_eq!(answer.stats.parsed_bytes, error.stats.parsed_bytes);
}

#[test]
fn a_guest_may_write_to_all_the_memory_that_it_has() {
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::fills(&manifest(), 60 << 20, EMPTY_RESPONSE));
    let answer = guest.reconcile("{}", &long_limits()).unwrap();
    assert!(answer.stats.peak_memory_bytes >= 60 << 20, "{:?}", answer.stats);
}

#[test]
fn a_message_that_a_guest_made_long_is_cut() {
    let text = answer(&format!(r#""{}":1"#, "x".repeat(100_000)));
    let (failure, _) = fails_with(&fixtures::answers(&manifest(), &text), reasons::UNKNOWN_FIELD);
    assert!(failure.message.len() <= 1024);
    assert!(failure.path.is_none_or(|path| path.len() <= 256));
}

#[test]
fn a_guest_that_asks_anew_asks_for_another_field_with_each_time_that_it_is_told() {
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::asks_anew(&manifest()));
    let asked = |request: &str| guest.reconcile(request, &long_limits()).unwrap().response.needs;
    let first = asked(r#"{"object":{}}"#);
    assert_eq!(first.len(), 1);
    for time in ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"] {
        let request = format!(
            r#"{{"object":{{}},"needs":[{{"need":{{"clock":{{"stepSeconds":1}}}},"time":"{time}"}}]}}"#
        );
        let needs = asked(&request);
        assert_eq!((needs.len(), &needs[0]), (1 + fixtures::NEEDS_ASKED_ANEW, &first[0]));
        for need in &needs[1..] {
            let pintle_wit::Need::Objects(need) = need else { panic!("{need:?}") };
            assert_eq!(need.fields, [format!("data.t{time}")]);
        }
    }
}
