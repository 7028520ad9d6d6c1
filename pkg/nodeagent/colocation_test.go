package nodeagent

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

func TestCoLocationIsWhatTheNodeHas(t *testing.T) {
	all := cgroups.Holding{Cores: true, Freezer: true, Waits: cgroups.Pressure}
	for _, tt := range []struct {
		cores          int
		has            cgroups.Holding
		most           int
		onWait, freeze bool
		problem        string
	}{
		{8, all, 7, true, true, ""},
		{8, cgroups.Holding{Cores: true, Waits: cgroups.Pressure}, 7, true, false, ""},
		{8, cgroups.Holding{Cores: true, Freezer: true}, 7, false, false, ""}, // by need alone
		{8, cgroups.Holding{Freezer: true, Waits: cgroups.Pressure}, 0, true, true, ""},
		{2, all, 0, true, true, ""},
		{8, cgroups.Holding{Waits: cgroups.Pressure}, 0, true, false, "neither a cpuset nor a freezer"},
		{8, cgroups.Holding{Freezer: true}, 0, false, false, "nothing says how long"},
		{2, cgroups.Holding{Cores: true, Freezer: true}, 0, false, false, "2 cores are too few to reserve one, and nothing says"},
		{2, cgroups.Holding{Cores: true, Waits: cgroups.Pressure}, 0, true, false, "2 cores are too few to reserve one, and there is no freezer"},
	} {
		p, err := CoLocation(tt.cores, tt.has)
		if p.Most != tt.most || p.OnWait != tt.onWait || p.Freeze != tt.freeze || p.Cores != tt.cores {
			t.Errorf("%d cores with %+v: %+v", tt.cores, tt.has, p)
		}
		if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%d cores with %+v: error %v, want %q", tt.cores, tt.has, err, tt.problem)
		}
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestCoresHaveTheNumbersOfTheNode(t *testing.T) {
	for _, tt := range []struct {
		on      colocate.Cores
		numbers []int
		want    string
	}{
		{colocate.Cores{First: 0, N: 4}, nil, ""},
		{colocate.Cores{First: 1, N: 3}, nil, "1-3"},
		{colocate.Cores{First: 0, N: 4}, []int{0, 2, 4, 6}, ""},
		{colocate.Cores{First: 1, N: 3}, []int{0, 2, 4, 6}, "2,4,6"},
		{colocate.Cores{First: 3, N: 1}, []int{0, 2, 4, 6}, "6"},
		{colocate.Cores{First: 1, N: 3}, []int{4, 5, 6, 7}, "5-7"},
	} {
		if got := listOf(tt.on, 4, tt.numbers); got != tt.want {
			t.Errorf("%v of the cores %v is %q, want %q", tt.on, tt.numbers, got, tt.want)
		}
	}
}

func TestClaimsAreThoseOfInstancesThatWereHereBefore(t *testing.T) {
	const ms = time.Millisecond
	var c claims
	for i, tt := range []struct {
		now          map[callorder.InstanceID]claim
		used, waited time.Duration
	}{
		{map[callorder.InstanceID]claim{1: {500 * ms, 70 * ms}}, 0, 0},
		{map[callorder.InstanceID]claim{1: {510 * ms, 72 * ms}, 2: {900 * ms, 900 * ms}}, 10 * ms, 2 * ms},
		{map[callorder.InstanceID]claim{1: {540 * ms, 73 * ms}, 2: {905 * ms, 904 * ms}}, 45 * ms, 6 * ms}, // the one that waited longest
		{map[callorder.InstanceID]claim{2: {905 * ms, 800 * ms}}, 45 * ms, 6 * ms},                         // threads have ended
		{map[callorder.InstanceID]claim{1: {900 * ms, 900 * ms}, 2: {906 * ms, 801 * ms}}, 46 * ms, 7 * ms},
		{nil, 46 * ms, 7 * ms},
	} {
		if got := c.count(tt.now); got != (colocate.Looked{Usage: tt.used, Waited: tt.waited}) {
			t.Errorf("look %d: %+v, want %v and %v", i, got, tt.used, tt.waited)
		}
	}
}

func TestABatchInstanceThatHasAllItMayHaveLeavesCores(t *testing.T) {
	for _, tt := range []struct {
		got     float64
		allowed int
		want    bool
	}{{0, 8, true}, {1.2, 8, true}, {1.4, 8, false}, {0.95, 1, false}, {0.8, 1, true}, {1, 2, true}} {
		if got := full(tt.got, 0.1, 8, tt.allowed); got != tt.want {
			t.Errorf("with %v of %d cores the node is full: %v", tt.got, tt.allowed, got)
		}
	}
}

// fakeHold is what keeps an instance of a machine back.
type fakeHold struct {
	mu     sync.Mutex
	cores  string
	frozen bool
	closed int
	fail   error
	froze  int
	sets   int // of cores
}

func (h *fakeHold) SetFrozen(frozen bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return h.fail
	}
	h.frozen = frozen
	if frozen {
		h.froze++
	}
	return nil
}

