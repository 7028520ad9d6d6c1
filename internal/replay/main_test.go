package replay

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/internal/workload"
)

const ms = time.Millisecond

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// traceOf is a trace of calls of function f that are due at the given times and
// work for 10 ms.
func traceOf(at ...time.Duration) workload.Trace {
	t := workload.Trace{Name: "t"}
	for _, a := range at {
		t.Arrivals = append(t.Arrivals, workload.Arrival{At: a, Function: "f", Duration: 10 * ms})
		t.Length = a
	}
	return t
}

func target(name string, upTo time.Duration) Target {
	return Target{
		Function: name, UpTo: upTo, Method: "POST",
		Path: func(d time.Duration) string { return "/function/" + name + "?work=" + d.String() },
	}
}

func mapped(t *testing.T, trace workload.Trace, targets ...Target) Mapping {
	t.Helper()
	m, err := NewMapping(trace, targets)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
