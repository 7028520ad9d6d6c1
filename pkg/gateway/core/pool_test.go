package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// The stories in testdata/pools tell who gets which call, and which calls send tickets. Each
// line is an event; calls are handed over after each. To rewrite the answers: go test -run
// PoolStories -rewrite.
func TestPoolStories(t *testing.T) {
	datadriven.Walk(t, "testdata/pools", func(t *testing.T, path string) {
		var s *poolStory
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "pool" {
				s = newPoolStory()
			}
			return s.tell(t, d.Input)
		})
	})
}

// poolStory is a pool with its calls and instances by name.
type poolStory struct {
	pool      Pool[string, string]
	now       time.Time
	calls     map[string]*Waiting[string]
	instances map[string]*Lender[string]
	longWaits map[string]*LongWait[string] // by instance
}

func newPoolStory() *poolStory {
	return &poolStory{now: start, calls: make(map[string]*Waiting[string]), instances: make(map[string]*Lender[string]), longWaits: make(map[string]*LongWait[string])}
}

func (s *poolStory) tell(t *testing.T, events string) string {
	var out strings.Builder
	for line := range strings.Lines(events) {
		words := strings.Fields(line)
		if words[0] == "at" {
			after, err := time.ParseDuration(words[1])
			if err != nil {
				t.Fatal(err)
			}
			s.now, words = start.Add(after), words[2:]
		}
		said := append(s.play(t, words), s.handOver()...)
		if len(said) == 0 {
			said = []string{"nothing"}
		}
		fmt.Fprintf(&out, "%s: %s\n", strings.Join(words, " "), strings.Join(said, "; "))
	}
	return out.String()
}

// handOver hands calls over for as long as there are calls and credits.
func (s *poolStory) handOver() (said []string) {
	for {
		w, by, ok := s.pool.Next()
		if !ok {
			break
		}
		s.pool.Handed(w, s.now)
		said = append(said, fmt.Sprintf("%s gets %s", by.Instance, w.Call))
	}
	for c, ok := s.pool.NextLongWait(); ok; c, ok = s.pool.NextLongWait() {
		said = append(said, fmt.Sprintf("%s is asked to give up call %d for %s", c.At.Instance, c.Number, c.To.Instance))
	}
	return said
}

func (s *poolStory) instance(name string) *Lender[string] {
	if s.instances[name] == nil {
		s.instances[name] = NewLender(invocation.CID(name), name)
	}
	return s.instances[name]
}

// sendTickets says which calls send their tickets.
func sendTickets(calls []string) (said []string) {
	for _, c := range calls {
		said = append(said, c+" sends its ticket")
	}
	return said
}

