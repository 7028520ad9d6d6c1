package kubeclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

// nodes are the logs of pods: each opening of one reads what open returns.
type nodes struct {
	mu     sync.Mutex
	open   func(pod string, nth int) (io.ReadCloser, error)
	asked  map[string]int
	wanted []string
}

func (n *nodes) OpenLog(_ context.Context, _, pod string, o *corev1.PodLogOptions) (io.ReadCloser, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked == nil {
		n.asked = map[string]int{}
	}
	n.asked[pod]++
	want := fmt.Sprintf("%s %s follow=%t", pod, o.Container, o.Follow)
	if o.TailLines != nil {
		want += fmt.Sprintf(" tail=%d", *o.TailLines)
	}
	if o.SinceTime != nil {
		want += " since=" + o.SinceTime.UTC().Format("05")
	}
	n.wanted = append(n.wanted, want)
	return n.open(pod, n.asked[pod])
}

func text(lines ...string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(strings.Join(lines, "\n") + "\n")), nil
}

// stuck is a log that goes on after its lines until it is closed.
type stuck struct {
	io.Reader
	ctx context.Context
}

func (s stuck) Read(p []byte) (int, error) {
	if n, _ := s.Reader.Read(p); n > 0 {
		return n, nil
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func (stuck) Close() error { return nil }

func notStarted() (io.ReadCloser, error) {
	return nil, apierrors.NewBadRequest(`container "function" is waiting to start: ContainerCreating`)
}

func podNamed(name string, age time.Duration, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name),
		CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
		Labels:            map[string]string{wellknown.LabelFunctionUID: "u", wellknown.LabelCID: strings.TrimPrefix(name, "f-")}},
		Status: corev1.PodStatus{Phase: phase}}
}

func withPods(n *nodes, pods ...*corev1.Pod) (*Client, client.Client) {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "f", UID: "u"}}
	builder := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(fn)
	for _, pod := range pods {
		builder.WithObjects(pod)
	}
	kube := builder.Build()
	return NewWith(Deps{Context: "test", Kube: kube, Logs: n}), kube
}

func TestLogsOfAllInstances(t *testing.T) {
	n := &nodes{open: func(pod string, _ int) (io.ReadCloser, error) {
		if pod == "f-3" {
			return notStarted()
		}
		return text("2026-03-01T12:00:00.5Z hi from "+pod, "2026-03-01T12:00:00.5Z ", "2026-03-01T12:00:01Z bye")
	}}
	c, _ := withPods(n, podNamed("f-2", time.Minute, corev1.PodRunning), podNamed("f-1", time.Hour, corev1.PodRunning), podNamed("f-3", 0, corev1.PodPending))
	var out bytes.Buffer
	if err := c.Logs(t.Context(), LogRequest{Key: key("default", "f"), Tail: 5, Out: &out, Notes: io.Discard}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("1 | \n2 | hi from f-2\n2 | \n1 | bye\n2 | bye\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.Logs(t.Context(), LogRequest{Key: key("default", "f"), Tail: -1, Agent: true, Out: io.Discard}); err != nil {
		t.Fatal(err)
	}
	want := []string{"f-1 function follow=false tail=5", "f-2 function follow=false tail=5", "f-3 function follow=false tail=5",
		"f-1 agent follow=false", "f-2 agent follow=false", "f-3 agent follow=false"}
	if diff := cmp.Diff(want, n.wanted); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
}

// nodeGone is what the API server answers about a pod on a node that is gone.
func nodeGone() (io.ReadCloser, error) {
	return nil, apierrors.NewInternalError(errors.New("dial tcp 10.0.0.9:10250: i/o timeout"))
}

// broken is a log whose connection breaks after its lines.
func broken(lines ...string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Join(lines, "\n")+"\n"), iotest.ErrReader(errors.New("connection reset")))), nil
}

