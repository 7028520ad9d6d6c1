package provisioner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// fakeDriver starts nothing and ends what it is told to.
type fakeDriver struct {
	started []InstanceSpec
	stopped []invocation.CID
	// finished are those that were said to have no calls to finish.
	finished []invocation.CID
	exits    chan Exit
	// code is that of whatever is stopped.
	code string
}

func (r *fakeDriver) Start(spec InstanceSpec) { r.started = append(r.started, spec) }
func (r *fakeDriver) Stop(uid string, cid invocation.CID, finished bool) {
	r.stopped = append(r.stopped, cid)
	if finished {
		r.finished = append(r.finished, cid)
	}
	r.exits <- Exit{FunctionUID: uid, CID: cid, Code: r.code, Reason: "stopped", LogTail: []string{"last words"}}
}
func (r *fakeDriver) Exits() <-chan Exit { return r.exits }

// eventRecorder keeps what the provisioner tells.
type eventRecorder struct {
	mu    sync.Mutex
	lines []string
	codes []string
	// notOwned says that another scheduler may own every function.
	notOwned bool
}

func (e *eventRecorder) Owns(string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.notOwned
}

func (e *eventRecorder) letOwn(yes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notOwned = !yes
}

func (e *eventRecorder) add(code, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines, e.codes = append(e.lines, fmt.Sprintf(format, args...)), append(e.codes, code)
}

func (e *eventRecorder) snapshot() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.lines)
}

func (e *eventRecorder) StartFailed(key Key, why StartFailure) {
	e.add(why.Code, "%s failed: %s", key.CID, why)
}
func (e *eventRecorder) Gone(key Key, lost bool, why StartFailure) {
	e.add(why.Code, "%s gone, lost %v: %s", key.CID, lost, why.Reason)
}

const cid1, cid2 = invocation.CID("00000007-000001"), invocation.CID("00000007-000002")

// requested is what is requested of the first node.
func requested(p *Provisioner) placement.Amount {
	return p.Candidates(function()).Nodes[0].Requested
}

func function() *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Name: "f", UID: types.UID("u"), Generation: 1}}
	cpu, memory := resource.MustParse("100m"), resource.MustParse("64Mi")
	fn.Spec.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
	fn.Spec.Template.StartupTimeout.Duration = 10 * time.Second
	return fn
}

// running runs a provisioner with one node of 400m CPU for the length of body.
func running(t *testing.T, body func(p *Provisioner, r *fakeDriver, e *eventRecorder)) {
	synctest.Test(t, func(t *testing.T) {
		r, e := &fakeDriver{exits: make(chan Exit, 16)}, &eventRecorder{}
		p := New(
			Config{Nodes: []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: 400, Memory: 1 << 30}}}},
			Deps{Driver: r, Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx, e) }()
		body(p, r, e)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// start makes the n-th launched instance one that has pulled.
func start(t *testing.T, p *Provisioner, spec InstanceSpec) Key {
	t.Helper()
	key := Key{FunctionUID: "u", CID: spec.CID}
	if _, err := p.Check(key, spec.Token); err != nil {
		t.Fatal(err)
	}
	p.Connect(key)
	_, first := p.Pulled(key)
	if _, again := p.Pulled(key); !first || again {
		t.Error("exactly the first pull is the first")
	}
	return key
}

func expectEvents(t *testing.T, e *eventRecorder, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, e.snapshot()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestOrderCountsAtOnceAndFillsTheNode(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		launched := p.Launch(function(), invocation.Term{Epoch: 7}, 9)
		if len(launched.Keys) != 4 || launched.Keys[0].CID != cid1 || !strings.Contains(launched.NoRoom, "a node has at most 0m free") {
			t.Errorf("launched %+v", launched)
		}
		if c := p.Observe("u").Counts; c != (Counts{Creating: 4}) {
			t.Errorf("counts %+v", c)
		}
		start(t, p, r.started[0])
		if c := p.Observe("u").Counts; c != (Counts{Creating: 3, Created: 1}) {
			t.Errorf("counts %+v", c)
		}
		p.End(Key{"u", cid2}, Ending{})
		expectEvents(t, e, "00000007-000002 gone, lost false: stopped")
		if again := p.Launch(function(), invocation.Term{Epoch: 7}, 1); len(again.Keys) != 1 || again.Keys[0].CID != "00000007-000005" {
			t.Errorf("launched %+v after one was stopped", again)
		}
	})
}