// play carries out one event and says what was decided.
func (s *poolStory) play(t *testing.T, words []string) []string {
	p, has := &s.pool, func(word string) bool { return slices.Contains(words, word) }
	count := func() int {
		n, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	switch words[0] {
	case "call":
		s.calls[words[1]] = &Waiting[string]{Call: words[1], Since: s.now}
		if p.Add(s.calls[words[1]], s.now, has("limited")) {
			return sendTickets(words[1:2])
		}
	case "again": // an instance gave it back
		if p.Add(s.calls[words[1]], s.now, false) {
			return sendTickets(words[1:2])
		}
	case "lends":
		p.Lend(s.instance(words[1]), count())
	case "takes-back":
		p.Lend(s.instance(words[1]), -count())
		return sendTickets(p.Stranded())
	case "claims":
		p.Began(s.instance(words[1]))
		return sendTickets(p.Taken(s.calls[words[2]]))
	case "ended":
		p.Ended(s.instance(words[1]), has("keeps"))
		return sendTickets(p.Stranded())
	case "gone":
		p.Gone(s.instance(words[1]))
		return sendTickets(p.Stranded())
	case "left":
		if !p.Remove(s.calls[words[1]]) {
			return []string{"it does not wait"}
		}
	case "node":
		p.SetBusy(s.instance(words[1]), has("busy"))
	case "waits-long": // a call by a loan, with the number
		s.longWaits[words[1]] = &LongWait[string]{At: s.instance(words[1]), Number: uint32(count())}
		p.BeginWait(s.longWaits[words[1]])
	case "begins":
		p.EndWait(s.longWaits[words[1]])
	case "gives-up":
		p.GivenUp(s.longWaits[words[1]])
		p.Add(s.calls[words[2]], s.now, false)
		said := s.handOver()
		p.Ended(s.instance(words[1]), has("keeps"))
		return said
	case "stops": // the gateway gives back what no call needs
		var said []string
		for l, n, ok := p.NextUnused(); ok; l, n, ok = p.NextUnused() {
			said = append(said, fmt.Sprintf("%s gets back %d", l.Instance, n))
		}
		return append(said, sendTickets(p.Stranded())...)
	case "overdue":
		return sendTickets(p.Overdue(s.now))
	case "report":
		r := p.Report()
		return []string{fmt.Sprintf("served %d, waiting %d, running %d of %d lent, unused %t", r.Served, r.Waiting, r.Running, r.Lent, p.Unused())}
	default:
		t.Fatalf("unknown event %q", words[0])
	}
	return nil
}

// poolModel is what a Pool must be, in slow words.
type poolModel struct {
	*rapid.T
	pool Pool[int, int]
	now  time.Time

	calls     []*modelCall
	lenders   []*modelLender
	longWaits []*modelWait
	served    int
	// coreWaited is how long calls that were given up had waited.
	coreWaited time.Duration
	// noProbe is until when no call sends a probe, and pause how long it has been.
	noProbe time.Time
	pause   time.Duration
	before  LoanReport
}

type modelCall struct {
	*Waiting[int]
	place                int // in the order of arrival among those of one time
	waits, asked, probes bool
	limited              bool // no loan may run it
}

type modelLender struct {
	*Lender[int]
	credits, running, promised int
	gone                       bool
}

// waiting are the calls that wait, in order.
func (m *poolModel) waiting() (calls []*modelCall) {
	for _, c := range m.calls {
		if c.waits {
			calls = append(calls, c)
		}
	}
	slices.SortFunc(calls, func(a, b *modelCall) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.place, b.place)) })
	return calls
}

// forLoans are those of them that loans may run.
func (m *poolModel) forLoans() []*modelCall {
	return slices.DeleteFunc(m.waiting(), func(c *modelCall) bool { return c.limited })
}

func (m *poolModel) lent() (n int) {
	for _, l := range m.lenders {
		if !l.gone {
			n += l.credits + l.running + l.promised
		}
	}
	return n
}

// lender is the one that gets the next call; nil if none has a credit.
func (m *poolModel) lender() (first *modelLender) {
	for _, l := range m.lenders {
		if !l.gone && l.credits > 0 && (first == nil || (l.busy == first.busy && l.cid < first.cid) || !l.busy && first.busy) {
			first = l
		}
	}
	return first
}

// any is one of the instances that are there, or of all.
func (m *poolModel) any(t *rapid.T) *modelLender {
	return m.lenders[rapid.IntRange(0, len(m.lenders)-1).Draw(t, "instance")]
}

// busy is an instance that runs a call; nil if there is none.
func (m *poolModel) busy(t *rapid.T) *modelLender {
	if l := m.any(t); l.running > 0 && !l.gone {
		return l
	}
	return nil
}

// add adds a call to the pool, and checks whether it sends its ticket.
func (m *poolModel) add(t *rapid.T, c *modelCall, limited bool) {
	free := m.lender() != nil
	probing := slices.ContainsFunc(m.calls, func(c *modelCall) bool { return c.waits && c.probes })
	c.place, c.waits, c.asked, c.probes, c.limited = m.nextPlace(), true, false, false, limited
	switch {
	case free && !limited:
	case m.lent() <= 0, limited:
		c.asked = true
	case !probing && !m.now.Before(m.noProbe):
		c.asked, c.probes = true, true
	}
	if ask := m.pool.Add(c.Waiting, m.now, limited); ask != c.asked {
		t.Fatalf("a new call asks: %t, want %t", ask, c.asked)
	}
	m.handOver(t)
}

