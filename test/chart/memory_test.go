//go:build apiserver

package chart

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A process without a limit grows until the node has no memory for anybody, and one
// whose garbage collector does not know its limit is killed at it.
func TestS2EveryProcessOfTheControlPlaneHasAMemoryLimit(t *testing.T) {
	eachPod(t, func(t *testing.T, pod corev1.PodTemplateSpec) {
		for _, c := range pod.Spec.Containers {
			limit := c.Resources.Limits.Memory().Value()
			if limit == 0 || limit < c.Resources.Requests.Memory().Value() {
				t.Errorf("the container %s is limited to %d bytes and requests %d", c.Name, limit, c.Resources.Requests.Memory().Value())
			}
			if got := goMemoryLimit(t, c); c.Name != "check" && got != limit*9/10 {
				t.Errorf("GOMEMLIMIT of the container %s is %d, want nine tenths of %d", c.Name, got, limit)
			}
		}
	})
}

func goMemoryLimit(t *testing.T, c corev1.Container) (limit int64) {
	t.Helper()
	for _, env := range c.Env {
		if env.Name == "GOMEMLIMIT" {
			got, err := strconv.ParseInt(env.Value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			limit = got
		}
	}
	return limit
}

func TestS2TheCollectorFollowsTheLimit(t *testing.T) {
	for quantity, want := range map[string]int64{"1.5Gi": 1449551462, "600M": 540000000, "1000000000": 900000000, "1048576Ki": 966367641} {
		pod, _ := podOf(t, find(t, render(t, "--set", "scheduler.resources.limits.memory="+quantity), "Deployment", "windlass-scheduler"))
		if got := goMemoryLimit(t, pod.Spec.Containers[0]); got != want {
			t.Errorf("GOMEMLIMIT is %d below a limit of %s, want %d", got, quantity, want)
		}
	}
	pod, _ := podOf(t, find(t, render(t, "--set", "scheduler.resources.limits=null"), "Deployment", "windlass-scheduler"))
	if got := goMemoryLimit(t, pod.Spec.Containers[0]); got != 0 {
		t.Errorf("GOMEMLIMIT is %d without a limit", got)
	}
}

func TestA19BytesAreQuantities(t *testing.T) {
	for value, want := range map[string]string{"128Mi": "134217728", "0.5Gi": "536870912", "100M": "100000000"} {
		pod, _ := podOf(t, find(t, render(t, "--set", "etcd.quotaBackend="+value), "StatefulSet", "windlass-etcd"))
		if got := arguments(t, pod.Spec.Containers[0])["quota-backend-bytes"]; got != want {
			t.Errorf("%s is given as --quota-backend-bytes=%s, want %s", value, got, want)
		}
	}
	for _, value := range []string{"128MB", "-1", "many", "0Mi", "0.0Gi", "4194304"} {
		_, stderr, err := run(t, binary(t, "helm"), templateArgs(chartDir, []string{"--set", "etcd.quotaBackend=" + value})...)
		if err == nil || !strings.Contains(stderr, "/etcd/quotaBackend") {
			t.Errorf("etcd.quotaBackend=%s: %v\n%s", value, err, stderr)
		}
	}
}
