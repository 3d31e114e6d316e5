//! What `cargo xtask` shares with what it builds: the folder of the workspace, the name of the image, what it prints, and the list of the
//! guests in this repository that reconcile. The guest of the farm is not among them: it only serves views, and has no CRD, no role and no
//! Reconciler.

use std::{
    env,
    fmt::Display,
    io::{IsTerminal as _, stdout},
    path::Path,
};

/// The name of the image, as it is tagged and as the chart names it, where the values name no other.
pub const IMAGE: &str = concat!("pintle:", env!("CARGO_PKG_VERSION"));

/// The same host under another tag, as another image: what an upgrade goes to in tests.
pub const NEXT_IMAGE: &str = "pintle:next";

/// The folder of the chart.
pub const CHART: &str = "deploy/chart/pintle";

/// What `cargo xtask gen` renders from the chart. The first line of each has the digest of the chart.
pub const RENDERED: [&str; 3] =
    ["deploy/install.yaml", "deploy/gateway.yaml", "host/tests/offline/deploy/chart.yaml"];

/// The folder of the workspace.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Prints what is being done.
pub fn say(line: impl Display) {
    println!("{} {line}", painted("1;36", "==>"));
}

/// A text in a colour on a terminal. In a file, or if NO_COLOR is set, the text has no colour.
pub fn painted(code: &str, text: &str) -> String {
    let is_allowed = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if is_allowed && stdout().is_terminal() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// The guests that reconcile.
pub const GUESTS: [Guest; 3] = [
    Guest {
        name: "darkroom",
        folder: "guest-darkroom",
        module: "darkroom-0.1.0",
        crd: "darkrooms.deployments.example.com",
        reconciler: "deploy/samples/reconciler-darkroom.yaml",
    },
    Guest {
        name: "webserver",
        folder: "guest-webserver",
        module: "webserver-0.1.0",
        crd: "webservers.my.domain",
        reconciler: "deploy/samples/reconciler-webserver.yaml",
    },
    Guest {
        name: "configmonitor",
        folder: "guest-configmonitor",
        module: "configmonitor-0.1.0",
        crd: "configmonitors.magalix.com",
        reconciler: "deploy/samples/reconciler-configmonitor.yaml",
    },
];

/// What every scenario has besides them: a root of its kind says itself which children it has.
pub const RAW: Guest = Guest {
    name: "raw",
    folder: "host/tests/raw",
    module: "raw-0.1.0",
    crd: "raws.raw.example.com",
    reconciler: "host/tests/raw/reconciler.yaml",
};

/// A guest of this repository that reconciles.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    /// Its name: in its manifest, as a file in `target/guests`, and as a Reconciler.
    pub name: &'static str,
    /// Its folder.
    pub folder: &'static str,
    /// The Module in its Reconciler.
    pub module: &'static str,
    /// The name of its CRD.
    pub crd: &'static str,
    /// The file of its Reconciler.
    pub reconciler: &'static str,
}

impl Guest {
    /// Its CRD, as users install it.
    pub fn deployed_crd(&self) -> String {
        format!("deploy/crds/{}.yaml", self.crd)
    }

    /// The role that the host needs for it.
    pub fn role(&self) -> String {
        format!("deploy/rbac/{}.yaml", self.name)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    #[test]
    fn the_list_has_every_guest_of_the_repository_that_reconciles_with_its_files() {
        let root = root();
        let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap());
        let with_cases = folders.filter(|entry| entry.path().join("cases").exists());
        let names: BTreeSet<String> =
            with_cases.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        assert_eq!(names, GUESTS.iter().map(|guest| guest.folder.to_owned()).collect());
        for guest in GUESTS {
            for file in [guest.deployed_crd(), guest.role(), guest.reconciler.to_owned()] {
                assert!(root.join(&file).is_file(), "{file}");
            }
            let sample = fs::read_to_string(root.join(guest.reconciler)).unwrap();
            assert!(sample.contains(guest.module), "{sample}");
        }
    }
}
