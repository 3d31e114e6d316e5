//! The command line.

mod build;
mod cargo;
mod check;
mod compile;
mod completion;
mod console;
mod crds;
#[cfg(test)]
mod fixture;
mod host;
mod inspect;
mod live;
pub mod module;
pub mod native;
mod new;
pub mod output;
mod plan;
pub mod plural;
pub mod problem;
mod push;
mod rbac;
mod record;
mod render;
mod seeing;
pub mod simulate;
mod status;
mod swap;
mod table;
mod test;
mod uninstall;
mod version;

use std::{env, ffi::OsString, path::Path, process::ExitCode};

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use compile::Compile;
use problem::{CommandStatus, Problem};
use simulate::Simulate;

/// Pintle runs Kubernetes operators whose reconcile logic is WebAssembly.
#[derive(Debug, Parser)]
#[command(name = "pintle", version, max_term_width = 110, disable_help_subcommand = true)]
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
    Simulate(simulate::Simulate),
    Check(check::Check),
    Crds(crds::Crds),
    Rbac(rbac::Rbac),
    Push(push::Push),
    Plan(plan::Plan),
    Swap(swap::Swap),
    Inspect(inspect::Inspect),
    Record(record::Record),
    Status(status::Status),
    Uninstall(uninstall::Uninstall),
    Console(console::Console),
    Operator(host::Operator),
    Gateway(host::Gateway),
    Version(version::Version),
    Completion(completion::Completion),
}

/// The commands, by what one does with them.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Write and test a guest, without a cluster", &["new", "build", "render", "test", "simulate", "check"]),
    ("Deploy a guest", &["crds", "rbac", "push", "plan", "swap"]),
    ("Look after a cluster", &["console", "status", "inspect", "record", "uninstall"]),
    ("Run the host", &["operator", "gateway"]),
    ("Other commands", &["version", "completion"]),
];

/// The help of a command, in kubectl's order.
const HELP: &str = "\
{about}{after-help}

{all-args}

Usage:
  {usage}
";

/// How `pintle simulate` is carried out.
type RunSimulate = fn(&Simulate) -> Result<CommandStatus, Problem>;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    run(env::args_os().collect(), Simulate::start)
}

/// Runs the command line of a process that is called as `pintle simulate` is, without that word.
pub fn main_of_simulate(simulate: RunSimulate) -> ExitCode {
    let mut words: Vec<OsString> = env::args_os().collect();
    words.insert(words.len().min(1), "simulate".into());
    run(words, simulate)
}

fn run(arguments: Vec<OsString>, simulate: RunSimulate) -> ExitCode {
    // A process of the host starts it, and nobody else is to know of it.
    if arguments.get(1).is_some_and(|word| *word == "compile") {
        return ended(Compile::parse_from(arguments.into_iter().skip(1)).run());
    }
    let program = arguments.first().map(Path::new);
    match completion::answer(|| command(program), &arguments) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        // A shell prints what is no candidate between the words of whoever presses a key.
        Err(_) => return ExitCode::FAILURE,
    }
    let mut command = command(program);
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let cli = command
        .try_get_matches_from_mut(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command)));
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => {
            // Nobody is left to be told when even that cannot be printed.
            let _ = error.print();
            if let Some(hint) = hint(&error, &words) {
                eprintln!("hint: {hint}");
            }
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    ended(cli.command.run(simulate))
}

fn ended(result: Result<CommandStatus, Problem>) -> ExitCode {
    match result {
        Ok(CommandStatus::Fine) => ExitCode::SUCCESS,
        Ok(CommandStatus::Failed) => ExitCode::from(1),
        Err(problem) => {
            eprint!("{problem}");
            ExitCode::from(problem.exit_code())
        }
    }
}

/// What somebody may have meant by a command line that is none: the standard input is a file like another, and is named by a flag.
fn hint(error: &clap::Error, words: &[String]) -> Option<String> {
    let [_, command, ..] = words else { return None };
    let takes_files = matches!(command.as_str(), "render" | "check") && error.use_stderr();
    let stands_alone = |pair: &[String]| matches!(pair, [before, word] if word == "-" && !["-f", "--filename"].contains(&before.as_str()));
    (takes_files && words.windows(2).any(stands_alone))
        .then(|| format!("-f - reads objects from the standard input: pintle {command} MODULE -f -"))
}

