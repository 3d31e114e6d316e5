//! The view `darkrooms`: a Darkroom as a document in plain JSON, for REST.
//!
//! The keys of a bucket are written and never shown: who leaves them out keeps them, and null takes them away.

use pintle_guest::{Condition, Failure, Kind, Map, NoConfig, Value, View, ViewManifest, Views, fields, json};
use serde::{Deserialize, Serialize};

use crate::{
    check,
    resource::{DEFAULT_VERSION, SecretRef, Source, SourceType, default_version},
};

/// What `store` sets: the fields that the view knows, one by one, so that a field which is newer than the view stays as it is.
const WRITES: [&str; 13] = [
    "spec.version",
    "spec.image",
    "spec.subDomains",
    "spec.cache.ttlSeconds",
    "spec.source.type",
    "spec.source.baseUrl",
    "spec.source.bucket",
    "spec.source.region",
    "spec.source.endpoint",
    "spec.source.pathPrefix",
    "spec.source.credentialsSecretRef",
    "spec.source.accessKey",
    "spec.source.secretKey",
];

/// The guest's views.
pub struct Documents;

impl Views for Documents {
    const NAME: &'static str = "darkroom";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type All = (Darkrooms,);
}

/// The view.
pub struct Darkrooms;

/// A Darkroom, as far as the view reads it. Everything may be missing: an object may be older than a rule of its CRD.
#[derive(Deserialize)]
pub struct Stored {
    #[serde(default)]
    spec: StoredSpec,
    #[serde(default)]
    status: StoredStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredSpec {
    version: Option<String>,
    image: Option<String>,
    sub_domains: Option<Vec<String>>,
    cache: StoredCache,
    source: StoredSource,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredCache {
    ttl_seconds: Option<i64>,
}

#[derive(Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct StoredSource {
    r#type: Option<String>,
    base_url: Option<String>,
    bucket: Option<String>,
    region: Option<String>,
    endpoint: Option<String>,
    path_prefix: Option<String>,
    credentials_secret_ref: Option<Value>,
    access_key: Option<String>,
    secret_key: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredStatus {
    domains: Vec<String>,
    conditions: Vec<Condition>,
}

/// An image proxy that serves the images of one source under names of its own.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// The version of the image proxy: `0.4.0` runs the image tag `v0.4.0`; `latest` and other tags are taken as they are.
    #[serde(default = "default_version")]
    pub version: String,
    /// The whole container image, instead of the one that belongs to the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Where the images come from.
    pub source: DocumentSource,
    /// The names to serve under, each one label below the domain that the administrator has set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_domains: Option<Vec<String>>,
    /// For how many seconds browsers and caches may keep the images; absent: what the administrator has set.
    #[serde(default, rename = "cacheTTL", skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<i64>,
    /// What became of it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("readOnly" = true)))]
    pub status: DocumentStatus,
    /// `Ready`, `Reconciling` and `Stalled`, and what else is to be said.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("readOnly" = true)))]
    pub conditions: Vec<Condition>,
}

/// Where the images come from.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DocumentSource {
    /// The kind of source: WebFolder or S3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#type: Option<String>,
    /// WebFolder: the address below which the images lie, with http or https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// S3: the bucket's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// S3: the bucket's region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// S3: the address of a service that is not Amazon's; from version 0.3.1 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// S3: only paths that begin with this are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// S3: a Secret in the same namespace with the keys SOURCE_BUCKET_ACCESSKEY and SOURCE_BUCKET_SECRETKEY.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<DocumentSecretRef>,
    /// S3: written and never shown. Left out, it stays; null takes it away. Better is credentialsSecretRef.
    #[serde(default, skip_serializing, deserialize_with = "pintle_guest::nullable")]
    pub access_key: Option<Option<String>>,
    /// S3: written and never shown. Left out, it stays; null takes it away. Better is credentialsSecretRef.
    #[serde(default, skip_serializing, deserialize_with = "pintle_guest::nullable")]
    pub secret_key: Option<Option<String>>,
}

/// Names a Secret in the same namespace.
#[derive(Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentSecretRef {
    /// The Secret's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What became of a Darkroom.
#[derive(Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DocumentStatus {
    /// The host names that it is served under.
    pub domains: Vec<String>,
}

impl View for Darkrooms {
    type Backing = Stored;
    type Shown = Document;
    type Config = NoConfig;

    const NAME: &'static str = "darkrooms";

    fn manifest() -> ViewManifest {
        let reads = ["spec", "status.domains", "status.conditions"];
        let paths = [
            ("", "spec"),
            ("cacheTTL", "spec.cache.ttlSeconds"),
            ("status", "status"),
            ("conditions", "status.conditions"),
        ];
        ViewManifest::of_documents(Kind::new(crate::API_VERSION, crate::KIND), &reads, &paths)
            .writing(&WRITES)
    }

