//! In which form a client wants the answer, and in which form the body of its request is.
//!
//! Clients name several forms, best first: the first that can be served is taken. Forms that are not written here (protobuf, CBOR) are
//! passed over, and so is YAML, which is read and not written.

use super::status::{Status, fault};

/// What is written.
pub const JSON: &str = "application/json";

/// What is read besides.
pub const YAML: &str = "application/yaml";

/// The version of `Table` and `PartialObjectMetadata`.
pub const META: &str = "meta.k8s.io/v1";

/// Patches by server-side apply begin with this.
const APPLY_PATCH: &str = "application/apply-patch";

/// The forms of a patch that are taken, as OpenAPI names them.
pub const PATCHES: [&str; 2] = ["application/json-patch+json", "application/merge-patch+json"];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// One object.
    Object,
    /// A list.
    List,
    /// A stream of events, each with one object.
    Watch,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Whole objects.
    Object,
    /// `PartialObjectMetadata`, or `PartialObjectMetadataList` for a list.
    Metadata,
    /// `Table`: one row an object.
    Table(Include),
}

/// What a row of a Table has of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// The form of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovery {
    /// All groups with their resources at once.
    Aggregated,
    /// The path's own document.
    Plain,
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902: a list of operations.
    Json,
    /// RFC 7386: fields that are laid over the object.
    Merge,
}

impl Form {
    /// The form of the answer to what is asked for. A missing `Accept` is JSON. `include_object` is the parameter of that name.
    ///
    /// # Errors
    /// 406 if no clause can be served; 400 if a Table is to include what there is not.
    pub fn negotiate(
        accept: Option<&str>,
        asked: Asked,
        include_object: Option<&str>,
    ) -> Result<Self, Status> {
        let form = first(accept, |clause| Self::of(clause, asked));
        match form.ok_or_else(|| Status::not_acceptable(&[JSON]))? {
            Self::Table(_) => Ok(Self::Table(Include::read(include_object)?)),
            other => Ok(other),
        }
    }

    fn of(clause: &Clause<'_>, asked: Asked) -> Option<Self> {
        if clause.parameter("sv").is_some() || clause.parameter("stream").is_some_and(|of| of != "watch") {
            return None;
        }
        let Some((kind, group, version)) = clause.converted() else { return Some(Self::Object) };
        if (group, version) != ("meta.k8s.io", "v1") {
            return None;
        }
        match (kind, asked) {
            ("Table", _) => Some(Self::Table(Include::default())),
            ("PartialObjectMetadataList", Asked::List)
            | ("PartialObjectMetadata", Asked::Object | Asked::Watch) => Some(Self::Metadata),
            _ => None,
        }
    }
}

impl Include {
    /// Reads the parameter `includeObject`.
    ///
    /// # Errors
    /// 400 for any other value.
    pub fn read(parameter: Option<&str>) -> Result<Self, Status> {
        match parameter {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(other) => {
                let why = "must be 'Metadata', 'Object', 'None', or empty";
                let cause = fault::invalid("includeObject", other, why);
                let (field, message) = (cause.field, cause.message);
                let message = format!("Unable to convert to Table as requested: {field}: {message}");
                Err(Status::bad_request(message))
            }
        }
    }
}

impl Discovery {
    /// The form of discovery that the client wants. Only `/apis` has the aggregated one; the other paths are always plain.
    ///
    /// # Errors
    /// 406 if no clause can be served.
    pub fn negotiate(accept: Option<&str>) -> Result<Self, Status> {
        let form = first(accept, |clause| match clause.converted() {
            None => Some(Self::Plain),
            Some(("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")) => Some(Self::Aggregated),
            Some(_) => None,
        });
        form.ok_or_else(|| Status::not_acceptable(&[JSON]))
    }

    /// The media type of the answer. The aggregator takes an answer for aggregated discovery only if it says so.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Aggregated => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::Plain => JSON,
        }
    }
}

/// Whether a client reads JSON, for what is served in no other form.
///
/// # Errors
/// 406 if it does not.
pub fn plain(accept: Option<&str>) -> Result<(), Status> {
    let found = first(accept, |clause| clause.converted().is_none().then_some(()));
    found.ok_or_else(|| Status::not_acceptable(&[JSON]))
}

impl Body {
    /// The form of the body of a create, an update or a delete. A missing `Content-Type` is JSON.
    ///
    /// # Errors
    /// 415 for any other.
    pub fn read(content_type: Option<&str>) -> Result<Self, Status> {
        match media_type(content_type.unwrap_or_default()).as_str() {
            "" | JSON => Ok(Self::Json),
            YAML => Ok(Self::Yaml),
            _ => Err(Status::unsupported_media_type(&[JSON, YAML])),
        }
    }
}

impl PatchType {
    /// How a patch is meant. Strategic merge and server-side apply are not taken.
    ///
    /// # Errors
    /// 415 for any other.
    pub fn read(content_type: Option<&str>) -> Result<Self, Status> {
        let [json, merge] = PATCHES;
        match media_type(content_type.unwrap_or_default()) {
            media_type if media_type == json => Ok(Self::Json),
            media_type if media_type == merge => Ok(Self::Merge),
            media_type if media_type.starts_with(APPLY_PATCH) => Err(Status::no_server_side_apply()),
            _ => Err(Status::unsupported_media_type(&PATCHES)),
        }
    }
}

