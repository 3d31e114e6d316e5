//! Finds out how much memory this process may take, from its control groups of version 1 or 2.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A process without a limit of its own takes one in this many bytes of the machine's memory.
const MACHINE_SHARE: u64 = 2;

/// What is assumed if the system does not say, in bytes: the limit that `deploy/` gives a host.
const UNKNOWN_BYTES: u64 = 512 << 20;

/// How much memory this process may take, in bytes: the lowest limit of the control groups that it is in, or half of the machine's memory.
pub fn process_bytes() -> u64 {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let text = |path: &str| read(Path::new(path)).unwrap_or_default();
    let of_groups = of_groups(&text("/proc/self/cgroup"), &text("/proc/self/mountinfo"), read);
    let machine = machine_bytes(&text("/proc/meminfo"));
    match (of_groups, machine) {
        // A limit beyond the machine's memory limits nothing.
        (Some(group), Some(machine)) if group < machine => group,
        (_, Some(machine)) => machine / MACHINE_SHARE,
        (Some(group), None) => group,
        (None, None) => UNKNOWN_BYTES,
    }
}

fn machine_bytes(meminfo: &str) -> Option<u64> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Where control groups that count memory are mounted.
struct Mount {
    /// The control group that the mount shows as its root.
    root: PathBuf,
    point: PathBuf,
    /// The file with the limit.
    file: &'static str,
}

/// The lowest limit of the groups that a process is in and of their parents. `groups` and `mounts` are its `/proc/self/cgroup` and
/// `/proc/self/mountinfo`.
fn of_groups(groups: &str, mounts: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        // `4:memory:/kubepods/pod1`; of version 2, `0::/kubepods/pod1`.
        let mut parts = line.splitn(3, ':');
        let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let file = match controllers {
            "" => "memory.max",
            _ if controllers.split(',').any(|name| name == "memory") => "memory.limit_in_bytes",
            _ => return None,
        };
        let mount = mounts.lines().filter_map(mount).find(|mount| mount.file == file)?;
        // If the mount does not contain the group, its root is the group: that is so in a container.
        let below = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let own = mount.point.join(below);
        let around = own.ancestors().take_while(|path| path.starts_with(&mount.point));
        around.filter_map(|path| limit(&read(&path.join(mount.file))?)).min()
    });
    limits.min()
}

/// A line of mountinfo: `31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw`, with any number of words before the hyphen.
fn mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (place.next()?.into(), place.next()?.into());
    let mut kind = kind.split(' ');
    let file = match (kind.next()?, kind.nth(1)?) {
        ("cgroup2", _) => "memory.max",
        ("cgroup", options) if options.split(',').any(|option| option == "memory") => "memory.limit_in_bytes",
        _ => return None,
    };
    Some(Mount { root, point, file })
}

/// A limit in bytes; none for `max`. Without a limit, version 1 shows the largest possible number of pages, which is beyond every
/// machine.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The text is no quantity of memory, or less than a host can work with.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an amount of memory of at least 128Mi, such as 512Mi or 2Gi")]
pub struct QuantityError;

/// Reads a quantity of memory as Kubernetes writes it: `512Mi`, `2Gi`, or bytes.
///
/// # Errors
/// When the text is no quantity, or less than a host can work with.
pub fn quantity(text: &str) -> Result<u64, QuantityError> {
    /// Twice what a host keeps.
    const BYTES_MIN: u64 = 128 << 20;
    size(text).ok().filter(|bytes| *bytes >= BYTES_MIN).ok_or(QuantityError)
}

/// The text is no quantity of memory.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an amount of memory, such as 512Ki or 1Mi")]
pub struct SizeError;

/// Reads any quantity of memory as Kubernetes writes it.
///
/// # Errors
/// When the text is no quantity.
pub fn size(text: &str) -> Result<u64, SizeError> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("", 0)];
    let parsed = units.into_iter().find_map(|(unit, shift)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << shift)
    });
    parsed.ok_or(SizeError)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn found(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        let files: BTreeMap<&Path, &str> =
            files.iter().map(|(path, text)| (Path::new(*path), *text)).collect();
        of_groups(groups, mounts, |path| files.get(path).map(|text| (*text).to_owned()))
    }

    #[test]
    fn of_version_2_the_least_limit_of_all_groups_around_counts() {
        let groups = "0::/kubepods.slice/pod1.slice/host.scope\n";
        let mounts = "25 20 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let at = |path: &str| format!("/sys/fs/cgroup/{path}memory.max");
        let (own, pod) = (at("kubepods.slice/pod1.slice/host.scope/"), at("kubepods.slice/pod1.slice/"));
        assert_eq!(found(groups, mounts, &[(&own, "536870912\n")]), Some(512 * MIB));
        assert_eq!(found(groups, mounts, &[(&own, "max\n"), (&pod, "268435456\n")]), Some(256 * MIB));
        assert_eq!(found(groups, mounts, &[(&own, "536870912\n"), (&pod, "268435456\n")]), Some(256 * MIB));
        assert_eq!(found(groups, mounts, &[(&own, "max\n")]), None);
        assert_eq!(found(groups, mounts, &[]), None, "the root has no such file");
    }

    #[test]
    fn of_version_1_the_controller_of_memory_counts() {
        let groups = "5:devices:/a\n4:cpu,memory:/process_api/b59\n0::/\n";
        let mounts = "36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,cpu,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let at = |path: &str| format!("/sys/fs/cgroup/memory/{path}memory.limit_in_bytes");
        let own = at("process_api/b59/");
        assert_eq!(found(groups, mounts, &[(&own, "536870912\n")]), Some(512 * MIB));
        // No limit, as it is said there.
        let none = "9223372036854771712\n";
        assert_eq!(found(groups, mounts, &[(&own, none), (&at(""), "1073741824\n")]), Some(1024 * MIB));
    }

    #[test]
    fn in_a_container_the_mount_shows_the_containers_own_group_as_its_root() {
        let files = [("/sys/fs/cgroup/memory.max", "536870912\n")];
        // With a namespace of groups, and without.
        for (group, root) in [("/", "/"), ("/kubepods/pod1/c1", "/kubepods/pod1/c1"), ("/../c2", "/")] {
            let groups = format!("0::{group}\n");
            let mounts = format!("25 20 0:22 {root} /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
            assert_eq!(found(&groups, &mounts, &files), Some(512 * MIB), "{group} {root}");
        }
    }

    #[test]
    fn a_quantity_is_read_as_kubernetes_writes_it() {
        assert_eq!(quantity("512Mi"), Ok(512 * MIB));
        assert_eq!(quantity("2Gi"), Ok(2048 * MIB));
        assert_eq!(quantity("536870912"), Ok(512 * MIB));
        for wrong in ["", "64Mi", "0.5Gi", "512M", "-1Gi", "Mi", "99999999Ti"] {
            assert!(quantity(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn this_process_may_take_something() {
        assert!(process_bytes() > 16 * MIB);
        assert_eq!(machine_bytes("MemTotal:       24683736 kB\nMemFree: 1 kB\n"), Some(24_683_736 << 10));
    }
}
