//! Leader election by a Lease, decided without I/O: which of several hosts may write.
//!
//! The rules are client-go's:
//!
//! * A record may be taken once it has not changed for its duration *since we saw it change*. So no wall clock matters.
//! * Every write of the record names the version that it replaces, so that only one of two candidates succeeds.
//! * A holder gives the Lease up [`Timing::renew_deadline`] after its last successful renewal *began*. Others count from the moment when
//!   they saw the renewal, so none of them can take the Lease earlier. Writes that are under way must end in the time between this
//!   deadline and the duration.

use std::time::Duration;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait after a holder's last sign of life before they take its place. In whole seconds, as in the Lease.
    pub duration: Duration,
    /// How long after its last renewal a holder still writes.
    pub renew_deadline: Duration,
    /// How often a holder renews, and a candidate looks.
    pub retry: Duration,
}

impl Timing {
    /// A hand-over within 15 s of a crash: at most 2 s until the last renewal is seen, and 10 s until it has expired. On a healthy cluster
    /// the API server needs less than the margin of three seconds for a write that has reached it.
    pub const DEFAULT: Self = Self {
        duration: Duration::from_secs(10),
        renew_deadline: Duration::from_secs(7),
        retry: Duration::from_secs(2),
    };

    /// How long one request about the Lease may take: two fit in before the deadline.
    pub fn attempt_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }
}

/// What a Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Who holds it; nobody when empty.
    pub holder: String,
    /// How long others are to wait, in seconds.
    pub duration_seconds: u32,
    /// When the holder got it, and when it was last renewed, by the holder's wall clock (RFC 3339). For people, and to tell one record
    /// from the next; never compared with a clock.
    pub acquired: String,
    /// See `acquired`.
    pub renewed: String,
    /// How often it went from one holder to another.
    pub transitions: u32,
}

/// A record as it was read, with the version that replaces must name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versioned {
    /// What the Lease says.
    pub record: Record,
    /// Its resourceVersion.
    pub version: String,
}

/// What a candidate must do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing, until then.
    Wait(Duration),
    /// Read the Lease, and pass the result to [`Election::read`].
    Read,
    /// Write this record onto this version, or create the Lease, and pass the result to [`Election::wrote`].
    Write(Record, Option<String>),
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrote {
    /// It succeeded, and this is what the Lease says now.
    Accepted(Versioned),
    /// The Lease is not, or no longer, in the version that the write named.
    Outdated,
    /// It is unknown: there was no reply, or an error.
    Unknown,
}

/// One candidate's view of the election. Times are durations since any fixed moment of a clock that only runs forward.
#[derive(Clone, Debug)]
pub struct Election {
    me: String,
    timing: Timing,
    /// The Lease as it was last seen, and since when it has looked like this.
    seen: Option<(Versioned, Duration)>,
    /// There is none, as far as we know.
    absent: bool,
    /// Until when we hold it.
    held_until: Option<Duration>,
    /// When the next action is due.
    due: Duration,
}

impl Election {
    /// A candidate. Its name must be unique, and must also differ from that of an earlier process in the same Pod.
    pub fn new(me: String, timing: Timing) -> Self {
        Self { me, timing, seen: None, absent: false, held_until: None, due: Duration::ZERO }
    }

    /// Until when this candidate holds the Lease, if it does.
    pub fn held_until(&self, now: Duration) -> Option<Duration> {
        self.held_until.filter(|until| *until > now)
    }

    /// Who holds the Lease as far as we know; nobody when empty.
    pub fn holder(&self) -> &str {
        self.seen.as_ref().map_or("", |(seen, _)| &seen.record.holder)
    }

    /// What to do next. `wall` is the time of the wall clock, which is written into the record.
    pub fn next(&self, now: Duration, wall: &str) -> Act {
        if now < self.due {
            return Act::Wait(self.due);
        }
        let Some((seen, since)) = &self.seen else {
            return if self.absent { Act::Write(self.record(None, wall), None) } else { Act::Read };
        };
        let free = seen.record.holder.is_empty() || *since + self.wait_for(&seen.record) <= now;
        if seen.record.holder == self.me || free {
            Act::Write(self.record(Some(&seen.record), wall), Some(seen.version.clone()))
        } else {
            Act::Read
        }
    }

