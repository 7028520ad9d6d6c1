package monitor

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// View is what people see. Times are in seconds, rates per second.
type View struct {
	At time.Time `json:"at"`
	// Over is the length of the interval of rates and quantiles; 0 in the first View, which
	// has none.
	Over      float64    `json:"overSeconds"`
	Totals    Totals     `json:"totals"`
	Functions []Function `json:"functions"`
	Nodes     []Node     `json:"nodes"`
	Troubles  []string   `json:"troubles,omitempty"`
}

// Totals are sums over all functions.
type Totals struct {
	Functions int `json:"functions"`
	// Called is how many of them were called in the last minute, as far as its intervals are
	// remembered: the last 60.
	Called int `json:"called"`
	// Broken is how many of them cannot run.
	Broken int `json:"broken"`
	Load
}

// Load has the rates and times of calls.
type Load struct {
	Queued int `json:"queued"`
	// OldestWait is how long the oldest waiting call has waited.
	OldestWait float64   `json:"oldestWaitSeconds"`
	InFlight   int       `json:"inFlight"`
	Instances  Instances `json:"instances"`
	// Rate is the rate of answered calls, Errors that of answers with a status from 500 and of answers
	// of any status that broke off, and Cold that of calls that were the first of their instance, all
	// per second. One with a status from 500 that broke off counts twice.
	Rate   float64 `json:"rate"`
	Errors float64 `json:"errors"`
	Cold   float64 `json:"cold"`
	// P50 and P99 are quantiles of the time of a call. They are 0, and absent for programs, without calls
	// and in Totals of a choice of functions: those of several do not add up.
	P50 float64 `json:"p50Seconds,omitempty"`
	P99 float64 `json:"p99Seconds,omitempty"`
	// Recent are the rates between samples, the last one last, at most 60.
	Recent []float64 `json:"recent"`
}

// Instances are the instances that the schedulers have there.
type Instances struct {
	Creating int `json:"creating"`
	Busy     int `json:"busy"`
	Idle     int `json:"idle"`
	Leaving  int `json:"leaving"`
}

func (i *Instances) set(state string, n int) {
	switch state {
	case "creating":
		i.Creating = n
	case "busy":
		i.Busy = n
	case "idle":
		i.Idle = n
	case "leaving":
		i.Leaving = n
	}
}

// most takes the larger number of each state.
func (i *Instances) most(other Instances) {
	i.Creating = max(i.Creating, other.Creating)
	i.Busy = max(i.Busy, other.Busy)
	i.Idle = max(i.Idle, other.Idle)
	i.Leaving = max(i.Leaving, other.Leaving)
}

func (i *Instances) add(more Instances) {
	i.Creating += more.Creating
	i.Busy += more.Busy
	i.Idle += more.Idle
	i.Leaving += more.Leaving
}

// All counts the instances in all states.
func (i Instances) All() int { return i.Creating + i.Busy + i.Idle + i.Leaving }

// Function is one of them.
type Function struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Broken is why it cannot run, in one word, which is the reason of its condition
	// Ready; empty if it can.
	Broken string `json:"broken,omitempty"`
	// Called says that it was called in the last minute.
	Called bool `json:"called"`
	// Revisions are the function's revisions, oldest first, if it has several.
	Revisions []Revision `json:"revisions,omitempty"`
	Load
	Plan Plan `json:"plan"`
	// Phases are those of its calls in the last ten seconds, and ColdPhases those of all its
	// cold starts; empty without any.
	Phases     []Phase `json:"phases,omitempty"`
	ColdPhases []Phase `json:"coldPhases,omitempty"`
	// Last is the last decision of the last minute that changed the number of instances, or else the
	// last one of that minute; nil without any.
	Last *Decision `json:"last,omitempty"`
}

// Key names the function.
func (f *Function) Key() invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: f.Namespace, Name: f.Name}
}

// Revision is what of a function's load is that of one revision.
type Revision struct {
	// Revision is its number, as in the name of its FunctionRevision.
	Revision string `json:"revision"`
	// Broken is why it cannot run, as in Function.
	Broken    string    `json:"broken,omitempty"`
	Queued    int       `json:"queued"`
	Instances Instances `json:"instances"`
}

// Words say how many instances the revision has, or why it cannot run: 00007:2.
func (r *Revision) Words() string {
	if r.Broken != "" {
		return r.Revision + ":" + r.Broken
	}
	return fmt.Sprintf("%s:%d", r.Revision, r.Instances.All())
}

// Plan has the inputs of the decider; 0 means unknown.
type Plan struct {
	Required      int     `json:"required"`
	ArrivalRate   float64 `json:"arrivalRate"`
	Horizon       float64 `json:"horizonSeconds"`
	MeanExecution float64 `json:"meanExecutionSeconds"`
	MeanStart     float64 `json:"meanStartSeconds"`
	// Launched, Started and Failed are how many instances were, for as long as the
	// scheduler has counted.
	Launched int `json:"launched"`
	Started  int `json:"started"`
	Failed   int `json:"failed"`
}

// Phase is a part of what something took.
type Phase struct {
	Name string `json:"name"`
	// Mean is for one call or start, and Share that of all phases, from 0 to 1.
	Mean  float64 `json:"meanSeconds"`
	Share float64 `json:"share"`
}

// Decision is one in words.
type Decision struct {
	At time.Time `json:"at"`
	// Until is when it was made last, and Times how often.
	Until time.Time `json:"until"`
	Times int       `json:"times"`
	// What was done, and Why.
	What   string `json:"what"`
	Why    string `json:"why"`
	Reason string `json:"reason"`
	// Launched and Cancelled are the numbers of launched and of cancelled instances.
	Launched  int `json:"launched"`
	Cancelled int `json:"cancelled"`
	// Changed says that more or fewer instances were wanted.
	Changed bool `json:"changed"`
}

// NewDecision makes a Decision of a scheduler's entry.
func NewDecision(t decisionlog.ReportEntry) Decision {
	return Decision{
		At: t.At, Until: t.Until, Times: t.Times, What: Printable(t.Summary), Why: Printable(t.Why), Reason: Printable(t.Reason),
		Launched: t.Launched, Cancelled: t.Cancelled, Changed: t.Wanted > 0 || t.Cancelled > 0,
	}
}

// outranks says that people look for it rather than for another one.
func (d *Decision) outranks(other *Decision) bool {
	if changed := d.Launched+d.Cancelled > 0; changed != (other.Launched+other.Cancelled > 0) {
		return changed
	}
	return d.Until.After(other.Until)
}
