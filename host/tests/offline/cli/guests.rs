//! Guests that do what no fixture does.

/// A guest whose answer is a hash of the bytes that it was asked: it changes with everything, and with its own status too.
pub(crate) fn hashes_its_request(manifest: &str) -> Vec<u8> {
    let answer = r#"{"apiVersion":"guest.pintle.dev/v1","status":{"n":"12345678"}}"#;
    let digits = 2048 + answer.find("12345678").unwrap();
    let answered = answer.len();
    let reconcile = format!(
        r#"(local $hash i32) (local $digit i32)
          (loop $bytes
            (local.set $hash (i32.add (i32.mul (local.get $hash) (i32.const 31)) (i32.load8_u (local.get $at))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (local.set $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $bytes (local.get $left)))
          (loop $digits
            (i32.store8 (i32.add (i32.const {digits}) (local.get $digit))
              (i32.add (i32.const 97) (i32.and (local.get $hash) (i32.const 15))))
            (local.set $hash (i32.shr_u (local.get $hash) (i32.const 4)))
            (local.set $digit (i32.add (local.get $digit) (i32.const 1)))
            (br_if $digits (i32.lt_u (local.get $digit) (i32.const 8))))
          (i32.store (i32.const 20) (i32.const 2048))
          (i32.store (i32.const 24) (i32.const {answered}))"#
    );
    component(manifest, &[answer], &reconcile)
}

/// A guest that asks for what it asked for before, and otherwise goes by its status: `first` where the request has neither a `q` nor a
/// `w`, `shown` where it has a `q`, and else `anew`.
pub(crate) fn clings_to_its_needs(manifest: &str, first: &str, shown: &str, anew: &str) -> Vec<u8> {
    let say = |place: usize, answer: &str| {
        format!(
            "(i32.store (i32.const 20) (i32.const {place})) (i32.store (i32.const 24) (i32.const {}))",
            answer.len()
        )
    };
    let (first_is, shown_is, anew_is) = (say(2048, first), say(3072, shown), say(4096, anew));
    let reconcile = format!(
        r#"(local $q i32) (local $w i32)
          (loop $bytes
            (local.set $q (i32.or (local.get $q) (i32.eq (i32.load8_u (local.get $at)) (i32.const 113))))
            (local.set $w (i32.or (local.get $w) (i32.eq (i32.load8_u (local.get $at)) (i32.const 119))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (local.set $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $bytes (local.get $left)))
          (if (local.get $q) (then {shown_is}) (else (if (local.get $w) (then {anew_is}) (else {first_is}))))"#
    );
    component(manifest, &[first, shown, anew], &reconcile)
}

/// A component whose answers lie at 2048 and every 1024 bytes behind it. `reconcile` finds the request at `$at`, `$left` bytes long,
/// and puts place and length of its answer at 20 and 24.
pub(crate) fn component(manifest: &str, answers: &[&str], reconcile: &str) -> Vec<u8> {
    let escaped = |text: &str| text.bytes().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let (described, manifest) = (manifest.len(), escaped(manifest));
    assert!(described <= 1024 && answers.iter().all(|answer| answer.len() <= 1024));
    let place = |index: usize, answer: &&str| {
        format!("(data (i32.const {}) \"{}\")", 2048 + 1024 * index, escaped(answer))
    };
    let answers: String = answers.iter().enumerate().map(|(index, answer)| place(index, answer)).collect();
    let interface = pintle_wit::INTERFACE;
    wat::parse_str(format!(
        r#"(component
          (core module $code
            (memory (export "memory") 4)
            (data (i32.const 1024) "{manifest}") {answers}
            (global $top (mut i32) (i32.const 8192))
            (func (export "describe") (result i32)
              (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const {described})) (i32.const 0))
            (func (export "reconcile") (param $at i32) (param $left i32) (result i32) {reconcile}
              (i32.store (i32.const 16) (i32.const 0))
              (i32.const 16))
            (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $place i32)
              (local.set $place (global.get $top))
              (global.set $top (i32.add (global.get $top) (local.get 3)))
              (local.get $place)))
          (core instance $core (instantiate $code))
          (func $describe (result string)
            (canon lift (core func $core "describe") (memory (core memory $core "memory"))))
          (func $reconcile (param "request" string) (result (result string (error string)))
            (canon lift (core func $core "reconcile")
              (memory (core memory $core "memory")) (realloc (core func $core "realloc"))))
          (instance $guest (export "describe" (func $describe)) (export "reconcile" (func $reconcile)))
          (export "{interface}" (instance $guest)))"#
    ))
    .unwrap()
}
