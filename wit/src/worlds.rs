//! The worlds: what a component may export. Each has a file in `worlds/` and a module here.

/// The world of a guest that reconciles.
pub mod reconciler {
    /// The world as text, for tools that build or check components.
    pub const WIT: &str = include_str!("../worlds/reconciler.wit");

    /// The interface that its components export, by its name in a component.
    pub const INTERFACE: &str = "pintle:guest/guest@0.1.0";
}
