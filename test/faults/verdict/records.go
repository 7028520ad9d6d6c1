package verdict

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
)

// Outcome is how a call ended for its caller.
type Outcome int

const (
	// Answered calls got an answer to the end.
	Answered Outcome = iota
	// Broken calls lost their connection to the gateway.
	Broken
	// Unanswered calls were given up by their caller after its patience.
	Unanswered
	// Left are calls whose caller left of its own will.
	Left
)

// Executed is what an answer says of the execution, in the words of the header.
type Executed string

// What an answer may say; an answer may also say nothing.
const (
	No    Executed = "no"
	Maybe Executed = "maybe"
	Yes   Executed = "yes"
)

// Call is what a caller knows of one call. Times are nanoseconds of the machine's
// monotonic clock, which every process reads alike.
type Call struct {
	// Nonce is the caller's own name for the call, which the function
	// answers with.
	Nonce    string
	Function string
	Gateway  string
	Outcome  Outcome
	Status   int
	Executed Executed
	Reason   string
	// Error is why the connection broke, in the words of the caller's HTTP client.
	Error string
	// Invocation is the id that the gateway gave it, as far as it said.
	Invocation string
	// Revision is that of the function which the call went to, as far as its gateway said.
	Revision string
	// Echo is the nonce in a successful answer, and Whole says that the rest
	// of the answer fits the request.
	Echo  string
	Whole bool
	// Repeatable is set for functions that may run twice.
	Repeatable   bool
	Began, Ended int64
}

// Latency is how long the caller waited.
func (c Call) Latency() time.Duration { return time.Duration(c.Ended - c.Began) }

// Succeeded says that the answer is a success.
func (c Call) Succeeded() bool { return c.Outcome == Answered && c.Status >= 200 && c.Status < 300 }

// Run is what the run log knows of one execution.
type Run struct {
	Nonce, Invocation, CID string
	// Began and Ended are as in Call; Ended is 0 if the function did not come
	// to its end.
	Began, Ended int64
}

// RunLog reads what functions write, piece by piece.
type RunLog struct {
	// begun are the executions of earlier pieces, which may end in a later one.
	begun map[execution]bool
}

// execution is what the lines on an execution have in common.
type execution struct{ nonce, invocation, cid string }

// Read reads the lines of the next piece, and returns the executions that began in it.
func (l *RunLog) Read(r io.Reader) ([]Run, error) {
	var runs []Run
	open := make(map[execution]int)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var what string
		var run Run
		var at int64
		if n, err := fmt.Sscan(lines.Text(), &what, &run.Nonce, &run.Invocation, &run.CID, &at); n != 5 {
			return nil, fmt.Errorf("a line of the run log is not one: %q: %w", lines.Text(), err)
		}
		key := execution{run.Nonce, run.Invocation, run.CID}
		i, here := open[key]
		switch strings.ToLower(what) {
		case "began":
			run.Began = at
			open[key] = len(runs)
			runs = append(runs, run)
		case "ended", "cancelled":
			if here {
				runs[i].Ended = at
			} else if !l.begun[key] {
				return nil, fmt.Errorf("an execution ended that had not begun: %q", lines.Text())
			}
		default:
			return nil, fmt.Errorf("a line of the run log is of no kind: %q", lines.Text())
		}
	}
	if l.begun == nil {
		l.begun = make(map[execution]bool)
	}
	for key := range open {
		l.begun[key] = true
	}
	return runs, lines.Err()
}
