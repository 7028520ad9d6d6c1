package colocate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// watcher carries effects out and says which promise is broken.
type watcher struct {
	params  Params
	core    *Core
	now     time.Duration
	threads map[JobID]int // of all jobs that have not ended
	on      map[JobID]Cores
	frozen  map[JobID]time.Duration
	thawed  map[JobID]time.Duration
	confine Cores
	// probing and resting are since probed and rested.
	probing, resting bool
	probed, rested   time.Duration
	// overdue says that a job was frozen for as long as it may be.
	overdue bool
}

func newWatcher(p Params) (*watcher, error) {
	core, err := New(p)
	return &watcher{
		params: p, core: core, threads: map[JobID]int{}, on: map[JobID]Cores{},
		frozen: map[JobID]time.Duration{}, thawed: map[JobID]time.Duration{},
	}, err
}

func (w *watcher) happen(now time.Duration, e Event) error {
	w.now = now
	switch e := e.(type) {
	case Arrived:
		if _, known := w.threads[e.Job]; !known {
			w.threads[e.Job] = max(1, e.Threads)
		}
	case Ended:
		for _, of := range []map[JobID]time.Duration{w.frozen, w.thawed} {
			delete(of, e.Job)
		}
		delete(w.threads, e.Job)
		delete(w.on, e.Job)
	}
	w.overdue = false
	for _, effect := range w.core.Step(now, e) {
		if err := w.carryOut(effect); err != nil {
			return fmt.Errorf("%T%+v after %T%+v: %w", effect, effect, e, e, err)
		}
	}
	if err := w.check(); err != nil {
		return fmt.Errorf("after %T%+v at %s: %w", e, e, now, err)
	}
	if _, stopped := e.(Stopped); stopped && w.params.Layout == Shared && (len(w.frozen) > 0 || w.core.Reserved() != w.params.Least) {
		return fmt.Errorf("stopped with %d jobs frozen and %d cores reserved", len(w.frozen), w.core.Reserved())
	}
	return nil
}

func (w *watcher) carryOut(e Effect) error {
	switch e := e.(type) {
	case Confine:
		w.confine = e.To
	case Place:
		if w.threads[e.Job] == 0 || e.On.N < 1 || e.On.First < 0 || e.On.First+e.On.N > w.params.Cores {
			return fmt.Errorf("no such job or cores")
		}
		w.on[e.Job] = e.On
	case Freeze:
		if _, frozen := w.frozen[e.Job]; frozen || w.on[e.Job].N == 0 {
			return fmt.Errorf("it does not run")
		}
		if e.Job == 7 && w.params.Layout == Shared {
			return fmt.Errorf("it must not be frozen")
		}
		least := w.params.ThawEvery
		if d := w.core.doubt.probe; d.on || w.probing {
			least = min(least, w.params.JudgeFor/2)
		}
		if since, was := w.thawed[e.Job]; was && w.params.Freeze && w.now-since < least {
			return fmt.Errorf("it was thawed %s ago", w.now-since)
		}
		w.frozen[e.Job] = w.now
	case Thaw:
		if _, frozen := w.frozen[e.Job]; !frozen {
			return fmt.Errorf("it is not frozen")
		}
		if w.params.Freeze && w.now-w.frozen[e.Job] >= w.params.LongestFreeze {
			w.overdue = true // which may end a probe
		}
		delete(w.frozen, e.Job)
		w.thawed[e.Job] = w.now
	}
	return nil
}

func (w *watcher) check() error {
	p, reserved := w.params, w.core.Reserved()
	if reserved < p.Least || reserved > p.Most {
		return fmt.Errorf("%d cores are reserved", reserved)
	}
	if w.core.Frozen() != len(w.frozen) {
		return fmt.Errorf("%d jobs are frozen, and effects froze %d", w.core.Frozen(), len(w.frozen))
	}
	running := 0
	for id, on := range w.on {
		running += w.threads[id]
		_, frozen := w.frozen[id]
		if !frozen && on.First < reserved {
			return fmt.Errorf("job %d runs on %s with %d cores reserved", id, on, reserved)
		}
		if !frozen && p.Layout == Blocks && on.First < w.confine.N {
			return fmt.Errorf("job %d runs on %s beside latency-critical work on %s", id, on, w.confine)
		}
	}
	for id, since := range w.frozen {
		if p.Freeze && w.now-since >= p.LongestFreeze {
			return fmt.Errorf("job %d is frozen for %s", id, w.now-since)
		}
	}
	return errors.Join(w.checkQueue(running, reserved), w.checkDoubt())
}

// checkDoubt checks that a probe and a rest keep back no more than they say, and that neither is over at
// once: so nothing goes to and fro faster.
func (w *watcher) checkDoubt() error {
	p, d, level := w.params, w.core.doubt, w.core.level()
	if d.probe.on && d.probe.phase%2 == 1 && level > d.probe.to || d.rest.on && level > d.rest.ceiling && !w.core.doubt.probe.on {
		return fmt.Errorf("%d cores and jobs are kept back; probe %+v, rest %+v", level, d.probe, d.rest)
	}
	if !w.core.looked {
		w.probing, w.resting = false, false
		return nil
	}
	if d.probe.on != w.probing {
		if w.probing && !w.overdue && w.now-w.probed < p.JudgeFor {
			return fmt.Errorf("a probe took %s", w.now-w.probed)
		}
		w.probing, w.probed = d.probe.on, w.now
	}
	if d.rest.on != w.resting {
		if w.resting && w.now-w.rested < p.Rest/restPart {
			return fmt.Errorf("a rest took %s", w.now-w.rested)
		}
		w.resting, w.rested = d.rest.on, w.now
	}
	return nil
}

