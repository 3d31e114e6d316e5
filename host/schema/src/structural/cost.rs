//! What the evaluation of a CEL rule may cost at most.
//!
//! The API server counts while it evaluates, and stops. The evaluator here cannot be stopped, so the cost is estimated before, from the
//! rule and the sizes of the values at hand. The units and the limits are the API server's: about one for a step, and one for ten
//! characters that are read.

use kube_cel::cel::{
    IdedExpr, Program,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators},
};
use serde_json::Value;

use super::found::{Counted, Found};

/// What one rule may cost at one place.
pub(super) const CALL_MAX: u64 = 1_000_000;
/// What the rules of an object may cost together.
pub(super) const BUDGET: u64 = 10_000_000;

/// The most that an evaluation costs with these values of `self` and `oldSelf`. To estimate it takes steps, since loops are looked at more
/// than once.
pub(super) fn most(program: &Program, value: &Value, old: Option<&Value>, found: &mut Found) -> Counted<u64> {
    let known =
        vec![("self", Seen::Values(vec![value])), ("oldSelf", Seen::Values(old.into_iter().collect()))];
    let (cost, _) = estimate(program.expression(), &mut Scope { known, found })?;
    Ok(cost)
}

/// What is known of a value before it is there.
#[derive(Clone, Debug)]
enum Seen<'a> {
    /// It is one of these.
    Values(Vec<&'a Value>),
    /// It is not larger than this.
    Within(Size),
}

/// An upper bound of a value.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    /// The items of its longest list or map, at any depth.
    items: u64,
    /// The bytes of its longest text.
    text: u64,
    /// The bytes of all of it.
    bytes: u64,
}

impl Size {
    fn of(value: &Value) -> Self {
        let whole = |sizes: &mut dyn Iterator<Item = Self>, items: usize| {
            let sum = sizes.fold(Self::default(), Self::beside);
            Self { items: sum.items.max(items as u64), ..sum }
        };
        match value {
            Value::String(text) => Self { items: 0, text: text.len() as u64, bytes: text.len() as u64 },
            Value::Array(items) => whole(&mut items.iter().map(Self::of), items.len()),
            Value::Object(fields) => {
                let key = |key: &String| Self { items: 0, text: key.len() as u64, bytes: key.len() as u64 };
                whole(&mut fields.iter().map(|(name, value)| key(name).beside(Self::of(value))), fields.len())
            }
            _ => Self { items: 0, text: 0, bytes: 1 },
        }
    }

    /// Either of two values.
    fn or(self, other: Self) -> Self {
        Self {
            items: self.items.max(other.items),
            text: self.text.max(other.text),
            bytes: self.bytes.max(other.bytes),
        }
    }

    /// Two values in one.
    fn beside(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), ..self.or(other) }
    }

    /// What it costs to read it.
    fn reading(self) -> u64 {
        self.bytes / 10 + 1
    }
}

impl<'a> Seen<'a> {
    fn size(&self, found: &mut Found) -> Counted<Size> {
        match self {
            Self::Values(values) => {
                values.iter().try_for_each(|value| found.read(value))?;
                Ok(values.iter().map(|value| Size::of(value)).fold(Size::default(), Size::or))
            }
            Self::Within(size) => Ok(*size),
        }
    }

    fn field(&self, name: &str, found: &mut Found) -> Counted<Self> {
        if let Self::Values(values) = self {
            found.spend(values.len())?;
            let fields: Vec<&Value> = values.iter().filter_map(|value| value.get(name)).collect();
            if !fields.is_empty() {
                return Ok(Self::Values(fields));
            }
        }
        // The name may be an escaped one; then nothing is known but that it is within.
        Ok(Self::Within(self.size(found)?))
    }

    /// The number of turns of a loop over it, and what the loop sees.
    fn turns(&self, found: &mut Found) -> Counted<(u64, Self)> {
        let Self::Values(values) = self else { return Ok((self.size(found)?.items, self.clone())) };
        let longest = values.iter().map(|value| value.as_array().map_or(0, Vec::len)).max().unwrap_or(0);
        if values.iter().all(|value| value.is_array()) {
            let items: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
            found.spend(values.len() + items.len())?;
            return Ok((longest as u64, Self::Values(items)));
        }
        let size = self.size(found)?;
        Ok((size.items, Self::Within(size)))
    }