impl Subcommands {
    fn run(self, simulate: RunSimulate) -> Result<CommandStatus, Problem> {
        match self {
            Self::New(new) => new.run(),
            Self::Build(build) => build.run(),
            Self::Render(render) => render.run(),
            Self::Test(test) => test.run(),
            Self::Simulate(arguments) => simulate(&arguments),
            Self::Check(check) => check.run(),
            Self::Crds(crds) => crds.run(),
            Self::Rbac(rbac) => rbac.run(),
            Self::Push(push) => push.run(),
            Self::Plan(plan) => plan.run(),
            Self::Swap(swap) => swap.run(),
            Self::Inspect(inspect) => inspect.run(),
            Self::Record(record) => record.run(),
            Self::Status(status) => status.run(),
            Self::Uninstall(uninstall) => uninstall.run(),
            Self::Console(console) => console.run(),
            Self::Operator(operator) => operator.run(),
            Self::Gateway(gateway) => gateway.run(),
            Self::Version(version) => version.run(),
            Self::Completion(completion) => completion.run(),
        }
    }
}

/// The command, under the name that it was called by: as a plugin of kubectl it is `kubectl pintle`.
fn command(program: Option<&Path>) -> Command {
    let plugin = program.and_then(Path::file_stem).and_then(|name| name.to_str()) == Some("kubectl-pintle");
    let called = if plugin { "kubectl pintle" } else { "pintle" };
    let mut command = Cli::command().bin_name(called);
    let overview = overview(&command, called);
    command = command.help_template(overview);
    for name in GROUPS.iter().flat_map(|(_, names)| *names) {
        command = command.mut_subcommand(name, |command| {
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = examples.replace("\n  pintle ", &format!("\n  {called} "));
            command.bin_name(format!("{called} {name}")).help_template(HELP).after_help(examples)
        });
    }
    command
}

/// The help of `pintle` itself.
fn overview(command: &Command, called: &str) -> String {
    let mut text = String::from("{about}\n\n");
    for (doing, names) in GROUPS {
        text.push_str(&format!("{doing}:\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            text.push_str(&format!("  {name:10}  {}\n", about.map(ToString::to_string).unwrap_or_default()));
        }
        text.push('\n');
    }
    let more = format!("Use \"{called} COMMAND --help\" for details on a command.\n");
    text + "Options:\n{options}\n\nUsage:\n  {usage}\n\n" + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command(None).debug_assert();
    }

    #[test]
    fn as_a_plugin_it_is_called_kubectl_pintle() {
        let mut command = command(Some(Path::new("/usr/local/bin/kubectl-pintle")));
        assert!(command.render_help().to_string().contains("\"kubectl pintle COMMAND --help\""));
        let help = command.find_subcommand_mut("render").unwrap().render_help().to_string();
        assert!(help.contains("Usage:\n  kubectl pintle render"), "{help}");
        assert!(help.contains("\n  kubectl pintle render "), "{help}");
    }

    /// As somebody reads it whose terminal has 60 columns: nothing runs over, and every line of an example is one to paste.
    #[test]
    fn help_fits_a_narrow_terminal() {
        let mut command = command(None).term_width(60);
        command.build();
        let mut told = vec![command.render_long_help().to_string()];
        let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().into()).collect();
        for name in names {
            let command = command.find_subcommand_mut(&name).unwrap();
            let help = command.render_long_help().to_string();
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(examples.trim_end()), "{name}: an example is broken in two:\n{help}");
            told.push(help);
        }
        let wide: Vec<&str> =
            told.iter().flat_map(|help| help.lines()).filter(|line| line.chars().count() > 60).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }

    #[test]
    fn every_command_has_examples_and_stands_in_the_overview() {
        let mut command = command(None);
        let overview = command.render_help().to_string();
        for command in command.get_subcommands() {
            let name = command.get_name();
            let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(
                examples.contains("Examples:") && examples.contains(&format!("\n  pintle {name}")),
                "{name}"
            );
            assert!(overview.contains(&format!("\n  {name} ")), "{name}");
        }
    }
}
