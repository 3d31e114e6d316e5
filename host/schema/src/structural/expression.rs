//! What the API server's compiler of CEL says of an expression, as far as the schema of its place tells: its syntax, and the fields and
//! functions that it names. The types of operands are not compared.

use kube_cel::cel::{
    IdedExpr, Program,
    common::ast::{CallExpr, ComprehensionExpr, Expr, operators},
};
use serde_json::Value;

use super::{cost::entry_parts, rules::names};
use crate::nearest::did_you_mean;

/// Fields that every resource has, embedded ones too, although their schema need not declare them.
const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// The packages that names of types begin with, for example `google.protobuf.Timestamp`.
const PACKAGES: [&str; 3] = ["google", "kubernetes", "net"];
/// The functions and macros that a rule can call, in whatever package: the standard library, and what the environment of Kubernetes 1.36 has
/// besides (apiserver/pkg/cel/environment/base.go).
const FUNCTIONS: &str = "size startsWith endsWith contains matches type dyn bool bytes double duration int string timestamp uint \
    getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds \
    has all exists exists_one existsOne map filter bind transformList transformMap transformMapEntry \
    none of ofNonZeroValue hasValue value or orValue optMap optFlatMap unwrap unwrapOpt \
    charAt format indexOf join lastIndexOf lowerAscii quote replace reverse split substring trim upperAscii find findAll \
    equivalent intersects distinct first flatten isSorted last max min range slice sort sortBy sum \
    url isURL getEscapedPath getHost getHostname getPort getQuery getScheme \
    quantity isQuantity add asApproximateFloat asInteger compareTo isGreaterThan isInteger isLessThan sign sub \
    ip isIP isCanonical family isGlobalUnicast isLinkLocalMulticast isLinkLocalUnicast isLoopback isUnspecified \
    cidr isCIDR containsCIDR containsIP masked prefixLength semver isSemver major minor patch \
    named validate byte date datetime dns1035Label dns1035LabelPrefix dns1123Label dns1123LabelPrefix \
    dns1123Subdomain dns1123SubdomainPrefix labelValue qualifiedName uri uuid";

/// Why an expression does not compile where values have this schema. An optional `oldSelf` is not looked into.
pub(crate) fn fault(text: &str, schema: &Value, is_old_optional: bool) -> Option<String> {
    let program = match Program::compile(text) {
        Ok(program) => program,
        Err(faults) => {
            // The API server has optional fields (`.?`); the parser here does not know them.
            let fault = faults.errors.iter().find(|fault| !fault.msg.starts_with("unsupported syntax"))?;
            let (line, column) = fault.pos;
            return Some(format!("ERROR: <input>:{line}:{column}: {}", fault.msg));
        }
    };
    let old = (!is_old_optional).then_some(schema);
    Scope { known: vec![("self", Some(schema)), ("oldSelf", old)] }.look(program.expression()).err()
}

/// The variables where an expression stands, with the schemas of their values, as far as these are known.
struct Scope<'a> {
    known: Vec<(&'a str, Option<&'a Value>)>,
}

impl<'a> Scope<'a> {
    fn variable(&self, name: &str) -> Option<Option<&'a Value>> {
        self.known.iter().rev().find(|(known, _)| *known == name).map(|(_, schema)| *schema)
    }

    /// The schema of what an expression comes to, if it is known.
    fn look(&mut self, expression: &'a IdedExpr) -> Result<Option<&'a Value>, String> {
        match &expression.expr {
            Expr::Ident(name) => Ok(self.variable(name).flatten()),
            Expr::Select(select) => {
                if let Expr::Ident(name) = &select.operand.expr
                    && self.variable(name).is_none()
                    && !PACKAGES.contains(&name.as_str())
                {
                    return Err(format!("undeclared reference to '{name}'"));
                }
                let of = self.look(&select.operand)?;
                of.map_or(Ok(None), |schema| field(schema, &select.field))
            }
            Expr::Call(call) => self.called(call),
            Expr::Comprehension(turns) => self.turned(turns),
            Expr::List(list) => self.all(list.elements.iter()),
            Expr::Map(map) => self.all(map.entries.iter().flat_map(|entry| entry_parts(&entry.expr))),
            Expr::Struct(made) => self.all(made.entries.iter().flat_map(|entry| entry_parts(&entry.expr))),
            Expr::Literal(_) | Expr::Unspecified => Ok(None),
        }
    }

    fn all(&mut self, parts: impl Iterator<Item = &'a IdedExpr>) -> Result<Option<&'a Value>, String> {
        for part in parts {
            self.look(part)?;
        }
        Ok(None)
    }

    fn called(&mut self, call: &'a CallExpr) -> Result<Option<&'a Value>, String> {
        self.all(call.target.as_deref().into_iter())?;
        let name = call.func_name.as_str();
        // The name of an operator begins with a sign.
        if name.starts_with(|first: char| first.is_ascii_alphabetic())
            && !FUNCTIONS.split(' ').any(|known| known == name)
        {
            let near = did_you_mean(name, FUNCTIONS.split(' '));
            return Err(format!("undeclared reference to '{name}'{near}"));
        }
        // A macro that the parser leaves as it is declares variables of its own. They would be taken for undeclared ones.
        let is_new =
            |part: &IdedExpr| matches!(&part.expr, Expr::Ident(name) if self.variable(name).is_none());
        if call.args.iter().any(is_new) {
            return Ok(None);
        }
        if call.func_name != operators::INDEX {
            return self.all(call.args.iter());
        }
        self.all(call.args.iter().skip(1))?;
        let of = call.args.first().map_or(Ok(None), |of| self.look(of))?;
        Ok(of.and_then(member))
    }

    fn turned(&mut self, turns: &'a ComprehensionExpr) -> Result<Option<&'a Value>, String> {
        let range = self.look(&turns.iter_range)?;
        self.look(&turns.accu_init)?;
        let depth = self.known.len();
        let item = range.and_then(member);
        // The one variable is an item of a list or a key of a map; of two, the second is the value.
        let first =
            item.filter(|_| turns.iter_var2.is_none() && range.is_some_and(|range| range["type"] == "array"));
        self.known.extend([(turns.accu_var.as_str(), None), (turns.iter_var.as_str(), first)]);
        self.known.extend(turns.iter_var2.as_deref().map(|name| (name, item)));
        self.all([&turns.loop_cond, &turns.loop_step, &turns.result].into_iter())?;
        self.known.truncate(depth);
        Ok(None)
    }
}

/// The schema of the items of a list, or of the values of a map.
fn member(schema: &Value) -> Option<&Value> {
    ["items", "additionalProperties"]
        .into_iter()
        .map(|keyword| &schema[keyword])
        .find(|member| member.is_object())
}

/// The schema of a field. One that nothing is declared of has any.
fn field<'a>(schema: &'a Value, name: &str) -> Result<Option<&'a Value>, String> {
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
        return Ok(member(schema));
    };
    match fields.iter().find(|(known, _)| names(known).iter().any(|known| known == name)) {
        Some((_, within)) if is_seen(within) => Ok(Some(within)),
        Some(_) => Err(format!("undefined field '{name}': a rule does not see free-form fields")),
        None if OF_RESOURCES.contains(&name) => Ok(None),
        None => {
            let near = did_you_mean(name, fields.keys().map(String::as_str));
            Err(format!("undefined field '{name}'{near}"))
        }
    }
}

