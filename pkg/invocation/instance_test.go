package invocation_test

import (
	"testing"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestANameTellsItsEpoch(t *testing.T) {
	const epoch = 0x1234567890
	for _, term := range []invocation.Term{{Epoch: epoch}, {Epoch: epoch, Standby: "0123456789ab"}} {
		for _, revision := range []string{"", "00001-", "4f2a-"} {
			cid := invocation.CID(revision) + term.CID(0xabcdef01)
			if got, ok := cid.Epoch(); got != epoch || !ok {
				t.Errorf("the epoch of %s is %x, %v", cid, got, ok)
			}
		}
	}
	for _, other := range []invocation.CID{"", "a", "-", "h1-1", "name-1", "00001-ffffffffffffffff-000001"} {
		if got, ok := other.Epoch(); got != 0 || ok {
			t.Errorf("the epoch of %q is %x, %v", other, got, ok)
		}
	}
}
