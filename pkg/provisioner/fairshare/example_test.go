package fairshare_test

import (
	"fmt"

	"github.com/windlass-dev/windlass/pkg/provisioner/fairshare"
)

// There are ten instances to be had. Two namespaces share them alike, though one has many
// functions that want many.
func Example() {
	wants := []fairshare.Want{
		{Namespace: "shop", Function: "cart", N: 50, Cost: 1},
		{Namespace: "shop", Function: "search", N: 50, Cost: 1},
		{Namespace: "mail", Function: "send", N: 50, Cost: 1},
	}
	got := make([]int, len(wants))
	var shares fairshare.Shares
	round := shares.Begin(wants, 10)
	for {
		i, ok := round.Next()
		if !ok {
			break
		}
		got[i]++
		round.Launched(true)
	}
	for i, want := range wants {
		fmt.Printf("%s/%s %d\n", want.Namespace, want.Function, got[i])
	}
	// Output:
	// shop/cart 3
	// shop/search 2
	// mail/send 5
}
