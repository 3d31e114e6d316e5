//! The worlds: what a component may export. Each has a file in `worlds/` and a module here.

/// The world of a guest that serves views.
pub mod viewer {
    /// The world as text, for tools that build or check components.
    pub const WIT: &str = include_str!("../worlds/viewer.wit");

    /// The interface that its components export, by its name in a component.
    pub const INTERFACE: &str = "pintle:guest/views@0.1.0";
}

/// The world of a guest that reconciles.
pub mod reconciler {
    /// The world as text, for tools that build or check components.
    pub const WIT: &str = include_str!("../worlds/reconciler.wit");

    /// The interface that its components export, by its name in a component.
    pub const INTERFACE: &str = "pintle:guest/guest@0.1.0";
}
