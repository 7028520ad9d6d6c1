package health

import (
	"time"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

var refusalReasons = map[invocation.RefusalReason]controlwire.Refusal_Reason{
	invocation.RefusedQueueFull:       controlwire.Refusal_REASON_QUEUE_FULL,
	invocation.RefusedUnknownFunction: controlwire.Refusal_REASON_UNKNOWN_FUNCTION,
	invocation.RefusedCannotStart:     controlwire.Refusal_REASON_CANNOT_START,
	invocation.RefusedNotOwner:        controlwire.Refusal_REASON_NOT_OWNER,
	invocation.RefusedNoCapacity:      controlwire.Refusal_REASON_NO_CAPACITY,
	invocation.RefusedRate:            controlwire.Refusal_REASON_RATE_LIMITED,
	invocation.RefusedConcurrency:     controlwire.Refusal_REASON_CONCURRENCY_LIMITED,
	invocation.RefusedWait:            controlwire.Refusal_REASON_WAIT_TOO_LONG,
}

// RefusalToWire converts the refusal of a ticket for a message. uid is that of the ticket's unit.
func RefusalToWire(id invocation.ID, uid string, r invocation.Refusal) *controlwire.Refusal {
	return &controlwire.Refusal{
		InvocationId: id[:], FunctionUid: uid, Reason: refusalReasons[r.Reason], Detail: r.Detail, RetryAfterNs: int64(r.RetryAfter), Admitted: r.Admitted,
	}
}

// RefusalFromWire reads the refusal of a ticket. For a reason that is not known the client may try
// again, as for lack of room.
func RefusalFromWire(wire *controlwire.Refusal) invocation.Refusal {
	r := invocation.Refusal{
		Reason: invocation.RefusedNoCapacity, Detail: wire.GetDetail(), RetryAfter: time.Duration(wire.GetRetryAfterNs()), Admitted: wire.GetAdmitted(),
	}
	for reason, number := range refusalReasons {
		if number == wire.GetReason() {
			r.Reason = reason
		}
	}
	return r
}
