//! The list of the guests in this repository, for everything that goes through all of them: `cargo xtask`, the demo and the tests.
//!
//! It has no dependencies, because `cargo xtask` waits for it.

/// The guests that reconcile.
pub const GUESTS: [Entry; 3] = [
    Entry {
        name: "darkroom",
        module: "darkroom-0.1.0",
        crd: "darkrooms.deployments.example.com",
        bytes_max: 350_000,
    },
    Entry { name: "webserver", module: "webserver-0.1.0", crd: "webservers.my.domain", bytes_max: 175_000 },
    Entry {
        name: "configmonitor",
        module: "configmonitor-0.1.0",
        crd: "configmonitors.magalix.com",
        bytes_max: 245_000,
    },
];

/// The guests that only serve views. They have no CRD, no role and no Reconciler.
pub const VIEW_GUESTS: [ViewGuest; 1] = [ViewGuest { name: "farm", bytes_max: 130_000 }];

/// A guest of this repository that only serves views.
#[derive(Clone, Copy, Debug)]
pub struct ViewGuest {
    /// Its name: in its manifest, and as a file in `target/guests`.
    pub name: &'static str,
    /// The largest size of its component, in bytes.
    pub bytes_max: u64,
}

impl ViewGuest {
    /// Its folder. Its package has the same name.
    pub fn folder(&self) -> String {
        format!("guest-{}", self.name)
    }
}

/// A guest of this repository that reconciles.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name: in its manifest, as a file in `target/guests`, and as a Reconciler in `deploy/samples`.
    pub name: &'static str,
    /// The Module in its sample Reconciler.
    pub module: &'static str,
    /// The name of its CRD.
    pub crd: &'static str,
    /// The largest size of its component, in bytes: a guest is stored in etcd, and every host compiles it.
    pub bytes_max: u64,
}

impl Entry {
    /// Its folder. Its package has the same name.
    pub fn folder(&self) -> String {
        format!("guest-{}", self.name)
    }

    /// Its CRD, as users install it.
    pub fn deployed_crd(&self) -> String {
        format!("deploy/crds/{}.yaml", self.crd)
    }

    /// The role that the host needs for it.
    pub fn role(&self) -> String {
        format!("deploy/rbac/{}.yaml", self.name)
    }

    /// Its sample Reconciler.
    pub fn reconciler(&self) -> String {
        format!("deploy/samples/reconciler-{}.yaml", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn the_list_has_every_guest_of_the_repository_with_its_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders_with = |file: &str| {
            let folders = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap());
            let names = folders.filter(|entry| entry.path().join(file).exists());
            names.filter_map(|entry| entry.file_name().into_string().ok()).collect::<BTreeSet<_>>()
        };
        assert_eq!(folders_with("cases"), GUESTS.iter().map(Entry::folder).collect());
        // Darkroom does both.
        let with_views = VIEW_GUESTS.iter().map(ViewGuest::folder).chain(["guest-darkroom".to_owned()]);
        assert_eq!(folders_with("views.json"), with_views.collect());
        for guest in GUESTS {
            for file in [guest.deployed_crd(), guest.role(), guest.reconciler()] {
                assert!(root.join(&file).is_file(), "{file}");
            }
            let sample = fs::read_to_string(root.join(guest.reconciler())).unwrap();
            assert!(sample.contains(guest.module), "{sample}");
        }
    }
}
