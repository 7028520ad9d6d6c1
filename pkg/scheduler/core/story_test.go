package core

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// The stories in testdata tell what becomes of a function and its calls. Each line is an
// event, or "pass" and how long; the answer has what is to be done about it, and at last
// how the function stands. To rewrite the answers: go test -run Stories -rewrite.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		var s *story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "function" {
				s = newStory(t, d)
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				line = strings.TrimSpace(line)
				fmt.Fprintf(&out, "%s: %s\n", line, cmp.Or(strings.Join(counted(s.run(wordsOf(line))), "; "), "nothing"))
			}
			return out.String() + s.stands()
		})
	})
}

// story is one function, and the time.
type story struct {
	effects []Effect // of the last step
	t       *testing.T
	f       *Function
	spec    Spec
	now     time.Time
	still   PauseDetector
	loans   map[invocation.CID][]queue.Loan // as instances have said last
}

// newStory makes a function that the default decider decides on, with the min and max of
// the story.
func newStory(t *testing.T, d *datadriven.TestData) *story {
	s := &story{t: t, now: start, loans: map[invocation.CID][]queue.Loan{}, spec: testSpec(func(s *Spec) { s.Decide = autoscaler.Horizon })}
	d.MaybeScanArgs(t, "min", &s.spec.Min)
	d.MaybeScanArgs(t, "max", &s.spec.Max)
	s.f = New(&Config{Tick: 100 * time.Millisecond, MaxQueued: 10, ClaimGrace: 2 * time.Second, Executions: 10}, s.spec)
	return s
}

// words are a line of a story: words, and values of names, as in "tick created=1".
type words struct {
	plain  []string
	values map[string]string
}

func wordsOf(line string) words {
	w := words{values: map[string]string{}}
	for _, word := range strings.Fields(line) {
		if name, value, is := strings.Cut(word, "="); is {
			w.values[name] = value
		} else {
			w.plain = append(w.plain, word)
		}
	}
	return w
}

func (w words) at(i int) string {
	if i < len(w.plain) {
		return w.plain[i]
	}
	return ""
}

func (w words) has(word string) bool { return slices.Contains(w.plain, word) }

func (w words) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(w.values[name]); err == nil {
		return n
	}
	return otherwise
}

// loans are those to the gateways of a line.
func (w words) loans() (loans []queue.Loan) {
	for _, gateway := range []string{"g1", "g2"} {
		if n := w.number(gateway, 0); n > 0 {
			loans = append(loans, queue.Loan{Gateway: gateway, Calls: n})
		}
	}
	return loans
}

// done is the call that a line says is done, if it does.
func (w words) done() []Done {
	if w.values["done"] == "" {
		return nil
	}
	return []Done{{ID: idOf(w.values["done"]), Execution: 10 * time.Millisecond, CoreWait: duration(w.values["core-wait"])}}
}

// duration is that of a text, or 0.
func duration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

// idOf is the invocation that a story calls by a letter, and nameOf that letter.
func idOf(letter string) invocation.ID { return invocation.ID{15: letter[0]} }

func nameOf(t invocation.Ticket) string { return string(rune(t.ID[15])) }

// run carries out one line and says what follows.
func (s *story) run(w words) []string {
	switch w.at(0) {
	case "pass":
		s.now = s.now.Add(duration(w.at(1)))
		return []string{"it is " + s.now.Sub(start).String()}
	case "turn":
		if stood := s.still.Ran(s.now); stood > 0 {
			return append([]string{fmt.Sprintf("it stood still for %s", stood)}, s.step(Paused{})...)
		}
		return nil
	case "offer":
		var said []string
		for _, letter := range w.plain[1:] {
			said = append(said, s.step(&Offered{Again: w.values["again"] != "", Ticket: invocation.Ticket{
				ID: idOf(letter), Gateway: cmp.Or(w.values["from"], "g1"), Token: invocation.Token{byte(w.number("token", 0))},
				Arrived:  s.now.Add(-duration(w.values["waited"])),
				Deadline: s.now.Add(cmp.Or(duration(w.values["wanted"]), time.Minute)),
			}})...)
		}
		return said
	case "tick":
		return s.tick(w)
	}
	e := s.event(w)
	if e == nil {
		s.t.Fatalf("unknown event %q", w.at(0))
	}
	return s.step(e)
}

