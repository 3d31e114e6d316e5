//! The words of the contract, which guests and the engine give as well. They stand in [`pintle_wit::reasons`]; here they are said what
//! they mean to an operator.

use pintle_wit::reasons as contract;

use super::registry;

registry! {
    BEYOND_GRANT = contract::BEYOND_GRANT, [Root, Module], Reconciling,
        "The guest's answer would take more memory than the call was granted. The host calls again with \
         more.",
        "If it stays, have the guest answer with less.";
    OUT_OF_BOUNDS = contract::OUT_OF_BOUNDS, [Root, Module], Stalled,
        "The guest answered with a string that lies outside its memory.",
        "Build the guest with the SDK, or mend its bindings.";
    COMPILE_TOO_EXPENSIVE = contract::COMPILE_TOO_EXPENSIVE, [Module], Stalled,
        "Compiling the module takes more of a processor's time, or makes more machine code, than the host \
         grants. It is not tried again while the host runs.",
        "Make the module's functions smaller, and push it under another name.";
    COMPILER_FAILED = contract::COMPILER_FAILED, [Module], Reconciling,
        "The module was not compiled this time: the compiler had too little memory, took too long, or was \
         ended. It is tried again, at most five minutes apart.",
        "If it stays, make the module smaller, or give the host a machine that is less busy.";
    CONFIG_INVALID = contract::CONFIG_INVALID, [Reconciler, Root, View], Stalled,
        "The config does not fit the module's schema, or the guest refused it. The path names the field.",
        "Mend `spec.config` of the Reconciler or View.";
    CONFIG_SCHEMA_INVALID = contract::CONFIG_SCHEMA_INVALID, [Module], Stalled,
        "The schema of the guest's config is no schema, is too large or recursive, or uses what this host \
         does not take. The message names the place.",
        "Mend the guest's config type; see the limits in operators.md.";
    CONFIG_TOO_EXPENSIVE = contract::CONFIG_TOO_EXPENSIVE, [Reconciler, View], Stalled,
        "Checking the config against the module's schema takes more than 10,000,000 steps.",
        "Make `spec.config` smaller, or the guest's schema simpler.";
    CORE_MODULE = contract::CORE_MODULE, [Module], Stalled,
        "The bytes are a core module, and a guest is a component.",
        "Build the guest with `pintle build`, and push it again under another name.";
    DEADLINE = contract::DEADLINE, [Root, Module], Reconciling,
        "The guest ran longer than its deadline. It is tried again, and its Reconciler gets fewer workers \
         until that ends.",
        "Mend the guest, or raise `spec.limits.timeoutMilliseconds` of the Reconciler.";
    DIGEST_MISMATCH = contract::DIGEST_MISMATCH, [Module], Stalled,
        "The bytes do not have the digest in `spec.digest`, or that is no digest.",
        "Push the module again under another name.";
    FUEL = contract::FUEL, [Offline], Stalled,
        "The guest spent its fuel. Calls are counted in fuel without a cluster, and in time by a host.",
        "Mend the guest.";
    TRAP = contract::TRAP, [Root, Module], Stalled,
        "The guest's code trapped: it panicked, or did what WebAssembly forbids. Its panic message stays in \
         the sandbox.",
        "Run `pintle render` on the same resource, with the module in its guest's folder: it shows the message.";
    IMPORTS = contract::IMPORTS, [Module], Stalled,
        "The component imports something. A guest imports nothing.",
        "Build the guest with `pintle build`, which builds for wasm32-unknown-unknown, without WASI.";
    INVALID_DOCUMENT = contract::INVALID_DOCUMENT, [Root, Module], Stalled,
        "The guest's answer is JSON, but not the document that it should be. The path names the place.",
        "Mend the guest.";
    INVALID_JSON = contract::INVALID_JSON, [Root, Module], Stalled,
        "The guest's answer is not JSON, has a key twice, or has a number that no \
         double is, like 1e400.",
        "Mend the guest.";
    INVALID_SPEC = contract::INVALID_SPEC, [Root], Stalled,
        "The resource does not fit the guest's type, or the guest refused it. The path names the field.",
        "Mend the resource.";
    NOT_UTF8 = contract::NOT_UTF8, [Root, Module], Stalled,
        "The guest's answer is not UTF-8.",
        "Build the guest with the SDK, or mend its bindings.";
    INVALID_WASM = contract::INVALID_WASM, [Module], Stalled,
        "The bytes are WebAssembly that is not valid, or that uses a feature which guests may not use.",
        "Build the guest with `pintle build`, and push it again under another name.";
    MANIFEST_TOO_LARGE = contract::MANIFEST_TOO_LARGE, [Module], Stalled,
        "The manifest is larger, or declares more, than a host takes. The message names the place.",
        "Declare less. Several guests may reconcile what one does.";
    MEMORY_BUDGET = contract::MEMORY_BUDGET, [Root], Reconciling,
        "The call takes more memory than this host ever has for one. It is tried again.",
        "Raise the memory limit of the host (`resources.limits.memory`, `--memory-budget`), or lower \
         `spec.limits` of the Reconciler.";
    MEMORY = contract::MEMORY, [Root, Module], Either,
        "The guest asked for more memory than its limit, or a module begins with more. A call is tried \
         again; the module is not.",
        "Mend the guest, or raise `spec.limits.memoryMebibytes` of the Reconciler.";
    MISSING_EXPORT = contract::MISSING_EXPORT, [Module], Stalled,
        "The component lacks an export of the contract. The message names it.",
        "Build the guest with the SDK that fits the host's version of the contract.";
    MODULE_TOO_LARGE = contract::MODULE_TOO_LARGE, [Module], Stalled,
        "The module, or a function of it, is larger than the host accepts, or it has too many functions. \
         The message has the limit.",
        "Make the module smaller, and push it again under another name.";
    NEEDS_TOO_LARGE = contract::NEEDS_TOO_LARGE, [Root], Stalled,
        "What the guest asks to see is more than a call is shown. The message names the kind.",
        "Have the guest ask for fewer objects or fields.";
    NEEDS_UNSTABLE = contract::NEEDS_UNSTABLE, [Root], Stalled,
        "The guest still asks to see something else after it was shown what it had asked for.",
        "Mend the guest: it asks for everything that it needs every time, and for the same when it is shown \
         the same.";
    NOT_WASM = contract::NOT_WASM, [Module], Stalled,
        "The bytes are not WebAssembly in binary form.",
        "Build the guest with `pintle build`, and push it again under another name.";
    REFUSALS_UNSTABLE = contract::REFUSALS_UNSTABLE, [Root], Stalled,
        "The guest's answer and what the API server refuses did not settle within three calls.",
        "Mend the guest: it gives the same answer to the same refusals.";
    TOO_COMPLEX = contract::TOO_COMPLEX, [Root, Module], Stalled,
        "The guest's answer has more values than 64 for each KiB that it may have. The path names the first \
         one too many.",
        "Mend the guest, or raise `spec.limits.responseKibibytes` of the Reconciler.";
    TOO_DEEP = contract::TOO_DEEP, [Root, Module], Stalled,
        "The guest's answer is nested too deeply. The path names the place.",
        "Mend the guest.";
    TOO_LARGE = contract::TOO_LARGE, [Root, Module], Stalled,
        "The guest's answer has more bytes than its limit.",
        "Mend the guest, or raise `spec.limits.responseKibibytes` of the Reconciler.";
    STACK = contract::STACK, [Root, Module], Stalled,
        "The guest used up its stack.",
        "Mend the guest: most often it recurses without end.";
    TOO_MANY_FIELDS = contract::TOO_MANY_FIELDS, [Root], Reconciling,
        "The roots of the Reconciler ask for more different fields of one kind than the host keeps for \
         them. It is tried again.",
        "Have the guest ask for a field that holds them, for instance `spec`.";
    UNKNOWN_FIELD = contract::UNKNOWN_FIELD, [Root, Module], Stalled,
        "The guest's answer has a field or a variant that the contract does not know. The path names it.",
        "Mend the guest, or run a host that knows the field.";
    WRONG_TYPE = contract::WRONG_TYPE, [Module], Stalled,
        "An export of the contract has another type. The message has both types.",
        "Build the guest with the SDK that fits the host's version of the contract.";
}
