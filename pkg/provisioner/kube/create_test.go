package kube

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

func TestAPodHasTheCAOfItsCreation(t *testing.T) {
	ca := "before"
	driver, err := New(testConfig(), Deps{
		Client: fakeClient{fake.NewClientset().CoreV1()}, Runtimes: pythonRuntime{}, CA: func() string { return ca },
		Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before", "after"} {
		ca = want
		pod, refused := driver.creator.podOf(provisioner.InstanceSpec{Function: testFunction("hello"), CID: "c-1", Node: "node-1"}, time.Now())
		if pod == nil {
			t.Fatal(refused)
		}
		agent := pod.Spec.Containers[slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == podspec.ContainerAgent })]
		if !slices.Contains(agent.Env, corev1.EnvVar{Name: "WINDLASS_CA", Value: want}) {
			t.Errorf("the environment of the agent is %v, want the CA %q", agent.Env, want)
		}
	}
}
