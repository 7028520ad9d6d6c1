//go:build apiserver

package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// agentImage is the agent's in the chart's defaults.
const agentImage = "ghcr.io/windlass-dev/podagent:0.1.0"

// helloUnit is the third revision of a function, as a scheduler serves it.
func helloUnit(namespace string) *v1alpha1.Function {
	return &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "hello", UID: "6f9e4c1e-8d6b-4a43-9a52-1c3f60d1a111",
		Annotations: map[string]string{
			v1alpha1.AnnotationRevision: "00003", v1alpha1.AnnotationFunctionUID: "0b8a3a52-2f4c-4f0e-8a43-6a9d9f5f2c77",
		},
	}}
}

// functionPod is a pod as the scheduler makes it, with everything that a
// Function may ask for.
func functionPod(t *testing.T) *corev1.Pod {
	t.Helper()
	fn := helloUnit("team-a")
	fn.Spec.Template.RuntimeRef.Name = "python3.13"
	fn.Spec.Template.Handler = "hello.handler"
	fn.Spec.Template.Code = &v1alpha1.Code{Inline: "def handler(event, context): return event\n"}
	fn.Spec.Template.ServiceAccountName = "default"
	fn.Spec.Template.Timeout.Duration = time.Minute
	fn.Spec.Template.Resources = v1alpha1.Resources{
		Requests: corev1.ResourceList{"ephemeral-storage": quantity.MustParse("1Gi")},
		Limits:   corev1.ResourceList{"cpu": quantity.MustParse("1"), "memory": quantity.MustParse("1Gi"), "nvidia.com/gpu": quantity.MustParse("1")},
	}
	fn.Spec.Template.Env = []v1alpha1.EnvVar{
		{Name: "SECRET", ValueFrom: &v1alpha1.EnvVarSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "s", Key: "k", Optional: true}}},
		{Name: "SETTING", ValueFrom: &v1alpha1.EnvVarSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "c", Key: "k"}}},
	}
	for i, path := range []string{"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels['a']", "metadata.annotations['example.com/A']",
		"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"} {
		fn.Spec.Template.Env = append(fn.Spec.Template.Env, v1alpha1.EnvVar{
			Name: fmt.Sprint("FIELD_", i), ValueFrom: &v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: path}},
		})
	}
	fn.Spec.Template.Mounts = []v1alpha1.Mount{
		{Name: "tls", MountPath: "/etc/tls", Secret: &v1alpha1.SecretMount{SecretName: "tls", Optional: true}},
		{Name: "file", MountPath: "/etc/app/x", SubPath: "x", ConfigMap: &v1alpha1.ConfigMapMount{Name: "c"}},
		{Name: "data", MountPath: "/data", PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "d"}},
		{Name: "models", MountPath: "/models", ReadOnly: true, PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "m"}},
		{Name: "scratch", MountPath: "/scratch", EmptyDir: &v1alpha1.EmptyDirMount{Medium: corev1.StorageMediumMemory, SizeLimit: new(quantity.MustParse("64Mi"))}},
	}
	v1alpha1.Default(fn)
	if errs := v1alpha1.Validate(fn); len(errs) > 0 {
		t.Fatal(errs)
	}
	runtime := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "python3.13"}}
	runtime.Spec.Image = "python3"
	runtime.Spec.FileExtension = "py"
	pod, err := podspec.Pod(podspec.Input{
		Config:   podspec.Config{AgentImage: agentImage, AgentMemoryLimit: 256 << 20, SchedulerAddr: "windlass-scheduler.windlass.svc:9443", CA: "PEM", TLSDomain: "windlass.windlass.windlass", NodeAddr: "windlass-node.windlass.svc:9443", NodeTokenAudience: podtoken.NodeAudience, UserIDs: podspec.UserIDs{Base: 1e9, Count: 8e8}},
		Function: fn, Runtime: runtime, CID: "1", Node: "a-node", Decided: time.Unix(0, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// admissionPolicyHolds creates pods for a namespace whose own level refuses
// nothing, so that only the policy can.
func admissionPolicyHolds(t *testing.T, c *cluster) {
	const target = "wide-open"
	if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: target}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace has its default account", func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts(target).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
	scheduler := c.as(t, "windlass-scheduler")
	create := func(client kubernetes.Interface, change func(*corev1.Pod)) error {
		pod := functionPod(t)
		pod.Namespace = target
		change(pod)
		_, err := client.CoreV1().Pods(target).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	hostNetwork := func(p *corev1.Pod) { p.Spec.HostNetwork = true }
	eventually(t, "the policy is in force", func(context.Context) (bool, error) {
		return apierrors.IsInvalid(create(scheduler, hostNetwork)), nil
	})
	if err := create(scheduler, func(*corev1.Pod) {}); err != nil {
		t.Errorf("a function's pod is refused: %v", err)
	}
	if err := create(scheduler, mountSecret); err != nil {
		t.Errorf("a function's Secret is refused: %v", err)
	}
	if err := create(c.client, hostNetwork); err != nil {
		t.Errorf("the policy holds others than schedulers: %v", err)
	}
	typeCheck(t, c, "windlass-scheduler-pods")
	for _, ns := range []string{"kube-system", namespace} {
		pod := functionPod(t)
		pod.Namespace = ns
		if _, err := scheduler.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil || !strings.Contains(err.Error(), "no functions are run in") {
			t.Errorf("a pod in %s: %v", ns, err)
		}
	}
	sparePolicyHolds(t, c, scheduler, target)
	for name, forbidden := range forbiddenPods {
		t.Run(name, func(t *testing.T) {
			err := create(scheduler, forbidden.change)
			if err == nil {
				t.Fatal("a scheduler may create this pod")
			}
			if !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'windlass-scheduler-pods'") || !strings.Contains(err.Error(), forbidden.message) {
				t.Errorf("refused with %q, want the policy's %q", err, forbidden.message)
			}
		})
	}
}

// typeCheck waits until the controller manager has checked the policy's
// expressions against the schema of a pod, and reports its doubts.
func typeCheck(t *testing.T, c *cluster, name string) {
	t.Helper()
	eventually(t, name+" is checked", func(ctx context.Context) (bool, error) {
		policy, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, name, metav1.GetOptions{})
		if err != nil || policy.Status.TypeChecking == nil {
			return false, err
		}
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s %s: %s", name, warning.FieldRef, warning.Warning)
		}
		return true, nil
	})
}

