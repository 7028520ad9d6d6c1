package timerqueue_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/timerqueue"
)

// Of all functions that sleep, only those are looked at whose time has come.
func Example() {
	noon := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	var timers timerqueue.Queue[string]
	cart, mail, report := &timerqueue.Timer[string]{Owner: "cart"}, &timerqueue.Timer[string]{Owner: "mail"}, &timerqueue.Timer[string]{Owner: "report"}
	timers.Set(cart, noon.Add(2*time.Minute))
	timers.Set(mail, noon.Add(time.Minute))
	timers.Set(report, noon.Add(time.Hour))
	fmt.Println(timers.Due(noon))
	fmt.Println(timers.Due(noon.Add(5 * time.Minute)))
	// Output:
	// []
	// [mail cart]
}