// counted says once what is said several times on end.
func counted(said []string) (once []string) {
	for i := 0; i < len(said); {
		n := i + 1
		for n < len(said) && said[n] == said[i] {
			n++
		}
		if n-i > 1 {
			said[i] = fmt.Sprintf("%s (%d times)", said[i], n-i)
		}
		once, i = append(once, said[i]), n
	}
	return once
}

// event is what a line stands for.
func (s *story) event(w words) Event {
	cid := invocation.CID(w.at(1))
	switch w.at(0) {
	case "served":
		epoch, _ := strconv.ParseUint(w.at(1), 10, 64)
		return OwnershipChanged{Term: invocation.Term{Epoch: epoch}}
	case "unserved":
		return OwnershipChanged{Term: Unserved}
	case "cancel":
		return &CallCancelled{ID: idOf(w.at(1))}
	case "join":
		return Joined{CID: cid, Capacity: w.number("capacity", 1)}
	case "pull":
		delete(s.loans, cid)
		return &Pulled{CID: cid, Wants: true, Credits: 1, NodeBusy: w.has("busy")}
	case "awaits":
		e := &Pulled{CID: cid, Wants: true, NodeBusy: true, AwaitsCore: true, Loans: s.loans[cid]}
		if w.at(2) != "" {
			e.Awaits = idOf(w.at(2))
		}
		return e
	case "lend":
		s.loans[cid] = w.loans()
		return &Pulled{CID: cid, Wants: true, Credits: w.number("credits", 0), Loans: s.loans[cid], Idle: duration(w.values["idle"]), Done: w.done(), NodeBusy: w.has("busy")}
	case "report":
		return &Reported{Gateway: w.at(1), Stream: uint64(w.number("stream", 1)), Resumed: w.has("resumed"), Report: LoanReport{
			Served: uint64(w.number("served", 0)), Waiting: w.number("waiting", 0),
			Running: w.number("running", 0), Lent: w.number("lent", 0),
			Executions: uint64(w.number("ran", 0)), ExecutionTime: duration(w.values["took"]), CoreWaited: duration(w.values["core-wait"]),
		}}
	case "gone":
		return GatewayGone{Gateway: w.at(1), Stream: uint64(w.number("stream", 1))}
	case "limit":
		s.spec.Calls.Concurrency = w.number("calls", 0)
		s.spec.Limited = s.spec.Calls.Concurrency > 0
		return SpecChanged{Spec: s.spec}
	case "done", "unreached":
		done := Done{ID: idOf(w.at(2)), Execution: duration(w.at(3)), Unclaimed: w.at(0) == "unreached"}
		return &Pulled{CID: cid, Wants: true, Credits: 1, Done: []Done{done}}
	case "started":
		return Started{Took: duration(w.at(1))}
	case "ask-to-leave":
		return LeaveRequested{CID: cid, Idle: duration(w.values["idle"])}
	case "goodbye":
		return Left{CID: cid}
	case "lost":
		return Left{CID: cid, Involuntary: true}
	case "evict":
		return EvictRequested{CID: cid, IdleFor: time.Second, Reason: "evicted for another function"}
	case "change":
		s.spec.Max = w.number("max", s.spec.Max)
		return SpecChanged{Spec: s.spec}
	case "discharge":
		return DrainRequested{CID: cid, Reason: "it is not wanted any more"}
	case "delete":
		return Closed{Reason: "the function was deleted", Refusal: invocation.Refusal{Reason: invocation.RefusedUnknownFunction}}
	case "audit-gateways":
		return GatewaysAudited{Connected: w.has}
	case "audit-activity":
		return ActivityAudited{Awake: w.has("awake")}
	}
	return nil
}

