//! The command line.

mod build;
mod cargo;
mod check;
mod new;
mod output;
mod plural;
mod problem;
mod render;
mod test;

use std::{ffi::OsString, path::Path, process::ExitCode};

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use problem::{Problem, Verdict};

/// Runs Kubernetes operators whose reconcile logic is WebAssembly, and everything around them: making a guest, testing it without
/// a cluster, and putting it in force.
#[derive(Debug, Parser)]
#[command(
    name = "pintle",
    version,
    propagate_version = true,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
#[command(next_line_help = false, flatten_help = false)]
struct Cli {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    New(new::New),
    Build(build::Build),
    Render(render::Render),
    Test(test::Test),
    Check(check::Check),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    run(std::env::args_os().collect())
}

fn run(arguments: Vec<OsString>) -> ExitCode {
    let command = command(arguments.first().map(Path::new));
    let cli = command.try_get_matches_from(arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody is left to be told when even that cannot be printed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match cli.command.run() {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::Failed) => ExitCode::from(1),
        Err(problem) => {
            eprint!("{problem}");
            ExitCode::from(problem.exit_code())
        }
    }
}

impl Subcommands {
    fn run(self) -> Result<Verdict, Problem> {
        match self {
            Self::New(new) => new.run(),
            Self::Build(build) => build.run(),
            Self::Render(render) => render.run(),
            Self::Test(test) => test.run(),
            Self::Check(check) => check.run(),
        }
    }
}

/// The command, under the name that it was called by: as a plugin of kubectl it is `kubectl pintle`.
fn command(program: Option<&Path>) -> Command {
    let plugin = program.and_then(Path::file_stem).and_then(|name| name.to_str()) == Some("kubectl-pintle");
    let mut command = Cli::command();
    if plugin {
        command = command.bin_name("kubectl pintle");
        let names: Vec<String> =
            command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        for name in names {
            command = command.mut_subcommand(&name, |command| {
                let bin_name = format!("kubectl pintle {name}");
                let examples = command.get_after_help().map(|examples| as_plugin(&examples.to_string()));
                let command = command.bin_name(bin_name);
                examples.into_iter().fold(command, Command::after_help)
            });
        }
    }
    command
}

fn as_plugin(examples: &str) -> String {
    examples.replace("\n  pintle ", "\n  kubectl pintle ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn as_a_plugin_it_is_called_kubectl_pintle() {
        let mut command = command(Some(Path::new("/usr/local/bin/kubectl-pintle")));
        let help = command.find_subcommand_mut("render").unwrap().render_help().to_string();
        assert!(help.contains("Usage: kubectl pintle render"), "{help}");
        assert!(help.contains("\n  kubectl pintle render "), "{help}");
    }

    #[test]
    fn every_command_has_examples() {
        for command in Cli::command().get_subcommands() {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                examples.contains("Examples:") && examples.contains("  pintle "),
                "{}",
                command.get_name()
            );
        }
    }
}
