//! Uploads of modules: a module is verified by the engine before anything is created, and created as the caller.

use std::time::Duration;

use axum::response::Response;
use http::{Method, StatusCode};
use kube::ResourceExt;
use pintle_api::{self as api, Module, ModuleObjects};
use pintle_engine as engine;
use pintle_modules::upload::{self, Manner, UploadError, Uploaded};
use pintle_wit::reasons;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    caller::{Ask, Caller},
    endpoint::{self, Call, Endpoint, Takes},
    objects::FIELD_MANAGER,
    place::Resource,
    problem::Problem,
    query::Form,
    reading,
    users::{self, Check},
};

/// How long an upload may take: its way here, its turn, and the compiler.
const PATIENCE: Duration = Duration::from_secs(300);

/// A module that was looked at, and what became of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Examined {
    /// The name of the Module.
    name: String,
    /// The digest of its bytes.
    digest: String,
    /// How many there are.
    size_bytes: usize,
    /// The interfaces of the contract that it exports.
    contract: Vec<&'static str>,
    /// What its guest declares, if it reconciles.
    manifest: Option<Value>,
    /// What it declares of its views, if it serves any.
    views: Option<Value>,
    /// How long compiling took.
    compile_milliseconds: u64,
    /// Whether there is a new Module; with dryRun, whether there would be.
    created: bool,
    /// Whether the Module was there already, with the same bytes.
    unchanged: bool,
    /// Who uses it: Reconcilers, and Views with `view/` before their name.
    used_by: Vec<String>,
    /// What is odd about it, although nothing is wrong.
    warnings: Vec<String>,
}

/// The endpoints of this file.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let summary = "Upload a module. It is verified by the engine before anything is created";
    let dry_run = "All: verify, ask whether it could be created, and create nothing";
    vec![
        Endpoint::new(Method::PUT, "/api/v1/modules/{name}", "uploadModule", summary, put)
            .query(&[("dryRun", Form::Word(&["All"]), dry_run)])
            .takes(Takes::Wasm)
            .gives::<Examined>()
            .within(PATIENCE),
    ]
}

async fn put(mut call: Call) -> Result<Response, Problem> {
    let name = call.param("name").unwrap_or_default().to_owned();
    if !upload::is_module_name(&name) {
        return Err(Problem::bad_request(
            "the name of a Module has lower-case letters, digits, '-' and '.', as in webserver-0.2.0",
        ));
    }
    let caller = call.caller()?.clone();
    // Nobody's bytes are read, and nobody's code is compiled, who may not create a Module.
    may_upload(&caller).await?;
    let shop = call.app.shop.workshop()?;
    let bytes = call.bytes(engine::MODULE_BYTES_MAX).await?.to_vec();
    // Not before all of it is here: one that comes slowly holds up no other.
    let Ok(_place) = shop.uploads.try_acquire() else {
        return Err(Problem::busy("other modules are being uploaded", 5));
    };
    let loaded = shop.loader.examine(&name, bytes.clone(), "").await;
    let module = loaded.and_then(|module| upload::supports(&module).map(|()| module)).map_err(refused)?;
    let digest = module.digest().to_string();
    let wanted = ModuleObjects::new(api::NAMESPACE, &name, &bytes, &digest);
    let others = modules(&caller).await;
    let warnings = upload::warnings(&name, &digest, module.version(), &others);
    let manner = Manner { manager: FIELD_MANAGER, dry_run: call.query.text("dryRun").is_some() };
    let (uploaded, live) =
        upload::upload(&caller.client(), &wanted, manner).await.map_err(|error| not_uploaded(&error))?;
    let examined = Examined {
        digest,
        size_bytes: bytes.len(),
        contract: module.interfaces(),
        manifest: module.guest().and_then(|guest| api::manifest_value(guest.manifest())),
        views: module.views().and_then(|views| api::manifest_value(views.manifest())),
        compile_milliseconds: u64::try_from(module.compile_duration().as_millis()).unwrap_or(u64::MAX),
        created: uploaded == Uploaded::Created,
        unchanged: uploaded == Uploaded::Unchanged,
        used_by: live.status.map(|status| status.used_by).unwrap_or_default(),
        warnings,
        name,
    };
    endpoint::json(StatusCode::OK, &examined)
}

