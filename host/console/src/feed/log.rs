//! [`Log`]: the changes that one watch brought. It keeps the newest change of each object, so that whoever reads slowly skips what is outdated,
//! and a bounded number of them, so that memory does not grow with what nobody reads.

use std::{collections::BTreeMap, sync::Arc};

use crate::problem::Problem;

/// How many changes are kept, and how many bytes of them.
const CHANGES_MAX: usize = 4096;
const BYTES_MAX: usize = 4 << 20;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// It is there now.
    Added,
    /// It is another now.
    Modified,
    /// It is gone.
    Deleted,
}

impl Happened {
    /// The name of the event.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
        }
    }
}

/// One change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) happened: Happened,
    /// What a client is told of it.
    pub(crate) told: String,
    /// The version of the object, as a number.
    version: Option<u64>,
    /// Which object it is.
    object: String,
}

/// Why a watch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The list must be read anew.
    Reset,
    /// The API server does not accept the caller any more.
    Unauthorized,
    /// Something else, which a retry does not help.
    Problem(Problem),
}

/// The changes that one watch brought.
#[derive(Debug)]
pub(crate) struct Log {
    changes: BTreeMap<u64, Arc<Change>>,
    newest_of: BTreeMap<String, u64>,
    bytes: usize,
    /// The number of the next change.
    next: u64,
    /// What was before this change is not kept any more.
    first: u64,
    /// Every change after this version is here.
    complete_since: Option<u64>,
    /// The version up to which the API server has told everything.
    seen: String,
    /// How often that was said by a bookmark.
    bookmarks: u64,
    end: Option<End>,
}

/// How far a listener has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    next: u64,
    bookmarks: u64,
    /// What is not newer than this is known.
    since: u64,
}

/// What a listener is to be told next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A change.
    Change(Arc<Change>),
    /// Everything up to this version was told.
    Bookmark(String),
    /// No more will come.
    End(End),
}

impl Log {
    /// The log of a watch that begins at this version.
    pub(crate) fn since(version: &str) -> Self {
        Self {
            changes: BTreeMap::new(),
            newest_of: BTreeMap::new(),
            bytes: 0,
            next: 0,
            first: 0,
            complete_since: version.parse().ok(),
            seen: version.to_owned(),
            bookmarks: 0,
            end: None,
        }
    }

    /// The version from which the watch goes on.
    pub(crate) fn seen(&self) -> &str {
        &self.seen
    }

    /// Where a listener begins that has seen this version; nothing if the log cannot tell it what came after.
    pub(crate) fn join(&self, version: &str) -> Option<Position> {
        let since = version.parse().ok()?;
        let is_complete = self.end.is_none() && self.complete_since? <= since;
        is_complete.then_some(Position { next: self.first, bookmarks: self.bookmarks, since })
    }

    /// Where the listener begins that this log was made for.
    pub(crate) fn beginning(&self) -> Position {
        Position {
            next: self.first,
            bookmarks: self.bookmarks,
            since: self.complete_since.unwrap_or_default(),
        }
    }

    /// Takes down a change.
    pub(crate) fn changed(&mut self, happened: Happened, object: String, version: &str, told: String) {
        self.seen = version.to_owned();
        if let Some(outdated) = self.newest_of.insert(object.clone(), self.next) {
            self.remove(outdated);
        }
        self.bytes += told.len();
        let change = Change { happened, told, version: version.parse().ok(), object };
        self.changes.insert(self.next, Arc::new(change));
        self.next += 1;
        while self.changes.len() > CHANGES_MAX || self.bytes > BYTES_MAX {
            let Some((&oldest, change)) = self.changes.first_key_value() else { break };
            self.first = oldest + 1;
            // Without a number nobody can tell whether it has seen this.
            self.complete_since =
                change.version.max(self.complete_since).filter(|_| change.version.is_some());
            let object = change.object.clone();
            self.newest_of.remove(&object);
            self.remove(oldest);
        }
    }

    /// Takes down that everything up to a version was told.
    pub(crate) fn bookmark(&mut self, version: &str) {
        self.seen = version.to_owned();
        self.bookmarks += 1;
    }

