//! Guests for the tests of the engine and for acceptance: one for every way to fail, and one that works.
//!
//! Each is a component with the given manifest, so that a test can bind it to its own kind. Those that serve views are in [`views`].

pub mod views;

/// A manifest for a guest of this name that reconciles this kind and has children of these kinds, each `apiVersion/kind`, as
/// `v1/ConfigMap`.
pub fn manifest(name: &str, api_version: &str, kind: &str, children: &[&str]) -> String {
    let children: Vec<String> = children
        .iter()
        .filter_map(|child| child.rsplit_once('/'))
        .map(|(api_version, kind)| format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}"}}"#))
        .collect();
    format!(
        r#"{{"apiVersion":"guest.pintle.dev/v1","name":"{name}","version":"0.1.0","reconciles":{{"apiVersion":"{api_version}","kind":"{kind}"}},"children":[{}]}}"#,
        children.join(",")
    )
}

/// Answers this to everything.
pub fn answers(manifest: &str, json: &str) -> Vec<u8> {
    answers_bytes(manifest, json.as_bytes())
}

/// Fails with this, whatever it is asked.
pub fn fails(manifest: &str, json: &str) -> Vec<u8> {
    let guest = Guest::new(manifest);
    let place = guest.free();
    guest.data(place, json.as_bytes()).returns(1, place, json.len())
}

/// Answers these bytes, which need not be text.
pub fn answers_bytes(manifest: &str, bytes: &[u8]) -> Vec<u8> {
    let guest = Guest::new(manifest);
    let place = guest.free();
    guest.data(place, bytes).returns(0, place, bytes.len())
}

/// Answers what it was asked.
pub fn echoes(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile(
        "(i32.store (i32.const 16) (i32.const 0))
         (i32.store (i32.const 20) (local.get 0))
         (i32.store (i32.const 24) (local.get 1))
         (i32.const 16)",
    )
}

/// Answers bytes that are not UTF-8.
pub fn invalid_utf8(manifest: &str) -> Vec<u8> {
    answers_bytes(manifest, b"{\"apiVersion\":\"guest.pintle.dev/v1\",\"status\":{\"a\":\"\xff\xfe\"}}")
}

/// Answers with this many bytes, all of them spaces.
pub fn returns_big(manifest: &str, bytes: usize) -> Vec<u8> {
    let guest = Guest::new(manifest);
    let place = guest.free();
    guest
        .room(bytes)
        .body(&format!("(memory.fill (i32.const {place}) (i32.const 32) (i32.const {bytes}))"))
        .returns(0, place, bytes)
}

/// Answers with this text between two others, repeated until the answer is this long in all, or a little shorter. So a small module can
/// give the worst answer that fits into the limit.
pub fn repeats(manifest: &str, begin: &str, text: &str, end: &str, bytes: usize) -> Vec<u8> {
    let guest = Guest::new(manifest);
    let place = guest.free();
    let source = format!("{begin}{text}{end}");
    let count = bytes.saturating_sub(begin.len() + end.len()) / text.len().max(1);
    // The answer lies behind the three, and begins with the first.
    let (at, length) = (place + source.len(), begin.len() + count * text.len() + end.len());
    let (middle, last) = (at + begin.len(), at + length - end.len());
    let copy = |to: usize, from: usize, bytes: usize| {
        format!("(memory.copy (i32.const {to}) (i32.const {from}) (i32.const {bytes}))")
    };
    let body = format!(
        "{} {}
         (local.set 2 (i32.const {middle}))
         (block $done
           (loop $more
             (br_if $done (i32.ge_u (local.get 2) (i32.const {last})))
             (memory.copy (local.get 2) (i32.const {}) (i32.const {}))
             (local.set 2 (i32.add (local.get 2) (i32.const {})))
             (br $more)))",
        copy(at, place, begin.len()),
        copy(last, place + begin.len() + text.len(), end.len()),
        place + begin.len(),
        text.len(),
        text.len()
    );
    guest.data(place, source.as_bytes()).room(length).body(&body).returns(0, at, length)
}

