package scheduler

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// lender is an instance that has run a call of a gateway and keeps its place for it.
func (w *harness) lender(fn *v1alpha1.Function, g *gateway, addr string) *agent {
	w.t.Helper()
	g.offer(fn, 1)
	a := w.ready(w.started(fn, 1)[0])
	a.expect("ticket 0001 at " + addr)
	a.lend(0, lentTo(addr, 1), 0, doneWith(1, 10*time.Millisecond))
	return a
}

func TestATicketSaysWhetherItsPlaceIsLent(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		g := w.gateway("g:1")
		for name, limits := range map[string]v1alpha1.Calls{
			"none": {}, "calls": {MaxInFlight: 5}, "rate": {Rate: v1alpha1.Rate{Requests: 5, Burst: 5}},
		} {
			fn := w.put(name, callLimit(limits))
			g.offer(fn, 1)
			a := w.ready(w.started(fn, 1)[0])
			a.expect("ticket 0001 at g:1")
			if want := []bool{name == "none"}; !cmp.Equal(a.keeps, want) {
				t.Errorf("limits %s: lent %v, want %v", name, a.keeps, want)
			}
		}
	})
}

func TestALoanComesBackForTheCallOfAnotherGateway(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, busy, other := w.put("f", maxInstances(1)), w.gateway("g:1"), w.gateway("g:2")
		a := w.lender(fn, busy, "g:1")
		busy.report(fn, &controlwire.LoanReport{Served: 3, Running: 1, Lent: 1})
		other.offer(fn, 2)
		a.expect(fmt.Sprint("recall 1 from g:1 in ", queue.LoanTerm))
		w.after(queue.LoanTerm)
		a.expect()
		a.lend(1, nil, 0)
		a.expect("ticket 0002 at g:2")
		a.lend(0, lentTo("g:2", 1), 0, doneWith(2, 10*time.Millisecond))

		// That is over for the next one.
		w.after(queue.LoanTerm)
		other.report(fn, &controlwire.LoanReport{Lent: 1})
		busy.offer(fn, 3)
		a.expect("recall 1 from g:2")
		series := w.scrape("function")
		if got, loans := series["recalls_total{f,ns}"], series["loans{f,ns}"]; got != 2 || loans != 1 {
			t.Errorf("%v recalls and %v loans were counted, want 2 and 1", got, loans)
		}
	})
}

func TestCallsByLoansAreCalls(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", maxInstances(2)), w.gateway("g:1")
		w.lender(fn, g, "g:1")
		g.report(fn, &controlwire.LoanReport{
			Served: 99, Waiting: 2, Running: 1, Lent: 1, Executions: 98, ExecutedNs: int64(98 * 10 * time.Millisecond),
		})
		series := w.scrape("function")
		for name, want := range map[string]float64{
			"queue_length{f,ns}": 2, "instances{f,ns,busy}": 1, "instances{f,ns,idle}": 0,
			"estimated_execution_seconds{f,ns}": 0.01,
		} {
			if got := series[name]; got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		if got := series["windlass_function_execution_duration_seconds{f,ns}"]; got < 0.989 || got > 0.991 {
			t.Errorf("99 calls of 10 ms took %v s", got)
		}
		if a, _ := w.scheduler.reporter.Report(fn.Key()); a.Calls != 102 || a.Load.Waiting != 2 || a.Load.Busy != 1 {
			t.Errorf("%d calls came, %+v", a.Calls, a.Load)
		}
		v := w.watch()
		synctest.Wait()
		facts := (<-v.replies).GetFunctions()[0]
		if facts.GetBusy() != 1 || facts.GetQueued() != 2 || facts.GetMeanExecNs() != int64(10*time.Millisecond) {
			t.Errorf("the controller hears %v", facts)
		}
	})
}

// The next instance comes for calls that wait at their gateway.
func TestCallsThatWaitAtTheirGatewayKeepAFunctionAwake(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", maxInstances(3)), w.gateway("g:1")
		w.lender(fn, g, "g:1")
		w.ticks(30)
		f := w.scheduler.shell.lookup(string(fn.UID))
		if w.scheduler.shell.units.isActive(f) {
			t.Fatal("it is active without calls")
		}
		g.report(fn, &controlwire.LoanReport{Served: 9, Waiting: 40, Running: 1, Lent: 1})
		w.ticks(3)
		if !w.scheduler.shell.units.isActive(f) {
			t.Error("it is parked although calls wait")
		}
		w.started(fn, 2)
	})
}

