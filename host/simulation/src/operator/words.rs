//! Plans and properties in words, for people who do not know the notation.

use super::{Fault, OnEvent, OnRequest, OnWrite, Property, RunOutcome};

impl Fault {
    /// The fault, as a sentence without a full stop. `at` is the place of the fault, as in the trace.
    fn in_words(&self, at: Option<&str>) -> String {
        let named = |what: &str, number: u32| match at {
            Some(at) => format!("{what} {number} ({at})"),
            None => format!("{what} {number}"),
        };
        match self {
            Self::Write(number, what) => format!("at {} {}", named("write", *number), of_write(*what)),
            Self::Request(number, what) => format!("{} {}", named("request", *number), of_request(*what)),
            Self::Event(number, what) => format!("{} {}", named("event", *number), of_event(*what)),
            Self::Lag(by) => format!("every event of a watch comes {} ms late", by.as_millis()),
            Self::Skew(by) => format!("the wall clocks of the hosts differ by {} ms", by.as_millis()),
            Self::Rival => "a second host stands by, and both stand for election".into(),
        }
    }
}

fn of_write(what: OnWrite) -> &'static str {
    match what {
        OnWrite::CrashBefore => "the host ends before it is sent, and another one starts",
        OnWrite::CrashAfter => {
            "the host ends when it was carried out, and another one starts without its memory"
        }
        OnWrite::LostBefore => "the connection breaks before it arrives",
        OnWrite::LostReply => "the connection breaks after it was carried out, so that its reply is lost",
        OnWrite::Silence => "no reply ever comes, though it was carried out",
        OnWrite::TimeTravel => {
            "the host ends, and the next one is first shown the cluster as it was a moment before"
        }
        OnWrite::FarTimeTravel => {
            "the host ends, and the next one is first shown the cluster as it was at the beginning"
        }
        OnWrite::Partition => "the host cannot reach the API server for 15 seconds",
        OnWrite::Edit => "somebody edits what was written",
        OnWrite::Delete => "somebody deletes what was written",
        OnWrite::StripLabels => "somebody takes the host's labels off what was written",
        OnWrite::StripOwner => "somebody takes the owner off what was written",
        OnWrite::StripManaged => "somebody empties the managed fields of what was written",
        OnWrite::EditStatus => "somebody empties the conditions of the root",
        OnWrite::Recreate => "somebody deletes the root and makes it again with the same name",
        OnWrite::Churn => "somebody empties the root's spec, and puts it back after 5 seconds",
        OnWrite::SwapTraps => "the Reconciler names a module that traps, for 5 seconds",
        OnWrite::SwapBroken => "the Reconciler names a module whose answer is no JSON, for 5 seconds",
        OnWrite::SwapLoops => "the Reconciler names a module that never ends, for 5 seconds",
        OnWrite::SwapAllocates => "the Reconciler names a module that takes too much memory, for 5 seconds",
        OnWrite::SwapMissing => "the Reconciler names a module that does not exist, for 5 seconds",
        OnWrite::ClockBack => "the host's wall clock goes back by an hour",
        OnWrite::ClockAhead => "the host's wall clock goes ahead by an hour",
    }
}

fn of_request(what: OnRequest) -> String {
    match what {
        OnRequest::Lost => "is lost: the connection breaks before it arrives".into(),
        OnRequest::Burst => "and the nine after it are answered 503".into(),
        OnRequest::Late => "is carried out two seconds late".into(),
        code => format!("is answered {}", code.word()),
    }
}

fn of_event(what: OnEvent) -> &'static str {
    match what {
        OnEvent::Hide => "never comes; 20 seconds later everything is listed anew",
        OnEvent::HidePair => {
            "never comes, and neither does the next one about the same object; then everything is listed anew"
        }
        OnEvent::Late => "comes two seconds late, so that events of other watches overtake it",
        OnEvent::Duplicate => "comes twice",
        OnEvent::Close => "does not come, since the watch is closed before it, and opened again",
        OnEvent::Gone => {
            "does not come, since the watch is ended with 410 Gone, and everything is listed anew"
        }
        OnEvent::Compact => "is followed by the end of all watches: everything is listed anew",
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

    #[test]
    fn a_fault_is_told_with_its_place() {
        let told = Fault::Write(3, OnWrite::Edit).in_words(Some("apply configmaps a"));
        assert_eq!(told, "at write 3 (apply configmaps a) somebody edits what was written");
    }
}
