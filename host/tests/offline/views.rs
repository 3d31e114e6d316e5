//! Numbers in views, through a component: whether they stay what they are depends on how the guest was compiled.

use std::fs;

use pintle_engine::CallLimits;
use pintle_offline as offline;
use serde_json::{Value, json};

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
    let bytes = fs::read(kit::modules::guests().join("farm.wasm")).expect("run: cargo xtask guests");
    let farm = offline::engine().unwrap().load(&bytes, None).unwrap().views().unwrap();
    let limits = CallLimits::default();
    let integers = [(1 << 53) - 1, (1 << 53) + 1, i64::MAX - 1, i64::MAX].map(Value::from);
    let known = [254.628_595_660_358_34, 31.4, 5e-324, f64::MAX, 1e22, 0.1].map(Value::from);
    for number in doubles(300).map(Value::from).chain(integers).chain(known) {
        let dolly = json!({"spec": {"weight": number, "height": 1}});
        let write = json!({"apiVersion": "guest.pintle.dev/v1", "view": "llamas", "object": dolly});
        let stored = Value::Object(farm.store(&write.to_string(), &limits).unwrap().response.object);
        assert_eq!(stored, dolly);
        let read = json!({"apiVersion": "guest.pintle.dev/v1", "view": "llamas", "objects": [stored]});
        let shown = farm.show("llamas", &read.to_string(), 1, &limits).unwrap().response.items;
        assert_eq!(serde_json::to_value(shown).unwrap(), json!([{"object": dolly}]));
    }
}
