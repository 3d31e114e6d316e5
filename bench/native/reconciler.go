package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	acapps "k8s.io/client-go/applyconfigurations/apps/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	acnetworking "k8s.io/client-go/applyconfigurations/networking/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"pintle.dev/bench/native/api"
)

const fieldOwner = client.FieldOwner("bench-controller")

// BenchReconciler makes of every Bench a ConfigMap, a Deployment, a Service and an Ingress.
type BenchReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	// Logic shows in the ConfigMap.
	Logic string
}

// Reconcile applies the children of a Bench, and says in its status what became of them.
func (r *BenchReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var bench api.Bench
	if err := r.Get(ctx, req.NamespacedName, &bench); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !bench.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	children := []runtime.ApplyConfiguration{r.configMap(&bench), deployment(&bench), service(&bench), ingress(&bench)}
	for _, child := range children {
		if err := r.Apply(ctx, child, fieldOwner, client.ForceOwnership); err != nil {
			return ctrl.Result{}, err
		}
	}

	var found appsv1.Deployment
	if err := r.Get(ctx, req.NamespacedName, &found); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	before := bench.Status.DeepCopy()
	bench.Status.ObservedGeneration = bench.Generation
	bench.Status.Message = bench.Spec.Message
	bench.Status.URL = fmt.Sprintf("http://%s/", hostName(bench.Name))
	bench.Status.ReadyReplicas = int64(found.Status.ReadyReplicas)
	meta.SetStatusCondition(&bench.Status.Conditions, ready(&bench, &found))
	if equality.Semantic.DeepEqual(before, &bench.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, &bench)
}

func ready(bench *api.Bench, deployment *appsv1.Deployment) metav1.Condition {
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", ObservedGeneration: bench.Generation}
	current := deployment.Generation > 0 && deployment.Status.ObservedGeneration >= deployment.Generation
	if current && deployment.Status.UpdatedReplicas == bench.Spec.Replicas && deployment.Status.AvailableReplicas == bench.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Available"
	}
	return condition
}

func labels(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": "bench", "app.kubernetes.io/instance": name}
}

func hostName(name string) string {
	return name + ".bench.example.com"
}

func owner(bench *api.Bench) *acmeta.OwnerReferenceApplyConfiguration {
	return acmeta.OwnerReference().
		WithAPIVersion(api.GroupVersion.String()).WithKind("Bench").WithName(bench.Name).WithUID(bench.UID).
		WithController(true).WithBlockOwnerDeletion(true)
}

// Fifteen keys, the message and the logic among them.
func (r *BenchReconciler) configMap(bench *api.Bench) *accore.ConfigMapApplyConfiguration {
	data := map[string]string{"LOGIC": r.Logic, "MESSAGE": bench.Spec.Message}
	for key := 1; key <= 13; key++ {
		data[fmt.Sprintf("KEY_%02d", key)] = fmt.Sprintf("value %d of %s", key, bench.Name)
	}
	return accore.ConfigMap(bench.Name, bench.Namespace).
		WithLabels(labels(bench.Name)).WithOwnerReferences(owner(bench)).WithData(data)
}

func deployment(bench *api.Bench) *acapps.DeploymentApplyConfiguration {
	container := accore.Container().
		WithName("server").
		WithImage("registry.example.com/bench:1").
		WithPorts(accore.ContainerPort().WithName("http").WithContainerPort(8080).WithProtocol(corev1.ProtocolTCP)).
		WithEnvFrom(accore.EnvFromSource().WithConfigMapRef(accore.ConfigMapEnvSource().WithName(bench.Name))).
		WithResources(accore.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("16Mi"),
			}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})).
		WithSecurityContext(accore.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithCapabilities(accore.Capabilities().WithDrop("ALL")))
	pod := accore.PodSpec().
		WithAutomountServiceAccountToken(false).
		WithSecurityContext(accore.PodSecurityContext().
			WithRunAsNonRoot(true).
			WithSeccompProfile(accore.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithContainers(container)
	return acapps.Deployment(bench.Name, bench.Namespace).
		WithLabels(labels(bench.Name)).WithOwnerReferences(owner(bench)).
		WithSpec(acapps.DeploymentSpec().
			WithReplicas(bench.Spec.Replicas).
			WithSelector(acmeta.LabelSelector().WithMatchLabels(labels(bench.Name))).
			WithTemplate(accore.PodTemplateSpec().WithLabels(labels(bench.Name)).WithSpec(pod)))
}

func service(bench *api.Bench) *accore.ServiceApplyConfiguration {
	port := accore.ServicePort().
		WithName("http").WithPort(80).WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromString("http"))
	return accore.Service(bench.Name, bench.Namespace).
		WithLabels(labels(bench.Name)).WithOwnerReferences(owner(bench)).
		WithSpec(accore.ServiceSpec().WithSelector(labels(bench.Name)).WithPorts(port))
}

func ingress(bench *api.Bench) *acnetworking.IngressApplyConfiguration {
	backend := acnetworking.IngressBackend().WithService(acnetworking.IngressServiceBackend().
		WithName(bench.Name).WithPort(acnetworking.ServiceBackendPort().WithName("http")))
	path := acnetworking.HTTPIngressPath().
		WithPath("/").WithPathType(networkingv1.PathTypePrefix).WithBackend(backend)
	return acnetworking.Ingress(bench.Name, bench.Namespace).
		WithLabels(labels(bench.Name)).WithOwnerReferences(owner(bench)).
		WithSpec(acnetworking.IngressSpec().WithRules(acnetworking.IngressRule().
			WithHost(hostName(bench.Name)).
			WithHTTP(acnetworking.HTTPIngressRuleValue().WithPaths(path))))
}
