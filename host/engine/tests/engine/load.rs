//! What the engine accepts as a module, and the reason that it gives when it refuses one.

use std::{
    ptr,
    str::FromStr,
    sync::{Mutex, mpsc},
    thread,
};

use pintle_engine::{
    Allocation, Compiler, Digest, Engine, EngineConfig, Excess, FUNCTION_BYTES_MAX, Guest, Job, LOCALS_MAX,
    Meter, Module, Precompiler, Target, Views, fixtures,
};
use pintle_wit::{Failure, reasons};

use crate::support::{EMPTY_RESPONSE, config, engine, load, load_guest, long_limits, manifest, refused};

#[test]
fn a_module_says_what_it_is() {
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    let module = load(&engine(Meter::Deadline), &bytes);
    assert_eq!(module.digest(), Digest::of(&bytes));
    assert_eq!(module.size_bytes(), bytes.len());
    assert_eq!((module.name(), module.version()), ("fixture", "0.1.0"));
    let guest = module.guest().unwrap();
    assert_eq!(guest.digest(), module.digest());
    assert_eq!(guest.manifest_text(), manifest());
    assert_eq!(guest.manifest().name, "fixture");
    assert_eq!(guest.manifest().children[1].api_version, "apps/v1");
    assert!(module.compile_duration().as_nanos() > 0);
}

#[test]
fn an_engine_and_its_modules_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Engine>();
    shared::<Module>();
    shared::<Guest>();
    shared::<Views>();
}

#[test]
fn a_file_that_is_not_wasm_is_called_by_its_name() {
    for (bytes, said) in [
        (b"".as_slice(), "the file is empty"),
        (b"apiVersion: v1\nkind: ConfigMap\n", "the file is text, not WebAssembly"),
        (b"  (component)", "the file is WebAssembly in text form; a guest is the binary form"),
        (b"\x7fELF\x02\x01\x01\0\xff", "the file is not WebAssembly"),
    ] {
        let failure = refused(bytes);
        assert_eq!((failure.reason.as_str(), failure.message.as_str()), (reasons::NOT_WASM, said));
        assert!(!failure.retry);
    }
}

#[test]
fn a_core_module_is_answered_with_the_command_that_helps() {
    let failure = refused(&fixtures::core_module());
    assert_eq!(failure.reason, reasons::CORE_MODULE);
    assert!(failure.message.ends_with("run: pintle build"), "{failure}");
}

#[test]
fn a_broken_component_is_invalid_wherever_it_breaks() {
    let engine = engine(Meter::Deadline);
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    for length in 4..bytes.len() {
        // The last section holds names only; without it the component is whole.
        let Err(failure) = engine.load(&bytes[..length], None) else { continue };
        // Cut between two sections it is a component still, and lacks what the rest would have exported.
        let expected = [reasons::INVALID_WASM, reasons::MISSING_EXPORT];
        assert!(expected.contains(&failure.reason.as_str()), "{length} bytes: {failure}");
    }
    assert_eq!(refused(b"\0asm\x07\0\0\0").reason, reasons::INVALID_WASM);
}

#[test]
fn no_flipped_byte_brings_the_loader_down() {
    let engine = engine(Meter::Fuel);
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    for place in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[place] ^= 0x55;
        // Whether it loads depends on the byte; that it returns does not.
        let _ = engine.load(&bytes, None);
    }
}

#[test]
fn a_proposal_that_guests_do_not_need_is_refused() {
    for code in [
        "(func (drop (i32x4.add (v128.const i32x4 0 0 0 0) (v128.const i32x4 0 0 0 0))))",
        "(memory 1) (memory 1)",
        "(memory i64 1)",
        "(memory 1 1 shared)",
        "(func return_call 0)",
    ] {
        let bytes = wat(&format!("(component (core module {code}))"));
        assert_eq!(refused(&bytes).reason, reasons::INVALID_WASM, "{code}");
    }
}

/// The binary of this text, by the encoder that the fixtures bring along.
fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[test]
fn every_import_is_named() {
    let failure = refused(&fixtures::imports_wasi(&manifest()));
    assert_eq!(failure.reason, reasons::IMPORTS);
    assert!(failure.message.contains("`wasi:cli/environment@0.2.6`, `wasi:cli/exit@0.2.6`"), "{failure}");
}

