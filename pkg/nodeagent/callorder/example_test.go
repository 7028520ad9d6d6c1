package callorder_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// A short call takes the core of a long one, which goes on in what is left of it.
func Example() {
	params := callorder.DefaultParams(1)
	core, err := callorder.New(params)
	if err != nil {
		panic(err)
	}
	show := func(now time.Duration, e callorder.Event) {
		for _, effect := range core.Step(now, e) {
			fmt.Printf("%5s %+v\n", now, effect)
		}
	}
	const report, search = 1, 2
	show(0, callorder.Joined{Instance: report, Namespace: "shop", Function: "report"})
	show(0, callorder.Joined{Instance: search, Namespace: "shop", Function: "search"})
	// One call of each shows what their functions need.
	show(0, callorder.Asked{Instance: report, Ask: 1})
	show(0, callorder.Ended{Instance: report, Usage: 2 * time.Second})
	show(0, callorder.Asked{Instance: search, Ask: 1})
	show(0, callorder.Ended{Instance: search, Usage: 5 * time.Millisecond})

	show(time.Second, callorder.ModeChanged{Busy: true})
	show(time.Second, callorder.Asked{Instance: report, Ask: 2, Usage: 2 * time.Second})
	show(2*time.Second, callorder.Sampled{Instance: report, Usage: 3 * time.Second})
	show(2*time.Second, callorder.Asked{Instance: search, Ask: 2, Usage: 5 * time.Millisecond})
	show(3*time.Second, callorder.Ended{Instance: search, Usage: 10 * time.Millisecond})
	// Output:
	//    0s {Instance:1 Ask:1 Waited:0s}
	//    0s {Instance:2 Ask:1 Waited:0s}
	//    1s {Instance:1 Ask:2 Waited:0s}
	//    2s {Instance:1 Low:true Why:preempted}
	//    2s {Instance:2 Ask:2 Waited:0s}
	//    3s {Instance:1 Low:false Why:ticket}
}
