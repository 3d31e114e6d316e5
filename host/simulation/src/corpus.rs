//! Plans that once broke a property.

use anyhow::Context;

use crate::{
    plan::{AnyFault, Plan, Replay},
    run::{FaultOf, Replicas, STARTS, Simulate, TraceEntry},
    search::{Subject, subject},
};

/// Reads the plans that once broke a property, one on each line. A line that begins with # is a comment, which says why. A line is either
/// one to replay, or names the place of one fault by what happens there without faults (`scenarios/prune.yaml late at 2: sees DELETED
/// secrets`, or `at last`). Such a place stays the same when a change of the host moves its number.
///
/// # Errors
/// For a line that is neither, that is of an unknown scenario, or that names an unknown place.
pub fn corpus<S: Simulate>(text: &str, subjects: &[Subject<S>]) -> anyhow::Result<Vec<Replay<FaultOf<S>>>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| of_line(line, subjects).with_context(|| format!("{line:?}"))).collect()
}

fn of_line<S: Simulate>(line: &str, subjects: &[Subject<S>]) -> anyhow::Result<Replay<FaultOf<S>>> {
    let place = line.split_once(" at ").and_then(|(fault, place)| Some((fault, place.split_once(": ")?)));
    let Some((fault, (nth, what))) = place else { return line.parse() };
    let (file, word) = fault.split_once(' ').context("no scenario and fault")?;
    let subject = subject(subjects, file).context("there is no such scenario")?;
    let faults = places::<S::Replicas>(&subject.reference.steps)
        .filter(|(_, happens)| happens.starts_with(what))
        .filter_map(|(place, _)| <FaultOf<S>>::read(&format!("{place}={word}")));
    let faults: Vec<FaultOf<S>> = faults.collect();
    let nth = if nth == "last" { faults.len() } else { nth.parse::<usize>().context("at which place?")? };
    let fault = nth.checked_sub(1).and_then(|index| faults.get(index));
    Ok(subject.replay(0, Plan::of([*fault.context("nothing such happens any more")?])))
}

/// The places for faults, with the text of the trace: each event as `e3`, each request as `r5`, and each write also as `w2`.
pub(crate) fn places<R: Replicas>(steps: &[TraceEntry]) -> impl Iterator<Item = (String, &str)> {
    let (mut events, mut requests, mut writes) = (0, 0, 0);
    let of_replicas = steps.iter().filter(|step| R::has(&step.who) && step.what != STARTS);
    of_replicas.map(|step| step.what.as_str()).flat_map(move |what| {
        if what.starts_with("sees ") {
            events += 1;
            return vec![(format!("e{events}"), what)];
        }
        requests += 1;
        let mut places = vec![(format!("r{requests}"), what)];
        let (verb, resource) = what.split_once(' ').unwrap_or((what, ""));
        if matches!(verb, "create" | "update" | "patch" | "apply" | "delete" | "deletecollection")
            && !resource.starts_with("events")
        {
            writes += 1;
            places.push((format!("w{writes}"), what));
        }
        places
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Fault, Hosts, Simulation};

    #[test]
    fn a_corpus_is_lines_to_replay_with_reasons() {
        let read = |text: &str| corpus::<Simulation<'_>>(text, &[]);
        let lines = read("# why\n\nscenarios/a.yaml seed=0 plan=w1=edit\n  # more\n").unwrap();
        let line: Replay<Fault> = "scenarios/a.yaml seed=0 plan=w1=edit".parse().unwrap();
        assert_eq!(lines, [line]);
        assert!(read("scenarios/a.yaml plan=w1=edit").is_err());
        let gone = read("scenarios/a.yaml late at 1: sees DELETED secrets").unwrap_err();
        assert!(format!("{gone:#}").ends_with("there is no such scenario"), "{gone:#}");
    }

    #[test]
    fn places_are_counted_as_plans_count_them() {
        let step =
            |who: &str, what: &str| TraceEntry { at: Duration::ZERO, who: who.into(), what: what.into() };
        let steps = [
            step("host-1", "starts"),
            step("user", "applies Darkroom a/b"),
            step("host-1", "sees ADDED darkrooms b at 4"),
            step("host-1", "get configmaps a b"),
            step("host-1", "create events a b"),
            step("host-1", "apply configmaps a b"),
            step("host-1", "sees ADDED configmaps b at 5"),
            step("host-2", "delete configmaps a b"),
        ];
        let found: Vec<(String, &str)> = places::<Hosts>(&steps).collect();
        let expected = [
            ("e1", "sees ADDED darkrooms b at 4"),
            ("r1", "get configmaps a b"),
            ("r2", "create events a b"),
            ("r3", "apply configmaps a b"),
            ("w1", "apply configmaps a b"),
            ("e2", "sees ADDED configmaps b at 5"),
            ("r4", "delete configmaps a b"),
            ("w2", "delete configmaps a b"),
        ];
        assert_eq!(found, expected.map(|(number, what)| (number.to_owned(), what)));
    }
}
