package invocation

import "time"

// Record is a gateway's record of an invocation that has ended.
type Record struct {
	ID       ID          `json:"invocation"`
	Function FunctionKey `json:"function"`
	// Revision is the name of the FunctionRevision that it belonged to; empty if the
	// function has none.
	Revision string `json:"revision,omitempty"`
	// Trace is the id of its trace; empty if it belongs to none that is known.
	Trace string `json:"trace,omitempty"`
	// CID is the instance that had it last; empty if none had.
	CID CID `json:"cid,omitempty"`
	// Attempt counts the instances that had it.
	Attempt int `json:"attempt,omitempty"`
	// Code is the status that the client was sent, 499 if it left before.
	Code     int      `json:"code"`
	Executed Executed `json:"executed"`
	// Reason is why Windlass answered instead of the function, or why the answer broke off;
	// otherwise empty.
	Reason string `json:"reason,omitempty"`
	// Broken says that the answer broke off after its head, which had the Code.
	Broken bool `json:"broken,omitempty"`
	// Cold says that it was the first of its instance.
	Cold bool `json:"cold,omitempty"`
	// Received is when it came, and Claimed when the instance that had it last took
	// it; zero if none did.
	Received time.Time `json:"received"`
	Claimed  time.Time `json:"claimed,omitzero"`
	Ended    time.Time `json:"ended"`
	// Phases are what its time was spent on, in order.
	Phases []PhaseTime `json:"phases"`
}

// PhaseTime is how long a phase of an invocation took.
type PhaseTime struct {
	Phase string        `json:"phase"`
	Took  time.Duration `json:"tookNs"`
}

// Findings are everything that could be found about an invocation.
type Findings struct {
	// Record is nil if no gateway has one.
	Record *Record `json:"record,omitempty"`
	// Node is where the instance that had it last runs; empty if that is not known, as of one
	// that is gone.
	Node string `json:"node,omitempty"`
	// Lines are the log lines about it, of Windlass and of its instance.
	Lines []Line `json:"lines,omitempty"`
	// Notes say what is missing or doubtful, and what to do about it.
	Notes []string `json:"notes,omitempty"`
}

// Line is a line of a log.
type Line struct {
	// Source is the writer of the line: a CID or the name of a pod.
	Source string `json:"source"`
	Text   string `json:"text"`
}
