//! The CEL rules of CRDs (`x-kubernetes-validations`).

use std::{collections::HashMap, fmt, sync::Arc};

use kube_cel::{
    CompilationError, CompilationResult, CompiledSchema, KubeCelExt,
    cel::{Context, ExecutionError, Value as Cel, extractors::This, objects},
};
use pintle_wit::Cause;
use serde_json::Value;

use crate::{Failure, failure::cause};

const KEYWORD: &str = "x-kubernetes-validations";

/// The rules of a custom kind, compiled once; `None` if there are none.
#[derive(Clone, Default)]
pub(crate) struct Rules(Option<Arc<CompiledSchema>>);

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "some rules" } else { "no rules" })
    }
}

impl Rules {
    /// The rules of a schema in a CRD.
    pub(crate) fn of(schema: &Value) -> Self {
        Self(has_rules(schema).then(|| Arc::new(kube_cel::compile_schema(schema))))
    }

    pub(crate) fn are_any(&self) -> bool {
        self.0.is_some()
    }

    /// The rules that a change violates.
    ///
    /// # Errors
    /// 501 for a rule that cannot be evaluated here.
    pub(crate) fn broken(&self, live: Option<&Value>, next: &Value) -> Result<Vec<Cause>, Failure> {
        let mut found = Vec::new();
        if let Some(rules) = &self.0 {
            CONTEXT.with(|context| walk(context, rules, live, next, "", &mut found))?;
        }
        Ok(found)
    }
}

thread_local! {
    static CONTEXT: Context<'static> = context();
}

fn walk(
    context: &Context<'_>,
    node: &CompiledSchema,
    live: Option<&Value>,
    next: &Value,
    path: &str,
    found: &mut Vec<Cause>,
) -> Result<(), Failure> {
    // An unchanged value is not validated again, as with the API server (KEP 4008).
    if live == Some(next) {
        return Ok(());
    }
    if !node.validations.is_empty() {
        let mut scope = context.new_inner_scope();
        scope.add_variable_from_value("self", value(next));
        if let Some(live) = live {
            scope.add_variable_from_value("oldSelf", value(live));
        }
        for rule in node.validations.iter().flatten() {
            found.extend(evaluate(&scope, rule, live.is_some(), next, path)?);
        }
    }
    match next {
        Value::Object(fields) => {
            for (name, within) in fields {
                if let Some(node) = node.properties.get(name) {
                    let live = live.and_then(|live| live.get(name));
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    walk(context, node, live, within, &path, found)?;
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                if let Some(node) = &node.items {
                    walk(context, node, None, item, &format!("{path}[{index}]"), found)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn evaluate(
    scope: &Context<'_>,
    compiled: &CompilationResult,
    has_live: bool,
    next: &Value,
    path: &str,
) -> Result<Option<Cause>, Failure> {
    let rule = &compiled.rule;
    // A rule about the old value does not apply to a new one.
    if compiled.is_transition_rule && !has_live {
        return Ok(None);
    }
    let unknown = |why: String| Failure::not_modelled(&format!("the rule {:?}: {why}", rule.rule));
    match compiled.program.execute(scope) {
        Ok(Cel::Bool(true)) => return Ok(None),
        Ok(Cel::Bool(false)) => {}
        Ok(other) => return Err(unknown(format!("it comes to {other:?}"))),
        Err(error) => return Err(unknown(error.to_string())),
    }
    let told = match compiled.message_program.as_ref().map(|program| program.execute(scope)) {
        Some(Ok(Cel::String(told))) => Some(told.to_string()),
        _ => rule.message.clone(),
    };
    let told = told.unwrap_or_else(|| format!("failed rule: {}", rule.rule));
    let field = format!("{path}{}", rule.field_path.as_deref().unwrap_or_default());
    let field = field.strip_prefix('.').unwrap_or(&field);
    let field = if field.is_empty() { "<nil>" } else { field };
    let shown = if next.is_object() { "\"object\"".to_owned() } else { next.to_string() };
    let reason = rule.reason.as_deref().unwrap_or("FieldValueInvalid");
    let message = match reason {
        "FieldValueRequired" => format!("Required value: {told}"),
        "FieldValueForbidden" => format!("Forbidden: {told}"),
        "FieldValueDuplicate" => format!("Duplicate value: {shown}: {told}"),
        _ => format!("Invalid value: {shown}: {told}"),
    };
    Ok(Some(cause(field, reason, message)))
}

fn value(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(is) => Cel::Bool(*is),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cel::Int(number),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(value).collect())),
        Value::Object(fields) => {
            let key = |name: &String| objects::Key::String(Arc::new(name.clone()));
            let map: HashMap<objects::Key, Cel> =
                fields.iter().map(|(name, within)| (key(name), value(within))).collect();
            Cel::Map(objects::Map { map: Arc::new(map) })
        }
    }
}

/// The functions that rules may call. Of Kubernetes' own libraries, only that for URLs is here, written anew: the available one would bring
/// a second implementation of Unicode.
fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("isURL", |text: Arc<String>| -> Result<Cel, ExecutionError> {
        Ok(Cel::Bool(url(&text).is_some()))
    });
    context.add_function("url", |text: Arc<String>| match url(&text) {
        Some(_) => Ok(Cel::String(text)),
        None => Err(ExecutionError::function_error("url", format!("{text:?} is no URL"))),
    });
    let text = |text: &str| Ok(Cel::String(Arc::new(text.to_owned())));
    context.add_function("getScheme", move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
        text(url(&of).as_ref().and_then(http::Uri::scheme_str).unwrap_or_default())
    });
    context.add_function("getHostname", move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
        let url = url(&of);
        let host = url.as_ref().and_then(http::Uri::host).unwrap_or_default();
        text(host.trim_start_matches('[').trim_end_matches(']'))
    });
    context.add_function("getHost", move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
        let url = url(&of);
        let authority = url.as_ref().and_then(http::Uri::authority).map(http::uri::Authority::as_str);
        text(authority.map_or("", |authority| authority.rsplit('@').next().unwrap_or_default()))
    });
    context.add_function(
        "getEscapedPath",
        move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
            text(url(&of).as_ref().map_or("", http::Uri::path))
        },
    );
    context
}

