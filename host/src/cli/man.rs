//! The command `pintle man`: it writes the manual pages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, Command};
use clap_mangen::{
    Man as Page,
    roff::{Roff, roman},
};

use super::{
    output,
    problem::{CommandStatus, Problem},
};

/// Write the manual pages
///
/// The directory gets pintle.1 and a page for each command, as pintle-render.1. The pages have no date, so that the same program
/// always writes the same bytes.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Put the pages where man finds them
  pintle man ~/.local/share/man/man1

  # Read one
  pintle man pages
  man -l pages/pintle-render.1")]
pub(super) struct Man {
    /// Directory for the pages. It is created if it does not exist
    dir: PathBuf,
}

/// Commands for users.
const SECTION: &str = "1";

impl Man {
    pub(super) fn run(self) -> Result<CommandStatus, Problem> {
        let pages = pages(super::command(None))?;
        let failed = |what: &Path, error: std::io::Error| {
            Problem::new(format!("{} cannot be written: {error}", what.display()))
        };
        fs::create_dir_all(&self.dir).map_err(|error| failed(&self.dir, error))?;
        for (name, page) in &pages {
            let file = self.dir.join(name);
            fs::write(&file, page).map_err(|error| failed(&file, error))?;
        }
        output::print(&format!("{} pages in {}\n", pages.len(), self.dir.display()))?;
        Ok(CommandStatus::Fine)
    }
}

/// The pages with the names of their files: one of the whole, and one for each command that people are to know of.
fn pages(mut whole: Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    whole.build();
    let version = format!("pintle {}", whole.get_version().unwrap_or_default());
    let commands: Vec<Command> =
        whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    [whole]
        .into_iter()
        .chain(commands)
        .map(|command| {
            let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
            Ok((format!("{name}.{SECTION}"), page(command, &name, &version)?))
        })
        .collect()
}

fn page(command: Command, name: &str, version: &str) -> std::io::Result<Vec<u8>> {
    let examples = command.get_after_help().map(ToString::to_string);
    let has_commands = command.has_subcommands();
    // An empty date would be left out, and what follows would take its place.
    let page = Page::new(command).title(name.to_uppercase()).section(SECTION).date(" ").source(version);
    let page = page.manual("Pintle Manual");
    let mut text = Vec::new();
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if has_commands {
        page.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if let Some(examples) = examples {
        show(&examples, &mut rest);
    }
    if !has_commands {
        rest.control("SH", ["SEE ALSO"]).text([roman(format!("pintle({SECTION})"))]);
    }
    rest.to_writer(&mut text)?;
    Ok(text)
}

/// Examples as they are in the help, line by line: they are there to be pasted.
fn show(examples: &str, page: &mut Roff) {
    page.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in examples.trim().lines().skip_while(|line| *line == "Examples:") {
        page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    page.control("fi", []);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_and_nothing_hidden_has_one() {
        let names: Vec<String> =
            pages(super::super::command(None)).unwrap().into_iter().map(|(name, _)| name).collect();
        let command = super::super::command(None);
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let expected: Vec<String> = ["pintle.1".to_owned()]
            .into_iter()
            .chain(visible.map(|command| format!("pintle-{}.1", command.get_name())))
            .collect();
        assert_eq!(names, expected);
        assert!(!names.contains(&"pintle-compile.1".to_owned()));
    }

    #[test]
    fn an_example_is_shown_as_it_is_pasted() {
        let mut page = Roff::new();
        show("Examples:\n  # Say it\n  pintle crds | kubectl apply -f -", &mut page);
        let text = page.to_roff();
        assert!(text.contains(".nf\n# Say it\npintle crds | kubectl apply \\-f \\-\n.fi"), "{text}");
    }
}
