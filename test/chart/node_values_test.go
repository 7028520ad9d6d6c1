//go:build apiserver

package chart

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// ofNodes says what becomes of each value of nodeAgent: what is set, and what the DaemonSet then has
// there.
var ofNodes = map[string]struct {
	set  string
	has  func(t *testing.T, d appsv1.DaemonSet) any
	want any
}{
	"callOrder":                 {"callOrder=fair-choice", argumentOf("call-order"), "fair-choice"},
	"slice":                     {"slice=50ms", argumentOf("slice"), "50ms"},
	"preempt":                   {"preempt=false", argumentOf("preempt"), "false"},
	"cores":                     {"cores=3", argumentOf("cores"), "3"},
	"latencyCriticalNamespaces": {"latencyCriticalNamespaces={shop,search}", argumentOf("latency-critical-namespaces"), "shop,search"},
	"batchNamespaces":           {"batchNamespaces={reports,*}", argumentOf("batch-namespaces"), "reports,*"},
	"coLocation":                {"coLocation=true,latencyCriticalNamespaces={shop}", argumentOf("co-location"), "true"},
	"extraArgs":                 {"extraArgs={--journal-dir=/elsewhere}", lastArgument, "--journal-dir=/elsewhere"},
	"cgroupRoot": {"cgroupRoot=/sys/fs/cgroup/kubepods.slice", func(_ *testing.T, d appsv1.DaemonSet) any {
		at := slices.IndexFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "cgroup" })
		return d.Spec.Template.Spec.Volumes[at].HostPath.Path
	}, "/sys/fs/cgroup/kubepods.slice"},
	"maxUnavailable": {"maxUnavailable=10%", func(_ *testing.T, d appsv1.DaemonSet) any {
		return d.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.String()
	}, "10%"},
	"serviceAccount": {"serviceAccount.name=nodes", ofNodePod(func(s corev1.PodSpec) any { return s.ServiceAccountName }), "nodes"},
	"resources": {"resources.requests.cpu=250m", ofNodePod(func(s corev1.PodSpec) any {
		return s.Containers[0].Resources.Requests.Cpu().String()
	}), "250m"},
	"nodeSelector": {"nodeSelector.pool=functions", ofNodePod(func(s corev1.PodSpec) any { return s.NodeSelector }),
		map[string]string{"kubernetes.io/os": "linux", "pool": "functions"}},
	"tolerations": {"tolerations[0].key=spot,tolerations[0].operator=Exists", ofNodePod(func(s corev1.PodSpec) any { return s.Tolerations }),
		[]corev1.Toleration{{Key: "spot", Operator: corev1.TolerationOpExists}}},
	"affinity": {"affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=rack", ofNodePod(func(s corev1.PodSpec) any {
		return s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
	}), "rack"},
	"priorityClassName":    {"priorityClassName=system-node-critical", ofNodePod(func(s corev1.PodSpec) any { return s.PriorityClassName }), "system-node-critical"},
	"daemonSetAnnotations": {"daemonSetAnnotations.team=platform", func(_ *testing.T, d appsv1.DaemonSet) any { return d.Annotations["team"] }, "platform"},
	"podAnnotations":       {"podAnnotations.team=platform", func(_ *testing.T, d appsv1.DaemonSet) any { return d.Spec.Template.Annotations["team"] }, "platform"},
	"podLabels":            {"podLabels.team=platform", func(_ *testing.T, d appsv1.DaemonSet) any { return d.Spec.Template.Labels["team"] }, "platform"},
	"podSecurityContext": {"podSecurityContext.seLinuxOptions.type=spc_t", ofNodePod(func(s corev1.PodSpec) any {
		return s.SecurityContext.SELinuxOptions.Type + " " + string(s.SecurityContext.SeccompProfile.Type)
	}), "spc_t RuntimeDefault"},
	"extraEnv": {"extraEnv[0].name=GOGC,extraEnv[0].value=off", ofNodePod(func(s corev1.PodSpec) any {
		at := slices.IndexFunc(s.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == "GOGC" })
		return at >= 0 && s.Containers[0].Env[at].Value == "off"
	}), true},
}

func argumentOf(name string) func(*testing.T, appsv1.DaemonSet) any {
	return func(t *testing.T, d appsv1.DaemonSet) any {
		return arguments(t, d.Spec.Template.Spec.Containers[0])[name]
	}
}

// lastArgument is the one that counts if it is given twice.
func lastArgument(_ *testing.T, d appsv1.DaemonSet) any {
	args := d.Spec.Template.Spec.Containers[0].Args
	return args[len(args)-1]
}

func ofNodePod(has func(corev1.PodSpec) any) func(*testing.T, appsv1.DaemonSet) any {
	return func(_ *testing.T, d appsv1.DaemonSet) any { return has(d.Spec.Template.Spec) }
}

func TestEveryValueOfNodeAgentsReachesTheirDaemonSet(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		NodeAgent map[string]any `json:"nodeAgent"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	before := nodeDaemonSet(t, "")
	for name := range values.NodeAgent {
		if name == "enabled" {
			continue // without it there is no DaemonSet
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			value, ok := ofNodes[name]
			if !ok {
				t.Fatalf("nothing says what nodeAgent.%s does to the DaemonSet: add it to ofNodes", name)
			}
			d := nodeDaemonSet(t, ",nodeAgent."+nested(value.set))
			if diff := cmp.Diff(value.want, value.has(t, d)); diff != "" {
				t.Errorf("with nodeAgent.%s (-want +got):\n%s", value.set, diff)
			}
			if cmp.Equal(before.Spec, d.Spec) && cmp.Equal(before.Annotations, d.Annotations) {
				t.Errorf("nodeAgent.%s changes nothing", value.set)
			}
		})
	}
}

// nested puts all values that are set together below nodeAgent.
func nested(set string) string {
	var out []rune
	depth := 0
	for _, r := range set {
		out = append(out, r)
		switch {
		case r == '{':
			depth++
		case r == '}':
			depth--
		case r == ',' && depth == 0:
			out = append(out, []rune("nodeAgent.")...)
		}
	}
	return string(out)
}
