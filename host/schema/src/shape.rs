//! What a schema says about how values are merged.

use serde_json::Value;

/// The schema of one place in an object: OpenAPI with Kubernetes' extensions, as in CRDs and in the API server's own definitions.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    /// The definitions that `$ref` leads to.
    definitions: &'a Value,
    /// None if nothing is known. Then maps are merged and lists are not.
    node: Option<&'a Value>,
}

/// How a list is merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum List<'a> {
    /// It is one value.
    Atomic,
    /// Its items are plain values, each of which occurs once.
    Set,
    /// Its items are identified by these fields.
    Map(Vec<&'a str>),
}

impl<'a> Shape<'a> {
    /// A schema, with the definitions for its references.
    pub fn new(definitions: &'a Value, node: &'a Value) -> Self {
        Self { definitions, node: Some(node) }.resolved()
    }

    fn unknown(self) -> Self {
        Self { node: None, ..self }
    }

    /// Another schema for this place.
    pub fn at(self, node: &'a Value) -> Self {
        Self { node: Some(node), ..self }.resolved()
    }

    fn resolved(mut self) -> Self {
        while let Some(name) = self.get("$ref").and_then(Value::as_str) {
            let name = name.rsplit('/').next().unwrap_or(name);
            self.node = self.definitions.get(name);
        }
        self
    }

    /// The value of a keyword of the schema.
    pub fn get(self, keyword: &str) -> Option<&'a Value> {
        self.node.and_then(|node| node.get(keyword))
    }

    fn says(self, keyword: &str) -> bool {
        self.get(keyword) == Some(&Value::Bool(true))
    }

    /// The type, if the schema has one.
    pub fn type_name(self) -> Option<&'a str> {
        self.get("type").and_then(Value::as_str)
    }

    /// Whether any value is allowed here.
    pub fn is_open(self) -> bool {
        let has = |keyword: &str| self.get(keyword).is_some();
        self.node.is_none()
            || self.preserves_unknown()
            || !["type", "properties", "oneOf", "items"].iter().any(|keyword| has(keyword))
                && !self.is_int_or_string()
            || self.type_name() == Some("object") && !has("properties") && !has("additionalProperties")
    }

    /// Whether fields are kept that the schema does not declare.
    pub fn preserves_unknown(self) -> bool {
        self.says("x-kubernetes-preserve-unknown-fields")
    }

    /// Whether it is a number or text, for instance a port.
    pub fn is_int_or_string(self) -> bool {
        self.says("x-kubernetes-int-or-string")
            || self.get("format").and_then(Value::as_str) == Some("int-or-string")
    }

    /// Whether it is a quantity such as `500m`: a number or text.
    pub fn is_quantity(self) -> bool {
        self.get("oneOf").is_some() && self.type_name().is_none() && !self.is_int_or_string()
    }

    /// The shape of a declared field.
    pub fn field(self, name: &str) -> Option<Self> {
        self.get("properties").and_then(|properties| properties.get(name)).map(|node| self.at(node))
    }

    /// The shape of a field, declared or not; `None` if the field is not allowed.
    pub fn member(self, name: &str) -> Option<Self> {
        self.field(name).or_else(|| match self.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(self.unknown()),
            Some(node) => Some(self.at(node)),
            None => self.is_open().then(|| self.unknown()),
        })
    }

    /// The declared fields.
    pub fn fields(self) -> impl Iterator<Item = (&'a String, Self)> {
        let properties = self.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(move |(name, node)| (name, self.at(node)))
    }

    /// The shape of the items of a list.
    pub fn items(self) -> Self {
        self.get("items").map_or(self.unknown(), |node| self.at(node))
    }

    /// Whether a map is one value.
    pub fn is_atomic_map(self) -> bool {
        self.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic")
    }

    /// How a list is merged.
    pub fn list(self) -> List<'a> {
        match self.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => List::Set,
            Some("map") => {
                let keys = self.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                List::Map(keys.into_iter().flatten().filter_map(Value::as_str).collect())
            }
            _ => List::Atomic,
        }
    }

    /// The step of a path that leads to an item of a list, as [`item_key`](Self::item_key) identifies it.
    pub fn item_step(self, item: &Value) -> Option<String> {
        let sort = if self.list() == List::Set { "v" } else { "k" };
        self.item_key(item).map(|key| format!("{sort}:{key}"))
    }

    /// What identifies an item of a list, as JSON. `None` if the list is atomic, or the item has none of the fields that identify it.
    pub fn item_key(self, item: &Value) -> Option<String> {
        match self.list() {
            List::Atomic => None,
            List::Set => Some(item.to_string()),
            List::Map(keys) => {
                let mut found = serde_json::Map::new();
                for key in keys {
                    let default = || self.items().field(key).and_then(|shape| shape.get("default"));
                    let value = item.get(key).filter(|value| !value.is_null()).or_else(default);
                    if let Some(value) = value {
                        found.insert(key.into(), value.clone());
                    }
                }
                (!found.is_empty()).then(|| Value::Object(found).to_string())
            }
        }
    }

    /// The shape after a step of a path.
    pub fn step(self, step: &str) -> Option<Self> {
        match step.strip_prefix("f:") {
            Some(name) => self.member(name),
            None => Some(self.items()),
        }
    }
}
