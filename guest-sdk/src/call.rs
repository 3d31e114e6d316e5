//! The functions behind the exports of a component: text in, text out. Native tests use them to see exactly what a host sees.

pub mod views;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    API_VERSION, ApiVersion, Failure, Guest, Request, plain,
    read::{Misfit, read},
    reasons,
};

/// The text of the guest's manifest. It has the generated schema of the config, unless the guest states one itself.
pub fn describe<G: Guest>(config_schema: Option<&str>) -> String {
    let mut manifest = G::manifest();
    if manifest.config_schema.is_none() {
        manifest.config_schema = config_schema.and_then(|text| serde_json::from_str(text).ok());
    }
    text(&manifest)
}

/// Answers a request.
///
/// # Errors
/// The text of a failure: the guest's own, or that the request does not fit the guest's types.
pub fn reconcile<G: Guest>(request: &str) -> Result<String, String> {
    match parse::<G>(request).and_then(G::reconcile) {
        Ok(response) => Ok(text(&response)),
        Err(failure) => Err(text(&failure)),
    }
}

/// Reads a request into the guest's types.
fn parse<G: Guest>(text: &str) -> Result<Request<G::Root, G::Config>, Failure> {
    let mut fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(invalid("must be an object")),
        Err(_) => return Err(invalid("must be JSON")),
    };
    // Part by part, so that an error in the config is reported as one of the Reconciler, and any other error as one of the root.
    let mut part = |name: &str| part(&mut fields, name);
    if part("apiVersion") != API_VERSION {
        return Err(invalid("must be of version guest.pintle.dev/v1").at("apiVersion"));
    }
    let object = read(part("object")).map_err(|misfit| blame(reasons::INVALID_SPEC, &misfit))?;
    let config = config(part("config"))?;
    let needs = match part("needs") {
        needs if G::READS_NEEDS => plain::list(needs, plain::need_answer),
        Value::Array(needs) if !needs.is_empty() => {
            return Err(invalid(
                "the guest asks for needs, but does not read them: set READS_NEEDS in its impl of Guest",
            ));
        }
        _ => Vec::new(),
    };
    Ok(Request {
        api_version: ApiVersion,
        object,
        config,
        children: plain::list(part("children"), |child| child),
        needs,
        refusals: plain::list(part("refusals"), plain::refusal),
        deleting: part("deleting") == true,
        host: plain::host(part("host")),
    })
}

fn invalid(message: &str) -> Failure {
    Failure::terminal("InvalidRequest", message)
}

/// Takes a field out of a request.
fn part(fields: &mut Map<String, Value>, name: &str) -> Value {
    fields.get_mut(name).map(Value::take).unwrap_or_default()
}

fn config<Config: DeserializeOwned + Default>(config: Value) -> Result<Config, Failure> {
    match config {
        Value::Null => Ok(Config::default()),
        config => read(config).map_err(|misfit| blame(reasons::CONFIG_INVALID, &misfit)),
    }
}

/// The failure for a value of the root or the config that does not fit. Its path starts inside of the root or the config.
fn blame(reason: &str, misfit: &Misfit) -> Failure {
    let failure = Failure::terminal(reason, misfit.message());
    let path = misfit.path();
    if path.is_empty() { failure } else { failure.at(path) }
}

