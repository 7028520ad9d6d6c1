package health

import (
	"testing"
	"time"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestEachReasonOfARefusalPassesBothWays(t *testing.T) {
	for number, name := range controlwire.Refusal_Reason_name {
		reason := controlwire.Refusal_Reason(number)
		if reason == controlwire.Refusal_REASON_UNSPECIFIED {
			continue
		}
		r := RefusalFromWire(&controlwire.Refusal{Reason: reason, Detail: "why", RetryAfterNs: int64(time.Second), Admitted: true})
		if r.Detail != "why" || r.RetryAfter != time.Second || !r.Admitted {
			t.Errorf("%s is read as %+v", name, r)
		}
		id := invocation.ID{1}
		if back := RefusalToWire(id, "uid", r); back.GetReason() != reason || back.GetDetail() != r.Detail || back.GetRetryAfterNs() != int64(r.RetryAfter) || [16]byte(back.GetInvocationId()) != id || back.GetFunctionUid() != "uid" || !back.GetAdmitted() {
			t.Errorf("%s is read as %+v, and written as %v", name, r, back)
		}
	}
}

func TestARefusalForAnUnknownReasonIsOneForLackOfRoom(t *testing.T) {
	for _, reason := range []controlwire.Refusal_Reason{controlwire.Refusal_REASON_UNSPECIFIED, 1000} {
		if r := RefusalFromWire(&controlwire.Refusal{Reason: reason}); r.Reason != invocation.RefusedNoCapacity {
			t.Errorf("the reason %d is read as %s", reason, r.Reason)
		}
	}
}
