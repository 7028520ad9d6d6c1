package core

import (
	"maps"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// LoanReport is what a gateway did with the loans of the function's instances. Served,
// Executions, ExecutionTime and CoreWaited only rise within a stream.
type LoanReport struct {
	// Served counts calls that never had a ticket and no longer wait. Waiting is how many wait
	// without one.
	Served  uint64
	Waiting int
	// Running is how many calls run at instances with loans, and Lent how many could.
	Running, Lent int
	// Executions by loans, and the sum of their durations.
	Executions    uint64
	ExecutionTime time.Duration
	// CoreWaited is how long those calls waited for cores before, as far as the instances have
	// not said so meanwhile.
	CoreWaited time.Duration
}

// Events of gateways.
type (
	// Reported is a report of a gateway by the stream with that number, which names no other
	// stream of this scheduler. It replaces the gateway's last one. Resumed says that earlier
	// reports of the stream may have counted elsewhere or in an earlier term: what the first
	// one here has counted does not count again. RanByLoan answers it if calls have run. The
	// event comes every 100 ms for each busy function.
	Reported struct {
		Gateway string
		Stream  uint64
		Resumed bool
		Report  LoanReport
	}
	// GatewayGone says that a stream with reports has ended: what the gateway does is unknown.
	GatewayGone struct {
		Gateway string
		Stream  uint64
	}
)

// loanReports are what gateways report. The zero value is empty.
type loanReports struct {
	// last are the last reports of gateways whose streams are open.
	last map[string]*gatewayReport
	// served counts the calls that came and no longer wait, and waiting are those that wait.
	// served+waiting and served never fall.
	served  uint64
	waiting int
	// running are the sum of the last reports.
	running int
}

// gatewayReport is the last report of a gateway.
type gatewayReport struct {
	LoanReport
	stream uint64
	at     time.Time
	// unused is how many calls the gateway could hand over at once, as far as known since.
	unused int
	// doubted is what the last audit found; nil if nothing.
	doubted *loanDoubt
}

// loanDoubt are loans of a gateway that it does not know.
type loanDoubt struct {
	// lent is how many its instances have lent to it.
	lent   int
	report LoanReport
}

// loanProgress is what a gateway did between two reports.
type loanProgress struct {
	// handed is how many calls it has handed over. executions have ended, which took took
	// together and waited for cores before.
	handed, executions uint64
	took, coreWaited   time.Duration
}

// replace replaces the last report of a gateway, and returns what the gateway did since.
func (s *loanReports) replace(e *Reported, now time.Time) loanProgress {
	g, before := s.last[e.Gateway], LoanReport{}
	switch {
	case g == nil:
		if s.last == nil {
			s.last = make(map[string]*gatewayReport)
		}
		g = &gatewayReport{}
		s.last[e.Gateway] = g
	case g.stream == e.Stream:
		before = g.LoanReport
	}
	if g.stream != e.Stream && e.Resumed {
		before = e.Report
	}
	r := e.Report
	r.Waiting, r.Running, r.Lent, r.ExecutionTime = max(0, r.Waiting), max(0, r.Running), max(0, r.Lent), max(0, r.ExecutionTime)
	r.CoreWaited = max(0, r.CoreWaited)
	if r.Served < before.Served || r.Executions < before.Executions || r.ExecutionTime < before.ExecutionTime || r.CoreWaited < before.CoreWaited {
		before = LoanReport{} // the gateway has begun to count again
	}
	handed := r.Served - before.Served
	s.running += r.Running - g.Running
	s.setWaiting(g, r.Waiting, handed)
	g.LoanReport, g.stream, g.at, g.unused = r, e.Stream, now, max(0, r.Lent-r.Running)
	return loanProgress{handed, r.Executions - before.Executions, r.ExecutionTime - before.ExecutionTime, r.CoreWaited - before.CoreWaited}
}

// setWaiting replaces how many calls of a gateway wait. handed is how many more no longer do.
// The others that are missing have got tickets that were counted as other calls.
func (s *loanReports) setWaiting(g *gatewayReport, waiting int, handed uint64) {
	missing := g.Waiting - waiting - int(min(handed, uint64(g.Waiting)))
	s.served += handed + uint64(max(0, missing))
	s.waiting += waiting - g.Waiting
	g.Waiting = waiting
}

// drop drops the last report of a gateway. Its calls no longer wait here.
func (s *loanReports) drop(gateway string) {
	g := s.last[gateway]
	if g == nil {
		return
	}
	s.setWaiting(g, 0, 0)
	s.running -= g.Running
	delete(s.last, gateway)
}

func (s *loanReports) dropAll() {
	for _, gateway := range slices.Collect(maps.Keys(s.last)) {
		s.drop(gateway)
	}
}

// asked records that a call has got a ticket. If it arrived before its gateway's last report,
// the report counts it as waiting.
func (s *loanReports) asked(gateway string, arrived time.Time) {
	if g := s.last[gateway]; g != nil && g.Waiting > 0 && !arrived.After(g.at) {
		g.Waiting--
		s.waiting--
	}
}

// unused is how many calls a gateway could hand over at once.
func (s *loanReports) unused(gateway string) int {
	if g := s.last[gateway]; g != nil {
		return g.unused
	}
	return 0
}

// recalled records that a gateway loses loans, unused ones first.
func (s *loanReports) recalled(gateway string, n int) {
	if g := s.last[gateway]; g != nil {
		g.unused = max(0, g.unused-n)
	}
}

// runningByLoans is how many calls run in places that instances have lent: in all but those that
// their gateways' reports have as unused. A gateway also reports calls as running that have a ticket.
func (s *loanReports) runningByLoans(q *queue.Queue) (n int) {
	if s.running == 0 {
		return 0
	}
	q.EachBorrower(func(gateway string, calls int) {
		if g := s.last[gateway]; g != nil {
			n += max(0, min(g.Running, calls-(g.Lent-g.Running)))
		}
	})
	return n
}

// hasCalls reports whether calls wait or run, as far as this scheduler knows.
func (f *Function) hasCalls() bool {
	return f.Waiting()+f.queue.Out()+f.reports.running > 0
}

func (e *Reported) apply(f *Function, now time.Time) {
	if !f.served() {
		return
	}
	did := f.reports.replace(e, now)
	f.observeExecutions(did.executions, did.took)
	f.coreWaited += min(did.coreWaited, time.Duration(did.executions)*invocation.LongCoreWait)
	if did.handed > 0 || f.reports.waiting > 0 || f.reports.running > 0 {
		f.endIdleTime(now)
	}
	f.match(now) // the report may say that loans are idle
	switch {
	case did.handed > 0 || f.reports.waiting > 0:
		f.wake()
		f.requestRun(now)
	case f.floorPolicy.Patterned() && !f.idleSince.IsZero():
		f.wake() // the next tick plans how long to keep the instance
	}
}

// observeExecutions counts n executions, each with their mean.
func (f *Function) observeExecutions(n uint64, took time.Duration) {
	if n == 0 {
		return
	}
	mean := min(time.Duration(uint64(took)/n), f.spec.Timeout)
	for range min(n, uint64(f.config.Executions)) {
		f.estimates.executions.Observe(mean)
	}
	f.ranByLoan = RanByLoan{Calls: n, Mean: mean}
	f.do(&f.ranByLoan)
}

// endIdleTime records that the function has a call after it had none.
func (f *Function) endIdleTime(now time.Time) {
	if f.idleSince.IsZero() {
		return
	}
	if idle := now.Sub(f.idleSince); idle > 0 {
		f.floorPolicy.CalledAfter(idle)
	}
	f.idleSince = time.Time{}
}

// A gateway offers its waiting calls again, and its calls by loans go on.
func (e GatewayGone) apply(f *Function, now time.Time) {
	if g := f.reports.last[e.Gateway]; g != nil && g.stream == e.Stream {
		f.reports.drop(e.Gateway)
		f.updateIdleSince(now)
	}
}

// lends reports whether instances lend places to gateways.
func (s *Spec) lends() bool { return !s.Limited }

// recallLoans takes loans back that other gateways need, or all if the function lends nothing
// any more.
func (f *Function) recallLoans(now time.Time) {
	if !f.spec.lends() {
		f.queue.RecallAll(now, f.recall)
		return
	}
	f.queue.Recalls(now, f.reports.unused, f.recall)
}

func (f *Function) recall(r queue.Recall) {
	f.reports.recalled(r.Gateway, r.Calls)
	f.do(Recall(r))
}
