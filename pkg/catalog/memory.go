package catalog

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// Catalog holds functions in memory. It may be used by many goroutines at a
// time, also from within the handle of a Watch.
type Catalog struct {
	mu        sync.RWMutex
	functions map[invocation.FunctionKey]*rollout.Entry
	watchers  map[*watcher]struct{}
}

var _ Reader = (*Catalog)(nil)

// New makes an empty Catalog.
func New() *Catalog {
	return &Catalog{
		functions: make(map[invocation.FunctionKey]*rollout.Entry),
		watchers:  make(map[*watcher]struct{}),
	}
}

// Put adds a function or replaces the one of the same name. The catalog shares
// e from then on: it must not be changed any more.
func (c *Catalog) Put(e *rollout.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.functions[e.Key()] = e
	c.notify(e.Key())
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
	defer c.mu.RUnlock()
	f, ok := c.functions[key]
	return f, ok
}

// List returns all functions in the order of their keys. They are shared; callers must not
// change them.
func (c *Catalog) List() []*rollout.Entry {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.SortedFunc(maps.Values(c.functions), func(a, b *rollout.Entry) int {
		return a.Key().Compare(b.Key())
	})
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
				handle(event)
			}
		}
	}
}

// watcher is one Watch. The catalog's lock guards it.
type watcher struct {
	// sent has the functions as last sent to the watcher.
	sent map[invocation.FunctionKey]*rollout.Entry
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
		sent:    make(map[invocation.FunctionKey]*rollout.Entry),
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
	clear(w.pending)
	return keys
}

// eventsFor updates what was sent to w about key, and returns the events for it.
func (c *Catalog) eventsFor(w *watcher, key invocation.FunctionKey) []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, now := w.sent[key], c.functions[key]
	var events []Event
	if sent != nil && (now == nil || now.UID() != sent.UID()) {
		events = append(events, Event{Key: key, UID: sent.UID()})
		delete(w.sent, key)
	}
	if now != nil && now != sent {
		events = append(events, Event{Key: key, UID: now.UID(), Entry: now})
		w.sent[key] = now
	}
	return events
}
