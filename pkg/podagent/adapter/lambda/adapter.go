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

// Config says whose Runtime API this is.
type Config struct {
	// Namespace and Function name the function.
	Namespace string
	Function  string
	// Concurrency is how many calls the function runs at a time, at least 1.
	// With more than 1 the runtime client must be one that knows
	// AWS_LAMBDA_MAX_CONCURRENCY.
	Concurrency int
	// BufferBytes is how many bytes of events and answers are held at a time, half of
	// it for each; 0 is DefaultBufferBytes. A larger one than a half never fits.
	BufferBytes int64
}

// Validate says what is wrong with c.
func (c Config) Validate() error {
	switch {
	case c.Namespace == "":
		return errors.New("namespace is empty")
	case c.Function == "":
		return errors.New("function is empty")
	case c.Concurrency < 1:
		return fmt.Errorf("concurrency is %d, must be at least 1", c.Concurrency)
	case c.BufferBytes < 0:
		return fmt.Errorf("buffer bytes are %d, must not be negative", c.BufferBytes)
	}
	return nil
}

// neverAsked says why a function is not ready.
const neverAsked = "the runtime client never asked for an event: the program must be or start an AWS Lambda runtime client, which finds its server by AWS_LAMBDA_RUNTIME_API"

var (
	errNoAnswer   = fmt.Errorf("%w: the runtime client asked for the next event without answering this one, or was started anew", adapter.ErrBadAnswer)
	errServerGone = errors.New("the Runtime API's server has ended")
)

// Adapter is an adapter.Adapter for one runtime client, which it serves.
type Adapter struct {
	ready chan struct{} // closed at the first event asked for, or at failed
	asked chan struct{} // closed when a spare instance's runtime asks what it becomes; otherwise nil

	events, answers *room

	mu       sync.Mutex
	arn      string
	desk     *desk // of an instance that was a spare one; otherwise nil
	waits    bool  // asked is closed
	machine  *machine
	calls    map[string]*call      // those that wait for their outcome
	inboxes  map[uint64]chan *call // of requests for the next event
	lastPoll uint64
	failed   error  // why no call can be run; read after ready
	asking   bool   // the first request came
	client   string // whom it named, by headClient; empty if any is served
	habit    habit
}

var _ adapter.Adapter = (*Adapter)(nil)

// call is a call that waits for its outcome.
type call struct {
	id      string
	event   *held
	header  http.Header
	outcome chan outcome // takes one
	// handing says that the event is with a request for the next event, which may
	// write it also after the call has ended.
	handing bool
}

// forgetEvent gives the room of an event back that nobody writes or will write.
func (c *call) forgetEvent() {
	if !c.handing {
		c.event.giveBack()
	}
}

// outcome is how the function's part of a call ended.
type outcome struct {
	answer *answer
	err    error
}

// New is an Adapter for a valid cfg. It serves nothing until Serve is called.
func New(cfg Config) *Adapter {
	a := newAdapter(cfg.BufferBytes)
	a.arn, a.machine.concurrency = lambdaenv.ARN(cfg.Namespace, cfg.Function), cfg.Concurrency
	return a
}

func newAdapter(bufferBytes int64) *Adapter {
	if bufferBytes == 0 {
		bufferBytes = DefaultBufferBytes
	}
	return &Adapter{
		events:  newRoom(bufferBytes/2, maxEvent),
		answers: newRoom(bufferBytes/2, maxAnswer),
		ready:   make(chan struct{}),
		machine: newMachine(0),
		calls:   map[string]*call{},
		inboxes: map[uint64]chan *call{},
	}
}

// WaitReady returns when the runtime client asked for its first event, or with
// the error with which it could not start.
func (a *Adapter) WaitReady(ctx context.Context) error {
	select {
	case <-a.ready:
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.failed
	case <-ctx.Done():
		return adapter.NotReady(ctx, neverAsked)
	}
}

// Invoke hands call to the runtime client when that asks for an event. A call
// with a body above 6 MiB, or above what there is ever room for, is not handed out.
// One for which there is no room now waits for others to end.
func (a *Adapter) Invoke(ctx context.Context, in *adapter.Call, w adapter.ResultWriter) error {
	event, err := readEvent(ctx, a.events, in)
	var tooLarge *tooLargeError
	if errors.As(err, &tooLarge) {
		return fmt.Errorf("%w: %w", adapter.ErrBodyTooLarge, tooLarge)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	c := &call{id: in.ID, event: event, header: eventHeader(in, a.name(), len(event.body)), outcome: make(chan outcome, 1)}
	if err := a.submit(c); err != nil {
		event.giveBack()
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	select {
	case out := <-c.outcome:
		return a.conclude(ctx, in, w, out)
	case <-ctx.Done():
		return a.abandon(ctx, in, c)
	}
}

// name is the function's ARN.
func (a *Adapter) name() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.arn
}

// conclude passes an outcome on. If ctx ends meanwhile, so does the answer.
func (a *Adapter) conclude(ctx context.Context, in *adapter.Call, w adapter.ResultWriter, out outcome) error {
	if out.err != nil {
		return out.err
	}
	if out.answer.stream == nil {
		defer out.answer.body.giveBack()
		return out.answer.relay(ctx, in, w)
	}
	stop := context.AfterFunc(ctx, func() {
		a.giveUp(ctx, in)
		_ = out.answer.stream.CloseWithError(context.Cause(ctx))
	})
	err := out.answer.relay(ctx, in, w)
	stop()
	_ = out.answer.stream.CloseWithError(errGivenUp)
	if err != nil {
		a.giveUp(ctx, in)
	}
	return err
}

// abandon ends a call whose context ended before its outcome was there.
func (a *Adapter) abandon(ctx context.Context, in *adapter.Call, c *call) error {
	seen := a.giveUp(ctx, in)
	select {
	case out := <-c.outcome:
		if out.err != nil {
			return out.err
		}
		out.answer.body.giveBack()
		if out.answer.stream != nil {
			_ = out.answer.stream.CloseWithError(errGivenUp)
		}
	default:
	}
	if !seen {
		return fmt.Errorf("%w: the runtime client did not ask for it in time: %w", adapter.ErrNotStarted, context.Cause(ctx))
	}
	return adapter.Ended(ctx, in)
}

func (a *Adapter) giveUp(ctx context.Context, in *adapter.Call) (seen bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.calls[in.ID]; c != nil {
		delete(a.calls, in.ID)
		c.forgetEvent()
	}
	return a.machine.giveUp(in.ID, errors.Is(adapter.Ended(ctx, in), adapter.ErrTimedOut))
}

func (a *Adapter) submit(c *call) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.machine.submit(c.id); err != nil {
		if a.failed != nil {
			return a.failed
		}
		return err
	}
	a.calls[c.id] = c
	a.match()
	return nil
}

