//! Checks whether a component exports the contract.

use pintle_wit::{Failure, INTERFACE, reasons};
use wasmtime::component::{
    Component, ComponentExportIndex,
    types::{ComponentFunc, ComponentItem, Type},
};

use crate::failure::quoted;

/// How many exports a message names.
const EXPORTS_NAMED_MAX: usize = 5;

/// The indexes of the contract's exports in an instance.
#[derive(Clone, Copy)]
pub(crate) struct Exports {
    pub(crate) describe: ComponentExportIndex,
    pub(crate) reconcile: ComponentExportIndex,
}

/// Finds the exports of the contract and checks their types.
pub(crate) fn exports(component: &Component) -> Result<Exports, Failure> {
    let instance = match component.get_export(None, INTERFACE) {
        Some((ComponentItem::ComponentInstance(_), index)) => index,
        Some(_) => {
            let message = format!("{INTERFACE} is exported, but not as an interface");
            return Err(Failure::terminal(reasons::WRONG_TYPE, message));
        }
        None => {
            let message = format!("the guest does not export {INTERFACE}; it exports {}", others(component));
            return Err(Failure::terminal(reasons::MISSING_EXPORT, message));
        }
    };
    let text = || "string".to_owned();
    let function = |name, parameters: &[String], result: String| {
        let wanted = format!("func({}) -> {result}", parameters.join(", "));
        match component.get_export(Some(&instance), name) {
            Some((ComponentItem::ComponentFunc(function), index)) if signature(&function) == wanted => {
                Ok(index)
            }
            Some((item, _)) => {
                let found = match item {
                    ComponentItem::ComponentFunc(function) => signature(&function),
                    _ => "no function".to_owned(),
                };
                let message = format!("{INTERFACE}#{name} is {found}, and must be {wanted}");
                Err(Failure::terminal(reasons::WRONG_TYPE, message))
            }
            None => {
                let message = format!("the guest does not export {INTERFACE}#{name}: {wanted}");
                Err(Failure::terminal(reasons::MISSING_EXPORT, message))
            }
        }
    };
    Ok(Exports {
        describe: function("describe", &[], text())?,
        reconcile: function("reconcile", &[text()], "result<string, string>".to_owned())?,
    })
}

fn others(component: &Component) -> String {
    let ty = component.component_type();
    let names: Vec<String> =
        ty.exports(component.engine()).take(EXPORTS_NAMED_MAX).map(|(name, _)| quoted(name)).collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// The type of a function as WIT writes it, without the names of the parameters, which the ABI does not know.
fn signature(function: &ComponentFunc) -> String {
    let parameters: Vec<String> = function.params().map(|(_, ty)| name(&ty)).collect();
    let results: Vec<String> = function.results().map(|ty| name(&ty)).collect();
    let prefix = if function.async_() { "async " } else { "" };
    let arrow = if results.is_empty() { "" } else { " -> " };
    format!("{prefix}func({}){arrow}{}", parameters.join(", "), results.join(", "))
}

fn name(ty: &Type) -> String {
    match ty {
        Type::Bool => "bool".into(),
        Type::S8 => "s8".into(),
        Type::U8 => "u8".into(),
        Type::S16 => "s16".into(),
        Type::U16 => "u16".into(),
        Type::S32 => "s32".into(),
        Type::U32 => "u32".into(),
        Type::S64 => "s64".into(),
        Type::U64 => "u64".into(),
        Type::Float32 => "f32".into(),
        Type::Float64 => "f64".into(),
        Type::Char => "char".into(),
        Type::String => "string".into(),
        Type::List(_) => "list".into(),
        Type::Record(_) => "record".into(),
        Type::Tuple(_) => "tuple".into(),
        Type::Variant(_) => "variant".into(),
        Type::Enum(_) => "enum".into(),
        Type::Option(_) => "option".into(),
        // Only one level deep: a type may nest as deeply as a module is large.
        Type::Result(result) => format!("result<{}, {}>", arm(result.ok()), arm(result.err())),
        _ => "a type outside the contract".into(),
    }
}

fn arm(ty: Option<Type>) -> String {
    match ty {
        None => "_".into(),
        Some(Type::String) => "string".into(),
        Some(Type::Result(_)) => "result".into(),
        Some(ty) => name(&ty),
    }
}
