package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func TestWhichSpareInstancesMustGo(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	known := map[string]bool{"scheduler-1": true}
	old := pod{created: before(time.Hour)}
	for name, c := range map[string]struct {
		pod        sparePod
		schedulers map[string]bool
		why        string
		again      time.Duration
	}{
		"one that waits":               {sparePod{old, "scheduler-1"}, known, "", orphanAge},
		"one whose agent has ended":    {sparePod{pod{created: before(time.Hour), ended: before(endedGrace)}, "scheduler-1"}, known, agentEnded, 0},
		"one that has just ended":      {sparePod{pod{created: before(time.Hour), ended: before(endedGrace - time.Second)}, "scheduler-1"}, known, "", time.Second},
		"one that is being deleted":    {sparePod{pod{created: before(time.Hour), deleting: true}, "gone"}, known, "", 0},
		"one whose scheduler is gone":  {sparePod{old, "gone"}, known, schedulerGone, 0},
		"one of a new scheduler":       {sparePod{pod{created: before(orphanAge - time.Second)}, "new"}, known, "", time.Second},
		"one while nobody is known of": {sparePod{old, "gone"}, nil, "", orphanAge},
	} {
		if why, again := spareDoom(c.pod, c.schedulers, now); why != c.why || again != c.again {
			t.Errorf("%s: %q, again in %v; want %q, %v", name, why, again, c.why, c.again)
		}
	}
}

// makeSpare makes a pod of a scheduler's warm pool.
func (w *world) makeSpare(name string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: v1alpha1.ComponentSpare,
			v1alpha1.LabelRuntime: "python3.13", v1alpha1.LabelPool: "small", v1alpha1.LabelScheduler: "windlass-scheduler-1",
		}},
		Spec: corev1.PodSpec{
			NodeName: "nowhere", TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "agent", Image: "a"}, {Name: "function", Image: "b"}},
		},
	}
	w.make(p)
	return p
}

func TestSparePodsWhoseAgentEndedGo(t *testing.T) {
	w := newWorld(t, nil)
	waits, ended := w.makeSpare("waits"), w.makeSpare("ended")
	w.endAgent(ended)
	w.gone(ended)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(waits), waits); err != nil {
		t.Errorf("the pod that waits: %v", err)
	}
}

func TestSchedulersAreKnownByTheirPods(t *testing.T) {
	c := newClient(t)
	r := &spareReconciler{client: c, namespace: newNamespace(t, c), service: "windlass-scheduler-peers"}
	found := func(want int) {
		t.Helper()
		if got, err := r.schedulers(t.Context()); err != nil || len(got) != want {
			t.Errorf("schedulers %v, %v; want %d", got, err, want)
		}
	}
	found(0)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "peers-1", Namespace: r.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: r.service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "a"}},
			{Addresses: []string{"10.0.0.2"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "b"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
		},
	}
	if err := c.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	found(2)
	// Whoever is not told by name could be any of them.
	slice.Endpoints[0].TargetRef = nil
	if err := c.Update(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	found(0)
}