func TestAgentMustShowItsToken(t *testing.T) {
	running(t, func(p *Provisioner, _ *fakeDriver, _ *eventRecorder) {
		key := p.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys[0]
		if _, err := p.Check(key, "guess"); !errors.Is(err, ErrBadToken) {
			t.Errorf("wrong token: %v", err)
		}
		if _, err := p.Check(Key{"u", cid2}, "guess"); !errors.Is(err, ErrUnknownInstance) {
			t.Errorf("unknown instance: %v", err)
		}
	})
}

func TestFunctionThatDoesNotStartIsTriedLessAndLess(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		var waits []time.Duration
		begin := time.Now()
		for len(waits) < 7 {
			if launched := p.Launch(function(), invocation.Term{Epoch: 7}, 3); len(launched.Keys) > 0 {
				waits = append(waits, time.Since(begin).Round(100*time.Millisecond))
				begin = time.Now()
				for _, key := range launched.Keys {
					r.exits <- Exit{FunctionUID: "u", CID: key.CID, Reason: "the function exited with status 3"}
				}
				synctest.Wait()
			}
			time.Sleep(100 * time.Millisecond)
		}
		// The three that fail at first are one failure.
		want := []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second}
		if !slices.Equal(waits, want) {
			t.Errorf("waited %v, want %v", waits, want)
		}
		why, retry, failing := startsFail(p.Inventory, "u")
		if !failing || retry <= 0 || why.Reason != "the function exited with status 3" {
			t.Errorf("failing: %v, %v, %v", why, retry, failing)
		}
		time.Sleep(time.Minute)
		p.Launch(function(), invocation.Term{Epoch: 7}, 1)
		start(t, p, r.started[len(r.started)-1])
		if _, _, failing := startsFail(p.Inventory, "u"); failing {
			t.Error("still failing after a start")
		}
	})
}

func TestAgentsReasonIsBetterThanTheExits(t *testing.T) {
	running(t, func(p *Provisioner, _ *fakeDriver, e *eventRecorder) {
		key := p.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys[0]
		p.End(key, Ending{Code: v1alpha1.ReasonStartFailed, Reason: "nothing listens on port 4242"})
		p.End(key, Ending{})
		expectEvents(t, e, "00000007-000001 failed: nothing listens on port 4242; its last log lines:\nlast words")
	})
}

func TestInstanceThatEndsUnexpectedlyIsLost(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 2)
		start(t, p, r.started[0])
		leaving := start(t, p, r.started[1])
		p.End(leaving, Ending{Within: time.Minute})
		r.exits <- Exit{FunctionUID: "u", CID: cid1, Reason: "killed"}
		r.exits <- Exit{FunctionUID: "u", CID: cid2, Reason: "exited"}
		expectEvents(t, e, "00000007-000001 gone, lost true: killed", "00000007-000002 gone, lost false: exited")
		if c := p.Observe("u").Counts; c != (Counts{}) {
			t.Errorf("counts %+v", c)
		}
	})
}

func TestALostNodeIsWhyAnInstanceFellSilent(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		r.code = v1alpha1.ReasonNodeLost
		p.Launch(function(), invocation.Term{Epoch: 7}, 1)
		p.Disconnect(start(t, p, r.started[0]))
		time.Sleep(reconnectTimeout + 2*time.Second)
		expectEvents(t, e, "00000007-000001 gone, lost true: stopped")
	})
}

func TestSilentInstancesAreStopped(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 2)
		key := start(t, p, r.started[0])
		p.Disconnect(key)
		if c := p.Observe("u").Counts; c.Created != 0 {
			t.Errorf("an instance without a stream counts: %+v", c)
		}
		time.Sleep(reconnectTimeout + 2*time.Second)
		expectEvents(t, e, "00000007-000001 gone, lost true: its agent was silent for too long")
		time.Sleep(startGrace)
		synctest.Wait()
		if lines := e.snapshot(); len(lines) != 2 || !strings.HasPrefix(lines[1], "00000007-000002 failed: its agent did not connect in time") {
			t.Errorf("told %v", lines)
		}
		if want := []string{v1alpha1.ReasonAgentSilent, v1alpha1.ReasonStartTimeout}; !slices.Equal(e.codes, want) {
			t.Errorf("the codes are %v, want %v", e.codes, want)
		}
	})
}

