package gateway

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// LeaveGrace makes bodies begin with only so much of their grace left.
func LeaveGrace(left time.Duration) func(*Config) {
	return func(c *Config) { c.bodyWait = waitBudget{spent: bodyGrace - left} }
}

// Entries is the number of calls that wait or run, and Held that of those which are
// held against their namespaces.
func (g *Gateway) Entries() int {
	return len(g.calls.snapshot())
}

// Has reports whether a call of a path below its function waits or runs.
func (g *Gateway) Has(uri string) bool {
	return slices.ContainsFunc(g.calls.snapshot(), func(c *call) bool {
		return c.uri == uri && (c.pool.Load() != nil || c.currentAttempt() != nil)
	})
}

// Answered reports whether the client of a call that has not ended has an answer, or has left.
func (g *Gateway) Answered(uri string) bool {
	return slices.ContainsFunc(g.calls.snapshot(), func(c *call) bool { return c.uri == uri && c.answered() })
}

func (g *Gateway) Held() int {
	g.admitter.mu.Lock()
	defer g.admitter.mu.Unlock()
	return g.admitter.limiter.Held().Calls
}

// HostOwner is the function that has a host, if one has.
func (g *Gateway) HostOwner(host string) (owner invocation.FunctionKey, known bool) {
	owner, known, _ = g.own.owner(host)
	return owner, known
}

// Pools is the number of revisions with a pool.
func (g *Gateway) Pools() int { return len(g.shell.pools.all()) }

// Sweep reports on loans now, and drops pools of revisions that are gone.
func (g *Gateway) Sweep() {
	g.shell.sweep(time.Now())
	g.shell.dropGone()
}

// CountCallsFrom lets all agents' connections number the gateway's calls from n on.
func (g *Gateway) CountCallsFrom(n uint32) {
	for _, c := range g.shell.agents.all() {
		c.mu.Lock()
		c.last = n
		c.mu.Unlock()
	}
}

// LastNumber is the highest number of a call.
const LastNumber = lastNumber

// Hold holds the lock of a call of a path below its function until letGo is called. ended reports whether
// the instance has ended the call's present attempt.
func (g *Gateway) Hold(uri string) (ended func() bool, letGo func()) {
	for _, c := range g.calls.snapshot() {
		if c.uri == uri {
			c.mu.Lock()
			return c.attempt.ended.Load, c.mu.Unlock
		}
	}
	return nil, nil
}
