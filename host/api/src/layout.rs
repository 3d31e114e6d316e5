//! The layout of a module's bytes in ConfigMaps: `pintle push` and other tools write them in this form, and the host joins them.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde_json::{Value, json};

use crate::{ConfigMapSource, Module, ModuleSource, ModuleSpec, NAMESPACE};

/// The key in each ConfigMap.
const KEY: &str = "module.wasm";
/// How much of a module goes into one ConfigMap, in bytes. It holds at most 1 MiB, keys and names included, and in base64 it stays below
/// the 1.5 MiB of a request.
const PART_BYTES: usize = 900 << 10;
/// The label on the ConfigMaps: the Module that they belong to. Only for people, who look for them.
const LABEL_MODULE: &str = "pintle.dev/module";
/// The longest value of a label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

impl ConfigMapSource {
    /// Where a module of so many bytes lies that belongs to the Module `name`.
    fn of_module(namespace: &str, name: &str, bytes: usize) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            key: KEY.into(),
            // At most 64 parts, as the CRD has it: the engine takes no module as large.
            parts: u32::try_from(bytes.div_ceil(PART_BYTES).max(1)).unwrap_or(u32::MAX),
        }
    }

    /// The ConfigMaps that hold the bytes of the Module `module`.
    fn config_maps(&self, module: &str, bytes: &[u8]) -> Vec<ConfigMap> {
        // A label's value is shorter than a name may be.
        let label = (module.len() <= LABEL_BYTES_MAX).then(|| (LABEL_MODULE.to_owned(), module.to_owned()));
        let labels = label.map(|label| BTreeMap::from([label]));
        // What is empty is one part too.
        let parts = bytes.chunks(PART_BYTES).chain(bytes.is_empty().then_some(&[][..]));
        let config_map = |(name, part): (String, &[u8])| ConfigMap {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(self.namespace.clone()),
                labels: labels.clone(),
                ..ObjectMeta::default()
            },
            binary_data: Some(BTreeMap::from([(self.key.clone(), ByteString(part.to_vec()))])),
            immutable: Some(true),
            ..ConfigMap::default()
        };
        self.names().into_iter().zip(parts).map(config_map).collect()
    }
}

/// The objects of a module, as `pintle push` makes them.
#[derive(Clone, Debug)]
pub struct ModuleObjects {
    /// What holds the bytes. They come first, since the Module names them.
    pub config_maps: Vec<ConfigMap>,
    /// What names the bytes.
    pub module: Module,
}

impl ModuleObjects {
    /// The objects for a module whose ConfigMaps are to be in this namespace.
    pub fn new(namespace: &str, name: &str, bytes: &[u8], digest: &str) -> Self {
        let source = ConfigMapSource::of_module(namespace, name, bytes.len());
        let config_maps = source.config_maps(name, bytes);
        let spec = ModuleSpec { digest: digest.into(), source: ModuleSource { config_map: Some(source) } };
        Self { config_maps, module: Module::new(name, spec) }
    }

    /// The objects as JSON, in their order.
    pub fn to_values(&self) -> Vec<Value> {
        let config_maps = self.config_maps.iter().map(|config_map| json!(config_map));
        config_maps.chain([json!(self.module)]).collect()
    }
}

/// The objects that `pintle push` makes of a module by default, in their order, as JSON: tests and simulations apply these.
pub fn module_objects(name: &str, bytes: &[u8], digest: &str) -> Vec<Value> {
    ModuleObjects::new(NAMESPACE, name, bytes, digest).to_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_cut_into_parts_that_put_together_are_its_bytes() {
        for bytes in [vec![], vec![1], vec![2; PART_BYTES], vec![3; PART_BYTES + 1], vec![4; 3 * PART_BYTES]]
        {
            let source = ConfigMapSource::of_module("somewhere", "toy", bytes.len());
            let config_maps = source.config_maps("toy", &bytes);
            assert_eq!(config_maps.len(), source.parts as usize);
            let names: Vec<String> =
                config_maps.iter().filter_map(|config_map| config_map.metadata.name.clone()).collect();
            assert_eq!(names, source.names());
            let parts = config_maps.iter().filter_map(|config_map| config_map.binary_data.as_ref()?.get(KEY));
            let whole: Vec<u8> = parts.flat_map(|ByteString(part)| part.clone()).collect();
            assert_eq!(whole, bytes);
        }
    }

    #[test]
    fn the_module_comes_after_what_it_names_and_without_a_status() {
        let objects = module_objects(&"a".repeat(64), &[0; 10], "sha256:0");
        assert_eq!(objects[0]["kind"], "ConfigMap");
        assert_eq!(objects[0]["metadata"]["labels"], Value::Null, "a label's value would be too long");
        assert_eq!(objects[1]["kind"], "Module");
        assert_eq!(objects[1].get("status"), None);
    }
}
