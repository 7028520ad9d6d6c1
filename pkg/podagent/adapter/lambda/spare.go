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

// assignmentPath is where the runtime of a spare instance waits for what it becomes.
const assignmentPath = "/windlass/v1/assignment"

var (
	errNeverWaited = errors.New("the runtime never asked for the assignment of its spare instance: its image must know warm pools, which those made for AWS Lambda alone do not")
	errTooEarly    = errors.New("the runtime of a spare instance asked for an event before the assignment: its image must know warm pools, which those made for AWS Lambda alone do not")
	errAssigned    = errors.New("lambda: the instance is a function's already")
)

var _ adapter.Spare = (*Adapter)(nil)

// desk is where an assignment is fetched, once. That of an instance that was never a
// spare one is nil.
type desk struct {
	// asked is closed when the runtime asks what the instance becomes.
	asked chan struct{}

	mu    sync.Mutex
	waits bool // asked is closed
	// waiter takes the assignment for the request that waits; nil if none does.
	waiter chan []byte
	// body is the assignment while nobody has fetched it.
	body            []byte
	assigned, taken bool
}

func newDesk() *desk { return &desk{asked: make(chan struct{})} }

// visited is closed when the runtime asks what the instance becomes.
func (d *desk) visited() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.asked
}

// wait is for a request that asks. What it returns takes the assignment.
func (d *desk) wait() (<-chan []byte, *refusal) {
	if d == nil {
		return nil, &refusedAssignment
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.taken || d.waiter != nil {
		return nil, &refusedAssignment
	}
	d.waiter = make(chan []byte, 1)
	inbox := d.waiter
	d.match()
	if !d.waits {
		d.waits = true
		close(d.asked)
	}
	return inbox, nil
}

// leave is for a request whose connection ended. What it was given is the next one's:
// nothing of it was sent.
func (d *desk) leave(inbox <-chan []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case body := <-inbox:
		d.body, d.taken = body, false
	default:
	}
	d.waiter = nil
}

func (d *desk) assign(body []byte) error {
	if d == nil {
		return errAssigned
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.assigned {
		return errAssigned
	}
	d.body, d.assigned = body, true
	d.match()
	return nil
}

// unassigned tells whether the runtime does not know its function yet.
func (d *desk) unassigned() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.taken
}

// match hands the assignment to the request that waits. d.mu is held.
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
	a.dispatcher.desk = newDesk()
	return a
}

// WaitRuntime returns when the runtime asked for its assignment, or with the error
// with which it could not start.
func (a *Adapter) WaitRuntime(ctx context.Context) error {
	select {
	case <-a.dispatcher.desk.visited():
		return nil
	case <-a.dispatcher.ready:
		return a.dispatcher.failure()
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
	return a.dispatcher.assign(to, body)
}

// assign hands the instance's assignment over, which makes it a function's. Its runtime
// asks for an event only after that.
func (d *dispatcher) assign(to adapter.Assignment, body []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	if err := d.desk.assign(body); err != nil {
		return err
	}
	d.become(to.Namespace, to.Function, to.Concurrency)
	return nil
}

// serveAssignment waits for the assignment, however long that takes.
func (s *server) serveAssignment(w http.ResponseWriter, r *http.Request) {
	inbox, no := s.dispatcher.desk.wait()
	if no != nil {
		refuse(w, r, no)
		return
	}
	select {
	case body := <-inbox:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if _, err := w.Write(body); err != nil {
			s.dispatcher.breakDown(fmt.Errorf("handing the assignment to the runtime: %w", err))
		}
	case <-r.Context().Done():
		s.dispatcher.desk.leave(inbox)
		endWaiting(w, r)
	}
}

// breakDown ends everything since the runtime cannot be handed its assignment.
func (d *dispatcher) breakDown(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail(why)
}
