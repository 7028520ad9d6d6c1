package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// mostFailures is how many failures a load remembers.
const mostFailures = 20

// load is a number of clients that call a function in closed loops.
type load struct {
	tenant   *tenant
	function string
	cancel   context.CancelFunc
	clients  sync.WaitGroup

	mu     sync.Mutex
	result loadResult
	ids    map[string]bool
}

// loadResult is what a load has seen.
type loadResult struct {
	// OK calls were answered with 200, all others Failed.
	OK, Failed int
	// Failures are the first that failed.
	Failures []failure
	// Repeated counts answers with an invocation id that another had.
	Repeated int
	// Longest is the longest time that a call took.
	Longest time.Duration
	// Hosts counts answers by host name, if the path has the host as its answer.
	Hosts map[string]int
}

// failure is a call that was not answered with 200.
type failure struct {
	// at is when it began.
	at time.Time
	// err is set if there was no answer.
	err    error
	answer answer
}

func (f failure) String() string {
	if f.err != nil {
		return f.at.Format("15:04:05.000") + " " + f.err.Error()
	}
	return f.at.Format("15:04:05.000") + " " + f.answer.String()
}

func (r loadResult) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d calls answered, %d failed, %d ids twice, longest %v", r.OK, r.Failed, r.Repeated, r.Longest)
	for _, f := range r.Failures {
		fmt.Fprintf(&out, "\n  %s", f)
	}
	return out.String()
}

// startLoad has clients call a function again and again, with a number of its own
// in the query of each call, until stop is called or the spec ends.
func (t *tenant) startLoad(function, path string, clients int) *load {
	// The spec's own context ends before its cleanup, which may stop the load.
	calls := context.WithoutCancel(t.ctx)
	ctx, cancel := context.WithCancel(calls)
	l := &load{tenant: t, function: function, cancel: cancel, ids: map[string]bool{}, result: loadResult{Hosts: map[string]int{}}}
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	for c := range clients {
		l.clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				began := time.Now()
				// Stopping a load does not break the calls that run.
				a, err := t.tryCall(calls, function, fmt.Sprintf("%s%scall=%d-%d", path, separator, c, i))
				l.count(began, a, err)
				if err != nil || a.status != 200 {
					sleep.For(ctx, 50*time.Millisecond)
				}
			}
		})
	}
	DeferCleanup(func() { l.stop() })
	return l
}

func (l *load) count(began time.Time, a answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.result
	r.Longest = max(r.Longest, time.Since(began))
	if id := a.id(); id != "" {
		if l.ids[id] {
			r.Repeated++
		}
		l.ids[id] = true
	}
	if err == nil && a.status == 200 {
		r.OK++
		if host := a.host(); host != "" {
			r.Hosts[host]++
		}
		return
	}
	r.Failed++
	if len(r.Failures) < mostFailures {
		r.Failures = append(r.Failures, failure{began, err, a})
	}
}

// sofar is what the load has seen until now.
func (l *load) sofar() loadResult {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.result
	r.Failures = append([]failure(nil), r.Failures...)
	r.Hosts = map[string]int{}
	for host, n := range l.result.Hosts {
		r.Hosts[host] = n
	}
	return r
}

// answered is how many calls were answered with 200 until now.
func (l *load) answered() int { return l.sofar().OK }

// stop stops the clients, waits for the calls that run, and returns what was seen.
func (l *load) stop() loadResult {
	l.cancel()
	l.clients.Wait()
	return l.sofar()
}
