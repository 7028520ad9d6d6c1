package gateway

import (
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// links has a link to each scheduler that serves slots.
type links struct {
	config    Config
	deps      Deps
	onRefusal func(id invocation.ID, unit string, r invocation.Refusal)
	// added holds an element if a link has to be started, and forgotten if routes were forgotten.
	added, forgotten chan struct{}

	mu sync.Mutex // guards everything below
	// running says that links are run.
	running bool
	byAddr  map[string]*link
	// unstarted are the links that are not run yet.
	unstarted []*link
	// routes are the addresses of the slots' schedulers at the last look; empty where their tickets
	// may have been lost since.
	routes [ownership.Slots]string
}

func newLinks(config Config, deps Deps, onRefusal func(id invocation.ID, unit string, r invocation.Refusal)) *links {
	return &links{
		config: config, deps: deps, onRefusal: onRefusal,
		added: make(chan struct{}, 1), forgotten: make(chan struct{}, 1), byAddr: make(map[string]*link),
	}
}

// setRunning says whether links are run from now on.
func (ls *links) setRunning(running bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.running = running
}

// takeUnstarted takes the links that have not been started yet.
func (ls *links) takeUnstarted() []*link {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	unstarted := ls.unstarted
	ls.unstarted = nil
	return unstarted
}

// to returns the link to the scheduler that serves a slot, or nil.
func (ls *links) to(slot ownership.Slot) *link {
	owner, _, known := ls.deps.Router.Route(slot)
	if !known {
		return nil
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.running {
		return nil
	}
	l, known := ls.byAddr[owner.Addr]
	if !known {
		l = newLink(ls, owner.Addr)
		ls.byAddr[owner.Addr] = l
		ls.unstarted = append(ls.unstarted, l)
		signal(ls.added)
	}
	return l
}

// drop drops a link that was not used since the given time; false if it was.
func (ls *links) drop(l *link, since time.Time) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.usedAfter(since) {
		return false
	}
	delete(ls.byAddr, l.addr)
	return true
}

// moved returns the slots that another scheduler serves than at the last look.
func (ls *links) moved() (slots [ownership.Slots]bool, some bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for slot := range ls.routes {
		to, _, _ := ls.deps.Router.Route(ownership.Slot(slot))
		slots[slot] = ls.routes[slot] != to.Addr
		ls.routes[slot] = to.Addr
	}
	return slots, slices.Contains(slots[:], true)
}

// forgetRoutes lets the next look at routes find that all slots of a scheduler moved, since tickets
// that were offered to it may have been lost. The shell's own goroutine looks, because an audit
// moves calls.
func (ls *links) forgetRoutes(addr string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for slot, to := range ls.routes {
		if to == addr {
			ls.routes[slot] = ""
		}
	}
	signal(ls.forgotten)
}
