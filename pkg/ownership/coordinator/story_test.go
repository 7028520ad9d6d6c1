package coordinator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The stories in testdata tell how schedulers share the slots through a store. Each line
// is what happens to one of them, to the store, or "run" and how long; the answer has
// what each holds then. To rewrite the answers: go test -run Stories -rewrite.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata/stories", func(t *testing.T, path string) {
		var w *harness
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "store" {
				w = newHarness(t)
			}
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				line = strings.TrimSpace(line)
				before := w.moved()
				w.happen(strings.Fields(line))
				fmt.Fprintf(&out, "%s: %s\n", line, w.tell(w.moved()-before))
			}
			return out.String()
		})
	})
}

// happen plays what a line says.
func (w *harness) happen(words []string) {
	w.t.Helper()
	who := strings.Join(words[1:], " ")
	reportedOwner := func() *node {
		for _, n := range w.all {
			if n.id == who && !n.ended {
				return n
			}
		}
		w.t.Fatalf("no scheduler %q runs", who)
		return nil
	}
	switch words[0] {
	case "run":
		d, err := time.ParseDuration(who)
		if err != nil {
			w.t.Fatal(err)
		}
		w.run(d)
	case "start":
		w.start(who)
	case "stop":
		w.stop(reportedOwner())
	case "kill":
		reportedOwner().ended = true
	case "cut":
		reportedOwner().cut = true
	case "join":
		reportedOwner().cut = false
	case "store-away":
		w.away = true
	case "store-back":
		w.away = false
	default:
		w.t.Fatalf("unknown: %v", words)
	}
}

// tell says what each scheduler holds, and how many slots have a new owner.
func (w *harness) tell(moved int) string {
	var words []string
	for _, n := range w.all {
		if n.ended {
			continue
		}
		text := fmt.Sprintf("%s has %d", n.id, n.Holds())
		if _, unconfirmed := n.Unconfirmed(w.now); unconfirmed {
			text += " and is unsure"
		}
		words = append(words, text)
	}
	if moved > 0 {
		words = append(words, fmt.Sprintf("%d have a new owner", moved))
	}
	return strings.Join(words, ", ")
}