    fn show(stored: Stored, _: &NoConfig) -> Result<Document, Failure> {
        let StoredSpec { version, image, sub_domains, cache, source } = stored.spec;
        let name = |reference: &Value| reference.get("name").and_then(Value::as_str).map(ToOwned::to_owned);
        Ok(Document {
            version: version.unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
            image,
            sub_domains,
            cache_ttl: cache.ttl_seconds,
            source: DocumentSource {
                r#type: source.r#type,
                base_url: source.base_url,
                bucket: source.bucket,
                region: source.region,
                endpoint: source.endpoint,
                path_prefix: source.path_prefix,
                credentials_secret_ref: source
                    .credentials_secret_ref
                    .map(|reference| DocumentSecretRef { name: name(&reference) }),
                access_key: None,
                secret_key: None,
            },
            status: DocumentStatus { domains: stored.status.domains },
            conditions: stored.status.conditions,
        })
    }

    fn store(
        document: Document,
        current: Option<Stored>,
        _: &NoConfig,
    ) -> Result<Map<String, Value>, Failure> {
        let before = current.map(|current| current.spec.source);
        let source = source(document.source, before.as_ref());
        // What is there already is not judged again: whoever changes another field is not held up by it, as with kubectl.
        if before.as_ref() != Some(&source) {
            check::check_source(&source.typed())?;
        }
        Ok(fields(&json!({"spec": {
            "version": document.version,
            "image": document.image,
            "subDomains": document.sub_domains,
            "cache": {"ttlSeconds": document.cache_ttl},
            "source": source,
        }})))
    }
}

/// The source as it is to be stored: the keys that are not written stay, and so does what else stands beside the name of a Secret.
fn source(written: DocumentSource, before: Option<&StoredSource>) -> StoredSource {
    let kept = |key: Option<Option<String>>, before: Option<&String>| match key {
        Some(written) => written,
        None => before.cloned(),
    };
    let reference = written.credentials_secret_ref.map(|reference| {
        let mut all = match before.and_then(|before| before.credentials_secret_ref.clone()) {
            Some(Value::Object(all)) => all,
            _ => Map::new(),
        };
        match reference.name {
            Some(name) => all.insert("name".to_owned(), name.into()),
            None => all.remove("name"),
        };
        Value::Object(all)
    });
    StoredSource {
        r#type: written.r#type,
        base_url: written.base_url,
        bucket: written.bucket,
        region: written.region,
        endpoint: written.endpoint,
        path_prefix: written.path_prefix,
        credentials_secret_ref: reference,
        access_key: kept(written.access_key, before.and_then(|before| before.access_key.as_ref())),
        secret_key: kept(written.secret_key, before.and_then(|before| before.secret_key.as_ref())),
    }
}

impl StoredSource {
    /// The same as the guest reads it when it reconciles.
    fn typed(&self) -> Source {
        let name = |reference: &Value| {
            let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
            SecretRef { name: name.to_owned() }
        };
        Source {
            r#type: SourceType::named(self.r#type.as_deref().unwrap_or_default()),
            base_url: self.base_url.clone(),
            bucket: self.bucket.clone(),
            region: self.region.clone(),
            endpoint: self.endpoint.clone(),
            path_prefix: self.path_prefix.clone(),
            credentials_secret_ref: self.credentials_secret_ref.as_ref().map(name),
            access_key: self.access_key.clone(),
            secret_key: self.secret_key.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_guest::{ViewsManifest, call, serde_json};

    use super::*;

    const WRITTEN: &str = "https://ajatprabha.in/assets";

    fn store(document: Value, current: Option<Value>) -> Result<Value, Failure> {
        let mut request =
            json!({"apiVersion": "guest.pintle.dev/v1", "view": "darkrooms", "object": document});
        if let Some(current) = current {
            request["current"] = current;
        }
        let answer = call::views::store::<Documents>(&request.to_string());
        let read = |text: String| serde_json::from_str::<Value>(&text).unwrap();
        answer
            .map(|text| read(text)["object"]["spec"].take())
            .map_err(|text| serde_json::from_value(read(text)).unwrap())
    }

    fn refused(source: Value) -> (String, String) {
        let failure = store(json!({"source": source, "subDomains": ["a"]}), None).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.retry), ("InvalidSpec", false));
        (failure.path.unwrap_or_default(), failure.message)
    }

    fn shown(object: Value) -> Value {
        let request = json!({"apiVersion": "guest.pintle.dev/v1", "view": "darkrooms", "objects": [object]});
        let answer = call::views::show::<Documents>(&request.to_string()).unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["items"][0]["object"].take()
    }

