package scheduler

import (
	"testing"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

const reasonTooMany = "retire: there are more than scaling.maxInstances"

func TestAMostThatIsLoweredReleasesIdleInstancesAndLaterBusyOnes(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(3), maxInstances(3)), w.gateway("g:1")
		w.ticks(1)
		specs := w.started(fn, 3)
		a, b, c := w.ready(specs[0]), w.ready(specs[1]), w.ready(specs[2])
		g.offer(fn, 1, 2)
		a.expect("ticket 0001 at g:1")
		b.expect("ticket 0002 at g:1")
		w.after(w.scheduler.shell.config.ClaimGrace)

		fn = w.put("f", maxInstances(1))
		w.ticks(1)
		a.expect()
		b.expect()
		c.expect(reasonTooMany)
		c.goodbye(agentwire.Goodbye_REASON_DONE, "retired")
		c.closeSend()
		w.ticks(20)
		w.expectCounts(fn, provisioner.Counts{Created: 2})

		b.pull(1, doneWith(2, 0))
		w.ticks(1)
		b.expect(reasonTooMany)
		a.expect()
		a.pull(1, doneWith(1, 0))
		w.ticks(10)
		a.expect()
		w.started(fn, 0)
		if w.scheduler.shell.units.isActive(w.scheduler.shell.lookup(string(fn.UID))) {
			t.Error("it does not rest although there are no more than it may have")
		}
	})
}

func TestInstancesThatComeBackAreNotMoreThanTheMost(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f", minInstances(1), maxInstances(2))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		w.ticks(3)
		var others []*agent
		for _, cid := range []string{"0000-1", "0000-2", "0000-3"} { // of one who stood in
			w.runtime.existing = append(w.runtime.existing, provisioner.Existing{CID: invocation.CID(cid), Revision: fn.Revision(), Node: "n"})
			b := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: cid})
			b.pull(1)
			others = append(others, b)
		}
		w.ticks(2)
		w.expectCounts(fn, provisioner.Counts{Created: 2, Leaving: 2})
		retired := 0
		for _, agent := range append(others, a) {
			if len(agent.heard()) > 0 {
				retired++
			}
		}
		if retired != 2 {
			t.Errorf("%d were told to go, want 2", retired)
		}
	})
}

func TestAnInstanceThatComesBackAfterItWasReplacedIsOneTooMany(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1), maxInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		w.ticks(3)
		a.cut()
		w.ticks(1)
		b := w.ready(w.started(fn, 1)[0])
		w.ticks(3)
		back := w.hello(spec)
		back.pull(1)
		w.ticks(1)
		if told := len(back.heard()) + len(b.heard()); told != 1 {
			t.Errorf("%d were told to go, want 1", told)
		}
		w.expectCounts(fn, provisioner.Counts{Created: 1, Leaving: 1})
	})
}
