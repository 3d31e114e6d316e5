//! Counts of roots.

use pintle_api::{ActiveRoots, RootCounts};

use super::Root;

/// How many roots there are, how they are, and how far they have got with the module in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) roots: RootCounts,
    pub(crate) active: ActiveRoots,
}

impl Tally {
    /// Counts a root.
    pub(super) fn count(&mut self, root: &Root) {
        let (failing, since) = (root.failing.is_some(), root.since_swap);
        let counts = [
            (&mut self.roots.total, true),
            (&mut self.roots.ready, root.ready),
            (&mut self.roots.failing, failing),
            (&mut self.active.reconciled, since.reconciled),
            (&mut self.active.changed, since.changed),
            (&mut self.active.failing, since.reconciled && failing),
            (&mut self.active.newly_failing, since.reconciled && failing && since.was_well),
        ];
        for (count, is) in counts {
            *count += u32::from(is);
        }
    }
}

/// What has become of a root since the module and config in force came into force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SinceSwap {
    /// It was there before.
    was_there: bool,
    /// It was there before, and did not fail, or only because the swap before had broken it.
    was_well: bool,
    /// A pass with them has ended.
    reconciled: bool,
    /// It was there before, and its first pass with them that did not fail wrote something, or one before that pass did.
    changed: bool,
    /// It was well before, and every pass with them has failed.
    broken: bool,
}

impl SinceSwap {
    /// Another module or config comes into force.
    pub(super) fn begin(was_well: bool) -> Self {
        Self { was_there: true, was_well, ..Self::default() }
    }

    /// Whether the last swap is why a root fails now. Before its first pass, that is a swap before.
    pub(super) fn is_regression(self) -> bool {
        self.was_well && (self.broken || !self.reconciled)
    }

    /// A pass with them has ended. `failed` says whether the pass before did, `fails` whether this one did, and `wrote` whether it changed
    /// children or patches.
    pub(super) fn ended(self, failed: bool, fails: bool, wrote: bool) -> Self {
        // What a later pass writes is for another reason: somebody edited the root, or changed a child.
        let is_first = !self.reconciled || failed;
        Self {
            reconciled: true,
            changed: self.changed || self.was_there && is_first && wrote,
            broken: fails && self.is_regression(),
            ..self
        }
    }
}

/// The counts to publish, where the host before this one, or this process before it began to lead, has counted `before` for the same
/// module and config. Only that host knows which roots it changed, and which did not fail before the swap.
pub(crate) fn since_swap(before: ActiveRoots, counted: ActiveRoots) -> ActiveRoots {
    ActiveRoots {
        changed: before.changed.max(counted.changed),
        newly_failing: before.newly_failing.max(counted.newly_failing).min(counted.failing),
        ..counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_changed_by_a_swap_only_if_a_pass_up_to_the_first_good_one_writes() {
        let swapped = SinceSwap::begin(true);
        assert!(!swapped.ended(false, false, false).ended(false, false, true).changed, "an edit afterwards");
        assert!(swapped.ended(true, false, true).ended(false, false, false).changed, "it failed half-way");
        assert!(swapped.ended(false, false, false).ended(true, false, true).changed, "the first one failed");
        assert!(
            !SinceSwap::default().ended(false, false, true).changed,
            "a new root is not changed by the swap before it"
        );
    }

    #[test]
    fn what_the_host_before_counted_holds_as_far_as_it_can_be_so() {
        let counts = |reconciled, changed, failing, newly_failing| ActiveRoots {
            reconciled,
            changed,
            failing,
            newly_failing,
        };
        assert_eq!(since_swap(counts(9, 5, 3, 2), counts(4, 1, 3, 0)), counts(4, 5, 3, 2));
        assert_eq!(
            since_swap(counts(9, 5, 3, 2), counts(9, 0, 1, 0)),
            counts(9, 5, 1, 1),
            "others were put right"
        );
        assert_eq!(since_swap(ActiveRoots::default(), counts(9, 5, 3, 2)), counts(9, 5, 3, 2));
    }
}
