//! [`View`]: a kind whose objects a guest computes from objects of a kind that the API server stores; and [`Views`], the views of a guest.

use pintle_wit::views::{ShowItem, ViewManifest};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::Failure;

/// A view: a pure function from an object of the *backing* kind to what people see. Equal objects must give byte-equal answers.
///
/// Names, uids, labels and times are the host's: a view computes the other fields alone, one object at a time.
pub trait View {
    /// What the view reads of an object of the backing kind; often an [`Object`](crate::Object).
    type Backing: DeserializeOwned;

    /// What is shown, besides `apiVersion`, `kind` and `metadata`: `struct Llama { spec: LlamaSpec }`. Or a document, besides its name,
    /// namespace, version and times; a field with `#[serde(default)]` and `schemars(extend("readOnly" = true))` is
    /// shown and never written.
    type Shown: Serialize + DeserializeOwned;

    /// What an administrator may set in the View's `config`; [`NoConfig`](crate::NoConfig) when there is nothing to set. The views of a
    /// guest have one config.
    type Config: DeserializeOwned + Default;

    /// The view's name: a DNS label, unique within the guest.
    const NAME: &'static str;

    /// The backing kind, what is read of it, and the names and columns of what is shown.
    ///
    /// `name` and the schema of what is shown may be left out: [`export!`](crate::export!) inserts them. [`ViewManifest::new`] is for a view
    /// that shows objects of Kubernetes, [`ViewManifest::of_documents`] for one that shows documents.
    fn manifest() -> ViewManifest;

    /// Computes what is shown of an object.
    ///
    /// # Errors
    /// A [`Failure`] if the object cannot be shown. Whoever asks for it gets an error; other objects are shown.
    fn show(backing: Self::Backing, config: &Self::Config) -> Result<Self::Shown, Failure>;

    /// Computes what an object of the backing kind becomes when somebody writes `shown`. `current` is the object as it is now; none when
    /// it is created. Of the answer, only the fields that the manifest's `writes` names are taken. [`fields`](crate::fields) makes one
    /// of a type.
    ///
    /// The path of a failure names the field as whoever writes knows it; that of a view of documents names the field of the backing object,
    /// so that it reads the same as through Kubernetes.
    ///
    /// A read-only view leaves this out.
    ///
    /// # Errors
    /// A [`Failure`] refuses the write.
    fn store(
        shown: Self::Shown,
        current: Option<Self::Backing>,
        config: &Self::Config,
    ) -> Result<Map<String, Value>, Failure> {
        let _ = (shown, current, config);
        Err(Failure::terminal("ReadOnly", "the view is read-only"))
    }
}

/// Reads a field that is written and never shown, of type `Option<Option<T>>`: absent keeps the value and is `None`, null takes it away and
/// is `Some(None)`.
///
/// ```
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Account {
///     #[serde(default, skip_serializing, deserialize_with = "pintle_guest::nullable")]
///     password: Option<Option<String>>,
/// }
/// ```
///
/// # Errors
/// When the value does not fit the type.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A guest that serves views.
pub trait Views {
    /// The guest's name: a DNS label. If the guest also reconciles, its manifest says the same.
    const NAME: &'static str;

    /// The guest's own version.
    const VERSION: &'static str;

    /// The views, as a tuple of types: `(FarmPods, Llamas)`, and `(FarmPods,)` for one.
    type All: ViewList;
}

/// The views of a guest: a tuple of at most eight.
pub trait ViewList {
    /// The config of all views.
    type Config: DeserializeOwned + Default;

    /// What each view declares, in order.
    #[doc(hidden)]
    fn manifests() -> Vec<ViewManifest>;

    /// What the view of this name shows of objects; none if there is no such view.
    #[doc(hidden)]
    fn show(view: &str, objects: Vec<Value>, config: &Self::Config) -> Option<Vec<ShowItem>>;

    /// What the view of this name stores; none if there is no such view.
    #[doc(hidden)]
    fn store(
        view: &str,
        object: Value,
        current: Option<Value>,
        config: &Self::Config,
    ) -> Option<Result<Map<String, Value>, Failure>>;
}

macro_rules! lists {
    ($first:ident $(, $other:ident)*) => {
        impl<$first: View $(, $other: View<Config = $first::Config>)*> ViewList for ($first, $($other,)*) {
            type Config = $first::Config;

            fn manifests() -> Vec<ViewManifest> {
                vec![
                    ViewManifest { name: $first::NAME.to_owned(), ..$first::manifest() },
                    $(ViewManifest { name: $other::NAME.to_owned(), ..$other::manifest() },)*
                ]
            }

            fn show(view: &str, objects: Vec<Value>, config: &Self::Config) -> Option<Vec<ShowItem>> {
                match view {
                    name if name == $first::NAME => Some(crate::call::views::items::<$first>(objects, config)),
                    $(name if name == $other::NAME => Some(crate::call::views::items::<$other>(objects, config)),)*
                    _ => None,
                }
            }

            fn store(
                view: &str,
                object: Value,
                current: Option<Value>,
                config: &Self::Config,
            ) -> Option<Result<Map<String, Value>, Failure>> {
                match view {
                    name if name == $first::NAME => {
                        Some(crate::call::views::stored::<$first>(object, current, config))
                    }
                    $(name if name == $other::NAME => {
                        Some(crate::call::views::stored::<$other>(object, current, config))
                    })*
                    _ => None,
                }
            }
        }
    };
}

lists!(A);
lists!(A, B);
lists!(A, B, C);
lists!(A, B, C, D);
lists!(A, B, C, D, E);
lists!(A, B, C, D, E, F);
lists!(A, B, C, D, E, F, G);
lists!(A, B, C, D, E, F, G, H);
