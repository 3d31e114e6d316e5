//! The only place that asks the operating system for the time and for randomness. A task of a simulated host has a [`Virtual`] clock
//! instead, which its [`Spawner`](crate::Spawner) gives it.
#![allow(clippy::disallowed_methods, reason = "this is the module that the lint sends everybody to")]

use std::{
    cell::Cell,
    io::Read,
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

tokio::task_local! {
    static VIRTUAL: Arc<Virtual>;
}

thread_local! {
    /// What was asked of the operating system on this thread since it was forbidden.
    static FORBIDDEN: Cell<Option<Touched>> = const { Cell::new(None) };
}

/// The requests to the operating system of a thread on which they are forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touched {
    Nothing,
    Something(&'static str),
}

/// The time of the wall clock.
pub fn now() -> Timestamp {
    VIRTUAL.try_with(|clock| clock.now()).unwrap_or_else(|_| {
        touch("the time on the wall");
        Timestamp::now()
    })
}

/// The time since some moment: for a simulated host its beginning, and otherwise some days before this process first asked. It only runs
/// forward. It is tokio's time, which a test can stop and advance.
pub fn monotonic() -> Duration {
    // Tests that run side by side stop and advance the time each for itself, and have this start in common. A time before it would seem to
    // stand still. So it is some days ago, and by the clock that no test has advanced.
    static START: LazyLock<Instant> = LazyLock::new(|| {
        let now = std::time::Instant::now();
        Instant::from_std(now.checked_sub(Duration::from_secs(1 << 20)).unwrap_or(now))
    });
    VIRTUAL.try_with(|clock| clock.origin.elapsed()).unwrap_or_else(|_| START.elapsed())
}

/// Random bytes that nobody can guess, from the operating system. In a simulated host, its seed determines them.
///
/// # Errors
/// When the operating system has no random bytes.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    if VIRTUAL.try_with(|clock| clock.fill(&mut bytes)).is_err() {
        touch("random bytes");
        std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    }
    Ok(bytes)
}

/// A name of this process for Leases, Events and audit logs: the Pod's or the machine's, or else this one, and eight digits that it has to
/// itself. A container that was restarted has its Pod's name in common with the one before.
///
/// # Errors
/// When the operating system has no random bytes to give.
pub fn process_name(default: &str) -> std::io::Result<String> {
    let from_env = |name| std::env::var(name).ok().filter(|name: &String| !name.is_empty());
    let name = from_env("POD_NAME").or_else(|| from_env("HOSTNAME")).unwrap_or_else(|| default.into());
    // With the digits it must fit into the 128 characters that an Event has for it.
    let name: String = name.chars().take(100).collect();
    Ok(format!("{name}_{:08x}", u32::from_le_bytes(random()?)))
}

fn touch(what: &'static str) {
    FORBIDDEN.with(|forbidden| {
        if forbidden.get() == Some(Touched::Nothing) {
            forbidden.set(Some(Touched::Something(what)));
        }
    });
}

/// From now on, records what this thread asks of the operating system, for [`touched`].
pub fn forbid() {
    FORBIDDEN.with(|forbidden| forbidden.set(Some(Touched::Nothing)));
}

/// Ends [`forbid`], and returns the name of the first thing that this thread asked of the operating system since.
pub fn touched() -> Option<&'static str> {
    FORBIDDEN.with(|forbidden| match forbidden.take() {
        Some(Touched::Something(what)) => Some(what),
        _ => None,
    })
}

/// The clock and the random numbers of a simulated host. Both depend only on the arguments of [`Virtual::new`] and on tokio's time.
#[derive(Debug)]
pub struct Virtual {
    origin: Instant,
    epoch: Timestamp,
    /// The error of the host's wall clock.
    skew: Mutex<SignedDuration>,
    random: Mutex<Random>,
}

impl Virtual {
    /// A clock whose wall clock shows `epoch` now, and that runs like tokio's.
    pub fn new(epoch: Timestamp, seed: u64) -> Self {
        let random = Mutex::new(Random::new(seed));
        Self { origin: Instant::now(), epoch, skew: Mutex::default(), random }
    }

    /// The time of its wall clock.
    pub fn now(&self) -> Timestamp {
        let skew = *self.skew.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        // Both are far from the ends of a timestamp's range.
        self.epoch.saturating_add(passed.saturating_add(skew)).unwrap_or(self.epoch)
    }

    /// Makes the wall clock wrong by this much from now on. As on a real machine, this does not change durations.
    pub fn set_skew(&self, skew: SignedDuration) {
        *self.skew.lock().unwrap_or_else(PoisonError::into_inner) = skew;
    }

    fn fill(&self, bytes: &mut [u8]) {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        for chunk in bytes.chunks_mut(8) {
            chunk.iter_mut().zip(random.next_u64().to_le_bytes()).for_each(|(to, from)| *to = from);
        }
    }

    /// Calls a function with this clock, since the answers of a host depend on its time.
    pub fn during<T>(self: &Arc<Self>, ask: impl FnOnce() -> T) -> T {
        VIRTUAL.sync_scope(Arc::clone(self), ask)
    }

    /// Runs a future with this clock.
    pub fn scope<F: Future>(self: Arc<Self>, future: F) -> impl Future<Output = F::Output> {
        VIRTUAL.scope(self, future)
    }
}

/// A sequence of numbers that a seed determines (SplitMix64). They are evenly distributed, but not secret.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence that continues from here, and differs for each seed except 0.
    pub fn apart(&self, seed: u64) -> Self {
        Self(self.0 ^ seed.wrapping_mul(0xD6E8_FEB8_6659_FD93))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64().checked_rem(bound).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn virtual_clock(seed: u64) -> Arc<Virtual> {
        Arc::new(Virtual::new(Timestamp::constant(946_684_800, 0), seed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_simulated_host_is_told_nothing_by_the_operating_system() {
        forbid();
        let told = |seed| {
            virtual_clock(seed).scope(async {
                tokio::time::sleep(Duration::from_secs(90)).await;
                (now(), monotonic(), random::<12>().unwrap())
            })
        };
        let (first, again, other) = (told(1).await, told(1).await, told(2).await);
        assert_eq!(first, again);
        assert_eq!(first.0.to_string(), "2000-01-01T00:01:30Z");
        assert_ne!(first.2, other.2);
        assert_eq!(touched(), None);
    }

    #[tokio::test]
    async fn who_asks_the_operating_system_where_it_is_forbidden_is_named() {
        forbid();
        now();
        random::<4>().unwrap();
        assert_eq!(touched(), Some("the time on the wall"));
        now();
        assert_eq!(touched(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_wall_clock_leaves_durations_alone() {
        let clock = virtual_clock(0);
        clock.set_skew(SignedDuration::from_hours(-1));
        let told = Arc::clone(&clock).scope(async { (now(), monotonic()) }).await;
        assert_eq!((told.0.to_string().as_str(), told.1), ("1999-12-31T23:00:00Z", Duration::ZERO));
    }
}
