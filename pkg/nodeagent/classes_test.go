package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// connectAs opens a stream of an instance that says that it has a class.
func (m *machine) connectAs(class, name string) *fakeAgent {
	m.t.Helper()
	p := m.dial(false)
	p.hello(&nodewire.Hello{Token: name, Namespace: "ns", Function: name, Instance: name, Class: class})
	synctest.Wait()
	return p
}

func TestClassesAreWhatTheNodeAllows(t *testing.T) {
	for _, c := range []struct {
		said    string
		allowed []string
		want    callorder.Class
	}{
		{"", []string{"*"}, callorder.Standard},
		{"Standard", []string{"*"}, callorder.Standard},
		{"latencycritical", []string{"*"}, callorder.Standard},
		{"LatencyCritical", nil, callorder.Standard},
		{"LatencyCritical", []string{"n", "nss", ""}, callorder.Standard},
		{"LatencyCritical", []string{"other", "ns"}, callorder.LatencyCritical},
		{"LatencyCritical", []string{"*"}, callorder.LatencyCritical},
		{"Batch", nil, callorder.Batch},
	} {
		if got := classOf(c.said, "ns", c.allowed); got != c.want {
			t.Errorf("who says %q where %q may be latency-critical is %v, want %v", c.said, c.allowed, got, c.want)
		}
	}
}

func TestABatchInstanceIsLowOnACalmMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(_ *Config, d *Deps) { d.Registry = reg })
		stop := m.run()
		p, other := m.connectAs("Batch", "b"), m.connect("a", "f")
		m.want(1)
		expect(t, "after the hello", p, "welcome", "low")
		expectLow(t, m, "b", true)
		// It uses nothing, and is not woken for that.
		m.pass(10 * time.Second)
		if n := m.group("b").lifted; n != 0 {
			t.Errorf("it breathed %d times on a calm machine", n)
		}
		expectLow(t, m, "a", false)
		for labels, want := range map[string]float64{"lowBatch": 1, "normalBatch": 0, "normalStandard": 1, "lowLatencyCritical": 0} {
			if got := value(t, reg, "windlass_node_instances", labels); got != want {
				t.Errorf("instances of %s: %v, want %v", labels, got, want)
			}
		}
		p.hangUp()
		m.pass(time.Second)
		if low, closed, _ := m.group("b").state(); low || !closed {
			t.Errorf("after it left it is low: %v, closed: %v", low, closed)
		}
		expect(t, "the other one", other, "welcome")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// systemd lifts the groups of pods when it applies their weights again.
func TestAnInstanceThatSomebodyElseLiftsIsLowAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(_ *Config, d *Deps) { d.Registry = reg })
		defer m.run()()
		m.connectAs("Batch", "b")
		m.pass(time.Second)
		if err := m.group("b").SetLow(false); err != nil {
			t.Fatal(err)
		}
		m.group("b").failWith(&fs.PathError{Op: "write", Path: "/sys/fs/cgroup/pod1/cpu.idle", Err: syscall.EINVAL})
		m.pass(1200 * time.Millisecond)
		if n := value(t, reg, "windlass_node_failed_writes_total", "cpu.idle"); n < 1 {
			t.Errorf("%v failures", n)
		}
		m.group("b").failWith(nil)
		m.pass(1200 * time.Millisecond)
		expectLow(t, m, "b", true)
		before := m.group("b").lowerings()
		m.pass(10 * time.Second)
		if n := m.group("b").lowerings() - before; n > 10 {
			t.Errorf("it was written %d times in 10 s", n)
		}
	})
}