    /// How long a record must stay unchanged before it is taken from its holder.
    fn wait_for(&self, record: &Record) -> Duration {
        match record.duration_seconds {
            0 => self.timing.duration,
            seconds => Duration::from_secs(seconds.into()),
        }
    }

    fn record(&self, before: Option<&Record>, wall: &str) -> Record {
        let mine = before.filter(|before| before.holder == self.me);
        let transitions = before.map_or(0, |before| before.transitions);
        Record {
            holder: self.me.clone(),
            duration_seconds: u32::try_from(self.timing.duration.as_secs()).unwrap_or(u32::MAX),
            acquired: mine.map_or(wall, |mine| &mine.acquired).into(),
            renewed: wall.into(),
            transitions: if mine.is_some() || before.is_none() { transitions } else { transitions + 1 },
        }
    }

    /// Takes the result of a read: the Lease, or that there is none. A read that failed changes nothing that is known.
    pub fn read(&mut self, now: Duration, found: Option<Option<Versioned>>) {
        match found {
            None => self.due = now + self.timing.retry,
            Some(None) => {
                (self.seen, self.absent, self.due) = (None, true, now);
                self.held_until = None;
            }
            Some(Some(found)) => {
                self.absent = false;
                if found.record.holder != self.me {
                    // Somebody took it by force, before its time.
                    self.held_until = None;
                }
                // Only another record is a sign of life. The version alone also changes when somebody sets a label.
                let since = self
                    .seen
                    .as_ref()
                    .filter(|(seen, _)| seen.record == found.record)
                    .map(|(_, since)| *since);
                let since = since.unwrap_or(now);
                let expires = since + self.wait_for(&found.record);
                let free = found.record.holder.is_empty() || found.record.holder == self.me;
                self.due = if free { now } else { expires.min(now + self.timing.retry) };
                self.seen = Some((found, since));
            }
        }
    }

    /// A write that began then ended now.
    pub fn wrote(&mut self, began: Duration, now: Duration, outcome: Wrote) {
        match outcome {
            Wrote::Accepted(written) => {
                self.absent = false;
                self.seen = Some((written, now));
                // From when it began: others can have seen it from then on.
                self.held_until = Some(began + self.timing.renew_deadline);
                self.due = began + self.timing.retry;
            }
            // What it says now must be known before anything else; if it is still ours, we go on.
            Wrote::Outdated => (self.seen, self.absent, self.due) = (None, false, now),
            Wrote::Unknown => {
                (self.seen, self.absent) = (None, false);
                self.due = (began + self.timing.retry).max(now + self.timing.retry / 4);
            }
        }
    }

