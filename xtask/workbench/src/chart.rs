//! The files that are rendered from the chart, with helm.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result, ensure};
use pintle_testbed::{chart_digest, helm, output};
use xtask::{CHART, RENDERED, root, say};

/// The comment of each file, and what helm is told for it. The last one has every part of the chart: tests look at it.
const WITH: [(&str, &[&str]); 3] = [
    (
        "# Installs Pintle's host. Rendered from deploy/chart/pintle by `cargo xtask gen`; do not edit.
",
        &[
            "--namespace=pintle-system",
            "--include-crds",
            "--no-hooks",
            "--set=namespace.create=true,networkPolicy.defaultDeny=true",
        ],
    ),
    (
        "# Installs Pintle's gateway, which serves Views as an aggregated API. Rendered from deploy/chart/pintle by `cargo xtask gen`; do not edit.
# Apply deploy/install.yaml first: the namespace and the CRDs are in it.
#
#     kubectl apply --server-side -f deploy/gateway.yaml
#
# Delete every APIService that leads to the gateway before you delete this. While an APIService leads nowhere, no namespace of the cluster
# can be deleted.
",
        &["--namespace=pintle-system", "--set=gateway.enabled=true", "--show-only=templates/gateway.yaml"],
    ),
    (
        "# The chart in another namespace, with every value of deploy/chart/pintle/ci/every-values.yaml. Rendered by `cargo xtask gen`; do not edit.
",
        &[
            "--namespace=tools",
            "--api-versions=monitoring.coreos.com/v1/ServiceMonitor,monitoring.coreos.com/v1/PrometheusRule",
            EVERY,
        ],
    ),
];

const EVERY: &str = "--values=deploy/chart/pintle/ci/every-values.yaml";

/// Renders the files, unless they are of this chart. With `check`, renders them in any case, compares, and has helm judge the chart.
pub(crate) fn run(check: bool) -> Result<()> {
    let first = format!("# chart: {}\n", chart_digest(&root().join(CHART))?);
    let is_of_this =
        |file: &&str| fs::read_to_string(root().join(file)).is_ok_and(|text| text.starts_with(&first));
    if !check && RENDERED.iter().all(is_of_this) {
        return Ok(());
    }
    let helm = Helm(helm(&mut |line| say(line))?);
    if check {
        helm.lint(&[])?;
        helm.lint(&[EVERY])?;
        let misspelt = helm.run(&["template", "pintle", CHART, "--set=operator.replica=3"]);
        ensure!(misspelt.is_err(), "a value that the chart does not have was taken");
    }
    for (file, (comment, flags)) in RENDERED.iter().zip(WITH) {
        let rendered = helm.run(&[&["template", "pintle", CHART][..], flags].concat())?;
        let text = format!("{first}{comment}{rendered}");
        let path = root().join(file);
        if check {
            let found = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
            ensure!(found == text, "{file} is stale; run: cargo xtask gen");
        } else {
            fs::write(&path, text).with_context(|| format!("{file} cannot be written"))?;
            println!("    wrote {file}");
        }
    }
    Ok(())
}

/// The built helm.
struct Helm(PathBuf);

impl Helm {
    /// It prints what it does not like.
    fn lint(&self, flags: &[&str]) -> Result<()> {
        let mut lint = Command::new(&self.0);
        let status =
            lint.args(["lint", "--strict", "--quiet", CHART]).args(flags).current_dir(root()).status()?;
        ensure!(status.success(), "helm lint does not like the chart");
        Ok(())
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        output(Command::new(&self.0).args(words).current_dir(root()), None)
    }
}