/// A media type without its parameters.
fn media_type(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// One of the forms that a client reads.
struct Clause<'a> {
    media_type: String,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn read(text: &'a str) -> Self {
        let parameters = text.split(';').skip(1).filter_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            Some((name.trim(), value.trim().trim_matches('"')))
        });
        Self { media_type: media_type(text), parameters: parameters.collect() }
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters
            .iter()
            .find(|(other, value)| *other == name && !value.is_empty())
            .map(|(_, value)| *value)
    }

    /// The kind, group and version to which the object is to be converted. None: it is to stay as it is.
    fn converted(&self) -> Option<(&'a str, &'a str, &'a str)> {
        let [kind, group, version] = ["as", "g", "v"].map(|name| self.parameter(name));
        let is_converted = kind.is_some() || group.is_some() || version.is_some();
        is_converted
            .then(|| (kind.unwrap_or_default(), group.unwrap_or_default(), version.unwrap_or_default()))
    }

    /// What orders clauses: in thousandths, how much the client wants it; and then, whether it is a wildcard.
    fn rank(&self) -> (u32, u8) {
        let quality = self.parameter("q").and_then(|quality| quality.parse::<f64>().ok()).unwrap_or(1.0);
        let wildcards = self.media_type.matches('*').count();
        // Bounded above and below, so that it fits.
        ((quality.clamp(0.0, 1.0) * 1000.0) as u32, u8::try_from(2 - wildcards.min(2)).unwrap_or_default())
    }
}

/// The first form that can be served, of those that the client reads.
fn first<T>(accept: Option<&str>, form: impl Fn(&Clause<'_>) -> Option<T>) -> Option<T> {
    let accept = accept.map(str::trim).filter(|accept| !accept.is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<Clause<'_>> = accept.split(',').map(Clause::read).collect();
    clauses.retain(|clause| clause.rank().0 > 0);
    clauses.sort_by_key(|clause| std::cmp::Reverse(clause.rank()));
    let is_json = |clause: &&Clause<'_>| matches!(clause.media_type.as_str(), "*/*" | "application/*" | JSON);
    clauses.iter().filter(is_json).find_map(form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str, asked: Asked) -> Option<Form> {
        Form::negotiate(Some(accept), asked, None).ok()
    }

    const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

    #[test]
    fn kubectl_gets_a_table() {
        let table = Form::Table(Include::Metadata);
        for asked in [Asked::Object, Asked::List, Asked::Watch] {
            assert_eq!(form(TABLE, asked), Some(table));
        }
        let old = "application/json;g=meta.k8s.io;v=v1beta1;as=Table, application/json";
        assert_eq!(form(old, Asked::List), Some(Form::Object), "it is passed over");
    }

    #[test]
    fn metadata_informers_get_metadata_although_protobuf_stands_first() {
        let list = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(form(list, Asked::List), Some(Form::Metadata));
        let one = list.replace("MetadataList", "Metadata");
        assert_eq!(form(&one, Asked::Object), Some(Form::Metadata));
        assert_eq!(form(&one, Asked::Watch), Some(Form::Metadata));
    }

    #[test]
    fn a_form_that_what_is_asked_for_does_not_have_is_passed_over() {
        let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(form(list, Asked::Watch), None);
        assert_eq!(form(&format!("{list},application/json"), Asked::Watch), Some(Form::Object));
        let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(form(one, Asked::List), None);
        assert_eq!(
            form("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", Asked::List),
            Some(Form::Object)
        );
        assert_eq!(form("application/json;as=Table", Asked::List), None);
    }

    #[test]
    fn what_a_client_wants_more_stands_first() {
        let accept = "application/json;q=0.5,application/json;as=Table;v=v1;g=meta.k8s.io;q=0.9";
        assert_eq!(form(accept, Asked::List), Some(Form::Table(Include::Metadata)));
    }

    #[test]
    fn discovery_is_aggregated_for_whoever_can_read_it() {
        let of = |accept: &str| Discovery::negotiate(Some(accept)).expect("it can be served");
        let aggregator = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
        assert_eq!(of(aggregator), Discovery::Aggregated);
        let shuffled = "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io;profile=nopeer";
        assert_eq!(of(shuffled), Discovery::Aggregated);
        assert_eq!(of("application/json").content_type(), "application/json");
        assert_eq!(of("application/vnd.kubernetes.protobuf,*/*"), Discovery::Plain);
        assert_eq!(Discovery::negotiate(None), Ok(Discovery::Plain));
        assert_eq!(Discovery::negotiate(Some("application/cbor")).expect_err("not served").code, 406);
    }

    #[test]
    fn what_is_only_plain_is_refused_to_whoever_cannot_read_it() {
        assert_eq!(plain(None), Ok(()));
        assert_eq!(plain(Some("application/json")), Ok(()));
        let protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf";
        assert_eq!(plain(Some(protobuf)).expect_err("not served").code, 406);
    }
}
