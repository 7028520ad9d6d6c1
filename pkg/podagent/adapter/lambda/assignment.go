package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// assignmentPath is where the runtime of a spare instance waits for its assignment.
const assignmentPath = "/windlass/v1/assignment"

var (
	errNeverWaited = errors.New("the runtime never asked for the assignment of its spare instance: its image must know warm pools, which those made for AWS Lambda alone do not")
	errTooEarly    = errors.New("the runtime of a spare instance asked for an event before the assignment: its image must know warm pools, which those made for AWS Lambda alone do not")
	errAssigned    = errors.New("lambda: the instance is a function's already")
)

var _ adapter.Spare = (*Adapter)(nil)

// assignmentBox passes the assignment of a spare instance to its runtime, once. It is nil in
// an instance that was never spare.
type assignmentBox struct {
	// request is closed when the runtime asks for the assignment.
	request chan struct{}

	mu           sync.Mutex
	wasRequested bool // request is closed
	// waiter delivers the assignment to the waiting request; nil if none waits.
	waiter chan []byte
	// body is the assignment until it is fetched.
	body              []byte
	assigned, fetched bool
}

func newAssignmentBox() *assignmentBox { return &assignmentBox{request: make(chan struct{})} }

// requested is closed when the runtime asks for the assignment.
func (d *assignmentBox) requested() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.request
}

// fetch registers a request for the assignment. The channel delivers it.
func (d *assignmentBox) fetch() (<-chan []byte, *refusal) {
	if d == nil {
		return nil, &refusedAssignment
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fetched || d.waiter != nil {
		return nil, &refusedAssignment
	}
	d.waiter = make(chan []byte, 1)
	inbox := d.waiter
	d.deliver()
	if !d.wasRequested {
		d.wasRequested = true
		close(d.request)
	}
	return inbox, nil
}

// cancelFetch unregisters a request whose connection ended before any byte of the assignment
// was sent. The next request gets the assignment.
func (d *assignmentBox) cancelFetch(inbox <-chan []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case body := <-inbox:
		d.body, d.fetched = body, false
	default:
	}
	d.waiter = nil
}

func (d *assignmentBox) assign(body []byte) error {
	if d == nil {
		return errAssigned
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.assigned {
		return errAssigned
	}
	d.body, d.assigned = body, true
	d.deliver()
	return nil
}

// unassigned reports whether the runtime has not fetched its assignment yet.
func (d *assignmentBox) unassigned() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.fetched
}

// deliver hands the assignment to the request that waits. d.mu is held.
func (d *assignmentBox) deliver() {
	if d.waiter != nil && d.body != nil {
		d.waiter <- d.body
		d.waiter, d.body, d.fetched = nil, nil, true
	}
}

// NewSpare is an Adapter of a spare instance, which Assign turns into one of a function. It
// serves nothing until Serve is called. For bufferBytes see Config.
func NewSpare(bufferBytes int64) *Adapter {
	a := newAdapter(bufferBytes)
	a.dispatcher.assignments = newAssignmentBox()
	return a
}

// WaitRuntime returns when the runtime asked for its assignment, or with the error
// with which it could not start.
func (a *Adapter) WaitRuntime(ctx context.Context) error {
	select {
	case <-a.dispatcher.assignments.requested():
		return nil
	case <-a.dispatcher.ready:
		return a.dispatcher.failure()
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", errNeverWaited, context.Cause(ctx))
	}
}

// assignmentJSON is an assignment as a runtime reads it.
type assignmentJSON struct {
	Variables []adapter.Variable `json:"variables"`
	Files     []adapter.File     `json:"files"`
}

// Assign makes the instance one of a function.
func (a *Adapter) Assign(to adapter.Assignment) error {
	if err := to.Validate(); err != nil {
		return err
	}
	body, err := json.Marshal(assignmentJSON{append([]adapter.Variable{}, to.Variables...), append([]adapter.File{}, to.Files...)})
	if err != nil {
		return fmt.Errorf("lambda: the assignment: %w", err)
	}
	return a.dispatcher.assign(to, body)
}

// assign passes the assignment to the runtime, which asks for events only after that.
func (d *dispatcher) assign(to adapter.Assignment, body []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	if err := d.assignments.assign(body); err != nil {
		return err
	}
	d.configure(to.Namespace, to.Function, to.Concurrency)
	return nil
}

// serveAssignment waits for the assignment, however long that takes.
func (s *server) serveAssignment(w http.ResponseWriter, r *http.Request) {
	inbox, no := s.dispatcher.assignments.fetch()
	if no != nil {
		refuse(w, r, no)
		return
	}
	select {
	case body := <-inbox:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if _, err := w.Write(body); err != nil {
			s.dispatcher.failAssignment(fmt.Errorf("handing the assignment to the runtime: %w", err))
		}
	case <-r.Context().Done():
		s.dispatcher.assignments.cancelFetch(inbox)
		endWaiting(w, r)
	}
}

// failAssignment ends everything, because the runtime cannot get its assignment.
func (d *dispatcher) failAssignment(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail(why)
}
