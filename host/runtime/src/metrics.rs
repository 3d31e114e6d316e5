//! What the metrics of a process are made of: families of series, each registered once.

use std::hash::Hash;

use prometheus_client::{
    encoding,
    metrics::{family::Family, histogram::Histogram},
    registry::{Metric, Registry},
};

/// Makes a type of each set of labels.
#[macro_export]
macro_rules! labels {
    ($($name:ident { $($label:ident: $value:ty),+ })+) => {$(
        #[derive(Clone, Debug, PartialEq, Eq, Hash, ::prometheus_client::encoding::EncodeLabelSet)]
        pub(crate) struct $name {
            $(pub(crate) $label: $value,)+
        }
    )+};
}

/// Durations, in seconds.
pub type Histograms<L> = Family<L, Histogram>;

/// Registers a metric that begins with nothing. The name of a counter lacks the `_total` that its samples end with.
pub fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Registers a family of durations.
pub fn time<L>(registry: &mut Registry, name: &str, help: &str, new: fn() -> Histogram) -> Histograms<L>
where
    L: Clone + Eq + Hash,
    Histograms<L>: Metric,
{
    let family: Histograms<L> = Family::new_with_constructor(new);
    registry.register(name, help, family.clone());
    family
}

/// The exposition text.
pub fn text(registry: &Registry) -> String {
    let mut text = String::new();
    // Writing to a String fails only when a metric cannot be encoded, which is a mistake that a test would show.
    let _ = encoding::text::encode(&mut text, registry);
    text
}
