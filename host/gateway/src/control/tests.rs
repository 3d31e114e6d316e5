use super::*;

#[test]
fn what_a_status_no_longer_says_is_removed_by_the_patch() {
    let status = |value: serde_json::Value| serde_json::from_value::<ViewStatus>(value).unwrap();
    let active = json!({"module": "m", "digest": "d", "config": {"a": 1}, "epoch": 1, "since": "t"});
    let before =
        status(json!({"active": active, "candidate": {"module": "n", "reason": "R", "message": "m"}}));
    let after = status(json!({"active": {"module": "m", "digest": "d", "epoch": 2, "since": "t"}}));
    let patch = with_nulls(Some(&before), &after);
    assert_eq!(patch["candidate"], json!(null));
    assert_eq!(
        patch["active"],
        json!({"module": "m", "digest": "d", "config": null, "epoch": 2, "since": "t"})
    );
    let mut patched = serde_json::to_value(&before).unwrap();
    json_patch::merge(&mut patched, &patch);
    assert_eq!(status(patched), after);
}
