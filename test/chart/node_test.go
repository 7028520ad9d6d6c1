//go:build apiserver

package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func nodeDaemonSet(t *testing.T, values string) appsv1.DaemonSet {
	t.Helper()
	return as[appsv1.DaemonSet](t, find(t, render(t, "--set", "nodeAgent.enabled=true"+values), "DaemonSet", "windlass-node"))
}

func TestThereAreNodeAgentsOnRequestOnly(t *testing.T) {
	for _, object := range render(t) {
		if strings.HasPrefix(object.GetName(), "windlass-node") {
			t.Errorf("there is %s", title(object))
		}
	}
}

func TestANodeAgentHasTwoFoldersOfItsNodeAndNothingElse(t *testing.T) {
	pod := nodeDaemonSet(t, "").Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || pod.ShareProcessNamespace != nil || len(pod.InitContainers) > 0 || len(pod.Containers) != 1 {
		t.Errorf("the pod is %+v", pod)
	}
	c := pod.Containers[0]
	want := &corev1.SecurityContext{
		RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
		t.Errorf("the security context (-want +got):\n%s", diff)
	}
	if s := pod.SecurityContext; s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v", s)
	}
	folders := map[string]string{}
	for _, v := range pod.Volumes {
		if v.HostPath != nil {
			folders[v.Name] = v.HostPath.Path
		}
	}
	if diff := cmp.Diff(map[string]string{"cgroup": "/sys/fs/cgroup", "journal": "/run/windlass/node"}, folders); diff != "" {
		t.Errorf("folders of the node (-want +got):\n%s", diff)
	}
	for _, mount := range c.VolumeMounts {
		if _, ofNode := folders[mount.Name]; !ofNode && !mount.ReadOnly {
			t.Errorf("it may write to %s", mount.MountPath)
		}
	}
	for _, port := range c.Ports {
		if port.HostPort != 0 {
			t.Errorf("it has the port %d of the node", port.HostPort)
		}
	}
}

func TestTheControllerKnowsWhetherThereAreNodeAgents(t *testing.T) {
	for values, want := range map[string]bool{"nodeAgent.enabled=false": false, "nodeAgent.enabled=true": true} {
		controller := as[appsv1.Deployment](t, find(t, render(t, "--set", values), "Deployment", "windlass-controller")).Spec.Template.Spec.Containers[0]
		if got := slices.Contains(controller.Args, "--node-agents=true"); got != want {
			t.Errorf("with %s it knows of node agents: %v", values, got)
		}
	}
}

// It reads the keys of tokens, as every account may.
func TestANodeAgentHasNoRights(t *testing.T) {
	for _, object := range render(t, scenarios["node agents"]...) {
		if slices.Contains([]string{"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding", "PodDisruptionBudget"}, object.GetKind()) && strings.Contains(object.GetName(), "node") {
			t.Errorf("there is %s", title(object))
		}
	}
}

// With batchNamespaces it reads pods, and nothing else.
func TestANodeAgentReadsPodsWhereTheyMayBeFiller(t *testing.T) {
	values := []string{"--set", "nodeAgent.enabled=true,nodeAgent.batchNamespaces={reports}"}
	objects := render(t, values...)
	role := as[rbacv1.ClusterRole](t, find(t, objects, "ClusterRole", "windlass-node"))
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}}, role.Rules); diff != "" {
		t.Errorf("its rules (-want +got):\n%s", diff)
	}
	binding := as[rbacv1.ClusterRoleBinding](t, find(t, objects, "ClusterRoleBinding", "windlass-node"))
	set := as[appsv1.DaemonSet](t, find(t, objects, "DaemonSet", "windlass-node"))
	want := []rbacv1.Subject{{Kind: "ServiceAccount", Name: set.Spec.Template.Spec.ServiceAccountName, Namespace: namespace}}
	if diff := cmp.Diff(want, binding.Subjects); diff != "" || binding.RoleRef.Name != "windlass-node" {
		t.Errorf("%s is bound to (-want +got):\n%s", binding.RoleRef.Name, diff)
	}
	at := slices.IndexFunc(set.Spec.Template.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "NODE_NAME" })
	if at < 0 || set.Spec.Template.Spec.Containers[0].Env[at].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Error("it does not know the name of its node")
	}
	for _, object := range render(t, append(values, "--set", "rbac.create=false")...) {
		if object.GetKind() == "ClusterRole" && object.GetName() == "windlass-node" {
			t.Error("there is a role although rbac.create is false")
		}
	}
}

