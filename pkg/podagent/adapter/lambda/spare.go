package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda/lambdaenv"
)

// assignmentPath is where the runtime of a spare instance waits for what it becomes.
const assignmentPath = "/windlass/assignment"

var (
	errNeverWaited = errors.New("the runtime never asked for the assignment of its spare instance: its image must know warm pools, which those made for AWS Lambda alone do not")
	errTooEarly    = errors.New("the runtime of a spare instance asked for an event before the assignment: its image must know warm pools, which those made for AWS Lambda alone do not")
	errAssigned    = errors.New("lambda: the instance is a function's already")
)

var _ adapter.Spare = (*Adapter)(nil)

// desk is where an assignment is fetched, once. Its owner holds a lock.
type desk struct {
	// waiter takes the assignment for the request that waits; nil if none does.
	waiter chan []byte
	// body is the assignment while nobody has fetched it.
	body            []byte
	assigned, taken bool
}

// wait is for a request that asks. What it returns takes the assignment.
func (d *desk) wait() (<-chan []byte, *refusal) {
	if d == nil || d.taken || d.waiter != nil {
		return nil, &refusedAssignment
	}
	d.waiter = make(chan []byte, 1)
	inbox := d.waiter
	d.match()
	return inbox, nil
}

// leave is for a request whose connection ended. What it was given is the next one's:
// nothing of it was sent.
func (d *desk) leave(inbox <-chan []byte) {
	select {
	case body := <-inbox:
		d.body, d.taken = body, false
	default:
	}
	d.waiter = nil
}

func (d *desk) assign(body []byte) error {
	if d == nil || d.assigned {
		return errAssigned
	}
	d.body, d.assigned = body, true
	d.match()
	return nil
}

func (d *desk) match() {
	if d.waiter != nil && d.body != nil {
		d.waiter <- d.body
		d.waiter, d.body, d.taken = nil, nil, true
	}
}

// NewSpare is an Adapter of a spare instance, which Assign makes a function's. It
// serves nothing until Serve is called. It holds bufferBytes as Config says.
func NewSpare(bufferBytes int64) *Adapter {
	a := newAdapter(bufferBytes)
	a.desk, a.asked = &desk{}, make(chan struct{})
	return a
}

// WaitRuntime returns when the runtime asked for its assignment, or with the error
// with which it could not start.
func (a *Adapter) WaitRuntime(ctx context.Context) error {
	select {
	case <-a.asked:
		return nil
	case <-a.ready:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.failed
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", errNeverWaited, context.Cause(ctx))
	}
}

// handover is an assignment as a runtime reads it.
type handover struct {
	Variables []adapter.Variable `json:"variables"`
	Files     []adapter.File     `json:"files"`
}

// Assign makes the instance the function's.
func (a *Adapter) Assign(to adapter.Assignment) error {
	if err := to.Validate(); err != nil {
		return err
	}
	body, err := json.Marshal(handover{append([]adapter.Variable{}, to.Variables...), append([]adapter.File{}, to.Files...)})
	if err != nil {
		return fmt.Errorf("lambda: the assignment: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed != nil {
		return a.failed
	}
	if err := a.desk.assign(body); err != nil {
		return err
	}
	a.arn = lambdaenv.ARN(to.Namespace, to.Function)
	a.machine.concurrency = to.Concurrency
	return nil
}

// unassigned tells whether the runtime does not know its function yet. a.mu is held.
func (a *Adapter) unassigned() bool { return a.desk != nil && !a.desk.taken }

// serveAssignment waits for the assignment, however long that takes.
func (a *Adapter) serveAssignment(w http.ResponseWriter, r *http.Request) {
	inbox, no := a.waitForAssignment()
	if no != nil {
		refuse(w, r, no)
		return
	}
	select {
	case body := <-inbox:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if _, err := w.Write(body); err != nil {
			a.mu.Lock()
			a.fail(fmt.Errorf("handing the assignment to the runtime: %w", err))
			a.mu.Unlock()
		}
	case <-r.Context().Done():
		a.mu.Lock()
		a.desk.leave(inbox)
		a.mu.Unlock()
		endWaiting(w, r)
	}
}

func (a *Adapter) waitForAssignment() (<-chan []byte, *refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	inbox, no := a.desk.wait()
	if no == nil && !a.waits {
		a.waits = true
		close(a.asked)
	}
	return inbox, no
}
