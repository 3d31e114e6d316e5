//! The simulator against a real API server: `cargo test -p pintle-simulator --test conformance`.
//!
//! Random sequences of requests run on both, and every answer and every event of a watch must be the same but for uids, times,
//! versions and what is handed out at random; those are numbered by their first appearance.
//!
//! | variable | effect |
//! | --- | --- |
//! | `PINTLE_CONFORMANCE_SEED` | runs the sequence of this seed alone |
//! | `PINTLE_CONFORMANCE_SEQUENCES` | how many sequences run, instead of 1,050 |
//! | `PINTLE_CONFORMANCE_UPDATE` | `1` rewrites `host/schema/src/builtin.json` by what the API server serves |
#![allow(clippy::disallowed_methods, reason = "it runs in real time")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what helps a test may fail it")]

mod backend;
mod generate;
mod normal;
mod objects;
mod requests;
mod schemas;

use std::{process::ExitCode, time::Instant};

use backend::{Answer, Backend, Real, Simulated};
use futures::{StreamExt, stream};
use generate::{RequestTemplate, sequence};
use normal::{Events, Numbers};
use pintle_testbed::{Options, Source};

/// How many sequences run, each of up to 50 requests.
const SEQUENCES: u64 = 1_050;

/// How many run at once on the real API server.
const AT_ONCE: usize = 16;

/// How many mismatches are looked into before it ends.
const MISMATCHES_MAX: usize = 30;

