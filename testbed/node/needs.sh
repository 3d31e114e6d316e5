# Prints the first thing that this machine lacks for a node that runs Pods, if there is one. Nothing of the machine is changed: what is
# tried, is tried in namespaces that end with it.
set -u
PATH=$PATH:/usr/sbin:/sbin

lacks() {
  echo "$1"
  exit
}

[ "$(id -u)" = 0 ] || lacks 'root, who may make namespaces and cgroups'
unshare --mount --net --ipc --uts --pid --fork true 2>/dev/null || lacks 'the right to make namespaces'
# Of nginx there is an image, for Pods; the others are of the node, and curl shows people what is there.
for program in runc nft ip nginx curl; do
  command -v "$program" >/dev/null || lacks "$program; cargo xtask node --install brings it with apt"
done
unshare --mount mount -t overlay -o lowerdir=/usr:/etc overlay /tmp 2>/dev/null || lacks 'overlayfs'
# The containers' files are there, and overlayfs does not take itself for its upper layer.
[ "$(stat -fc %T "${TMPDIR:-/tmp}")" != overlayfs ] || lacks 'a folder for temporary files outside of overlayfs; name one in TMPDIR'
unshare --net sh -c 'ip link add name pair0 type veth peer name pair1 && ip link add name bridge0 type bridge && nft add table ip pintle' 2>/dev/null ||
  lacks 'virtual network devices, bridges or nf_tables in its kernel'
for controller in cpu cpuset memory pids; do
  # Version 1 has a hierarchy of each. In version 2 the root must have passed it on, as systemd makes it do.
  [ -w "/sys/fs/cgroup/$controller/cgroup.procs" ] ||
    { [ -w /sys/fs/cgroup/cgroup.procs ] && grep -qsw "$controller" /sys/fs/cgroup/cgroup.subtree_control; } ||
    lacks "the cgroup controller $controller, to write to"
done
for range in 10.199.0.0/30 10.244.0.0/24 10.96.0.0/16; do
  # Another node of ours ends some time.
  ! { ip route show to root "$range" && ip route show to match "$range"; } | grep -qv -e '^default' -e 'dev pintle-node' ||
    lacks "the addresses $range, to which it has a route already"
done
[ -e /dev/kmsg ] || lacks '/dev/kmsg, which kubelet reads'
