//! The console's tests in a browser: a control plane, the host, a console of each sort, and Playwright.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    cluster,
    demo::{Demo, Server},
    say,
};

/// Where the tests and what they are given are.
const TESTS: &str = "console/tests";

/// Who the tests sign in as, besides the administrator. They are in [`TESTS`]`/users.yaml`.
const USERS: [&str; 2] = ["editor", "viewer"];
const NAMESPACE: &str = "console-tests";

/// What is run.
pub(crate) enum What {
    /// The tests, or those whose names fit.
    Tests { grep: Option<String> },
    /// The benchmark. The operator is away: it would work on what the benchmark makes.
    Numbers,
    /// The pictures of docs/.
    Pictures,
}

impl What {
    fn words(&self) -> Vec<&str> {
        match self {
            Self::Tests { grep: Some(grep) } => vec!["--grep", grep],
            Self::Tests { grep: None } => Vec::new(),
            Self::Numbers => vec!["--config", "playwright.bench.config.ts"],
            Self::Pictures => vec!["--config", "playwright.pictures.config.ts"],
        }
    }
}

/// Starts what the tests run against, and runs them.
pub(crate) fn run(
    workspace: &Path,
    pintle: &Path,
    guests: PathBuf,
    chromium: &Path,
    what: What,
) -> Result<()> {
    say("starting a control plane for the browser");
    let plane = cluster::start()?;
    let demo = Demo::new(&plane, workspace, pintle, guests);
    let host = demo.install()?;
    demo.samples()?;
    let host = match what {
        What::Tests { .. } | What::Pictures => Some(host),
        What::Numbers => {
            host.stop()?;
            None
        }
    };
    demo.kubectl(&format!("apply -f {TESTS}/users.yaml"))?;
    let local = demo.console_for_tests()?;
    let (in_cluster, address) = console_in_cluster(&demo)?;

    let console = workspace.join("console");
    let mut tests = Command::new("node");
    tests.arg(console.join("node_modules/@playwright/test/cli.js")).arg("test").args(what.words());
    tests.current_dir(&console).stdin(Stdio::null());
    // What the tests start and leave behind ends with the control plane.
    plane.takes_in(&mut tests)?;
    for (key, value) in [
        ("CHROMIUM", chromium.display().to_string()),
        ("KUBECONFIG", plane.kubeconfig().display().to_string()),
        ("KUBECTL", plane.kubectl().display().to_string()),
        ("PINTLE", pintle.display().to_string()),
        ("PINTLE_CONSOLE", local.url.clone()),
        ("PINTLE_CONSOLE_SAID", local.said.display().to_string()),
        ("PINTLE_CONSOLE_PID", local.server.process.id().to_string()),
        ("PINTLE_CONSOLE_IN_CLUSTER", format!("http://{address}/console/")),
        ("PINTLE_LOGS", plane.directory().join("logs").display().to_string()),
        ("PINTLE_AUDIT", plane.audit_log().map(|file| file.display().to_string()).unwrap_or_default()),
        ("PINTLE_GUESTS", demo.guests.display().to_string()),
    ] {
        tests.env(key, value);
    }
    for user in USERS {
        let key = format!("PINTLE_TOKEN_{}", user.to_uppercase());
        tests.env(key, demo.output(&format!("create token {user} -n {NAMESPACE}"))?);
    }
    let status = tests.status().context("node cannot be run")?;
    ensure!(status.success(), "the tests in the browser failed ({status})");
    in_cluster.stop()?;
    local.server.stop()?;
    host.map_or(Ok(()), Server::stop)?;
    plane.stop()
}

/// The console as it is in a cluster: the gateway serves it, and who comes brings a token.
fn console_in_cluster(demo: &Demo<'_>) -> Result<(Server, String)> {
    demo.kubectl("apply --server-side -f deploy/gateway.yaml")?;
    demo.quiet("scale deployment pintle-gateway -n pintle-system --replicas=0")?;
    // Any port of this name may be asked for: which one it is, is only known once the server listens.
    let arguments = [
        "gateway",
        "--aggregated-bind",
        "127.0.0.1:0",
        "--console-bind",
        "127.0.0.1:0",
        "--console-host",
        "127.0.0.1",
    ];
    let mut server = demo.start("gateway", "pintle-gateway", &arguments)?;
    let address = server.address("The console is served")?;
    Ok((server, address))
}
