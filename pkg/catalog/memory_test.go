package catalog

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func function(name, uid string, generation int64) *rollout.Entry {
	f := &v1alpha1.Function{}
	f.Namespace, f.Name, f.UID, f.Generation = "ns", name, types.UID(uid), generation
	return rollout.Alone(f)
}

func key(name string) invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: "ns", Name: name}
}

// recorder is a watcher whose handle can be held up.
type recorder struct {
	stop   context.CancelFunc
	done   chan error
	gate   chan struct{}
	events []string
}

// observe starts a Watch in the test's bubble. A slow observer handles one
// event for each element of its gate.
func observe(t *testing.T, c *Catalog, slow bool) *recorder {
	ctx, cancel := context.WithCancel(t.Context())
	o := &recorder{stop: cancel, done: make(chan error, 1), gate: make(chan struct{})}
	if !slow {
		close(o.gate)
	}
	go func() {
		o.done <- c.Watch(ctx, func(e Event) {
			<-o.gate
			what := "gone"
			if e.Entry != nil {
				what = fmt.Sprint("generation ", e.Entry.Function.Generation)
			}
			o.events = append(o.events, fmt.Sprintf("%s %s %s", e.Key.Name, e.UID, what))
		})
	}()
	synctest.Wait()
	return o
}

// saw are the events since the last call.
func (o *recorder) saw() []string {
	synctest.Wait()
	events := o.events
	o.events = nil
	return events
}

func (o *recorder) end(t *testing.T) {
	o.stop()
	if err := <-o.done; err != nil {
		t.Errorf("Watch ended with %v", err)
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCatalogHoldsFunctionsByName(t *testing.T) {
	c := New()
	if _, ok := c.Get(key("a")); ok {
		t.Error("an empty catalog has a function")
	}
	other := function("a", "3", 1)
	other.Function.Namespace = "another"
	for _, f := range []*rollout.Entry{function("b", "2", 1), function("a", "1", 1), other, function("b", "2", 2)} {
		c.Put(f)
	}
	var got []string
	for _, f := range c.List() {
		got = append(got, fmt.Sprintf("%s generation %d", f.Key(), f.Function.Generation))
	}
	expect(t, got, "another/a generation 1", "ns/a generation 1", "ns/b generation 2")
	c.Remove(key("a"))
	c.Remove(key("a"))
	if _, ok := c.Get(key("a")); ok {
		t.Error("a removed function is still there")
	}
	if f, ok := c.Get(key("b")); !ok || f.Function.Generation != 2 {
		t.Errorf("got %v %v", f, ok)
	}
}

func TestWatchTellsWhatIsThereAndWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Put(function("b", "2", 1))
		c.Put(function("a", "1", 1))
		o := observe(t, c, false)
		expect(t, o.saw(), "a 1 generation 1", "b 2 generation 1")
		c.Put(function("a", "1", 2))
		expect(t, o.saw(), "a 1 generation 2")
		c.Remove(key("b"))
		expect(t, o.saw(), "b 2 gone")
		c.Remove(key("b"))
		expect(t, o.saw())
		o.end(t)
	})
}

func TestWatchTellsASlowWatcherTheLatestStateOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		o := observe(t, c, true)
		c.Put(function("first", "0", 1))
		synctest.Wait() // The watcher now stands in handle.
		for i := range int64(100) {
			c.Put(function("a", "1", i+1))
			c.Put(function("b", "2", i+1))
		}
		c.Remove(key("b"))
		close(o.gate)
		expect(t, o.saw(), "first 0 generation 1", "a 1 generation 100")
		o.end(t)
	})
}

func TestWatchTellsThatAFunctionGaveWayToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Put(function("a", "old", 1))
		o := observe(t, c, true)
		o.gate <- struct{}{}
		expect(t, o.saw(), "a old generation 1")

		c.Put(function("z", "0", 1))
		synctest.Wait() // The watcher now stands in handle.
		c.Remove(key("a"))
		c.Put(function("a", "between", 1))
		c.Remove(key("a"))
		c.Put(function("a", "new", 1))
		close(o.gate)
		expect(t, o.saw(), "z 0 generation 1", "a old gone", "a new generation 1")
		o.end(t)
	})
}

func TestWatchIsBoundedByTheFunctionsThatExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Put(function("known", "1", 1))
		o := observe(t, c, true)
		for i := range 1000 {
			name := fmt.Sprint("f", i)
			c.Put(function(name, name, 1))
			c.Put(function("known", "1", int64(i)))
			c.Remove(key(name))
		}
		for w := range c.watchers {
			if len(w.pending) != 1 {
				t.Errorf("%d names are pending, want only the one that exists", len(w.pending))
			}
		}
		close(o.gate)
		expect(t, o.saw(), "known 1 generation 1", "known 1 generation 999")
		o.end(t)
	})
}

func TestWatchersAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Put(function("a", "1", 1))
		slow, fast := observe(t, c, true), observe(t, c, false)
		expect(t, fast.saw(), "a 1 generation 1")
		c.Put(function("a", "1", 2))
		expect(t, fast.saw(), "a 1 generation 2")
		expect(t, slow.saw())
		fast.end(t)
		if len(c.watchers) != 1 {
			t.Errorf("%d watchers are left, want 1", len(c.watchers))
		}
		close(slow.gate)
		slow.end(t)
	})
}

func TestWatchEndsBetweenTwoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		c.Put(function("a", "1", 1))
		c.Put(function("b", "2", 1))
		o := observe(t, c, true)
		o.stop()
		close(o.gate)
		expect(t, o.saw(), "a 1 generation 1")
		o.end(t)
	})
}

func TestHandleMayUseTheCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.Put(function("a", "1", 1))
		var last int64
		err := c.Watch(ctx, func(e Event) {
			if last = e.Entry.Function.Generation; last == 3 {
				cancel()
				return
			}
			c.Put(function("a", "1", last+1))
		})
		if err != nil || last != 3 {
			t.Errorf("ended at generation %d with %v", last, err)
		}
	})
}

// Whatever happens at the same time, each watcher ends with the truth, and is
// told of every UID that it is there before it is gone.
func TestWatchersConverge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, names, rounds = 4, 5, 200
		c := New()
		ctx, cancel := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		views := make([]map[string]*rollout.Entry, 3)
		for i := range views {
			view := make(map[string]*rollout.Entry)
			views[i] = view
			watching.Go(func() {
				c.Watch(ctx, func(e Event) {
					known := view[e.Key.Name]
					switch {
					case e.Entry == nil && (known == nil || known.UID() != e.UID):
						t.Errorf("told that %s is gone, knew %v", e.UID, known)
					case e.Entry == nil:
						delete(view, e.Key.Name)
					case known != nil && known.UID() != e.UID:
						t.Errorf("told of %s while %s was there", e.UID, known.UID())
					default:
						view[e.Key.Name] = e.Entry
					}
				})
			})
		}
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range rounds {
					name := fmt.Sprint("f", (i+w)%names)
					c.Put(function(name, fmt.Sprintf("%d-%d", w, i/3), int64(i)))
					if i%3 == w%3 {
						c.Remove(key(name))
					}
				}
			})
		}
		writing.Wait()
		synctest.Wait()
		want := make(map[string]*rollout.Entry)
		for _, f := range c.List() {
			want[f.Key().Name] = f
		}
		for i, view := range views {
			if len(view) != len(want) {
				t.Errorf("watcher %d knows %d functions, want %d", i, len(view), len(want))
			}
			for name, f := range want {
				if view[name] != f {
					t.Errorf("watcher %d has another %s", i, name)
				}
			}
		}
		cancel()
		watching.Wait()
	})
}
