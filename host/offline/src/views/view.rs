//! A view with the schemas of its kinds.

use pintle_core::{
    object, reasons, request,
    view::{
        Access, Backing, Cut, Epoch, Lens, Served, Verb,
        document::shape::{Written, take_read_only},
        write::Refusal,
    },
};
use pintle_schema::{
    builtin,
    shape::Shape,
    structural::{Structural, Unsupported},
};
use pintle_wit::{
    Cause, Failure, Kind,
    views::{self as wit, ViewManifest},
};
use serde_json::{Map, Value, json};

use super::fields;
use crate::{documents::Document, setting};

/// A view: what it declares, and the schemas of its kinds.
#[derive(Debug)]
pub struct View<'a> {
    /// What it declares.
    pub manifest: &'a ViewManifest,
    /// The schema of what it shows.
    pub shown: Structural,
    /// The schema of the backing kind, if it is a kind of Kubernetes, or its CRD is known.
    backing: Option<Value>,
    /// The same of a custom kind, compiled.
    custom: Option<Structural>,
    /// Whether objects of the backing kind live in namespaces.
    is_namespaced: bool,
    /// How a gateway maps its objects.
    pub lens: Lens,
    /// What a gateway keeps of backing objects.
    cut: Cut,
}

impl<'a> View<'a> {
    /// A view, with the schema of its backing kind: the kind's own if it is one of Kubernetes, or from its CRD. Other documents play no
    /// part.
    ///
    /// # Errors
    /// When a schema is none.
    pub fn new(manifest: &'a ViewManifest, crds: &[Document]) -> Result<Self, Failure> {
        let shown = Structural::compile(manifest.schema().unwrap_or(&Value::Null))
            .map_err(unsupported("the schema of the view"))?;
        let kind = &manifest.backing;
        let crd = setting::crd_of(crds.iter().map(|crd| &crd.value), kind);
        let is_namespaced = crd.as_ref().map_or(!setting::is_cluster_scoped(kind), |crd| crd.namespaced);
        let declared = crd.map(|crd| {
            let schema = crd.version.pointer("/schema/openAPIV3Schema").cloned();
            schema.unwrap_or_else(|| json!({"type": "object"}))
        });
        let custom = declared.as_ref().map(Structural::of_crd).transpose();
        let custom = custom.map_err(unsupported("the CRD of the backing kind"))?;
        let backing_of_lens = Backing {
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            // Nobody is asked for it without a cluster.
            plural: String::new(),
            namespaced: is_namespaced,
        };
        let served = Served::of(manifest, backing_of_lens, Verb::ALL.to_vec());
        let lens = Lens::new(&manifest.name, served, Access::default(), Vec::new(), Epoch::default());
        let cut = Cut::new(manifest.reads.iter().chain(&manifest.writes));
        let backing = declared.or_else(|| builtin::schema(kind));
        Ok(Self { manifest, shown, backing, custom, is_namespaced, lens, cut })
    }
}

fn unsupported(whose: &str) -> impl Fn(Unsupported) -> Failure {
    move |unsupported| Failure::terminal(reasons::INVALID, format!("{whose}: {unsupported}"))
}

