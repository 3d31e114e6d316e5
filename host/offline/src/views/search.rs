//! Looks for an object that breaks a law of a view, among objects that are made from the schemas of its kinds. What it finds is shrunk to
//! the least that breaks the same law.

use std::cell::{Cell, RefCell};

use pintle_core::view::document::shape::take_read_only;
use pintle_schema::{
    generate::{self, Values},
    shape::Shape,
};
use pintle_wit::views::SHOW_OBJECTS_MAX;
use proptest::{
    collection::vec,
    option,
    strategy::{Just, Strategy, ValueTree},
    test_runner::{Config, Reason, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};
use serde_json::{Map, Value};

use super::{
    laws::{self, Broken, Functions},
    view::View,
};

/// The most steps in which what breaks a law is made smaller.
const SHRINK_STEPS_MAX: u32 = 4096;
/// How often in a row an object is made anew that its schema does not allow: patterns, and rules over several fields, are not always met.
const REJECTS_MAX: u32 = 4096;

/// What came of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Searched {
    /// How many objects of the backing kind were shown.
    pub objects: usize,
    /// How many writes were stored and shown again.
    pub writes: usize,
    /// How many writes the guest, or the schema of the backing kind, refused.
    pub refused: usize,
    /// The law that the view breaks.
    pub broken: Option<Broken>,
    /// Why there are no objects, or fewer than asked for.
    pub unmade: Vec<String>,
    /// Some of the objects of the backing kind.
    pub sample: Vec<Value>,
}

/// Tries the laws on these objects, on as many of the backing kind as are to be made, and for a writable view on as many writes. Equal seeds
/// try equal objects.
pub fn search(view: &View<'_>, guest: &impl Functions, given: &[Value], seed: u64, count: usize) -> Searched {
    if let Err(broken) = hold(view, guest, given) {
        return Searched { broken: Some(broken), ..Searched::default() };
    }
    let declared = view.manifest.reads.iter().chain(&view.manifest.writes);
    let paths: Vec<Vec<String>> =
        declared.map(|path| path.split('.').map(ToOwned::to_owned).collect()).collect();
    let backing = view.backing_shape().map(|(shape, always, is_namespaced)| {
        objects(view, Values::of_objects(shape, &paths, always), is_namespaced)
    });
    let mut searched = Searched::default();
    let unknown = || {
        let kind = &view.manifest.backing;
        format!("no {} were made, since there is no schema of {kind}: name its CRD with --crd", kind.kind)
    };
    match &backing {
        None => searched.unmade.push(unknown()),
        Some(backing) => {
            let batches = vec(backing, 1..=SHOW_OBJECTS_MAX);
            searched.sample =
                batches.new_tree(&mut runner(seed)).map(|tree| tree.current()).unwrap_or_default();
            let show = |batch: &Vec<Value>| hold(view, guest, batch).map(|()| batch.len());
            searched.objects = searched.note(tried(&batches, seed, count, show));
        }
    }
    if view.manifest.is_writable() && searched.broken.is_none() {
        let refused = Cell::new(0);
        let store = |(written, current): &(Value, Option<Value>)| {
            let is_stored = laws::written(view, guest, written, current.as_ref())?;
            refused.set(refused.get() + usize::from(!is_stored));
            Ok(1)
        };
        let tried = match &backing {
            Some(backing) => tried(&writes(view, option::of(backing)), seed, count, store),
            None => tried(&writes(view, Just(None)), seed, count, store),
        };
        searched.writes = searched.note(tried).saturating_sub(refused.get());
        searched.refused = refused.get();
    }
    searched
}

/// What came of trying something: how much was tried, the law that is broken, and why no more was tried.
type Tried = (usize, Option<Broken>, Option<Reason>);

impl Searched {
    /// Takes note of what was tried, and says how much it was.
    fn note(&mut self, (count, broken, unmade): Tried) -> usize {
        self.broken = self.broken.take().or(broken);
        self.unmade.extend(unmade.map(|reason| format!("not enough objects could be made: {reason}")));
        count
    }
}

