package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// part is a part of the calls of default/hello.
type part struct {
	tag    string
	number int64
	weight int32
}

// unitOf is a revision of default/hello. Its calls may take as many minutes as its number.
func unitOf(fn *v1alpha1.Function, number int64) *v1alpha1.Function {
	fn = fn.DeepCopy()
	fn.Generation, fn.Spec.Template.Timeout.Duration = number, time.Duration(number)*time.Minute
	r := v1alpha1.NewRevision(fn)
	r.UID = types.UID(fmt.Sprint("r-", number))
	return rollout.Unit(fn, r, rollout.Share{Weight: 100, Called: true})
}

// route parts the calls of default/hello among revisions; others that it had are gone.
func (w *harness) route(parts ...part) {
	fn := newFunction("default", "hello", time.Minute)
	e := &rollout.Entry{Function: fn}
	for _, p := range parts {
		if p.tag != "" {
			fn.Spec.Traffic = append(fn.Spec.Traffic, v1alpha1.TrafficTarget{Tag: p.tag, Weight: p.weight})
		}
		unit := unitOf(fn, p.number)
		e.Units = append(e.Units, unit)
		e.Routes = append(e.Routes, rollout.Route{Tag: p.tag, Weight: p.weight, Unit: unit})
	}
	w.catalog.Put(e)
}

// unknown refuses a ticket as a scheduler does that does not know its unit.
func (w *harness) unknown(ticket *agentwire.Ticket) {
	w.Helper()
	w.scheduler.refuse(&controlwire.Refusal{
		InvocationId: ticket.GetInvocationId(), Reason: controlwire.Refusal_REASON_UNKNOWN_FUNCTION, Detail: "no such function here",
	})
}

// for whom the next ticket is that was not seen.
func (w *harness) nextFor(uid string) *agentwire.Ticket {
	w.Helper()
	ticket := w.scheduler.ticket()
	if got := ticket.GetFunctionUid(); got != uid {
		w.Fatalf("a ticket for %s, want %s", got, uid)
	}
	return ticket
}

func TestACallGoesToTheRevisionOfItsTagOrByWeight(t *testing.T) {
	w := newHarness(t)
	w.route(part{"live", 6, 100}, part{"next", 7, 0})
	for tag, number := range map[string]int64{"": 6, "live": 6, "next": 7} {
		r := w.get("/function/hello/")
		if tag != "" {
			r.Header.Set(invocation.HeaderTag, tag)
		}
		r.Header.Set(invocation.HeaderRevision, "forged")
		answers := w.call(r)
		i := w.claim(w.nextFor(fmt.Sprint("r-", number)))
		if got, want := i.granted.Remaining, time.Duration(number)*time.Minute; got != want {
			t.Errorf("the tag %q: it may run for %v, want %v", tag, got, want)
		}
		if i.header(invocation.HeaderTag) != "" || i.header(invocation.HeaderRevision) != "" {
			t.Errorf("the function sees %v", i.granted.Header)
		}
		i.whole(200, "", invocation.HeaderRevision, "forged too")
		a := wrote(t, answers, 200, invocation.ExecutedYes)
		if got, want := a.header[invocation.HeaderRevision], v1alpha1.RevisionName("hello", number); len(got) != 1 || got[0] != want {
			t.Errorf("the tag %q: of the revision %q, want %q", tag, got, want)
		}
	}
	r := w.get("/function/hello/")
	r.Header.Set(invocation.HeaderTag, "gone")
	problem(t, wrote(t, w.call(r), 404, invocation.ExecutedNo), "UnknownTag")
}

// What was counted of a revision goes with it, and comes back for a call that ends later.
func TestCallsAreCountedByRevision(t *testing.T) {
	w := newHarness(t)
	w.route(part{"live", 6, 100}, part{"next", 7, 0})
	call := func(tag string) (end func()) {
		r := w.get("/function/hello/")
		r.Header.Set(invocation.HeaderTag, tag)
		answers := w.call(r)
		i := w.take()
		return func() {
			i.whole(200, "")
			wrote(t, answers, 200, invocation.ExecutedYes)
		}
	}
	expect := func(when string, want ...float64) {
		t.Helper()
		until(t, when, func() bool {
			return w.metric(total, "revision", "00006") == want[0] && w.metric(total, "revision", "00007") == want[1]
		})
	}
	call("live")()
	call("next")()
	call("next")()
	last := call("live")
	expect("each is counted", 1, 2)
	w.route(part{"live", 7, 100})
	expect("00006 is gone", -1, 2)
	last()
	expect("its last call is counted", 1, 2)
	w.route(part{"live", 7, 100})
	expect("00006 is gone again", -1, 2)
}

