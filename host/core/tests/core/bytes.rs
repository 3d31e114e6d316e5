//! Whether what a kept child says of its size is what the allocator says.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use jiff::Timestamp;
use pintle_core::{
    Kept, Names, Observed,
    bulk::Bulk,
    object,
    view::{
        Access, BackingObject, Cut, Epoch, Lens, Served, Source,
        accept::Include,
        table::{Columns, Row},
    },
};
use serde_json::{Value, json};

thread_local! {
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
    static MOST_BYTES: Cell<isize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: isize) {
    // A thread that ends may free after its counter is gone.
    let _ = HELD_BYTES.try_with(|held| {
        held.set(held.get() + bytes);
        MOST_BYTES.try_with(|most| most.set(most.get().max(held.get())))
    });
}

/// The most that this thread holds at a time while this is done, beside what it held before.
fn most_of(done: impl FnOnce()) -> usize {
    let before = HELD_BYTES.with(Cell::get);
    MOST_BYTES.with(|most| most.set(before));
    done();
    (MOST_BYTES.with(Cell::get) - before) as usize
}

#[allow(unsafe_code, reason = "an allocator that counts cannot be written otherwise")]
// SAFETY: every call goes to the system's allocator as it is.
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

/// A child of a root, as an API server 1.36 shows it: a ConfigMap of fifteen keys, or a Deployment that waits.
fn child(number: usize, waits: bool) -> Observed {
    let root = format!("00000000-0000-4000-8000-{number:012}");
    let data: serde_json::Map<_, _> = (0..15).map(|key| (format!("f:KEY_{key}"), json!({}))).collect();
    let status = json!({"conditions": [{"type": "Available", "status": "False", "message": "Deployment does not have minimum availability."}]});
    let live = json!({
        "apiVersion": if waits { "apps/v1" } else { "v1" }, "kind": if waits { "Deployment" } else { "ConfigMap" },
        "metadata": {"name": format!("root-{number:05}"), "namespace": "bench", "uid": format!("11111111-0000-4000-8000-{number:012}"),
            "resourceVersion": (1000 + number).to_string(),
            "labels": {"pintle.dev/root": root, "pintle.dev/reconciler": "bench"},
            "annotations": {"pintle.dev/desired": format!("v1:{}", "ab".repeat(32))},
            "ownerReferences": [{"uid": root, "controller": true}],
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:data": data, "f:metadata": {"f:labels": {"f:pintle.dev/root": {}}}}}]},
        "status": if waits { status } else { json!({}) },
    });
    Observed::of(&live, "m", waits)
}

fn held_and_said(judged: bool, waits: bool) -> (f64, f64) {
    const CHILDREN: usize = 1000;
    let mut names = Names::default();
    let mut kept: Vec<Kept> = Vec::with_capacity(CHILDREN);
    drop(Kept::of(child(0, waits), &mut names));
    let before = HELD_BYTES.with(Cell::get);
    for number in 0..CHILDREN {
        let mut child = child(number, waits);
        if judged {
            child.judge(true);
        }
        kept.push(Kept::of(child, &mut names));
    }
    let held = HELD_BYTES.with(Cell::get) - before;
    let rows = CHILDREN * size_of::<Kept>();
    let said: usize = kept.iter().map(Kept::bytes).sum();
    ((held as usize + rows) as f64 / CHILDREN as f64, said as f64 / CHILDREN as f64)
}

#[test]
fn what_a_kept_child_says_of_its_size_is_what_the_allocator_counts() {
    for (judged, waits, bytes_max) in [(true, false, 320.0), (false, false, 700.0), (true, true, 1500.0)] {
        let (held, said) = held_and_said(judged, waits);
        println!("a child, judged: {judged}, observed and not ready: {waits}: {held} bytes, it says {said}");
        assert!(
            (held - said).abs() < held * 0.1,
            "judged: {judged}, waits: {waits}: {held} bytes, it says {said}"
        );
        assert!(held < bytes_max, "judged: {judged}, waits: {waits}: {held} bytes");
    }
}

#[test]
fn what_is_said_of_the_memory_of_an_object_is_about_what_the_allocator_counts() {
    let managed = |fields: usize| -> Value {
        (0..fields).map(|field| (format!("f:field{field}"), json!({"f:a": {}}))).collect()
    };
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b", "labels": {"app": "a"},
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": managed(20)}}]},
        "spec": {"containers": (0..3).map(|at| json!({"name": format!("c{at}"), "image": "nginx:1.25",
            "env": (0..20).map(|at| json!({"name": format!("VARIABLE_{at}"), "value": "x".repeat(30)})).collect::<Value>()})).collect::<Value>()},
    });
    let wide: Value = (0..500).map(|at| (format!("key-{at}"), json!("value"))).collect();
    for object in [pod, wide, json!({"data": "x".repeat(100_000)})] {
        // As it comes from an API server.
        let text = object.to_string();
        let before = HELD_BYTES.with(Cell::get);
        let read: Value = serde_json::from_str(&text).unwrap();
        let held = (HELD_BYTES.with(Cell::get) - before) as f64;
        let said = object::heap_bytes(&read) as f64;
        assert!(said > held * 0.8 && said < held * 1.5, "{held} bytes, it says {said}: {}", &text[..80]);
    }
}