func TestInstanceThatIsLetGoMustEndInTime(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 2)
		patient, stopped := start(t, p, r.started[0]), start(t, p, r.started[1])
		p.End(patient, Ending{Within: time.Minute})
		time.Sleep(30 * time.Second)
		p.End(patient, Ending{Within: time.Hour}) // the first notice counts
		p.End(stopped, Ending{Within: time.Second})
		p.End(stopped, Ending{}) // the runtime sees to it now
		expectEvents(t, e, "00000007-000002 gone, lost false: stopped")
		time.Sleep(33 * time.Second)
		expectEvents(t, e, "00000007-000002 gone, lost false: stopped",
			"00000007-000001 gone, lost false: it did not end in time after it was asked to")
		if got := requested(p); got != (placement.Amount{}) {
			t.Errorf("%+v is still requested", got)
		}
	})
}

// A pod has the time for calls otherwise, and its program may not hear that it is to end.
func TestAnInstanceThatNeverHadCallsIsStoppedAsFinished(t *testing.T) {
	late := startLimit(function()) + 2*overdueEvery
	for name, c := range map[string]struct {
		stop     func(p *Provisioner, e *eventRecorder, key Key)
		finished bool
	}{
		"ended, with a connected agent": {func(p *Provisioner, _ *eventRecorder, key Key) {
			p.Connect(key)
			time.Sleep(2 * overdueEvery)
			p.End(key, Ending{})
		}, true},
		"late, with a connected agent": {func(p *Provisioner, _ *eventRecorder, key Key) { p.Connect(key); time.Sleep(late) }, true},
		// The agents of these may have found another scheduler, which stands in for this one.
		"cancelled": {func(p *Provisioner, _ *eventRecorder, _ Key) { p.CancelLaunches("u", 1) }, false},
		"ended": {func(p *Provisioner, _ *eventRecorder, key Key) {
			time.Sleep(2 * overdueEvery)
			p.End(key, Ending{})
		}, false},
		"late": {func(_ *Provisioner, _ *eventRecorder, _ Key) { time.Sleep(late) }, false},
		"late, whose agent has connected twice": {func(p *Provisioner, _ *eventRecorder, key Key) {
			p.Connect(key)
			p.Disconnect(key)
			p.Connect(key)
			time.Sleep(late)
		}, false},
		"that may have had some of another scheduler": {func(p *Provisioner, e *eventRecorder, key Key) {
			p.Connect(key)
			e.letOwn(false)
			time.Sleep(2 * overdueEvery)
			p.End(key, Ending{})
		}, false},
		"that has pulled": {func(p *Provisioner, _ *eventRecorder, key Key) {
			p.Pulled(key)
			p.End(key, Ending{})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
				key := p.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys[0]
				c.stop(p, e, key)
				synctest.Wait()
				if got := len(r.finished) == 1; len(r.stopped) != 1 || got != c.finished {
					t.Errorf("stopped %v, as finished %v; want one, as finished: %t", r.stopped, r.finished, c.finished)
				}
			})
		})
	}
	t.Run("adopted", func(t *testing.T) {
		running(t, func(p *Provisioner, r *fakeDriver, _ *eventRecorder) {
			adopted(p.Inventory, Instance{Key: Key{FunctionUID: "u", CID: cid1}, Launched: p.deps.Now(), StartBy: p.deps.Now()})
			time.Sleep(2 * overdueEvery)
			if synctest.Wait(); len(r.stopped) != 1 || len(r.finished) != 0 {
				t.Errorf("stopped %v, as finished %v", r.stopped, r.finished)
			}
		})
	})
}

func TestALateInstanceIsBlamedForWhatIsMissing(t *testing.T) {
	for want, in := range map[string]Instance{
		"its agent did not connect in time": {},
		"it was not ready in time":          {Connected: true},
		"its agent was silent for too long": {Adopted: true},
	} {
		if got := in.overdueReason(); got != want {
			t.Errorf("%+v is blamed because %q, want %q", in, got, want)
		}
	}
}

