package core

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Agent says whether the agent of an instance is understood.
type Agent int

const (
	// AgentKept is one that is left alone.
	AgentKept Agent = iota
	// AgentOutdated is one that is understood as yet: its instance is replaced when
	// it is its turn.
	AgentOutdated
	// AgentUnsupported is one that cannot be talked to: its instance finishes what
	// it runs and goes.
	AgentUnsupported
)

// renewed lets one instance go whose agent is outdated, if it may. It is asked while
// nothing waits and nothing is on its way, so that one goes after another, and each
// only when what went before was replaced. It returns until when the function may
// rest, which by itself may be until a time, or zero.
func (f *Function) renewed(may bool, until, now time.Time) time.Time {
	oldest := f.instances.outdated()
	if oldest == "" {
		return until
	}
	if may && f.queue.Drain(oldest) {
		f.retired(oldest, string(BecauseOutdated))
		f.do(LetGo{CID: oldest, Why: BecauseOutdated})
		f.do(Renewed{})
	}
	if look := now.Add(RenewLook); until.IsZero() || look.Before(until) {
		return look
	}
	return until
}

// outdated is the oldest instance whose agent is outdated and that was not told to go;
// empty if there is none.
func (s instances) outdated() (oldest invocation.CID) {
	for cid, in := range s {
		if in.agent == AgentOutdated && !in.retired && (oldest == "" || cid < oldest) {
			oldest = cid
		}
	}
	return oldest
}