    fn with_keys() -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"version": "0.4.0", "subDomains": ["a"], "source": {
            "type": "S3", "bucket": "b", "region": "r", "accessKey": "AKIA", "secretKey": "s3cr3t"}}})
    }

    fn s3(more: Value) -> Value {
        let mut source = json!({"type": "S3", "bucket": "b", "region": "r"});
        source.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        json!({"source": source, "subDomains": ["a"]})
    }

    #[test]
    fn the_manifest_is_one_and_declares_each_field_once() {
        let generated = include_str!("../views.json");
        let manifest: ViewsManifest =
            serde_json::from_str(&call::views::describe::<Documents>(generated)).unwrap();
        assert_eq!(manifest.check(), Ok(()));
        let schema = manifest.views[0].schema().unwrap();
        for (field, is) in
            [("source/properties/secretKey", "writeOnly"), ("status", "readOnly"), ("conditions", "readOnly")]
        {
            assert_eq!(schema.pointer(&format!("/properties/{field}/{is}")), Some(&json!(true)), "{field}");
        }
    }

    #[test]
    fn a_darkroom_is_shown_as_the_seed_did_and_never_with_its_keys() {
        let sample = json!({"metadata": {"name": "a"}, "status": {"domains": ["a.example.com"], "replicas": 1},
            "spec": {"version": "0.1.0", "source": {"type": "WebFolder", "baseUrl": WRITTEN}, "subDomains": ["a"], "cache": {"ttlSeconds": 60}}});
        assert_eq!(
            shown(sample),
            json!({"version": "0.1.0", "source": {"type": "WebFolder", "baseUrl": WRITTEN}, "subDomains": ["a"], "cacheTTL": 60,
                "status": {"domains": ["a.example.com"]}, "conditions": []})
        );
        let text = shown(with_keys()).to_string();
        assert!(!text.contains("AKIA") && !text.contains("s3cr3t") && !text.contains("Key"), "{text}");
    }

    #[test]
    fn what_the_seed_refused_is_refused_in_its_words() {
        let at = |path: &str, message: &str| (format!("spec.source.{path}"), message.to_owned());
        let empty = "baseUrl can't be empty";
        assert_eq!(refused(json!({"type": "WebFolder"})), at("baseUrl", empty));
        assert_eq!(refused(json!({"type": "WebFolder", "baseUrl": ""})), at("baseUrl", empty));
        let missing = |fields: &str| format!("required fields missing: {fields}");
        assert_eq!(refused(json!({"type": "S3"})), at("accessKey", &missing("accessKey, secretKey, region")));
        assert_eq!(
            refused(json!({"type": "S3", "secretKey": "s"})),
            at("accessKey", &missing("accessKey, region"))
        );
        assert_eq!(
            refused(json!({"type": "S3", "accessKey": "a", "secretKey": "s", "bucket": "b"})),
            at("region", &missing("region"))
        );
        let reference = json!({"type": "S3", "bucket": "b", "credentialsSecretRef": {"name": "keys"}});
        assert_eq!(refused(reference), at("region", &missing("region")));
        let unknown = "source type validation was not performed, type can only be [WebFolder,S3]";
        for source in [json!({}), json!({"type": ""}), json!({"type": "GoogleCloudStorage"})] {
            assert_eq!(refused(source), at("type", unknown));
        }
    }

    #[test]
    fn keys_that_are_left_out_stay_and_null_takes_them_away() {
        let stored = store(s3(json!({})), Some(with_keys())).unwrap();
        assert_eq!(
            (&stored["source"]["accessKey"], &stored["source"]["secretKey"]),
            (&json!("AKIA"), &json!("s3cr3t"))
        );
        let changed = store(s3(json!({"secretKey": "new"})), Some(with_keys())).unwrap();
        assert_eq!(
            (&changed["source"]["accessKey"], &changed["source"]["secretKey"]),
            (&json!("AKIA"), &json!("new"))
        );
        let missing = store(s3(json!({"secretKey": null})), Some(with_keys())).unwrap_err();
        assert_eq!(missing.message, "required fields missing: secretKey");
        let reference =
            json!({"accessKey": null, "secretKey": null, "credentialsSecretRef": {"name": "keys"}});
        let referring = store(s3(reference), Some(with_keys())).unwrap();
        assert_eq!(
            (&referring["source"]["accessKey"], &referring["source"]["credentialsSecretRef"]),
            (&Value::Null, &json!({"name": "keys"}))
        );
    }

    #[test]
    fn what_is_wrong_already_holds_up_no_other_change() {
        let mut broken = with_keys();
        broken["spec"]["source"]["region"] = Value::Null;
        let mut document = s3(json!({}));
        document["source"].as_object_mut().unwrap().remove("region");
        document["cacheTTL"] = json!(60);
        let stored = store(document.clone(), Some(broken.clone())).unwrap();
        assert_eq!(stored["cache"]["ttlSeconds"], 60);
        document["source"]["bucket"] = json!("other");
        assert_eq!(store(document, Some(broken)).unwrap_err().message, "required fields missing: region");
    }
}