/// Tries the laws of showing on these objects.
///
/// # Errors
/// The first law that is broken.
fn hold(view: &View<'_>, guest: &impl Functions, objects: &[Value]) -> Result<(), Broken> {
    let items = laws::answers(guest, objects)?;
    for (object, item) in objects.iter().zip(&items) {
        laws::kept(view, guest, object, laws::total(object, item)?)?;
    }
    Ok(())
}

/// Tries `test`, which says how much it tried, until it has tried enough or something is broken. Whatever is broken is shrunk, as long as it
/// breaks the same law.
fn tried<S: Strategy>(
    strategy: &S,
    seed: u64,
    count: usize,
    test: impl Fn(&S::Value) -> Result<usize, Broken>,
) -> Tried {
    let mut runner = runner(seed);
    let (counted, broken) = (Cell::new(0), RefCell::new(None::<Broken>));
    let case = |value: S::Value| {
        let mut broken = broken.borrow_mut();
        match (test(&value), broken.as_ref()) {
            (Ok(tried), None) => counted.set(counted.get() + tried),
            (Err(found), first) if first.is_none_or(|first| first.law == found.law) => {
                let reason = found.message.clone();
                *broken = Some(found);
                return Err(TestCaseError::fail(reason));
            }
            _ => {}
        }
        Ok(())
    };
    while counted.get() < count {
        let tree = match strategy.new_tree(&mut runner) {
            Ok(tree) => tree,
            Err(reason) => return (counted.get(), None, Some(reason)),
        };
        if let Err(TestError::Fail(..)) = runner.run_one(tree, case) {
            break;
        }
    }
    (counted.get(), broken.into_inner(), None)
}

fn runner(seed: u64) -> TestRunner {
    let config = Config {
        max_shrink_iters: SHRINK_STEPS_MAX,
        max_local_rejects: REJECTS_MAX,
        failure_persistence: None,
        // A limit of time would end the search elsewhere on another machine.
        max_shrink_time: 0,
        verbose: 0,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    for (byte, of_seed) in bytes.iter_mut().zip(seed.to_le_bytes()) {
        *byte = of_seed;
    }
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Objects of the backing kind, which the selector of the view selects.
fn objects<'a>(
    view: &'a View<'_>,
    values: Values<'a>,
    is_namespaced: bool,
) -> impl Strategy<Value = Value> + 'a {
    let whole = (generate::metadata(is_namespaced), values).prop_map(|(metadata, fields)| {
        let mut object = fields;
        object["apiVersion"] = view.manifest.backing.api_version.as_str().into();
        object["kind"] = view.manifest.backing.kind.as_str().into();
        object["metadata"] = metadata.into();
        for (label, value) in &view.manifest.selector {
            object["metadata"]["labels"][label] = value.as_str().into();
        }
        view.fill_in_backing(&mut object);
        object
    });
    whole.prop_filter("the schema of the backing kind allows none", |object| view.is_backing(object))
}

/// What somebody writes, and the object of the backing kind that it is written to. Nobody writes `status`: it is only shown.
fn writes<'a>(
    view: &'a View<'_>,
    current: impl Strategy<Value = Option<Value>> + 'a,
) -> impl Strategy<Value = (Value, Option<Value>)> + 'a {
    let fields = Values::of_whole_objects(Shape::new(&Value::Null, &view.lens.served.schema));
    let whole = (generate::metadata(true), fields, current);
    whole.prop_filter_map("the schema of the view allows none", |(metadata, fields, current)| {
        let mut fields = fields;
        if view.is_of_documents() {
            take_read_only(&mut fields, &view.lens.served.schema);
        }
        let mut fields: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
        if !view.is_of_documents() {
            fields.remove("status");
        }
        let mut written = match &current {
            Some(current) => view.whole(current, &fields),
            None => view.whole(&serde_json::json!({"metadata": metadata}), &fields),
        };
        view.admit(&mut written).ok()?;
        Some((written, current))
    })
}

#[cfg(test)]
mod tests;
