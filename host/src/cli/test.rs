//! The command `pintle test`: it runs golden cases against a guest.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::Args;
use pintle_engine::Module;
use pintle_offline as offline;
use pintle_offline::{
    case::{self, CaseResult},
    documents::{self, Document},
    views::case::{self as view_case, AnyCase},
};
use pintle_wit::Kind;
use serde::Serialize;
use serde_json::json;

use super::{
    module,
    native::Native,
    output::{self, Colours, Data, Format},
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
/// Every call is made twice and with the observed children in another order. The answers must be the same. A second pass over the
/// result must have nothing to do.
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

    /// Output format. One of table, yaml or json
    #[arg(short, long, value_name = "table|yaml|json", default_value = "table", hide_possible_values = true)]
    output: Format,
}

/// What came of one file.
struct CaseReport {
    path: PathBuf,
    passed: bool,
    updated: bool,
    problems: Vec<String>,
    difference: Option<(String, String)>,
    unchecked: BTreeSet<Kind>,
}

impl Test {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        self.in_order()?;
        let engine = offline::engine()?;
        let module = module::load(&engine, &self.module)?;
        let mut files = Vec::new();
        for path in &self.cases {
            files.extend(documents::files(path)?);
        }
        let beside = module::crds_beside(&self.module, self.no_crd)?;
        let native = Native::new(&self.module, !self.no_native);
        let mut outcomes = Vec::new();
        for file in files {
            let outcome = self.case(&module, &file, &beside, &native)?;
            if self.output == Format::Table {
                output::print(&described(&outcome, Colours::of_stdout()))?;
            }
            outcomes.push(outcome);
        }
        module::warn_unchecked(&outcomes.iter().flat_map(|outcome| outcome.unchecked.clone()).collect());
        let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
        match self.output.data() {
            Some(form) => output::print(&data(&outcomes, form)?)?,
            None => {
                let updated = match outcomes.iter().filter(|outcome| outcome.updated).count() {
                    0 => String::new(),
                    updated => format!(", {updated} updated"),
                };
                output::print(&format!("{} passed, {failed} failed{updated}\n", outcomes.len() - failed))?;
            }
        }
        Ok(if failed == 0 { CommandStatus::Fine } else { CommandStatus::Failed })
    }

    /// Whether the module comes before the cases.
    fn in_order(&self) -> Result<(), Problem> {
        match self.cases.as_slice() {
            [case] if module::is_wasm(case) && !module::is_wasm(&self.module) => {
                let (module, cases) = (case.display(), self.module.display());
                Err(Problem::new(format!("{cases} is no module"))
                    .hint(format!("the module comes first: pintle test {module} {cases}")))
            }
            _ => Ok(()),
        }
    }

    fn case(
        &self,
        module: &Module,
        file: &Path,
        beside: &[Document],
        native: &Native<'_>,
    ) -> Result<CaseReport, Problem> {
        match view_case::read(file) {
            Ok(AnyCase::Root(case)) => {
                let guest = module.guest().ok_or_else(|| {
                    anyhow::anyhow!(
                        "{}: the module serves views alone: name the case's with `view`",
                        file.display()
                    )
                });
                self.settle(file, guest.and_then(|guest| case::judge(&guest, file, &case, beside)), native)
            }
            Ok(AnyCase::View(case)) => {
                let views = module
                    .views()
                    .ok_or_else(|| anyhow::anyhow!("{}: the module serves no views", file.display()));
                let verdict = views.and_then(|views| view_case::judge(&views, file, &case, beside));
                self.settle(file, verdict, native)
            }
            Err(error) => self.settle(file, Err::<CaseResult, _>(error), native),
        }
    }

    /// Says what came of a case, and writes its expectations where that is wanted.
    fn settle<Found: Serialize + PartialEq>(
        &self,
        file: &Path,
        verdict: anyhow::Result<CaseResult<Found>>,
        native: &Native<'_>,
    ) -> Result<CaseReport, Problem> {
        let mut outcome = CaseReport {
            path: file.to_owned(),
            passed: false,
            updated: false,
            problems: Vec::new(),
            difference: None,
            unchecked: BTreeSet::new(),
        };
        // A case that cannot be read is a case that failed: the others still run.
        let verdict = match verdict {
            Ok(verdict) => verdict,
            Err(error) => {
                outcome.problems.push(format!("{error:#}"));
                return Ok(outcome);
            }
        };
        outcome.passed = verdict.passed();
        outcome.unchecked.clone_from(&verdict.unchecked);
        outcome.problems.clone_from(&verdict.problems);
        if outcome.passed {
            return Ok(outcome);
        }
        if self.update && !verdict.is_recordable {
            outcome.problems.push(
                "the case is left as it is: --update records answers and failures of the guest's own".into(),
            );
        } else if self.update && verdict.expected.as_ref() != Some(&verdict.found) {
            let text = documents::read_text(file)?;
            let expect = output::yaml(&Expectation { expect: &verdict.found })?;
            std::fs::write(file, case::updated(&text, &expect))
                .map_err(|error| Problem::new(format!("{} cannot be written: {error}", file.display())))?;
            outcome.updated = true;
            outcome.passed = verdict.problems.is_empty();
            return Ok(outcome);
        }
        if verdict.expected.as_ref() != Some(&verdict.found) {
            outcome.problems.extend(verdict.message);
        }
        match &verdict.expected {
            None if self.update => {}
            None => outcome
                .problems
                .push("the case expects nothing: run again with --update, and look at what it writes".into()),
            Some(expected) if *expected != verdict.found => {
                outcome.difference = Some((output::yaml(expected)?, output::yaml(&verdict.found)?));
            }
            Some(_) => {}
        }
        outcome.problems.extend(verdict.trapped.and_then(|at| native.says(at.function, &at.request)));
        Ok(outcome)
    }
}

#[derive(Serialize)]
struct Expectation<'a, Found> {
    expect: &'a Found,
}

fn described(outcome: &CaseReport, colours: Colours) -> String {
    let word = match (outcome.passed, outcome.updated) {
        (true, true) => colours.green("update"),
        (true, false) => colours.green("ok    "),
        (false, _) => colours.red("FAILED"),
    };
    let mut text = format!("{word}  {}\n", outcome.path.display());
    for problem in &outcome.problems {
        text.push_str(&format!("        {problem}\n"));
    }
    if let Some((expected, found)) = &outcome.difference {
        text.push_str(&colours.faint("        - what the case expects\n        + what the guest answers\n"));
        text.push_str(&output::difference(expected, found, colours));
    }
    text
}

fn data(outcomes: &[CaseReport], form: Data) -> Result<String, Problem> {
    let cases: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            let mut case = json!({"file": outcome.path.display().to_string(), "passed": outcome.passed});
            if outcome.updated {
                case["updated"] = true.into();
            }
            if !outcome.problems.is_empty() {
                case["problems"] = json!(outcome.problems);
            }
            if let Some((expected, found)) = &outcome.difference {
                case["difference"] = output::difference(expected, found, Colours::none()).into();
            }
            case
        })
        .collect();
    let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
    output::text(&json!({"cases": cases, "passed": outcomes.len() - failed, "failed": failed}), form)
}