fn text(document: &impl Serialize) -> String {
    // The contract's documents always serialise: their keys are strings and their numbers finite.
    serde_json::to_string(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Host, Kind, Manifest, Need, NeedAnswer, NoConfig, Object, Refusal, Response, json};

    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        replicas: u32,
        #[serde(default)]
        ports: Vec<Port>,
    }

    #[derive(serde::Deserialize)]
    struct Port {
        number: u16,
    }

    #[derive(Default, serde::Deserialize)]
    struct Status {
        seen: u32,
    }

    struct Sample;

    impl Guest for Sample {
        type Root = Object<Spec, Status>;
        type Config = NoConfig;
        fn manifest() -> Manifest {
            Manifest::new("sample", "0.1.0", Kind::new("example.com/v1", "Sample"))
        }
        fn reconcile(request: Request<Self::Root, NoConfig>) -> Result<Response, Failure> {
            let ports = request.object.spec.ports.iter().map(|port| port.number).collect::<Vec<_>>();
            let status = json!({"replicas": request.object.spec.replicas, "ports": ports, "seen": request.object.status.seen});
            Ok(Response { status: serde_json::from_value(status).unwrap(), ..Response::default() })
        }
    }

    fn call(object: Value) -> Result<Value, Value> {
        call_with(json!({"apiVersion": "guest.pintle.dev/v1", "object": object}))
    }

    fn call_with(request: Value) -> Result<Value, Value> {
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        reconcile::<Sample>(&request.to_string()).map(read).map_err(read)
    }

    #[test]
    fn a_root_that_fits_is_answered() {
        let answer =
            call(json!({"metadata": {"name": "a"}, "spec": {"replicas": 2, "ports": [{"number": 80}]}}))
                .unwrap();
        assert_eq!(answer["status"], json!({"replicas": 2, "ports": [80], "seen": 0}));
    }

    #[test]
    fn a_status_of_another_version_reads_as_the_default() {
        let answer =
            call(json!({"metadata": {"name": "a"}, "spec": {"replicas": 2}, "status": {"seen": "never"}}))
                .unwrap();
        assert_eq!(answer["status"]["seen"], 0);
    }

    #[test]
    fn a_root_that_does_not_fit_is_a_terminal_failure_that_names_the_field() {
        let failure = call(json!({"metadata": {"name": "a"}, "spec": {"replicas": -1}})).unwrap_err();
        assert_eq!(failure["reason"], "InvalidSpec");
        assert_eq!(failure["path"], "spec.replicas");
        assert_eq!(failure["retry"], false);
        assert_eq!(failure["message"], "must be u32, not -1");
        let failure = call(
            json!({"metadata": {"name": "a"}, "spec": {"replicas": 1, "ports": [{"number": 1}, {"number": "http"}]}}),
        );
        assert_eq!(failure.unwrap_err()["path"], "spec.ports[1].number");
    }

    #[test]
    fn a_field_that_is_missing_is_named_with_its_path() {
        let failure = call(json!({"metadata": {"name": "a"}, "spec": {"ports": []}})).unwrap_err();
        assert_eq!(failure["path"], "spec.replicas");
        assert_eq!(failure["message"], "is required");
        let failure = call(json!({"metadata": {"name": "a"}})).unwrap_err();
        assert_eq!(failure["path"], "spec");
    }

    #[test]
    fn a_config_that_does_not_fit_says_so() {
        let failure = call_with(json!({
            "apiVersion": "guest.pintle.dev/v1",
            "config": {"domainSufix": "x"},
            "object": {"metadata": {"name": "a"}, "spec": {"replicas": 1}},
        }));
        let failure = failure.unwrap_err();
        assert_eq!(failure["reason"], "ConfigInvalid");
        assert_eq!(failure["path"], "domainSufix");
    }

    #[test]
    fn a_request_of_another_version_is_not_blamed_on_the_root() {
        let failure = call_with(json!({"apiVersion": "guest.pintle.dev/v9", "object": {}})).unwrap_err();
        assert_eq!(failure["reason"], "InvalidRequest");
        assert_eq!(failure["path"], "apiVersion");
    }

    #[test]
    fn the_manifest_carries_the_schema_of_the_config() {
        let manifest: Value =
            serde_json::from_str(&describe::<Sample>(Some(r#"{"type": "object"}"#))).unwrap();
        assert_eq!(manifest["configSchema"], json!({"type": "object"}));
        assert_eq!(manifest["reconciles"]["kind"], "Sample");
    }

    struct Asking;

    impl Guest for Asking {
        type Root = Value;
        type Config = Value;
        const READS_NEEDS: bool = true;
        fn manifest() -> Manifest {
            Sample::manifest()
        }
        fn reconcile(_: Request) -> Result<Response, Failure> {
            Ok(Response::default())
        }
    }

    /// Every field is set, so that the test fails if the contract gains a part of the request that this module does not read.
    #[test]
    fn a_request_is_read_as_the_contract_writes_it() {
        let need = Need::Deadline("2000-01-01T00:00:00Z".to_owned());
        let written = Request {
            children: vec![json!({"kind": "Deployment"})],
            needs: vec![NeedAnswer { need, objects: vec![json!({})], time: None, reached: Some(true) }],
            refusals: vec![Refusal { code: 422, causes: vec![Cause::default()], ..Refusal::default() }],
            deleting: true,
            host: Host { capabilities: vec!["needs".to_owned()] },
            config: json!({"a": 1}),
            ..Request::about(json!({"metadata": {"name": "a"}}))
        };
        assert_eq!(parse::<Asking>(&text(&written)).unwrap(), written);
    }

    #[test]
    fn a_guest_that_does_not_read_needs_is_told_so_when_it_gets_some() {
        let need = json!({"need": {"clock": {"stepSeconds": 60}}, "time": "2000-01-01T00:00:00Z"});
        let mut request = json!({"apiVersion": "guest.pintle.dev/v1", "needs": [need]});
        request["object"] = json!({"metadata": {"name": "a"}, "spec": {"replicas": 1}});
        let failure = call_with(request).unwrap_err();
        assert!(failure["message"].as_str().unwrap().contains("READS_NEEDS"), "{failure}");
    }
}
