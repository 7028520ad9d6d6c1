package invocation_test

import (
	"fmt"
	"slices"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// CIDs are compared as strings, and the lowest one gets the next call: older instances come
// before younger ones, and those of a scheduler that stands in for the owner come last.
func ExampleTerm_CID() {
	owner := invocation.Term{Epoch: 7}
	standIn := invocation.Term{Epoch: 7, Standby: "2"}
	cids := []invocation.CID{standIn.CID(1), owner.CID(2), owner.CID(1)}
	slices.Sort(cids)
	for _, cid := range cids {
		fmt.Println(cid)
	}
	// Output:
	// 00000007-000001
	// 00000007-000002
	// 00000007-h2-000001
}
