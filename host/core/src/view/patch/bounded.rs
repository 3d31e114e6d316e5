//! A JSON patch (RFC 6902), applied with bounds on what comes of it.
//!
//! A patch of a few lines can ask for any amount of memory: each copy may take the whole object, with all earlier copies in it. So every
//! operation is counted before it is made, as the API server does it. The object never becomes deeper than what is read from a client, so
//! that every walk over it, and dropping it, can be a recursion.

use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, ReplaceOperation,
};
use pintle_wit::Weight;
use serde_json::Value;

use crate::object::json_bytes;

/// How deep maps and lists may lie within one another, the object with them: as deep as in a body, which serde_json reads.
pub(super) const DEPTH_MAX: usize = 127;

/// How much the copies of one patch may add together, in bytes of JSON: as much as the API server allows (`JSONPatchMaxCopyBytes`).
const COPIED_BYTES_MAX: usize = 3 << 20;

/// How much memory they may take at most, in bytes: as much as [`COPIED_BYTES_MAX`] of lists of small maps, for instance of names and values.
/// Maps that are smaller still would take several times as much.
pub(super) const COPIED_MEMORY_BYTES_MAX: u64 = 160 << 20;

/// How many values the moves of one patch may look at and shift in lists. It is as many as when ten thousand items are put one by one
/// before a list of as many, and takes a second or two.
const WORK_MAX: usize = 100_000_000;

/// What is left of what a patch may do.
#[derive(Debug)]
struct Bounds {
    copied_bytes: usize,
    copied_bytes_max: usize,
    copied_memory_bytes: u64,
    copied_memory_bytes_max: u64,
    work: usize,
}

/// What a patch makes of an object, if its copies find this much room, in bytes of memory.
///
/// # Errors
/// Why not, in words.
pub(super) fn apply(patch: &[PatchOperation], object: Value, room: u64) -> Result<Value, String> {
    Bounds::new(room).apply(patch, object)
}

impl Bounds {
    fn new(room: u64) -> Self {
        Self {
            copied_bytes: 0,
            copied_bytes_max: COPIED_BYTES_MAX,
            copied_memory_bytes: 0,
            copied_memory_bytes_max: room,
            work: WORK_MAX,
        }
    }

    fn apply(mut self, patch: &[PatchOperation], mut object: Value) -> Result<Value, String> {
        for (index, operation) in patch.iter().enumerate() {
            self.count(&object, operation)?;
            // Nothing is taken back, since nobody keeps the object of a patch that is refused.
            let made = json_patch::patch_unsafe(&mut object, std::slice::from_ref(operation));
            made.map_err(|mut error| match error.kind {
                PatchErrorKind::TestFailed => format!("testing path {} failed", error.path),
                _ => {
                    error.operation = index;
                    error.to_string()
                }
            })?;
        }
        Ok(object)
    }

    /// Counts what an operation would add and do. One that cannot be made counts as nothing: it ends the patch.
    fn count(&mut self, object: &Value, operation: &PatchOperation) -> Result<(), String> {
        match operation {
            PatchOperation::Add(AddOperation { path, value }) => {
                self.shifts(object, path.as_str())?;
                nests(path.as_str(), &Extent::of(value))
            }
            PatchOperation::Replace(ReplaceOperation { path, value }) => {
                nests(path.as_str(), &Extent::of(value))
            }
            PatchOperation::Copy(CopyOperation { from, path }) => {
                let Some(source) = object.pointer(from.as_str()) else { return Ok(()) };
                let extent = Extent::of(source);
                self.copies(source, &extent)?;
                self.shifts(object, path.as_str())?;
                nests(path.as_str(), &extent)
            }
            PatchOperation::Move(MoveOperation { from, path }) => {
                let Some(source) = object.pointer(from.as_str()) else { return Ok(()) };
                let extent = Extent::of(source);
                self.works(extent.weight.values)?;
                self.shifts(object, from.as_str())?;
                self.shifts(object, path.as_str())?;
                nests(path.as_str(), &extent)
            }
            PatchOperation::Remove(operation) => self.shifts(object, operation.path.as_str()),
            PatchOperation::Test(_) => Ok(()),
        }
    }

