//! Plans and properties in words, for people who do not know the notation.

use super::{Fault, Property, RunOutcome};

impl Fault {
    /// The fault, as a sentence without a full stop. `at` is the place of the fault, as in the trace.
    fn in_words(&self, at: Option<&str>) -> String {
        let named = |what: &str, number: u32| match at {
            Some(at) => format!("{what} {number} ({at})"),
            None => format!("{what} {number}"),
        };
        match self {
            Self::Write(number, what) => format!("at {} {}", named("write", *number), what.in_words()),
            Self::Request(number, what) => format!("{} {}", named("request", *number), what.in_words()),
            Self::Event(number, what) => format!("{} {}", named("event", *number), what.in_words()),
            Self::Lag(by) => format!("every event of a watch comes {} ms late", by.as_millis()),
            Self::Skew(by) => format!("the wall clocks of the hosts differ by {} ms", by.as_millis()),
            Self::Rival => "a second host stands by, and both stand for election".into(),
        }
    }
}

impl Property {
    /// What should hold, as a sentence without a full stop.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Converges => "each step of the scenario comes to what it expects",
            Self::SameEnd => "the end is that of the run in which nothing goes wrong",
            Self::Counted => "no object is created or deleted more often than where nothing goes wrong",
            Self::Steady => "when all is as it should be, another look changes nothing",
            Self::Pure => "a guest asked the same answers the same, in whatever order its children are shown",
            Self::NoOrphans => "nothing is left of a root that is gone",
            Self::NoForeignHarm => "what the host did not make, it does not change",
            Self::Monotone => {
                "a status never speaks of a generation that is not there yet, nor of an older one than before"
            }
            Self::Bounded => "the host comes to rest",
            Self::SafeOnTheWay => "nothing is deleted on the way that belongs to the end",
            Self::Returns => "what was changed and put back is as it was",
            Self::Repeatable => "the same line leads to the same run",
            Self::Isolated => "one root's trouble does not delay another",
            Self::Ready => "every root ends Ready",
            Self::Fits => "the guest sets only fields that there are",
        }
    }

    /// What the author of a guest should look for if it does not hold.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Converges => {
                "compare what the step expects with what the guest answers to that root: pintle render shows the answer to any objects"
            }
            Self::SameEnd | Self::Returns => {
                "the answer depends on how it came about: look for what the guest reads from its own status or from children that \
                 remembers the way (counters, a first value that is kept, a generation), and compute it from the spec and the needs"
            }
            Self::Counted => {
                "a child changes its name or its identity with something that passes: name children after the root alone"
            }
            Self::Steady | Self::Bounded => {
                "the guest's own writes change its answer: look for what it copies from children or status into a child or the status \
                 and changes on the way; the answer to what it sees after its own answer must be the same answer"
            }
            Self::Pure => {
                "look for what the guest takes by position from request.children, and for maps whose order it shows; find children by \
                 kind and name (request.child), and sort what becomes a list"
            }
            Self::NoOrphans => {
                "a child has no owner in its namespace: see grants.children[].namespaces, and the guest's finalizer"
            }
            Self::NoForeignHarm => {
                "look at grants.patches and evictions, and at children whose name somebody else uses"
            }
            Self::SafeOnTheWay => {
                "for a moment the guest wanted a child no more that it wants in the end: it must not leave children out because \
                 something that it depends on is not there yet; use stages for order"
            }
            Self::Ready => {
                "mend what the reason names; or, where that is what should come of it, say so in the scenario: \
                 expect: [{object: ..., condition: {type: Ready, status: \"False\", reason: ...}}]"
            }
            Self::Fits => "mend the field in the guest; pintle render shows the same in a moment",
            _ => "this is not the guest's to keep: please report it, with the line that repeats it",
        }
    }
}

/// The faults of a run, each as a sentence, in the order of the plan.
pub fn faults(faults: &[Fault], outcome: &RunOutcome) -> Vec<String> {
    let at = |fault: &Fault| {
        let text = fault.to_string();
        let index = outcome.steps.iter().position(|step| step.who == "plan" && step.what == text)?;
        Some(outcome.steps.get(index.checked_sub(1)?)?.what.as_str())
    };
    faults.iter().map(|fault| fault.in_words(at(fault))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OnWrite;

    #[test]
    fn a_fault_is_told_with_its_place() {
        let told = Fault::Write(3, OnWrite::Edit).in_words(Some("apply configmaps a"));
        assert_eq!(told, "at write 3 (apply configmaps a) somebody edits what was written");
    }
}
