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
flock --nonblock 9 || touch "$folder/queue"
until flock --timeout 1 9; do
  # More than 128 says that nothing came in time, and 1 that the pipe has ended.
  read -rt 0.1 _ || [ $? -gt 128 ] || exit
done

# A hierarchy of each controller.
hierarchies=(/sys/fs/cgroup/*/)
groups=("${hierarchies[@]/%/pintle-node}")

on_machine() {
  nsenter --net --target "$machine" ip "$@"
}

clean() {
  # The kernel does so, too, but later.
  on_machine link delete pintle-node 2>/dev/null || true
  # What was in the groups may need a moment to end. Whoever stops the node waits for 30 seconds.
  local end=$((SECONDS + 10)) group rest
  while true; do
    rest=()
    for group in "${groups[@]}"; do
      [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || rest+=("$group")
    done
    [ ${#rest[@]} -gt 0 ] || return 0
    [ $SECONDS -lt $end ] || break
    sleep 0.1
  done
  echo "cannot be removed: ${rest[*]}"
  return 1
}
clean
trap 'clean || exit 1' EXIT

mkdir -p "${groups[@]}"
if [ -d /sys/fs/cgroup/cpuset ]; then
  # A new one has neither, and then no process can be in it.
  for file in cpuset.cpus cpuset.mems; do
    cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/pintle-node/$file"
  done
fi

# The machine reaches the node at its address, and by that its Pods and Services; the node reaches the API server at the machine's.
ip link set lo up
ip link add eth0 type veth peer name pintle-node netns "$machine"
ip address add NODE-ADDRESS/30 dev eth0
ip link set eth0 up
ip route add default via MACHINE-ADDRESS
on_machine address add MACHINE-ADDRESS/30 dev pintle-node
on_machine link set pintle-node up
on_machine route add 10.244.0.0/24 via NODE-ADDRESS
on_machine route add 10.96.0.0/16 via NODE-ADDRESS
touch "$folder/network"
# Of the node alone, as its host name is.
echo 1 >/proc/sys/net/ipv4/ip_forward
echo node-0 >/proc/sys/kernel/hostname

# The first process of its own is all that has to end for everything else to end with it: programs, containers, mounts.
unshare --pid --fork --kill-child --mount-proc bash "$folder/box.sh" "$folder"