// Instances of all classes tell schedulers and gateways that their node is busy. A pod without an agent
// tells nobody, and a mode that has not changed is not said again.
func TestAllClassesHearOfTheMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.LatencyCritical = []string{"ns"} })
		defer m.run()()
		agents := map[string]*fakeAgent{"": m.connect("s", "f"), "LatencyCritical": m.connectAs("LatencyCritical", "c"), "Batch": m.connectAs("Batch", "b")}
		for _, p := range agents {
			p.heard()
		}
		said := map[string]string{"": "ask", "LatencyCritical": "busy", "Batch": "busy"}
		m.want(9)
		m.pass(2 * time.Second)
		for class, p := range agents {
			expect(t, class+" on a busy machine", p, said[class])
		}
		late := m.connectAs("LatencyCritical", "d")
		expect(t, "one that comes later", late, "welcome", "busy")
		m.want(0)
		m.pass(2 * time.Second)
		for class, p := range agents {
			expect(t, class+" on a calm one", p, "ask not")
		}
		late = m.connectAs("LatencyCritical", "e")
		expect(t, "one that comes to a calm one", late, "welcome")
	})
}

func TestABatchInstanceIsNotAskedAndBreathes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.connectAs("Batch", "b")
		occupy := m.occupants("x", "y")
		m.want(4)
		occupy(2 * time.Second)
		expect(t, "on a busy machine", p, "welcome", "low", "busy")
		if n := m.group("b").lifted; n < 2 {
			t.Errorf("it breathed %d times while it starved", n)
		}
		p.ask(7) // an agent of another release may
		expect(t, "after an ask", p, "grant 7")
	})
}

func TestBatchInstancesMakeNoMachineBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		a := m.connect("a", "f")
		m.connectAs("Batch", "b")
		// Five threads want to run: one of them is normal, so one core is left for the others.
		g := m.group("b")
		g.mu.Lock()
		g.settle()
		g.leftover = true
		g.mu.Unlock()
		g.compute(true)
		m.want(5)
		m.pass(5 * time.Second)
		expect(t, "while something is left", a, "welcome")
		// Nothing is left any more.
		g.compute(false)
		m.pass(time.Second)
		expect(t, "while nothing is left", a, "ask")
		g.compute(true)
		m.pass(3 * time.Second)
		expect(t, "while something is left again", a, "ask not")
	})
}

// What batch instances got over a time in which nobody looked says nothing of now.
func TestARushBesideBatchIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.Calls.Cores = 4 })
		defer m.run()()
		a := m.connect("a", "f")
		m.connectAs("Batch", "b")
		m.group("b").spare()
		m.group("b").compute(true)
		m.want(5)
		m.want(4)
		m.pass(time.Minute)
		m.group("b").compute(false) // the others have all cores
		m.mu.Lock()
		m.runnable = 9
		m.mu.Unlock()
		m.pass(m.config.Mode.CalmEvery + 30*time.Millisecond)
		expect(t, "of a rush", a, "welcome", "ask")
	})
}

func TestBatchIsMeasuredSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		const batch = 50
		for n := range batch {
			m.connectAs("Batch", fmt.Sprint("b", n))
		}
		m.want(99)
		if n := m.readsIn(time.Second); n > 40*batch {
			t.Errorf("each is read %d times a second", n/batch)
		}
	})
}

// Where batch instances cannot be low, or are not, what they get was not left by others.
func TestBatchInstancesThatAreNotLowMakeAMachineBusy(t *testing.T) {
	for _, why := range []error{errors.ErrUnsupported, errors.New("the group refuses")} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t, func(_ *Config, d *Deps) { d.Instances = bandless{d.Instances.(*machine), why} })
			defer m.run()()
			a := m.connect("a", "f")
			m.connectAs("Batch", "b")
			m.group("b").compute(true)
			m.want(5)
			m.pass(time.Second)
			expect(t, "beside a batch instance that is not low", a, "welcome", "ask")
		})
	}
}

// bandless identifies as a machine does whose groups cannot be low.
type bandless struct {
	*machine
	why error
}

func (b bandless) Identify(ctx context.Context, hello Hello, peer net.Addr) (Instance, error) {
	i, err := b.machine.Identify(ctx, hello, peer)
	if err == nil {
		i.Group.(*fakeGroup).failWith(b.why)
	}
	return i, err
}

