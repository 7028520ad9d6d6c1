package address_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// A function has a path at the gateways and, if the administrator has set a domain, a host of its
// own, and another one for each tag of its traffic.
func Example() {
	hosts, err := address.NewHosts("fn.example.com", address.DefaultTemplate)
	if err != nil {
		panic(err)
	}
	urls, err := address.NewURLs("https://gateway.example.com", hosts)
	if err != nil {
		panic(err)
	}
	cart := invocation.FunctionKey{Namespace: "shop", Name: "cart"}
	fmt.Println(address.Path(cart))
	fmt.Println(urls.Function(cart))
	fmt.Println(urls.Tag(cart, "next"))
	// Output:
	// /function/cart.shop
	// https://cart--shop.fn.example.com
	// https://next---cart--shop.fn.example.com
}

// Two functions ask for one host: the older one has it.
func ExampleTable() {
	rules := address.Rules{Permits: func(namespace, host string) bool { return true }}
	table := address.NewTable(rules)
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	for i, name := range []string{"new", "old"} {
		claim := address.Claim{Key: invocation.FunctionKey{Namespace: "shop", Name: name}, Created: now.Add(-time.Duration(i) * time.Hour)}
		table.Put(claim, []v1alpha1.Hostname{"shop.example.org"})
	}
	owner, _, _ := table.Owner("shop.example.org")
	fmt.Println(owner)
	// Output:
	// shop/old
}
