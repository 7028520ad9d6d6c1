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

// StartBackoff decides whether to launch more instances of a function, from how its last ones
// started. The zero value allows everything; a successful start resets to it.
type StartBackoff struct {
	failures  int
	notBefore time.Time
	last      StartFailure
	// cluster is the last failure that the cluster caused. Nothing is launched before its RetryAt.
	cluster StartFailure
}

// StartFailure is why an instance did not start.
type StartFailure struct {
	// Code is one of the condition reasons of a Function.
	Code string
	// Reason explains it to people, LogTail has the last lines of the log, and LogEmpty says that
	// the function ran and wrote none.
	Reason   string
	LogTail  []string
	LogEmpty bool
	// At is when the failure was noticed, and RetryAt when the next instance may be launched.
	At, RetryAt time.Time
	// InARow is how many launches in a row did not start; several instances at once are one.
	InARow int
}

// nodeTries is how many failures caused by nodes a function may have before they count as its
// own.
const nodeTries = 3

// Transient reports whether another node may work: the node failed, and not often enough to
// inform callers.
func (f StartFailure) Transient() bool {
	return (f.Code == v1alpha1.ReasonNodeLost || f.Code == v1alpha1.ReasonNodeRefused) && f.InARow < nodeTries
}

// FromCluster reports whether the function has nothing to do with the failure: the cluster did
// not answer, or the room was already taken. Such failures do not count for the function's
// back-off, and callers do not see them.
func (f StartFailure) FromCluster() bool {
	return f.Code == v1alpha1.ReasonClusterUnavailable || f.Code == v1alpha1.ReasonNodeFull
}

// String is the reason and the last log lines, without lines that repeat the reason, or says
// that the log is empty where one might look for more.
func (f StartFailure) String() string {
	if f.LogEmpty {
		switch f.Code {
		case v1alpha1.ReasonStartFailed, v1alpha1.ReasonStartTimeout, v1alpha1.ReasonFunctionExited:
			return f.Reason + "; it wrote no log"
		}
	}
	if len(f.LogTail) == 0 {
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

// Failed records that an instance that was launched at that time did not start. If the function
// is not to blame, the next one may be launched after the shortest back-off, however often that
// happens. Instances that were launched before the last failure mostly have its cause: they give
// its reason, and neither count nor prolong the back-off.
func (g *StartBackoff) Failed(now, launched time.Time, why StartFailure) {
	if why.FromCluster() {
		g.cluster = why
		g.cluster.At, g.cluster.RetryAt = now, now.Add(firstBackoff)
		return
	}
	if g.failures == 0 || launched.After(g.last.At) {
		g.notBefore = now.Add(min(maxBackoff, firstBackoff<<min(g.failures, 10)))
		g.failures++
	}
	g.last = why
	g.last.At, g.last.RetryAt, g.last.InARow = now, g.notBefore, g.failures
}

// Allowed is how many of want instances may be launched now: none during the back-off. After
// it, all, or only one until one has started if the function caused the last failure.
func (g StartBackoff) Allowed(now time.Time, want, creating int) int {
	switch {
	case now.Before(g.notBefore), now.Before(g.cluster.RetryAt):
		return 0
	case g.failures == 0:
		return want
	case creating > 0:
		return 0
	}
	return min(1, want)
}

// Failing returns why the last instance did not start; failing is false after a successful start.
func (g StartBackoff) Failing() (why StartFailure, failing bool) { return g.last, g.failures > 0 }

// unused reports whether all starts have succeeded, or there was none.
func (g *StartBackoff) unused() bool { return g.notBefore.IsZero() && g.cluster.RetryAt.IsZero() }

// RetryAfter is how long no instance may be launched.
func (g StartBackoff) RetryAfter(now time.Time) time.Duration {
	return max(0, g.notBefore.Sub(now), g.cluster.RetryAt.Sub(now))
}

// Unavailable is why the cluster keeps instances from being launched now; zero if it does not.
func (g StartBackoff) Unavailable(now time.Time) (why StartFailure) {
	if now.Before(g.cluster.RetryAt) {
		why = g.cluster
	}
	return why
}