/// Writes to this much memory, in bytes, and then answers this.
pub fn fills(manifest: &str, bytes: usize, json: &str) -> Vec<u8> {
    let guest = Guest::new(manifest);
    let place = guest.free();
    let pages = bytes / PAGE_BYTES;
    let body = format!(
        "(drop (memory.grow (i32.sub (i32.const {pages}) (memory.size))))
         (local.set 2 (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const {PAGE_BYTES})))
         (memory.fill (global.get $top) (i32.const 255) (i32.sub (local.get 2) (global.get $top)))"
    );
    guest.data(place, json.as_bytes()).body(&body).returns(0, place, json.len())
}

/// Answers with a string that reaches outside its memory.
pub fn out_of_bounds(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile(
        "(i32.store (i32.const 16) (i32.const 0))
         (i32.store (i32.const 20) (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 4)))
         (i32.store (i32.const 24) (i32.const 8))
         (i32.const 16)",
    )
}

/// Places its answer, pointer and length together, outside its memory.
pub fn answer_outside(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile("(i32.const -8)")
}

/// Traps, as a panic does.
pub fn traps(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile("(call $begin_panic) unreachable")
}

/// Loops for ever.
pub fn loops(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile("(loop $for_ever (br $for_ever)) unreachable")
}

/// Loops for ever when it is asked for its manifest.
pub fn loops_in_describe(manifest: &str) -> Vec<u8> {
    let mut guest = Guest::new(manifest);
    guest.describe = "(loop $for_ever (br $for_ever)) unreachable".into();
    guest.returns(0, 0, 0)
}

/// Allocates for ever.
pub fn allocates(manifest: &str) -> Vec<u8> {
    Guest::new(manifest)
        .reconcile("(loop $for_ever (drop (memory.grow (i32.const 16))) (br $for_ever)) unreachable")
}

/// Starts with this much memory, in bytes, rounded up to pages.
pub fn starts_with(manifest: &str, bytes: usize) -> Vec<u8> {
    Guest::new(manifest).room(bytes).returns(0, 0, 0)
}

/// Answers with the 60 000 bytes behind its request, which it never wrote.
pub fn reads_unwritten(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile(
        "(i32.store (i32.const 16) (i32.const 0))
         (i32.store (i32.const 20) (i32.add (local.get 0) (local.get 1)))
         (i32.store (i32.const 24) (i32.const 60000))
         (i32.const 16)",
    )
}

/// Recurses for ever.
pub fn recurses(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile("(call $recurse (i32.const 0))")
}

/// How many needs [`asks_anew`] has besides its clock.
pub const NEEDS_ASKED_ANEW: usize = 200;

/// Asks for the time, second by second, and for ConfigMaps in many ways, with another field each time. A watch of them would have to begin
/// anew every second.
pub fn asks_anew(manifest: &str) -> Vec<u8> {
    const TIME: &str = "0000-00-00T00:00:00Z";
    const CLOCK: &str = r#"{"apiVersion":"guest.pintle.dev/v1","needs":[{"clock":{"stepSeconds":1}}"#;
    let need = |number: usize| {
        format!(
            r#",{{"objects":{{"apiVersion":"v1","kind":"ConfigMap","select":{{"labels":{{"matchLabels":{{"app":"a{number}"}}}}}},"fields":["data.t{TIME}"]}}}}"#
        )
    };
    let first = format!("{CLOCK}]}}");
    let then = format!("{CLOCK}{}]}}", (0..NEEDS_ASKED_ANEW).map(need).collect::<String>());
    let guest = Guest::new(manifest);
    let at = guest.free();
    let at_then = (at + first.len()).next_multiple_of(8);
    let times = then.match_indices(TIME).map(|(place, _)| at_then + place);
    let copies = times.map(|to| {
        format!(
            "(memory.copy (i32.const {to}) (i32.add (local.get $at) (i32.const 8)) (i32.const {}))",
            TIME.len()
        )
    });
    let copies: String = copies.collect();
    let pattern = u64::from_le_bytes(*b"\"time\":\"");
    let body = format!(
        "(local $at i32)
         (local.set $at (local.get 0))
         (block $not_told
           (loop $look
             (br_if $not_told
               (i32.gt_u (i32.add (local.get $at) (i32.const 28)) (i32.add (local.get 0) (local.get 1))))
             (if (i64.eq (i64.load align=1 (local.get $at)) (i64.const {pattern}))
               (then
                 {copies}
                 (i32.store (i32.const 16) (i32.const 0))
                 (i32.store (i32.const 20) (i32.const {at_then}))
                 (i32.store (i32.const 24) (i32.const {}))
                 (return (i32.const 16))))
             (local.set $at (i32.add (local.get $at) (i32.const 1)))
             (br $look)))",
        then.len()
    );
    let length = first.len();
    guest.data(at, first.as_bytes()).data(at_then, then.as_bytes()).room(8).body(&body).returns(0, at, length)
}

