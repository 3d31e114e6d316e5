# The box of a node: the first process in namespaces of its own. Its argument is the folder of the instance. node.sh starts it.
set -eu
folder=$1
# bash gives a background job /dev/null as its input, so the pipe gets a number of its own.
exec 3<&0 </dev/null
cd /

# Of the file system of /, only this folder can be written to. What is mounted below it, as /tmp or /home may be, stays as it is.
mount --bind "$folder" "$folder"
mount -o remount,bind,ro /
for place in /run /var/lib /var/log; do
  mount -t tmpfs -o mode=755 tmpfs "$place"
done
export TMPDIR=/run
# So that a mount that kubelet makes for a Pod reaches the containers that are there already.
mount --make-rshared /

# These are of the whole machine. kubelet sets them, and never sets them back; here it finds files that say what it wants.
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  name=${setting%=*} file=/run/${setting##*/}
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/$name"
done

# Neither the pipe nor the lock is for the programs.
run() {
  "$@" 3<&- 9<&- >"$folder/logs/$1.log" 2>&1 &
}
trap 'tail -n 4 "$folder"/logs/{containerd,kubelet,kube-proxy}.log' EXIT

# It ends with the pipe. That is no failure, though it is one of read.
read -r _ <&3 || true &
run containerd --config "$folder/containerd.toml"
until ctr --address "$folder/containerd.sock" version >/dev/null 2>&1; do
  # If one of the two has ended, this ends.
  [ "$(jobs -r | wc -l)" -eq 2 ]
  sleep 0.1
done
run kubelet --config "$folder/kubelet.yaml" --kubeconfig "$folder/kubelet.kubeconfig" --root-dir "$folder/kubelet" --node-ip NODE-ADDRESS
run kube-proxy --config "$folder/kube-proxy.yaml"
# Whichever ends first, ends the box.
wait -n
