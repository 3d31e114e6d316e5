//! Control groups, which hold a process to the memory that `deploy/` gives it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};

use pintle_testbed::Server;

/// What `deploy/` gives the operator and the gateway, in bytes.
pub const LIMIT_BYTES: u64 = 512 << 20;

/// The flag for a process that is in no group of its own.
const LIMIT: &str = "--memory-budget=512Mi";

/// A control group of [`LIMIT_BYTES`].
pub struct Group(PathBuf);

impl Group {
    /// One of version 1 or 2, where this machine lets a test make one. The name is part of its own.
    pub fn make(name: &str) -> Option<Self> {
        for (root, file) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let path = Path::new(root).join(format!("pintle-test-{name}-{}", std::process::id()));
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Self(path);
            if fs::write(group.0.join(file), LIMIT_BYTES.to_string()).is_ok() {
                println!("        the {name} is in a control group of its own: {}", group.0.display());
                return Some(group);
            }
        }
        println!(
            "        no control group can be made here: the {name} is told its limit, and its peak is compared"
        );
        None
    }

    /// The command by way of which a process comes to be in it, and the flags that it needs besides: without a group it is told its limit.
    pub fn held(group: Option<&Self>) -> anyhow::Result<(Vec<&str>, &'static [&'static str])> {
        let Some(group) = group else { return Ok((Vec::new(), &[LIMIT])) };
        let join = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        let path = group.0.to_str().context("a path that is not UTF-8")?;
        Ok((vec!["sh", "-c", join, path], &[]))
    }

    /// How many processes in it were killed for want of memory.
    pub fn kills(&self) -> anyhow::Result<u64> {
        kills_in(&self.0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can go only when nothing is in it any more.
        let _ = fs::remove_dir(&self.0);
    }
}

/// How many processes in the control group of this process were killed for want of memory.
pub fn kills_beside(pid: u32) -> anyhow::Result<u64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    // `4:memory:/path` in version 1, which has a hierarchy of each controller, and `0::/path` in version 2.
    let of = |controller: &str| {
        let mut lines = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        lines.find(|(controllers, _)| controllers.split(',').any(|name| name == controller))
    };
    let (root, (_, path)) = of("memory")
        .map(|group| ("/sys/fs/cgroup/memory", group))
        .or_else(|| of("").map(|group| ("/sys/fs/cgroup", group)))
        .context("it is in no control group of memory")?;
    kills_in(&Path::new(root).join(path.trim_start_matches('/')))
}

fn kills_in(group: &Path) -> anyhow::Result<u64> {
    let events = ["memory.oom_control", "memory.events"].map(|file| fs::read_to_string(group.join(file)));
    let events = events.into_iter().flatten().next().context("the control group does not say")?;
    let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    Ok(kills.context("the control group does not count kills")?.trim().parse()?)
}

/// Sees that a server that is held to [`LIMIT_BYTES`] lives after some work, and that it and its group have never had more.
pub fn judge(server: &mut Server, group: Option<&Group>, outcome: anyhow::Result<()>) -> anyhow::Result<()> {
    if let Err(ended) = server.check() {
        return Err(ended.context(format!("after {:?}", outcome.err())));
    }
    let peak = peak_bytes(server.id())?;
    println!("        the peak was {} MiB", peak >> 20);
    if let Some(group) = group {
        ensure!(group.kills()? == 0, "something in the control group was killed for want of memory");
    }
    outcome.with_context(|| server.end_of_log())?;
    ensure!(peak < LIMIT_BYTES, "the peak was {} MiB", peak >> 20);
    Ok(())
}

/// The most that a process has taken, in bytes.
pub fn peak_bytes(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    Ok(peak.context("no VmHWM")?.trim().parse::<u64>()? << 10)
}
