//! The structural schemas of what views show.

use pintle_wit::schema::structural_of_view;
use schemars::JsonSchema;
use serde_json::Value;

use crate::{View, ViewList};

/// Views whose schemas can be generated: what each shows has a [`JsonSchema`].
pub trait ViewSchemas: ViewList {
    /// The name of each view, and the structural schema of what it shows.
    fn schemas() -> Vec<(&'static str, Value)>;
}

macro_rules! lists {
    ($first:ident $(, $other:ident)*) => {
        impl<$first, $($other,)*> ViewSchemas for ($first, $($other,)*)
        where
            $first: View<Shown: JsonSchema>,
            $($other: View<Shown: JsonSchema, Config = $first::Config>,)*
        {
            fn schemas() -> Vec<(&'static str, Value)> {
                vec![
                    ($first::NAME, structural_of_view::<$first::Shown>()),
                    $(($other::NAME, structural_of_view::<$other::Shown>()),)*
                ]
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Failure, Kind, NoConfig, Shown, ViewManifest};

    #[derive(serde::Serialize, serde::Deserialize, JsonSchema)]
    struct Account {
        /// The name.
        name: Option<String>,
        #[serde(default, skip_serializing, deserialize_with = "crate::nullable")]
        password: Option<Option<String>>,
    }

    struct Accounts;

    impl View for Accounts {
        type Backing = Account;
        type Shown = Account;
        type Config = NoConfig;
        const NAME: &'static str = "accounts";
        fn manifest() -> ViewManifest {
            let shown = Shown::new("example.com/v1", "Account", "accounts");
            ViewManifest::new(Kind::new("v1", "ConfigMap"), &["data"], shown)
        }
        fn show(account: Account, _: &NoConfig) -> Result<Account, Failure> {
            Ok(account)
        }
    }

    #[test]
    fn a_field_that_is_only_written_is_marked_and_nullable_and_no_other_is() {
        let schemas = <(Accounts,)>::schemas();
        let [("accounts", schema)] = schemas.as_slice() else { panic!("{schemas:?}") };
        assert_eq!(
            schema["properties"],
            json!({
                "name": {"type": "string", "description": "The name."},
                "password": {"type": "string", "writeOnly": true, "nullable": true},
            })
        );
        assert_eq!(schema.get("required"), None);
    }

    #[test]
    fn what_is_only_written_tells_null_from_absent_and_is_never_shown() {
        let read = |value| serde_json::from_value::<Account>(value).unwrap().password;
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"password": null})), Some(None));
        assert_eq!(read(json!({"password": "a"})), Some(Some("a".to_owned())));
        let written = Account { name: None, password: Some(Some("a".to_owned())) };
        assert_eq!(serde_json::to_value(written).unwrap(), json!({"name": null}));
    }
}
