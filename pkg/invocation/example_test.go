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

// An instance on a calm node comes before one on a busy node, and otherwise the first CID.
func ExampleRank() {
	ranks := []invocation.Rank{{NodeBusy: true, CID: "00000007-000001"}, {CID: "00000007-000003"}, {CID: "00000007-000002"}}
	slices.SortFunc(ranks, func(a, b invocation.Rank) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	for _, r := range ranks {
		fmt.Println(r.CID, r.NodeBusy)
	}
	// Output:
	// 00000007-000002 false
	// 00000007-000003 false
	// 00000007-000001 true
}
