//go:build apiserver

package chart

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/internal/podtoken"
)

// policyCluster has the chart, and namespaces without a level and of the level
// restricted.
func policyCluster(t *testing.T) *cluster {
	c := startCluster(t)
	for name, level := range map[string]string{namespace: "restricted", "restricted": "restricted", "wide-open": "privileged"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
		if _, err := c.client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the namespace "+name+" has its default account", func(ctx context.Context) (bool, error) {
			_, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, nil
		})
	}
	c.mustHelm(t, "install", release, chartDir)
	return c
}

// TestS9ThePolicyRefusesWhatTheLevelRestrictedRefuses breaks each rule of the level
// in a pod of a function. The API server's own check says that the rule is broken; the
// policy must say so, too.
func TestS9ThePolicyRefusesWhatTheLevelRestrictedRefuses(t *testing.T) {
	c := policyCluster(t)
	scheduler := c.as(t, "windlass-scheduler")
	create := func(client kubernetes.Interface, target string, change func(*corev1.Pod)) error {
		pod := functionPodIn(t, target)
		change(pod)
		_, err := client.CoreV1().Pods(target).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	eventually(t, "the policy is in force", func(context.Context) (bool, error) {
		return apierrors.IsInvalid(create(scheduler, "wide-open", func(p *corev1.Pod) { p.Spec.HostNetwork = true })), nil
	})
	for _, target := range []string{"restricted", "wide-open"} {
		if err := create(scheduler, target, func(*corev1.Pod) {}); err != nil {
			t.Errorf("a function's pod is refused in the namespace %s: %v", target, err)
		}
	}
	for name, change := range restrictedViolations {
		t.Run(name, func(t *testing.T) {
			if err := create(c.client, "restricted", change); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
				t.Fatalf("the level restricted does not refuse it: %v", err)
			}
			if err := create(scheduler, "wide-open", change); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'windlass-scheduler-pods'") {
				t.Errorf("the policy does not refuse it: %v", err)
			}
			tellRefused(t, "S9", "F111")
		})
	}
	for name, forbidden := range beyondRestricted {
		t.Run(name, func(t *testing.T) {
			if err := create(scheduler, "wide-open", forbidden.change); err == nil || !strings.Contains(err.Error(), forbidden.message) {
				t.Errorf("refused with %v, want the policy's %q", err, forbidden.message)
			}
			tellRefused(t, "S9", "F111")
		})
	}
}

// tellRefused prints that an attack came to nothing: make attacks counts these.
func tellRefused(t *testing.T, finding, id string) {
	if _, name, _ := strings.Cut(t.Name(), "/"); !t.Failed() {
		fmt.Fprintf(os.Stdout, "attack_refused{%s %s: %s}=1\n", id, finding, strings.ReplaceAll(name, "_", " "))
	}
}

func inPod(change func(*corev1.PodSecurityContext)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(p.Spec.SecurityContext) }
}

func inFunction(change func(*corev1.Container)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.Spec.Containers[1]) }
}

var metadataServer = &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}

