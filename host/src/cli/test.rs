//! The command `pintle test`: it runs golden cases against a guest.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use clap::Args;
use pintle_engine::Module;
use pintle_offline as offline;
use pintle_offline::{
    ask::Trapped,
    case, difference,
    documents::{self, Document},
};
use pintle_wit::Kind;
use serde::Serialize;
use serde_json::json;

use super::{
    module,
    native::Native,
    output::{self, Data},
    problem::{CommandStatus, Problem},
};

/// Run the golden cases of a guest
///
/// A case is a file with `objects` (as for `pintle render`) and `expect`. It can also have `refusals`, which the API server answers
/// with, and `now`. `expect` has the children, stages, status, conditions, events, patches and evictions of the answer, or a
/// `failure` with reason and path. Whatever `expect` omits must be empty. `needs` and `ready` are compared only if they are given.
///
/// If there is a `crd.yaml` beside the module, the custom resource and the status are checked against it. Children of built-in
/// kinds are checked against the schemas of Kubernetes.
///
/// If there is a `reconciler.yaml` beside the module, it must be one that a host accepts for the guest, and grant whatever the manifest
/// declares.
///
/// Every call is made twice and with the observed children in another order. The answers must be the same. A second pass over the
/// result must have nothing to do. In another namespace the answer must be allowed too, with as many children of each kind.
///
/// A case with `view` is about a view. It has `show`, a list of objects of the backing kind, or `store`, with the `object` that
/// somebody writes and the `current` object of the backing kind, or both. `config` is optional. `expect` has `shown`, with `object` or
/// `failure` for each object, and `stored`, with the stored fields, or `failure`. The laws of views are checked on the objects of the
/// case.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Run every case in a directory
  pintle test guest.wasm cases

  # Run one case
  pintle test guest.wasm cases/sample.yaml

  # Write the answers into the cases
  pintle test guest.wasm cases --update
  git diff cases")]
pub(super) struct Test {
    /// Module of the guest, the file that `pintle build` wrote
    module: PathBuf,

    /// Files with cases, or directories of such files
    #[arg(required = true)]
    cases: Vec<PathBuf>,

    /// Write the answer of the guest to `expect` in every case that differs
    #[arg(long)]
    update: bool,

    /// Do not use `crd.yaml` beside the module
    #[arg(long)]
    no_crd: bool,

    /// Do not run the guest natively to get the message of a panic
    #[arg(long)]
    no_native: bool,

    /// Output format. One of yaml or json [default: text]
    #[arg(short, long, value_name = "yaml|json", hide_possible_values = true)]
    output: Option<Data>,
}

/// How many differences of a case are shown.
const DIFFERENCES_SHOWN: usize = 12;

/// What came of one file.
#[derive(Default, Serialize)]
struct CaseReport {
    file: String,
    passed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    updated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
    /// The places of it, for a person.
    #[serde(skip)]
    places: Vec<String>,
    #[serde(skip)]
    warnings: Vec<String>,
    #[serde(skip)]
    unchecked: BTreeSet<Kind>,
}

