package sim

import (
	"time"

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
		// request says that the request rides along.
		request bool
	}
	cancellation struct {
		id invocation.ID
		fn *unit
	}
	refusal struct {
		id     invocation.ID
		reason invocation.RefusalReason
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

// What an instance opens to a gateway.
type (
	openAttempt struct{}
	claim       struct {
		id      invocation.ID
		token   invocation.Token
		cid     invocation.CID
		started bool
	}
	release struct{}
	result  struct {
		// run names the execution that it comes from; 0 if it failed.
		run int
	}
	granted struct {
		attempt int
		remain  time.Duration
	}
	claimRefused struct{}
	cancel       struct{}
)
