//! The command `pintle inspect`: it shows what the guest of a root was given, and what it answered.

use std::path::{Path, PathBuf};

use clap::Args;
use pintle_core::object;
use pintle_offline::documents;
use pintle_wit::Kind;
use serde_json::Value;

use super::{
    live,
    output::{self, Data},
    plan::change_text,
    problem::{CommandStatus, Problem},
    seeing::{self, RootFlags},
};

/// Show request and answer of a root
///
/// The request is what the guest of the root is given. It is made from the cluster as it is now, with your own rights, and the guest is called again. For a root at rest this is
/// what the operator gave and got. A word such as `<hidden 3fa1c2>`, the same for equal values, stands in the place of what nobody is to
/// read: see `pintle record --help`.
///
/// If there is no answer, `failure` says why, and the exit code is 1. If something could not be read, `unknown` says what, and the
/// exit code is 2.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Print request, answer and children
  pintle inspect webserver/web -n blog

  # Print only how children differ from the answer
  pintle inspect webserver/web --diff

  # What another module would answer
  pintle inspect webserver/web --module guest.wasm

  # What would be answered if the root were as in a file
  pintle inspect webserver/web --as web.yaml

  # The answer alone
  pintle inspect webserver/web -o json | jq .answer")]
pub(super) struct Inspect {
    /// File with the root as it would be, or - for the standard input [default: as it is in the cluster]
    #[arg(long = "as", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    proposed: Option<PathBuf>,

    /// Print how the children differ from the answer
    #[arg(long, conflicts_with = "output")]
    diff: bool,

    /// Output format. One of yaml or json
    #[arg(short, long, value_name = "yaml|json", default_value = "yaml", hide_possible_values = true)]
    output: Data,

    #[command(flatten)]
    flags: RootFlags,
}

/// The one object of this kind in a file.
fn one_of(file: &Path, kind: &Kind) -> Result<Value, Problem> {
    let found = documents::read(&[file.to_owned()])?;
    let values = found.into_iter().map(|document| document.value);
    let mut found: Vec<Value> = values
        .filter(|value| {
            let found = object::kind(value);
            found.kind == kind.kind && found.group() == kind.group()
        })
        .collect();
    match (found.pop(), found.len()) {
        (Some(one), 0) => Ok(one),
        _ => Err(Problem::new(format!("{}: there must be one {kind}, and no other one", file.display()))),
    }
}

impl Inspect {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(self.inspect())
    }

    async fn inspect(&self) -> Result<CommandStatus, Problem> {
        let (caller, mut request) = self.flags.request().await?;
        request.proposed = self.proposed.as_deref().map(|file| one_of(file, &request.kind)).transpose()?;
        let found = seeing::preview()?.inspect(&caller, &request).await.map_err(seeing::problem)?;
        let text = if self.diff {
            found.children.iter().map(|child| change_text(&child.change)).collect()
        } else {
            output::text(&found, self.output)?
        };
        output::print(&text)?;
        if let Some(failure) = &found.failure {
            eprintln!("error: there is no answer: {}: {}", failure.reason, failure.message);
            return Ok(CommandStatus::Failed);
        }
        match found.unknown.as_slice() {
            [] => Ok(CommandStatus::Fine),
            [first, ..] => Err(Problem::new(format!("{}: {}", first.what, first.why))
                .hint("what could not be read may change the answer")),
        }
    }
}