    /// How many values it may be.
    fn values(&self) -> usize {
        match self {
            Self::Values(values) => values.len(),
            Self::Within(_) => 0,
        }
    }
}

/// What is known of the variables where an expression stands.
struct Scope<'s, 'a, 'f> {
    known: Vec<(&'s str, Seen<'a>)>,
    found: &'f mut Found,
}

/// The cost of an expression, and what it comes to.
fn estimate<'s, 'a>(expression: &'s IdedExpr, scope: &mut Scope<'s, 'a, '_>) -> Counted<(u64, Seen<'a>)> {
    scope.found.spend(1)?;
    Ok(match &expression.expr {
        Expr::Unspecified => (0, Seen::Within(Size::default())),
        Expr::Ident(name) => {
            let known = scope.known.iter().rev().find(|(known, _)| known == name);
            let seen = known.map_or(Seen::Within(Size::default()), |(_, seen)| seen.clone());
            scope.found.spend(seen.values())?;
            (1, seen)
        }
        Expr::Literal(LiteralValue::String(text)) => {
            let bytes = text.inner().len() as u64;
            (0, Seen::Within(Size { items: 0, text: bytes, bytes }))
        }
        Expr::Literal(_) => (0, Seen::Within(Size { items: 0, text: 0, bytes: 1 })),
        Expr::Select(select) => {
            let (cost, operand) = estimate(&select.operand, scope)?;
            (cost.saturating_add(1), operand.field(&select.field, scope.found)?)
        }
        Expr::List(list) => all(list.elements.iter(), scope)?,
        Expr::Map(map) => all(map.entries.iter().flat_map(|entry| entry_parts(&entry.expr)), scope)?,
        Expr::Struct(made) => all(made.entries.iter().flat_map(|entry| entry_parts(&entry.expr)), scope)?,
        Expr::Call(call) => called(call, scope)?,
        Expr::Comprehension(turns) => comprehension(turns, scope)?,
    })
}

pub(super) fn entry_parts(entry: &EntryExpr) -> Vec<&IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value],
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
    }
}

/// A list or map of these parts.
fn all<'s, 'a>(
    parts: impl Iterator<Item = &'s IdedExpr>,
    scope: &mut Scope<'s, 'a, '_>,
) -> Counted<(u64, Seen<'a>)> {
    let (mut cost, mut size, mut items) = (1_u64, Size::default(), 0);
    for part in parts {
        let (part_cost, seen) = estimate(part, scope)?;
        cost = cost.saturating_add(part_cost);
        size = size.beside(seen.size(scope.found)?);
        items += 1;
    }
    Ok((cost, Seen::Within(Size { items: size.items.max(items), ..size })))
}

fn called<'s, 'a>(call: &'s CallExpr, scope: &mut Scope<'s, 'a, '_>) -> Counted<(u64, Seen<'a>)> {
    let mut cost = 1_u64;
    let mut seen = Vec::new();
    for part in call.target.as_deref().into_iter().chain(&call.args) {
        let (part_cost, part) = estimate(part, scope)?;
        cost = cost.saturating_add(part_cost);
        seen.push(part);
    }
    if call.func_name == operators::INDEX {
        let within = match seen.first() {
            Some(of) => of.turns(scope.found)?.1,
            None => Seen::Within(Size::default()),
        };
        return Ok((cost, within));
    }
    let sizes: Vec<Size> = seen.iter().map(|seen| seen.size(scope.found)).collect::<Counted<_>>()?;
    let either = sizes.iter().copied().fold(Size::default(), Size::or);
    let both = sizes.iter().copied().fold(Size::default(), Size::beside);
    let first = sizes.first().copied().unwrap_or_default();
    let other = sizes.get(1).copied().unwrap_or_default();
    let reading = both.reading();
    let (own, size) = match call.func_name.as_str() {
        operators::LOGICAL_AND
        | operators::LOGICAL_OR
        | operators::LOGICAL_NOT
        | operators::CONDITIONAL
        | operators::NOT_STRICTLY_FALSE
        | "size"
        | "has" => (0, either),
        operators::EQUALS
        | operators::NOT_EQUALS
        | operators::LESS
        | operators::LESS_EQUALS
        | operators::GREATER
        | operators::GREATER_EQUALS => (first.bytes.min(other.bytes) / 10, Size::default()),
        operators::IN => (other.items, Size::default()),
        operators::ADD => {
            let sum = Size {
                items: first.items.saturating_add(other.items),
                text: first.text.saturating_add(other.text),
                ..both
            };
            (sum.text / 10, sum)
        }
        "matches" | "find" | "findAll" => {
            let size = Size { items: first.text, ..first };
            ((first.text / 10 + 1).saturating_mul(other.text / 4 + 1), size)
        }
        "split" => (reading, Size { items: first.text.max(first.items), ..first }),
        "replace" => {
            let bytes = first.text.saturating_add(1).saturating_mul(either.text.saturating_add(1));
            (bytes / 10 + 1, Size { items: 0, text: bytes, bytes })
        }
        "join" | "format" => {
            let bytes = both.bytes.saturating_add(first.items.saturating_mul(other.text));
            (bytes / 10 + 1, Size { items: 0, text: bytes, bytes })
        }
        "flatten" => (reading, Size { items: first.bytes, ..first }),
        name if name.starts_with("sets.") || ["contains", "intersects", "equivalent"].contains(&name) => {
            let pairs = first.items.max(1).saturating_mul(other.items.max(1));
            (pairs.saturating_add(both.text / 10), Size::default())
        }
        _ => (reading.saturating_add(either.items), both),
    };
    Ok((cost.saturating_add(own), Seen::Within(size)))
}