async fn may_upload(caller: &Caller) -> Result<(), Problem> {
    let check = |group: &str, resource: &str, namespace: Option<&str>| Check {
        verb: "create".into(),
        group: group.into(),
        resource: resource.into(),
        subresource: None,
        namespace: namespace.map(Into::into),
        name: None,
    };
    let wanted = [check("pintle.dev", "modules", None), check("", "configmaps", Some(api::NAMESPACE))];
    for check in &wanted {
        if !users::may(caller, check).await? {
            let within = check.namespace.as_ref().map(|namespace| format!(" in {namespace}"));
            return Err(Problem::forbidden(format!(
                "an upload needs the right to create {}{}",
                check.resource,
                within.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

/// The Modules, for warnings: who may not list them is not warned.
async fn modules(caller: &Caller) -> Vec<Module> {
    let place = Resource::new("pintle.dev", "v1alpha1", "modules").everywhere();
    let module = |object| serde_json::from_value(object).ok();
    reading::all(caller, &Ask::get(place.path()), module).await.unwrap_or_default()
}

/// Why bytes are no module that a host takes. What is too large is told so.
fn refused(failure: pintle_wit::Failure) -> Problem {
    let problem = Problem::of_failure(&failure);
    if failure.reason == reasons::MODULE_TOO_LARGE {
        return Problem { status: StatusCode::PAYLOAD_TOO_LARGE, ..problem };
    }
    problem
}

fn not_uploaded(error: &UploadError) -> Problem {
    let hint = "upload it under another name";
    match error {
        UploadError::Going(module) => {
            Problem::conflict(format!("Module {} is being deleted; {hint}", module.name_any()))
                .because("Deleting")
        }
        UploadError::Taken { .. } | UploadError::Occupied { .. } => {
            Problem::conflict(format!("{error}; {hint}")).because("AlreadyExists")
        }
        UploadError::NoNamespace(_) => Problem::not_found(format!("{error}: is Pintle installed?")),
        UploadError::Api { about, error: kube::Error::Api(status) } => {
            let problem = Problem::of_status(status);
            Problem { detail: format!("{about}: {}", problem.detail), ..problem }
        }
        UploadError::Api { about, .. } => {
            Problem::bad_gateway(format!("{about}: the API server did not answer"))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use pintle_engine::{Engine, EngineConfig, Meter, fixtures};
    use pintle_modules::Budget;
    use pintle_runtime::{Spawner, clock};
    use serde_json::json;

    use super::*;
    use crate::{
        app::App,
        fake::{self, Asked, Log, ask, refused, upstream},
        workshop::{Parts, Untold, Workshop},
    };

    fn guest() -> Vec<u8> {
        let manifest = fixtures::manifest("toy", "a.example/v1", "Room", &[]);
        fixtures::answers(&manifest, "{}")
    }

    pub(crate) fn served(answer: fn(&Asked) -> (u16, Value)) -> (Arc<App>, Log) {
        let (client, log) = upstream(answer);
        let app = fake::app(fake::cluster(), client.clone());
        let engine = Engine::new(EngineConfig::new(Meter::Deadline, clock::monotonic)).unwrap();
        let budget = Budget::fixed(512 << 20);
        let (spawner, report) = (Spawner::default(), Arc::new(Untold));
        let (compilers, reads_modules) = (None, false);
        app.shop.open(Workshop::new(Parts {
            engine,
            compilers,
            budget,
            spawner,
            report,
            client,
            reads_modules,
        }));
        (app, log)
    }

    /// An API server in which everything may be created, and where `old` is a Module of other bytes.
    fn allows(asked: &Asked) -> (u16, Value) {
        let created = |object: Value| (201, object);
        match (asked.method.as_str(), asked.path.split('?').next().unwrap()) {
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews") => {
                let token = asked.header("authorization");
                (201, json!({"status": {"allowed": token == Some("Bearer ann-token")}}))
            }
            ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews") => {
                (201, json!({"status": {"userInfo": {"username": "bob"}}}))
            }
            ("GET", "/apis/pintle.dev/v1alpha1/modules/old") => (
                200,
                json!({"apiVersion": "pintle.dev/v1alpha1", "kind": "Module", "metadata": {"name": "old"},
                    "spec": {"digest": "sha256:0", "source": {}}}),
            ),
            ("POST", _) => {
                let mut object = asked.json();
                object["metadata"]["uid"] = json!("u");
                created(object)
            }
            ("PATCH", _) => {
                (200, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}))
            }
            _ => refused(404, "NotFound", "not here"),
        }
    }

    fn put(name: &str, bytes: Vec<u8>) -> axum::http::Request<Body> {
        let mut request = fake::request("PUT", &format!("/api/v1/modules/{name}"), None);
        request.headers_mut().insert("content-type", "application/wasm".parse().unwrap());
        *request.body_mut() = bytes.into();
        request
    }

    fn writes(log: &Log) -> Vec<String> {
        let log = log.lock().unwrap();
        let writes = log
            .iter()
            .filter(|asked| asked.method != "GET" && !asked.path.contains(".k8s.io/v1/selfsubject"));
        writes.map(Asked::line).collect()
    }

    #[tokio::test]
    async fn a_module_is_verified_and_created_as_the_caller() {
        let (app, log) = served(allows);
        let (code, examined) = ask(&app, put("toy-9.9.9", guest())).await;
        assert_eq!(code, 200, "{examined}");
        assert_eq!(
            (&examined["created"], &examined["unchanged"], &examined["name"]),
            (&json!(true), &json!(false), &json!("toy-9.9.9"))
        );
        assert_eq!(
            (&examined["sizeBytes"], &examined["manifest"]["name"]),
            (&json!(guest().len()), &json!("toy"))
        );
        assert!(examined["digest"].as_str().unwrap().starts_with("sha256:"));
        assert!(examined["warnings"][0].as_str().unwrap().contains("ends in 9.9.9"));
        assert_eq!(
            writes(&log),
            [
                "POST /api/v1/namespaces/pintle-system/configmaps?&fieldManager=pintle-console",
                "POST /apis/pintle.dev/v1alpha1/modules?&fieldManager=pintle-console",
                "PATCH /api/v1/namespaces/pintle-system/configmaps/toy-9.9.9?&fieldManager=pintle-console",
            ]
        );
        let log = log.lock().unwrap();
        assert!(log.iter().all(|asked| asked.header("authorization") == Some("Bearer ann-token")));
    }

    #[tokio::test]
    async fn what_is_tried_first_writes_nothing() {
        let (app, log) = served(allows);
        let mut request = put("toy", guest());
        *request.uri_mut() = "/api/v1/modules/toy?dryRun=All".parse().unwrap();
        let (code, examined) = ask(&app, request).await;
        assert_eq!((code, &examined["created"]), (200, &json!(true)));
        let writes = writes(&log);
        assert!(writes.len() == 2 && writes.iter().all(|line| line.contains("dryRun=All")), "{writes:?}");
    }

    #[tokio::test]
    async fn what_is_no_module_is_refused_in_the_words_of_the_engine_and_nothing_is_written() {
        let (app, log) = served(allows);
        let manifest = fixtures::manifest("toy", "a.example/v1", "Room", &[]);
        for (bytes, status, reason) in [
            (b"# a text file".to_vec(), 422, "NotWasm"),
            (Vec::new(), 422, "NotWasm"),
            (fixtures::core_module(), 422, "CoreModule"),
            (fixtures::imports_wasi(&manifest), 422, "ImportsNotAllowed"),
            (vec![0; engine::MODULE_BYTES_MAX + 1], 413, "TooLarge"),
        ] {
            let (code, problem) = ask(&app, put("toy", bytes)).await;
            assert_eq!((code, problem["reason"].as_str()), (status, Some(reason)), "{problem}");
            assert!(!problem["detail"].as_str().unwrap().is_empty());
        }
        assert_eq!(writes(&log), [""; 0]);
    }

    #[tokio::test]
    async fn other_bytes_under_a_name_that_is_taken_are_a_conflict() {
        let (app, log) = served(allows);
        let (code, problem) = ask(&app, put("old", guest())).await;
        assert_eq!((code, &problem["reason"]), (409, &json!("AlreadyExists")));
        assert!(problem["detail"].as_str().unwrap().contains("a Module never changes"));
        assert_eq!(writes(&log), [""; 0]);
    }

    #[tokio::test]
    async fn who_may_not_create_modules_has_nothing_compiled() {
        let (app, log) = served(allows);
        let mut request = put("toy", guest());
        request.headers_mut().insert("authorization", "Bearer bob-token".parse().unwrap());
        let (code, problem) = ask(&app, request).await;
        assert_eq!(
            (code, problem["detail"].as_str()),
            (403, Some("an upload needs the right to create modules"))
        );
        assert_eq!(writes(&log), [""; 0]);
        let mut form = put("toy", guest());
        form.headers_mut().insert("content-type", "application/json".parse().unwrap());
        assert_eq!(ask(&app, form).await.0, 415);
        assert_eq!(ask(&app, put("..%2Fx", guest())).await.0, 400);
    }

    #[tokio::test]
    async fn an_upload_that_comes_slowly_holds_up_no_other() {
        let (app, _) = served(allows);
        for _ in 0..2 {
            let (app, mut slow) = (Arc::clone(&app), put("slow", Vec::new()));
            let never = futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
            *slow.body_mut() = Body::from_stream(never);
            tokio::spawn(async move { ask(&app, slow).await });
        }
        assert_eq!(ask(&app, put("toy", guest())).await.0, 200);
    }

    #[tokio::test]
    async fn without_an_engine_one_is_told_to_come_back() {
        let (client, _) = upstream(allows);
        let app = fake::app(fake::cluster(), client);
        let (code, problem) = ask(&app, put("toy", guest())).await;
        assert_eq!((code, &problem["reason"]), (503, &json!("EngineStarting")));
    }
}
