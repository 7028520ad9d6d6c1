package core

import (
	"testing"
	"time"
)

// An instance with two places has a call at any time: one ends when the other has begun.
func TestAConnectionThatIsNeverIdleIsRenewed(t *testing.T) {
	s := &script{t: t, core: New(params()), now: time.Unix(1_000_000, 0), byHand: true}
	s.core.conns.renewAfter = 4
	s.on(Begin{}, Opened{1}, Received{1, Welcome{7}}, FunctionReady{}, Received{1, lent('a')}, ConnOpened{1}, Granted{1}, Received{1, lent('b')}, Granted{2})
	s.on(CallEnded{Attempt: 1, Outcome: Complete}, Called{Conn: 1, Call: 2}, CallEnded{Attempt: 2, Outcome: Complete})
	s.done = nil
	s.on(Called{Conn: 1, Call: 4}) // the fourth, with the claims
	s.expect("accept 4 for 1/4", "send 1 pull 0", "start 4")
	// What ends goes to the scheduler, whose next ticket opens another connection.
	s.on(CallEnded{Attempt: 3, Outcome: Complete})
	s.expect("deliver 3", "send 1 pull 1")
	s.on(Received{1, lent('c')})
	s.expect("connect 2 g")
	s.on(ConnOpened{2}, Granted{5})
	s.expect("claim 5 of c", "start 5")
	s.on(CallEnded{Attempt: 5, Outcome: Complete})
	s.expect("deliver 5 keeps", "send 1 pull 0 done c 0s lent g 1")
	// The one before goes when its last call has ended.
	s.pass(time.Second)
	s.done = nil
	s.on(CallEnded{Attempt: 4, Outcome: Complete})
	s.expect("deliver 4", "send 1 pull 1 lent g 1")
	s.pass(settleFor)
	s.expect("disconnect 1")
}

// used is an agent whose only connection has both places, and has carried two claims.
func used(t *testing.T) *script {
	t.Helper()
	s := &script{t: t, core: New(params()), now: time.Unix(1_000_000, 0), byHand: true}
	s.core.conns.renewAfter = 3
	s.on(Begin{}, Opened{1}, Received{1, Welcome{7}}, FunctionReady{}, Received{1, lent('a')}, ConnOpened{1}, Granted{1}, Received{1, lent('b')}, Granted{2})
	s.on(CallEnded{Attempt: 1, Outcome: Complete}, CallEnded{Attempt: 2, Outcome: Complete})
	s.done = nil
	return s
}

func TestIdlePlacesOfARenewedConnectionGoToTheScheduler(t *testing.T) {
	s := used(t)
	s.on(Called{Conn: 1, Call: 2})
	s.expect("accept 3 for 1/2", "takeback 1 1", "send 1 pull 1", "start 3")
	s.on(Called{Conn: 1, Call: 4}) // it has crossed that
	s.expect("decline 1/4")
	s.on(Returned{1, 1}) // and so has this
	s.expect("lend 1 1")
}

// Its places would be with nobody: the next connection would have none before a ticket.
func TestAConnectionIsNotRenewedWhileNoSchedulerAnswers(t *testing.T) {
	s := used(t)
	s.on(Lost{Session: 1})
	s.done = nil
	s.on(Called{Conn: 1, Call: 2}, CallEnded{Attempt: 3, Outcome: Complete})
	s.expect("accept 3 for 1/2", "start 3", "deliver 3 keeps")
	s.pass(minPause)
	s.on(Opened{2}, Received{2, Welcome{7}})
	s.done = nil
	s.on(Called{Conn: 1, Call: 4})
	s.expect("accept 4 for 1/4", "takeback 1 1", "send 2 pull 1", "start 4")
}
