//! Uploads a module: the ConfigMaps that hold its bytes, and the Module that names them. Commands and the console share this.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use pintle_api::{Module, ModuleObjects};
use pintle_engine as engine;
use pintle_schema::config_schema;
use pintle_wit::{Failure, syntax};
use semver::Version;
use serde_json::json;

/// What came of an upload that worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uploaded {
    /// There is a new Module.
    Created,
    /// The Module was there already, with the same bytes.
    Unchanged,
}

/// Why a module was not uploaded.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The Module is there and is being deleted.
    #[error("Module {} is being deleted", .0.name_any())]
    Going(Box<Module>),
    /// The Module is there with other bytes.
    #[error("Module {name} exists with other bytes ({digest}), and a Module never changes")]
    Taken {
        /// Its name.
        name: String,
        /// The digest of its bytes.
        digest: String,
    },
    /// There is no such namespace for the ConfigMaps.
    #[error("there is no namespace {0}")]
    NoNamespace(String),
    /// A ConfigMap of that name holds something else.
    #[error("ConfigMap {namespace}/{name} exists and holds something else")]
    Occupied {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The API server refused something, or did not answer.
    #[error("{about}: {error}")]
    Api {
        /// What it is about.
        about: String,
        /// What it said.
        error: kube::Error,
    },
}

/// In which way a module is uploaded.
#[derive(Clone, Copy, Debug)]
pub struct Manner<'a> {
    /// The name under which it is written.
    pub manager: &'a str,
    /// Whether nothing is written, and only asked whether it could be.
    pub dry_run: bool,
}

/// Whether this can be the name of a Module: a DNS subdomain, short enough for the names of further parts.
pub fn is_module_name(name: &str) -> bool {
    name.len() <= 250 && syntax::is_subdomain(name)
}

/// Whether a host of this version can run all of a module.
///
/// # Errors
/// Why it cannot.
pub fn supports(module: &engine::Module) -> Result<(), Failure> {
    if let Some(guest) = module.guest() {
        config_schema::supports(guest.manifest())?;
    }
    if let Some(views) = module.views() {
        config_schema::supports_views(views.manifest())?;
    }
    Ok(())
}

/// What is odd about an upload, although nothing is wrong with it: a name that promises another version than the guest's, and bytes that
/// are a Module already. Somebody may have forgotten to raise the version, or to build.
pub fn warnings(name: &str, digest: &str, version: &str, modules: &[Module]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(promised) = version_in(name).filter(|promised| *promised != version) {
        warnings
            .push(format!("the name of the Module ends in {promised}; the guest says that it is {version}"));
    }
    let is_same = |module: &&Module| module.spec.digest == digest && module.name_any() != name;
    let same: Vec<String> = modules.iter().filter(is_same).map(ResourceExt::name_any).collect();
    if !same.is_empty() {
        warnings.push(format!("these are the bytes of Module {}", same.join(", ")));
    }
    warnings
}

/// The version that the name of a Module ends in: `0.2.0-rc.1` of `web-0.2.0-rc.1`.
fn version_in(name: &str) -> Option<&str> {
    let mut ends = name.match_indices('-').filter_map(|(at, dash)| name.get(at + dash.len()..));
    ends.find(|end| Version::parse(end).is_ok())
}

/// Uploads a module as whoever the client is, and returns the Module. The ConfigMaps come first, since the Module names them.
///
/// # Errors
/// Why it was not uploaded. What was written before then is found again by the next upload.
pub async fn upload(
    client: &Client,
    wanted: &ModuleObjects,
    manner: Manner<'_>,
) -> Result<(Uploaded, Module), UploadError> {
    let name = wanted.module.name_any();
    let modules: Api<Module> = Api::all(client.clone());
    let found = modules.get_opt(&name).await.map_err(of("the Module"))?;
    match found {
        Some(module) if module.metadata.deletion_timestamp.is_some() => {
            Err(UploadError::Going(Box::new(module)))
        }
        Some(module) if module.spec.digest != wanted.module.spec.digest => {
            Err(UploadError::Taken { name, digest: module.spec.digest })
        }
        Some(module) => {
            // The ConfigMaps may have gone since. Bytes that somebody laid out in another way are left to them.
            if module.spec.source == wanted.module.spec.source {
                config_maps(client, wanted, manner).await?;
                own(client, &module, wanted, manner).await?;
            }
            Ok((Uploaded::Unchanged, module))
        }
        None => {
            config_maps(client, wanted, manner).await?;
            let created = modules.create(&manner.post(), &wanted.module).await;
            let module = created.map_err(of(format!("module {name}")))?;
            own(client, &module, wanted, manner).await?;
            Ok((Uploaded::Created, module))
        }
    }
}