/// How many of a hundred requests may be such that the simulator does not model them. Nothing is compared of those.
const LEFT_OUT_PERCENT_MAX: usize = 5;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(conformance()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance cannot run: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

async fn conformance() -> anyhow::Result<bool> {
    let started = Instant::now();
    let options = Options { nodes: 0, controllers: false, ..Options::default() };
    let plane = Source::from_env()?.control_plane(&options, &mut |line| println!("{line}"))?;
    let real = Real::connect(plane.kubeconfig()).await?;
    println!("the API server is up after {:.1} s", started.elapsed().as_secs_f32());
    let mut same = timed("schemas", schemas::compare(&real)).await?;
    for (name, text, told) in requests::FILES {
        same &= timed(name, async {
            real.make_namespace(name).await?;
            requests::compare(&real, &Simulated::new(name).await?, name, text, told).await
        })
        .await?;
    }
    same &= timed("sequences", compare_sequences(&real)).await?;
    // Open watches would keep the API server from stopping.
    drop(real);
    plane.stop()?;
    Ok(same)
}

/// Does this work, and prints how long it took.
async fn timed(what: &str, work: impl Future<Output = anyhow::Result<bool>>) -> anyhow::Result<bool> {
    let began = Instant::now();
    let same = work.await?;
    let outcome = if same { "the same" } else { "not the same" };
    println!("{what}: {outcome}, in {:.1} s", began.elapsed().as_secs_f32());
    Ok(same)
}

/// Whether both answer every sequence the same.
async fn compare_sequences(real: &Real) -> anyhow::Result<bool> {
    real.watch_everything().await?;
    let seeds: Vec<u64> = match variable("PINTLE_CONFORMANCE_SEED") {
        Some(seed) => vec![seed],
        None => (0..variable("PINTLE_CONFORMANCE_SEQUENCES").unwrap_or(SEQUENCES)).collect(),
    };
    let (mut requests, mut left_out) = (0, 0);
    let mut broken = Vec::new();
    let mut waiting = Vec::new();
    let mut running = stream::iter(seeds.iter().map(|seed| run(real, *seed))).buffer_unordered(AT_ONCE);
    while let Some(run) = running.next().await {
        let run = run?;
        requests += run.steps.len();
        left_out += run.left_out;
        match run.mismatch() {
            Some(index) => broken.push((run.seed, Some(index))),
            None => waiting.push(run),
        }
    }
    drop(running);
    real.drain().await?;
    let mut events = 0;
    for run in waiting {
        let seen = real.events(&run.namespace);
        events += seen.count();
        if let Some(difference) = run.events.difference(&seen) {
            broken.push((run.seed, None));
            println!("seed {}: the watches differ: {difference}", run.seed);
        }
    }
    println!(
        "{} sequences, {requests} requests and {events} events compared; {} sequences differ",
        seeds.len(),
        broken.len()
    );
    let all = requests + left_out;
    // Of a single sequence, much may be left out.
    let are_too_many = seeds.len() > 1 && left_out * 100 > LEFT_OUT_PERCENT_MAX * all;
    println!(
        "{left_out} of {all} requests are not modelled and left out{}",
        if are_too_many { format!(": more than {LEFT_OUT_PERCENT_MAX} %") } else { String::new() }
    );
    broken.sort_unstable();
    for (seed, index) in
        broken.iter().filter_map(|(seed, index)| Some((*seed, (*index)?))).take(MISMATCHES_MAX)
    {
        explain(real, seed, index).await?;
    }
    Ok(broken.is_empty() && !are_too_many)
}

/// What came of a sequence on both.
struct Run {
    seed: u64,
    namespace: String,
    steps: Vec<RequestTemplate>,
    real: Vec<Answer>,
    simulated: Vec<Answer>,
    events: Events,
    left_out: usize,
}

impl Run {
    /// The first request whose answers differ.
    fn mismatch(&self) -> Option<usize> {
        (0..self.steps.len()).find(|&index| self.real[index] != self.simulated[index])
    }
}

async fn run(real: &Real, seed: u64) -> anyhow::Result<Run> {
    run_steps(real, seed, &format!("s{seed}"), sequence(seed)).await
}

async fn run_steps(
    real: &Real,
    seed: u64,
    namespace: &str,
    steps: Vec<RequestTemplate>,
) -> anyhow::Result<Run> {
    // What is not modelled is left out, for both.
    let (mut steps, mut left_out) = (steps, 0);
    let (simulated, of_simulated) = loop {
        let simulated = Simulated::new(namespace).await?;
        let answers = carry_out(&simulated, namespace, &steps).await?;
        let Some(index) = answers.iter().position(|answer| answer.code == 501) else {
            break (simulated, answers);
        };
        steps.remove(index);
        left_out += 1;
    };
    real.make_namespace(namespace).await?;
    let of_real = carry_out(real, namespace, &steps).await?;
    real.clean(namespace).await?;
    simulated.clean(namespace).await?;
    let events = simulated.events(namespace).await?;
    Ok(Run {
        seed,
        namespace: namespace.into(),
        steps,
        real: of_real,
        simulated: of_simulated,
        events,
        left_out,
    })
}

async fn carry_out(
    backend: &impl Backend,
    namespace: &str,
    steps: &[RequestTemplate],
) -> anyhow::Result<Vec<Answer>> {
    let mut numbers = Numbers::default();
    let mut seen = generate::KnownVersions::default();
    let mut answers = Vec::new();
    for step in steps {
        let (code, body) = backend.send(&step.request(namespace, &seen)).await?;
        seen.saw(step, &body);
        let words = body["message"].as_str().unwrap_or_default().to_owned();
        answers.push(Answer::new(code, numbers.normal(body), words));
    }
    Ok(answers)
}

/// Leaves out of a sequence whatever is not needed for its mismatch, and shows the rest.
async fn explain(real: &Real, seed: u64, index: usize) -> anyhow::Result<()> {
    let mut steps = run_steps(real, seed, &format!("s{seed}-first"), sequence(seed)).await?.steps;
    steps.truncate(index + 1);
    let mut last = None;
    let mut attempt = 0;
    let mut position = 0;
    while position + 1 < steps.len() {
        let mut fewer = steps.clone();
        fewer.remove(position);
        attempt += 1;
        let run = run_steps(real, seed, &format!("s{seed}-{attempt}"), fewer.clone()).await?;
        if run.mismatch() == Some(fewer.len() - 1) {
            steps = fewer;
            last = Some(run);
        } else {
            position += 1;
        }
    }
    let run = match last {
        Some(run) => run,
        None => run_steps(real, seed, &format!("s{seed}-again"), steps.clone()).await?,
    };
    println!("\nseed {seed}, request {index}, shortened to {} requests:", steps.len());
    for (step, answer) in run.steps.iter().zip(&run.real) {
        println!("  {step}\n      -> {}", answer.code);
    }
    if let Some(at) = run.mismatch() {
        println!("{}", run.real[at].difference(&run.simulated[at]));
    }
    Ok(())
}
