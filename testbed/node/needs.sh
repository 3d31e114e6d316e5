# Prints the first thing that this machine lacks for a node that runs Pods, if there is one. Nothing of the machine is changed: what is
# tried, is tried in namespaces that end with it.
set -u
PATH=$PATH:/usr/sbin:/sbin

lacks() {
  echo "$1"
  exit
}

[ "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)" != cgroup2fs ] ||
  lacks 'cgroups of version 1: with version 2, nobody has tried the node yet'
[ "$(id -u)" = 0 ] || lacks 'root, who may make namespaces and cgroups'
unshare --mount --net --ipc --uts --pid --fork true 2>/dev/null || lacks 'the right to make namespaces'
# The programs of the node, and curl, which shows people what it does.
for program in runc nft ip curl; do
  command -v "$program" >/dev/null || lacks "$program; cargo xtask node --install brings it with apt"
done
# An image for Pods is made of them.
for file in /usr/sbin/nginx /etc/nginx/mime.types; do
  [ -e "$file" ] || lacks "$file, of nginx; cargo xtask node --install brings it with apt"
done
unshare --mount mount -t overlay -o lowerdir=/usr:/etc overlay /tmp 2>/dev/null || lacks 'overlayfs'
for folder in "${TMPDIR:-/tmp}" "${PINTLE_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/pintle}"; do
  case $(realpath -m "$folder")/ in
  /run/* | /var/lib/* | /var/log/*)
    lacks "a folder in the place of $folder: the node has a /run, /var/lib and /var/log of its own; name one in TMPDIR or PINTLE_CACHE"
    ;;
  esac
done
# The containers' files are there, and overlayfs does not take itself for its upper layer.
[ "$(stat -fc %T "${TMPDIR:-/tmp}")" != overlayfs ] || lacks 'a folder for temporary files outside of overlayfs; name one in TMPDIR'
unshare --net sh -c 'ip link add name pair0 type veth peer name pair1 && ip link add name bridge0 type bridge && nft add table ip pintle' 2>/dev/null ||
  lacks 'virtual network devices, bridges or nf_tables in its kernel'
for controller in cpu cpuset memory pids; do
  [ -w "/sys/fs/cgroup/$controller/cgroup.procs" ] || lacks "the cgroup controller $controller, to write to"
done
for range in 10.199.0.0/30 10.244.0.0/24 10.96.0.0/16; do
  # Another node of ours ends some time.
  ! { ip route show to root "$range" && ip route show to match "$range"; } | grep -qv -e '^default' -e 'dev pintle-node' ||
    lacks "the addresses $range, to which it has a route already"
done
[ -e /dev/kmsg ] || lacks '/dev/kmsg, which kubelet reads'
