package kubeclient

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// fakeScheduler is a control plane with some schedulers, which can be asked.
type fakeScheduler struct {
	client *Client
	// addresses are where they listen, and dialled whose pods were.
	addresses map[string]string
	refused   error

	mu      sync.Mutex
	dialled []string
}

// newFakeScheduler has a scheduler for each answer.
func newFakeScheduler(t *testing.T, answers map[string]http.HandlerFunc) *fakeScheduler {
	t.Helper()
	c := &fakeScheduler{addresses: map[string]string{}}
	kube := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(gatewayPod("gateway-1", corev1.ConditionTrue))
	for name, answer := range answers {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		c.addresses[name] = strings.TrimPrefix(server.URL, "http://")
		pod := gatewayPod(name, corev1.ConditionTrue)
		pod.Labels[labelComponent] = "scheduler"
		kube.WithObjects(pod)
	}
	c.client = NewWith(Deps{Context: "test", Kube: kube.Build(), Streams: c})
	return c
}

func (c *fakeScheduler) DialPod(_, pod string) (httpstream.Connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialled = append(c.dialled, pod)
	if c.refused != nil {
		return nil, c.refused
	}
	return connection(c.addresses[pod]), nil
}

// connection leads to an address.
type connection string

func (c connection) CreateStream(headers http.Header) (httpstream.Stream, error) {
	if headers.Get(corev1.StreamType) == corev1.StreamTypeError {
		silent, other := net.Pipe()
		return pipe{silent}, other.Close()
	}
	if headers.Get(corev1.PortHeader) != "8081" {
		return nil, errors.New("nobody listens on port " + headers.Get(corev1.PortHeader))
	}
	conn, err := net.Dial("tcp", string(c))
	return pipe{conn}, err
}
func (connection) Close() error                       { return nil }
func (connection) CloseChan() <-chan bool             { return nil }
func (connection) SetIdleTimeout(time.Duration)       {}
func (connection) RemoveStreams(...httpstream.Stream) {}

type pipe struct{ net.Conn }

func (p pipe) Reset() error       { return p.Close() }
func (pipe) Headers() http.Header { return nil }
func (pipe) Identifier() uint32   { return 0 }

// tells answers with an account.
func tells(account decisionlog.Report) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method+r.URL.Path != "GET/debug/decisions/team/web" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(account)
	}
}

var (
	web    = invocation.FunctionKey{Namespace: "team", Name: "web"}
	served = decisionlog.Report{Name: "web", Served: true, Calls: 3, Decisions: []decisionlog.ReportEntry{{Number: 1, Summary: "launched 1"}}}
)

func TestTheSchedulerThatDecidesIsAsked(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	c := newFakeScheduler(t, map[string]http.HandlerFunc{
		"s-0": tells(decisionlog.Report{Owner: "s-2"}), "s-1": tells(decisionlog.Report{}), "s-2": tells(served),
	})
	h := c.client.DecisionGetter("")
	for range 2 {
		got, err := h.Decisions(t.Context(), web)
		if diff := cmp.Diff(served, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
	if diff := cmp.Diff([]string{"s-0", "s-2"}, c.dialled); diff != "" {
		t.Errorf("dialled (-want +got):\n%s", diff)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnotherSchedulerIsAskedWhenTheOwnerIsGone(t *testing.T) {
	gone := false
	c := newFakeScheduler(t, map[string]http.HandlerFunc{
		"s-0": func(w http.ResponseWriter, r *http.Request) {
			if gone {
				tells(decisionlog.Report{Owner: "s-1"})(w, r)
				return
			}
			tells(served)(w, r)
		},
		"s-1": tells(served),
	})
	h := c.client.DecisionGetter("windlass")
	defer h.Close()
	for _, gone = range []bool{false, true, true} {
		if _, err := h.Decisions(t.Context(), web); err != nil {
			t.Fatal(err)
		}
	}
	if h.owner.Name != "s-1" {
		t.Errorf("the owner is %s", h.owner.Name)
	}
}

func TestOneSchedulerThatFailsHidesNoOther(t *testing.T) {
	fails := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "starting", http.StatusServiceUnavailable) }
	c := newFakeScheduler(t, map[string]http.HandlerFunc{"s-0": fails, "s-1": tells(served)})
	h := c.client.DecisionGetter("")
	defer h.Close()
	if _, err := h.Decisions(t.Context(), web); err != nil {
		t.Error(err)
	}
}

func TestWhyNoSchedulerTells(t *testing.T) {
	answers := func(text string, code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) }
	}
	for name, tc := range map[string]struct {
		answers map[string]http.HandlerFunc
		refused error
		reason  Reason
		want    []string
	}{
		"there is none": {nil, nil, ReasonNoPod, []string{"Windlass is not installed in any namespace of the cluster of the context test (no scheduler pod found)"}},
		"none decides":  {map[string]http.HandlerFunc{"s-0": tells(decisionlog.Report{})}, nil, ReasonNoPod, []string{"no scheduler decides on function team/web at the moment", "try again"}},
		"it is starting": {map[string]http.HandlerFunc{"s-0": answers("the scheduler is starting", 503)}, nil, ReasonRefused,
			[]string{"the scheduler windlass/s-0 does not tell", "503 Service Unavailable: the scheduler is starting", "kubectl -n windlass logs s-0"}},
		"it is older": {map[string]http.HandlerFunc{"s-0": answers("404 page not found", 404)}, nil, ReasonRefused, []string{"404 Not Found"}},
		"nonsense":    {map[string]http.HandlerFunc{"s-0": answers("<html>", 200)}, nil, ReasonRefused, []string{"the same version"}},
		"no rights": {map[string]http.HandlerFunc{"s-0": tells(served)},
			apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "s-0", errors.New(`User "u" cannot create resource "pods/portforward" in API group "" in the namespace "windlass"`)),
			ReasonForbidden, []string{"you may not create pods/portforward in the namespace windlass", "needs the right to create pods/portforward"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newFakeScheduler(t, tc.answers)
			c.refused = tc.refused
			h := c.client.DecisionGetter("")
			defer h.Close()
			_, err := h.Decisions(t.Context(), web)
			wantError(t, err, tc.reason, tc.want...)
		})
	}
}