// restrictedViolations break the rules of the level one by one.
var restrictedViolations = map[string]func(*corev1.Pod){
	"the host's network":              func(p *corev1.Pod) { p.Spec.HostNetwork = true },
	"the host's processes":            func(p *corev1.Pod) { p.Spec.HostPID = true },
	"the host's IPC":                  func(p *corev1.Pod) { p.Spec.HostIPC = true },
	"a folder of the host":            addVolume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}),
	"a volume of the network":         addVolume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/"}}),
	"a port of the host":              inFunction(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}} }),
	"privileged":                      inOne(func(s *corev1.SecurityContext) { s.Privileged = new(true); s.AllowPrivilegeEscalation = nil }),
	"escalation":                      inOne(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = new(true) }),
	"escalation by omission":          inOne(func(s *corev1.SecurityContext) { s.AllowPrivilegeEscalation = nil }),
	"keeps capabilities":              inOne(func(s *corev1.SecurityContext) { s.Capabilities = nil }),
	"adds a capability":               inOne(func(s *corev1.SecurityContext) { s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"} }),
	"root is not excluded":            everywhere(func(s *corev1.SecurityContext) { s.RunAsNonRoot = nil }),
	"one container may be root":       inOne(func(s *corev1.SecurityContext) { s.RunAsNonRoot = new(false) }),
	"one container is root":           inOne(func(s *corev1.SecurityContext) { s.RunAsUser = new(int64(0)) }),
	"the pod is root":                 inPod(func(s *corev1.PodSecurityContext) { s.RunAsUser = new(int64(0)) }),
	"no seccomp profile":              everywhere(func(s *corev1.SecurityContext) { s.SeccompProfile = nil }),
	"one container is not confined":   inOne(func(s *corev1.SecurityContext) { s.SeccompProfile = &unconfined }),
	"the pod is not confined":         inPod(func(s *corev1.PodSecurityContext) { s.SeccompProfile = &unconfined }),
	"a sysctl":                        inPod(func(s *corev1.PodSecurityContext) { s.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}} }),
	"another type of SELinux":         inPod(func(s *corev1.PodSecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} }),
	"another type in one container":   inOne(func(s *corev1.SecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} }),
	"a user of SELinux":               inOne(func(s *corev1.SecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{User: "root"} }),
	"a role of SELinux":               inPod(func(s *corev1.PodSecurityContext) { s.SELinuxOptions = &corev1.SELinuxOptions{Role: "sysadm_r"} }),
	"the pod is outside AppArmor":     inPod(func(s *corev1.PodSecurityContext) { s.AppArmorProfile = &withoutAppArmor }),
	"a container is outside AppArmor": inOne(func(s *corev1.SecurityContext) { s.AppArmorProfile = &withoutAppArmor }),
	"AppArmor by annotation": func(p *corev1.Pod) {
		p.Annotations["container.apparmor.security.beta.kubernetes.io/function"] = "unconfined"
	},
	"a process of the host": func(p *corev1.Pod) {
		p.Spec.HostNetwork = true
		p.Spec.SecurityContext.WindowsOptions = &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}
	},
	"a liveness probe of a host": inFunction(func(c *corev1.Container) {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: metadataServer}}
	}),
	"a readiness probe of a host": inFunction(func(c *corev1.Container) {
		c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: metadataServer}}
	}),
	"a startup probe of a host": inFunction(func(c *corev1.Container) {
		c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1", Port: intstr.FromInt32(22)}}}
	}),
	"a hook at the start that asks a host": inFunction(func(c *corev1.Container) { c.Lifecycle.PostStart = &corev1.LifecycleHandler{HTTPGet: metadataServer} }),
	"a hook at the end that asks a host":   inFunction(func(c *corev1.Container) { c.Lifecycle.PreStop = &corev1.LifecycleHandler{HTTPGet: metadataServer} }),
}

var (
	unconfined      = corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	withoutAppArmor = corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
)

func projected(source corev1.VolumeProjection) func(*corev1.Pod) {
	return addVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}})
}

// beyondRestricted is what the level allows, and podspec never makes.
var beyondRestricted = map[string]struct {
	change  func(*corev1.Pod)
	message string
}{
	"a Secret among projected sources":    {projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}}}), "no Secret"},
	"a ConfigMap among projected sources": {projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "x"}}}), "no Secret"},
	"a token for another":                 {projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", Path: "t"}}), "tokens must be for"},
	"the agent's token in the function": {inFunction(func(c *corev1.Container) {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "agent-token", MountPath: "/token"})
	}), "only the container agent"},
	"another token like the agent's": {func(p *corev1.Pod) {
		projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: podtoken.Audience, Path: "t"}})(p)
		inFunction(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "extra", MountPath: "/token"})
		})(p)
	}, "only the container agent"},
	"a node agent's token in the function": {func(p *corev1.Pod) {
		projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: podtoken.NodeAudience, Path: "t"}})(p)
		inFunction(func(c *corev1.Container) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "extra", MountPath: "/token"})
		})(p)
	}, "only the container agent"},
	"another agent":                        {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "miner:1" }, "must run ghcr.io/windlass-dev/podagent"},
	"an agent with a name that is similar": {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "ghcr.io/windlass-dev/podagent-x:1" }, "must run ghcr.io/windlass-dev/podagent"},
}
