//go:build apiserver

package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// podOf is the pod that an object is or makes, if it is or makes one.
func podOf(t *testing.T, object unstructured.Unstructured) (corev1.PodTemplateSpec, bool) {
	t.Helper()
	at := []string{"spec", "template"}
	switch object.GetKind() {
	case "Pod":
		at = nil
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
	case "CronJob":
		at = []string{"spec", "jobTemplate", "spec", "template"}
	default:
		return corev1.PodTemplateSpec{}, false
	}
	pod := object.Object
	if at != nil {
		var found bool
		pod, found, _ = unstructured.NestedMap(object.Object, at...)
		if !found {
			t.Fatalf("%s has no template", title(object))
		}
	} else {
		pod = map[string]any{"metadata": pod["metadata"], "spec": pod["spec"]}
	}
	return as[corev1.PodTemplateSpec](t, unstructured.Unstructured{Object: pod}), true
}

// eachPod runs a check on every pod of every scenario.
func eachPod(t *testing.T, check func(t *testing.T, pod corev1.PodTemplateSpec)) {
	t.Helper()
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		found := 0
		for _, object := range objects {
			if pod, ok := podOf(t, object); ok {
				found++
				t.Run(title(object), func(t *testing.T) { check(t, pod) })
			}
		}
		if found < 5 {
			t.Errorf("found %d pods, want those of gateway, scheduler, controller, cleanup and check", found)
		}
	})
}

func TestPodsAreRestricted(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		if pod.Labels["app.kubernetes.io/component"] == "node" {
			return // see TestANodeAgentHasTwoFoldersOfItsNodeAndNothingElse
		}
		spec := pod.Spec
		if spec.HostNetwork || spec.HostPID || spec.HostIPC {
			t.Error("shares something with the host")
		}
		if s := spec.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 ||
			s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("the security context is %+v", s)
		}
		for _, v := range spec.Volumes {
			if v.HostPath != nil {
				t.Errorf("the volume %s is a folder of the host", v.Name)
			}
		}
		for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Privileged != nil ||
				s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.RunAsUser != nil || s.RunAsNonRoot != nil ||
				s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || s.Capabilities.Add != nil {
				t.Errorf("the security context of the container %s is %+v", c.Name, s)
			}
			for _, mount := range c.VolumeMounts {
				if !mount.ReadOnly && mount.Name != "data" {
					t.Errorf("the container %s may write to %s", c.Name, mount.MountPath)
				}
			}
			for _, port := range c.Ports {
				if port.HostPort != 0 {
					t.Errorf("the container %s has the port %d of the host", c.Name, port.HostPort)
				}
			}
		}
	})
}

func TestPodsHaveOnlyTheTokensTheyNeed(t *testing.T) {
	withToken := map[string]bool{"gateway": true, "scheduler": true, "controller": true, "cleanup": true, "node": true, "etcd": false, "check": false}
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		component := pod.Labels["app.kubernetes.io/component"]
		want, known := withToken[component]
		if !known {
			t.Fatalf("what is the component %q?", component)
		}
		if auto := pod.Spec.AutomountServiceAccountToken; auto == nil || *auto != want {
			t.Errorf("automountServiceAccountToken is %v, want %v", auto, want)
		}
		if account := pod.Spec.ServiceAccountName; want && !strings.HasSuffix(account, "-"+component) {
			t.Errorf("the account is %q", account)
		}
	})
}

// A Service such as windlass-gateway would set WINDLASS_GATEWAY_PORT, which
// reads as a flag.
func TestPodsHaveNoVariablesOfServices(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		if links := pod.Spec.EnableServiceLinks; links == nil || *links {
			t.Error("enableServiceLinks is not false")
		}
	})
}

func TestContainersSayWhatTheyNeed(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		for _, c := range pod.Spec.Containers {
			if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
				t.Errorf("the container %s requests %v", c.Name, c.Resources.Requests)
			}
			if !strings.Contains(c.Image, ":") || strings.HasSuffix(c.Image, ":latest") || c.ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("the container %s pulls %s %s", c.Name, c.Image, c.ImagePullPolicy)
			}
			if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
				continue
			}
			if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.LivenessProbe.HTTPGet == nil || c.ReadinessProbe.HTTPGet == nil {
				t.Errorf("the container %s has not both probes", c.Name)
				continue
			}
			for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
				if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
					t.Errorf("the container %s is probed at the port %q, which it has not", c.Name, probe.HTTPGet.Port.StrVal)
				}
			}
		}
	})
}

