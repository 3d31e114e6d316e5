// What a node runs Pods with, as tools of a module of its own: the versions that it depends on are not Kubernetes'. To move to another
// release, change the versions here and in ../src/binaries.rs, and run `go mod tidy`. The node's kubelet and kube-proxy are of
// ../control-plane; kubernetes.sum has the checksums of what only they need.
module pintle.dev/testbed/node

go 1.26.0

tool (
	github.com/containerd/containerd/v2/cmd/containerd
	github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2
	github.com/containerd/containerd/v2/cmd/ctr
	github.com/containernetworking/plugins/plugins/ipam/host-local
	github.com/containernetworking/plugins/plugins/main/bridge
	github.com/containernetworking/plugins/plugins/main/loopback
)

require (
	github.com/containerd/containerd/v2 v2.4.2
	github.com/containernetworking/plugins v1.9.1
)