impl View<'_> {
    /// The schema of the backing kind, with the fields that are there although it does not require them, and whether the objects live in
    /// namespaces.
    pub(super) fn backing_shape(&self) -> Option<(Shape<'_>, &'static [&'static str], bool)> {
        let schema = self.backing.as_ref()?;
        if self.custom.is_some() {
            return Some((Shape::new(&Value::Null, schema), &[], self.is_namespaced));
        }
        // The API server always writes the spec and the status of its own kinds.
        Some((Shape::new(builtin::definitions(), schema), &["spec", "status"], self.is_namespaced))
    }

    /// Sets the defaults that the CRD of the backing kind has.
    pub(super) fn fill_in_backing(&self, object: &mut Value) {
        if let Some(structural) = &self.custom {
            // A CRD has no bounds.
            let _ = structural.default(object);
        }
    }

    /// Whether the CRD of the backing kind allows an object. Fields that it does not declare count for nothing.
    pub(super) fn is_backing(&self, object: &Value) -> bool {
        self.custom.as_ref().is_none_or(|structural| structural.validate(object, None).is_empty())
    }

    /// Sets the defaults of an object, and finds whether it is one of the view: it has no field that the schema does not have, and every
    /// value is allowed.
    ///
    /// # Errors
    /// The first thing that is wrong with it, by its field.
    pub(crate) fn admit(&self, object: &mut Value) -> Result<(), Cause> {
        let mut own = object.clone();
        if self.is_of_documents() {
            without_host_fields(&mut own);
        }
        let unknown = self.shown.prune(&mut own.clone()).into_iter().next();
        let message = "the schema has no such field".to_owned();
        let unknown = unknown.map(|field| Cause { field, message, ..Cause::default() });
        let causes = self.shown.admit(Vec::new(), &mut own, None);
        if let (Some(fields), Value::Object(own)) = (object.as_object_mut(), own) {
            fields.extend(own);
        }
        unknown.into_iter().chain(causes).next().map_or(Ok(()), Err)
    }

    /// Whether the view shows documents, and not objects.
    pub fn is_of_documents(&self) -> bool {
        self.lens.served.is_of_documents()
    }

    /// What somebody writes, as the guest is asked to store it.
    ///
    /// # Errors
    /// When it is no document.
    pub(super) fn asked(&self, written: &Value) -> Result<Value, Failure> {
        if !self.is_of_documents() {
            return Ok(request::project(written));
        }
        let document = Written::read(written.clone(), &self.lens.served.schema);
        document
            .map(|document| document.fields)
            .map_err(|refusal| Failure::terminal(reasons::INVALID, refusal.details))
    }

    /// An object of the backing kind as its guest sees it.
    pub(super) fn seen(&self, object: &Value) -> Value {
        self.cut.of(object).for_guest(&self.lens)
    }

    /// An object of the view: what is shown of a backing object, with the parts that are the host's.
    pub fn whole(&self, backing: &Value, fields: &Map<String, Value>) -> Value {
        let none = Map::new();
        let metadata = backing.get("metadata").and_then(Value::as_object).unwrap_or(&none);
        let mut whole = fields.clone();
        if self.is_of_documents() {
            whole.extend(self.lens.document_head(&self.cut.of(backing)));
            return Value::Object(whole);
        }
        whole.insert("apiVersion".into(), self.lens.served.api_version.as_str().into());
        whole.insert("kind".into(), self.lens.served.kind.as_str().into());
        whole.insert("metadata".into(), self.lens.shown_metadata(metadata).into());
        Value::Object(whole)
    }

    /// An object of the view as it is printed. Without a gateway it has no version, which is made with the epoch of a View.
    pub(crate) fn rendered(&self, backing: &Value, fields: &Map<String, Value>) -> Value {
        let mut object = self.whole(backing, fields);
        let of_host = if self.is_of_documents() { Some(&mut object) } else { object.get_mut("metadata") };
        if let Some(metadata) = of_host.and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        object
    }

    /// How people name what is shown of an object.
    pub(crate) fn reference(&self, backing: &Value) -> String {
        let object = self.whole(backing, &Map::new());
        if self.is_of_documents() {
            // A document has no kind.
            return format!(
                "{} {}",
                self.manifest.name,
                object::text(&object, &["name"]).unwrap_or_default()
            );
        }
        object::reference(&object).to_string()
    }

    /// An object of the backing kind, as an API server hands it out. It may leave out its kind.
    pub(crate) fn backing_object(&self, object: &Value, at: &str) -> Result<Value, String> {
        let mut object = of_kind(object, &self.manifest.backing, at)?;
        self.fill_in_backing(&mut object);
        Ok(object)
    }

    /// What somebody writes, as the gateway hands it on. It may leave out its kind.
    pub(crate) fn written_object(&self, object: &Value) -> Result<Value, String> {
        match &self.manifest.shown {
            Some(shown) => of_kind(object, &shown.kind(), "store.object"),
            None => Ok(object.clone()),
        }
    }

    /// The object of the backing kind after a write of which the guest stores this, as an API server would then have it.
    ///
    /// # Errors
    /// What the gateway refuses.
    pub(crate) fn after(
        &self,
        written: &Value,
        current: Option<&Value>,
        stored: &Map<String, Value>,
    ) -> Result<Value, Refusal> {
        let metadata = match (self.is_of_documents(), current) {
            (false, _) => written.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default(),
            // A document changes nothing of the metadata.
            (true, Some(current)) => self.lens.shown_metadata(&self.cut.of(current).metadata),
            (true, None) => {
                let named = ["name", "namespace"].into_iter();
                named.filter_map(|key| Some((key.to_owned(), written.get(key)?.clone()))).collect()
            }
        };
        let mut object = match current {
            None => self.lens.create(&json!({"metadata": metadata}), stored)?.body,
            Some(current) => {
                let write = self.lens.update(&self.cut.of(current), &metadata, Some(stored))?;
                let mut object = current.clone();
                json_patch::merge(&mut object, &write.body);
                object
            }
        };
        self.fill_in_backing(&mut object);
        Ok(object)
    }

    /// What is taken of what a guest stores.
    ///
    /// # Errors
    /// What the gateway refuses.
    pub(crate) fn taken(&self, stored: &Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
        let mut taken = self.lens.create(&json!({}), stored)?.body;
        without_host_parts(&mut taken);
        Ok(taken.as_object().cloned().unwrap_or_default())
    }

    /// The fields of an object of the view that are written, in the form in which they are compared: after defaults, and without fields
    /// that are marked `writeOnly`.
    pub(super) fn comparable(&self, object: &Value) -> Value {
        let mut object = object.clone();
        // What has too many was refused when it was written.
        let _ = self.shown.default(&mut object);
        fields::without_write_only(&mut object, &self.lens.served.schema);
        if self.is_of_documents() {
            without_host_fields(&mut object);
            take_read_only(&mut object, &self.lens.served.schema);
            return fields::normal(&object);
        }
        without_host_parts(&mut object);
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        fields::normal(&object)
    }
}