/// Objects of about a mebibyte: those of which the most values are made, and others.
fn large() -> [(&'static str, String); 6] {
    let object = |labels: Value, spec: Value| {
        json!({"apiVersion": "a.io/v1", "kind": "A", "spec": spec, "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "labels": labels,
            "managedFields": [{"fieldsV1": {"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}}}]}})
        .to_string()
    };
    let long = |at: usize| (format!("{at:055}"), json!("x".repeat(55)));
    [
        (
            "short labels",
            object((0..90_000).map(|at| (format!("{at:x}"), json!("a"))).collect(), Value::Null),
        ),
        ("long labels", object((0..9_000).map(long).collect(), Value::Null)),
        ("numbers", object(json!({}), json!({"a": vec![1; 500_000]}))),
        ("maps", object(json!({}), json!({"a": vec![json!({"": 0}); 130_000]}))),
        ("lists", object(json!({}), json!({"a": vec![json!([0]); 200_000]}))),
        ("text", object(json!({}), json!({"a": "\n".repeat(500 << 10)}))),
    ]
}

#[test]
fn a_text_takes_no_more_memory_as_values_than_is_counted_before_it_is_parsed() {
    let keeps_all = Cut::new(&["spec".to_owned()]);
    for (what, text) in large() {
        let counted = Bulk::of(text.as_bytes()).value_bytes();
        let whole = most_of(|| drop(serde_json::from_str::<Value>(&text).unwrap()));
        let cut = most_of(|| drop(keeps_all.read(text.as_bytes(), Source::Stored).unwrap()));
        println!("{what}: {} bytes take {whole} as values, {cut} cut, at most {counted}", text.len());
        assert!(whole.max(cut) <= counted, "{what}: {} and {}, at most {counted}", whole, cut);
        assert!(counted < 4 * whole, "{what}: {counted} is far more than {whole}");
    }
}

#[test]
fn an_object_is_shown_in_each_form_in_the_memory_of_two_such_objects_and_six_such_texts() {
    let served = Served { reads: vec!["spec".into(), "metadata.labels".into()], ..Served::default() };
    let lens = Lens::new("a", served, Access::ViewAndBacking, Vec::new(), Epoch::default());
    let (cut, columns) = (Cut::new(&["spec".to_owned()]), Columns::new(&[]).unwrap());
    for (what, text) in large() {
        let bulk = Bulk::of(text.as_bytes());
        let most = bulk.value_bytes() * 2 + bulk.text_bytes() * 6;
        let read = || cut.read(text.as_bytes(), Source::Stored).unwrap();
        let fields = serde_json::to_string(&read().fields).unwrap();
        let table = |read: &BackingObject| {
            let object: Value = serde_json::from_str(&lens.object_json(read, &fields)).unwrap();
            columns.row_json(Include::Object, &Row::Shown(&object), Timestamp::UNIX_EPOCH)
        };
        let taken = [
            ("for the guest", most_of(|| drop(read().for_guest_json(&lens)))),
            ("whole", most_of(|| drop(lens.object_json(&read(), &fields)))),
            ("metadata", most_of(|| drop(lens.metadata_json(&read())))),
            ("a table", most_of(|| drop(table(&read())))),
        ];
        for (form, taken) in taken {
            println!(
                "{what}, {form}: {:.1} times the text, at most {:.1}",
                taken as f64 / text.len() as f64,
                most as f64 / text.len() as f64
            );
            assert!(taken <= most, "{what}, {form}: {taken}, at most {most}");
        }
    }
}
