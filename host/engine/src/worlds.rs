//! The worlds that a module may export: one file a world, which says what the engine needs of it.

mod reconciler;
mod viewer;

use pintle_wit::{Failure, Limits, reasons};
use wasmtime::component::{
    Component, ComponentExportIndex,
    types::{ComponentFunc, ComponentItem, Type},
};

use crate::failure::quoted;

pub(crate) use reconciler::Reconciler;
pub(crate) use viewer::Viewer;

/// What there is of a module for each of the two worlds, of which it exports at least one.
pub(crate) enum Exports<Guest, Views> {
    Guest(Guest),
    Views(Views),
    Both(Guest, Views),
}

impl<Guest, Views> Exports<Guest, Views> {
    pub(crate) fn guest(&self) -> Option<&Guest> {
        match self {
            Self::Guest(guest) | Self::Both(guest, _) => Some(guest),
            Self::Views(_) => None,
        }
    }

    pub(crate) fn views(&self) -> Option<&Views> {
        match self {
            Self::Views(views) | Self::Both(_, views) => Some(views),
            Self::Guest(_) => None,
        }
    }
}

/// The worlds that a module exports.
pub(crate) type Worlds = Exports<Reconciler, Viewer>;

impl Worlds {
    /// Finds the worlds of a component and checks the types of their functions.
    pub(crate) fn of(component: &Component) -> Result<Self, Failure> {
        match (exported(component)?, exported(component)?) {
            (Some(reconciler), None) => Ok(Self::Guest(reconciler)),
            (None, Some(viewer)) => Ok(Self::Views(viewer)),
            (Some(reconciler), Some(viewer)) => Ok(Self::Both(reconciler, viewer)),
            (None, None) => {
                let message = format!(
                    "the guest exports neither {} nor {}; it exports {}",
                    Reconciler::INTERFACE,
                    Viewer::INTERFACE,
                    others(component)
                );
                Err(Failure::terminal(reasons::MISSING_EXPORT, message))
            }
        }
    }
}

/// The indexes of a world's functions in a component.
pub(crate) trait World: Sized {
    /// What a guest declares about itself in this world.
    type Manifest;

    /// The interface that the world exports.
    const INTERFACE: &'static str;

    /// The name of the function that returns the manifest.
    const DESCRIBE: &'static str;

    /// Finds the functions that the engine calls.
    fn find(interface: &Interface<'_>) -> Result<Self, Failure>;

    /// The function that returns the manifest.
    fn describe(&self) -> &ComponentExportIndex;

    /// Reads a manifest.
    fn read_manifest(text: &str, limits: Limits) -> Result<Self::Manifest, Failure>;
}

/// A world, if the component exports its interface. Then all of it must be there.
fn exported<W: World>(component: &Component) -> Result<Option<W>, Failure> {
    match component.get_export(None, W::INTERFACE) {
        Some((ComponentItem::ComponentInstance(_), index)) => {
            W::find(&Interface { component, index, name: W::INTERFACE }).map(Some)
        }
        Some(_) => {
            let message = format!("{} is exported, but not as an interface", W::INTERFACE);
            Err(Failure::terminal(reasons::WRONG_TYPE, message))
        }
        None => Ok(None),
    }
}

/// An interface that a component exports.
pub(crate) struct Interface<'a> {
    component: &'a Component,
    index: ComponentExportIndex,
    name: &'static str,
}

impl Interface<'_> {
    /// Finds a function and checks its type, which is given as WIT writes it.
    fn function(
        &self,
        name: &str,
        parameters: &[&str],
        result: &str,
    ) -> Result<ComponentExportIndex, Failure> {
        let interface = self.name;
        let wanted = format!("func({}) -> {result}", parameters.join(", "));
        match self.component.get_export(Some(&self.index), name) {
            Some((ComponentItem::ComponentFunc(function), index)) if signature(&function) == wanted => {
                Ok(index)
            }
            Some((item, _)) => {
                let found = match item {
                    ComponentItem::ComponentFunc(function) => signature(&function),
                    _ => "no function".to_owned(),
                };
                let message = format!("{interface}#{name} is {found}, and must be {wanted}");
                Err(Failure::terminal(reasons::WRONG_TYPE, message))
            }
            None => {
                let message = format!("the guest does not export {interface}#{name}: {wanted}");
                Err(Failure::terminal(reasons::MISSING_EXPORT, message))
            }
        }
    }
}

/// How many exports a message names.
const EXPORTS_NAMED_MAX: usize = 5;

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