func TestAProblemOfACallNamesItsRevision(t *testing.T) {
	w := newHarness(t)
	w.route(part{"", 6, 100})
	answers, ticket := w.offered()
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: ticket.GetInvocationId(), Reason: controlwire.Refusal_REASON_QUEUE_FULL, Detail: "full"})
	a := wrote(t, answers, 429, invocation.ExecutedNo)
	problem(t, a, "QueueFull")
	if got := a.header.Get(invocation.HeaderRevision); got != "hello-00006" {
		t.Errorf("of the revision %q", got)
	}
}

func TestAFunctionWithoutARevisionIsToBeTriedAgain(t *testing.T) {
	w := newGuardedHarness(t, guard{})
	w.route()
	a := wrote(t, w.call(w.as("for-default", "/function/hello/")), 503, invocation.ExecutedNo)
	problem(t, a, "RevisionPending")
	if got := a.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
	// Who may not call it is not told.
	problem(t, wrote(t, w.call(w.as("for-team", "/function/hello/")), 403, invocation.ExecutedNo), "NotAllowed")
	w.route(part{"", 1, 100})
	answers := w.call(w.as("for-default", "/function/hello/"))
	w.take().whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

func TestACallWaitsForASchedulerThatDoesNotKnowItsRevisionYet(t *testing.T) {
	w := newHarness(t)
	w.route(part{"", 2, 100})
	answers, ticket := w.offered()
	for range 3 {
		w.unknown(ticket)
		again := w.scheduler.offered()
		if again.GetFunctionUid() != "r-2" || !bytes.Equal(again.GetToken(), ticket.GetToken()) {
			t.Fatalf("offered again as %v, was %v", again, ticket)
		}
	}
	w.claim(ticket).whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

func TestACallThatWaitsForARemovedRevisionGoesToAnother(t *testing.T) {
	for name, told := range map[string]bool{"that a scheduler refuses": true, "that no scheduler speaks of": false} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			w.route(part{"", 1, 100})
			answers, old := w.offered()
			w.route(part{"", 2, 100})
			if told {
				w.unknown(old)
			}
			ticket := w.nextFor("r-2")
			if ticket.GetRemainingNs() > old.GetRemainingNs() {
				t.Errorf("it waits for %v, and waited for %v", ticket.GetRemainingNs(), old.GetRemainingNs())
			}
			for {
				got := receive(t, w.scheduler.cancellations, "a cancellation")
				if got.GetFunctionUid() == "r-1" && bytes.Equal(got.GetInvocationId(), old.GetInvocationId()) {
					break
				}
			}
			if got := w.claim(old).refused; got != callwire.RefusedNotWaiting {
				t.Errorf("an instance of the old revision claims: %v", got)
			}
			i := w.claim(ticket)
			if got := i.granted.Remaining; got != 2*time.Minute {
				t.Errorf("it may run for %v, want the time of the other revision", got)
			}
			i.whole(200, "")
			a := wrote(t, answers, 200, invocation.ExecutedYes)
			if got := a.header.Get(invocation.HeaderRevision); got != "hello-00002" {
				t.Errorf("of the revision %q", got)
			}
		})
	}
}

// The queue of the unit before may refuse the ticket that the gateway is about to cancel there.
func TestARefusalForTheRevisionBeforeDoesNotFailACall(t *testing.T) {
	w := newHarness(t)
	w.route(part{"", 1, 100})
	answers, old := w.offered()
	w.route(part{"", 2, 100})
	w.unknown(old)
	ticket := w.nextFor("r-2")
	full := controlwire.Refusal_REASON_QUEUE_FULL
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: old.GetInvocationId(), FunctionUid: "r-1", Reason: full})
	// Refusals arrive in order: when that of another call is answered, the first one was heard.
	others := w.call(w.get("/function/hello/"))
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: w.nextFor("r-2").GetInvocationId(), FunctionUid: "r-2", Reason: full})
	wrote(t, others, 429, invocation.ExecutedNo)
	w.claim(ticket).whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

func TestACallWaitsWhileItsFunctionHasNoRevision(t *testing.T) {
	w := newHarness(t)
	w.route(part{"", 1, 100})
	answers, ticket := w.offered()
	w.route()
	w.unknown(ticket)
	w.unknown(w.scheduler.offered())
	w.route(part{"", 2, 100})
	w.claim(w.nextFor("r-2")).whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

func TestACallKeepsToItsTagWhenItsRevisionIsRemoved(t *testing.T) {
	w := newHarness(t)
	tagged := func() (<-chan answer, *agentwire.Ticket) {
		r := w.get("/function/hello/")
		r.Header.Set(invocation.HeaderTag, "next")
		return w.call(r), w.nextFor("r-2")
	}
	w.route(part{"live", 1, 100}, part{"next", 2, 0})
	answers, ticket := tagged()
	w.route(part{"live", 1, 100}, part{"next", 3, 0})
	w.unknown(ticket)
	w.claim(w.nextFor("r-3")).whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)

	w.route(part{"live", 1, 100}, part{"next", 2, 0})
	answers, ticket = tagged()
	w.route(part{"live", 1, 100})
	w.unknown(ticket)
	problem(t, wrote(t, answers, 404, invocation.ExecutedNo), "UnknownTag")
}

