package nodeagent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// aFiller is a pod of a Job that asks to be filler.
func aFiller(name string) Pod {
	return Pod{UID: "uid-" + name, Namespace: "batch", Name: name, Class: "Batch", Runs: true}
}

func TestFillerIsWhatAsksForItAndMay(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(p *Pod)
		is      bool
		because string
	}{
		"a pod that asks":                   {func(*Pod) {}, true, ""},
		"one that does not ask":             {func(p *Pod) { p.Class = "" }, false, ""},
		"another class":                     {func(p *Pod) { p.Class = "LatencyCritical" }, false, `is "LatencyCritical"`},
		"a class in small letters":          {func(p *Pod) { p.Class = "batch" }, false, `only "Batch" is known`},
		"an instance":                       {func(p *Pod) { p.Instance = true }, false, "function says its class"},
		"a namespace that is not listed":    {func(p *Pod) { p.Namespace = "shop" }, false, "namespace is not among those"},
		"a Guaranteed pod":                  {func(p *Pod) { p.Guaranteed = true }, false, "QoS class is Guaranteed"},
		"one that has not begun or is over": {func(p *Pod) { p.Runs = false }, false, ""},
	} {
		p := aFiller("a")
		tt.change(&p)
		is, why := FillerOf(p, []string{"batch", "more"})
		if is != tt.is || (why == "") != (tt.because == "") || !strings.Contains(why, tt.because) {
			t.Errorf("%s: filler %v, because %q; want %v and %q", name, is, why, tt.is, tt.because)
		}
	}
	elsewhere := aFiller("a")
	elsewhere.Namespace = "shop"
	if is, _ := FillerOf(elsewhere, []string{"*"}); !is {
		t.Error("* does not stand for all namespaces")
	}
}

// filled is a node agent with ordinary pods.
type filled struct {
	*coLocated
	fillers *Fillers
	log     bytes.Buffer
	fail    error
	opened  map[string]int
}

func newFilled(t *testing.T, cores int) *filled {
	f := &filled{coLocated: newCoLocated(t, cores), opened: map[string]int{}}
	f.fillers = NewFillers(f.Agent, []string{"batch"}, f.openPod, slog.New(slog.NewTextHandler(&f.log, nil)))
	return f
}

func (f *filled) openPod(p Pod) (Instance, error) {
	if f.fail != nil {
		return Instance{}, f.fail
	}
	f.mu.Lock()
	g := &fakeGroup{since: time.Now()}
	f.groups[p.Name] = g
	f.mu.Unlock()
	f.opened[p.Name]++
	return Instance{
		Namespace: p.Namespace, Name: p.Name, Key: p.UID, Group: g,
		OpenHold: func() (Hold, error) { return f.openHold(p.Name), nil },
	}, nil
}

// low says whether a pod is in the low band, and whether its group was closed.
func (f *filled) low(name string) string {
	low, closed, _ := f.group(name).state()
	return fmt.Sprintf("low %v closed %v", low, closed)
}

func (f *filled) expectLow(name, want string) {
	f.t.Helper()
	if got := f.low(name); got != want {
		f.t.Errorf("%s is %s, want %s", name, got, want)
	}
}

func TestAPodIsLowForAsLongAsItAsks(t *testing.T) {
	for what, end := range map[string]func(f *filled, p Pod){
		"the annotation goes":           func(f *filled, p Pod) { p.Class = ""; f.fillers.Saw(p) },
		"it becomes another":            func(f *filled, p Pod) { p.Class = "Standard"; f.fillers.Saw(p) },
		"it ends":                       func(f *filled, p Pod) { p.Runs = false; f.fillers.Saw(p) },
		"it is gone":                    func(f *filled, p Pod) { f.fillers.Lost(p.UID) },
		"the node agent ends":           func(f *filled, _ Pod) { _ = f.stop() },
		"the node agent ends before it": func(f *filled, p Pod) { _ = f.stop(); f.fillers.Lost(p.UID) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFilled(t, 4)
				defer func() { _ = f.stop() }()
				p := aFiller("a")
				f.fillers.Saw(p)
				f.pass(time.Second)
				f.expectLow("a", "low true closed false")
				if pods, agents := value(t, f.reg, "windlass_node_filler_pods", ""), value(t, f.reg, "windlass_node_agents", ""); pods != 1 || agents != 0 {
					t.Errorf("%v pods are filler, and %v agents are connected", pods, agents)
				}
				end(f, p)
				f.pass(time.Second)
				f.expectLow("a", "low false closed true")
				if pods := value(t, f.reg, "windlass_node_filler_pods", ""); pods != 0 {
					t.Errorf("%v pods are filler", pods)
				}
			})
		})
	}
}

func TestAPodIsKeptOffReservedCoresAndNeverFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFilled(t, 8)
		defer func() { _ = f.stop() }()
		f.fillers.Saw(aFiller("a"))
		critical := f.connectAs("LatencyCritical", "c")
		f.group("c").wait(0.3)
		f.pass(1400 * time.Millisecond)
		expectHold(t, f.coLocated, "a", `cores "7" frozen false closed 0`)
		f.pass(400 * time.Millisecond)
		if froze := f.hold("a").froze; froze > 0 {
			t.Errorf("it was frozen %d times", froze)
		}
		critical.hangUp()
		f.pass(time.Second)
		expectHold(t, f.coLocated, "a", `cores "" frozen false closed 1`)
		f.expectLow("a", "low true closed false")
	})
}