func TestTheEndOfAStreamEndsWhatItReported(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", maxInstances(1)), w.gateway("g:1")
		w.lender(fn, g, "g:1")
		g.report(fn, &controlwire.LoanReport{Served: 4, Waiting: 3, Running: 1, Lent: 1})
		next := w.gateway("g:1") // it has connected again
		next.report(fn, &controlwire.LoanReport{Served: 1, Waiting: 2, Running: 1, Lent: 1})
		g.hangUp()
		synctest.Wait()
		if n := w.waiting(fn); n != 2 {
			t.Errorf("%d calls wait, want the 2 of the present stream", n)
		}
		next.hangUp()
		synctest.Wait()
		v := w.scheduler.shell.lookup(string(fn.UID)).view(time.Now())
		if v.Waiting != 0 || v.Busy != 0 || v.Arrived != 8 || v.Departed != 8 {
			t.Errorf("nobody reports any more: %+v", v)
		}
	})
}

// What the owner of the function counted before does not come again as a burst.
func TestAStreamThatReportedBeforeATakeOverCountsFromThere(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		arrived := func() uint64 { return w.scheduler.shell.lookup(string(fn.UID)).view(time.Now()).Arrived }
		g.report(fn, &controlwire.LoanReport{Served: 1000})
		if n := arrived(); n != 1000 {
			t.Errorf("%d calls came, want 1000", n)
		}
		w.ownership.own(false)
		synctest.Wait()
		g.report(fn, &controlwire.LoanReport{Served: 5000})
		w.ownership.own(true)
		synctest.Wait()
		g.report(fn, &controlwire.LoanReport{Served: 5010, Lent: 1})
		g.report(fn, &controlwire.LoanReport{Served: 5017, Lent: 1})
		if n := arrived(); n != 1007 {
			t.Errorf("%d calls came, want 1007", n)
		}
		by := w.forwarding("g:2")
		by.report(fn, &controlwire.LoanReport{Served: 777, Waiting: 1})
		by.report(fn, &controlwire.LoanReport{Served: 780})
		if n := arrived(); n != 1010 {
			t.Errorf("%d calls came, want 1010", n)
		}
	})
}

func TestAnIdleInstanceWithALoanIsEvictedForAnother(t *testing.T) {
	config := defaults()
	config.node = 100 // room for one instance
	inHarness(t, config, func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		a := w.lender(fn, g, "g:1")
		other := w.put("other")
		g.offer(other, 2)
		w.after(2 * w.scheduler.shell.config.EvictAfter)
		a.expect()
		a.lend(0, lentTo("g:1", 1), w.scheduler.shell.config.EvictAfter)
		w.ticks(2)
		a.expect("retire: made room for ns/other")
	})
}

func TestAReportAllocatesNothing(t *testing.T) {
	w, functions := benchHarness(t, 1)
	w.register(functions)
	o := &offerStream{gateway: "g:1"}
	w.scheduler.shell.gateways.register(o)
	report := &controlwire.LoanReport{FunctionUid: string(functions[0].UID)}
	if n := testing.AllocsPerRun(100, func() {
		report.Served, report.Executions, report.ExecutedNs = report.GetServed()+7, report.GetExecutions()+7, report.GetExecutedNs()+7e6
		report.Waiting, report.Running, report.Lent = 1, 1, 2
		w.scheduler.offers.acceptReport(o, report)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	f := w.scheduler.shell.lookup(string(functions[0].UID))
	if f.view(time.Now()).Arrived != report.GetServed()+1 || f.means().Execution != time.Millisecond {
		t.Errorf("%+v after %v", f.view(time.Now()), report)
	}
	w.scheduler.offers.endReports(o)
	if _, is := stepFor[core.Repaired](w.scheduler.shell, f, core.GatewaysAudited{Connected: func(string) bool { return false }}); is || w.waitingOf(f) > 0 {
		t.Error("reports are left")
	}
}

func (w *harness) waitingOf(f *unit) int { return f.view(time.Now()).Waiting }
