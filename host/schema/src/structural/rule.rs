//! One CEL rule of a schema: how it is compiled, and what one evaluation says.

use std::{error::Error as _, sync::Arc};

use http::Uri;
use kube_cel::{
    CompilationError, CompilationResult, KubeCelExt,
    cel::{
        Context, ExecutionError, Program, Value as Cel,
        extractors::{Arguments, This},
    },
};
use regex::Regex;
use serde_json::{Value, json};

use super::patterns;

const KEYWORD: &str = "x-kubernetes-validations";

/// The longest message that an expression may come to, in bytes.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;

/// A compiled rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) compiled: CompilationResult,
    /// Whether it is about the old value.
    pub(super) is_transition: bool,
    /// Whether it is also evaluated without an old value.
    pub(super) is_old_optional: bool,
}

impl Rule {
    /// Compiles an item of `x-kubernetes-validations`.
    ///
    /// # Errors
    /// Why the rule cannot be evaluated here.
    pub(super) fn compile(rule: &Value) -> Result<Self, String> {
        let mut compiled = kube_cel::compile_schema(&json!({KEYWORD: [rule]})).validations;
        let compiled = match compiled.pop() {
            Some(Ok(compiled)) => compiled,
            Some(Err(CompilationError::InvalidRule(error))) => {
                return Err(format!("a rule that is none: {error}"));
            }
            Some(Err(error)) => {
                // The first line says where and why; the others draw it.
                let why = error.source().map_or_else(|| error.to_string(), |source| source.to_string());
                return Err(format!(
                    "the rule {} ({})",
                    rule["rule"],
                    why.lines().next().unwrap_or_default()
                ));
            }
            None => return Err("a rule that is none".into()),
        };
        for program in [Some(&compiled.program), compiled.message_program.as_ref()].into_iter().flatten() {
            if let Some(name) = unknown_function(program) {
                return Err(format!("the function {name} of the rule {:?}", compiled.rule.rule));
            }
        }
        Ok(Self {
            is_transition: compiled.is_transition_rule,
            is_old_optional: compiled.rule.optional_old_self == Some(true),
            compiled,
        })
    }

    /// Evaluates the rule.
    ///
    /// # Errors
    /// Why it has no result, in the words of the API server.
    pub(super) fn holds(&self, scope: &Context<'_>) -> Result<bool, String> {
        let why = match self.compiled.program.execute(scope) {
            Ok(Cel::Bool(holds)) => return Ok(holds),
            Ok(_) => "the rule does not come to true or false".into(),
            Err(ExecutionError::NoSuchKey(key)) => format!("no such key: {key}"),
            Err(ExecutionError::NoSuchOverload) => {
                return Err(format!(
                    "'no such overload': call arguments did not match a supported operator, function or macro \
                     signature for rule: {}",
                    self.name()
                ));
            }
            Err(ExecutionError::IndexOutOfBounds(_)) => "index out of bounds".into(),
            Err(ExecutionError::DivisionByZero(_)) => "division by zero".into(),
            Err(ExecutionError::RemainderByZero(_)) => "modulus by zero".into(),
            Err(ExecutionError::Overflow(..)) => "integer overflow".into(),
            Err(other) => other.to_string(),
        };
        Err(format!("{why} evaluating rule: {}", self.name()))
    }

    /// The rule as messages name it.
    pub(super) fn name(&self) -> &str {
        let rule = &self.compiled.rule;
        rule.message.as_deref().filter(|message| !message.is_empty()).unwrap_or(&rule.rule).trim()
    }

    /// What a violation says.
    pub(super) fn message(&self, scope: &Context<'_>) -> String {
        let told = match self.compiled.message_program.as_ref().map(|program| program.execute(scope)) {
            Some(Ok(Cel::String(told))) => Some(told.trim().to_owned()),
            _ => None,
        };
        let is_fit =
            |told: &String| !told.is_empty() && told.len() <= MESSAGE_BYTES_MAX && !told.contains('\n');
        told.filter(is_fit).unwrap_or_else(|| match self.compiled.rule.message.as_deref() {
            Some(message) if !message.is_empty() => message.trim().to_owned(),
            _ => format!("failed rule: {}", self.name()),
        })
    }
}