#[test]
fn many_imports_are_counted() {
    let imports: String = (0..30).map(|n| format!("(import \"f{n}\" (func))")).collect();
    let failure = refused(&wat(&format!("(component {imports})")));
    assert_eq!(failure.reason, reasons::IMPORTS);
    assert!(failure.message.contains("`f9`, 20 more"), "{failure}");
}

#[test]
fn a_missing_export_is_named() {
    let failure = refused(&fixtures::without_reconcile(&manifest()));
    assert_eq!(failure.reason, reasons::MISSING_EXPORT);
    assert!(failure.message.contains("pintle:guest/guest@0.1.0#reconcile"), "{failure}");

    let failure = refused(&fixtures::exports_interface(&manifest(), "example:guest/guest@1.0.0"));
    assert_eq!(failure.reason, reasons::MISSING_EXPORT);
    assert!(
        failure.message.contains("neither pintle:guest/guest@0.1.0 nor pintle:guest/views@0.1.0; it exports `example:guest/guest@1.0.0`"),
        "{failure}"
    );

    let failure = refused(&wat("(component)"));
    assert_eq!(failure.reason, reasons::MISSING_EXPORT);
    assert!(failure.message.ends_with("it exports nothing"), "{failure}");
}

#[test]
fn a_guest_of_a_later_patch_of_the_contract_is_taken_and_of_a_later_minor_is_not() {
    let engine = engine(Meter::Deadline);
    let load = |version: &str| {
        let interface = pintle_wit::worlds::reconciler::INTERFACE.replace("0.1.0", version);
        engine
            .load(&fixtures::exports_interface(&manifest(), &interface), None)
            .map_err(|failure| failure.reason)
    };
    assert!(load("0.1.7").is_ok());
    for version in ["0.2.0", "1.0.0", "0.0.9"] {
        assert_eq!(load(version).err().as_deref(), Some(reasons::MISSING_EXPORT), "{version}");
    }
}

#[test]
fn an_export_of_another_type_is_named_with_both_types() {
    let failure = refused(&fixtures::wrong_type(&manifest()));
    assert_eq!(failure.reason, reasons::WRONG_TYPE);
    assert_eq!(
        failure.message,
        "pintle:guest/guest@0.1.0#reconcile is func(u64) -> string, and must be func(string) -> result<string, string>"
    );
}

#[test]
fn a_file_of_20_mb_is_refused_unread() {
    let failure = refused(&vec![0; 20_000_000]);
    assert_eq!(failure.reason, reasons::MODULE_TOO_LARGE);
    assert_eq!(failure.message, "the module has 20000000 bytes, the limit is 8388608");
}

#[test]
fn a_module_of_too_many_functions_is_not_compiled() {
    let functions = "(func)".repeat(50_001);
    let failure = refused(&wat(&format!("(component (core module {functions}))")));
    assert_eq!(failure.reason, reasons::MODULE_TOO_LARGE);
}

#[test]
fn a_wrong_digest_is_shown_beside_the_right_one() {
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    let wrong = Digest::from_str(&format!("sha256:{}", "0".repeat(64))).unwrap();
    let engine = engine(Meter::Deadline);
    let failure = engine.load(&bytes, Some(&wrong)).unwrap_err();
    assert_eq!(failure.reason, reasons::DIGEST_MISMATCH);
    assert!(failure.message.contains(&wrong.to_string()), "{failure}");
    assert!(failure.message.contains(&Digest::of(&bytes).to_string()), "{failure}");
    assert!(engine.load(&bytes, Some(&Digest::of(&bytes))).is_ok());
}

#[test]
fn a_module_in_use_is_not_compiled_again_and_its_digest_is_still_checked() {
    let engine = engine(Meter::Deadline);
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    let first = load(&engine, &bytes);
    let again = load(&engine, &bytes);
    assert!(ptr::eq(first.guest().unwrap().manifest(), again.guest().unwrap().manifest()));
    let wrong = Digest::of(b"");
    assert_eq!(engine.load(&bytes, Some(&wrong)).unwrap_err().reason, reasons::DIGEST_MISMATCH);
}