/// An absolute URI, or an absolute path.
fn url(text: &str) -> Option<http::Uri> {
    let url: http::Uri = text.parse().ok()?;
    (url.scheme().is_some() || text.starts_with('/')).then_some(url)
}

fn has_rules(node: &Value) -> bool {
    match node {
        Value::Object(fields) => fields.contains_key(KEYWORD) || fields.values().any(has_rules),
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// The first rule of one schema that cannot be evaluated here: a rule that does not compile, that is below a map, that has
/// `optionalOldSelf`, or that compares an item of a list with its old value, which the API server finds by more than its index.
pub(crate) fn not_modelled(schema: &Value, in_items: bool, in_map: bool) -> Option<String> {
    let compiled = Value::Object(
        schema.get(KEYWORD).map(|rules| (KEYWORD.to_owned(), rules.clone())).into_iter().collect(),
    );
    let compiled = kube_cel::compile_schema(&compiled);
    for rule in &compiled.validations {
        match rule {
            Err(CompilationError::InvalidRule(error)) => {
                return Some(format!("a rule that is none: {error}"));
            }
            Err(error) => return Some(error.to_string()),
            Ok(rule) if in_map => {
                return Some(format!("the rule {:?} below additionalProperties", rule.rule.rule));
            }
            Ok(rule) if rule.rule.optional_old_self == Some(true) => {
                return Some(format!("optionalOldSelf of the rule {:?}", rule.rule.rule));
            }
            Ok(rule) if in_items && rule.is_transition_rule => {
                return Some(format!(
                    "the rule {:?} about what an item of a list was before",
                    rule.rule.rule
                ));
            }
            Ok(_) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> Rules {
        Rules::of(&json!({"type": "object",
            "x-kubernetes-validations": [{"rule": "size(self.metadata.name) <= 5", "message": "a short name"}],
            "properties": {"spec": {"type": "object",
                "x-kubernetes-validations": [
                    {"rule": "has(self.a) || has(self.b)", "message": "a or b"},
                    {"rule": "!has(oldSelf.kind) || self.kind == oldSelf.kind", "message": "kind is immutable", "reason": "FieldValueForbidden"},
                ],
                "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string",
                    "x-kubernetes-validations": [{"rule": "self.matches('^[a-z]+$')", "message": "letters"}]}}, "kind": {"type": "string"}},
            }},
        }))
    }

    fn broken(live: Option<Value>, next: Value) -> Vec<(String, String, String)> {
        let found = rules().broken(live.as_ref(), &next).expect("every rule can be evaluated");
        found.into_iter().map(|cause| (cause.field, cause.reason, cause.message)).collect()
    }

    #[test]
    fn a_rule_that_is_broken_is_named_by_its_place_and_in_its_own_words() {
        let named = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
        assert!(broken(None, named("short", json!({"a": "x"}))).is_empty());
        let [(field, reason, message)]: [_; 1] =
            broken(None, named("too-long", json!({"a": "x"}))).try_into().expect("one");
        assert_eq!((field.as_str(), reason.as_str()), ("<nil>", "FieldValueInvalid"));
        assert_eq!(message, "Invalid value: \"object\": a short name");
        let [(field, _, message)]: [_; 1] = broken(None, named("a", json!({}))).try_into().expect("one");
        assert_eq!((field.as_str(), message.as_str()), ("spec", "Invalid value: \"object\": a or b"));
        let [(field, _, message)]: [_; 1] =
            broken(None, named("a", json!({"b": ["ok", "N0"]}))).try_into().expect("one");
        assert_eq!((field.as_str(), message.as_str()), ("spec.b[1]", "Invalid value: \"N0\": letters"));
    }

    #[test]
    fn an_address_is_taken_apart() {
        let rules = Rules::of(&json!({KEYWORD: [
            {"rule": "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''", "message": "an address"},
        ]}));
        let fits = |text: &str| rules.broken(None, &json!(text)).expect("it can be evaluated").is_empty();
        assert!(fits("https://example.com/a?b=c") && fits("http://[::1]:80/"));
        for text in ["example.com", "/path", "ftp://example.com", "", "https://", "not an address"] {
            assert!(!fits(text), "{text}");
        }
    }

    #[test]
    fn a_rule_about_what_was_before_holds_for_changes_alone() {
        let of = |kind: &str| json!({"metadata": {"name": "a"}, "spec": {"a": "x", "kind": kind}});
        assert!(broken(None, of("one")).is_empty());
        assert!(broken(Some(of("one")), of("one")).is_empty());
        let [(field, reason, _)]: [_; 1] = broken(Some(of("one")), of("two")).try_into().expect("one");
        assert_eq!((field.as_str(), reason.as_str()), ("spec", "FieldValueForbidden"));
    }

    #[test]
    fn what_cannot_be_evaluated_as_the_api_server_does_is_said() {
        let with = |rule: &str| json!({KEYWORD: [{"rule": rule}]});
        assert!(not_modelled(&json!({"type": "string"}), true, true).is_none());
        assert!(not_modelled(&with("self == oldSelf"), false, false).is_none());
        assert!(
            not_modelled(&with("self == oldSelf"), true, false)
                .is_some_and(|why| why.contains("item of a list"))
        );
        assert!(
            not_modelled(&with("self == 'a'"), false, true)
                .is_some_and(|why| why.contains("additionalProperties"))
        );
        assert!(not_modelled(&with("self =="), false, false).is_some_and(|why| why.contains("self ==")));
        let unknown = Rules::of(&with("self.unheardOf()")).broken(None, &json!("x"));
        assert_eq!(unknown.expect_err("nobody knows it").code, 501);
    }
}
