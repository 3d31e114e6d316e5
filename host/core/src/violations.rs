//! The violations of an answer or of an object. The first ones are listed with a message, and the others are only counted.

use std::fmt::Display;

use pintle_wit::{Failure, bounded};

/// One reason why an answer or an object is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A stable CamelCase word, from [`reasons`](crate::reasons).
    pub reason: &'static str,
    /// The path in the answer or the object: `children[1].object.spec.template.spec.hostNetwork`. Empty for a violation of the whole.
    pub path: String,
    /// The message: what is wrong with which object, and what to do.
    pub message: String,
    /// Whether trying again can help: only for a kind that the API server does not serve yet.
    pub retry: bool,
}

/// How many violations are listed: more than anybody corrects at a time. A guest can easily cause hundreds of thousands of them.
const LISTED_MAX: usize = 16;

/// The longest path and the longest message of a violation, in bytes: the guest, or who wrote the object, wrote parts of both.
const PATH_BYTES_MAX: usize = 256;
const MESSAGE_BYTES_MAX: usize = 1024;

/// The length, in bytes, up to which another violation is added to a failure's message. With one more violation the message still fits
/// into the message of a condition, which has room for 4 KiB.
const MESSAGE_BYTES_FULL: usize = 2560;

/// Why an answer or an object is refused: the first violations, and how many more there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    listed: Vec<Violation>,
    /// How many there are, listed or not.
    count: usize,
    /// How many of them a retry does not end.
    terminal: usize,
}

impl Violations {
    /// The listed violations, which are the first ones in the order in which they were found.
    pub fn listed(&self) -> &[Violation] {
        &self.listed
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many violations are not listed.
    pub fn unlisted(&self) -> usize {
        self.count - self.listed.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a violation at a path is listed.
    pub fn has(&self, path: &str) -> bool {
        let path = bounded(path, PATH_BYTES_MAX);
        self.listed.iter().any(|violation| violation.path == path)
    }

    /// The message of a violation that is not listed is never written.
    pub fn add(&mut self, reason: &'static str, path: impl Display, message: impl Display) {
        self.found(reason, path, message, false);
    }

    /// Adds a violation that may end by itself.
    pub(crate) fn add_for_now(&mut self, reason: &'static str, path: impl Display, message: impl Display) {
        self.found(reason, path, message, true);
    }

    fn found(&mut self, reason: &'static str, path: impl Display, message: impl Display, retry: bool) {
        self.count += 1;
        self.terminal += usize::from(!retry);
        if self.listed.len() < LISTED_MAX {
            self.listed.push(Violation {
                reason,
                path: bounded(path, PATH_BYTES_MAX),
                message: bounded(message, MESSAGE_BYTES_MAX),
                retry,
            });
        }
    }

    /// Adds the violations of another part of the same answer.
    pub fn append(&mut self, others: Self) {
        let room = LISTED_MAX - self.listed.len();
        self.listed.extend(others.listed.into_iter().take(room));
        self.count += others.count;
        self.terminal += others.terminal;
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// Where there are some, all of them.
    pub fn into_result(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Adds an object's name to the messages of the violations after the first `count` ones. Their paths have only the object's index,
    /// and people look for its name.
    pub(crate) fn name_since(&mut self, count: usize, label: &str) {
        for violation in self.listed.iter_mut().skip(count).filter(|one| !one.message.contains(label)) {
            violation.message = bounded(format_args!("{label}: {}", violation.message), MESSAGE_BYTES_MAX);
        }
    }

    /// The violations as one failure: reason and path of the first, and as many as a condition has room for in the message, each in a line.
    /// A condition has no lines, and shows them with a `;` between.
    pub fn failure(&self) -> Failure {
        let Some(first) = self.listed.first() else { return Failure::default() };
        let mut message = first.message.clone();
        let mut told = 1;
        for other in self.listed.iter().skip(1) {
            if message.len() > MESSAGE_BYTES_FULL {
                break;
            }
            let colon = if other.path.is_empty() { "" } else { ": " };
            message.push_str(&format!(";\n{}{colon}{} ({})", other.path, other.message, other.reason));
            told += 1;
        }
        if self.count > told {
            message.push_str(&format!(";\nand {} more", self.count - told));
        }
        Failure {
            reason: first.reason.into(),
            message,
            path: Some(first.path.clone()).filter(|path| !path.is_empty()),
            retry: self.terminal == 0,
            ..Failure::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn of_very_many_the_first_are_listed_and_the_rest_is_counted_without_being_written() {
        struct Written<'a>(&'a Cell<usize>);
        impl Display for Written<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.set(self.0.get() + 1);
                f.write_str("wrong")
            }
        }
        let (mut found, written) = (Violations::default(), Cell::new(0));
        for index in 0..350_000 {
            found.add("EventInvalid", format_args!("events[{index}].message"), Written(&written));
        }
        assert_eq!(
            (written.get(), found.listed().len(), found.unlisted()),
            (LISTED_MAX, LISTED_MAX, 349_984)
        );
        let failure = found.failure();
        assert!(failure.message.ends_with(";\nand 349984 more"), "{failure}");
        assert_eq!(failure.path.as_deref(), Some("events[0].message"));
    }

    #[test]
    fn the_number_of_the_rest_still_fits_into_a_condition() {
        let mut found = Violations::default();
        for _ in 0..100 {
            found.add("A", "p".repeat(1 << 20), "m".repeat(1 << 20));
        }
        found.name_since(0, &"l".repeat(100));
        let failure = found.failure();
        assert!(failure.message.len() <= 4096 && failure.message.ends_with(";\nand 97 more"), "{failure}");
        assert!(failure.path.is_some_and(|path| path.len() <= 256));
    }

    #[test]
    fn the_violations_of_the_parts_of_an_answer_are_listed_and_counted_together() {
        let part = |count: usize| {
            let mut found = Violations::default();
            for index in 0..count {
                found.add("A", format_args!("a{index}"), "b");
            }
            found
        };
        let mut found = part(LISTED_MAX - 1);
        found.append(part(3));
        assert_eq!((found.listed().len(), found.unlisted()), (LISTED_MAX, 2));
        assert!(!found.failure().retry);
        assert!(found.failure().message.ends_with(";\na0: b (A);\nand 2 more"), "{}", found.failure());
        assert_eq!(part(0).into_result(), Ok(()));
    }

    #[test]
    fn a_violation_of_the_whole_has_no_path() {
        let mut found = Violations::default();
        found.add("A", "", "is wrong");
        found.add("A", "", "is wrong too");
        assert_eq!(found.failure().to_string(), "A: is wrong;\nis wrong too (A)");
    }

    #[test]
    fn trying_again_helps_where_it_helps_against_all() {
        let mut found = Violations::default();
        found.add_for_now("KindMissing", "a", "b");
        assert!(found.failure().retry);
        for _ in 0..20 {
            found.add_for_now("KindMissing", "a", "b");
        }
        found.add("A", "a", "b");
        assert!(!found.failure().retry, "also where the one that is for good is not listed");
    }
}