var forbiddenPods = map[string]struct {
	change  func(*corev1.Pod)
	message string
}{
	"not managed by Windlass":    {func(p *corev1.Pod) { delete(p.Labels, wellknown.LabelManagedBy) }, "must have the labels"},
	"without labels":             {func(p *corev1.Pod) { p.Labels = nil }, "must have the labels"},
	"without an owner":           {func(p *corev1.Pod) { p.OwnerReferences = nil }, "must be owned"},
	"owned by something else":    {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Deployment" }, "must be owned"},
	"owned by its Function":      {func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Function" }, "must be owned"},
	"owned by another revision":  {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, "must be owned"},
	"owned by another number":    {func(p *corev1.Pod) { p.OwnerReferences[0].Name = "hello-00004" }, "must be owned"},
	"said to be of another one":  {func(p *corev1.Pod) { p.Labels[wellknown.LabelFunction] = "other" }, "must be owned"},
	"of no Function":             {func(p *corev1.Pod) { delete(p.Labels, wellknown.LabelFunctionUID) }, "must have the labels"},
	"of no revision":             {func(p *corev1.Pod) { delete(p.Labels, wellknown.LabelRevisionUID) }, "must have the labels"},
	"owned by two":               {func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, secondOwner) }, "must be owned"},
	"the host's network":         {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, "must not share"},
	"the host's processes":       {func(p *corev1.Pod) { p.Spec.HostPID = true }, "must not share"},
	"the host's IPC":             {func(p *corev1.Pod) { p.Spec.HostIPC = true }, "must not share"},
	"one process namespace":      {func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = new(true) }, "must not share"},
	"a token in every container": {func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) }, "automountServiceAccountToken"},
	"a token by omission":        {func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = nil }, "automountServiceAccountToken"},
	"a folder of the host":       {addVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}), "volumes must be"},
	"a Secret as a volume":       {addVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}), "volumes must be"},
	"a claim as a volume":        {addVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}), "volumes must be"},
	"a Secret for the agent": {func(p *corev1.Pod) {
		mountSecret(p)
		agent := &p.Spec.Containers[0]
		agent.VolumeMounts = append(agent.VolumeMounts, corev1.VolumeMount{Name: "mount-a", MountPath: "/a"})
	}, "only the container function"},
	"a claim as a device": {func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "mount-b", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"},
		}})
		p.Spec.Containers[1].VolumeDevices = []corev1.VolumeDevice{{Name: "mount-b", DevicePath: "/dev/b"}}
	}, "only the container function"},
	"root is not excluded":      {everywhere(func(s *corev1.SecurityContext) { s.RunAsNonRoot = nil }), "run as root"},
	"one container may be root": {inOne(func(s *corev1.SecurityContext) { s.RunAsNonRoot = new(false) }), "run as root"},
	"one container is root":     {inOne(func(s *corev1.SecurityContext) { s.RunAsUser = new(int64(0)) }), "run as root"},
	"privileged":                {inOne(func(s *corev1.SecurityContext) { s.Privileged = new(true); s.AllowPrivilegeEscalation = nil }), "privileged"},
	"escalation":                {inOne(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = new(true) }), "allowPrivilegeEscalation"},
	"escalation by omission":    {inOne(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil }), "allowPrivilegeEscalation"},
	"the pod is root": {func(p *corev1.Pod) {
		p.Spec.SecurityContext.RunAsUser = new(int64(0))
		p.Spec.Containers[1].SecurityContext.RunAsUser = nil
	}, "run as root"},
	"no security context": {func(p *corev1.Pod) { p.Spec.Containers[1].SecurityContext = nil }, "allowPrivilegeEscalation"},
	"keeps capabilities":  {inOne(func(s *corev1.SecurityContext) { s.Capabilities = nil }), "drop ALL"},
	"adds a capability":   {inOne(func(s *corev1.SecurityContext) { s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"} }), "drop ALL"},
	"no seccomp profile":  {everywhere(func(s *corev1.SecurityContext) { s.SeccompProfile = nil }), "seccomp"},
	"one container is unconfined": {inOne(func(s *corev1.SecurityContext) {
		s.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	}), "seccomp"},
	"a sysctl": {func(p *corev1.Pod) {
		p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}
	}, "sysctls"},
	"a port of the host": {func(p *corev1.Pod) {
		p.Spec.Containers[1].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
	}, "port of the host"},
	"an init container without limits": {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "x"}} }, "allowPrivilegeEscalation"},
}

// mountSecret has the function's container mount a Secret, as template.mounts does.
func mountSecret(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "mount-a", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "x"},
	}})
	function := &p.Spec.Containers[1]
	function.VolumeMounts = append(function.VolumeMounts, corev1.VolumeMount{Name: "mount-a", MountPath: "/a"})
}

var secondOwner = metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "a-node", UID: "n"}

func addVolume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "extra", VolumeSource: source})
	}
}

// inOne changes the function's container only.
func inOne(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		change(p.Spec.Containers[1].SecurityContext)
	}
}

// everywhere changes all containers, and takes the pod's own settings away.
func everywhere(change func(*corev1.SecurityContext)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.SecurityContext = nil
		for i := range p.Spec.Containers {
			change(p.Spec.Containers[i].SecurityContext)
		}
	}
}
