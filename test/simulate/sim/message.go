package sim

import (
	"time"

	gatewaycore "github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// The messages are those of the wire, without what no decision depends on.

// What a gateway opens to a scheduler.
type (
	openOffers struct {
		gateway string
		// forwarded says that another scheduler passes its tickets on.
		forwarded bool
	}
	// offer is a ticket on its way to a queue.
	offer struct {
		id     invocation.ID
		fn     *unit
		token  invocation.Token
		waited time.Duration
		remain time.Duration
		// lent says that the call's place stays with the gateway, and again that the call was
		// offered before.
		lent, again bool
	}
	// loanReport says what a gateway did with the loans of a unit's instances.
	loanReport struct {
		fn     *unit
		report gatewaycore.LoanReport
	}
	cancellation struct {
		id invocation.ID
		fn *unit
	}
	refusal struct {
		id     invocation.ID
		reason invocation.RefusalReason
		// admitted says that the scheduler had admitted the call.
		admitted bool
	}
)

// What asks whether a scheduler is there.
type (
	openHeartbeats struct{}
	heartbeat      struct {
		// from is the scheduler that asks, and lacks the room that it asks for.
		from  string
		lacks []capacity.Shortage
	}
	heartbeatReply struct {
		serving bool
		// epoch is the highest that the scheduler knows.
		epoch uint64
		// made is what was made of the room that was asked for, by function.
		made map[string]capacity.Grant
	}
)

// What a program that cannot read etcd opens to a scheduler.
type (
	openSlots struct{}
	askSlots  struct{}
	slots     struct{ known *ownership.Map }
)

// What an instance opens to a gateway: one connection for all of its calls there. The frames are
// those of internal/callwire.
type (
	openCalls struct{}
	// helloFrame says who opens it. If the last connection broke, resume is its secret and seen
	// the highest number of a call by a credit that came there.
	helloFrame struct {
		cid          invocation.CID
		resume, seen int
	}
	welcomeFrame struct{ resume int }
	claimFrame   struct {
		call  int
		id    invocation.ID
		token invocation.Token
	}
	// callFrame is a call, claimed or by a credit.
	callFrame struct {
		call    int
		id      invocation.ID
		attempt int
		remain  time.Duration
	}
	refusedFrame struct{ call int }
	// answerFrame is all of an answer, or says that there is none.
	answerFrame struct {
		call int
		// run names the execution that it comes from; 0 if the call failed, and lost says that
		// it was broken off. tooLate says that it was not begun, because it had waited too long.
		run     int
		lost    bool
		tooLate bool
		exec    time.Duration
		// coreWait is how long it waited for a core before.
		coreWait time.Duration
		// keeps says that the call's place stays with the gateway.
		keeps bool
	}
	releaseFrame struct {
		call            int
		keeps, noCredit bool
	}
	cancelFrame struct{ call int }
	// longWaitFrame says whether a call by a credit waits for a core, and giveUpFrame asks for it.
	longWaitFrame struct {
		call  int
		waits bool
	}
	giveUpFrame struct{ call int }
	// lendFrame and takeBackFrame give credits and take them, returnFrame gives them back.
	lendFrame     struct{ credits int }
	takeBackFrame struct{ credits int }
	returnFrame   struct{ credits int }
	// nodeFrame says whether the instance's node is busy.
	nodeFrame struct{ busy bool }
	// lastFrame says that the instance sends nothing more.
	lastFrame struct{}
)
