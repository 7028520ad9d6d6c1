package problems_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// A proxy that knows nothing of Windlass may repeat what was answered with 4xx, 429 and
// 503, and must not repeat what was answered with 502 and 504.
func TestStatusesSayWhatBecameOfTheCall(t *testing.T) {
	var mayHaveRun = map[int]bool{502: true, 504: true}
	for _, kind := range problems.All() {
		if !mayHaveRun[kind.Status] && (kind.Status < 400 || kind.Status > 499) && kind.Status != 503 && kind.Status != 508 {
			t.Errorf("%s has the status %d, which says nothing of whether the function ran", kind.Reason, kind.Status)
		}
		for _, executed := range []invocation.Executed{invocation.ExecutedNo, invocation.ExecutedMaybe} {
			settled := kind.Settled(executed)
			if mayHaveRun[settled.Status] != (settled.Executed() == invocation.ExecutedMaybe) {
				t.Errorf("%s that was %q executed: %d, %q", kind.Reason, executed, settled.Status, settled.Executed())
			}
			if executed == invocation.ExecutedMaybe && settled.Executed() != invocation.ExecutedMaybe {
				t.Errorf("%s says no of what may have run", kind.Reason)
			}
			if executed == invocation.ExecutedNo && settled != kind {
				t.Errorf("%s became %s although it did not run", kind.Reason, settled.Reason)
			}
		}
	}
}

func TestTypesAreComplete(t *testing.T) {
	name, anchor := regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`), regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	seen, last := map[string]bool{}, 0
	for _, kind := range problems.All() {
		if !name.MatchString(kind.Reason) || !anchor.MatchString(kind.Anchor()) || seen[kind.Anchor()] {
			t.Errorf("%s is not the name of one type; its anchor is %s", kind.Reason, kind.Anchor())
		}
		seen[kind.Anchor()] = true
		if kind.Title == "" || strings.HasSuffix(kind.Title, ".") || !strings.HasSuffix(kind.When, ".") || kind.Do == "" {
			t.Errorf("%s: the title is no short sentence, or something is missing", kind.Reason)
		}
		if kind.Status < last {
			t.Errorf("%s stands behind one with the status %d", kind.Reason, last)
		}
		last = kind.Status
		if again, known := problems.Of(kind.Reason); !known || again != kind {
			t.Errorf("%s is not found by its reason", kind.Reason)
		}
	}
	for _, reason := range []invocation.RefusalReason{
		invocation.RefusedQueueFull, invocation.RefusedCannotStart, invocation.RefusedNoCapacity, invocation.RefusedRate, invocation.RefusedConcurrency, invocation.RefusedWait,
	} {
		if kind, known := problems.Of(string(reason)); !known || !kind.Retry() {
			t.Errorf("a scheduler's refusal %s: %+v", reason, kind)
		}
	}
}

func TestURIs(t *testing.T) {
	for reason, want := range map[string]string{
		"NoCapacity":       "https://windlass.dev/problems/no-capacity",
		"NotUTF8":          "https://windlass.dev/problems/not-utf8",
		"NoInstanceInTime": "https://windlass.dev/problems/no-instance-in-time",
	} {
		if kind, _ := problems.Of(reason); kind.URI() != want {
			t.Errorf("%s: %s", reason, kind.URI())
		}
	}
}