    fn copies(&mut self, source: &Value, extent: &Extent) -> Result<(), String> {
        let bytes = json_bytes(source);
        self.copied_bytes = self.copied_bytes.saturating_add(bytes);
        let (copied, max) = (self.copied_bytes, self.copied_bytes_max);
        if copied > max {
            // The API server's words.
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {max}"
            ));
        }
        let memory = Weight { bytes, ..extent.weight }.parsed_bytes();
        self.copied_memory_bytes = self.copied_memory_bytes.saturating_add(memory as u64);
        if self.copied_memory_bytes > self.copied_memory_bytes_max {
            let max = self.copied_memory_bytes_max >> 20;
            return Err(format!(
                "Unable to complete the copy, the copies take more than {max} MiB of memory"
            ));
        }
        Ok(())
    }

    /// Counts the items of a list behind one that comes or goes.
    fn shifts(&mut self, object: &Value, path: &str) -> Result<(), String> {
        let Some((list, index)) = path.rsplit_once('/') else { return Ok(()) };
        let (Some(Value::Array(items)), Ok(index)) = (object.pointer(list), index.parse::<usize>()) else {
            return Ok(());
        };
        self.works(items.len().saturating_sub(index))
    }

    fn works(&mut self, values: usize) -> Result<(), String> {
        let too_much = || "the patch moves too many values".to_owned();
        self.work = self.work.checked_sub(values).ok_or_else(too_much)?;
        Ok(())
    }
}

/// Refuses a value that would lie too deep.
fn nests(path: &str, extent: &Extent) -> Result<(), String> {
    let above = path.bytes().filter(|byte| *byte == b'/').count();
    match above.saturating_add(extent.depth) > DEPTH_MAX {
        true => Err(format!("at path {path} the object would be nested more than {DEPTH_MAX} levels deep")),
        false => Ok(()),
    }
}

/// How large a value is. How long it is as JSON, and its longest text, are not counted.
#[derive(Debug, Default)]
pub(super) struct Extent {
    pub(super) weight: Weight,
    /// How many maps and lists lie within one another.
    pub(super) depth: usize,
}

impl Extent {
    pub(super) fn of(value: &Value) -> Self {
        let mut extent = Self::default();
        extent.add(value, 0);
        extent
    }

