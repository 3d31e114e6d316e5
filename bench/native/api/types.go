// Package api has the types of bench.pintle.dev/v1. Its CRD is the one that the guest's types give (bench/guest/crd.yaml), so that
// both operators work on the same kind.
// +kubebuilder:object:generate=true
// +groupName=bench.pintle.dev
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of this package's kinds.
var GroupVersion = schema.GroupVersion{Group: "bench.pintle.dev", Version: "v1"}

// AddToScheme makes a scheme know this package's kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Bench{}, &BenchList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// BenchSpec is what the benchmark's operators make objects of.
type BenchSpec struct {
	// Replicas is how many Pods there are to be.
	Replicas int32 `json:"replicas,omitempty"`
	// Message goes into the ConfigMap and into the status.
	Message string `json:"message,omitempty"`
}

// BenchStatus is what became of a Bench.
type BenchStatus struct {
	// ObservedGeneration is the generation that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Message is the message of the spec that was last reconciled.
	Message string `json:"message"`
	// URL is where the Ingress leads.
	URL string `json:"url"`
	// ReadyReplicas is how many Pods are ready.
	ReadyReplicas int64 `json:"readyReplicas"`
	// Conditions has Ready.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Bench is the benchmark's custom resource.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Bench struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BenchSpec   `json:"spec,omitempty"`
	Status BenchStatus `json:"status,omitempty"`
}

// BenchList is a list of Benches.
// +kubebuilder:object:root=true
type BenchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Bench `json:"items"`
}
