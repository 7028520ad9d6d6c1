package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// StartFailed receives the failed start of an instance from the provisioner. If the function
// has no other instance, not even a starting one, its waiting calls cannot be served.
func (s *Scheduler) StartFailed(key provisioner.Key, why provisioner.StartFailure) {
	if s.pools.spareEnded(key, why) {
		return
	}
	u := s.shell.lookup(key.FunctionUID)
	if u == nil {
		// The failure came after the function was removed.
		s.shell.deps.Instances.Forget(key.FunctionUID)
		return
	}
	s.shell.deps.Log.Warn("an instance did not start", "function", u.readOutline().key.String(), "cid", key.CID, "code", why.Code, "reason", why.Reason)
	s.shell.failStart(u, key, why)
	u.dropInstance(key.CID)
	now := s.shell.deps.Now()
	if !why.FromCluster() {
		u.recordFailure(why, now)
		u.recordEvent(unitEvent{reason: why.Code, message: "an instance did not start: " + why.Reason, warning: true}, now)
	}
	seen := s.shell.deps.Instances.Observe(u.uid)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.byReason.failures.add(why.Code, 1)
	s.shell.stepLocked(u, core.StartFailed{
		Blameless: why.FromCluster(), OthersExist: hasInstances(seen), Transient: seen.Failing && seen.Why.Transient(),
		Refusal: cannotStart(why, seen.RetryAfter),
	})
}

// hasInstances reports whether a function has an instance, or one is starting. One that has lost its stream
// connects again within moments, unless it was stopped for its silence.
func hasInstances(seen provisioner.Observation) bool {
	return seen.Created+seen.Creating+seen.Disconnected-seen.GivenUp > 0
}

func cannotStart(why provisioner.StartFailure, retryAfter time.Duration) invocation.Refusal {
	return invocation.Refusal{
		Reason:     invocation.RefusedCannotStart,
		Detail:     invocation.Excerpt("the function could not be started: " + why.String()),
		RetryAfter: retryAfter,
	}
}

// Owns says whether this scheduler owns a function for all that it knows. A standby does not,
// nor does a scheduler that etcd cannot confirm: the others may only seem silent.
func (s *Scheduler) Owns(uid string) bool {
	if _, unconfirmed := s.shell.deps.Ownership.Unconfirmed(); unconfirmed {
		return false
	}
	u := s.shell.lookup(uid)
	if u == nil {
		return true // it was deleted, or is a warm pool
	}
	term := s.shell.slots.term(u.slot)
	return term != notServed && term.Standby == ""
}

// Gone receives the end of a started instance from the provisioner.
func (s *Scheduler) Gone(key provisioner.Key, lost bool, why provisioner.StartFailure) {
	if s.pools.spareEnded(key, why) {
		return
	}
	u := s.shell.lookup(key.FunctionUID)
	if u == nil {
		return
	}
	s.sessions.notifyEnd(key, why)
	u.dropInstance(key.CID)
	log, level := s.shell.deps.Log.With("function", u.readOutline().key.String(), "cid", key.CID, "lost", lost), slog.LevelInfo
	if lost {
		log, level = log.With("code", why.Code), slog.LevelWarn
		u.recordFailure(why, s.shell.deps.Now())
		inEvent := why
		inEvent.LogTail = lastLines(why.LogTail, eventLogBytes)
		u.recordEvent(unitEvent{reason: why.Code, message: "an instance was lost: " + inEvent.String(), warning: true}, s.shell.deps.Now())
	}
	log.Log(context.Background(), level, "an instance is gone", "reason", why.Reason)
	u.mu.Lock()
	defer u.mu.Unlock()
	if lost {
		u.stats.byReason.losses.add(why.Code, 1)
	}
	s.shell.stepLocked(u, core.InstanceEnded{})
}

// eventLogBytes is how many bytes of a log an Event quotes: the whole Event is at most 1 KiB,
// and a longer one would lose the newest lines.
const eventLogBytes = 600

// lastLines returns the last of lines that have at most that many bytes together, including
// line ends. Of a longer last line it returns the beginning.
func lastLines(lines []string, most int) []string {
	if len(lines) == 0 {
		return nil
	}
	from := len(lines)
	for left := most; from > 0 && len(lines[from-1]) < left; from-- {
		left -= len(lines[from-1]) + 1
	}
	if from == len(lines) {
		return []string{invocation.ExcerptOf(lines[from-1], most)}
	}
	return lines[from:]
}

// notifyEnd informs an agent that its function has ended, which the agent cannot see where
// they are containers. It has moments to answer the running calls before its own container
// ends too.
func (s *sessions) notifyEnd(key provisioner.Key, why provisioner.StartFailure) {
	how := why.Reason
	switch why.Code {
	case v1alpha1.ReasonFunctionExited:
	case v1alpha1.ReasonOutOfMemory:
		how = "the function was killed for the memory that it used"
	default:
		return
	}
	s.shell.streams.sendTo(key, &agentwire.PullReply{Kind: &agentwire.PullReply_Ended{Ended: &agentwire.Ended{How: how, LastLines: why.LogTail}}})
}
