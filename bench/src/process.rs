//! The cost of a process, from `/proc`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

/// What one process has used so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// User and system time, in seconds; the kernel counts in hundredths.
    pub(crate) cpu_seconds: f64,
    /// The peak resident memory (VmHWM), in bytes.
    pub(crate) peak_bytes: u64,
    /// The resident memory (VmRSS), in bytes.
    pub(crate) resident_bytes: u64,
    /// How often each thread went to sleep by itself. Every timer that fires counts once.
    sleeps: BTreeMap<OsString, u64>,
}

impl Usage {
    /// How often the threads that still exist went to sleep since an earlier moment.
    pub(crate) fn sleeps_since(&self, earlier: &Self) -> usize {
        let before = |thread: &OsString| earlier.sleeps.get(thread).copied().unwrap_or(0);
        let sleeps: u64 =
            self.sleeps.iter().map(|(thread, sleeps)| sleeps.saturating_sub(before(thread))).sum();
        usize::try_from(sleeps).unwrap_or(usize::MAX)
    }
}

/// The usage of a process.
pub(crate) fn usage(process: u32) -> Result<Usage> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))
        .with_context(|| format!("process {process} is gone"))?;
    let stat = Stat::read(process).with_context(|| format!("process {process} is gone"))?;
    let mut sleeps = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?;
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        sleeps.insert(thread.file_name(), field(&status, "voluntary_ctxt_switches").unwrap_or(0));
    }
    Ok(Usage {
        cpu_seconds: stat.seconds,
        peak_bytes: field(&status, "VmHWM").context("no VmHWM")? << 10,
        resident_bytes: field(&status, "VmRSS").context("no VmRSS")? << 10,
        sleeps,
    })
}

fn field(status: &str, name: &str) -> Option<u64> {
    let line =
        status.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[derive(Clone, Debug)]
struct Stat {
    name: String,
    parent: u32,
    /// Without children that have ended.
    seconds: f64,
}

impl Stat {
    fn read(process: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name is in parentheses, and may contain anything.
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(Self {
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            seconds: (ticks(11)? + ticks(12)?) / ticks_per_second(),
        })
    }
}

fn ticks_per_second() -> f64 {
    f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100))
}

/// The CPU time of the whole machine at one moment, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    busy: f64,
    /// The CPU time of this process and its descendants, by the name of the program.
    ours: BTreeMap<String, f64>,
}

impl Machine {
    pub(crate) fn now() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let first = text.lines().next().context("an empty /proc/stat")?;
        let ticks: Vec<f64> =
            first.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
        // user, nice, system, then idle and iowait, then irq, softirq, steal. The time of guests is part of user.
        let busy = [0, 1, 2, 5, 6, 7].iter().filter_map(|index| ticks.get(*index)).sum::<f64>();
        Ok(Self { busy: busy / ticks_per_second(), ours: ours() })
    }

    /// How many cores all other processes kept busy since an earlier moment. It says how far a figure can be trusted.
    pub(crate) fn others_since(&self, earlier: &Self, seconds: f64) -> f64 {
        let ours = self.ours.values().sum::<f64>() - earlier.ours.values().sum::<f64>();
        ((self.busy - earlier.busy - ours) / seconds.max(0.01)).max(0.0)
    }

    /// The CPU time of one of our programs since an earlier moment, in seconds.
    pub(crate) fn program_since(&self, earlier: &Self, name: &str) -> f64 {
        let of = |machine: &Self| machine.ours.get(name).copied().unwrap_or(0.0);
        (of(self) - of(earlier)).max(0.0)
    }
}

/// How long the machine's speed is measured.
const SPEED_FOR: Duration = Duration::from_millis(60);
/// How many numbers are sorted at a time: half a mebibyte, more than the private cache of a core on small machines.
const SPEED_NUMBERS: u64 = 1 << 16;

/// How often per second the machine sorts the same numbers, on all cores together. The speed of a virtual machine also depends on its
/// neighbours, which no counter of its own kernel shows. So this figure says whether two figures were measured at the same speed.
pub(crate) fn speed() -> f64 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let cores: Vec<_> = (0..cores).map(|_| scope.spawn(sorts_per_second)).collect();
        cores.into_iter().map(|core| core.join().unwrap_or(f64::NAN)).sum()
    })
}

fn sorts_per_second() -> f64 {
    let unsorted: Vec<u64> =
        (0..SPEED_NUMBERS).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let (began, mut sorts) = (Instant::now(), 0.0);
    while began.elapsed() < SPEED_FOR {
        let mut numbers = unsorted.clone();
        numbers.sort_unstable();
        std::hint::black_box(&numbers);
        sorts += 1.0;
    }
    sorts / began.elapsed().as_secs_f64()
}

/// The CPU time of this process and its descendants, by name.
fn ours() -> BTreeMap<String, f64> {
    let mut processes = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        if let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
            && let Some(stat) = Stat::read(process)
        {
            processes.insert(process, stat);
        }
    }
    let own = std::process::id();
    let is_ours = |mut process: u32| {
        loop {
            if process == own {
                return true;
            }
            match processes.get(&process) {
                Some(stat) if stat.parent != 0 => process = stat.parent,
                _ => return false,
            }
        }
    };
    let mut ours = BTreeMap::new();
    for (process, stat) in &processes {
        if is_ours(*process) {
            *ours.entry(stat.name.clone()).or_default() += stat.seconds;
        }
    }
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let usage = usage(std::process::id()).unwrap();
        assert!(usage.peak_bytes >= usage.resident_bytes && usage.resident_bytes > 1 << 20);
        assert_eq!(usage.sleeps_since(&usage), 0);
        assert!(!Machine::now().unwrap().ours.is_empty());
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "VmHWMx:\t1 kB\nVmHWM:\t 2048 kB\n";
        assert_eq!(field(status, "VmHWM"), Some(2048));
        assert_eq!(field(status, "Vm"), None);
    }
}