// While a scheduler stood still, another one may have given the instance calls.
func TestNothingIsCertainAfterAPause(t *testing.T) {
	for name, c := range map[string]struct {
		pauses []time.Duration // before each look
		since  time.Duration   // the last look
		want   bool
	}{
		"no look yet":                   {nil, 0, true},
		"a pause before the first look": {[]time.Duration{time.Minute}, 0, false},
		"no pause":                      {[]time.Duration{0, overdueEvery}, overdueEvery, true},
		"a pause before this moment":    {[]time.Duration{0, overdueEvery}, pauseThreshold, false},
		"a pause between two looks":     {[]time.Duration{0, pauseThreshold, overdueEvery}, 0, false},
		"a pause long ago":              {append([]time.Duration{0, pauseThreshold}, slices.Repeat([]time.Duration{overdueEvery}, 16)...), 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(10_000, 0)
			i := newInventory(func() time.Time { return now })
			launched := i.launch("u", invocation.Term{Epoch: 7}.CID, 1, func() (Instance, bool) { return Instance{Launched: now, StartWithin: time.Hour}, true })
			i.Connect(launched[0].Key)
			for _, d := range c.pauses {
				now = now.Add(d)
				i.takeOverdue(func(string) bool { return true }, func(in *Instance) time.Time { return in.Launched })
			}
			now = now.Add(c.since)
			if got := i.markEnding(launched[0].Key, Ending{}); got != c.want {
				t.Errorf("it counts as one that had no calls: %t, want %t", got, c.want)
			}
		})
	}
}

// A machine that is short of cores looks late at each look.
func TestAStarvedSchedulerStopsAnInstanceThatIsNeverReady(t *testing.T) {
	now := time.Unix(10_000, 0)
	i := newInventory(func() time.Time { return now })
	launched := i.launch("u", invocation.Term{Epoch: 7}.CID, 1, func() (Instance, bool) { return Instance{Launched: now, StartWithin: time.Minute}, true })
	i.Connect(launched[0].Key)
	for range 300 {
		now = now.Add(2 * time.Second)
		if overdue := i.takeOverdue(func(string) bool { return true }, func(in *Instance) time.Time { return in.Launched }); len(overdue) > 0 {
			if overdue[0].Finished {
				t.Error("it counts as one that had no calls")
			}
			return
		}
	}
	t.Error("it is not stopped within 10 minutes")
}

// It may be cut off from all others, and then nobody's agents come to it.
func TestSilenceIsNoEndWhereAnotherMayOwnTheFunction(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 2)
		working := start(t, p, r.started[0])
		e.letOwn(false)
		time.Sleep(time.Second)
		p.Disconnect(working)
		time.Sleep(time.Hour)
		// It launched the other one itself, and nobody has heard of it.
		failed := "00000007-000002 failed: its agent did not connect in time; its last log lines:\nlast words"
		expectEvents(t, e, failed)
		e.letOwn(true)
		time.Sleep(adoptTimeout - time.Second)
		expectEvents(t, e, failed)
		time.Sleep(3 * time.Second)
		expectEvents(t, e, failed, "00000007-000001 gone, lost true: its agent was silent for too long")
	})
}

func TestNothingIsKeptOfAFunctionThatIsGone(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 2)
		key := start(t, p, r.started[0])
		p.Forget("u")
		r.exits <- Exit{FunctionUID: "u", CID: cid2, Reason: "killed"}
		synctest.Wait()
		if again := p.Launch(function(), invocation.Term{Epoch: 7}, 1); len(again.Keys) != 0 {
			t.Errorf("launched %v during the backoff", again.Keys)
		}
		p.Forget("u")
		p.End(key, Ending{})
		synctest.Wait()
		if o := p.Observe("u"); o.Failing || len(p.functions) != 0 || o.Counts != (Counts{}) {
			t.Errorf("left: %+v, accounts %v", o, p.functions)
		}
	})
}

func TestNamesAreNotGivenTwice(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.End(p.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys[0], Ending{})
		synctest.Wait()
		p.ResetBackoff("u")
		again := p.Launch(function(), invocation.Term{Epoch: 7}, 1)
		if len(again.Keys) != 1 || again.Keys[0].CID != cid2 {
			t.Fatalf("launched %+v, want the next name", again)
		}
		p.Forget("u") // and then it is there again
		third := p.Launch(function(), invocation.Term{Epoch: 7}, 1)
		p.End(again.Keys[0], Ending{})
		p.End(third.Keys[0], Ending{})
		synctest.Wait()
		if again := p.Launch(function(), invocation.Term{Epoch: 7}, 1); len(again.Keys) != 1 || again.Keys[0].CID != "00000007-000004" {
			t.Errorf("launched %+v, want the fourth name", again)
		}
	})
}