func (h *fakeHold) SetCores(list string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return h.fail
	}
	h.cores = list
	h.sets++
	return nil
}

func (h *fakeHold) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed++
	h.frozen, h.cores = false, ""
	return nil
}

func (h *fakeHold) failWith(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = err
}

func (h *fakeHold) state() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return fmt.Sprintf("cores %q frozen %v closed %d", h.cores, h.frozen, h.closed)
}

// coLocated starts a node agent that keeps batch instances back on some cores. Its instances wait for as
// much of the time as share says.
type coLocated struct {
	*machine
	reg  *prometheus.Registry
	stop func() error
}

func newCoLocated(t *testing.T, cores int) *coLocated {
	t.Helper()
	c := &coLocated{reg: prometheus.NewRegistry()}
	params, err := CoLocation(cores, cgroups.Holding{Cores: true, Freezer: true, Waits: cgroups.Pressure})
	if err != nil {
		t.Fatal(err)
	}
	c.machine = newMachine(t, func(config *Config, d *Deps) {
		config.Calls.Cores = cores
		config.LatencyCritical = []string{"ns"}
		config.CoLocation = &params
		d.Registry = c.reg
	})
	c.holds = map[string]*fakeHold{}
	c.stop = c.run()
	return c
}

func expectHold(t *testing.T, m *coLocated, name, want string) {
	t.Helper()
	if got := m.hold(name).state(); got != want {
		t.Errorf("%s has %s, want %s", name, got, want)
	}
}

func TestBatchIsKeptBackWhileALatencyCriticalInstanceWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCoLocated(t, 8)
		m.connectAs("Batch", "b")
		m.connect("s", "f")
		m.pass(time.Second)
		if m.hold("b") != nil {
			t.Fatal("it is held back, and nothing is latency-critical")
		}
		critical := m.connectAs("LatencyCritical", "c")
		m.group("c").compute(true)
		m.pass(time.Second)
		expectHold(t, m, "b", `cores "" frozen false closed 0`)
		m.group("c").wait(0.1)
		m.pass(250 * time.Millisecond)
		expectHold(t, m, "b", `cores "2-7" frozen false closed 0`) // one core at 60 % each needs two
		if got := value(t, m.reg, "windlass_node_reserved_cores", ""); got != 2 {
			t.Errorf("%v cores are reserved", got)
		}
		m.pass(1500 * time.Millisecond)
		expectHold(t, m, "b", `cores "7" frozen true closed 0`)
		if m.hold("s") != nil {
			t.Error("an instance of class Standard is held back")
		}
		for name, want := range map[string]float64{
			"windlass_node_colocation": 1, "windlass_node_frozen_instances": 1, "windlass_node_freezes_total": 1, "windlass_node_reserved_cores": 7,
		} {
			if got := value(t, m.reg, name, ""); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		m.pass(750 * time.Millisecond)
		if got := value(t, m.reg, "windlass_node_critical_wait_seconds_total", ""); got < 0.2 || got > 0.3 {
			t.Errorf("it waited %v s in 2.5 s, want a tenth", got)
		}
		m.group("c").wait(0)
		m.pass(90 * time.Second)
		expectHold(t, m, "b", `cores "" frozen false closed 0`)
		critical.hangUp()
		m.pass(time.Second)
		expectHold(t, m, "b", `cores "" frozen false closed 1`)
		if got := value(t, m.reg, "windlass_node_colocation", ""); got != 0 {
			t.Errorf("it still says that it is on: %v", got)
		}
		if err := m.stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestCoresAreSetAgainForNewContainers: a function's container starts after the agent's, when the instance has joined, and
// that of a pod may start again.
func TestCoresAreSetAgainForNewContainers(t *testing.T) {
	hold := &fakeHold{}
	h := heldBack{hold: hold}
	for _, tt := range []struct {
		cores string
		sets  int // in 3 s
	}{{"", 0}, {"2-7", 3}, {"1-7", 3}, {"", 1}} {
		h.toCores, hold.sets = tt.cores, 0
		for now := time.Duration(0); now < 3*time.Second; now += coLocateEvery {
			if cannot, failed := h.change(now); cannot != nil || failed != nil {
				t.Fatal(cannot, failed)
			}
		}
		if hold.sets != tt.sets || hold.cores != tt.cores {
			t.Errorf("the cores %q were set %d times, want %d; it has %q", tt.cores, hold.sets, tt.sets, hold.cores)
		}
	}
}

// TestWaitsThatBatchDoesNotCauseLeaveItAlone has an instance that waits whatever batch does.
func TestWaitsThatBatchDoesNotCauseLeaveItAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCoLocated(t, 8)
		defer func() { _ = m.stop() }()
		m.connectAs("Batch", "b")
		m.connectAs("LatencyCritical", "c")
		m.group("c").wait(0.1)
		m.pass(8 * time.Second)
		expectHold(t, m, "b", `cores "" frozen false closed 0`)
		if vain, freezes := value(t, m.reg, "windlass_node_ineffective_holds_total", ""), value(t, m.reg, "windlass_node_freezes_total", ""); vain != 1 || freezes != 2 { // and once more in the probe
			t.Errorf("%v freezes, %v for nothing", freezes, vain)
		}
		if frozen := value(t, m.reg, "windlass_node_frozen_seconds_total", ""); frozen <= 0.9 || frozen > 1.5 {
			t.Errorf("it was frozen for %v s", frozen)
		}
	})
}

func TestBatchWorkIsCountedWhileItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCoLocated(t, 8)
		defer func() { _ = m.stop() }()
		used := func(function string) float64 {
			return value(t, m.reg, "windlass_node_batch_cpu_seconds_total", function+"ns")
		}
		first := m.connectAs("Batch", "b-1")
		m.connectAs("Batch", "b-2")
		m.connectAs("Standard", "s")
		m.group("b-1").spare()
		m.group("b-1").compute(true)
		m.group("s").compute(true)
		m.pass(2 * time.Second)
		if got := used("b-1"); got < 1.8 || got > 2 {
			t.Errorf("a batch instance used %v s in 2 s", got)
		}
		if idle, standard := used("b-2"), used("s"); idle != 0 || standard != -1 {
			t.Errorf("one that computes nothing used %v s, and one that is not batch %v s", idle, standard)
		}
		m.pass(50 * time.Millisecond)
		first.hangUp()
		m.pass(time.Second)
		if gone, here := used("b-1"), used("b-2"); gone != -1 || here != 0 {
			t.Errorf("%v s are left of one that has gone, and %v s of one that has not", gone, here)
		}
	})
}

// press lets a latency-critical instance wait until the batch instance b is frozen.
func (c *coLocated) press() (batch, critical *fakeAgent) {
	batch, critical = c.connectAs("Batch", "b"), c.connectAs("LatencyCritical", "c")
	c.group("c").wait(0.5)
	c.pass(700 * time.Millisecond) // and not yet given back to see what that changes
	return batch, critical
}

func TestWhateverEndsLetsBatchGoOn(t *testing.T) {
	for what, end := range map[string]func(m *coLocated, batch, critical *fakeAgent){
		"the latency-critical instance ends": func(_ *coLocated, _, critical *fakeAgent) { critical.hangUp() },
		"the batch instance ends":            func(_ *coLocated, batch, _ *fakeAgent) { batch.hangUp() },
		"the node agent ends":                func(m *coLocated, _, _ *fakeAgent) { _ = m.stop() },
		"another stream replaces it":         func(m *coLocated, _, _ *fakeAgent) { m.connectAs("Standard", "b") },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newCoLocated(t, 2)
				defer func() { _ = m.stop() }()
				batch, critical := m.press()
				expectHold(t, m, "b", `cores "" frozen true closed 0`) // two cores are too few to reserve one
				hold := m.hold("b")
				end(m, batch, critical)
				m.pass(time.Millisecond)
				if got := hold.state(); got != `cores "" frozen false closed 1` {
					t.Errorf("afterwards it has %s", got)
				}
			})
		})
	}
}

func TestChangesThatFailAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCoLocated(t, 2)
		defer func() { _ = m.stop() }()
		m.press()
		m.hold("b").failWith(&fs.PathError{Op: "write", Path: "/x/freezer.state", Err: os.ErrPermission})
		m.group("c").wait(0)
		m.pass(5 * time.Second)
		expectHold(t, m, "b", `cores "" frozen true closed 0`)
		if got := value(t, m.reg, "windlass_node_failed_writes_total", "freezer.state"); got < 10 {
			t.Errorf("%v failures are counted", got)
		}
		m.hold("b").failWith(nil)
		m.pass(200 * time.Millisecond)
		expectHold(t, m, "b", `cores "" frozen false closed 0`)
	})
}

func TestWhatCannotBeFrozenCountsAsRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newCoLocated(t, 2)
		defer func() { _ = m.stop() }()
		m.connectAs("Batch", "b")
		m.connectAs("LatencyCritical", "c")
		m.hold("b").failWith(fmt.Errorf("its agent says nothing: %w", errors.ErrUnsupported))
		m.group("c").wait(0.5)
		m.pass(10 * time.Second)
		for _, name := range []string{"windlass_node_frozen_instances", "windlass_node_freezes_total", "windlass_node_frozen_seconds_total"} {
			if got := value(t, m.reg, name, ""); got != 0 {
				t.Errorf("%s is %v", name, got)
			}
		}
		if got := value(t, m.reg, "windlass_node_failed_writes_total", ""); got > 0 {
			t.Errorf("%v failures are counted", got)
		}
	})
}

func TestWithoutCoLocationNothingIsOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.LatencyCritical = []string{"ns"} })
		m.holds = map[string]*fakeHold{}
		defer m.run()()
		m.connectAs("Batch", "b")
		m.connectAs("LatencyCritical", "c")
		m.group("c").wait(0.5)
		m.pass(5 * time.Second)
		if len(m.holds) > 0 {
			t.Errorf("%d instances are held back", len(m.holds))
		}
	})
}

// TestNothingStaysHeldInWhateverOrderInstancesComeAndGo lets instances of all classes come, wait and go.
func TestNothingStaysHeldInWhateverOrderInstancesComeAndGo(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 44))
			m := newCoLocated(t, 2+r.IntN(6))
			here := map[string]*fakeAgent{}
			classes := []string{"Batch", "LatencyCritical", "Standard"}
			for range 120 {
				class := classes[r.IntN(len(classes))]
				name := fmt.Sprintf("%s-%d", strings.ToLower(class), r.IntN(3))
				switch p := here[name]; {
				case p == nil:
					here[name] = m.connectAs(class, name)
					m.group(name).compute(r.IntN(2) == 0)
				case r.IntN(2) == 0:
					p.hangUp()
					delete(here, name)
				default:
					m.group(name).wait(r.Float64() / 4)
				}
				m.pass(time.Duration(r.IntN(1500)) * time.Millisecond)
				m.checkHolds(here)
			}
			if err := m.stop(); err != nil {
				t.Error(err)
			}
			m.checkHolds(nil)
		})
	}
}

// checkHolds checks that exactly the batch instances that are here are held while a latency-critical one is, and
// that all others were let go once.
func (c *coLocated) checkHolds(here map[string]*fakeAgent) {
	c.t.Helper()
	critical := false
	for name := range here {
		critical = critical || strings.HasPrefix(name, "latency")
	}
	open := 0
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, h := range c.holds {
		if here[name] != nil && critical && h.closed == 0 {
			open++
			continue
		}
		if h.closed != 1 || h.frozen || h.cores != "" {
			c.t.Fatalf("%s is %s, and is there: %v", name, h.state(), here[name] != nil)
		}
	}
	batch := 0
	for name := range here {
		if critical && strings.HasPrefix(name, "batch") {
			batch++
		}
	}
	if open != batch {
		c.t.Fatalf("%d of %d batch instances are held", open, batch)
	}
}