func TestALogThatCannotBeReadHidesNoOther(t *testing.T) {
	one, two, three := "2026-03-01T12:00:01Z one", "2026-03-01T12:00:02Z two", "2026-03-01T12:00:03Z three"
	for name, tt := range map[string]struct {
		open  map[string]func() (io.ReadCloser, error)
		lines string
		notes []string
		fails Reason
	}{
		"a node is gone": {map[string]func() (io.ReadCloser, error){
			"f-1": nodeGone, "f-2": func() (io.ReadCloser, error) { return text(two) },
		}, "2 | two\n", []string{"log of instance 1 on node node-1", "i/o timeout"}, ""},
		"a node is gone, and an instance starts": {map[string]func() (io.ReadCloser, error){
			"f-1": nodeGone, "f-2": notStarted,
		}, "", []string{"log of instance 1 on node node-1"}, ReasonNoPod},
		"a connection breaks": {map[string]func() (io.ReadCloser, error){
			"f-1": func() (io.ReadCloser, error) { return broken(one) }, "f-2": func() (io.ReadCloser, error) { return text(two, three) },
		}, "1 | one\n2 | two\n2 | three\n", []string{"log of instance 1 on node node-1", "connection reset"}, ""},
		"the only connections break": {map[string]func() (io.ReadCloser, error){
			"f-1": func() (io.ReadCloser, error) { return broken(one) }, "f-2": func() (io.ReadCloser, error) { return broken(two) },
		}, "1 | one\n2 | two\n", nil, ReasonUnreachable},
		"all nodes are gone": {map[string]func() (io.ReadCloser, error){"f-1": nodeGone, "f-2": nodeGone}, "", nil, ReasonRefused},
	} {
		t.Run(name, func(t *testing.T) {
			pods := []*corev1.Pod{podNamed("f-1", time.Hour, corev1.PodRunning), podNamed("f-2", time.Minute, corev1.PodRunning)}
			pods[0].Spec.NodeName = "node-1"
			c, _ := withPods(&nodes{open: func(pod string, _ int) (io.ReadCloser, error) { return tt.open[pod]() }}, pods...)
			var out, notes bytes.Buffer
			err := c.Logs(t.Context(), LogRequest{Key: key("default", "f"), Tail: 5, Out: &out, Notes: &notes})
			if (err != nil) != (tt.fails != "") || err != nil && !Is(err, tt.fails) {
				t.Errorf("the error is %v, want reason %q", err, tt.fails)
			}
			if out.String() != tt.lines {
				t.Errorf("printed:\n%swant:\n%s", out.String(), tt.lines)
			}
			if len(tt.notes) == 0 && notes.Len() > 0 {
				t.Errorf("the notes repeat the error: %s", notes.String())
			}
			for _, note := range tt.notes {
				if !strings.Contains(notes.String(), note) {
					t.Errorf("the notes do not say %q: %s", note, notes.String())
				}
			}
		})
	}
}

func TestAFollowedLogThatCouldNotBeReadIsReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		n := &nodes{open: func(pod string, nth int) (io.ReadCloser, error) {
			switch {
			case nth > 2:
				return stuck{strings.NewReader("2026-03-01T12:00:01Z from " + pod + "\n"), ctx}, nil
			case pod == "f-1":
				return nodeGone()
			}
			return io.NopCloser(strings.NewReader("")), nil
		}}
		c, _ := withPods(n, podNamed("f-1", time.Hour, corev1.PodRunning), podNamed("f-2", time.Minute, corev1.PodRunning))
		var out, notes bytes.Buffer
		if err := c.Logs(ctx, LogRequest{Key: key("default", "f"), Follow: true, Tail: 7, Out: &out, Notes: &notes}); err != nil {
			t.Fatal(err)
		}
		if told := strings.Count(notes.String(), "the log of instance 1"); told != 1 {
			t.Errorf("that the log cannot be read is said %d times", told)
		}
		if !strings.Contains(out.String(), "1 | from f-1\n") || !slices.Contains(n.wanted, "f-1 function follow=true tail=7") {
			t.Errorf("printed:\n%sasked for %q", out.String(), n.wanted)
		}
	})
}

// following follows the log of a function whose only instance comes later, until ctx ends.
func following(ctx context.Context, t *testing.T, n *nodes, out, notes io.Writer) error {
	c, kube := withPods(n)
	go func() {
		time.Sleep(3 * time.Second)
		if err := kube.Create(ctx, podNamed("f-1", 0, corev1.PodRunning)); err != nil {
			t.Error(err)
		}
	}()
	return c.Logs(ctx, LogRequest{Key: key("default", "f"), Follow: true, Tail: -1, Out: out, Notes: notes})
}

func TestFollowingALogThatTheUserMayNotReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := &nodes{open: func(string, int) (io.ReadCloser, error) {
			return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/log"}, "f-1", errors.New(`User "u" cannot get resource "pods/log" in API group "" in the namespace "default"`))
		}}
		wantError(t, following(ctx, t, n, io.Discard, io.Discard), ReasonForbidden, "you may not get pods/log")
	})
}

func TestThatAFollowedLogCannotBeReadIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := &nodes{open: func(_ string, nth int) (io.ReadCloser, error) {
			if nth <= 10 {
				return nil, errors.New("dial tcp: i/o timeout")
			}
			return stuck{strings.NewReader("2026-03-01T12:00:01Z hi\n"), ctx}, nil
		}}
		var out, notes bytes.Buffer
		if err := following(ctx, t, n, &out, &notes); err != nil {
			t.Fatal(err)
		}
		if strings.Count(notes.String(), "the log of instance 1 on node") != 1 || out.String() != "1 | hi\n" {
			t.Errorf("printed:\n%snotes:\n%s", out.String(), notes.String())
		}
	})
}

// full is a disk that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestFollowingEndsWhenNothingCanBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n := &nodes{open: func(string, int) (io.ReadCloser, error) { return text("2026-03-01T12:00:01Z hi") }}
		if err := following(ctx, t, n, full{}, io.Discard); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestA12LogsOfAllPodsAreInTheOrderOfTime(t *testing.T) {
	at := func(second int, line string) string { return fmt.Sprintf("2026-03-01T12:00:%02d.5Z %s", second, line) }
	n := &nodes{open: func(pod string, _ int) (io.ReadCloser, error) {
		if pod == "f-1" {
			return text(at(1, "one"), at(4, "four"), at(5, "five"))
		}
		return text(at(2, "two"), at(3, "three"), at(6, "six"))
	}}
	c, _ := withPods(n, podNamed("f-1", time.Hour, corev1.PodRunning), podNamed("f-2", time.Minute, corev1.PodRunning))
	for want, request := range map[string]LogRequest{
		"1 | one\n2 | two\n2 | three\n1 | four\n1 | five\n2 | six\n": {Tail: -1},
		"1 | five\n2 | six\n": {Tail: 2},
		"2026-03-01T12:00:05.500Z 1 | five\n2026-03-01T12:00:06.500Z 2 | six\n": {Tail: -1, Since: time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC), Timestamps: true},
	} {
		var out bytes.Buffer
		request.Key, request.Out, request.Notes = key("default", "f"), &out, io.Discard
		if err := c.Logs(t.Context(), request); err != nil || out.String() != want {
			t.Errorf("%v, printed:\n%swant:\n%s", err, out.String(), want)
		}
	}
	if last := n.wanted[len(n.wanted)-1]; !slices.ContainsFunc(n.wanted, func(w string) bool { return strings.HasSuffix(w, "since=05") }) {
		t.Errorf("the cluster sends lines from before, such as for %s", last)
	}
}

func TestA12AFollowedLogEndsWhenItsFunctionIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nodes{open: func(_ string, nth int) (io.ReadCloser, error) {
			if nth == 1 {
				return text("2026-03-01T12:00:00.1Z a")
			}
			return stuck{strings.NewReader(""), t.Context()}, nil
		}}
		c, kube := withPods(n)
		var notes bytes.Buffer
		done := make(chan error)
		go func() {
			done <- c.Logs(t.Context(), LogRequest{Key: key("default", "f"), Follow: true, Tail: -1, Out: io.Discard, Notes: &notes})
		}()
		synctest.Wait()
		fn, err := c.Get(t.Context(), key("default", "f"))
		if err != nil {
			t.Fatal(err)
		}
		if err := kube.Delete(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || !strings.Contains(notes.String(), "function default/f was deleted: its log ends here") {
			t.Errorf("%v, notes: %s", err, notes.String())
		}
	})
}

func TestLogsOfNobody(t *testing.T) {
	request := LogRequest{Key: key("default", "f"), Tail: -1, Out: io.Discard, Notes: io.Discard}
	n := &nodes{open: func(string, int) (io.ReadCloser, error) { return notStarted() }}
	c, _ := withPods(n)
	wantError(t, c.Logs(t.Context(), request), ReasonNoPod, "has no instance", "call it first", "--follow")
	c, _ = withPods(n, podNamed("f-1", 0, corev1.PodPending))
	wantError(t, c.Logs(t.Context(), request), ReasonNoPod, "no instance of function default/f has started yet", "windlass describe default/f")
	request.Key.Name = "g"
	wantError(t, c.Logs(t.Context(), request), ReasonNotFound)
}

func TestALongLineIsPrintedInPieces(t *testing.T) {
	long := strings.Repeat("x", 2*maxLine)
	n := &nodes{open: func(string, int) (io.ReadCloser, error) {
		return text("2026-03-01T12:00:00Z "+long, "2026-03-01T12:00:01Z end")
	}}
	c, _ := withPods(n, podNamed("f-1", 0, corev1.PodRunning))
	var out bytes.Buffer
	if err := c.Logs(t.Context(), LogRequest{Key: key("default", "f"), Tail: -1, Out: &out}); err != nil {
		t.Fatal(err)
	}
	joined := strings.ReplaceAll(out.String(), "\n1 | ", "")
	if want := "1 | " + long + "end\n"; joined != want {
		t.Errorf("%d bytes were printed, want %d", len(joined), len(want))
	}
}

func TestFollowedLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := &nodes{open: func(pod string, nth int) (io.ReadCloser, error) {
			switch {
			case pod == "f-1" && nth == 1:
				// The connection breaks while the container runs.
				return text("2026-03-01T12:00:00.1Z a", "2026-03-01T12:00:01.5Z b")
			case pod == "f-1":
				return stuck{strings.NewReader("2026-03-01T12:00:01.5Z b\n2026-03-01T12:00:01.6Z c\n"), ctx}, nil
			case pod == "f-2" && nth == 1:
				return notStarted()
			}
			return text("2026-03-01T12:00:05Z from " + pod)
		}}
		c, kube := withPods(n, podNamed("f-1", time.Hour, corev1.PodRunning))
		var out, notes bytes.Buffer
		done := make(chan error)
		go func() {
			done <- c.Logs(ctx, LogRequest{Key: key("default", "f"), Follow: true, Tail: 7, Out: &out, Notes: &notes})
		}()
		synctest.Wait()
		if err := kube.Create(ctx, podNamed("f-2", 0, corev1.PodSucceeded)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the end of the context is the error %v", err)
		}
		if diff := cmp.Diff("1 | a\n1 | b\n1 | c\n2 | from f-2\n", out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		want := []string{"f-1 function follow=false tail=7", "f-1 function follow=true since=01", "f-2 function follow=true", "f-2 function follow=true"}
		if diff := cmp.Diff(want, n.wanted, cmp.Transformer("sorted", func(in []string) map[string]int {
			counts := map[string]int{}
			for _, one := range in {
				counts[one]++
			}
			return counts
		})); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}

func TestFollowingNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, _ := withPods(&nodes{})
		var notes bytes.Buffer
		if err := c.Logs(ctx, LogRequest{Key: key("default", "f"), Follow: true, Notes: &notes}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(notes.String(), "waiting for one") {
			t.Errorf("the notes are %q", notes.String())
		}
	})
}

func TestNoMoreLogsAreFollowedThanAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := &nodes{open: func(_ string, nth int) (io.ReadCloser, error) {
			if nth == 1 {
				return io.NopCloser(strings.NewReader("")), nil
			}
			return stuck{strings.NewReader(""), ctx}, nil
		}}
		var pods []*corev1.Pod
		for i := range maxFollowed + 5 {
			pods = append(pods, podNamed(fmt.Sprintf("f-%d", i), time.Duration(i), corev1.PodRunning))
		}
		c, _ := withPods(n, pods...)
		var notes bytes.Buffer
		if err := c.Logs(ctx, LogRequest{Key: key("default", "f"), Follow: true, Tail: -1, Out: io.Discard, Notes: &notes}); err != nil {
			t.Fatal(err)
		}
		if len(n.wanted) != 2*maxFollowed || strings.Count(notes.String(), "more instances") != 1 {
			t.Errorf("%d logs were followed; notes: %s", len(n.wanted), notes.String())
		}
	})
}

func TestAnOldPodThatIsFollowedLateHasNoMoreLinesThanRequested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		n := &nodes{open: func(pod string, nth int) (io.ReadCloser, error) {
			switch {
			case nth == 1 && pod == "f-7":
				return notStarted()
			case nth == 1 && pod != "f-old":
				return text("2026-03-01T12:00:00Z hi")
			}
			return stuck{strings.NewReader(""), ctx}, nil
		}}
		var pods []*corev1.Pod
		for i := range maxFollowed {
			pods = append(pods, podNamed(fmt.Sprintf("f-%d", i), time.Hour, corev1.PodRunning))
		}
		c, kube := withPods(n, append(pods, podNamed("f-old", time.Minute, corev1.PodRunning))...)
		time.AfterFunc(3*time.Second, func() {
			if err := errors.Join(kube.Delete(ctx, pods[0]), kube.Delete(ctx, pods[1]), kube.Create(ctx, podNamed("f-new", 0, corev1.PodRunning))); err != nil {
				t.Error(err)
			}
		})
		if err := c.Logs(ctx, LogRequest{Key: key("default", "f"), Follow: true, Tail: 20, Out: io.Discard, Notes: io.Discard}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"f-old function follow=true tail=20", "f-new function follow=true", "f-7 function follow=true"} {
			if !slices.Contains(n.wanted, want) {
				t.Errorf("asked for %q, want %q", n.wanted, want)
			}
		}
	})
}
