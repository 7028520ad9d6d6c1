package scheduler

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/wiretest"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// speaking greets as an agent that speaks these protocols.
func (w *harness) speaking(spec provisioner.InstanceSpec, lo, hi uint32, features ...string) *agent {
	w.t.Helper()
	return w.connectHello(&agentwire.Hello{
		FunctionUid: string(spec.Function.UID), Revision: spec.Function.Revision(), Cid: string(spec.CID), Token: spec.Token,
		ProtocolMin: lo, ProtocolMax: hi, Release: "v1.2.3", Features: features,
	})
}

func TestWhatAnAgentDoesNotNameIsNotAgreedOn(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.protocols = wire.Speech{Min: 1, Max: 3, Features: []string{"made-up", "other"}}
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		specs := w.started(fn, 2)
		for i, tt := range []struct {
			features []string
			protocol uint32
			madeUp   bool
		}{
			{[]string{"made-up", "of a later release"}, 2, true},
			{nil, 1, false},
		} {
			a := w.speaking(specs[i], 1, tt.protocol, tt.features...)
			known := w.scheduler.shell.streams.byKey[a.key].agent.agreed
			if known.Protocol != tt.protocol || known.Has("made-up") != tt.madeUp || known.Has("other") || known.Has("of a later release") {
				t.Errorf("with an agent that speaks %d and %q it speaks %+v", tt.protocol, tt.features, known)
			}
			if a.welcome.GetProtocol() != tt.protocol || slices.Contains(a.welcome.GetFeatures(), "made-up") != tt.madeUp {
				t.Errorf("the agent that speaks %d and %q heard %v", tt.protocol, tt.features, a.welcome)
			}
		}
		if got := w.scrape("release"); got["windlass_agents{1,v1.2.3}"] != 1 || got["windlass_agents{2,v1.2.3}"] != 1 || len(got) != 2 {
			t.Errorf("the agents are told as %v", got)
		}
	})
}

func TestAnAgentThatSpeaksNoProtocolOfThisReleaseIsToldToGo(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.protocols = wire.Speech{Min: 2, Max: 3}
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		old := w.speaking(w.started(fn, 1)[0], 1, 1)
		old.pull(1)
		old.expect("retire: " + string(core.BecauseUnsupported))
		g.offer(fn, 1)
		old.expect() // it gets no call
		w.ticks(2)
		w.speaking(w.started(fn, 1)[0], 2, 2).pull(1)
		if got := w.scrape("reason")["windlass_agents_replaced_total{Unsupported}"]; got != 1 {
			t.Errorf("%v were counted", got)
		}
	})
}

func TestAnUnsupportedAgentThatConnectsAgainIsCountedOnce(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.protocols = wire.Speech{Min: 2, Max: 3}
		w.runtime.deaf = true
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		for range 2 {
			old := w.speaking(spec, 1, 1)
			old.pull(1)
			old.cut()
		}
		if got := w.scrape("reason")["windlass_agents_replaced_total{Unsupported}"]; got != 1 {
			t.Errorf("%v were counted", got)
		}
	})
}

func TestAnUnsupportedSpareAgentIsCountedOnce(t *testing.T) {
	inPoolHarness(t, 1, defaults(), func(w *harness, rt *v1alpha1.ClusterRuntime, _, _ *v1alpha1.Function) {
		w.scheduler.shell.protocols = wire.Speech{Min: 2, Max: 3}
		w.runtime.deaf = true
		spec := w.started(poolFunction(rt), 1)[0]
		for range 2 {
			w.connectHello(&agentwire.Hello{
				Spare: true, Token: podName(keyOf(string(spec.Function.UID), spec.CID)), ProtocolMin: 1, ProtocolMax: 1,
			}).cut()
		}
		if got := w.scrape("reason")["windlass_agents_replaced_total{Unsupported}"]; got != 1 {
			t.Errorf("%v were counted", got)
		}
	})
}

func TestOutdatedAgentsAreReplacedOneAtATime(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		w.scheduler.shell.protocols, w.scheduler.shell.oldestKept = wire.Speech{Min: 1, Max: 2}, 2
		fn := w.put("f", minInstances(3))
		w.ticks(1)
		var old []*agent
		for _, spec := range w.started(fn, 3) {
			a := w.speaking(spec, 1, 1)
			a.pull(1)
			old = append(old, a)
		}
		for replaced := 1; replaced <= 3; replaced++ {
			w.after(core.ReplaceAgentRetry + core.ReplaceAgentEvery)
			for i, a := range old {
				told := slices.Contains(a.heard(), "retire: "+string(core.BecauseOutdated))
				if told != (i == replaced-1) {
					t.Fatalf("when %d have gone, number %d is told to go: %v", replaced-1, i, told)
				}
			}
			old[replaced-1].send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{Reason: agentwire.Goodbye_REASON_DONE}}})
			w.ticks(2)
			for _, spec := range w.started(fn, 1) {
				w.speaking(spec, 1, 2).pull(1)
			}
		}
		w.after(time.Minute)
		if got := w.scrape("reason")["windlass_agents_replaced_total{Outdated}"]; got != 3 {
			t.Errorf("%v were counted", got)
		}
	})
}

func TestAMessageOfALaterReleaseEndsNoStream(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		a.send(wiretest.Beyond(&agentwire.PullRequest{}))
		a.send(wiretest.Newer(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{}}}))
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
	})
}

func TestAClientThatSpeaksNoProtocolOfThisReleaseIsRefused(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		hello := &controlwire.Hello{ProtocolMin: 7, ProtocolMax: 9}
		offers, err := w.client.Offer(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = offers.Send(&controlwire.OfferRequest{Gateway: "g:1", Hello: hello})
		_, err = offers.Recv()
		expectCode(t, "offers", err, codes.FailedPrecondition)
		heartbeats, err := w.client.Heartbeat(w.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = heartbeats.Send(&controlwire.HeartbeatRequest{Hello: hello})
		_, err = heartbeats.Recv()
		expectCode(t, "heartbeats", err, codes.FailedPrecondition)
		watch, err := w.client.Watch(w.t.Context(), &controlwire.WatchRequest{Hello: hello})
		if err != nil {
			t.Fatal(err)
		}
		_, err = watch.Recv()
		expectCode(t, "a watch", err, codes.FailedPrecondition)
	})
}

func expectCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestReleasesThatAgentsSayAreFewAndPlain(t *testing.T) {
	for said, want := range map[string]string{
		"v1.2.3-rc.1+5": "v1.2.3-rc.1+5", "(devel)": "(devel)", "": otherRelease, "v1\n": otherRelease,
		strings.Repeat("v", maxReleaseName+1): otherRelease, `"}`: otherRelease,
	} {
		if got := releaseName(said); got != want {
			t.Errorf("%q is told as %q, want %q", said, got, want)
		}
	}
}
