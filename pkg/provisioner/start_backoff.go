package provisioner

import (
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Backoff of a function whose instances do not start.
const (
	firstBackoff = time.Second
	maxBackoff   = 30 * time.Second
)

// StartBackoff decides whether a function may be given more instances, from how
// its last ones started. The zero value allows everything: it is that of a
// function of which an instance has started since.
type StartBackoff struct {
	failures  int
	notBefore time.Time
	last      StartFailure
}

// StartFailure is why an instance did not start.
type StartFailure struct {
	// Code is one of the condition reasons of a Function.
	Code string
	// Reason is for a person to read, LogTail the last lines of its log.
	Reason  string
	LogTail []string
	// At is when it was noticed, and RetryAt when the next instance is tried.
	At, RetryAt time.Time
	// InARow is how many instances did not start since one did.
	InARow int
}

// nodeTries is how often a function may have bad luck with nodes before that
// counts as its own failure.
const nodeTries = 3

// Transient says that another node may well do: it was the node that failed, and
// not often enough to tell callers.
func (f StartFailure) Transient() bool {
	return (f.Code == v1alpha1.ReasonNodeLost || f.Code == v1alpha1.ReasonNodeRefused) && f.InARow < nodeTries
}

// FromCluster says that it has nothing to do with the function: the cluster could not be
// asked, or the room was taken already. It is not held against the function, and no
// caller hears of it.
func (f StartFailure) FromCluster() bool {
	return f.Code == v1alpha1.ReasonClusterUnavailable || f.Code == v1alpha1.ReasonNodeFull
}

// String is the reason and the last log lines, but for those that say the reason again,
// or that there are none where one would look for them.
func (f StartFailure) String() string {
	if len(f.LogTail) == 0 {
		switch f.Code {
		case v1alpha1.ReasonStartFailed, v1alpha1.ReasonStartTimeout, v1alpha1.ReasonFunctionExited, "":
			return f.Reason + "; it wrote no log"
		}
		return f.Reason
	}
	unsaid := slices.DeleteFunc(slices.Clone(f.LogTail), func(line string) bool {
		return f.Reason != "" && strings.Contains(line, f.Reason)
	})
	if len(unsaid) == 0 {
		return f.Reason
	}
	return f.Reason + "; its last log lines:\n" + strings.Join(unsaid, "\n")
}

// Failed says that an instance did not start. If that is blameless, the next one is
// tried after the shortest backoff, however often it happens.
func (g *StartBackoff) Failed(now time.Time, why StartFailure) {
	if why.FromCluster() {
		g.notBefore = now.Add(firstBackoff)
		return
	}
	backoff := min(maxBackoff, firstBackoff<<min(g.failures, 10))
	g.failures++
	g.notBefore = now.Add(backoff)
	g.last = why
	g.last.At, g.last.RetryAt, g.last.InARow = now, g.notBefore, g.failures
}

// Allowed is how many of want instances may be ordered now: none during the
// backoff; then all, or one as a probe until one has started, if the last one's
// failure was the function's.
func (g StartBackoff) Allowed(now time.Time, want, creating int) int {
	switch {
	case now.Before(g.notBefore):
		return 0
	case g.failures == 0:
		return want
	case creating > 0:
		return 0
	}
	return min(1, want)
}

// Failing returns why the last instance did not start and when the next is
// tried, unless all is well.
func (g StartBackoff) Failing() (why StartFailure, retryAt time.Time, failing bool) {
	return g.last, g.notBefore, g.failures > 0
}