/// The first function of an expression that nobody knows.
fn unknown_function(program: &Program) -> Option<String> {
    let references = program.references();
    let mut names = references.functions();
    names.sort_unstable();
    let is_name =
        |name: &&str| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '.');
    let is_word = |name: &&str| is_name(name) && name.starts_with(char::is_alphabetic);
    let is_unknown = |name: &&str| {
        // Called without arguments, a function that exists complains about them.
        let outcome =
            CONTEXT.with(|context| Program::compile(&format!("{name}()")).map(|call| call.execute(context)));
        matches!(outcome, Ok(Err(ExecutionError::UndeclaredReference(_))))
    };
    names.into_iter().filter(is_word).find(is_unknown).map(Into::into)
}

thread_local! {
    /// The functions that rules may call.
    pub(super) static CONTEXT: Context<'static> = context();
}

/// Uses a pattern of a rule.
fn with_pattern(
    function: &str,
    pattern: &str,
    work: impl FnOnce(&Regex) -> Cel,
) -> Result<Cel, ExecutionError> {
    patterns::with(pattern, work).map_err(|why| ExecutionError::function_error(function, why))
}

/// Of Kubernetes' own libraries, that for URLs is written anew: the available one would bring a second implementation of Unicode. So are
/// the functions with patterns: the available ones compile a pattern of any size each time that they are called.
fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    let text = |text: &str| Cel::String(Arc::new(text.to_owned()));
    context.add_function(
        "matches",
        |This(of): This<Arc<String>>, pattern: Arc<String>| -> Result<Cel, ExecutionError> {
            with_pattern("matches", &pattern, |pattern| Cel::Bool(pattern.is_match(&of)))
        },
    );
    context.add_function(
        "find",
        move |This(of): This<Arc<String>>, pattern: Arc<String>| -> Result<Cel, ExecutionError> {
            with_pattern("find", &pattern, |pattern| text(pattern.find(&of).map_or("", |one| one.as_str())))
        },
    );
    context.add_function(
        "findAll",
        move |This(of): This<Arc<String>>, Arguments(given): Arguments| -> Result<Cel, ExecutionError> {
            let Some(Cel::String(pattern)) = given.first() else {
                return Err(ExecutionError::function_error("findAll", "the argument is no pattern"));
            };
            let most = match given.get(1) {
                Some(Cel::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
                _ => usize::MAX,
            };
            with_pattern("findAll", pattern, |pattern| {
                let all = pattern.find_iter(&of).take(most).map(|one| text(one.as_str()));
                Cel::List(Arc::new(all.collect()))
            })
        },
    );
    context.add_function("isURL", |text: Arc<String>| -> Result<Cel, ExecutionError> {
        Ok(Cel::Bool(url(&text).is_some()))
    });
    context.add_function("url", |text: Arc<String>| match url(&text) {
        Some(_) => Ok(Cel::String(text)),
        None => Err(ExecutionError::function_error("url", format!("{text:?} is no URL"))),
    });
    context.add_function("getScheme", move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
        Ok(text(url(&of).as_ref().and_then(Uri::scheme_str).unwrap_or_default()))
    });
    context.add_function("getHostname", move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
        let url = url(&of);
        let host = url.as_ref().and_then(Uri::host).unwrap_or_default();
        Ok(text(host.trim_start_matches('[').trim_end_matches(']')))
    });
    context.add_function("getHost", move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
        let url = url(&of);
        let authority = url.as_ref().and_then(Uri::authority).map(http::uri::Authority::as_str);
        Ok(text(authority.map_or("", |authority| authority.rsplit('@').next().unwrap_or_default())))
    });
    context.add_function(
        "getEscapedPath",
        move |This(of): This<Arc<String>>| -> Result<Cel, ExecutionError> {
            Ok(text(url(&of).as_ref().map_or("", Uri::path)))
        },
    );
    context
}

/// An absolute URI, or an absolute path.
fn url(text: &str) -> Option<Uri> {
    let url: Uri = text.parse().ok()?;
    (url.scheme().is_some() || text.starts_with('/')).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_cannot_be_evaluated_is_found_when_it_is_compiled() {
        let why = |rule: &str| Rule::compile(&json!({"rule": rule})).err().unwrap_or_default();
        assert_eq!(
            why("self.a.size() > 0 && self.b.all(x, x.matches('a')) && sets.contains(self.c, [1])"),
            ""
        );
        assert!(why("self ==").contains("self =="));
        assert_eq!(why("self.unheardOf()"), r#"the function unheardOf of the rule "self.unheardOf()""#);
        assert_eq!(
            why("quantity(self).isInteger()"),
            r#"the function isInteger of the rule "quantity(self).isInteger()""#
        );
        assert!(Rule::compile(&json!("x")).err().unwrap_or_default().starts_with("a rule that is none"));
    }
}