// match hands out what can be handed out. a.mu is held.
func (a *Adapter) match() {
	for {
		poll, id, ok := a.machine.match()
		if !ok {
			return
		}
		c := a.calls[id]
		c.handing = true
		a.inboxes[poll] <- c
		delete(a.inboxes, poll)
	}
}

// end gives a call its outcome, unless nobody waits for it any more. a.mu is held.
func (a *Adapter) end(id string, out outcome) (taken bool) {
	c := a.calls[id]
	if c == nil {
		return false
	}
	delete(a.calls, id)
	c.forgetEvent()
	c.outcome <- out
	return true
}

// fail ends everything for the reason err. a.mu is held.
func (a *Adapter) fail(err error) {
	if a.failed != nil {
		return
	}
	a.failed = err
	for id := range a.calls {
		kind := adapter.ErrFunctionLost
		if a.machine.calls[id] == queued {
			kind = adapter.ErrNotStarted
		}
		a.end(id, outcome{err: fmt.Errorf("%w: %w", kind, err)})
	}
	a.becomeReady()
}

// becomeReady wakes WaitReady. a.mu is held.
func (a *Adapter) becomeReady() {
	select {
	case <-a.ready:
	default:
		close(a.ready)
	}
}

// park notes a request for the next event, which comes through inbox.
func (a *Adapter) park() (poll uint64, inbox <-chan *call, no *refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unassigned() {
		a.fail(errTooEarly)
		return 0, nil, &refusedState
	}
	a.lastPoll++
	unanswered, no := a.machine.next(a.lastPoll)
	if no != nil {
		return 0, nil, no
	}
	for _, id := range unanswered {
		a.end(id, outcome{err: errNoAnswer})
	}
	box := make(chan *call, 1)
	a.inboxes[a.lastPoll] = box
	a.becomeReady()
	a.match()
	return a.lastPoll, box, nil
}

// unpark takes a request for the next event back whose connection ended.
func (a *Adapter) unpark(poll uint64, inbox <-chan *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.machine.unpark(poll) {
		delete(a.inboxes, poll)
		return
	}
	a.unsent(<-inbox)
}

// unsent is for a call whose event nobody has seen. a.mu is held.
func (a *Adapter) unsent(c *call) {
	c.handing = false
	if a.calls[c.id] == nil { // it has ended meanwhile
		c.forgetEvent()
	}
	a.machine.unsent(c.id)
	a.match()
}

// delivery is what became of an event that was to be written.
type delivery uint8

const (
	sentWhole delivery = iota
	sentNothing
	sentPart
)

func (a *Adapter) delivered(c *call, what delivery, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if what == sentNothing {
		a.unsent(c)
		return
	}
	c.handing = false
	c.forgetEvent()
	switch what {
	case sentWhole:
		if a.machine.sent(c.id) {
			a.end(c.id, outcome{err: errNoAnswer})
		}
	case sentPart:
		a.breakOff(c.id, fmt.Errorf("handing the event to the runtime client: %w", err))
	}
}

// breakOff ends a call whose connection broke. a.mu is held.
func (a *Adapter) breakOff(id string, err error) {
	if a.machine.lost(id) {
		a.end(id, outcome{err: fmt.Errorf("%w: %w", adapter.ErrFunctionLost, err)})
	}
}

func (a *Adapter) answerBegins(id string) (discard bool, no *refusal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.machine.answer(id)
}

// answerStreams gives a call its outcome before the answer has ended, unless
// nobody waits for it any more.
func (a *Adapter) answerStreams(id string, contentType string, stream *io.PipeReader) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls[id] == nil {
		_ = stream.CloseWithError(errGivenUp)
		return
	}
	a.end(id, outcome{answer: &answer{contentType: contentType, stream: stream}})
}

// answerEnds ends an answer; ans is nil if it was streamed.
func (a *Adapter) answerEnds(id string, ans *answer) *refusal {
	a.mu.Lock()
	defer a.mu.Unlock()
	discard, no := a.machine.finish(id)
	if ans == nil {
		return no
	}
	if no != nil || discard || !a.end(id, outcome{answer: ans}) {
		ans.body.giveBack()
	}
	return no
}

// answerBreaks ends an answer whose connection broke.
func (a *Adapter) answerBreaks(id string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.breakOff(id, fmt.Errorf("reading the answer: %w", err))
}
