package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// player does what instances and gateways do, in any order.
type player struct {
	*harness
	gateway *gateway
	agents  []*agent
	calls   int
}

// settings are what a function may be changed to.
var settings = []func(*v1alpha1.Function){
	minInstances(0), minInstances(1), minInstances(2), maxInstances(1), revision(2),
	func(fn *v1alpha1.Function) { fn.Spec.Scaling.ScaleDown.Policy = v1alpha1.ScaleDownLearned },
	func(fn *v1alpha1.Function) {
		fn.Spec.Scaling.ScaleDown.Policy, fn.Spec.Template.RuntimeRef.Name = v1alpha1.ScaleDownLearned, "python3.13"
	},
	concurrency(2),
}

// play does the step of that number.
func (p *player) play(step int) {
	n := step / playKinds
	name := fmt.Sprint("f", n%4)
	fn := newTestFunction(name)
	f := p.scheduler.shell.lookup(string(fn.UID))
	switch kind := step % playKinds; {
	case kind <= 2:
		p.calls++
		p.gateway.offer(fn, p.calls)
	case kind <= 4:
		p.ticks(1)
		for _, spec := range p.runtime.take() {
			p.agents = append(p.agents, p.ready(spec))
		}
	case kind <= 7:
		p.answer()
	case kind == 8:
		p.after(time.Duration(n) * time.Millisecond)
	case kind == 9:
		p.after(time.Duration(n) * time.Second)
	case kind <= 11:
		p.put(name, settings[n%len(settings)])
	case kind == 12 && n%5 == 0:
		p.catalog.Remove(fn.Key())
	case kind == 12:
		p.ownership.own(n%2 == 0)
	case kind == 13:
		p.gateway.cancel(fn, p.calls)
	case kind == 14 && f != nil:
		p.scheduler.calledEvery(f, 20, func(int) time.Duration { return time.Duration(n%60) * time.Second })
	case kind == 15 && f != nil:
		p.scheduler.learnStart(f, time.Duration(n)*time.Millisecond)
	case kind == 16 && len(p.agents) > 0:
		if a := p.agents[n%len(p.agents)]; n%2 == 0 {
			a.die()
		} else {
			a.obey()
		}
	}
}

const playKinds = 17

// answer lets all instances answer what they were handed.
func (p *player) answer() {
	for _, a := range p.agents {
		for _, said := range a.heard() {
			var id int
			if n, _ := fmt.Sscanf(said, "ticket %d", &id); n == 1 {
				a.pull(1, doneWith(id, time.Second))
			}
		}
	}
}

// What is kept of instances that could make room is what a look at all of them finds,
// whatever happened in between.
func TestTheUsageIndexIsAsIfRebuilt(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			config := defaults()
			config.node = 400
			inHarness(t, config, func(w *harness) {
				p := &player{harness: w, gateway: w.gateway("g:1")}
				for n := range 4 {
					p.put(fmt.Sprint("f", n))
				}
				for n := range 80 {
					step := random.IntN(playKinds * 500)
					p.play(step)
					if diff := w.usageDiff(); diff != "" {
						t.Fatalf("after step %d, of kind %d (-made again +kept):\n%s", n, step%playKinds, diff)
					}
				}
			})
		})
	}
}

// The time changes what may go, though nothing else has changed.
func TestTheUsageIndexFollowsTheTime(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", func(fn *v1alpha1.Function) {
			// The clock of the test begins at midnight.
			fn.Spec.Scaling.Windows = []v1alpha1.ScalingWindow{{Start: "0 0 * * *", Duration: v1alpha1.Duration{Duration: 3 * time.Second}, TimeZone: "UTC", MinInstances: 1}}
		})
		g := w.gateway("g:1")
		g.offer(fn, 1)
		w.ready(w.started(fn, 1)[0]).pull(1, doneWith(1, time.Second))
		w.after(time.Millisecond)
		w.expectReconciled()
		if n := w.evictable(); n != 0 {
			t.Errorf("%d may go, and it is the one of the window", n)
		}
		w.after(3 * time.Second)
		w.expectReconciled()
		if n := w.evictable(); n != 1 {
			t.Errorf("%d may go, want the one that no window asks for any more", n)
		}
	})
}

// evictable is how many instances may be evicted.
func (w *harness) evictable() (n int) {
	for _, line := range w.scheduler.ticker.placer.planner.Lines() {
		if strings.HasPrefix(line, "idle: ") {
			n++
		}
	}
	return n
}

// madeAnew is what a look at all functions finds.
func (w *harness) madeAnew() []string {
	s, usages, planner := w.scheduler, make(map[string]capacity.Usage), capacity.New(capacity.Config{})
	look := func(uid string) { usages[uid] = s.ticker.placer.usage(uid, w.instances.Placed(nil, uid), time.Now()) }
	for _, f := range s.shell.all() {
		look(f.uid)
	}
	for _, key := range w.runtime.Instances() {
		look(key.FunctionUID)
	}
	planner.Update(usages)
	return planner.Lines()
}

// usageDiff compares the roster as it is kept with one that is made again. Run rests
// meanwhile; that it goes on only after this it learns from what it reads, and locks, first.
func (w *harness) usageDiff() string {
	synctest.Wait()
	s := w.scheduler
	defer func() {
		s.shell.slots.stopped.Store(false)
		s.shell.dirty.mu.Lock()
		s.shell.dirty.mu.Unlock() //nolint:staticcheck // it is only to be after
	}()
	s.ticker.placer.handInUsage(time.Now())
	return cmp.Diff(w.madeAnew(), s.ticker.placer.planner.Lines())
}