// Calls run while traffic goes from revision to revision and those without calls are
// removed; the scheduler learns of everything later than the gateway.
func TestNoCallFailsWhileTrafficChanges(t *testing.T) {
	const changes, callers, callsEach = 50, 16, 8
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = patience })
	s := &shift{
		harness: w, dice: rand.New(rand.NewPCG(3, 4)),
		known: make(map[string]bool), served: make(map[string]int), offered: make(map[string]string),
	}
	s.change(1)
	ctx, stop := context.WithCancel(t.Context())
	var playing sync.WaitGroup
	playing.Go(func() { s.schedule(ctx) })
	for n := range int64(changes) {
		ended := make(chan struct{}, callers*callsEach)
		var calling sync.WaitGroup
		for range callers {
			calling.Go(func() {
				for range callsEach {
					s.call()
					ended <- struct{}{}
				}
			})
		}
		for range callers * callsEach / 2 {
			receive(t, ended, "the end of a call")
		}
		s.change(n + 2)
		calling.Wait()
	}
	stop()
	playing.Wait()
	s.running.Wait()
	if len(s.served) < changes || s.moved < changes/2 {
		t.Errorf("%d revisions had calls, %d calls moved, %d tickets were refused: this tests nothing", len(s.served), s.moved, s.refused)
	}
	t.Logf("%d revisions had calls, %d calls moved, %d tickets were refused", len(s.served), s.moved, s.refused)
}

// shift plays a scheduler, its instances and the clients of default/hello while its calls
// go from revision to revision.
type shift struct {
	*harness

	running sync.WaitGroup // of instances

	mu sync.Mutex // guards everything below
	// dice decide what waits.
	dice *rand.Rand
	// known are the units that the scheduler knows.
	known map[string]bool
	// waiting are tickets that no instance has taken.
	waiting []*agentwire.Ticket
	// served counts calls by revision; offered are the units to which a call's tickets went.
	served         map[string]int
	offered        map[string]string
	moved, refused int
}

// change routes the calls to the revision of a number, and every other time to the one
// before as well, for the gateway first. It leaves no other.
func (s *shift) change(number int64) {
	parts := []part{{"", number, 100}}
	if number%2 == 0 {
		parts = []part{{"", number, 60}, {"", number - 1, 40}}
	}
	s.route(parts...)
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.known)
	for _, p := range parts {
		s.known[fmt.Sprint("r-", p.number)] = true
	}
	for _, ticket := range s.waiting {
		s.hand(ticket)
	}
	s.waiting = nil
}

// schedule hands out tickets, or lets them wait.
func (s *shift) schedule(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case ticket := <-s.scheduler.offers:
			s.mu.Lock()
			if s.dice.IntN(8) == 0 {
				s.waiting = append(s.waiting, ticket)
			} else {
				s.hand(ticket)
			}
			s.mu.Unlock()
		case <-s.scheduler.cancellations:
		case <-time.After(20 * time.Millisecond):
			// Nothing is left but what waits.
			s.mu.Lock()
			for _, ticket := range s.waiting {
				s.hand(ticket)
			}
			s.waiting = nil
			s.mu.Unlock()
		}
	}
}

// hand hands out a ticket unless nobody knows its unit. The caller holds the lock.
func (s *shift) hand(ticket *agentwire.Ticket) {
	id, uid := string(ticket.GetInvocationId()), ticket.GetFunctionUid()
	if before := s.offered[id]; before != "" && before != uid {
		s.moved++
	}
	s.offered[id] = uid
	if !s.known[uid] {
		s.refused++
		s.unknown(ticket)
		return
	}
	s.running.Go(func() { s.run(ticket) })
}

// run plays an instance, which answers with its unit.
func (s *shift) run(ticket *agentwire.Ticket) {
	i := s.claim(ticket)
	defer i.die()
	if i.granted == nil {
		return
	}
	i.whole(200, ticket.GetFunctionUid())
	i.ended()
}

// call makes a call, which must be answered by the revision that it says.
func (s *shift) call() {
	a := do(s.http1, s.get("/function/hello/"))
	revision := a.header.Get(invocation.HeaderRevision)
	var number int64
	_, _ = fmt.Sscanf(strings.TrimPrefix(a.body, "r-"), "%d", &number)
	s.mu.Lock()
	s.served[revision]++
	s.mu.Unlock()
	if a.err != nil || a.status != 200 || revision != v1alpha1.RevisionName("hello", number) {
		s.Errorf("a call failed: %d, %v, %q of %s", a.status, a.err, a.body, revision)
	}
}