func (m *poolModel) nextPlace() (place int) {
	for _, c := range m.calls {
		place = max(place, c.place+1)
	}
	return place
}

// left takes a call out of those that wait.
func (m *poolModel) left(c *modelCall) {
	c.waits = false
	if !c.asked {
		m.served++
	}
}

// handOver compares who gets which call.
func (m *poolModel) handOver(t *rapid.T) {
	for {
		waiting, by := m.forLoans(), m.lender()
		w, l, ok := m.pool.Next()
		if ok != (len(waiting) > 0 && by != nil) {
			t.Fatalf("handed over: %t, though %d wait and %v has a credit", ok, len(waiting), by)
		}
		if !ok {
			m.requestGiveUps(t)
			return
		}
		if c := waiting[0]; w != c.Waiting || l != by.Lender {
			t.Fatalf("instance %d gets call %d, want %d and %d", l.Instance, w.Call, by.Instance, c.Call)
		}
		c := waiting[0]
		by.credits--
		by.running++
		m.left(c)
		switch rapid.IntRange(0, 9).Draw(t, "taken") {
		case 0: // it had ended
			m.pool.Refund(l)
			by.credits++
			by.running--
		case 1: // the instance had
			m.pool.PutBack(w, l)
			m.lenderGone(by)
			c.waits, c.place = true, m.nextPlace()
			if !c.asked {
				m.served--
			}
		default:
			m.pool.Handed(w, m.now)
			if c.probes {
				m.pause = min(max(2*m.pause, 2*time.Millisecond), 100*time.Millisecond)
				m.noProbe = m.now.Add(m.pause)
			}
		}
		m.stranded(t)
	}
}

// stranded compares which calls send their tickets because no loan is left.
func (m *poolModel) stranded(t *rapid.T) {
	m.asks(t, m.pool.Stranded(), func(*modelCall) bool { return m.lent() <= 0 })
}

// asks compares which of the waiting calls without a ticket send theirs.
func (m *poolModel) asks(t *rapid.T, got []int, want func(*modelCall) bool) {
	var wanted []int
	for _, c := range m.waiting() {
		if !c.asked && want(c) {
			c.asked = true
			wanted = append(wanted, c.Call)
		}
	}
	if !slices.Equal(got, wanted) {
		t.Fatalf("the calls %v send tickets, want %v", got, wanted)
	}
}

func (m *poolModel) check() {
	running, waiting := 0, 0
	for _, l := range m.lenders {
		running += l.running
		if got := l.Credits(); got != max(0, l.credits) {
			m.Fatalf("instance %d has %d credits, want %d", l.Instance, got, l.credits)
		}
	}
	for _, c := range m.waiting() {
		if !c.asked {
			waiting++
		}
	}
	r := m.pool.Report()
	want := LoanReport{
		Served: uint64(m.served), Waiting: waiting, Running: running, Lent: max(m.lent(), running, 0),
		Executions: r.Executions, ExecutionTime: r.ExecutionTime, CoreWaited: m.coreWaited,
	}
	if r != want {
		m.Fatalf("reported %+v, want %+v", r, want)
	}
	if r.Served < m.before.Served || r.Executions < m.before.Executions || r.ExecutionTime < m.before.ExecutionTime {
		m.Fatalf("reported %+v after %+v", r, m.before)
	}
	m.before = r
	if len(m.forLoans()) > 0 && m.lender() != nil {
		m.Fatal("a call waits beside a credit")
	}
	if s, to := m.nextLongWait(); s != nil {
		m.Fatalf("a call waits for a core at instance %d, and %d has a core", s.at.Instance, to.Instance)
	}
	if m.pool.Unused() && (len(m.waiting()) > 0 || m.lender() != nil || running > 0) {
		m.Fatal("unused, though it has calls or loans")
	}
}

