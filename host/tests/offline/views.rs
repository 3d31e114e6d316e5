//! The guests of this repository that serve views, as components: what their modules declare, show and store.

use std::{env, fs, path::PathBuf};

use pintle_engine::{CallLimits, Origin, Views};
use pintle_offline as offline;
use serde_json::{Value, json};

fn farm() -> Views {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target")), PathBuf::from);
    let path = target.join("guests/farm.wasm");
    let bytes = fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; run: cargo xtask guests", path.display()));
    let module = offline::engine().unwrap().load(&bytes, None).unwrap();
    assert!(module.guest().is_none(), "the farm reconciles nothing");
    module.views().unwrap()
}

fn show(farm: &Views, view: &str, objects: &[Value]) -> Vec<Value> {
    let request = json!({"apiVersion": "guest.pintle.dev/v1", "view": view, "objects": objects});
    let answer = farm.show(&request.to_string(), objects.len(), &CallLimits::default()).unwrap();
    answer.response.items.iter().map(|item| serde_json::to_value(item).unwrap()).collect()
}

fn store(farm: &Views, spec: &Value) -> Result<Value, (Origin, String)> {
    let request =
        json!({"apiVersion": "guest.pintle.dev/v1", "view": "llamas", "object": {"spec": spec.clone()}});
    match farm.store(&request.to_string(), &CallLimits::default()) {
        Ok(answer) => Ok(Value::Object(answer.response.object)),
        Err(error) => Err((error.origin, error.failure.path.unwrap_or_default())),
    }
}

#[test]
fn the_module_of_the_farm_declares_two_views_with_their_schemas() {
    let farm = farm();
    let manifest = farm.manifest();
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("farm", "0.1.0"));
    let declared: Vec<(&str, String, bool)> = manifest
        .views
        .iter()
        .map(|view| (view.name.as_str(), view.backing.to_string(), view.is_writable()))
        .collect();
    assert_eq!(
        declared,
        [
            ("farmpods", "v1 Pod".to_owned(), false),
            ("llamas", "store.farm.example.com/v1 LlamaRecord".to_owned(), true)
        ]
    );
    for view in &manifest.views {
        assert_eq!(view.schema().unwrap()["properties"]["spec"]["type"], "object", "{}", view.name);
    }
}

#[test]
fn each_pod_is_shown_whatever_the_others_are() {
    let pod = |containers: usize| json!({"spec": {"containers": vec![json!({"name": "a"}); containers]}});
    let farm = farm();
    let shown = show(&farm, "farmpods", &[pod(1), json!({"spec": {}}), pod(3)]);
    assert_eq!(shown[0], json!({"object": {"spec": {"containers": 1}}}));
    assert_eq!(shown[1]["failure"]["path"], "spec.containers");
    assert_eq!(shown[2], json!({"object": {"spec": {"containers": 3}}}));
    let alone = show(&farm, "farmpods", &[pod(3)]);
    assert_eq!(alone[0], shown[2]);
}

#[test]
fn a_llama_is_stored_as_it_is_written_and_shown_as_it_is_stored() {
    let farm = farm();
    let dolly = json!({"weight": 31.4, "height": 0.5});
    let stored = store(&farm, &dolly).unwrap();
    assert_eq!(stored, json!({"spec": dolly}));
    assert_eq!(show(&farm, "llamas", &[stored]), [json!({"object": {"spec": dolly}})]);
    let refused = store(&farm, &json!({"weight": 0, "height": 0.5})).unwrap_err();
    assert_eq!(refused, (Origin::Guest, "spec.weight".to_owned()));
}

/// Doubles of all magnitudes, from a seed (SplitMix64).
fn doubles(count: usize) -> impl Iterator<Item = f64> {
    let mut state = 0_u64;
    let bits = std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    bits.map(|bits| f64::from_bits(bits).abs()).filter(|double| double.is_normal()).take(count)
}

#[test]
fn a_number_goes_through_the_farm_as_the_same_integer_or_the_same_double() {
    let farm = farm();
    let integers = [(1 << 53) - 1, (1 << 53) + 1, i64::MAX - 1, i64::MAX].map(Value::from);
    let known = [254.628_595_660_358_34, 31.4, 5e-324, f64::MAX, 1e22, 0.1].map(Value::from);
    for number in doubles(300).map(Value::from).chain(integers).chain(known) {
        let dolly = json!({"weight": number, "height": 1});
        let stored = store(&farm, &dolly).unwrap();
        assert_eq!(stored, json!({"spec": dolly}));
        assert_eq!(show(&farm, "llamas", &[stored]), [json!({"object": {"spec": dolly}})]);
    }
}