/// The object with its kind, which it may leave out.
fn of_kind(object: &Value, kind: &Kind, at: &str) -> Result<Value, String> {
    let mut object = object.clone();
    let Some(fields) = object.as_object_mut() else { return Err(format!("{at} is no object")) };
    fields.entry("apiVersion").or_insert_with(|| kind.api_version.as_str().into());
    fields.entry("kind").or_insert_with(|| kind.kind.as_str().into());
    fields.entry("metadata").or_insert_with(|| json!({}));
    let found = object::kind(&object);
    if found == *kind { Ok(object) } else { Err(format!("{at} is a {found}, and should be a {kind}")) }
}

/// Takes out of a document what is the host's.
fn without_host_fields(document: &mut Value) {
    if let Some(fields) = document.as_object_mut() {
        fields.retain(|name, _| !wit::Document::OF_THE_HOST.contains(&name.as_str()));
    }
}

/// Takes out of an object what is the host's.
pub(super) fn without_host_parts(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_may_leave_out_its_kind_and_have_no_other() {
        let pod = Kind::new("v1", "Pod");
        let whole = of_kind(&json!({"spec": {}}), &pod, "show[0]").unwrap();
        assert_eq!(whole, json!({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}));
        let node = json!({"apiVersion": "v1", "kind": "Node"});
        assert_eq!(
            of_kind(&node, &pod, "show[1]").unwrap_err(),
            "show[1] is a v1 Node, and should be a v1 Pod"
        );
        assert!(of_kind(&json!([]), &pod, "show[2]").is_err());
    }
}
