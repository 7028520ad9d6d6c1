package catalog

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Catalog holds functions in memory, packed as long as nobody uses them. It may be used by many
// goroutines at a time, also from within the handle of a Watch.
type Catalog struct {
	mu        sync.RWMutex
	functions map[invocation.FunctionKey]*version
	watchers  map[*watcher]struct{}
}

// version is a function as it was put.
type version struct {
	Packed[rollout.Entry]
	uid string
}

var _ Reader = (*Catalog)(nil)

// New makes an empty Catalog.
func New() *Catalog {
	return &Catalog{
		functions: make(map[invocation.FunctionKey]*version),
		watchers:  make(map[*watcher]struct{}),
	}
}

// Put adds a function or replaces the one of the same name. The catalog shares
// e from then on: it must not be changed any more. Pack says what e can be.
func (c *Catalog) Put(e *rollout.Entry) {
	if c.holds(e) {
		return
	}
	fresh, key := &version{uid: e.UID()}, e.Key()
	fresh.pack(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.functions[key] = fresh
	c.notify(key)
}

// holds reports whether this very entry was put last.
func (c *Catalog) holds(e *rollout.Entry) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, known := c.functions[e.Key()]
	return known && (v.kept == e || v.kept == nil && v.open.Load().Value() == e)
}

// Remove removes the function of that name, if it exists.
func (c *Catalog) Remove(key invocation.FunctionKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.functions[key]; !ok {
		return
	}
	delete(c.functions, key)
	c.notify(key)
}

// Get returns the function of that name.
func (c *Catalog) Get(key invocation.FunctionKey) (*rollout.Entry, bool) {
	c.mu.RLock()
	v, ok := c.functions[key]
	c.mu.RUnlock()
	if !ok {
		return nil, false
	}
	return v.Open(), true
}

// List returns all functions in the order of their keys. They are shared; callers must not
// change them. It opens every function, so it is for callers who need all of them at once.
func (c *Catalog) List() []*rollout.Entry {
	c.mu.RLock()
	versions := slices.Collect(maps.Values(c.functions))
	c.mu.RUnlock()
	entries := make([]*rollout.Entry, len(versions))
	for i, v := range versions {
		entries[i] = v.Open()
	}
	slices.SortFunc(entries, func(a, b *rollout.Entry) int { return a.Key().Compare(b.Key()) })
	return entries
}

// Watch hands every function to handle, now and as they change. It runs handle
// on the caller's goroutine, without holding the catalog, and always returns
// nil.
func (c *Catalog) Watch(ctx context.Context, handle func(Event)) error {
	w := c.addWatcher()
	defer c.removeWatcher(w)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		}
		for _, key := range c.takePending(w) {
			for _, event := range c.eventsFor(w, key) {
				if ctx.Err() != nil {
					return nil
				}
				if event.Packed != nil {
					event.Entry = event.Packed.Open()
				}
				handle(event)
			}
		}
	}
}

// watcher is one Watch. The catalog's lock guards it.
type watcher struct {
	// sent has the functions as last sent to the watcher.
	sent map[invocation.FunctionKey]*version
	// pending are the names to look at again. All of them exist or were sent, which bounds
	// their number.
	pending map[invocation.FunctionKey]struct{}
	// wake holds an element if there may be something pending.
	wake chan struct{}
}

func (c *Catalog) addWatcher() *watcher {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &watcher{
		sent:    make(map[invocation.FunctionKey]*version),
		pending: make(map[invocation.FunctionKey]struct{}),
		wake:    make(chan struct{}, 1),
	}
	for key := range c.functions {
		w.pending[key] = struct{}{}
	}
	w.wake <- struct{}{}
	c.watchers[w] = struct{}{}
	return w
}

func (c *Catalog) removeWatcher(w *watcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watchers, w)
}

// notify makes every watcher look at key again. The lock is held.
func (c *Catalog) notify(key invocation.FunctionKey) {
	_, exists := c.functions[key]
	for w := range c.watchers {
		if _, sent := w.sent[key]; !exists && !sent {
			// It came and went unseen.
			delete(w.pending, key)
			continue
		}
		w.pending[key] = struct{}{}
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// takePending empties the set of pending names. Going through all of them before those
// that come up meanwhile keeps a busy function from hiding the others.
func (c *Catalog) takePending(w *watcher) []invocation.FunctionKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(w.pending), invocation.FunctionKey.Compare)
	// One that was cleared would keep the room for all names that were pending at first.
	w.pending = make(map[invocation.FunctionKey]struct{})
	return keys
}

// eventsFor updates what was sent to w about key, and returns the events for it, with functions
// that are packed yet.
func (c *Catalog) eventsFor(w *watcher, key invocation.FunctionKey) []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, now := w.sent[key], c.functions[key]
	var events []Event
	if sent != nil && (now == nil || now.uid != sent.uid) {
		events = append(events, Event{Key: key, UID: sent.uid})
		delete(w.sent, key)
	}
	if now != nil && now != sent {
		events = append(events, Event{Key: key, UID: now.uid, Packed: &now.Packed})
		w.sent[key] = now
	}
	return events
}