impl Test {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let module = module::load(&offline::engine()?, &self.module)?;
        let mut files = Vec::new();
        for path in &self.cases {
            files.extend(documents::files(path)?);
        }
        let beside = module::crds_beside(&self.module, self.no_crd)?;
        module::check_rules(&beside)?;
        let native = Native::new(&self.module, !self.no_native);
        let mut reports = Vec::new();
        let cases = files.iter().map(|file| self.case(&module, file, &beside, &native));
        for report in self.reconciler(&module).transpose().into_iter().chain(cases) {
            let report = report?;
            if self.output.is_none() {
                output::print(&described(&report))?;
            }
            report.warnings.iter().for_each(|warning| eprintln!("warning: {}: {warning}", report.file));
            reports.push(report);
        }
        module::warn_unchecked(&reports.iter().flat_map(|report| report.unchecked.clone()).collect());
        let passed = reports.iter().filter(|report| report.passed).count();
        let failed = reports.len() - passed;
        output::print(&match self.output {
            Some(form) => output::text(&json!({"cases": reports, "passed": passed, "failed": failed}), form)?,
            None => match reports.iter().filter(|report| report.updated).count() {
                0 => format!("{passed} passed, {failed} failed\n"),
                updated => format!("{passed} passed, {failed} failed, {updated} updated\n"),
            },
        })?;
        Ok(if failed == 0 { CommandStatus::Fine } else { CommandStatus::Failed })
    }

    /// What a host holds against `reconciler.yaml` beside the module, if anything.
    fn reconciler(&self, module: &Module) -> Result<Option<CaseReport>, Problem> {
        let Some(guest) = module.guest() else { return Ok(None) };
        let found = module::reconciler_beside(&self.module, &guest)?;
        Ok(found.filter(|(_, failures)| !failures.is_empty()).map(|(file, failures)| CaseReport {
            file,
            problems: failures.iter().map(ToString::to_string).collect(),
            ..CaseReport::default()
        }))
    }

    /// Runs a case, and writes its expectations where that is wanted.
    fn case(
        &self,
        module: &Module,
        file: &Path,
        beside: &[Document],
        native: &Native<'_>,
    ) -> Result<CaseReport, Problem> {
        let mut report = CaseReport { file: file.display().to_string(), ..CaseReport::default() };
        // A case that cannot be judged is a case that failed: the others still run.
        let judged = case::read(file).and_then(|case| case::judge(module, file, &case, beside));
        let result = match judged {
            Ok(result) => result,
            Err(error) => {
                report.problems.push(format!("{error:#}"));
                return Ok(report);
            }
        };
        report.passed = result.passed();
        report.problems = result.problems;
        report.warnings = result.warnings;
        report.unchecked = result.unchecked;
        let native = |at: Trapped| native.says(at.function, &at.request);
        if report.passed {
            // What was recorded of a trap expects it.
            report.problems.extend(result.trapped.and_then(native));
            return Ok(report);
        }
        let differs = result.expected.as_ref() != Some(&result.found);
        if self.update && !result.is_recordable {
            report.problems.push(
                "the case is left as it is: --update records answers and failures of the guest's own".into(),
            );
        } else if self.update && differs {
            let text = documents::read_text(file)?;
            let expect = output::yaml(&BTreeMap::from([("expect", &result.found)]))?;
            std::fs::write(file, case::updated(&text, &expect))
                .map_err(|error| Problem::new(format!("{} cannot be written: {error}", file.display())))?;
            report.updated = true;
            report.passed = report.problems.is_empty();
            return Ok(report);
        }
        if differs {
            report.problems.extend(result.message);
            if let Some(expected) = &result.expected {
                // Where there is no answer, it follows that all that is expected of one is missing.
                if result.found.failure.is_none() || expected.failure.is_some() {
                    report.places = difference::of_answers(expected, &result.found, DIFFERENCES_SHOWN);
                    let (expected, found) = (output::yaml(expected)?, output::yaml(&result.found)?);
                    report.difference = Some(output::difference(&expected, &found));
                }
            } else if !self.update {
                report.problems.push(
                    "the case expects nothing: run again with --update, and look at what it writes".into(),
                );
            }
        }
        report.problems.extend(result.trapped.and_then(native));
        Ok(report)
    }
}

fn described(report: &CaseReport) -> String {
    let word = match (report.passed, report.updated) {
        (true, true) => "update",
        (true, false) => "ok    ",
        (false, _) => "FAILED",
    };
    let mut text = format!("{word}  {}\n", report.file);
    for problem in &report.problems {
        text.push_str(&format!("        {}\n", problem.replace('\n', "\n        ")));
    }
    if !report.places.is_empty() {
        text.push_str("        what the case expects -> what the guest answers (as a whole: add -o yaml)\n");
    }
    for place in &report.places {
        text.push_str(&format!("          {place}\n"));
    }
    text
}