#[test]
fn a_module_outlives_the_engine_that_loaded_it() {
    let guest = load_guest(&engine(Meter::Deadline), &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    assert!(guest.reconcile("{}", &long_limits()).is_ok());
}

#[test]
fn a_manifest_that_cannot_be_read_says_where() {
    let failure =
        refused(&fixtures::answers(r#"{"apiVersion":"guest.pintle.dev/v1","nome":"x"}"#, EMPTY_RESPONSE));
    assert_eq!(failure.reason, reasons::UNKNOWN_FIELD);
    assert!(failure.message.starts_with("describe: the manifest: "), "{failure}");
    assert!(failure.message.contains("nome"), "{failure}");
    assert_eq!(refused(&fixtures::answers("{", EMPTY_RESPONSE)).reason, reasons::INVALID_JSON);
}

#[test]
fn a_guest_that_loops_in_describe_is_not_loaded() {
    let failure = refused(&fixtures::loops_in_describe(&manifest()));
    assert_eq!(failure.reason, reasons::DEADLINE);
    assert!(failure.retry);
}

#[test]
fn a_guest_that_starts_with_too_much_memory_is_not_loaded() {
    let failure = refused(&fixtures::starts_with(&manifest(), 600 << 20));
    assert_eq!(failure.reason, reasons::MEMORY);
    assert!(!failure.retry, "the module does not shrink by itself");
}

#[test]
fn without_room_for_the_pool_calls_map_their_own_memory() {
    // A hundred thousand slots of 8 GiB are beyond what 47 bits address.
    let config = EngineConfig { concurrent_calls: 100_000, ..config(Meter::Deadline) };
    let small = Engine::new(config).unwrap();
    assert_eq!(small.allocation(), Allocation::OnDemand);
    let guest = load_guest(&small, &fixtures::answers(&manifest(), EMPTY_RESPONSE));
    assert!(guest.reconcile("{}", &long_limits()).is_ok());
    for (guest, reason) in [
        (fixtures::allocates(&manifest()), reasons::MEMORY),
        (fixtures::out_of_bounds(&manifest()), reasons::OUT_OF_BOUNDS),
        (fixtures::recurses_in_memory(&manifest()), reasons::TRAP),
    ] {
        let error = load_guest(&small, &guest).reconcile("{}", &long_limits()).unwrap_err();
        assert_eq!(error.failure.reason, reason, "{error}");
    }
    let loops = load_guest(&small, &fixtures::loops(&manifest()));
    assert_eq!(loops.reconcile("{}", &Default::default()).unwrap_err().failure.reason, reasons::DEADLINE);
    assert_eq!(engine(Meter::Deadline).allocation(), Allocation::Pool);
}

/// A module that was compiled as another process of the same program would, for this target.
fn load_compiled_for(engine: &Engine, target: Target) -> Result<Module, Failure> {
    let elsewhere = Precompiler::new(&target).unwrap();
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    engine.load_by(Compiler::Elsewhere(&|job| elsewhere.precompile(job.bytes)), &bytes, None)
}

#[test]
fn what_is_compiled_elsewhere_fits_an_engine_with_a_pool_and_one_without() {
    let without = EngineConfig { concurrent_calls: 100_000, ..config(Meter::Deadline) };
    for (engine, allocation) in [
        (engine(Meter::Deadline), Allocation::Pool),
        (engine(Meter::Fuel), Allocation::Pool),
        (Engine::new(without).unwrap(), Allocation::OnDemand),
    ] {
        assert_eq!(engine.target().allocation, allocation);
        let elsewhere = Precompiler::new(&engine.target()).unwrap();
        engine.self_test(Compiler::Elsewhere(&|job| elsewhere.precompile(job.bytes))).unwrap();
        let module = load_compiled_for(&engine, engine.target()).unwrap();
        let guest = module.guest().unwrap();
        assert_eq!(guest.manifest_text(), manifest());
        assert!(guest.reconcile("{}", &long_limits()).is_ok());
        assert!(module.code_bytes() > 0);
    }
}

#[test]
fn what_is_compiled_for_another_engine_is_not_compiled_here_instead() {
    let engine = engine(Meter::Deadline);
    let target = engine.target();
    for other in [
        Target { meter: Meter::Fuel, ..target },
        Target { allocation: Allocation::OnDemand, ..target },
        Target { allocation: Allocation::OnDemand, memory_bytes_max: 1 << 20, ..target },
    ] {
        let failure = load_compiled_for(&engine, other).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.retry), (reasons::COMPILER_FAILED, true), "{failure}");
    }
    let cut = engine.load_by(
        Compiler::Elsewhere(&|_| Ok(Vec::new())),
        &fixtures::answers(&manifest(), EMPTY_RESPONSE),
        None,
    );
    assert_eq!(cut.unwrap_err().reason, reasons::COMPILER_FAILED);
}

#[test]
fn what_the_pool_has_no_room_for_is_the_modules_fault_wherever_it_was_compiled() {
    let engine = engine(Meter::Deadline);
    let instances = "(core instance (instantiate 0))".repeat(9);
    let bytes = wat(&format!("(component (core module (memory 1)) {instances})"));
    let elsewhere = Precompiler::new(&engine.target()).unwrap();
    let there = engine.load_by(Compiler::Elsewhere(&|job| elsewhere.precompile(job.bytes)), &bytes, None);
    for failure in [there.unwrap_err(), engine.load(&bytes, None).unwrap_err()] {
        assert_eq!((failure.reason.as_str(), failure.retry), (reasons::INVALID_WASM, false), "{failure}");
    }
}

#[test]
fn a_compiler_that_ends_early_is_told_and_may_be_tried_again() {
    let engine = engine(Meter::Deadline);
    let bytes = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    let told = Failure::transient(reasons::COMPILER_FAILED, "killed");
    let found = engine.load_by(Compiler::Elsewhere(&|_| Err(told.clone())), &bytes, None).unwrap_err();
    assert_eq!(found, told);
    assert!(engine.loaded(&Digest::of(&bytes)).is_none());
    let module = load(&engine, &bytes);
    assert!(engine.loaded(&module.digest()).is_some());
}

#[test]
fn a_module_that_takes_long_to_compile_holds_up_no_other_and_is_compiled_once() {
    let engine = engine(Meter::Deadline);
    let slow = fixtures::answers(&manifest(), EMPTY_RESPONSE);
    let quick = fixtures::echoes(&manifest());
    let elsewhere = Precompiler::new(&engine.target()).unwrap();
    let (begun, begins) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let waits_for_go = Mutex::new((begun, may_go));
    let stuck = |job: Job<'_>| {
        let both = waits_for_go.lock().unwrap();
        both.0.send(()).unwrap();
        both.1.recv().unwrap();
        elsewhere.precompile(job.bytes)
    };
    let never = |_: Job<'_>| Err(Failure::terminal("Again", "it is compiled again"));
    thread::scope(|scope| {
        let first = scope.spawn(|| engine.load_by(Compiler::Elsewhere(&stuck), &slow, None));
        begins.recv().unwrap();
        assert!(engine.loaded(&Digest::of(&slow)).is_none(), "nobody waits to be told that it is not there");
        let second = scope.spawn(|| engine.load_by(Compiler::Elsewhere(&never), &slow, None));
        // While the other is compiled, and before it can be done.
        load(&engine, &quick);
        go.send(()).unwrap();
        let first = first.join().unwrap().unwrap();
        // Where it came late enough to be second at all.
        let second = second.join().unwrap().unwrap();
        assert!(ptr::eq(first.guest().unwrap().manifest(), second.guest().unwrap().manifest()));
    });
}

#[test]
fn a_function_that_is_too_large_or_has_too_many_locals_is_not_compiled() {
    let engine = engine(Meter::Deadline);
    let code = |functions: &str| wat(&format!("(component (core module (func) {functions}))"));
    let bytes = FUNCTION_BYTES_MAX;
    let (nops, locals) = ("nop ".repeat(bytes), "i32 ".repeat(LOCALS_MAX as usize));
    let (large, many) = (code(&format!("(func {nops})")), code(&format!("(func (local i64 {locals}))")));
    for (module, excess, said) in [
        (large, Excess::FunctionBytes, format!("has {} bytes, the limit is {bytes}", bytes + 2)),
        (many, Excess::Locals, format!("has {} locals, the limit is {LOCALS_MAX}", LOCALS_MAX + 1)),
    ] {
        let refused = engine.verify(&module, None).unwrap_err();
        assert_eq!(
            (refused.failure.reason.as_str(), refused.excess),
            (reasons::MODULE_TOO_LARGE, Some(excess))
        );
        assert!(refused.failure.message.contains(&said), "{}", refused.failure);
    }
    assert!(engine.verify(&code(&format!("(func (local {locals}))")), None).is_ok());
}