func TestBadLuckWithNodesIsNotTheFunctionsFault(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, _ *eventRecorder) {
		for try := 1; try <= nodeTries; try++ {
			p.Launch(function(), invocation.Term{Epoch: 7}, 1)
			spec := r.started[len(r.started)-1]
			r.exits <- Exit{FunctionUID: "u", CID: spec.CID, Code: v1alpha1.ReasonNodeRefused, Reason: "OutOfcpu"}
			synctest.Wait()
			why, retryAfter, failing := startsFail(p.Inventory, "u")
			if !failing || why.Transient() != (try < nodeTries) {
				t.Errorf("after %d of them: failing %v, passing %v", try, failing, why.Transient())
			}
			time.Sleep(retryAfter)
		}
		if len(r.started) != nodeTries {
			t.Errorf("%d instances were started, want %d", len(r.started), nodeTries)
		}
	})
}

func TestM9AnAPIThatIsAwayIsNotHeldAgainstTheFunction(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		for i := range 10 {
			code := []string{v1alpha1.ReasonClusterUnavailable, v1alpha1.ReasonNodeFull}[i%2]
			launched := p.Launch(function(), invocation.Term{Epoch: 7}, 2)
			if len(launched.Keys) != 2 {
				t.Fatalf("%d instances are launched, want 2", len(launched.Keys))
			}
			for _, key := range launched.Keys {
				r.exits <- Exit{FunctionUID: "u", CID: key.CID, Code: code, Reason: "connection refused"}
			}
			synctest.Wait()
			if why, _, failing := startsFail(p.Inventory, "u"); failing {
				t.Errorf("the function is failing: %v", why)
			}
			if again := p.Launch(function(), invocation.Term{Epoch: 7}, 1); len(again.Keys) != 0 {
				t.Error("another one is launched at once")
			}
			time.Sleep(firstBackoff)
		}
		// What is the function's own counts as it did.
		key := p.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys[0]
		r.exits <- Exit{FunctionUID: "u", CID: key.CID, Code: v1alpha1.ReasonFunctionExited, Reason: "status 1"}
		synctest.Wait()
		if why, retryAfter, failing := startsFail(p.Inventory, "u"); !failing || why.InARow != 1 || retryAfter != firstBackoff {
			t.Errorf("failing %v, %d in a row, again after %v", failing, why.InARow, retryAfter)
		}
	})
}

func TestABrokenInstanceIsLostForTheReasonThatIsKnownBest(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		p.Launch(function(), invocation.Term{Epoch: 7}, 2)
		first, second := start(t, p, r.started[0]), start(t, p, r.started[1])
		p.End(first, Ending{Within: time.Minute, Code: v1alpha1.ReasonCallBroken, Reason: "it broke the connection"})
		p.End(second, Ending{Within: time.Minute, Code: v1alpha1.ReasonCallBroken, Reason: "it broke the connection"})
		r.exits <- Exit{FunctionUID: "u", CID: first.CID, Code: v1alpha1.ReasonOutOfMemory, Reason: "too much memory"}
		synctest.Wait()
		r.exits <- Exit{FunctionUID: "u", CID: second.CID, Reason: "stopped"}
		expectEvents(t, e, "00000007-000001 gone, lost true: too much memory",
			"00000007-000002 gone, lost true: it broke the connection")
	})
}

func TestTheRuntimeMayKnowMoreOfWhyAnInstanceWasLate(t *testing.T) {
	in := Instance{Cause: "its agent did not connect in time", CauseCode: v1alpha1.ReasonStartTimeout}
	for want, exit := range map[string]Exit{
		"it waited for a volume":            {Code: v1alpha1.ReasonStartTimeout, Reason: "it waited for a volume"},
		"its agent did not connect in time": {Reason: "stopped"},
	} {
		if why := failureOf(in, exit); why.Code != v1alpha1.ReasonStartTimeout || why.Reason != want {
			t.Errorf("%+v, want %q", why, want)
		}
	}
}

