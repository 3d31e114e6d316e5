//! Whether what a text weighs is an upper bound of what an allocator is asked for when the text is parsed.
#![cfg(feature = "host")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of a test fail as the test does")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use pintle_wit::{Limits, Weight, parse_response};

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: isize) {
    // A thread that ends may free after its counter is gone.
    let _ = HELD_BYTES.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK_BYTES.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

#[allow(unsafe_code, reason = "an allocator that counts cannot be written otherwise")]
// SAFETY: every call goes to the system's allocator as it is. What grows is made anew, so that both are counted while it does.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What parsing a text takes at the most, in bytes.
fn peak_bytes(text: &str) -> usize {
    let before = HELD_BYTES.with(Cell::get);
    PEAK_BYTES.with(|peak| peak.set(before));
    let parsed = parse_response(text, Limits::default());
    let peak = PEAK_BYTES.with(Cell::get) - before;
    drop(parsed);
    peak.max(0) as usize
}

/// What a text weighs.
fn parsed_bytes(text: &str) -> usize {
    Weight::of(text, Limits::default()).unwrap().parsed_bytes()
}

/// So many of something as the limits of values and of bytes allow, inside an answer.
fn answer(field: &str, one: impl Fn(usize) -> String, end: &str, values_each: usize) -> String {
    let limits = Limits::default();
    let mut text = format!(r#"{{"apiVersion":"guest.pintle.dev/v1",{field}"#);
    for number in 0..(limits.values - 16) / values_each {
        let one = one(number);
        if text.len() + one.len() + end.len() + 1 > limits.bytes {
            break;
        }
        text.push_str(&one);
        text.push(',');
    }
    text.pop();
    text + end
}

fn answers() -> Vec<(&'static str, String)> {
    let text = |text: &'static str| move |_: usize| text.to_owned();
    let owned = |text: String| move |_: usize| text.clone();
    let whole = |rest: &str| format!(r#"{{"apiVersion":"guest.pintle.dev/v1",{rest}}}"#);
    let long = |fill: &str| fill.repeat((1 << 19) / fill.len());
    let status = r#""status":{"a":["#;
    let chain = format!("{}{{}}{}", r#"{"":"#.repeat(55), "}".repeat(55));
    let keyed = format!("{}0{}", r#"{"k":"#.repeat(55), "}".repeat(55));
    let lists = format!("{}{}", "[".repeat(56), "]".repeat(56));
    let labels = r#"{"objects":{"apiVersion":"","kind":"","select":{"labels":{"matchLabels":{"":""}}}}}"#;
    let requirements =
        r#""needs":[{"objects":{"apiVersion":"","kind":"","select":{"labels":{"matchExpressions":["#;
    let fields = r#""needs":[{"objects":{"apiVersion":"","kind":"","select":{"name":"a"},"fields":["#;
    let disorder = |n: usize| format!(r#""{:x}":0"#, n * 7919 % 65_521);
    vec![
        ("maps of one", answer(status, text(r#"{"":0}"#), "]}}", 2)),
        ("maps in maps", answer(status, owned(chain), "]}}", 56)),
        ("maps in maps with keys", answer(status, owned(keyed), "]}}", 56)),
        ("lists in lists", answer(status, owned(lists), "]}}", 56)),
        ("lists of one", answer(status, text("[0]"), "]}}", 2)),
        ("empty texts", answer(status, text(r#""""#), "]}}", 1)),
        ("short texts", answer(status, text(r#""a""#), "]}}", 1)),
        ("escaped texts", answer(status, text(r#""\u0001""#), "]}}", 1)),
        ("numbers", answer(status, text("1.5"), "]}}", 1)),
        ("one map", answer(r#""status":{"#, |n| format!(r#""{n:x}":0"#), "}}", 1)),
        ("one map backwards", answer(r#""status":{"#, |n| format!(r#""{:05x}":0"#, 0xf_ffff - n), "}}", 1)),
        ("one map in disorder", answer(r#""status":{"#, disorder, "}}", 1)),
        ("children", answer(r#""children":["#, text(r#"{"id":"","object":0}"#), "]}", 3)),
        ("children of maps", answer(r#""children":["#, text(r#"{"id":"","object":{"":{}}}"#), "]}", 4)),
        ("deadlines", answer(r#""needs":["#, text(r#"{"deadline":""}"#), "]}", 2)),
        ("needs by labels", answer(r#""needs":["#, text(labels), "]}", 8)),
        (
            "requirements",
            answer(requirements, text(r#"{"key":"","operator":"In","values":[""]}"#), "]}}}}]}", 5),
        ),
        ("fields", answer(fields, text(r#""""#), "]}}]}", 1)),
        (
            "conditions",
            answer(r#""conditions":["#, text(r#"{"type":"","status":"True","reason":""}"#), "]}", 4),
        ),
        ("events", answer(r#""events":["#, text(r#"{"type":"Normal","reason":"","message":""}"#), "]}", 4)),
        ("pods", answer(r#""evictions":{"pods":["#, text(r#"{"name":"","uid":""}"#), "]}}", 3)),
        ("patches", answer(r#""patches":["#, text(r#"{"object":0}"#), "]}", 2)),
        ("stamps", answer(r#""stamps":{"#, |n| format!(r#""{n:x}":"""#), "}}", 1)),
        ("an unknown field", whole(&format!(r#""{}":0"#, long("k")))),
        ("a wrong type", whole(&format!(r#""finalized":"{}""#, long("\u{7f}")))),
        ("another wrong type", whole(&format!(r#""children":"{}""#, long("\u{200b}")))),
        ("an unknown variant", whole(&format!(r#""evictions":{{"pods":[],"mode":"{}"}}"#, long(r"\u0001")))),
        ("a wrong end", answer(status, text(r#"{"":0}"#), "]}}x", 2)),
        ("a wrong last item", answer(status, text(r#"{"":0}"#), r#",{"a":0,"a":0}]}}"#, 2)),
    ]
}

#[test]
fn what_a_text_weighs_is_no_less_than_what_parsing_it_takes() {
    for (name, text) in answers() {
        let (said, peak) = (parsed_bytes(&text), peak_bytes(&text));
        let values = Weight::of(&text, Limits::default()).unwrap().values;
        println!("{name}: {values} values in {} bytes, {peak} of memory, it weighs {said}", text.len());
        assert!(peak <= said, "{name}: {peak} bytes, it weighs {said}");
        assert!(said <= Weight::parsed_bytes_max(Limits::default()), "{name}");
    }
}

#[test]
fn an_ordinary_answer_weighs_little() {
    let deployment = r#"{"id":"deployment","object":{"apiVersion":"apps/v1","kind":"Deployment",
        "metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
        "template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"nginx:1.23.1",
        "ports":[{"containerPort":80,"name":"http"}],"env":[{"name":"A","value":"b"},{"name":"C","value":"d"}],
        "resources":{"requests":{"cpu":"50m","memory":"64Mi"}}}]}}}}}"#;
    let children = [deployment; 5].join(",");
    let text = format!(r#"{{"apiVersion":"guest.pintle.dev/v1","children":[{children}]}}"#);
    assert!(parsed_bytes(&text) < 128 << 10, "{} of {} bytes", parsed_bytes(&text), text.len());
}
