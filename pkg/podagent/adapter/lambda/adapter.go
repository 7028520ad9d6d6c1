package lambda

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// Config says whose Runtime API this is.
type Config struct {
	// Namespace and Function name the function.
	Namespace string
	Function  string
	// Concurrency is how many calls the function runs at a time, at least 1. With more than 1
	// the runtime client must support AWS_LAMBDA_MAX_CONCURRENCY.
	Concurrency int
	// BufferBytes is how many bytes of events and answers are held at a time, half of
	// it for each; 0 is DefaultBufferBytes. A larger one than a half never fits.
	BufferBytes int64
}

// Validate returns an error that names the invalid settings.
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

// Adapter is an adapter.Adapter for one runtime client, which it serves: the agent's side
// of it.
type Adapter struct {
	dispatcher *dispatcher
	server     *server
	events     *bodyBudget
}

var _ adapter.Adapter = (*Adapter)(nil)

// New is an Adapter for a valid cfg. It serves nothing until Serve is called.
func New(cfg Config) *Adapter {
	a := newAdapter(cfg.BufferBytes)
	a.dispatcher.configure(cfg.Namespace, cfg.Function, cfg.Concurrency)
	return a
}

func newAdapter(bufferBytes int64) *Adapter {
	if bufferBytes == 0 {
		bufferBytes = DefaultBufferBytes
	}
	d := newDispatcher()
	return &Adapter{
		dispatcher: d,
		events:     newBodyBudget(bufferBytes/2, maxEvent),
		server:     &server{dispatcher: d, clients: &clients{dispatcher: d}, answers: newBodyBudget(bufferBytes/2, maxAnswer)},
	}
}

// Serve serves the Runtime API on l until ctx ends or l fails, and then ends
// all calls. It closes l and returns when everything that it started has ended;
// nil if that was because of ctx. It is called once.
func (a *Adapter) Serve(ctx context.Context, l net.Listener) error { return a.server.serve(ctx, l) }

// WaitReady returns when the runtime client asked for its first event, or with
// the error with which it could not start.
func (a *Adapter) WaitReady(ctx context.Context) error {
	select {
	case <-a.dispatcher.ready:
		return a.dispatcher.failure()
	case <-ctx.Done():
		return adapter.NotReady(ctx, neverAsked)
	}
}

// Invoke hands call to the runtime client when that asks for an event. It rejects a call with
// a body above 6 MiB, or above the total budget. A call whose body does not fit now waits for
// others to end.
func (a *Adapter) Invoke(ctx context.Context, in *adapter.Call, w adapter.ResultWriter) error {
	event, err := readEvent(ctx, a.events, in)
	if err != nil {
		return unread(ctx, in, err)
	}
	c := &call{id: in.ID, event: event, header: eventHeader(in, a.dispatcher.name(), len(event.body)), outcome: make(chan outcome, 1)}
	if err := a.dispatcher.submit(c); err != nil {
		event.giveBack()
		return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
	}
	select {
	case out := <-c.outcome:
		return a.deliverOutcome(ctx, in, w, out)
	case <-ctx.Done():
		return a.abandon(ctx, in, c)
	}
}

// unread is the error of a call whose event could not be read because of err.
func unread(ctx context.Context, in *adapter.Call, err error) error {
	var tooLarge *tooLargeError
	late := ctx.Err() != nil && adapter.IsLate(ctx, in)
	switch {
	case errors.As(err, &tooLarge):
		return fmt.Errorf("%w: %w", adapter.ErrBodyTooLarge, tooLarge)
	case late && errors.Is(err, errNoRoom):
		return fmt.Errorf("%w: %w", adapter.ErrNotTaken, err)
	case late:
		return fmt.Errorf("%w: %w", adapter.ErrTooLate, err)
	}
	return fmt.Errorf("%w: %w", adapter.ErrNotStarted, err)
}

// deliverOutcome writes an outcome to w. If ctx ends meanwhile, so does the answer.
func (a *Adapter) deliverOutcome(ctx context.Context, in *adapter.Call, w adapter.ResultWriter, out outcome) error {
	if out.err != nil {
		return out.err
	}
	if out.answer.stream == nil {
		defer out.answer.body.giveBack()
		return out.answer.relay(ctx, in, w)
	}
	stop := context.AfterFunc(ctx, func() {
		a.dispatcher.abandonCall(ctx, in)
		_ = out.answer.stream.CloseWithError(context.Cause(ctx))
	})
	err := out.answer.relay(ctx, in, w)
	stop()
	_ = out.answer.stream.CloseWithError(errGivenUp)
	if err != nil {
		a.dispatcher.abandonCall(ctx, in)
	}
	return err
}

// abandon ends a call whose context ended before its outcome was there.
func (a *Adapter) abandon(ctx context.Context, in *adapter.Call, c *call) error {
	seen := a.dispatcher.abandonCall(ctx, in)
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
