# What of a node is outside of its box: the cgroups, the network, and the end of both. Runs in the namespaces of the node, but for that of
# processes, as
#
#     unshare --mount --net --ipc --uts bash node.sh FOLDER PROCESS PROGRAMS
#
# PROCESS is one in the network of the machine, PROGRAMS what comes before PATH. Whoever starts this has the other end of its input: with
# that, everything ends, however it comes to its end.
set -eu
folder=$1 machine=$2
export PATH=$3:$PATH:/usr/sbin:/sbin

# Addresses, routes and cgroups have the same names each time, so there is one node at a time. Whoever has the lock may clean up behind an
# earlier one. A lock on a folder that is there anyway leaves no file.
exec 9</sys/fs/cgroup
flock --nonblock 9 || { echo 'another node runs on this machine; waiting for its end' && flock 9; }

# Version 1 has a hierarchy of each controller.
tops=(/sys/fs/cgroup/*/)
[ "$(stat -fc %T /sys/fs/cgroup)" != cgroup2fs ] || tops=(/sys/fs/cgroup/)
groups=("${tops[@]/%/pintle-node}")

on_machine() {
  nsenter --net --target "$machine" ip "$@"
}

clean() {
  # The kernel does so, too, but later.
  on_machine link delete pintle-node 2>/dev/null || true
  for group in "${groups[@]}"; do
    # What was in there may need a moment to end.
    for _ in {1..100}; do
      [ -d "$group" ] || break
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done
}
clean
trap clean EXIT

mkdir -p "${groups[@]}"
if [ -d /sys/fs/cgroup/cpuset ]; then
  # A new one has neither, and then no process can be in it.
  for has in cpuset.cpus cpuset.mems; do
    cat "/sys/fs/cgroup/cpuset/$has" >"/sys/fs/cgroup/cpuset/pintle-node/$has"
  done
fi

# The machine reaches the node at 10.199.0.2, and by that its Pods and Services; the node reaches the API server at 10.199.0.1.
ip link set lo up
ip link add eth0 type veth peer name pintle-node netns "$machine"
ip address add 10.199.0.2/30 dev eth0
ip link set eth0 up
ip route add default via 10.199.0.1
on_machine address add 10.199.0.1/30 dev pintle-node
on_machine link set pintle-node up
on_machine route add 10.244.0.0/24 via 10.199.0.2
on_machine route add 10.96.0.0/16 via 10.199.0.2
# Of the node alone, as its host name is.
echo 1 >/proc/sys/net/ipv4/ip_forward
echo node-0 >/proc/sys/kernel/hostname

# The first process of its own is all that has to end for everything else to end with it: programs, containers, mounts.
unshare --pid --fork --kill-child --mount-proc bash "$folder/box.sh" "$folder"