    fn add(&mut self, value: &Value, above: usize) {
        self.weight.values += 1;
        match value {
            Value::Object(fields) => {
                self.weight.objects += 1;
                self.depth = self.depth.max(above + 1);
                fields.values().for_each(|field| self.add(field, above + 1));
            }
            Value::Array(items) => {
                self.weight.lists += 1;
                self.depth = self.depth.max(above + 1);
                items.iter().for_each(|item| self.add(item, above + 1));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn apply(patch: &[PatchOperation], object: Value) -> Result<Value, String> {
        super::apply(patch, object, COPIED_MEMORY_BYTES_MAX)
    }

    fn operations(patch: Value) -> Vec<PatchOperation> {
        serde_json::from_value(patch).unwrap()
    }

    /// Each takes all that is there into one more field: the object doubles every time.
    fn doubling(count: usize) -> Vec<PatchOperation> {
        let copies =
            (0..count).map(|at| json!({"op": "copy", "from": "/spec", "path": format!("/spec/c{at}")}));
        operations(copies.collect())
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(Value::Null, |inner, _| json!([inner]))
    }

    #[test]
    fn copies_that_double_an_object_are_refused_before_they_are_made() {
        let object = json!({"spec": {"text": "x".repeat(1000)}});
        for count in [17, 37] {
            let mut bounds = Bounds::new(COPIED_MEMORY_BYTES_MAX);
            let mut grown = object.clone();
            let mut refused = None;
            for operation in doubling(count) {
                if let Err(why) = bounds.count(&grown, &operation) {
                    refused = Some(why);
                    break;
                }
                json_patch::patch_unsafe(&mut grown, &[operation]).unwrap();
            }
            assert!(json_bytes(&grown) <= json_bytes(&object) + COPIED_BYTES_MAX, "{count} copies");
            let refused = refused.unwrap();
            assert!(refused.ends_with("exceeding the limit 3145728"), "{refused}");
            assert_eq!(apply(&doubling(count), object.clone()), Err(refused));
        }
        // What the API server allows is made: here 2 MiB.
        let made = apply(&doubling(11), object).unwrap();
        assert_eq!(made.pointer("/spec/c10/c9/c0/text").and_then(Value::as_str).map(str::len), Some(1000));
    }

    #[test]
    fn copies_are_counted_as_the_api_server_counts_them_and_to_the_byte() {
        // Its own case: each copy of this text is 51 bytes with its quotes.
        let object = json!({"foo": ["A", "A".repeat(49)]});
        let copies = |count: usize| {
            operations(
                (0..count).map(|_| json!({"op": "copy", "path": "/foo/-", "from": "/foo/1"})).collect(),
            )
        };
        let limited = || Bounds { copied_bytes_max: 102, ..Bounds::new(COPIED_MEMORY_BYTES_MAX) };
        assert!(limited().apply(&copies(2), object.clone()).is_ok());
        let refused = limited().apply(&copies(3), object).unwrap_err();
        let words = "Unable to complete the copy, the accumulated size increase of copy is 153, exceeding the limit 102";
        assert_eq!(refused, words);
    }

    #[test]
    fn copies_of_maps_that_take_far_more_memory_than_text_are_refused() {
        let maps: Vec<Value> = (0..30_000).map(|_| json!({"": 0})).collect();
        let object = json!({"spec": {"maps": maps}, "a": {}});
        let copies = |count: usize| {
            let copy = |at| json!({"op": "copy", "from": "/spec/maps", "path": format!("/a/{at}")});
            operations((0..count).map(copy).collect())
        };
        assert!(apply(&copies(1), object.clone()).is_ok());
        assert!(json_bytes(&object["spec"]["maps"]) * 6 < COPIED_BYTES_MAX);
        assert!(apply(&copies(6), object).unwrap_err().ends_with("more than 160 MiB of memory"));
    }

    #[test]
    fn nothing_becomes_deeper_than_what_a_client_may_send() {
        let parses = |depth: usize| serde_json::from_str::<Value>(&nested(depth).to_string()).is_ok();
        assert!(parses(DEPTH_MAX) && !parses(DEPTH_MAX + 1));
        let deep = |path: &str, depth: usize| {
            let object = json!({"a": {"b": {}}, "from": nested(depth)});
            ["add", "replace", "copy", "move"].map(|op| {
                let path = if op == "replace" { path.trim_end_matches("/new") } else { path };
                let mut operation = json!({"op": op, "path": path});
                match op {
                    "copy" | "move" => operation["from"] = "/from".into(),
                    _ => operation["value"] = nested(depth),
                }
                apply(&operations(json!([operation])), object.clone()).map(|made| Extent::of(&made).depth)
            })
        };
        assert_eq!(deep("/a/b/new", DEPTH_MAX - 3), [Ok(127), Ok(126), Ok(127), Ok(127)]);
        for refused in [&deep("/a/b/new", DEPTH_MAX - 1)[2..], &deep("/a/b/new/new", DEPTH_MAX)[..1]].concat()
        {
            assert!(refused.unwrap_err().ends_with("nested more than 127 levels deep"));
        }
        // Each puts what is there one level deeper.
        let wrap = [
            json!({"op": "copy", "from": "/a", "path": "/b"}),
            json!({"op": "replace", "path": "/a", "value": {}}),
            json!({"op": "move", "from": "/b", "path": "/a/a"}),
        ];
        let patch = operations((0..300).flat_map(|_| wrap.clone()).collect());
        assert!(apply(&patch, json!({"a": {}})).unwrap_err().contains("levels deep"));
    }

    #[test]
    fn moves_are_bounded_and_ordinary_ones_are_made() {
        let object = json!({"a": (0..1000).collect::<Vec<u32>>(), "b": {}});
        let limited = || Bounds { work: 10_000, ..Bounds::new(COPIED_MEMORY_BYTES_MAX) };
        let back_and_forth = |count: usize| {
            let there = json!({"op": "move", "from": "/a", "path": "/b/a"});
            let back = json!({"op": "move", "from": "/b/a", "path": "/a"});
            operations((0..count).map(|at| if at % 2 == 0 { there.clone() } else { back.clone() }).collect())
        };
        assert!(limited().apply(&back_and_forth(8), object.clone()).is_ok());
        assert_eq!(
            limited().apply(&back_and_forth(20), object.clone()).unwrap_err(),
            "the patch moves too many values"
        );
        let add = |path: &str, count: usize| {
            operations((0..count).map(|_| json!({"op": "add", "path": path, "value": 0})).collect())
        };
        assert!(limited().apply(&add("/a/0", 20), object.clone()).is_err());
        assert!(limited().apply(&add("/a/-", 1000), object.clone()).is_ok());
        // As many as a patch may have, each before all others.
        let made = apply(&add("/a/0", 10_000), object).unwrap();
        assert_eq!(made["a"].as_array().map(Vec::len), Some(11_000));
    }

    #[test]
    fn a_patch_that_is_refused_after_a_move_that_cannot_be_taken_back_is_refused_without_a_panic() {
        let patch = operations(json!([
            {"op": "move", "from": "/a", "path": ""}, {"op": "test", "path": "/b", "value": 2}]));
        assert_eq!(apply(&patch, json!({"a": {"b": 1}})).unwrap_err(), "testing path /b failed");
    }

    #[test]
    fn a_value_is_as_long_as_its_text() {
        for value in [json!(null), json!({"a\"": [1.5, -2, "\u{1}é\n", {}], "b": true})] {
            assert_eq!(json_bytes(&value), value.to_string().len());
        }
    }

    #[test]
    fn lists_of_names_and_values_are_copied_as_far_as_the_api_server_copies_them() {
        let variables: Vec<Value> =
            (0..60_000).map(|at| json!({"name": format!("VARIABLE_{at}"), "value": "x"})).collect();
        let object = json!({"env": variables, "a": {}});
        let bytes = json_bytes(&object["env"]);
        assert!(bytes < COPIED_BYTES_MAX && bytes * 2 > COPIED_BYTES_MAX);
        let copy = operations(json!([{"op": "copy", "from": "/env", "path": "/a/env"}]));
        assert!(apply(&copy, object).is_ok());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            (0..4u8).prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    fn paths() -> impl Strategy<Value = String> {
        let token = prop_oneof![4 => "[a-c]", 2 => "[0-3]", 1 => Just("-".to_owned())];
        prop::collection::vec(token, 0..4)
            .prop_map(|tokens| tokens.iter().map(|token| format!("/{token}")).collect())
    }

    fn patches() -> impl Strategy<Value = Vec<PatchOperation>> {
        let names = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
        let operation = (names, paths(), paths(), values()).prop_map(
            |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
        );
        prop::collection::vec(operation, 0..6).prop_map(|patch| operations(patch.into()))
    }

    proptest! {
        #[test]
        fn a_small_patch_does_what_the_library_does(object in values(), patch in patches()) {
            let mut expected = object.clone();
            // Not `patch`, which takes a refused patch back, and panics where a move cannot be taken back.
            let made = json_patch::patch_unsafe(&mut expected, &patch);
            let ours = apply(&patch, object);
            prop_assert_eq!(ours.as_ref().ok(), made.as_ref().ok().map(|()| &expected));
            if let (Err(ours), Err(theirs)) = (ours, made) {
                let is_test = matches!(theirs.kind, PatchErrorKind::TestFailed);
                let words = if is_test { format!("testing path {} failed", theirs.path) } else { theirs.to_string() };
                prop_assert_eq!(ours, words);
            }
        }
    }
}