fn comprehension<'s, 'a>(
    loops: &'s ComprehensionExpr,
    scope: &mut Scope<'s, 'a, '_>,
) -> Counted<(u64, Seen<'a>)> {
    let (range_cost, range) = estimate(&loops.iter_range, scope)?;
    let (turns, item) = range.turns(scope.found)?;
    let (init_cost, init) = estimate(&loops.accu_init, scope)?;
    let depth = scope.known.len();
    scope.known.push((&loops.accu_var, init));
    scope.known.push((&loops.iter_var, item.clone()));
    if let Some(second) = &loops.iter_var2 {
        scope.known.push((second, item));
    }
    let (_, once) = estimate(&loops.loop_step, scope)?;
    // What grows with each turn is at its largest in the last one.
    let once = once.size(scope.found)?;
    let last = Size { items: once.items.max(turns), bytes: once.bytes.saturating_mul(turns.max(1)), ..once };
    if let Some((_, accumulated)) = scope.known.get_mut(depth) {
        *accumulated = Seen::Within(last);
    }
    let (step_cost, _) = estimate(&loops.loop_step, scope)?;
    let (condition_cost, _) = estimate(&loops.loop_cond, scope)?;
    let (result_cost, result) = estimate(&loops.result, scope)?;
    scope.known.truncate(depth);
    let turning = turns.saturating_mul(step_cost.saturating_add(condition_cost));
    let cost = range_cost.saturating_add(init_cost).saturating_add(turning).saturating_add(result_cost);
    Ok((cost, result))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cost(rule: &str, value: &Value) -> u64 {
        let program = Program::compile(rule).expect("it compiles");
        most(&program, value, None, &mut Found::new(Vec::new(), u64::MAX)).expect("there are steps left")
    }

    #[test]
    fn a_loop_costs_as_much_as_its_own_list_is_long() {
        let long: Vec<String> = (0..2_000).map(|number| format!("name-{number}")).collect();
        let value = json!({"few": ["a", "b"], "many": long});
        let few = cost("self.few.all(x, x != 'c')", &value);
        let many = cost("self.many.all(x, x != 'c')", &value);
        assert!(few < 50 && many > 5_000 && many < 50_000, "{few} {many}");
        let pairs = cost("self.few.all(x, self.many.exists(y, y == x))", &value);
        assert!(pairs < CALL_MAX, "{pairs}");
        assert!(cost("self.many.all(x, self.many.exists_one(y, y == x))", &value) > CALL_MAX);
    }

    #[test]
    fn what_grows_step_by_step_is_counted_with_what_it_has_become() {
        let value = json!("a".repeat(2_000));
        assert!(cost("self.replace('a', 'b').size() > 0", &value) < CALL_MAX);
        assert!(cost("self.replace('a', self).replace('a', self).size() > 0", &value) > CALL_MAX);
        let list = json!((0..300).collect::<Vec<u32>>());
        let cubed = "self.map(x, self).flatten().map(x, self).flatten().all(x, x > 0)";
        assert!(cost("self.all(x, x > 0)", &list) < CALL_MAX);
        assert!(cost(cubed, &list) > CALL_MAX, "{}", cost(cubed, &list));
    }
}