    /// Takes down that no more will come.
    pub(crate) fn end(&mut self, end: End) {
        self.end.get_or_insert(end);
    }

    /// What a listener is to be told next; nothing while there is nothing.
    pub(crate) fn next(&self, position: &mut Position) -> Option<News> {
        if position.next < self.first {
            return Some(News::End(End::Reset));
        }
        for (&number, change) in self.changes.range(position.next..) {
            position.next = number + 1;
            if change.version.is_none_or(|version| version > position.since) {
                return Some(News::Change(Arc::clone(change)));
            }
        }
        if position.bookmarks != self.bookmarks {
            position.bookmarks = self.bookmarks;
            return Some(News::Bookmark(self.seen.clone()));
        }
        self.end.clone().map(News::End)
    }

    fn remove(&mut self, number: u64) {
        if let Some(change) = self.changes.remove(&number) {
            self.bytes -= change.told.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(log: &Log, position: &mut Position) -> Vec<String> {
        std::iter::from_fn(|| log.next(position))
            .take(10_000)
            .map(|news| match news {
                News::Change(change) => format!("{} {}", change.happened.name(), change.told),
                News::Bookmark(version) => format!("bookmark {version}"),
                News::End(End::Reset) => "reset".into(),
                News::End(end) => format!("{end:?}"),
            })
            .collect()
    }

    fn change(log: &mut Log, object: &str, version: u64) {
        log.changed(Happened::Modified, object.into(), &version.to_string(), format!("{object}{version}"));
    }

    #[test]
    fn a_slow_reader_is_told_the_newest_of_each_object() {
        let mut log = Log::since("5");
        let mut position = log.beginning();
        change(&mut log, "a", 6);
        assert_eq!(told(&log, &mut position), ["modified a6"]);
        for version in 7..100 {
            change(&mut log, "a", version);
        }
        change(&mut log, "b", 100);
        log.changed(Happened::Deleted, "a".into(), "101", "a101".into());
        log.bookmark("105");
        assert_eq!(told(&log, &mut position), ["modified b100", "deleted a101", "bookmark 105"]);
        assert_eq!(told(&log, &mut position), [""; 0]);
        assert_eq!(log.seen(), "105");
    }

    #[test]
    fn who_comes_later_is_told_what_it_has_not_seen() {
        let mut log = Log::since("5");
        change(&mut log, "a", 6);
        change(&mut log, "b", 8);
        let mut position = log.join("6").unwrap();
        assert_eq!(told(&log, &mut position), ["modified b8"]);
        assert_eq!(log.join("4"), None, "what came before 5 is not here");
        assert!(log.join("5").is_some() && log.join("99").is_some());
        assert_eq!(log.join("opaque"), None);
        assert_eq!(Log::since("opaque").join("5"), None);
    }

    #[test]
    fn what_is_too_much_is_forgotten_and_who_needed_it_begins_anew() {
        let mut log = Log::since("0");
        let mut slow = log.beginning();
        for version in 1..=(CHANGES_MAX as u64 + 10) {
            change(&mut log, &format!("o{version}-"), version);
        }
        assert_eq!(log.next(&mut slow), Some(News::End(End::Reset)));
        assert_eq!(log.join("9"), None);
        let mut fast = log.join("10").unwrap();
        assert_eq!(told(&log, &mut fast).len(), CHANGES_MAX);
        let mut log = Log::since("0");
        for version in 1..10 {
            log.changed(
                Happened::Added,
                version.to_string(),
                &version.to_string(),
                "x".repeat(BYTES_MAX / 4),
            );
        }
        assert!(log.bytes <= BYTES_MAX && log.join("5").is_some() && log.join("4").is_none());
    }

    #[test]
    fn the_end_is_told_after_everything_else() {
        let mut log = Log::since("5");
        let mut position = log.beginning();
        change(&mut log, "a", 6);
        log.end(End::Unauthorized);
        log.end(End::Reset);
        assert!(matches!(log.next(&mut position), Some(News::Change(_))));
        assert_eq!(log.next(&mut position), Some(News::End(End::Unauthorized)));
        assert_eq!(log.join("6"), None, "nobody joins what is over");
    }
}