/// Whether rules see the values of a schema. They do not see those of any type.
fn is_seen(schema: &Value) -> bool {
    match schema["type"].as_str() {
        None => schema["x-kubernetes-int-or-string"] == true,
        Some("array" | "object") => member(schema).is_none_or(is_seen),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_that_names_what_its_schema_does_not_have_does_not_compile() {
        let container = json!({"type": "object", "properties": {"image": {"type": "string"}}});
        let schema = json!({"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "namespace": {"type": "string"},
            "port": {"x-kubernetes-int-or-string": true},
            "extra": {"x-kubernetes-preserve-unknown-fields": true},
            "values": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "containers": {"type": "array", "items": container},
            "byName": {"type": "object", "additionalProperties": container},
        }});
        for (rule, expected) in [
            ("self.replicas != 3 && self.replicas >= oldSelf.replicas", ""),
            ("self.__namespace__ == 'a' || has(self.metadata.labels)", ""),
            ("has(self.namespace) && self.namespace == self.__namespace__", ""),
            ("self.containers.all(c, c.image != '') && self.containers[0].image == 'a'", ""),
            ("self.byName['a'].image == 'b' && self.byName.a.image == 'b'", ""),
            ("self.byName.all(name, self.byName[name].image.startsWith(name))", ""),
            ("type(self.port) == int || self.values.a == 1", ""),
            ("self.?replicas.orValue(1) == 1 && cel.bind(all, self.containers, all.any == 1)", ""),
            ("cel.bind(all, self.containers, all.any == 1)", ""),
            ("self.containers.exists(c, sets.contains(['a'], [c.image]))", ""),
            ("self.replcias != 3", "undefined field 'replcias'; did you mean replicas?"),
            ("has(self.replcias)", "undefined field 'replcias'; did you mean replicas?"),
            ("self.replicas > 0 ? oldSelf.nope == 1 : true", "undefined field 'nope'"),
            ("self.containers.all(c, c.imag != '')", "undefined field 'imag'; did you mean image?"),
            ("self.containers[0].imag == ''", "undefined field 'imag'; did you mean image?"),
            ("self.byName.a.imag == ''", "undefined field 'imag'; did you mean image?"),
            ("size([self.nope]) > 0", "undefined field 'nope'"),
            ("self.extra.a == 1", "undefined field 'extra': a rule does not see free-form fields"),
            ("slef.replicas == 1", "undeclared reference to 'slef'"),
            (
                "self.containers.all(c, c.image.startWith('a'))",
                "undeclared reference to 'startWith'; did you mean startsWith?",
            ),
            // Kubernetes has it since 1.37.
            ("[1].includes(1)", "undeclared reference to 'includes'"),
            ("isURI('a')", "undeclared reference to 'isURI'; did you mean isURL?"),
            ("!format.dns1123Label().validate(self.__namespace__).hasValue()", ""),
            ("quantity('1').isLessThan(quantity('2')) && isIP('::1') && [1].isSorted()", ""),
        ] {
            assert_eq!(fault(rule, &schema, false).unwrap_or_default(), expected, "{rule}");
        }
        assert_eq!(fault("oldSelf.value().nope == 1 && oldSelf.nope == 1", &schema, true), None);
        let syntax = fault("self.replicas ==", &schema, false).unwrap_or_default();
        assert!(syntax.starts_with("ERROR: <input>:1:17: Syntax error"), "{syntax}");
    }
}