func TestMountsHaveVolumes(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		for _, c := range pod.Spec.Containers {
			for _, mount := range c.VolumeMounts {
				if mount.Name == "data" {
					continue // of a StatefulSet
				}
				if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name }) {
					t.Errorf("the container %s mounts %s, which is no volume", c.Name, mount.Name)
				}
			}
		}
		for _, volume := range pod.Spec.Volumes {
			if s := volume.Secret; s != nil && (s.SecretName == "" || s.DefaultMode == nil || *s.DefaultMode != 0o440) {
				t.Errorf("the volume %s is the Secret %q with the mode %v", volume.Name, s.SecretName, s.DefaultMode)
			}
		}
	})
}

func TestEverythingIsPulledFromTheMirror(t *testing.T) {
	text := template(t, scenarios["everything on"]...)
	for _, registry := range []string{"ghcr.io", "gcr.io"} {
		if strings.Contains(text, registry) {
			t.Errorf("%s is asked for despite global.imageRegistry", registry)
		}
	}
	for _, object := range parse(t, text) {
		if pod, ok := podOf(t, object); ok && (len(pod.Spec.ImagePullSecrets) != 1 || pod.Spec.ImagePullSecrets[0].Name != "mirror") {
			t.Errorf("%s pulls with %v", title(object), pod.Spec.ImagePullSecrets)
		}
	}
}

func TestADigestWinsOverATag(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	gateway, _ := podOf(t, find(t, render(t, "--set", "image.tag=v9,image.digest="+digest), "Deployment", "windlass-gateway"))
	if got, want := gateway.Spec.Containers[0].Image, "ghcr.io/windlass-dev/windlass@"+digest; got != want {
		t.Errorf("the image is %s, want %s", got, want)
	}
}

// TestTheCheckRunsWhereGatewaysDo keeps helm test from waiting for a node that admits no pod
// without their tolerations.
func TestTheCheckRunsWhereGatewaysDo(t *testing.T) {
	check, _ := podOf(t, find(t, render(t, "--set", "gateway.nodeSelector.pool=infra,gateway.tolerations[0].key=infra,gateway.tolerations[0].operator=Exists"),
		"Pod", "windlass-check"))
	if got := check.Spec.NodeSelector; len(got) != 1 || got["pool"] != "infra" {
		t.Errorf("it runs on nodes with the labels %v", got)
	}
	if got := check.Spec.Tolerations; len(got) != 1 || got[0].Key != "infra" {
		t.Errorf("it tolerates %v", got)
	}
}

// TestMembersOfEtcdSpread wants no taint to keep a member Pending, and no values to give up
// the preference for different zones.
func TestMembersOfEtcdSpread(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		if pod.Labels["app.kubernetes.io/component"] != "etcd" {
			return
		}
		spread := pod.Spec.TopologySpreadConstraints
		if len(spread) != 1 || spread[0].TopologyKey != corev1.LabelHostname || spread[0].WhenUnsatisfiable != corev1.DoNotSchedule ||
			spread[0].NodeTaintsPolicy == nil || *spread[0].NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor {
			t.Errorf("members spread by %+v", spread)
		}
		if a := pod.Spec.Affinity; a == nil || a.PodAntiAffinity == nil || !slices.ContainsFunc(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
			func(term corev1.WeightedPodAffinityTerm) bool {
				return term.PodAffinityTerm.TopologyKey == corev1.LabelTopologyZone
			}) {
			t.Errorf("members do not prefer different zones: %+v", a)
		}
	})
}

// Instances fill the nodes, and their pods do not wait for the kube-scheduler, so others of their priority never get room.
func TestInProductionWindlassItselfComesBeforeItsInstances(t *testing.T) {
	for _, object := range render(t, append(scenarios["ha"], "--set", "nodeAgent.enabled=true")...) {
		if !slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, object.GetKind()) {
			continue
		}
		class, _, err := unstructured.NestedString(object.Object, "spec", "template", "spec", "priorityClassName")
		if err != nil || !strings.HasPrefix(class, "system-") {
			t.Errorf("%s has the PriorityClass %q, %v", title(object), class, err)
		}
	}
}
