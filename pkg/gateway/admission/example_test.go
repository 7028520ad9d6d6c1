package admission_test

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/admission"
)

// One namespace alone may use seven eighths of a gateway. What is left is for others.
func Example() {
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)
	book := admission.New(admission.Capacity{Calls: 800, Bytes: 1 << 30})
	calls := 0
	for book.Admit(now, "team-a", admission.Limits{}, 0).Reason == admission.Admitted {
		calls++
	}
	fmt.Println("calls of team-a:", calls)
	refused := book.Admit(now, "team-a", admission.Limits{}, 0)
	fmt.Println("it is over its share:", refused.Reason == admission.OverShare)
	let := book.Admit(now, "team-b", admission.Limits{}, 0)
	fmt.Println("team-b is let in:", let.Reason == admission.Admitted)
	// Output:
	// calls of team-a: 700
	// it is over its share: true
	// team-b is let in: true
}
