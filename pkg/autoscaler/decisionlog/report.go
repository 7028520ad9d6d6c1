package decisionlog

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// Report has a scheduler's recent decisions on a function.
type Report struct {
	// Namespace and Name are the function's.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Revision is the reported revision, as in Function.Revision; empty if the function has
	// none yet.
	Revision string `json:"revision,omitempty"`
	// Revisions is how many the function has here, if it has several.
	Revisions int `json:"revisions,omitempty"`
	// Scheduler names who tells, and is empty if there is only one.
	Scheduler string `json:"scheduler,omitempty"`
	// Served says that this scheduler decides on the function. If not, Owner names the
	// scheduler that does, as far as known, and the rest is empty.
	Served bool   `json:"served"`
	Owner  string `json:"owner,omitempty"`
	// Decider is the name of the algorithm.
	Decider string `json:"decider,omitempty"`
	// ServedSince is when this scheduler took the function over.
	ServedSince time.Time `json:"servedSince,omitzero"`
	// Calls is the number of calls since then, and Instances the present number.
	Calls     uint64 `json:"calls"`
	Instances int    `json:"instances"`
	// Problem is why instances do not start, as a condition reason of the Function; empty if
	// they do. It contains no output of the function.
	Problem string `json:"problem,omitempty"`
	// LastFailure is the last failure of an instance of this revision; nil if none failed
	// since ServedSince.
	LastFailure *Failure `json:"lastFailure,omitempty"`
	// LastCoreWait is the last long wait of a call for a core of its node; nil if there was none
	// since ServedSince.
	LastCoreWait *CoreWait `json:"lastCoreWait,omitempty"`
	// Load is the present load; nil if the request was for decisions only.
	Load *Load `json:"load,omitempty"`
	// Decisions are the last ones, oldest first.
	Decisions []ReportEntry `json:"decisions"`
}

// Load is what a function's calls and instances do at a moment.
type Load struct {
	// Creating instances cannot be called yet, Busy ones run at least one call, and Idle
	// ones none.
	Creating int `json:"creating"`
	Busy     int `json:"busy"`
	Idle     int `json:"idle"`
	// Waiting calls have no instance yet.
	Waiting int `json:"waiting"`
	// Means of the last executions and starts, in seconds; 0 if not known.
	MeanExecution float64 `json:"meanExecutionSeconds"`
	MeanStart     float64 `json:"meanStartSeconds"`
}

// CoreWait says how long a call waited for a core of its node, as its instance said last. Instances
// say so when a wait gets long, and each time it has doubled.
type CoreWait struct {
	At time.Time `json:"at"`
	// Instance is its CID.
	Instance string `json:"instance"`
	Node     string `json:"node"`
	// Waited is a lower bound of the wait, in seconds.
	Waited float64 `json:"waitedSeconds"`
}

func (w CoreWait) String() string {
	waited := time.Duration(w.Waited * float64(time.Second))
	return fmt.Sprintf("a call waited %s for a core of node %s (instance %s)", autoscaler.HumanTime(waited), w.Node, w.Instance)
}

// Failure says how an instance failed to start, or was lost.
type Failure struct {
	At time.Time `json:"at"`
	// Code is a condition reason of the Function.
	Code string `json:"code"`
	// Detail has more, with the exit status and the last log lines as far as known, in at most
	// 4 KiB. It is empty where people other than the function's owner could read it.
	Detail string `json:"detail,omitempty"`
}

// Public is the report without the function's output.
func (a Report) Public() Report {
	if a.LastFailure != nil {
		a.LastFailure = &Failure{At: a.LastFailure.At, Code: a.LastFailure.Code}
	}
	return a
}

// ReportEntry is an Entry as a Report shows it.
type ReportEntry struct {
	// Number rises with each entry of the function.
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until"`
	Times  int       `json:"times"`
	// Summary is what was done, and Why the reason, both as text.
	Summary string `json:"what"`
	Why     string `json:"why"`

	Reason    string         `json:"reason"`
	Wanted    int            `json:"wanted"`
	Launched  int            `json:"launched"`
	Cancelled int            `json:"cancelled"`
	Nodes     map[string]int `json:"nodes,omitempty"`
	NoRoom    string         `json:"noRoom,omitempty"`
	Required  int            `json:"required"`
	Inputs    Inputs         `json:"seen"`
}

