//! Evaluates the CEL rules of a schema (`x-kubernetes-validations`).

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Context, Value as Cel,
    objects::{self, OptionalValue},
};
use pintle_core::view::status::fault::{forbidden, required};
use pintle_wit::Cause;
use serde_json::Value;

use super::{
    cost::{self, BUDGET, CALL_MAX},
    found::{Counted, Found},
    node::{Additional, Node},
    rule::{CONTEXT, Rule},
};
use crate::cause::{duplicate, duplicate_unseen, invalid, invalid_unseen};

/// Finds the rules that a value violates, compared with what it was if it was anything.
pub(super) fn check(node: &Node, value: &Value, old: Option<&Value>, found: &mut Found) -> Counted {
    let mut run = Run { found, budget: BUDGET, is_over: false };
    CONTEXT.with(|context| run.walk(context, node, value, old, false, ""))
}

struct Run<'f> {
    found: &'f mut Found,
    /// What is left to spend.
    budget: u64,
    /// Whether no further rules are evaluated.
    is_over: bool,
}

impl Run<'_> {
    /// Evaluates the rules at one place, and those below. If `is_same`, what is around this value has not changed.
    fn walk(
        &mut self,
        context: &Context<'_>,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        is_same: bool,
        path: &str,
    ) -> Counted {
        self.found.look_at(path)?;
        if !node.has_rules || value.is_null() || self.is_over {
            return Ok(());
        }
        if let Some(old) = old {
            self.found.read(old)?;
        }
        let is_same = is_same || old == Some(value);
        if is_same && !node.has_transitions {
            return Ok(());
        }
        self.here(context, node, value, old, is_same, path)?;
        for branch in &node.all_of {
            self.walk(context, branch, value, old, false, path)?;
        }
        match value {
            Value::Object(fields) => {
                let old = |name: &str| old.and_then(|old| old.get(name));
                for (name, within) in fields {
                    if let Some(Additional::Of(member)) = &node.additional {
                        self.walk(context, member, within, old(name), is_same, &format!("{path}[{name}]"))?;
                    }
                    if let Some(member) = node.properties.get(name) {
                        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                        self.walk(context, member, within, old(name), is_same, &path)?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(member) = &node.items {
                    let olds = node.old_items(old, items, self.found)?;
                    for (index, (item, old)) in items.iter().zip(olds).enumerate() {
                        self.walk(context, member, item, old, is_same, &format!("{path}[{index}]"))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn here(
        &mut self,
        context: &Context<'_>,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        is_same: bool,
        path: &str,
    ) -> Counted {
        if node.rules.is_empty() {
            return Ok(());
        }
        self.found.read(value)?;
        let mut scope = context.new_inner_scope();
        scope.add_variable_from_value("self", cel(node, value));
        let old = old.filter(|old| !old.is_null());
        for rule in &node.rules {
            // A rule about the old value does not apply to a new one, and a violation that was there before is forgiven.
            let is_due = match rule.is_transition {
                true => old.is_some() || rule.is_old_optional,
                false => !is_same,
            };
            self.found.spend(1)?;
            if !is_due || !self.may_cost(node, rule, value, old, path)? {
                continue;
            }
            if let Some(old) = old {
                self.found.read(old)?;
            }
            let before = old.map(|old| cel(node, old));
            match (rule.is_old_optional, before) {
                (true, before) => {
                    let before = before.map_or_else(OptionalValue::none, OptionalValue::of);
                    scope.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(before)));
                }
                (false, Some(before)) => scope.add_variable_from_value("oldSelf", before),
                (false, None) => {}
            }
            match rule.holds(&scope) {
                Ok(true) => {}
                Ok(false) => self.found.push(violation(rule, &rule.message(&scope), value, path))?,
                Err(why) => self.found.push(invalid(path, &type_name(node), &why))?,
            }
        }
        Ok(())
    }

    /// Whether a rule is cheap enough to be evaluated. If not, no further rule is, as with the API server.
    fn may_cost(
        &mut self,
        node: &Node,
        rule: &Rule,
        value: &Value,
        old: Option<&Value>,
        path: &str,
    ) -> Counted<bool> {
        if self.is_over {
            return Ok(false);
        }
        let compiled = &rule.compiled;
        let mut cost = 0_u64;
        for program in [Some(&compiled.program), compiled.message_program.as_ref()].into_iter().flatten() {
            cost = cost.saturating_add(cost::most(program, value, old, self.found)?);
        }
        let why = if cost > CALL_MAX {
            format!(
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call \
                 cost exceeds limit for rule: {}",
                rule.name()
            )
        } else if cost > self.budget {
            "validation failed due to running out of cost budget, no further validation rules will be run"
                .into()
        } else {
            self.budget -= cost;
            return Ok(true);
        };
        self.is_over = true;
        self.found.push(invalid(path, &type_name(node), &why))?;
        Ok(false)
    }
}

/// Errors of a rule itself show the type of the value instead of the value.
fn type_name(node: &Node) -> Value {
    node.words.type_name.clone().unwrap_or_default().into()
}

fn violation(rule: &Rule, told: &str, value: &Value, path: &str) -> Cause {
    let below = rule.compiled.rule.field_path.as_deref().unwrap_or_default();
    let field = format!("{path}{below}");
    let field = field.strip_prefix('.').unwrap_or(&field);
    let is_large = value.is_object() || value.is_array();
    match rule.compiled.rule.reason.as_deref() {
        Some("FieldValueRequired") => required(field, told),
        Some("FieldValueForbidden") => forbidden(field, told),
        Some("FieldValueDuplicate") if is_large => duplicate_unseen(field),
        Some("FieldValueDuplicate") => duplicate(field, value),
        _ if is_large => invalid_unseen(field, told),
        _ => invalid(field, value, told),
    }
}

/// A value as rules see it: numbers are of the schema's type, and declared fields have the names that rules write.
fn cel(node: &Node, value: &Value) -> Cel {
    let is_double = node.words.type_name.as_deref() == Some("number") && !node.words.int_or_string;
    match value {
        Value::Number(number) if is_double => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(items) => {
            let item = |item| node.items.as_ref().map_or_else(|| plain(item), |node| cel(node, item));
            Cel::List(Arc::new(items.iter().map(item).collect()))
        }
        Value::Object(fields) => map(fields.iter().flat_map(|(name, value)| {
            let is_declared = node.properties.contains_key(name);
            let keys = if is_declared { names(name) } else { vec![name.clone()] };
            let value = node.field(name).map_or_else(|| plain(value), |node| cel(node, value));
            keys.into_iter().map(move |key| (key, value.clone()))
        })),
        other => plain(other),
    }
}

/// A value of which the schema says nothing.
fn plain(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(is) => Cel::Bool(*is),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cel::Int(number),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(fields) => map(fields.iter().map(|(name, value)| (name.clone(), plain(value)))),
    }
}

fn map(fields: impl Iterator<Item = (String, Cel)>) -> Cel {
    let key = |name: String| objects::Key::String(Arc::new(name));
    let map: HashMap<objects::Key, Cel> = fields.map(|(name, value)| (key(name), value)).collect();
    Cel::Map(objects::Map { map: Arc::new(map) })
}

/// Words of CEL that cannot be the name of a variable.
const RESERVED: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// The names of a declared field as rules write them: escaped and, of a word of CEL, also the word, as since Kubernetes 1.32. The parser
/// takes any word after a dot but `true`, `false`, `null` and `in`.
pub(super) fn names(field: &str) -> Vec<String> {
    if RESERVED.contains(&field) {
        return vec![format!("__{field}__"), field.to_owned()];
    }
    let escaped = field
        .replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    vec![escaped]
}
