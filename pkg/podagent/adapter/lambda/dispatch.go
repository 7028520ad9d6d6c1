package lambda

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda/lambdaenv"
)

var (
	errNoAnswer   = fmt.Errorf("%w: the runtime client asked for the next event without answering this one, or was restarted", adapter.ErrBadAnswer)
	errClientGone = errors.New("the function's process has ended: its connection to the Runtime API broke before it answered")
)

// call is a call that waits for its outcome.
type call struct {
	id      string
	event   *bufferedBody
	header  http.Header
	outcome chan outcome // takes one
	// handing says that the event is with a request for the next event, which may
	// write it also after the call has ended.
	handing bool
}

// releaseEvent gives the buffer of an event back, unless a request is writing it.
func (c *call) releaseEvent() {
	if !c.handing {
		c.event.giveBack()
	}
}

// outcome is how the function's part of a call ended.
type outcome struct {
	answer *answer
	err    error
}

// dispatcher carries out what the machine decides: it matches the agent's calls with the
// runtime client's requests, and passes the answers back.
type dispatcher struct {
	ready       chan struct{}  // closed at the first event asked for, or at failed
	assignments *assignmentBox // of an instance that was a spare one; otherwise nil

	mu       sync.Mutex
	arn      string
	machine  *machine
	calls    map[string]*call      // those that wait for their outcome
	inboxes  map[uint64]chan *call // of requests for the next event
	lastPoll uint64
	failed   error // why no call can be run; read after ready
}

func newDispatcher() *dispatcher {
	return &dispatcher{
		ready: make(chan struct{}), machine: newMachine(0),
		calls: map[string]*call{}, inboxes: map[uint64]chan *call{},
	}
}

// configure sets the function and its concurrency. The caller holds d.mu, or is the only one
// that knows d.
func (d *dispatcher) configure(namespace, function string, concurrency int) {
	d.arn, d.machine.concurrency = lambdaenv.ARN(namespace, function), concurrency
}

// name is the function's ARN.
func (d *dispatcher) name() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arn
}

// concurrency is how many calls the function runs at a time.
func (d *dispatcher) concurrency() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.machine.concurrency
}

// failure is why no call can be run, once ready is closed; nil if one can.
func (d *dispatcher) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// abandonCall ends a call from the side of its caller. It says whether the function may have
// seen it.
func (d *dispatcher) abandonCall(ctx context.Context, in *adapter.Call) (seen bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.calls[in.ID]; c != nil {
		delete(d.calls, in.ID)
		c.releaseEvent()
	}
	return d.machine.abandonCall(in.ID, errors.Is(adapter.Ended(ctx, in), adapter.ErrTimedOut))
}

// submit adds a call.
func (d *dispatcher) submit(c *call) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.machine.submit(c.id); err != nil {
		if d.failed != nil {
			return d.failed
		}
		return err
	}
	d.calls[c.id] = c
	d.match()
	return nil
}

// match hands out what can be handed out, unless everything has ended. d.mu is held.
func (d *dispatcher) match() {
	for d.failed == nil {
		poll, id, ok := d.machine.match()
		if !ok {
			return
		}
		c := d.calls[id]
		c.handing = true
		d.inboxes[poll] <- c
		delete(d.inboxes, poll)
	}
}

// resolve gives a call its outcome, unless the call has ended. d.mu is held.
func (d *dispatcher) resolve(id string, out outcome) (taken bool) {
	c := d.calls[id]
	if c == nil {
		return false
	}
	delete(d.calls, id)
	c.releaseEvent()
	c.outcome <- out
	return true
}

// fail ends everything for the reason err. d.mu is held.
func (d *dispatcher) fail(err error) {
	if d.failed != nil {
		return
	}
	d.failed = err
	for id := range d.calls {
		kind := adapter.ErrFunctionLost
		if d.machine.calls[id] == queued {
			kind = adapter.ErrNotStarted
		}
		d.resolve(id, outcome{err: fmt.Errorf("%w: %w", kind, err)})
	}
	d.becomeReady()
}

// becomeReady wakes WaitReady. d.mu is held.
func (d *dispatcher) becomeReady() {
	select {
	case <-d.ready:
	default:
		close(d.ready)
	}
}