// Inputs is the snapshot of a decision.
type Inputs struct {
	Waiting  int `json:"waiting"`
	Stale    int `json:"stale"`
	Created  int `json:"created"`
	Busy     int `json:"busy"`
	Creating int `json:"creating"`
	Lost     int `json:"lost"`
	// AwaitingCore of the busy instances have a call that waits for a core of its node.
	AwaitingCore int `json:"awaitingCore,omitempty"`
	// Room is absent if it was unknown.
	Room          *int    `json:"room,omitempty"`
	OldestWait    float64 `json:"oldestWaitSeconds"`
	MeanExecution float64 `json:"meanExecutionSeconds"`
	MeanStart     float64 `json:"meanStartSeconds"`
	// Rate is in calls per second.
	Rate    float64 `json:"rate"`
	Horizon float64 `json:"horizonSeconds"`
	Failing bool    `json:"failing"`
}

// ReportEntries converts entries.
func ReportEntries(entries []Entry) []ReportEntry {
	reported := make([]ReportEntry, len(entries))
	for i, e := range entries {
		reported[i] = ReportEntry{
			Number: e.Number, At: e.At, Until: e.Until, Times: e.Times, Summary: e.Summary(), Why: e.Explain(),
			Reason: string(e.Decision.Why), Wanted: e.Outcome.Wanted, Launched: e.Outcome.Launched(),
			Cancelled: e.Outcome.Cancelled, NoRoom: e.Outcome.NoRoom, Required: e.Decision.Required,
			Inputs: inputs(e.Snapshot, e.Decision),
		}
		for _, p := range e.Outcome.Placed {
			if reported[i].Nodes == nil {
				reported[i].Nodes = make(map[string]int, len(e.Outcome.Placed))
			}
			reported[i].Nodes[p.Node] = p.Instances
		}
	}
	return reported
}

func inputs(s autoscaler.Snapshot, d autoscaler.Decision) Inputs {
	v := Inputs{
		Waiting: s.Waiting(), Stale: s.Stale, Created: s.Created, Busy: s.Busy, Creating: s.Creating, Lost: s.Lost, AwaitingCore: s.AwaitingCore,
		OldestWait: s.OldestWait.Seconds(), MeanExecution: s.MeanExecution.Seconds(), MeanStart: s.MeanStart.Seconds(),
		Rate: d.Rate, Horizon: d.Horizon.Seconds(), Failing: s.Failing,
	}
	if s.Room >= 0 {
		v.Room = &s.Room
	}
	return v
}

// Last is the last decision; false if there is none.
func (a *Report) Last() (ReportEntry, bool) {
	if len(a.Decisions) == 0 {
		return ReportEntry{}, false
	}
	return a.Decisions[len(a.Decisions)-1], true
}

// Subject says which revision is reported, and by whom: revision 00007 of 2, by the scheduler scheduler-0.
func (a *Report) Subject() string {
	text := "revision " + a.Revision
	if a.Revisions > 1 {
		text += fmt.Sprintf(" of %d", a.Revisions)
	}
	if a.Scheduler != "" {
		text += ", by the scheduler " + a.Scheduler
	}
	return text
}

// NoDecisions says why the report has no decisions. clock formats a time for the reader.
func (a *Report) NoDecisions(clock func(time.Time) string) string {
	who := "Windlass"
	if a.Scheduler != "" {
		who = "the scheduler " + a.Scheduler
	}
	since := ""
	if !a.ServedSince.IsZero() {
		since = fmt.Sprintf(" since %s took it over at %s", who, clock(a.ServedSince))
	}
	if a.Calls == 0 {
		return "no decisions yet: the function has not been called" + since
	}
	return fmt.Sprintf("no decisions yet: no change was needed%s; %s, %s",
		since, count(int(a.Calls), "call", "calls"), count(a.Instances, "instance", "instances"))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// LatestReport has a scheduler's latest decisions on all functions.
type LatestReport struct {
	// Scheduler names the reporting scheduler; empty if it is the only one.
	Scheduler string `json:"scheduler,omitempty"`
	// Functions are those with recent decisions, the latest first, each with the last of them
	// that changed the number of instances, or else the last one.
	Functions []Report `json:"functions"`
	// Broken are the functions that cannot run, because they have no instance and their last
	// one did not start, by name; at most as many as Functions.
	Broken []Broken `json:"broken,omitempty"`
	// More is the number of functions beyond the limit, which are left out.
	More int `json:"more,omitempty"`
}

// Broken is a revision of a function that cannot run, and why, as a condition reason of the
// Function.
type Broken struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Revision  string `json:"revision,omitempty"`
	Reason    string `json:"reason"`
}
