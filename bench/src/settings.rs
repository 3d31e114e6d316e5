//! The settings of a run.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use clap::{ValueEnum, value_parser};
use serde::Serialize;

/// Measures Pintle beside a raw client and an operator in Go, and views beside what they show.
#[derive(Debug, clap::Parser, Serialize)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", args_override_self = true)]
pub(crate) struct Flags {
    /// The phases to run, separated by commas [default: all]
    #[arg(long = "phase", value_name = "PHASE", value_delimiter = ',')]
    phases: Vec<Phase>,
    /// Run only the phases of this part
    #[arg(long, value_name = "PART")]
    part: Option<Part>,
    /// How often to measure the operator; targets are judged by the median
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = value_parser!(u32).range(1..=99))]
    pub(crate) runs: u32,
    /// Who takes part, separated by commas [default: all]
    #[arg(long = "contestant", value_name = "NAME", value_delimiter = ',')]
    contestants: Vec<Who>,
    /// How many roots are created at once
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = value_parser!(u32).range(20..=20_000))]
    pub(crate) roots: u32,
    /// How many samples a latency has
    #[arg(long, default_value_t = 500, value_name = "N", value_parser = value_parser!(u32).range(1..=10_000))]
    pub(crate) samples: u32,
    /// How many Pods the phases about views have
    #[arg(long, default_value_t = 5000, value_name = "N", value_parser = value_parser!(u32).range(20..=50_000))]
    pub(crate) pods: u32,
    /// Another build of `pintle`, which takes part too, so that the two can be compared
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
}

/// What is measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Phase {
    /// All roots are created at once, until every child and every status is right; the other phases use these roots
    Create,
    /// The operator stops and starts over converged roots
    Restart,
    /// One field of one root is changed, until its ConfigMap and its status show it
    Update,
    /// A child is deleted, of each kind in turn, until it is back
    Heal,
    /// Nothing happens for a minute
    Idle,
    /// As many roots again, to measure the memory of each
    Memory,
    /// Another logic, which changes one child of each root
    Swap,
    /// All Pods are listed through a view, by one client and by sixteen
    ViewList,
    /// One Pod is read through a view: the same, and another one each time
    ViewGet,
    /// A Pod is changed, until a client that watches the view is shown it
    ViewEvent,
    /// A Llama is changed through its view, until a client that watches is shown it; and the same with a CRD of the same schema
    ViewWrite,
}

/// A part of the benchmark that is measured on control planes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// The operator, beside FLOOR and NATIVE
    Operator,
    /// Views through the gateway, beside the same requests for what they show
    Views,
}

impl Phase {
    pub(crate) fn part(self) -> Part {
        match self {
            Self::ViewList | Self::ViewGet | Self::ViewEvent | Self::ViewWrite => Part::Views,
            _ => Part::Operator,
        }
    }
}

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Who {
    /// A raw client that makes only the necessary calls
    Floor,
    /// An operator in Go with the same logic
    Native,
    /// The other build of the host that --before names
    Before,
    /// The host
    Pintle,
}

impl Who {
    pub(crate) fn is_pintle(self) -> bool {
        matches!(self, Self::Before | Self::Pintle)
    }
}

/// The name of a phase or a contestant, on the command line and in the output.
pub(crate) fn name(of: impl ValueEnum) -> String {
    of.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl Flags {
    pub(crate) fn runs_phase(&self, phase: Phase) -> bool {
        let is_of_part = self.part.is_none_or(|part| part == phase.part());
        is_of_part && (self.phases.is_empty() || self.phases.contains(&phase))
    }

    /// Who takes part in this part of the benchmark: nobody if none of its phases is selected. FLOOR and NATIVE have no views.
    pub(crate) fn contestants(&self, part: Part) -> Vec<Who> {
        if !Phase::value_variants().iter().any(|phase| phase.part() == part && self.runs_phase(*phase)) {
            return Vec::new();
        }
        let is_there = |who: Who| {
            if self.contestants.is_empty() {
                who != Who::Before || self.before.is_some()
            } else {
                self.contestants.contains(&who)
            }
        };
        let all = Who::value_variants().iter().copied();
        all.filter(|who| is_there(*who) && (part == Part::Operator || who.is_pintle())).collect()
    }

    /// The program of a contestant.
    pub(crate) fn program(&self, who: Who) -> Result<PathBuf> {
        match who {
            Who::Floor => Ok(env::current_exe()?),
            Who::Native => built("../bench-native"),
            Who::Before => self.before.clone().context("--before says where the other build is"),
            Who::Pintle => built("pintle"),
        }
    }
}

/// A file that `cargo xtask bench` builds or wants: beside this program, or in the folder above.
pub(crate) fn built(file: &str) -> Result<PathBuf> {
    Ok(env::current_exe()?.with_file_name(file))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn parse(more: &[&str]) -> Flags {
        Flags::try_parse_from(["bench"].iter().chain(more)).unwrap()
    }

    #[test]
    fn another_build_takes_part_in_both_parts_if_there_is_one() {
        let mut flags = parse(&[]);
        assert_eq!(flags.contestants(Part::Operator), [Who::Floor, Who::Native, Who::Pintle]);
        assert_eq!(flags.contestants(Part::Views), [Who::Pintle]);
        flags.before = Some("pintle".into());
        assert_eq!(flags.contestants(Part::Operator), Who::value_variants());
        assert_eq!(flags.contestants(Part::Views), [Who::Before, Who::Pintle]);
        let flags = parse(&["--phase", "view-get", "--contestant", "native,pintle"]);
        assert!(flags.contestants(Part::Operator).is_empty());
        assert_eq!(flags.contestants(Part::Views), [Who::Pintle]);
    }
}