func TestAPodWhoseGroupCannotBeOpenedIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFilled(t, 4)
		defer func() { _ = f.stop() }()
		f.fail = &fs.PathError{Op: "open", Path: "/x/cpu.idle", Err: errors.New("permission denied")}
		f.fillers.Saw(aFiller("a"))
		f.fillers.Retry()
		if got := strings.Count(f.log.String(), "permission denied"); got != 1 {
			t.Errorf("it was logged %d times", got)
		}
		f.fail = fmt.Errorf("no group yet: %w", fs.ErrNotExist)
		f.fillers.Retry()
		f.fail = nil
		f.fillers.Retry()
		f.pass(time.Second)
		f.expectLow("a", "low true closed false")
		if strings.Contains(f.log.String(), "no group yet") {
			t.Error("a group that is about to come is logged")
		}
	})
}

func TestARefusalIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFilled(t, 4)
		defer func() { _ = f.stop() }()
		p := aFiller("a")
		p.Namespace = "shop"
		for range 3 {
			f.fillers.Saw(p)
		}
		q := aFiller("b")
		q.Guaranteed = true
		f.fillers.Saw(q)
		log := f.log.String()
		if strings.Count(log, "pod=shop/a") != 1 || strings.Count(log, "pod=batch/b") != 1 || !strings.Contains(log, "Guaranteed") {
			t.Errorf("the log is\n%s", log)
		}
		if len(f.opened) > 0 {
			t.Errorf("opened: %v", f.opened)
		}
	})
}

// TestAPodWithAnAgentIsAnInstance: what an agent says counts, and the pod is taken in once.
func TestAPodWithAnAgentIsAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFilled(t, 4)
		f.keyIsToken = true
		defer func() { _ = f.stop() }()
		f.connectAs("Standard", "uid-a")
		f.fillers.Saw(aFiller("a"))
		if !strings.Contains(f.log.String(), errTaken.Error()) {
			t.Errorf("the log is\n%s", f.log.String())
		}
		for range 3 {
			f.fillers.Retry()
		}
		if f.opened["a"] > 0 {
			t.Errorf("the agent's group was opened beside it %d times, which lifts it", f.opened["a"])
		}
		if _, closed, _ := f.group("uid-a").state(); closed {
			t.Error("the agent's group was closed")
		}
		// The other way round, the agent takes the place of the pod.
		f.fillers.Saw(aFiller("b"))
		f.connectAs("Standard", "uid-b")
		f.expectLow("b", "low false closed true")
		f.fillers.Lost("uid-b")
		if _, closed, _ := f.group("uid-b").state(); closed {
			t.Error("the agent's group was closed")
		}
	})
}

func TestWorkOfPodsIsCountedByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFilled(t, 4)
		defer func() { _ = f.stop() }()
		f.fillers.Saw(aFiller("a"))
		f.group("a").spare()
		f.group("a").compute(true)
		f.pass(time.Second)
		const series, label = "windlass_node_batch_cpu_seconds_total", "batch"
		if got := value(t, f.reg, series, label); got < 0.8 || got > 1 {
			t.Errorf("it used %v s in 1 s", got)
		}
		f.fillers.Lost("uid-a")
		if got := value(t, f.reg, series, label); got != -1 {
			t.Errorf("%v s are left of it", got)
		}
	})
}

// TestPodsAreWhatTheyAskInWhateverOrderTheyChange compares the groups with the decision.
func TestPodsAreWhatTheyAskInWhateverOrderTheyChange(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 48))
			f := newFilled(t, 4)
			pods := map[string]Pod{}
			for range 200 {
				p := aFiller(fmt.Sprint("p", r.IntN(5)))
				p.Class = []string{"", "Batch", "Batch", "Standard"}[r.IntN(4)]
				p.Guaranteed = r.IntN(6) == 0
				p.Runs = r.IntN(2) == 0
				if r.IntN(5) == 0 {
					f.fillers.Lost(p.UID)
					delete(pods, p.Name)
				} else {
					f.fillers.Saw(p)
					pods[p.Name] = p
				}
				f.pass(time.Duration(r.IntN(300)) * time.Millisecond)
				for name := range f.opened {
					is, _ := FillerOf(pods[name], []string{"batch"})
					if want := fmt.Sprintf("low %v closed %v", is, !is); f.low(name) != want {
						t.Fatalf("seed %d: %s is %s, want %s", seed, name, f.low(name), want)
					}
				}
			}
			if err := f.stop(); err != nil {
				t.Error(err)
			}
			for name := range f.opened {
				f.expectLow(name, "low false closed true")
			}
		})
	}
}

func TestAPodIsOfTheClassBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFilled(t, 4)
		defer func() { _ = f.stop() }()
		f.fillers.Saw(aFiller("a"))
		f.pass(time.Second)
		if got := value(t, f.reg, "windlass_node_instances", "low"+callorder.Batch.String()); got != 1 {
			if got = value(t, f.reg, "windlass_node_instances", callorder.Batch.String()+"low"); got != 1 {
				t.Errorf("%v instances of class Batch are low", got)
			}
		}
	})
}
