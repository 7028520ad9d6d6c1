package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

// mostFailures is how many failures a load remembers.
const mostFailures = 20

// load is a number of clients that call a function in closed loops.
type load struct{ *loadgen.Load[attempt] }

// loadResult is what a load has seen.
type loadResult struct {
	// OK calls were answered with 200, all others Failed.
	OK, Failed int
	// Failures are the first that failed.
	Failures []attempt
	// Repeated counts answers with an invocation id that another had.
	Repeated int
	// Longest is the longest time that a call took.
	Longest time.Duration
	// Hosts counts answers by host name, if the path has the host as its answer.
	Hosts map[string]int
}

// attempt is a call that has ended.
type attempt struct {
	began time.Time
	took  time.Duration
	// err is set if there was no answer.
	err    error
	answer answer
}

func (a attempt) failed() bool { return a.err != nil || a.answer.status != 200 }

func (a attempt) String() string {
	if a.err != nil {
		return a.began.Format("15:04:05.000") + " " + a.err.Error()
	}
	return a.began.Format("15:04:05.000") + " " + a.answer.String()
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
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	// The spec's own context ends before its cleanup, which may stop the load. That
	// does not break the calls that run.
	l := &load{loadgen.Start(context.WithoutCancel(t.ctx), loadgen.Config[attempt]{
		Clients: clients,
		Next: func(turn loadgen.Turn) func(context.Context) attempt {
			path := fmt.Sprintf("%s%scall=%d-%d", path, separator, turn.Client, turn.N)
			return func(ctx context.Context) attempt {
				began := time.Now()
				a, err := t.tryCall(ctx, function, path)
				return attempt{began, time.Since(began), err, a}
			}
		},
		Rest: func(a attempt) time.Duration {
			if a.failed() {
				return restAfterFailure
			}
			return 0
		},
	})}
	DeferCleanup(func() { l.stop() })
	return l
}

// sofar is what the load has seen until now.
func (l *load) sofar() loadResult {
	r := loadResult{Hosts: map[string]int{}}
	ids := map[string]bool{}
	for _, a := range l.Records() {
		r.Longest = max(r.Longest, a.took)
		if id := a.answer.id(); id != "" {
			if ids[id] {
				r.Repeated++
			}
			ids[id] = true
		}
		if a.failed() {
			r.Failed++
			if len(r.Failures) < mostFailures {
				r.Failures = append(r.Failures, a)
			}
			continue
		}
		r.OK++
		if host := a.answer.host(); host != "" {
			r.Hosts[host]++
		}
	}
	return r
}

// answered is how many calls were answered with 200 until now.
func (l *load) answered() int { return l.sofar().OK }

// stop stops the clients, waits for the calls that run, and returns what was seen.
func (l *load) stop() loadResult {
	l.Stop()
	return l.sofar()
}
