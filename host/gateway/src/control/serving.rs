//! [`Table`]: the resources that are served. One stays the same object as long as it shows the same, so that watches go on.

use std::{collections::BTreeMap, sync::Arc};

use kube::ResourceExt;
use pintle_api::View;
use pintle_core::view::{Cut, Lens, table::Columns};
use pintle_schema::structural::Structural;
use tracing::error;

use super::bind::Serving;
use crate::{
    directory::{Directory, Resource},
    over::Ending,
};

/// The resources that are served.
#[derive(Default)]
pub(crate) struct Table {
    /// By the names of their Views.
    kept: BTreeMap<String, Kept>,
    /// All of them. It stays the same object as long as they do, since it keeps documents that are made of them.
    directory: Arc<Directory>,
}

struct Kept {
    view: View,
    serving: Serving,
    resource: Arc<Resource>,
    over: Ending,
}

impl Table {
    /// What a View has served until now.
    pub(crate) fn kept(&self, name: &str) -> Option<(View, Serving)> {
        self.kept.get(name).map(|kept| (kept.view.clone(), kept.serving.clone()))
    }

    /// The directory of what is served from now on. Watches of what is shown differently end.
    pub(crate) fn renewed(&mut self, servings: Vec<(View, Serving)>) -> Arc<Directory> {
        let mut table = BTreeMap::new();
        for (view, serving) in servings {
            let name = view.name_any();
            let before = self.kept.remove(&name);
            match renewed(before, view, serving) {
                Some(kept) => {
                    table.insert(name, kept);
                }
                None => {
                    error!(view = name, "What a View serves cannot be evaluated, although it could be before")
                }
            }
        }
        for (_, gone) in std::mem::replace(&mut self.kept, table) {
            gone.over.end();
        }
        let directory = Directory::new(self.kept.values().map(|kept| Arc::clone(&kept.resource)));
        if !self.directory.has_the_same_resources(&directory) {
            self.directory = Arc::new(directory);
        }
        Arc::clone(&self.directory)
    }
}

fn renewed(before: Option<Kept>, view: View, serving: Serving) -> Option<Kept> {
    let is_alike = |kept: &Kept| {
        kept.serving.served == serving.served
            && kept.serving.active.epoch == serving.active.epoch
            && kept.serving.closed == serving.closed
            && kept.view.spec.access == view.spec.access
            && kept.view.spec.annotations == view.spec.annotations
            && kept.view.spec.unshowable == view.spec.unshowable
    };
    let over = match before {
        Some(kept) if is_alike(&kept) && kept.serving.in_force.is_ok() == serving.in_force.is_ok() => {
            return Some(Kept { view, serving, ..kept });
        }
        // Only whether the module can be called has changed: watches go on.
        Some(kept) if is_alike(&kept) => kept.over,
        Some(kept) => {
            kept.over.end();
            Ending::default()
        }
        None => Ending::default(),
    };
    let served = serving.served.clone();
    let resource = Resource {
        cut: Cut::new(served.reads.iter().chain(&served.writes)),
        schema: Structural::compile(&served.schema).ok()?,
        columns: Columns::new(&served.columns).ok()?,
        lens: Lens::new(
            &view.name_any(),
            served,
            view.spec.access,
            view.spec.annotations.clone(),
            serving.active.epoch,
        )
        .with_unshowable(view.spec.unshowable),
        in_force: serving.in_force.clone(),
        closed: serving.closed.clone(),
        over: over.over(),
    };
    Some(Kept { view, serving, resource: Arc::new(resource), over })
}

#[cfg(test)]
mod tests {
    use pintle_api::ActiveView;
    use pintle_core::view::Served;
    use serde_json::json;

    use super::*;

    fn serving(kind: &str) -> (View, Serving) {
        let view = serde_json::from_value(json!({
            "apiVersion": "pintle.dev/v1alpha1", "kind": "View", "metadata": {"name": "llamas"},
            "spec": {"module": "farm", "view": "llamas", "serve": {"aggregated": {}}},
        }));
        let active: ActiveView = serde_json::from_value(
            json!({"module": "farm", "digest": "sha256:0", "epoch": 7, "since": "1970-01-01T00:00:00Z"}),
        )
        .unwrap();
        let served = Served {
            api_version: "farm.example.com/v1alpha".into(),
            kind: kind.into(),
            plural: "llamas".into(),
            schema: json!({"type": "object"}),
            ..Served::default()
        };
        (view.unwrap(), Serving { served, active, in_force: Err("no module".into()), closed: None })
    }

    #[test]
    fn the_directory_stays_the_same_object_until_what_is_served_changes() {
        let mut table = Table::default();
        let first = table.renewed(vec![serving("Llama")]);
        assert!(Arc::ptr_eq(&first, &table.renewed(vec![serving("Llama")])));
        let second = table.renewed(vec![serving("Alpaca")]);
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(second.served(None)[0].kind, "Alpaca");
        assert!(!Arc::ptr_eq(&second, &table.renewed(Vec::new())));
    }

    #[test]
    fn documents_are_found_by_their_path_and_are_no_part_of_discovery() {
        let mut table = Table::default();
        let (view, mut documents) = serving("");
        documents.served.api_version.clear();
        documents.served = documents.served.at_path("darkrooms");
        let directory = table.renewed(vec![(view, documents)]);
        assert!(directory.served(None).is_empty());
        assert_eq!(directory.documents("darkrooms").unwrap().lens.served.rest, "darkrooms");
        assert_eq!((directory.documents("llamas").is_none(), directory.all_documents().count()), (true, 1));
    }
}
