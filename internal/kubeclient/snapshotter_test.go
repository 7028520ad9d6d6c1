package kubeclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windlass-dev/windlass/internal/monitor"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// queues answers as a scheduler does that has so many calls of web in its queue, all of
// one revision, which no other scheduler serves.
func queues(waiting string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			_, _ = w.Write([]byte("# TYPE windlass_scheduler_queue_length gauge\n" +
				`windlass_scheduler_queue_length{function_namespace="team",function="web",revision="0000` + waiting + `"} ` + waiting + "\n"))
		case "/debug/decisions":
			_, _ = w.Write([]byte(`{"functions":[{"namespace":"team","name":"web","decisions":[{"what":"launched 1","until":"2026-03-01T12:00:00Z"}]}]}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// withGateway lets the control plane's gateway answer.
func withGateway(t *testing.T, answers map[string]http.HandlerFunc, gateway http.HandlerFunc) *fakeScheduler {
	t.Helper()
	c := newFakeScheduler(t, answers)
	server := httptest.NewServer(gateway)
	t.Cleanup(server.Close)
	c.addresses["gateway-1"] = strings.TrimPrefix(server.URL, "http://")
	return c
}

// idle answers as a gateway does that nobody has called.
func idle(http.ResponseWriter, *http.Request) {}

func failing(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "starting", http.StatusServiceUnavailable)
}

func TestAllSchedulersAreAsked(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	c := withGateway(t, map[string]http.HandlerFunc{"s-0": queues("3"), "s-1": queues("4"), "s-2": failing}, idle)
	now := noon
	o := c.client.Snapshotter("", func() time.Time { return now })
	var w monitor.Watcher
	for range 3 {
		sample, err := o.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := w.See(sample)
		if len(v.Functions) != 1 || v.Functions[0].Queued != 7 || v.Functions[0].Last == nil || v.Functions[0].Last.What != "launched 1" || !v.At.Equal(now) {
			t.Errorf("seen: %+v", v)
		}
		if len(v.Troubles) != 1 || !strings.Contains(v.Troubles[0], "the scheduler windlass/s-2 does not tell what it does: it answered 503") {
			t.Errorf("troubles: %q", v.Troubles)
		}
		now = now.Add(time.Second)
	}
	dialled := func(pod string) (n int) {
		for _, name := range c.dialled {
			if name == pod {
				n++
			}
		}
		return n
	}
	if dialled("s-0") != 1 || dialled("s-2") != 3 {
		t.Errorf("dialled %v, want those that tell once, and what broke again", c.dialled)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func TestNodeAgentsTellOfTheirNodes(t *testing.T) {
	c := withGateway(t, map[string]http.HandlerFunc{"s-0": queues("3")}, idle)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE windlass_node_busy gauge\nwindlass_node_busy 1\n# TYPE windlass_node_cores gauge\nwindlass_node_cores 4\n"))
	}))
	t.Cleanup(agent.Close)
	for n := range mostNodeAgents + 2 {
		name := fmt.Sprintf("node-agent-%03d", n)
		pod := gatewayPod(name, corev1.ConditionTrue)
		pod.Labels[labelComponent], pod.Spec.NodeName = "node", fmt.Sprintf("worker-%03d", n)
		c.addresses[name] = strings.TrimPrefix(agent.URL, "http://")
		if err := c.client.kube.Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
	o := c.client.Snapshotter("", func() time.Time { return noon })
	defer o.Close()
	sample, err := o.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := (&monitor.Watcher{}).See(sample)
	if len(v.Nodes) != mostNodeAgents || v.Nodes[0].Name != "worker-000" || v.Nodes[0].Order == nil || !v.Nodes[0].Order.Busy || v.Nodes[0].Order.Cores != 4 {
		t.Errorf("%d nodes: %+v", len(v.Nodes), v.Nodes[:min(1, len(v.Nodes))])
	}
	if len(v.Troubles) != 1 || v.Troubles[0] != "2 of 66 node agents are not asked" {
		t.Errorf("troubles: %q", v.Troubles)
	}
}

// answering is the connection to a pod that answers at once, without a network.
type answering struct {
	connection
	answer http.HandlerFunc
}

func (a answering) CreateStream(headers http.Header) (httpstream.Stream, error) {
	here, there := net.Pipe()
	if headers.Get(corev1.StreamType) == corev1.StreamTypeError {
		return pipe{here}, there.Close()
	}
	go func() {
		defer there.Close()
		request, err := http.ReadRequest(bufio.NewReader(there))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		a.answer(w, request)
		_ = w.Result().Write(there)
	}()
	return pipe{here}, nil
}

// partlySilent answers for some pods, and is silent for the others until it is released.
type partlySilent struct {
	silentDialer
	answers map[string]http.HandlerFunc
}

func (d *partlySilent) DialPod(namespace, pod string) (httpstream.Connection, error) {
	if answer := d.answers[pod]; answer != nil {
		return answering{answer: answer}, nil
	}
	return d.silentDialer.DialPod(namespace, pod)
}

func TestPodsThatHangHideNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &partlySilent{silentDialer{release: make(chan struct{})}, map[string]http.HandlerFunc{"s-0": queues("3")}}
		defer close(d.release)
		pod := func(name, part string) *corev1.Pod {
			pod := gatewayPod(name, corev1.ConditionTrue)
			pod.Labels[labelComponent] = part
			return pod
		}
		kube := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(pod("s-0", "scheduler"))
		for n := range 20 {
			kube.WithObjects(pod(fmt.Sprintf("gateway-%02d", n), "gateway"), pod(fmt.Sprintf("node-%02d", n), "node"),
				pod(fmt.Sprintf("r-%02d", n), "scheduler"))
		}
		o := NewWith(Deps{Context: "test", Kube: kube.Build(), Streams: d}).Snapshotter("", time.Now)
		defer o.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for range 5 {
			began := time.Now()
			sample, err := o.Sample(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if v := (&monitor.Watcher{}).See(sample); v.Totals.Queued != 3 || len(v.Troubles) != 60 {
				t.Errorf("beside hanging pods there are %d waiting calls and %d troubles", v.Totals.Queued, len(v.Troubles))
			}
			if waited := time.Since(began); waited > time.Second {
				t.Errorf("hanging pods slowed a sample down to %v", waited)
			}
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if _, err := o.Sample(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("after the caller has left: %v", err)
		}
	})
}

func TestAPodThatIsSlowIsHeardLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(patience)
			queues("4")(w, r)
		}
		d := &partlySilent{answers: map[string]http.HandlerFunc{"s-0": queues("3"), "s-1": slow}}
		kube := fake.NewClientBuilder().WithScheme(Scheme())
		for _, name := range []string{"s-0", "s-1"} {
			pod := gatewayPod(name, corev1.ConditionTrue)
			pod.Labels[labelComponent] = "scheduler"
			kube.WithObjects(pod)
		}
		o := NewWith(Deps{Context: "test", Kube: kube.Build(), Streams: d}).Snapshotter("", time.Now)
		defer o.Close()
		var w monitor.Watcher
		for _, want := range []int{3, 7} {
			sample, err := o.Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := w.See(sample).Totals.Queued; got != want {
				t.Errorf("%d wait, want %d", got, want)
			}
			time.Sleep(3 * patience)
		}
	})
}

func TestPodsThatCameAreAskedAndThoseThatWentAreNot(t *testing.T) {
	c := withGateway(t, map[string]http.HandlerFunc{"s-0": queues("3"), "s-1": queues("4")}, idle)
	now := noon
	o := c.client.Snapshotter("windlass", func() time.Time { return now })
	defer o.Close()
	queued := func() int {
		t.Helper()
		var w monitor.Watcher
		sample, err := o.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return w.See(sample).Totals.Queued
	}
	if got := queued(); got != 7 {
		t.Errorf("%d wait, want 7", got)
	}
	gone := gatewayPod("s-1", corev1.ConditionTrue)
	if err := c.client.kube.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	fresh := gatewayPod("s-9", corev1.ConditionTrue)
	fresh.Labels[labelComponent] = "scheduler"
	if err := c.client.kube.Create(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	c.addresses["s-9"] = c.addresses["s-0"] // so that both tell of one revision
	now = now.Add(relistInterval - 1)
	if got := queued(); got != 7 {
		t.Errorf("before pods are listed again %d wait, want 7", got)
	}
	now = now.Add(1)
	if got := queued(); got != 3 || !slices.Contains(c.dialled, "s-9") {
		t.Errorf("%d wait, want 3; dialled were %v", got, c.dialled)
	}
}

// listCounter counts how often objects are listed.
type listCounter struct {
	client.Client
	lists int
}

func (c *listCounter) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	return c.Client.List(ctx, list, options...)
}

func TestPodsAreNotListedForEachSampleWhileOneFails(t *testing.T) {
	c := withGateway(t, map[string]http.HandlerFunc{"s-0": queues("3"), "s-1": failing}, idle)
	counter := &listCounter{Client: c.client.kube}
	c.client = NewWith(Deps{Context: "test", Kube: counter, Streams: c})
	now := noon
	o := c.client.Snapshotter("", func() time.Time { return now })
	defer o.Close()
	for range 10 {
		if _, err := o.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(200 * time.Millisecond)
	}
	// Gateways, schedulers and node agents, at first and a second later.
	if counter.lists != 6 {
		t.Errorf("in 2 s pods were listed %d times, want 6", counter.lists)
	}
}

func TestWhyNobodyTells(t *testing.T) {
	for name, tc := range map[string]struct {
		answers map[string]http.HandlerFunc
		refused error
		reason  Reason
		want    []string
	}{
		"there is no scheduler": {nil, nil, ReasonNoPod, []string{"Windlass is not installed in any namespace"}},
		"none can":              {map[string]http.HandlerFunc{"s-0": failing}, nil, ReasonRefused, []string{"the gateway windlass/gateway-1 does not tell what it does"}},
		"no rights": {map[string]http.HandlerFunc{"s-0": queues("1")},
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "s-0", errors.New(`User "u" cannot create resource "pods/portforward" in API group "" in the namespace "windlass"`)),
			ReasonForbidden, []string{"you may not create pods/portforward in the namespace windlass", "needs the right to create pods/portforward"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := withGateway(t, tc.answers, failing)
			c.refused = tc.refused
			o := c.client.Snapshotter("", func() time.Time { return noon })
			defer o.Close()
			_, err := o.Sample(t.Context())
			wantError(t, err, tc.reason, tc.want...)
		})
	}
}