/// Uses up the stack that a language keeps in the guest's memory, below its data.
pub fn recurses_in_memory(manifest: &str) -> Vec<u8> {
    Guest::new(manifest).reconcile("(i32.load (i32.sub (i32.const 1024) (i32.const 2048)))")
}

/// Imports from WASI.
pub fn imports_wasi(manifest: &str) -> Vec<u8> {
    let mut guest = Guest::new(manifest);
    guest.imports = r#"
        (import "wasi:cli/environment@0.2.6" (instance (export "get-arguments" (func (result (list string))))))
        (import "wasi:cli/exit@0.2.6" (instance (export "exit" (func (param "status" (result))))))"#
        .into();
    guest.returns(0, 0, 0)
}

/// Does not export `reconcile`.
pub fn without_reconcile(manifest: &str) -> Vec<u8> {
    let mut guest = Guest::new(manifest);
    guest.lift = String::new();
    guest.export = String::new();
    guest.returns(0, 0, 0)
}

/// Exports a `reconcile` that takes a number.
pub fn wrong_type(manifest: &str) -> Vec<u8> {
    let mut guest = Guest::new(manifest);
    guest.lift = lift(r#"(param "request" u64) (result string)"#, "other");
    guest.returns(0, 0, 0)
}

/// Exports the contract's functions under another name than the contract's.
pub fn exports_interface(manifest: &str, interface: &str) -> Vec<u8> {
    let mut guest = Guest::new(manifest);
    guest.interface = interface.into();
    guest.returns(0, 0, 0)
}

/// A small, valid guest that takes a compiler long. It has this many functions, each with `depth` nested loops. The innermost loop changes
/// all of `locals`, so that each loop passes on a value for each local. Time and memory for one function grow with the product.
pub fn compile_bomb(manifest: &str, functions: usize, depth: usize, locals: usize) -> Vec<u8> {
    let declared = "i32 ".repeat(locals);
    let (begins, ends) = ("loop ".repeat(depth), "local.get 0 br_if 0 end ".repeat(depth));
    let mut changes = String::new();
    for local in 0..locals {
        let next = (local + 1) % locals.max(1);
        changes += &format!("local.get {local} local.get {next} i32.add local.set {local} ");
    }
    let function = format!("(func (local {declared}) {begins}{changes}{ends})");
    let mut guest = Guest::new(manifest);
    guest.more = function.repeat(functions);
    guest.returns(0, 0, 0)
}

/// A core module, which a compiler makes before it makes a component.
pub fn core_module() -> Vec<u8> {
    encode(r#"(module (memory (export "memory") 1) (func (export "reconcile")))"#)
}

const PAGE_BYTES: usize = 64 << 10;

/// The address of the manifest. Below it are the places for results.
const MANIFEST: usize = 1024;

/// The text of a component.
struct Guest {
    imports: String,
    data: String,
    manifest_bytes: usize,
    room_bytes: usize,
    describe: String,
    body: String,
    lift: String,
    export: String,
    interface: String,
    /// Functions that nobody calls.
    more: String,
}

impl Guest {
    fn new(manifest: &str) -> Self {
        let guest = Self {
            imports: String::new(),
            data: String::new(),
            manifest_bytes: manifest.len(),
            room_bytes: 0,
            describe: "(i32.store (i32.const 0) (i32.const 1024))
                       (i32.store (i32.const 4) (global.get $manifest_bytes))
                       (i32.const 0)"
                .into(),
            body: String::new(),
            lift: lift(r#"(param "request" string) (result (result string (error string)))"#, "reconcile"),
            export: r#"(export "reconcile" (func $reconcile))"#.into(),
            interface: pintle_wit::worlds::reconciler::INTERFACE.into(),
            more: String::new(),
        };
        guest.data(MANIFEST, manifest.as_bytes())
    }

    /// The first byte behind the manifest.
    fn free(&self) -> usize {
        (MANIFEST + self.manifest_bytes).next_multiple_of(8)
    }

    /// As many pages as the data needs.
    fn pages(&self) -> usize {
        (self.free() + self.room_bytes).div_ceil(PAGE_BYTES)
    }

    fn room(mut self, bytes: usize) -> Self {
        self.room_bytes += bytes;
        self
    }

    fn data(mut self, place: usize, bytes: &[u8]) -> Self {
        let escaped: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        self.data += &format!("(data (i32.const {place}) \"{escaped}\")");
        if place != MANIFEST { self.room(bytes.len()) } else { self }
    }

    fn body(mut self, instructions: &str) -> Self {
        self.body += instructions;
        self
    }

    /// Ends with this string as the answer (0) or the failure (1).
    fn returns(self, case: usize, place: usize, length: usize) -> Vec<u8> {
        self.reconcile(&format!(
            "(i32.store (i32.const 16) (i32.const {case}))
             (i32.store (i32.const 20) (i32.const {place}))
             (i32.store (i32.const 24) (i32.const {length}))
             (i32.const 16)"
        ))
    }

    /// Ends with these instructions.
    fn reconcile(self, instructions: &str) -> Vec<u8> {
        let heap = self.pages() * PAGE_BYTES;
        let pages = self.pages() + 1;
        let Self { imports, data, manifest_bytes, describe, body, lift, export, interface, more, .. } = self;
        encode(&format!(
            r#"(component {imports}
              (core module $code
                (memory (export "memory") {pages})
                {data}
                (global $manifest_bytes i32 (i32.const {manifest_bytes}))
                (global $top (mut i32) (i32.const {heap}))
                (func (export "describe") (result i32) {describe})
                (func $reconcile (export "reconcile") (param i32 i32) (result i32) (local i32) {body} {instructions})
                (func (export "other") (param i64) (result i32) (i32.const 0))
                (func $begin_panic unreachable)
                {more}
                (func $recurse (param i32) (result i32)
                  (i32.add (call $recurse (i32.add (local.get 0) (i32.const 1))) (local.get 0)))
                ;; Takes the next bytes, and more memory when they do not fit.
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $place i32)
                  (local.set $place (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
                  (global.set $top (i32.add (local.get $place) (local.get 3)))
                  (block $fits
                    (loop $grow
                      (br_if $fits (i32.le_u (global.get $top) (i32.mul (memory.size) (i32.const {PAGE_BYTES}))))
                      (br_if $grow (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))
                      unreachable))
                  (local.get $place)))
              (core instance $core (instantiate $code))
              (func $describe (result string)
                (canon lift (core func $core "describe") (memory (core memory $core "memory"))))
              {lift}
              (instance $guest (export "describe" (func $describe)) {export})
              (export "{interface}" (instance $guest)))"#
        ))
    }
}

/// Newer text needs the nested references of the options.
fn lift(ty: &str, function: &str) -> String {
    format!(
        r#"(func $reconcile {ty}
             (canon lift (core func $core "{function}")
               (memory (core memory $core "memory")) (realloc (core func $core "realloc"))))"#
    )
}

#[allow(clippy::expect_used, reason = "the text is ours, and every fixture is built in a test")]
fn encode(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("a fixture is valid text")
}