// tick is a whole one: what is decided is carried out, as far as "launched" does not say
// otherwise.
func (s *story) tick(w words) []string {
	said := s.step(&Ticked{Observed: Observed{
		Created: w.number("created", 0), Creating: w.number("creating", 0), Awaited: w.number("awaited", 0),
		Room: w.number("room", -1), KindStart: time.Second, Unconfirmed: w.has("orphan"), NodesBusy: w.has("nodes-busy"),
	}})
	d, decided := AnswerOf[*Decided](s.effects)
	if !decided {
		return said
	}
	launched := w.number("launched", d.Wanted())
	return append(said, s.step(&Applied{Decided: d, Launched: launched, Cancelled: d.Decision.Cancel, NoRoom: launched < d.Wanted()})...)
}

func (s *story) step(e Event) []string {
	var said []string
	s.effects = s.f.Step(s.now, e)
	for _, effect := range s.effects {
		said = append(said, effectInWords(effect))
	}
	return said
}

// stands is how the function stands.
func (s *story) stands() string {
	v, rests := s.f.View(s.now), "awake"
	if s.f.activity.parked {
		rests = "at rest"
	}
	stands := fmt.Sprintf("%d wait, %d out, %d instances, %s", v.Waiting, v.Out, v.Instances, rests)
	if v.Lent > 0 {
		stands += fmt.Sprintf("; %d lent, %d busy, %d came, a call takes %s", v.Lent, v.Busy, v.Arrived, s.f.Means().Execution)
	}
	return stands + "\n"
}

func effectInWords(e Effect) string {
	switch e := e.(type) {
	case *HandOut:
		if e.Rebound {
			return fmt.Sprintf("%s gets %s, too", e.CID, nameOf(e.Ticket))
		}
		if !e.Lent {
			return fmt.Sprintf("%s gets %s and keeps no place", e.CID, nameOf(e.Ticket))
		}
		return fmt.Sprintf("%s gets %s", e.CID, nameOf(e.Ticket))
	case Recall:
		words := fmt.Sprintf("recall %d of %s from %s", e.Calls, e.CID, e.Gateway)
		if e.Term > 0 {
			words += fmt.Sprintf(" when unused, or in %s", e.Term)
		}
		return words
	case *RanByLoan:
		return fmt.Sprintf("count %d executions of %s", e.Calls, e.Mean)
	case Refuse:
		names := make([]string, len(e.Tickets))
		for i, t := range e.Tickets {
			names[i] = nameOf(t)
		}
		return fmt.Sprintf("refuse %s: %s", strings.Join(names, " "), e.Why.Reason)
	case Drain:
		return fmt.Sprintf("retire %s: %s", e.CID, e.Reason)
	case Redirect:
		return fmt.Sprintf("dismiss %s", e.CID)
	case Adopt:
		return "adopt its instances"
	case Release:
		return "release its instances"
	case Connect:
		return fmt.Sprintf("%s is connected", e.CID)
	case Terminate:
		return fmt.Sprintf("let %s go: %s", e.CID, e.Why)
	case Wake:
		return "wake"
	case Park:
		if e.Until.IsZero() {
			return "rest"
		}
		return fmt.Sprintf("rest until %s", e.Until.Sub(start))
	case RunNow:
		if e.Always {
			return "decide at once"
		}
		return "decide at once if there is no instance"
	case *Decided:
		return decisionInWords(e)
	case Repaired:
		return fmt.Sprintf("mended %d", e.N)
	case OfferRefused:
		return fmt.Sprintf("refused: %s", e.Why.Reason)
	case JoinRefused:
		return fmt.Sprintf("refused: %v", e.Why)
	case PullRefused:
		return fmt.Sprintf("refused: %v", e.Why)
	case LeaveAnswered:
		if e.Granted {
			return "it may leave"
		}
		return fmt.Sprintf("ask again in %s", e.RetryAfter)
	}
	return fmt.Sprintf("%T", e)
}

func decisionInWords(d *Decided) string {
	said := "order nothing"
	if n := d.Wanted(); n > 0 {
		said = fmt.Sprintf("order %d", n)
	}
	if d.Decision.Cancel > 0 {
		said = fmt.Sprintf("cancel %d", d.Decision.Cancel)
	}
	if d.Bounds.Max > 0 {
		said += fmt.Sprintf(" of at most %d", d.Bounds.Max)
	}
	return fmt.Sprintf("%s (%s)", said, d.Decision.Why)
}