func (w *watcher) checkQueue(running, reserved int) error {
	if len(w.on) == len(w.threads) {
		return nil
	}
	if w.params.Layout == Shared {
		if w.params.Threads == 0 || running < w.params.Threads {
			return fmt.Errorf("%d of %d jobs run with %d threads", len(w.on), len(w.threads), running)
		}
		return nil
	}
	usable := min(1, w.params.Cores-w.params.Most)
	if reserved == w.params.Least {
		usable++
	}
	if len(w.on) < usable {
		return fmt.Errorf("a block is empty while %d jobs are queued", len(w.threads)-len(w.on))
	}
	return nil
}

// randomly makes an event out of numbers.
type randomly struct{ looked Looked }

func (r *randomly) event(kind, id, size, share uint8) Event {
	job := JobID(id % 8)
	switch kind % 16 {
	case 0, 1:
		return Arrived{Job: job, Threads: int(size % 5), Expected: time.Duration(share) * time.Second, Length: Length(size % 3), Unstoppable: job == 7}
	case 2:
		return Ended{Job: job}
	case 3, 4:
		return Sampled{Job: job, Usage: time.Duration(size) * time.Duration(share) * time.Millisecond}
	case 5:
		if size < 16 {
			return Stopped{}
		}
	}
	if share == 255 {
		r.looked = Looked{} // something left
		return r.looked
	}
	r.looked.Usage += time.Duration(size) * 2 * time.Millisecond
	r.looked.Waited += time.Duration(share%32) * time.Millisecond
	return r.looked
}

func layouts() map[string]Params {
	byNeed, queue, alwaysTwo := DefaultParams(6), DefaultParams(8), DefaultParams(5)
	byNeed.OnWait = false
	queue.Threads = 4
	alwaysTwo.Least, alwaysTwo.LongestFreeze = 2, 3*time.Second
	return map[string]Params{
		"two cores": DefaultParams(2), "one core": DefaultParams(1), "four cores": DefaultParams(4),
		"by need": byNeed, "queue": queue, "two always": alwaysTwo, "two-state": TwoState(4), "two-state on two": TwoState(2),
	}
}

func TestPromisesHoldInWhateverOrderEventsCome(t *testing.T) {
	for name, p := range layouts() {
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 44))
			w, err := newWatcher(p)
			if err != nil {
				t.Fatal(err)
			}
			var now time.Duration
			var events randomly
			for range 1500 {
				now += time.Duration(r.IntN(200)) * time.Millisecond
				e := events.event(uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()))
				if err := w.happen(now, e); err != nil {
					t.Fatalf("%s, seed %d: %v", name, seed, err)
				}
			}
			// Once nothing is used and nothing waits, all runs, in a time that does not depend on what was.
			for range 10 * 60 * 10 {
				now += look
				if err := w.happen(now, events.looked); err != nil {
					t.Fatalf("%s, seed %d: %v", name, seed, err)
				}
			}
			if p.Layout == Shared && (len(w.frozen) > 0 || w.core.Reserved() > p.Least) {
				t.Errorf("%s, seed %d: %d frozen and %d reserved after ten calm minutes", name, seed, len(w.frozen), w.core.Reserved())
			}
		}
	}
}

func FuzzPromises(f *testing.F) {
	f.Add(uint8(0), []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x00\x01\x02\x03"))
	f.Add(uint8(6), []byte("\x00\x01\x02\x03\x01\x02\x03\x04\x07\xff\xff\x1f\x07\xff\xff\x1f\x02\x01\x00\x00"))
	names := []string{"two cores", "one core", "four cores", "by need", "queue", "two always", "two-state", "two-state on two"}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		w, err := newWatcher(layouts()[names[int(which)%len(names)]])
		if err != nil {
			t.Fatal(err)
		}
		var now time.Duration
		var events randomly
		for ; len(data) >= 6; data = data[6:] {
			now += time.Duration(binary.LittleEndian.Uint16(data[4:])) * time.Millisecond
			if err := w.happen(now, events.event(data[0], data[1], data[2], data[3])); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestTwoStateIsTheReportsMachine compares the parameters with the report's two states, written
// down as the report has them.
func TestTwoStateIsTheReportsMachine(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 45))
		d := newDesk(t, TwoState(4))
		for id := range JobID(3) {
			d.core.Step(0, Arrived{Job: id, Length: Length(id)})
		}
		largeState := false
		for range 500 {
			load := float64(r.IntN(200)) / 100
			d.looks(1, load, r.Float64())
			switch {
			case !largeState && load > 0.60:
				largeState = true
			case largeState && load < 1.30:
				largeState = false
			}
			if load == 0.6 || load == 1.3 {
				largeState = d.core.Reserved() == 2 // the report does not say what becomes of equality
			}
			if (d.core.Reserved() == 2) != largeState || (d.core.Frozen() == 1) != largeState {
				t.Fatalf("seed %d: at a usage of %g, %d cores are reserved and %d jobs frozen; the report's state is large: %t",
					seed, load, d.core.Reserved(), d.core.Frozen(), largeState)
			}
		}
	}
}

func TestTheSameEventsHaveTheSameEffects(t *testing.T) {
	for name, p := range layouts() {
		var runs [2]string
		for i := range runs {
			r := rand.New(rand.NewPCG(7, 46))
			core, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			var events randomly
			for n := range 2000 {
				e := events.event(uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()), uint8(r.Uint32()))
				runs[i] += fmt.Sprint(core.Step(time.Duration(n)*look, e))
			}
		}
		if runs[0] != runs[1] {
			t.Errorf("%s: the same events had other effects", name)
		}
	}
}
