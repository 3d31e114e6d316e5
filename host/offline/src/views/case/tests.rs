use super::*;

#[test]
fn a_misspelt_key_is_an_error_and_an_item_has_the_words_of_the_contract() {
    let case = |value: Value| serde_json::from_value::<ViewCase>(value);
    assert!(case(json!({"view": "a", "shows": []})).is_err());
    let items = json!([{"object": {"spec": {}}}, {"failure": {"reason": "Odd", "path": "spec"}}]);
    let expect = case(json!({"view": "a", "show": [{}, {}], "expect": {"shown": items.clone()}})).unwrap();
    assert_eq!(Value::Array(Found::expected(&expect.expect.unwrap()).shown), items);
}

#[test]
fn an_object_may_leave_out_its_kind_and_have_no_other() {
    let pod = pintle_wit::Kind::new("v1", "Pod");
    let whole = of_kind(&json!({"spec": {}}), &pod, "show[0]").unwrap();
    assert_eq!(whole, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}));
    let node = json!({"apiVersion": "v1", "kind": "Node"});
    assert_eq!(of_kind(&node, &pod, "show[1]").unwrap_err(), "show[1] is a v1 Node, and should be a v1 Pod");
    assert!(of_kind(&json!([]), &pod, "show[2]").is_err());
}