// park registers a request for the next event, which comes through inbox.
func (d *dispatcher) park() (poll uint64, inbox <-chan *call, no *refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.assignments.unassigned() {
		d.fail(errTooEarly)
		return 0, nil, &refusedState
	}
	d.lastPoll++
	unanswered, no := d.machine.parkPoll(d.lastPoll)
	if no != nil {
		return 0, nil, no
	}
	for _, id := range unanswered {
		d.resolve(id, outcome{err: errNoAnswer})
	}
	box := make(chan *call, 1)
	d.inboxes[d.lastPoll] = box
	d.becomeReady()
	d.match()
	return d.lastPoll, box, nil
}

// unpark takes a request for the next event back whose connection ended.
func (d *dispatcher) unpark(poll uint64, inbox <-chan *call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.machine.unpark(poll) {
		delete(d.inboxes, poll)
		return
	}
	d.unsent(<-inbox)
}

// unsent queues a call again whose event was not sent. d.mu is held.
func (d *dispatcher) unsent(c *call) {
	c.handing = false
	if d.calls[c.id] == nil { // it has ended meanwhile
		c.releaseEvent()
	}
	d.machine.unsent(c.id)
	d.match()
}

// delivery is how much of an event was written.
type delivery uint8

const (
	sentWhole delivery = iota
	sentNothing
	sentPart
)

// delivered records how much of a call's event was written.
func (d *dispatcher) delivered(c *call, what delivery, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if what == sentNothing {
		d.unsent(c)
		return
	}
	c.handing = false
	c.releaseEvent()
	switch what {
	case sentWhole:
		if d.machine.sent(c.id) {
			d.resolve(c.id, outcome{err: errNoAnswer})
		}
	case sentPart:
		d.breakOff(c.id, fmt.Errorf("handing the event to the runtime client: %w", err))
	}
}

// breakOff ends a call whose connection broke. d.mu is held.
func (d *dispatcher) breakOff(id string, err error) {
	if d.machine.lost(id) {
		d.resolve(id, outcome{err: fmt.Errorf("%w: %w", adapter.ErrFunctionLost, err)})
	}
}

// answerBegins begins an answer. discard says that the call has ended without it.
func (d *dispatcher) answerBegins(id string) (discard bool, no *refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.machine.answer(id)
}

// answerStreams gives a call its outcome before the answer has ended, unless
// nobody waits for it any more.
func (d *dispatcher) answerStreams(id string, contentType string, stream *io.PipeReader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls[id] == nil {
		_ = stream.CloseWithError(errGivenUp)
		return
	}
	d.resolve(id, outcome{answer: &answer{contentType: contentType, stream: stream}})
}

// answerEnds ends an answer; ans is nil if it was streamed.
func (d *dispatcher) answerEnds(id string, ans *answer) *refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	discard, no := d.machine.finishAnswer(id)
	if ans == nil {
		return no
	}
	if no != nil || discard || !d.resolve(id, outcome{answer: ans}) {
		ans.body.giveBack()
	}
	return no
}

// answerBreaks ends an answer whose connection broke.
func (d *dispatcher) answerBreaks(id string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.breakOff(id, fmt.Errorf("reading the answer: %w", err))
}

// clientGone ends a call whose runtime client kept the connection, until now.
func (d *dispatcher) clientGone(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.breakOff(id, errClientGone)
}

// presumeGone ends a running call, since its runtime client seems to have ended, and reports
// whether the call was running.
func (d *dispatcher) presumeGone(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.machine.calls[id] != running {
		return false
	}
	d.machine.abandonCall(id, false) // a late answer is accepted and discarded
	d.resolve(id, outcome{err: fmt.Errorf("%w: %w", adapter.ErrFunctionLost, errPresumedGone)})
	return true
}

// cannotStart takes the reason why the runtime client cannot start.
func (d *dispatcher) cannotStart(why error) *refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	no := d.machine.initError()
	if no == nil {
		d.fail(why)
	}
	return no
}

// close ends all calls.
func (d *dispatcher) close(why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.machine.ended = true
	d.fail(why)
}
