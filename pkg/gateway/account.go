package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// LogCalls says of which calls a line is logged.
type LogCalls string

// What LogCalls may be.
const (
	// LogFailed means calls that Windlass failed or that were broken off, and those
	// that are recorded as traces.
	LogFailed LogCalls = "failed"
	LogAll    LogCalls = "all"
	LogNone   LogCalls = "none"
)

// Validate says what is wrong with it.
func (l LogCalls) Validate() error {
	switch l {
	case LogFailed, LogAll, LogNone:
		return nil
	}
	return fmt.Errorf("--log-calls %q is none of %s, %s and %s", string(l), LogFailed, LogAll, LogNone)
}

// wants tells whether there is a line about a call.
func (l LogCalls) wants(failed, recorded bool) bool {
	return l == LogAll || l == LogFailed && (failed || recorded)
}

// Journal keeps what became of calls. Whoever waits for a call's end waits for it.
type Journal interface {
	Note(account invoke.Account)
}

// maxTries is how many attempts that did not end a call are remembered of it.
const maxTries = 16

// try is an attempt that did not end the call.
type try struct {
	number      int
	cid         invoke.CID
	from, until time.Time
	// ran says that the function may have been handed the call.
	ran bool
	why string
}

// requeued writes down that an attempt did not end the call, which waits again. The
// caller holds the lock.
func (c *call) requeued(t try) {
	c.times.Requeued()
	if len(c.tries) < maxTries {
		c.tries = append(c.tries, t)
	}
}

// account tells of a call that has ended, wherever that is wanted.
func (g *Gateway) account(c *call) {
	failed, recorded := c.unserved(), c.scope.Recorded()
	logged := g.config.LogCalls.wants(failed, recorded)
	if !logged && !recorded && g.deps.Journal == nil {
		return
	}
	t := c.told()
	if logged {
		level := slog.LevelInfo
		if failed {
			level = slog.LevelWarn
		}
		g.deps.Log.LogAttrs(context.Background(), level, "call ended", accountAttrs(t.Account)...)
	}
	if recorded {
		g.deps.Traces.Record(t.trace())
	}
	if g.deps.Journal != nil {
		g.deps.Journal.Note(t.Account)
	}
}

// unserved tells whether Windlass failed a call, or it was broken off.
func (c *call) unserved() bool {
	if c.broken() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason != "" && c.status >= 500
}

// told is all that is known of a call that has ended.
func (c *call) told() told {
	status, said, cold := c.outcome()
	c.mu.Lock()
	defer c.mu.Unlock()
	code, _ := strconv.Atoi(status)
	t := told{
		Account: invoke.Account{
			ID: c.id, Function: c.function.Key(), Trace: c.scope.TraceID(), Code: code, Executed: said, Reason: c.reason,
			Cold: cold, Received: c.times.Received(),
		},
		uid: string(c.function.UID), method: c.request.Method, scope: c.scope, times: c.times, tries: c.tries,
	}
	if c.attempt != nil {
		t.CID, t.Attempt, t.Claimed = c.attempt.cid, c.attempt.number, c.attempt.claimed
	}
	t.Ended = t.Received.Add(c.times.Total())
	t.Stages = make([]invoke.StageTime, 0, timeline.Stages)
	for stage, span := range c.times.All() {
		t.Stages = append(t.Stages, invoke.StageTime{Stage: stage.String(), Took: span.Duration()})
	}
	return t
}

// accountAttrs are what a line of log says of a call: what is not there is left out.
func accountAttrs(a invoke.Account) []slog.Attr {
	attrs := make([]slog.Attr, 0, 16)
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	add("function", a.Function.String())
	add("invocation", a.ID.String())
	add("trace", a.Trace)
	add("cid", string(a.CID))
	attrs = append(attrs, slog.Int("code", a.Code), slog.String("executed", string(a.Executed)))
	add("reason", a.Reason)
	if a.Attempt > 0 {
		attrs = append(attrs, slog.Int("attempt", a.Attempt), slog.Bool("cold", a.Cold), slog.Time("claimed", a.Claimed))
	}
	attrs = append(attrs, slog.Time("received", a.Received), slog.Time("ended", a.Ended))
	for _, s := range a.Stages {
		attrs = append(attrs, slog.Float64(s.Stage+"_ms", float64(s.Took.Microseconds())/1e3))
	}
	return attrs
}