async fn config_maps(client: &Client, wanted: &ModuleObjects, manner: Manner<'_>) -> Result<(), UploadError> {
    for config_map in &wanted.config_maps {
        let (namespace, name) = (config_map.namespace().unwrap_or_default(), config_map.name_any());
        let about = format!("ConfigMap {namespace}/{name}");
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        match config_maps.create(&manner.post(), config_map).await {
            Ok(_) => {}
            Err(error) if is(&error, 404) => return Err(UploadError::NoNamespace(namespace)),
            // An upload that was broken off leaves parts.
            Err(error) if is(&error, 409) => {
                let found = config_maps.get(&name).await.map_err(of(about))?;
                if found.binary_data != config_map.binary_data {
                    return Err(UploadError::Occupied { namespace, name });
                }
            }
            Err(error) => return Err(of(about)(error)),
        }
    }
    Ok(())
}

/// Makes the Module the owner of its ConfigMaps, so that they go with it.
async fn own(
    client: &Client,
    module: &Module,
    wanted: &ModuleObjects,
    manner: Manner<'_>,
) -> Result<(), UploadError> {
    if manner.dry_run {
        // There is nothing to be owned.
        return Ok(());
    }
    let owner = json!([{
        "apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "name": module.name_any(),
        "uid": module.metadata.uid.clone().unwrap_or_default(),
    }]);
    let patch = Patch::Merge(json!({"metadata": {"ownerReferences": owner}}));
    for config_map in &wanted.config_maps {
        let (namespace, name) = (config_map.namespace().unwrap_or_default(), config_map.name_any());
        let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        // The fields have one writer, so that force is not needed, and a merge is enough.
        let patched = config_maps.patch(&name, &manner.patch(), &patch).await;
        patched.map_err(of(format!("ConfigMap {namespace}/{name}")))?;
    }
    Ok(())
}

impl Manner<'_> {
    fn post(self) -> PostParams {
        PostParams { field_manager: Some(self.manager.into()), dry_run: self.dry_run }
    }

    fn patch(self) -> PatchParams {
        PatchParams { field_manager: Some(self.manager.into()), ..PatchParams::default() }
    }
}

fn of(about: impl Into<String>) -> impl FnOnce(kube::Error) -> UploadError {
    let about = about.into();
    |error| UploadError::Api { about, error }
}

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_warns_of_a_version_that_is_not_the_guests_and_of_bytes_that_are_a_module() {
        let module = |name: &str, digest: &str| {
            serde_json::from_value::<Module>(json!({"metadata": {"name": name}, "spec": {"digest": digest,
                "source": {"configMap": {"namespace": "n", "name": name, "key": "k"}}}}))
            .unwrap()
        };
        let others = [module("bakery-0.4.0", "sha256:0"), module("cake-0.4.0", "sha256:1")];
        assert_eq!(
            warnings("bakery-0.5.0", "sha256:0", "0.4.0", &others),
            [
                "the name of the Module ends in 0.5.0; the guest says that it is 0.4.0",
                "these are the bytes of Module bakery-0.4.0"
            ]
        );
        assert!(warnings("bakery-0.4.0", "sha256:0", "0.4.0", &others).is_empty(), "it is the Module itself");
        assert!(warnings("bakery", "sha256:2", "0.4.0", &[]).is_empty(), "the name promises no version");
        assert_eq!(version_in("web-2-0.2.0-rc.1"), Some("0.2.0-rc.1"));
        assert_eq!(version_in("web-0.2"), None);
    }

    #[test]
    fn a_module_is_named_as_an_object_is() {
        assert!(is_module_name("webserver-0.2.0"));
        assert!(!is_module_name("WebServer") && !is_module_name("a..b") && !is_module_name("-a"));
        assert!(!is_module_name("") && !is_module_name(&"a".repeat(251)));
    }
}
