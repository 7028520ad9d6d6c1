package decisionlog

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// Account is what a scheduler tells of its decisions on a function.
type Account struct {
	// Namespace and Name are the function's.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Revision is the one of the function that is told of, as Function.Revision has it;
	// empty if there is none yet.
	Revision string `json:"revision,omitempty"`
	// Scheduler names who tells, and is empty if there is only one.
	Scheduler string `json:"scheduler,omitempty"`
	// Served says that it decides on the function. If not, Owner names who does,
	// as far as is known, and the rest is empty.
	Served bool   `json:"served"`
	Owner  string `json:"owner,omitempty"`
	// Decider is the name of the algorithm.
	Decider string `json:"decider,omitempty"`
	// ServedSince is when it began to.
	ServedSince time.Time `json:"servedSince,omitzero"`
	// Calls are those that have come since, and Instances are there.
	Calls     uint64 `json:"calls"`
	Instances int    `json:"instances"`
	// Problem is why instances do not start, in one word, which is a condition reason
	// of the Function; empty if they do. What a function wrote is not told.
	Problem string `json:"problem,omitempty"`
	// LastFailure is how an instance of the function as it is now failed last; nil if
	// none did since it is served here.
	LastFailure *Failure `json:"lastFailure,omitempty"`
	// Load is what goes on now; nil where only decisions are asked for.
	Load *Load `json:"load,omitempty"`
	// Decisions are the last ones, the oldest first.
	Decisions []Told `json:"decisions"`
}

// Load is what goes on in a function at a time. It changes with every call.
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

// Failure is how an instance did not start, or was lost.
type Failure struct {
	At time.Time `json:"at"`
	// Code is a condition reason of the Function.
	Code string `json:"code"`
	// Detail says more, with the exit status and the last log lines as far as they are
	// known, in at most 4 KiB. It is empty where others than the function's owner could
	// read it.
	Detail string `json:"detail,omitempty"`
}

// Public is the account without what a function wrote.
func (a Account) Public() Account {
	if a.LastFailure != nil {
		a.LastFailure = &Failure{At: a.LastFailure.At, Code: a.LastFailure.Code}
	}
	return a
}

// Told is an Entry for whoever is told of it.
type Told struct {
	// Number rises with each decision that is kept of the function.
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until"`
	Times  int       `json:"times"`
	// What was done, and Why, both in words.
	What string `json:"what"`
	Why  string `json:"why"`

	Reason    string         `json:"reason"`
	Wanted    int            `json:"wanted"`
	Ordered   int            `json:"ordered"`
	Withdrawn int            `json:"withdrawn"`
	Nodes     map[string]int `json:"nodes,omitempty"`
	NoRoom    string         `json:"noRoom,omitempty"`
	Required  int            `json:"required"`
	Seen      Seen           `json:"seen"`
}

// Seen is the snapshot that was decided on.
type Seen struct {
	Waiting  int `json:"waiting"`
	Stale    int `json:"stale"`
	Created  int `json:"created"`
	Busy     int `json:"busy"`
	Creating int `json:"creating"`
	Lost     int `json:"lost"`
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

// Tell tells of entries.
func Tell(entries []Entry) []Told {
	told := make([]Told, len(entries))
	for i, e := range entries {
		told[i] = Told{
			Number: e.Number, At: e.At, Until: e.Until, Times: e.Times, What: e.What(), Why: e.Words(),
			Reason: string(e.Decision.Why), Wanted: e.Outcome.Wanted, Ordered: e.Outcome.Ordered(),
			Withdrawn: e.Outcome.Withdrawn, NoRoom: e.Outcome.NoRoom, Required: e.Decision.Required,
			Seen: seen(e.Snapshot, e.Decision),
		}
		for _, p := range e.Outcome.Placed {
			if told[i].Nodes == nil {
				told[i].Nodes = make(map[string]int, len(e.Outcome.Placed))
			}
			told[i].Nodes[p.Node] = p.Instances
		}
	}
	return told
}

func seen(s autoscaler.Snapshot, d autoscaler.Decision) Seen {
	v := Seen{
		Waiting: s.Waiting(), Stale: s.Stale, Created: s.Created, Busy: s.Busy, Creating: s.Creating, Lost: s.Lost,
		OldestWait: s.OldestWait.Seconds(), MeanExecution: s.MeanExecution.Seconds(), MeanStart: s.MeanStart.Seconds(),
		Rate: d.Rate, Horizon: d.Horizon.Seconds(), Failing: s.Failing,
	}
	if s.Room >= 0 {
		v.Room = &s.Room
	}
	return v
}

// Last is the last decision; false if there is none.
func (a *Account) Last() (Told, bool) {
	if len(a.Decisions) == 0 {
		return Told{}, false
	}
	return a.Decisions[len(a.Decisions)-1], true
}

// Silence says why there are no decisions. The clock's reading is for whoever
// shows it.
func (a *Account) Silence(clock func(time.Time) string) string {
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
