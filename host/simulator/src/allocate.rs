//! Allocates addresses and node ports for Services, as the API server does.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{Failure, failure::cause, kinds::Served, store::Key, verbs::Context};

/// The ranges of node ports, and of the last two bytes of addresses as one number.
const NODE_PORTS: std::ops::Range<u64> = 30_000..32_768;
const ADDRESSES: std::ops::Range<u64> = 10..65_000;

/// Gives a Service what its type needs, and keeps what it has.
///
/// # Errors
/// 422 when a node port or an address is taken.
pub(crate) fn service(
    context: &mut Context<'_>,
    served: &Served,
    key: &Key,
    live: Option<&Value>,
    next: &mut Value,
) -> Result<(), Failure> {
    let name = next["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if let Some(live) = live {
        keep(&live["spec"], &mut next["spec"]);
    }
    let Context { store, random, .. } = context;
    let others: Vec<&Value> = store
        .objects()
        .iter()
        .filter(|(other, _)| other.group.is_empty() && other.resource == "services" && *other != key)
        .map(|(_, other)| &other["spec"])
        .collect();
    let spec = &mut next["spec"];
    let kind = spec["type"].as_str().unwrap_or_default().to_owned();
    if kind == "ExternalName" {
        return Ok(());
    }
    let address = spec["clusterIP"].as_str().unwrap_or_default().to_owned();
    let taken: BTreeSet<&str> = others.iter().filter_map(|other| other["clusterIP"].as_str()).collect();
    let address = match address.as_str() {
        // A random free one, as in a cluster, so an address that was just released is rarely the next one.
        "" => random
            .from(ADDRESSES)
            .map(|number| format!("10.96.{}.{}", number / 256, number % 256))
            .find(|address| !taken.contains(address.as_str()))
            .unwrap_or_default(),
        "None" => address,
        asked if taken.contains(asked) => {
            let message = format!(
                "Invalid value: {asked:?}: failed to allocate IP {asked}: provided IP is already allocated"
            );
            let causes = vec![cause("spec.clusterIPs", "FieldValueInvalid", message)];
            return Err(Failure::invalid(&served.qualified_kind(), &name, causes));
        }
        _ => address,
    };
    spec["clusterIPs"] = json!([address]);
    spec["clusterIP"] = address.into();
    for (field, value) in [("ipFamilies", json!(["IPv4"])), ("ipFamilyPolicy", json!("SingleStack"))] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    if !matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        return Ok(());
    }
    let ports = |spec: &Value| -> Vec<u64> {
        spec["ports"].as_array().into_iter().flatten().filter_map(|port| port["nodePort"].as_u64()).collect()
    };
    let mut taken: BTreeSet<u64> = others.iter().flat_map(|other| ports(other)).collect();
    let asked = ports(spec);
    for (index, port) in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        match port["nodePort"].as_u64() {
            Some(number) if taken.contains(&number) => {
                let message = format!("Invalid value: {number}: provided port is already allocated");
                let causes =
                    vec![cause(&format!("spec.ports[{index}].nodePort"), "FieldValueInvalid", message)];
                return Err(Failure::invalid(&served.qualified_kind(), &name, causes));
            }
            Some(number) if !NODE_PORTS.contains(&number) => {
                let message = format!(
                    "Invalid value: {number}: provided port is not in the valid range. The range of valid ports is 30000-32767"
                );
                let causes =
                    vec![cause(&format!("spec.ports[{index}].nodePort"), "FieldValueInvalid", message)];
                return Err(Failure::invalid(&served.qualified_kind(), &name, causes));
            }
            Some(_) => {}
            None => {
                let free =
                    random.from(NODE_PORTS).find(|number| !taken.contains(number) && !asked.contains(number));
                port["nodePort"] = free.into();
                taken.extend(free);
            }
        }
    }
    Ok(())
}

/// A Service keeps the address and the node ports that a write leaves out, as far as its type still needs them.
fn keep(live: &Value, next: &mut Value) {
    let has_address = |spec: &Value| spec["type"] != "ExternalName";
    let has_ports = |spec: &Value| matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer"));
    if has_address(live) && has_address(next) {
        if next["clusterIP"].as_str().unwrap_or_default().is_empty() {
            next["clusterIP"] = live["clusterIP"].clone();
            next["clusterIPs"] = live["clusterIPs"].clone();
        }
    } else if has_address(live)
        && let Some(fields) = next.as_object_mut()
    {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if fields.get(field) == live.get(field) {
                fields.remove(field);
            }
        }
    }
    if has_ports(live) && has_ports(next) {
        let ports = |spec: &Value| spec["ports"].as_array().cloned().unwrap_or_default();
        let (known, named) = (ports(live), ports(next));
        let mut used: Vec<Value> = known.iter().map(|port| port["nodePort"].clone()).collect();
        used.retain(|number| named.iter().any(|port| port["nodePort"] == *number));
        for port in next.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            // A port is identified by its name, whatever else of it changes.
            let was =
                known.iter().rev().find(|was| was["name"] == port["name"]).map(|was| was["nodePort"].clone());
            if let Some(was) =
                was.filter(|was| port["nodePort"].is_null() && !was.is_null() && !used.contains(was))
            {
                port["nodePort"] = was.clone();
                used.push(was);
            }
        }
    } else if has_ports(live) {
        let known = live["ports"].as_array().cloned().unwrap_or_default();
        for port in next.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            let same = known.iter().any(|was| was["nodePort"] == port["nodePort"]);
            if let Some(fields) = port.as_object_mut().filter(|_| same) {
                fields.remove("nodePort");
            }
        }
        if next["externalTrafficPolicy"] == live["externalTrafficPolicy"]
            && let Some(fields) = next.as_object_mut()
        {
            fields.remove("externalTrafficPolicy");
        }
    }
}