func TestAnInstanceReachesTheNodeAgentOfItsNode(t *testing.T) {
	objects := render(t, scenarios["node agents"]...)
	service := as[corev1.Service](t, find(t, objects, "Service", "windlass-node"))
	if policy := service.Spec.InternalTrafficPolicy; policy == nil || *policy != corev1.ServiceInternalTrafficPolicyLocal {
		t.Errorf("the traffic policy is %v", policy)
	}
	set := as[appsv1.DaemonSet](t, find(t, objects, "DaemonSet", "windlass-node"))
	for key, value := range service.Spec.Selector {
		if set.Spec.Template.Labels[key] != value {
			t.Errorf("the Service selects %s=%s, and the pods have %q", key, value, set.Spec.Template.Labels[key])
		}
	}
}

// The list of low pods that a killed node agent leaves has paths: the next one must find the same groups there.
func TestAGroupHasOnePathWhateverTheCgroupRoot(t *testing.T) {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/kubepods.slice"} {
		c := nodeDaemonSet(t, ",nodeAgent.cgroupRoot="+root).Spec.Template.Spec.Containers[0]
		i := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "cgroup" })
		if at, flag := c.VolumeMounts[i].MountPath, arguments(t, c)["cgroup-root"]; at != "/host"+root || flag != at {
			t.Errorf("%s of the node is at %s, and --cgroup-root=%s", root, at, flag)
		}
	}
}

func TestNodeAgentsAreReplacedOneAfterTheOther(t *testing.T) {
	update := nodeDaemonSet(t, "").Spec.UpdateStrategy
	if update.Type != appsv1.RollingUpdateDaemonSetStrategyType || update.RollingUpdate.MaxSurge.IntValue() != 0 || update.RollingUpdate.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the strategy is %+v", update)
	}
	if got := nodeDaemonSet(t, ",nodeAgent.maxUnavailable=10%").Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String(); got != "10%" {
		t.Errorf("of many, %s are replaced at a time", got)
	}
}

func TestArgumentsOfANodeAgentFollowValues(t *testing.T) {
	for values, want := range map[string]map[string]string{
		"": {"call-order": "serpt", "slice": "auto", "preempt": "true", "cores": "0", "co-location": "false", "cgroup-root": "/host/sys/fs/cgroup", "journal-dir": "/run/windlass/node", "wire-listen": ":9443"},
		",nodeAgent.callOrder=fair-choice,nodeAgent.slice=50ms,nodeAgent.preempt=false,nodeAgent.cores=3,watchNamespaces={a,b}": {
			"call-order": "fair-choice", "slice": "50ms", "preempt": "false", "cores": "3", "watch-namespaces": "a,b"},
		",nodeAgent.coLocation=true,nodeAgent.latencyCriticalNamespaces={shop}": {"co-location": "true", "latency-critical-namespaces": "shop"},
		",nodeAgent.batchNamespaces={reports,nightly}":                          {"batch-namespaces": "reports,nightly", "node-name": "$(NODE_NAME)"},
	} {
		got := arguments(t, nodeDaemonSet(t, values).Spec.Template.Spec.Containers[0])
		for name, want := range want {
			if got[name] != want {
				t.Errorf("with %q --%s is %q, want %q", values, name, got[name], want)
			}
		}
	}
}