    /// Gives the Lease up, if we hold it: the record to write, and onto which version.
    pub fn release(&mut self, now: Duration, wall: &str) -> Option<(Record, String)> {
        let held = self.held_until(now).is_some();
        self.held_until = None;
        let (seen, _) = self.seen.as_ref().filter(|(seen, _)| held && seen.record.holder == self.me)?;
        let record = Record {
            holder: String::new(),
            // The API server does not take 0.
            duration_seconds: 1,
            renewed: wall.into(),
            ..seen.record.clone()
        };
        Some((record, seen.version.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Timing = Timing::DEFAULT;

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    fn theirs(renewed: &str, version: &str) -> Versioned {
        let record = Record {
            holder: "other".into(),
            duration_seconds: 10,
            renewed: renewed.into(),
            ..Record::default()
        };
        Versioned { record, version: version.into() }
    }

    fn accepted(act: Act, version: &str) -> Versioned {
        match act {
            Act::Write(record, _) => Versioned { record, version: version.into() },
            other => panic!("{other:?}"),
        }
    }

    /// A candidate that has got a Lease that was not there.
    fn leader(began: f64) -> Election {
        let mut election = Election::new("me".into(), T);
        assert_eq!(election.next(seconds(began), "w0"), Act::Read);
        election.read(seconds(began), Some(None));
        let act = election.next(seconds(began), "w0");
        assert!(matches!(act, Act::Write(_, None)), "created, not updated: {act:?}");
        election.wrote(seconds(began), seconds(began + 0.1), Wrote::Accepted(accepted(act, "1")));
        election
    }

    #[test]
    fn a_lease_that_is_not_there_is_created_and_renewed_every_retry() {
        let mut election = leader(0.0);
        assert_eq!(election.held_until(seconds(1.0)), Some(T.renew_deadline));
        assert_eq!(election.next(seconds(1.0), "w1"), Act::Wait(T.retry));
        let act = election.next(T.retry, "w2");
        let Act::Write(record, version) = act.clone() else { panic!("{act:?}") };
        assert_eq!((record.acquired.as_str(), record.renewed.as_str(), record.transitions), ("w0", "w2", 0));
        assert_eq!(version.as_deref(), Some("1"));
        election.wrote(T.retry, seconds(2.5), Wrote::Accepted(accepted(act, "2")));
        assert_eq!(election.held_until(seconds(2.5)), Some(T.retry + T.renew_deadline), "from when it began");
    }

    #[test]
    fn a_lease_that_is_renewed_is_left_to_its_holder_however_old_its_times_are() {
        let mut election = Election::new("me".into(), T);
        for second in (0..60).step_by(2) {
            assert_eq!(election.next(seconds(second.into()), "w"), Act::Read);
            // A holder whose wall clock stands in 1999.
            let renewed = format!("1999-01-01T00:00:{second:02}Z");
            election.read(seconds(second.into()), Some(Some(theirs(&renewed, &second.to_string()))));
        }
        assert_eq!(election.held_until(seconds(60.0)), None);
    }

    #[test]
    fn a_lease_that_stands_still_is_taken_when_its_duration_has_passed_since_we_saw_it_change() {
        let mut election = Election::new("me".into(), T);
        election.read(seconds(5.0), Some(Some(theirs("w", "7"))));
        // A label was set: the version moved, the record did not.
        election.read(seconds(9.0), Some(Some(theirs("w", "8"))));
        election.read(seconds(14.5), Some(Some(theirs("w", "8"))));
        assert_eq!(
            election.next(seconds(14.9), "w9"),
            Act::Wait(seconds(15.0)),
            "and not a whole retry later"
        );
        let Act::Write(record, version) = election.next(seconds(15.0), "w9") else { panic!() };
        assert_eq!((record.holder.as_str(), record.transitions, version.as_deref()), ("me", 1, Some("8")));
    }

    #[test]
    fn a_lease_that_was_given_up_is_taken_at_once() {
        let mut holder = leader(0.0);
        let (record, version) = holder.release(seconds(1.0), "w1").unwrap();
        assert_eq!((record.holder.as_str(), version.as_str()), ("", "1"));
        assert_eq!(holder.held_until(seconds(1.0)), None);
        let mut election = Election::new("next".into(), T);
        election.read(seconds(2.0), Some(Some(Versioned { record, version: "2".into() })));
        assert!(matches!(election.next(seconds(2.0), "w2"), Act::Write(_, Some(_))));
    }

    #[test]
    fn nothing_is_given_up_that_may_be_somebody_elses() {
        assert_eq!(Election::new("me".into(), T).release(Duration::ZERO, "w"), None);
        assert_eq!(leader(0.0).release(T.renew_deadline, "w"), None, "it has lapsed");
    }

    #[test]
    fn who_lost_a_race_reads_what_came_of_it() {
        let mut election = leader(0.0);
        election.wrote(seconds(2.0), seconds(2.1), Wrote::Outdated);
        assert_eq!(election.next(seconds(2.1), "w"), Act::Read);
        election.read(seconds(2.2), Some(Some(theirs("w", "9"))));
        assert_eq!(election.next(seconds(2.3), "w"), Act::Wait(seconds(4.2)));
        assert_eq!(election.held_until(seconds(2.3)), None, "somebody took it by force, before its time");
    }

    #[test]
    fn a_renewal_whose_reply_was_lost_does_not_extend_what_is_held() {
        let mut election = leader(0.0);
        election.wrote(seconds(2.0), seconds(5.5), Wrote::Unknown);
        assert_eq!(election.held_until(seconds(5.5)), Some(T.renew_deadline));
        assert_eq!(election.held_until(T.renew_deadline), None);
        assert_eq!(election.next(seconds(5.9), "w"), Act::Wait(seconds(6.0)));
        assert_eq!(election.next(seconds(6.0), "w"), Act::Read);
    }
}
