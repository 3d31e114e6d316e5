//! The console in a browser: a control plane, the host, a console of each sort, and Playwright.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::{cluster, demo::Demo, say, server::Server, workspace};

/// Where the tests and what they are given are.
const TESTS: &str = "console/tests";

/// Who the tests sign in as, besides the administrator. They are in [`TESTS`]`/users.yaml`.
const USERS: [&str; 2] = ["editor", "viewer"];
const NAMESPACE: &str = "console-tests";

/// Starts what Playwright runs against, and runs it with these arguments. Without `operator`, that is away once the samples are Ready.
pub(crate) fn run(arguments: &[&str], operator: bool) -> Result<()> {
    say("starting a control plane for the browser");
    let plane = cluster::start()?;
    let demo = Demo::new(&plane)?;
    let mut host = Some(demo.install()?);
    demo.samples()?;
    if !operator {
        host.take().map_or(Ok(()), Server::stop)?;
    }
    demo.run(&format!("kubectl apply -f {TESTS}/users.yaml"))?;
    let (local, url) = demo.console()?;
    let (in_cluster, address) = console_in_cluster(&demo)?;

    let console = workspace().join("console");
    let mut tests = Command::new("node");
    tests.arg(console.join("node_modules/@playwright/test/cli.js")).arg("test").args(arguments);
    tests.current_dir(&console).stdin(Stdio::null());
    // What the tests start and leave behind ends with the control plane.
    plane.takes_in(&mut tests)?;
    for (key, value) in [
        ("KUBECONFIG", plane.kubeconfig().display().to_string()),
        ("KUBECTL", plane.kubectl().display().to_string()),
        ("PINTLE_CONSOLE", url),
        ("PINTLE_CONSOLE_PID", local.id().to_string()),
        ("PINTLE_CONSOLE_IN_CLUSTER", format!("http://{address}/console/")),
        ("PINTLE_LOGS", plane.directory().join("logs").display().to_string()),
        ("PINTLE_AUDIT", plane.audit_log().map(|file| file.display().to_string()).unwrap_or_default()),
    ] {
        tests.env(key, value);
    }
    for user in USERS {
        let key = format!("PINTLE_TOKEN_{}", user.to_uppercase());
        tests.env(key, demo.output(&format!("kubectl create token {user} -n {NAMESPACE}"))?);
    }
    let status = tests.status().context("node cannot be run")?;
    ensure!(status.success(), "the tests in the browser failed ({status})");
    in_cluster.stop()?;
    local.stop()?;
    host.map_or(Ok(()), Server::stop)?;
    plane.stop()
}

/// The console as it is in a cluster: the gateway serves it, and who comes brings a token.
fn console_in_cluster(demo: &Demo<'_>) -> Result<(Server, String)> {
    demo.run("kubectl apply --server-side -f deploy/gateway.yaml")?;
    demo.quiet("kubectl scale deployment pintle-gateway -n pintle-system --replicas=0")?;
    // Any port of this name may be asked for: which one it is, is only known once the server listens.
    let arguments =
        "gateway --aggregated-bind 127.0.0.1:0 --console-bind 127.0.0.1:0 --console-host 127.0.0.1";
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let mut server = demo.start("pintle-gateway", &arguments)?;
    let address = server.address("The console is served")?;
    Ok((server, address))
}
