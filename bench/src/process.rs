//! The cost of a process, from `/proc`, and the speed of the machine.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use jiff::Timestamp;

/// What one process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// User and system time, in seconds; the kernel counts in hundredths.
    pub(crate) cpu_seconds: f64,
    /// The peak resident memory (VmHWM).
    pub(crate) peak_mib: f64,
}

impl Usage {
    pub(crate) fn of(process: u32) -> Result<Self> {
        let read = |file: &str| {
            let path = format!("/proc/{process}/{file}");
            fs::read_to_string(&path).with_context(|| format!("reading {path}"))
        };
        let peak_kib = field(&read("status")?, "VmHWM").context("no VmHWM")?;
        let cpu_seconds = cpu_seconds(&read("stat")?).context("no CPU time")?;
        Ok(Self { cpu_seconds, peak_mib: peak_kib / 1024.0 })
    }
}

fn field(status: &str, name: &str) -> Option<f64> {
    let line =
        status.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':')))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The CPU time in a process' file `stat`, without that of children that have ended.
fn cpu_seconds(stat: &str) -> Option<f64> {
    // The name is in parentheses, and may contain anything. Behind it, utime and stime are the twelfth and the thirteenth field.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    let ticks_per_second = u32::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    Some(ticks / f64::from(ticks_per_second))
}

/// The beginning of a measurement.
pub(crate) struct Meter {
    pub(crate) at: Timestamp,
    pub(crate) usage: Usage,
    speed: f64,
}

impl Meter {
    pub(crate) fn start(usage: Usage) -> Self {
        let speed = tokio::task::block_in_place(speed);
        Self { usage, speed, at: Timestamp::now() }
    }

    /// The speed of the machine, right before and right after a measurement.
    pub(crate) fn speed(&self) -> f64 {
        f64::midpoint(self.speed, tokio::task::block_in_place(speed))
    }
}

/// How long the machine's speed is measured.
const SPEED_FOR: Duration = Duration::from_millis(60);
/// How many numbers are sorted at a time: half a mebibyte, more than the private cache of a core on small machines.
const SPEED_NUMBERS: u64 = 1 << 16;

/// How often per second the machine sorts the same numbers, on all cores together. The speed of a virtual machine also depends on its
/// neighbours, which no counter of its own kernel shows. So this figure says whether two figures were measured at the same speed.
fn speed() -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_something() {
        let before = Usage::of(std::process::id()).unwrap();
        while Usage::of(std::process::id()).unwrap().cpu_seconds <= before.cpu_seconds {
            sorts_per_second();
        }
        assert!(before.peak_mib > 1.0);
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status = "VmHWMx:\t1 kB\nVmHWM:\t 2048 kB\n";
        assert_eq!(field(status, "VmHWM"), Some(2048.0));
        assert_eq!(field(status, "Vm"), None);
    }

    #[test]
    fn the_name_of_a_program_does_not_hide_its_cpu_time() {
        let second = rustix::param::clock_ticks_per_second();
        let stat = format!("7 (a) b) S 1 7 7 0 -1 0 1 1 1 1 {second} {second} 5 5 20 0");
        assert_eq!(cpu_seconds(&stat), Some(2.0));
    }
}
