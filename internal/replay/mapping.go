package replay

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/workload"
)

// Target is a deployed function that represents functions of a trace.
type Target struct {
	// Function names it in the report, as namespace/name or name.
	Function string
	// UpTo is the longest duration of its duration class; 0 means that the
	// class has no upper bound. Targets with equal UpTo share a class.
	UpTo time.Duration
	// Method of its requests.
	Method string
	// Path is the path and query on the gateway that make the function work
	// for the given duration. It begins with a slash.
	Path func(time.Duration) string
	// Header of its requests; may be nil.
	Header http.Header
	// Body of a request that makes the function work for the given
	// duration; nil means that requests have no body.
	Body func(time.Duration) []byte
}

// request makes the target work for d.
func (t Target) request(gateway string, d time.Duration) loadgen.Request {
	r := loadgen.Request{Method: t.Method, URL: gateway + t.Path(d), Header: t.Header}
	if t.Body != nil {
		r.Body = t.Body(d)
	}
	return r
}

// Mapping maps each function of a trace to a target.
type Mapping struct {
	targets    []Target
	byFunction map[string]int
	shares     []share
}

// share is what a target gets of a trace.
type share struct{ functions, calls int }

// NewMapping gives every function of the trace a target. A function belongs to
// the class with the smallest bound that the median of its durations does not
// exceed. Within a class the functions go, busiest first, to the target that
// has the fewest calls so far. The result depends on the arguments only.
//
// It fails if there is no target, if a target is incomplete, or if no target is
// open upwards and a function is longer than all of them.
func NewMapping(t workload.Trace, targets []Target) (Mapping, error) {
	if err := validateTargets(targets); err != nil {
		return Mapping{}, err
	}
	m := Mapping{targets: slices.Clone(targets), byFunction: make(map[string]int), shares: make([]share, len(targets))}
	for _, f := range tracedFunctions(t) {
		best := -1
		for i := range m.targets {
			if m.targets[i].fits(f.median) && (best < 0 || m.better(i, best)) {
				best = i
			}
		}
		if best < 0 {
			return Mapping{}, fmt.Errorf("replay: function %s of trace %q takes %v, longer than every target's UpTo; add a target with UpTo 0", f.id, t.Name, f.median)
		}
		m.byFunction[f.id] = best
		m.shares[best].functions++
		m.shares[best].calls += f.calls
	}
	return m, nil
}

func validateTargets(targets []Target) error {
	if len(targets) == 0 {
		return errors.New("replay: there is no target; name at least one function to call")
	}
	for i, t := range targets {
		switch {
		case t.Function == "":
			return fmt.Errorf("replay: target %d has no Function", i)
		case t.UpTo < 0:
			return fmt.Errorf("replay: UpTo of target %s is %v; it must be at least 0", t.Function, t.UpTo)
		case t.Method == "":
			return fmt.Errorf("replay: target %s has no Method", t.Function)
		case t.Path == nil || !strings.HasPrefix(t.Path(0), "/"):
			return fmt.Errorf("replay: the Path of target %s must begin with a slash", t.Function)
		}
	}
	return nil
}

func (t Target) fits(d time.Duration) bool { return t.UpTo == 0 || d <= t.UpTo }

// better says whether target i rather than target j gets the next function
// that fits both: the narrower class, then the fewer calls.
func (m Mapping) better(i, j int) bool {
	a, b := m.targets[i].UpTo, m.targets[j].UpTo
	if a != b {
		return b == 0 || a != 0 && a < b
	}
	return m.shares[i].calls < m.shares[j].calls
}

// Target is the target of a function of the trace; false if the trace that the
// mapping was made for has no such function.
func (m Mapping) Target(function string) (Target, bool) {
	i, ok := m.byFunction[function]
	if !ok {
		return Target{}, false
	}
	return m.targets[i], true
}

// Describe returns one line per target with the functions that it represents.
func (m Mapping) Describe() []string {
	var lines []string
	for i, t := range m.targets {
		class := "any duration"
		if t.UpTo > 0 {
			class = "up to " + t.UpTo.String()
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %d functions of the trace, %d calls", t.Function, class, m.shares[i].functions, m.shares[i].calls))
	}
	return lines
}

// tracedFunction is a function of a trace.
type tracedFunction struct {
	id     string
	calls  int
	median time.Duration
}

// tracedFunctions are the functions of a trace, busiest first, then by id.
func tracedFunctions(t workload.Trace) []tracedFunction {
	durations := make(map[string][]time.Duration)
	for _, a := range t.Arrivals {
		durations[a.Function] = append(durations[a.Function], a.Duration)
	}
	var functions []tracedFunction
	for id, d := range durations {
		slices.Sort(d)
		functions = append(functions, tracedFunction{id: id, calls: len(d), median: workload.Quantile(d, .5)})
	}
	slices.SortFunc(functions, func(a, b tracedFunction) int {
		return cmp.Or(cmp.Compare(b.calls, a.calls), cmp.Compare(a.id, b.id))
	})
	return functions
}
