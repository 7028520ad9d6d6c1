package ownership_test

import (
	"fmt"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Everybody finds the owner of a function by its UID. While the owner is silent, everybody
// turns to the same other scheduler.
func ExampleMap_Route() {
	slot := ownership.SlotOf("7f3b8a52-0c5d-4b0e-9f3a-0d5f9e2c1a11", 0)
	var known ownership.Map
	known.SetMembers([]ownership.Member{{ID: "a", Addr: "10.0.0.1:9443"}, {ID: "b", Addr: "10.0.0.2:9443"}, {ID: "c", Addr: "10.0.0.3:9443"}})
	known.Update(slot, ownership.Owner{ID: "a", Addr: "10.0.0.1:9443", Epoch: 7})

	nobody := func(string) bool { return false }
	to, provisional, _ := known.Route(slot, nobody)
	fmt.Printf("%s, provisional: %v\n", to.ID, provisional)
	to, provisional, _ = known.Route(slot, func(id string) bool { return id == "a" })
	fmt.Printf("%s, provisional: %v\n", to.ID, provisional)

	// What is older than the last known owner is no news.
	fmt.Println(known.Update(slot, ownership.Owner{ID: "c", Addr: "10.0.0.3:9443", Epoch: 6}))
	// Output:
	// a, provisional: false
	// b, provisional: true
	// false
}
