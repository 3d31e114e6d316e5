package api

// What `controller-gen object` would write for these types.

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyInto copies a Bench into another.
func (in *Bench) DeepCopyInto(out *Bench) {
	*out = *in
	out.TypeMeta = in.TypeMeta
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec = in.Spec
	in.Status.DeepCopyInto(&out.Status)
}

// DeepCopy copies a Bench.
func (in *Bench) DeepCopy() *Bench {
	if in == nil {
		return nil
	}
	out := new(Bench)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies a Bench as an object.
func (in *Bench) DeepCopyObject() runtime.Object {
	if c := in.DeepCopy(); c != nil {
		return c
	}
	return nil
}

// DeepCopyInto copies a status into another.
func (in *BenchStatus) DeepCopyInto(out *BenchStatus) {
	*out = *in
	if in.Conditions != nil {
		out.Conditions = make([]metav1.Condition, len(in.Conditions))
		for i := range in.Conditions {
			in.Conditions[i].DeepCopyInto(&out.Conditions[i])
		}
	}
}

// DeepCopy copies a status.
func (in *BenchStatus) DeepCopy() *BenchStatus {
	if in == nil {
		return nil
	}
	out := new(BenchStatus)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies a list into another.
func (in *BenchList) DeepCopyInto(out *BenchList) {
	*out = *in
	out.TypeMeta = in.TypeMeta
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	if in.Items != nil {
		out.Items = make([]Bench, len(in.Items))
		for i := range in.Items {
			in.Items[i].DeepCopyInto(&out.Items[i])
		}
	}
}

// DeepCopy copies a list.
func (in *BenchList) DeepCopy() *BenchList {
	if in == nil {
		return nil
	}
	out := new(BenchList)
	in.DeepCopyInto(out)
	return out
}

// DeepCopyObject copies a list as an object.
func (in *BenchList) DeepCopyObject() runtime.Object {
	if c := in.DeepCopy(); c != nil {
		return c
	}
	return nil
}
