package coordinator_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// A scheduler that is alone claims all slots, in one transaction after the other, each of which
// is refused if somebody else was faster.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	store := coordinator.NewStore()
	core := coordinator.New(coordinator.Config{
		Self: ownership.Member{ID: "scheduler-0", Addr: "10.0.0.1:9443"}, TTL: 5 * time.Second,
	}, nil, nil)
	core.Leased(now, store.Grant(now, 5*time.Second))
	core.Listed(now, store.List())
	transactions := 0
	for {
		txn, ok := core.Next(now)
		if !ok {
			break
		}
		core.Answered(now, txn, store.Commit(txn))
		transactions++
	}
	fmt.Printf("%d of %d slots in %d transactions\n", core.Holds(), ownership.Slots, transactions)
	owner, _ := core.View().Owner(0)
	fmt.Println("slot 0:", owner.ID, "since revision", owner.Epoch)
	// Output:
	// 1024 of 1024 slots in 10 transactions
	// slot 0: scheduler-0 since revision 3
}