func TestAnInstanceThatTheAPIKeptFromStartingIsNotLate(t *testing.T) {
	exit := Exit{Reason: "stopped", CutOff: true}
	late := Instance{Cause: "its agent did not connect in time", CauseCode: v1alpha1.ReasonStartTimeout}
	started := late
	started.Connected = true
	leaving := Instance{State: Leaving}
	silent := Instance{Cause: "its agent was silent for too long", CauseCode: v1alpha1.ReasonAgentSilent}
	broken := Instance{AgentReason: "it broke the connection", AgentCode: v1alpha1.ReasonCallBroken}
	for _, c := range []struct {
		in   Instance
		want string
	}{
		{late, v1alpha1.ReasonClusterUnavailable}, {started, v1alpha1.ReasonStartTimeout},
		{silent, v1alpha1.ReasonAgentSilent}, {broken, v1alpha1.ReasonCallBroken}, {leaving, v1alpha1.ReasonStartFailed},
	} {
		why := failureOf(c.in, exit)
		if why.Code != c.want || strings.Contains(why.Reason, "the Kubernetes API") != why.FromCluster() {
			t.Errorf("%+v, want %s", why, c.want)
		}
	}
}

func TestA3AFunctionThatEndsWhileIdleHasACodeOfItsOwn(t *testing.T) {
	in := Instance{AgentReason: "the function exited with status 3", AgentCode: v1alpha1.ReasonFunctionExited}
	for exit, want := range map[string]string{"": v1alpha1.ReasonFunctionExited, v1alpha1.ReasonOutOfMemory: v1alpha1.ReasonOutOfMemory} {
		if why := failureOf(in, Exit{Code: exit, Reason: "killed"}); why.Code != want {
			t.Errorf("an exit with code %q is told as %s, want %s", exit, why.Code, want)
		}
	}
}

func TestA15WhatIsWrongIsSaidOnce(t *testing.T) {
	const reason = "Runtime.ImportModuleError: Unable to import module 'app'"
	for want, exit := range map[string]Exit{
		reason: {LogTail: []string{"[ERROR] " + reason}},
		reason + "; its last log lines:\nTraceback\nline 3": {LogTail: []string{"Traceback", "[ERROR] " + reason, "line 3"}},
		reason + "; it wrote no log":                        {LogEmpty: true},
	} {
		exit.Reason = reason
		if got := failureOf(Instance{}, exit).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhatNeverRanHasNoLogToSpeakOf(t *testing.T) {
	const remedy = "permission denied: make the program executable: chmod +x ./srv"
	for name, in := range map[string]Instance{
		"its driver says so": {},
		"it is blamed":       {Cause: "its agent did not connect in time", CauseCode: v1alpha1.ReasonStartTimeout},
	} {
		if got := failureOf(in, Exit{Reason: remedy}).String(); strings.Contains(got, "log") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func revision(n int) *v1alpha1.Function {
	fn := function()
	fn.UID = types.UID(fmt.Sprint("u-", n))
	fn.Annotations = map[string]string{
		v1alpha1.AnnotationRevision: fmt.Sprintf("%05d", n), v1alpha1.AnnotationFunctionUID: "u",
	}
	return fn
}

// Pods and logs have their names from the function's and the CID.
func TestInstancesOfTwoRevisionsHaveDifferentNames(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		term := invocation.Term{Epoch: 7}
		var cids []invocation.CID
		for n := range 2 {
			for _, key := range p.Launch(revision(n+1), term, 1).Keys {
				cids = append(cids, key.CID)
			}
		}
		if want := []invocation.CID{"00001-00000007-000001", "00002-00000007-000001"}; !slices.Equal(cids, want) {
			t.Errorf("the names are %v, want %v", cids, want)
		}
	})
}

// The pod of its last time may still be ending.
func TestARevisionThatComesBackGivesOtherNames(t *testing.T) {
	running(t, func(p *Provisioner, r *fakeDriver, e *eventRecorder) {
		term := invocation.Term{Epoch: 7}
		before := p.Launch(revision(1), term, 1).Keys
		p.Forget(before[0].FunctionUID)
		p.End(before[0], Ending{})
		synctest.Wait()
		if after := p.Launch(revision(1), term, 1).Keys; len(after) != 1 || after[0] == before[0] {
			t.Errorf("launched %v after %v", after, before)
		}
	})
}