func TestLatencyCriticalInstancesAreNotAskedAndTakeTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.LatencyCritical = []string{"ns"}
			c.Calls.Order, c.Calls.Slice = callorder.FIFO, callorder.Slice{Rule: callorder.SliceOff}
			c.Calls.BlockedAfter = 0
		})
		defer m.run()()
		c := m.connectAs("LatencyCritical", "c")
		a, b := m.connect("a", "f"), m.connect("b", "g")
		m.group("c").compute(true)
		m.want(3)
		m.pass(200 * time.Millisecond)
		expect(t, "on a busy machine", c, "welcome", "busy")
		a.ask(1)
		m.pass(10 * time.Millisecond)
		b.ask(1)
		expect(t, "the first", a, "welcome", "ask", "grant 1")
		if got := b.heard(); len(got) < 2 || got[len(got)-1] == "grant 1" {
			t.Errorf("the second heard %q; it should wait, as one of two cores is in use", got)
		}
		m.pass(5 * time.Second)
		expectLow(t, m, "c", false)
		// When it rests, its core is everybody's.
		m.group("c").compute(false)
		m.pass(300 * time.Millisecond)
		if got := b.heard(); len(got) == 0 || got[len(got)-1] != "grant 1" {
			t.Errorf("the second heard %q, want its grant", got)
		}
	})
}

func TestWhoMayNotBeLatencyCriticalIsStandard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.LatencyCritical = []string{"other"} })
		defer m.run()()
		p := m.connectAs("LatencyCritical", "c")
		m.want(3)
		expect(t, "on a busy machine", p, "welcome", "ask")
	})
}

func TestAnOwnSliceIsShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.Cores, c.Calls.Order, c.Calls.Slice = 1, callorder.FIFO, callorder.Slice{Rule: callorder.SliceFixed, Length: time.Second}
		})
		defer m.run()()
		p := m.dial(false)
		p.hello(&nodewire.Hello{Token: "a", Namespace: "ns", Function: "f", Instance: "a", SliceNs: int64(20 * time.Millisecond)})
		q := m.connect("b", "g")
		m.want(3)
		p.ask(1)
		m.group("a").compute(true)
		m.group("b").compute(true)
		q.ask(1)
		m.pass(50 * time.Millisecond)
		expectLow(t, m, "a", true)
	})
}

func TestCoresOfOthersAreCountedToTheNearest(t *testing.T) {
	for used, want := range map[float64]int{0: 0, 0.4: 0, 0.6: 1, 1.4: 1, 3.7: 4} {
		if got := occupiedCores(used); got != want {
			t.Errorf("%v cores in use count as %d, want %d", used, got, want)
		}
	}
}

func TestAUsageMeterCountsItsClassSinceTheLastTime(t *testing.T) {
	group := func(used time.Duration) *fakeGroup { return &fakeGroup{used: used} }
	sessions := map[callorder.InstanceID]*session{
		1: {class: callorder.Batch, inLow: true, group: group(time.Hour)},
		2: {class: callorder.Standard, group: group(time.Hour)},
	}
	classes := map[callorder.Class]int{callorder.Batch: 1, callorder.Standard: 1}
	u := newUsageMeter(callorder.Batch)
	if got := u.observe(time.Second, sessions, classes); got != 0 {
		t.Errorf("at first it is %v", got)
	}
	for _, s := range sessions {
		s.group.(*fakeGroup).used += 300 * time.Millisecond
	}
	sessions[3] = &session{class: callorder.Batch, inLow: true, group: group(time.Minute)}
	if got := u.observe(1200*time.Millisecond, sessions, classes); got != 1.5 {
		t.Errorf("0.3 s in 0.2 s are %v cores", got)
	}
	delete(sessions, 1)
	if got := u.observe(2*time.Second, sessions, classes); got != 0 || len(u.at) != 1 {
		t.Errorf("after the instance has left, it is %v of %v", got, u.at)
	}
	if got := u.observe(2*time.Second, sessions, classes); got != 0 {
		t.Errorf("in no time it is %v", got)
	}
	delete(sessions, 3)
	classes[callorder.Batch] = 0
	if got := u.observe(3*time.Second, sessions, classes); got != 0 || len(u.at) != 0 || u.since != 3*time.Second {
		t.Errorf("without any it is %v of %v since %v", got, u.at, u.since)
	}
}
