//! Allocates addresses and node ports for Services, as the API server does.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Failure, failure::cause, kinds::Served, random, store::Key, verbs::Context};

/// The ranges of node ports, and of the last two bytes of addresses as one number.
const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;
const ADDRESSES: std::ops::Range<u64> = 10..65_000;

/// Gives a Service what its type needs, and keeps what it has.
///
/// # Errors
/// 422 when a node port is taken.
pub(crate) fn service(
    context: &mut Context<'_>,
    served: &Served,
    key: &Key,
    live: Option<&Value>,
    next: &mut Value,
) -> Result<(), Failure> {
    let spec = &mut next["spec"];
    if let Some(live) = live {
        keep(&live["spec"], spec);
    }
    if !has_address(spec) {
        return Ok(());
    }
    let Context { store, random, .. } = context;
    let others = store.objects().iter().filter(|(other, _)| served.has(other) && *other != key);
    let others: Vec<&Value> = others.map(|(_, other)| &other["spec"]).collect();
    if spec["clusterIP"].is_null() {
        // A random free one, as in a cluster, so an address that was just released is rarely the next one.
        let mut addresses = random::numbers(random, ADDRESSES)
            .map(|number| format!("10.96.{}.{}", number / 256, number % 256));
        let is_free = |address: &String| others.iter().all(|other| other["clusterIP"] != address.as_str());
        spec["clusterIP"] = addresses.find(is_free).into();
    }
    spec["clusterIPs"] = json!([spec["clusterIP"]]);
    for (field, value) in [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    if !has_node_ports(spec) {
        return Ok(());
    }
    let numbers = |spec: &Value| -> BTreeSet<u64> {
        spec["ports"].as_array().into_iter().flatten().filter_map(|port| port["nodePort"].as_u64()).collect()
    };
    let mut taken: BTreeSet<u64> = others.into_iter().flat_map(numbers).collect();
    let asked = numbers(spec);
    for (index, port) in ports(spec).enumerate() {
        match port["nodePort"].as_u64() {
            Some(number) if taken.contains(&number) => {
                let message = format!("Invalid value: {number}: provided port is already allocated");
                let at = format!("spec.ports[{index}].nodePort");
                let causes = vec![cause(&at, "FieldValueInvalid", message)];
                return Err(Failure::invalid(&served.qualified_kind(), &key.name, causes));
            }
            Some(_) => {}
            None => {
                let is_free = |number: &u64| !taken.contains(number) && !asked.contains(number);
                let free = random::numbers(random, NODE_PORTS).find(is_free);
                port["nodePort"] = free.into();
                taken.extend(free);
            }
        }
    }
    Ok(())
}

fn has_address(spec: &Value) -> bool {
    spec["type"] != "ExternalName"
}

fn has_node_ports(spec: &Value) -> bool {
    spec["type"] == "NodePort" || spec["type"] == "LoadBalancer"
}

fn ports(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten()
}

/// A Service keeps the address and the node ports that a write leaves out, as far as its type still needs them.
fn keep(live: &Value, next: &mut Value) {
    if has_address(live) && !has_address(next) {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            forget(live, next, field);
        }
    } else if has_address(live) && next["clusterIP"].is_null() {
        for field in ["clusterIP", "clusterIPs"] {
            next[field] = live[field].clone();
        }
    }
    if !has_node_ports(live) {
        return;
    }
    let known = live["ports"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !has_node_ports(next) {
        forget(live, next, "externalTrafficPolicy");
        for port in ports(next) {
            if let Some(was) = known.iter().find(|was| was["nodePort"] == port["nodePort"]) {
                forget(was, port, "nodePort");
            }
        }
        return;
    }
    let mut used: Vec<Value> = ports(next).map(|port| port["nodePort"].clone()).collect();
    for port in ports(next).filter(|port| port["nodePort"].is_null()) {
        // A port is identified by its name, whatever else of it changes.
        let was = known.iter().rev().find(|was| was["name"] == port["name"]).map(|was| &was["nodePort"]);
        if let Some(was) = was.filter(|was| !was.is_null() && !used.contains(was)) {
            port["nodePort"] = was.clone();
            used.push(was.clone());
        }
    }
}

/// Takes away what is as it was.
fn forget(live: &Value, next: &mut Value, field: &str) {
    if next.get(field) == live.get(field)
        && let Some(fields) = next.as_object_mut()
    {
        fields.remove(field);
    }
}
