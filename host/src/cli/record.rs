//! The command `pintle record`: it writes a golden case of a root in a cluster.

use clap::Args;
use pintle_offline::case;

use super::{
    live, output,
    problem::{CommandStatus, Problem},
    seeing::{self, RootFlags},
};

/// Write a golden case of a root in a cluster
///
/// The case has what the guest of the root is given: the root, the children that it observes, what it asked to see, and the config
/// and grants of its Reconciler. It expects what the guest answers to that, and passes `pintle test` at once.
///
/// What nobody is to read is replaced by other values of the same length, equal for equal values: the values of Secrets, the fields
/// that a view marks writeOnly, and the fields that the CRD of the root marks `format: password`. Of these, values of 8 bytes or more
/// are replaced wherever else they stand in the case, also within a longer text and as base64, but not in names and keys. Shorter
/// values, and secrets that nothing marks, stay where they are: read the case before you share it.
///
/// If the guest refuses what is replaced, no case is written. The exit code is 1 then, or if the case does not pass, and 2 if something
/// could not be read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Record a root, and run the case
  pintle record webserver/web -n blog > cases/web.yaml
  pintle test guest.wasm cases/web.yaml

  # Record what another module answers
  pintle record webserver/web --module guest.wasm \\
    > case.yaml")]
pub(super) struct Record {
    #[command(flatten)]
    flags: RootFlags,
}

impl Record {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        live::block_on(self.record())
    }

    async fn record(&self) -> Result<CommandStatus, Problem> {
        let (caller, request) = self.flags.request().await?;
        let found = seeing::preview()?.record(&caller, &request).await.map_err(seeing::problem)?;
        if let Some(unknown) = found.unknown.first() {
            return Err(Problem::new(format!("{}: {}", unknown.what, unknown.why))
                .hint("a case without it would not be what happens in the cluster"));
        }
        let (case, result) = case::record(&found.guest, found.objects, &found.now)?;
        let refused = case.refuses_otherwise(found.failure.as_ref()).filter(|_| found.secrets_replaced);
        if let Some(reason) = refused {
            let why = result.message.as_deref().unwrap_or(reason);
            return Err(Problem::failed(format!("the guest refuses other values in the place of secrets: {why}"))
                .hint("record a root whose secrets may have any value, or write the case by hand: pintle render prints the answer"));
        }
        let said = if found.secrets_replaced {
            "\n# secretsReplaced: values of Secrets, and what is marked as secret, are not those of the cluster."
        } else {
            ""
        };
        let head = format!("# {} with module {}.{said}\n", self.flags.root, found.module);
        output::print(&format!("{head}{}", output::yaml(&case)?))?;
        if result.passed() {
            if let Some(failure) = &case.expect.failure {
                eprintln!(
                    "note: the case expects the failure of now, {}, so that pintle test says ok; when the guest is mended, write the right answer into it with: pintle test MODULE CASE --update",
                    failure.reason
                );
            }
            return Ok(CommandStatus::Fine);
        }
        for problem in result.problems.iter().chain(&result.message) {
            eprintln!("error: {problem}");
        }
        Ok(CommandStatus::Failed)
    }
}
