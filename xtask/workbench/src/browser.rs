//! The console in a browser: a control plane, the host, a console of each sort, and Playwright.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pintle_testbed::Server;
use xtask::{root, say};

use crate::{
    cluster,
    demo::{Demo, GATEWAY, SAMPLES},
};

/// Who the tests sign in as, besides the administrator. They are in `console/tests/users.yaml`.
const USERS: [&str; 2] = ["editor", "viewer"];

/// Starts what Playwright runs against, and runs it with these arguments. Without `operator`, that is away once the samples are Ready.
pub(crate) fn run(arguments: &[&str], operator: bool) -> Result<()> {
    say("starting a control plane for the browser");
    let plane = cluster::start()?;
    let demo = Demo::new(&plane)?;
    let mut host = demo.install(false)?;
    demo.play(SAMPLES)?;
    if !operator {
        host.take().map(Server::stop).transpose()?;
    }
    demo.run("kubectl apply -f console/tests/users.yaml")?;

    // With the rights of the administrator.
    let mut local = Command::new(&demo.pintle);
    local.args(["console", "--kubeconfig"]).arg(plane.kubeconfig());
    let mut local = plane.start_server("console", &mut local)?;
    let url = local.says("its address", |said| {
        said.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
    })?;

    // As it is in a cluster: the gateway serves it, and who comes brings a token. Any port of this name may be asked for: which one it is,
    // is only known once the server listens.
    demo.play(GATEWAY)?;
    let flags = "gateway --aggregated-bind 127.0.0.1:0 --console-bind 127.0.0.1:0 --console-host 127.0.0.1";
    let flags: Vec<&str> = flags.split(' ').collect();
    let mut in_cluster = demo.start("pintle-gateway", &flags)?;
    let address = in_cluster.address("The console is served")?;

    let console = root().join("console");
    let mut tests = Command::new("node");
    tests.arg(console.join("node_modules/@playwright/test/cli.js")).arg("test").args(arguments);
    tests.current_dir(&console).stdin(Stdio::null());
    // What the tests start and leave behind ends with the control plane.
    plane.takes_in(&mut tests)?;
    tests
        .env("KUBECONFIG", plane.kubeconfig())
        .env("KUBECTL", plane.kubectl())
        .env("PINTLE_CONSOLE", url)
        .env("PINTLE_CONSOLE_PID", local.id().to_string())
        .env("PINTLE_CONSOLE_IN_CLUSTER", format!("http://{address}/console/"))
        .env("PINTLE_LOGS", plane.directory().join("logs"))
        .envs(plane.audit_log().map(|log| ("PINTLE_AUDIT", log)));
    for user in USERS {
        let token = demo.output(&format!("kubectl create token {user} -n console-tests"))?;
        tests.env(format!("PINTLE_TOKEN_{}", user.to_uppercase()), token);
    }
    let status = tests.status().context("node cannot be run")?;
    ensure!(status.success(), "the tests in the browser failed ({status})");
    in_cluster.stop()?;
    local.stop()?;
    host.map(Server::stop).transpose()?;
    plane.stop()
}