// A Pool hands calls over in the order of arrival, to the lowest CID that has a credit, of a calm
// node if there is one, asks busy nodes for calls that wait for cores, and counts right, whatever its
// instances and calls do.
func TestAPoolDoesWhatItsModelDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &poolModel{T: t, now: start}
		for n := range 3 {
			m.lenders = append(m.lenders, &modelLender{Lender: NewLender(invocation.CID(fmt.Sprint(9-n)), n)})
		}
		pick := func(t *rapid.T, waits bool) *modelCall {
			some := slices.DeleteFunc(slices.Clone(m.calls), func(c *modelCall) bool { return c.waits != waits })
			if len(some) == 0 {
				return nil
			}
			return some[rapid.IntRange(0, len(some)-1).Draw(t, "call")]
		}
		events := map[string]func(*rapid.T){
			"time": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{0, 2, 60, 120, 400}).Draw(t, "ms")) * time.Millisecond)
			},
			"call": func(t *rapid.T) {
				c := &modelCall{Waiting: &Waiting[int]{Call: len(m.calls), Since: m.now}}
				m.calls = append(m.calls, c)
				m.add(t, c, rapid.IntRange(0, 9).Draw(t, "limited") == 0)
			},
			"many calls": func(t *rapid.T) {
				for range AskFirst {
					c := &modelCall{Waiting: &Waiting[int]{Call: len(m.calls), Since: m.now}}
					m.calls = append(m.calls, c)
					m.add(t, c, false)
				}
			},
			"again": func(t *rapid.T) {
				if c := pick(t, false); c != nil {
					m.add(t, c, false)
				}
			},
			"lend": func(t *rapid.T) {
				l, n := m.any(t), rapid.IntRange(-2, 2).Draw(t, "n")
				m.pool.Lend(l.Lender, n)
				if !l.gone {
					l.credits += n
				}
				m.stranded(t)
				m.handOver(t)
			},
			"busy": func(t *rapid.T) {
				m.pool.SetBusy(m.any(t).Lender, rapid.Bool().Draw(t, "busy"))
				m.handOver(t)
			},
			"claim": func(t *rapid.T) {
				c, l := pick(t, true), m.any(t)
				if c == nil || l.gone {
					return
				}
				m.pool.Began(l.Lender)
				l.running++
				m.left(c)
				got := m.pool.Taken(c.Waiting)
				m.asks(t, got, func(*modelCall) bool { return true })
				m.noProbe, m.pause = time.Time{}, 0
			},
			"end": func(t *rapid.T) {
				l := m.busy(t)
				if l == nil {
					return
				}
				m.callEnds(t, l, rapid.Bool().Draw(t, "keeps"))
			},
			"gone": func(t *rapid.T) {
				l := m.any(t)
				m.pool.Gone(l.Lender)
				m.lenderGone(l)
				m.stranded(t)
				m.handOver(t)
			},
			"another": func(*rapid.T) {
				n := len(m.lenders)
				m.lenders = append(m.lenders, &modelLender{Lender: NewLender(invocation.CID(fmt.Sprint(n*7%10, n)), n)})
			},
			"remove": func(t *rapid.T) {
				if c := pick(t, true); c != nil {
					m.left(c)
					if !m.pool.Remove(c.Waiting) {
						t.Fatal("a call that waits was not in")
					}
				}
			},
			"remove one that does not wait": func(t *rapid.T) {
				if c := pick(t, false); c != nil && (m.pool.Remove(c.Waiting) || m.pool.Taken(c.Waiting) != nil) {
					t.Fatal("a call that does not wait was in")
				}
			},
			"overdue": func(t *rapid.T) {
				first := m.waiting()
				first = first[:min(len(first), AskFirst)]
				m.asks(t, m.pool.Overdue(m.now), func(c *modelCall) bool {
					waited := m.now.Sub(c.Since)
					return waited >= AskAllAfter || waited >= AskAfter && slices.Contains(first, c)
				})
			},
			"": func(*rapid.T) { m.check() },
		}
		maps.Copy(events, m.waitEvents(pick))
		t.Repeat(events)
	})
}
