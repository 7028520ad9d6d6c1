package loadgen

import (
	"context"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// Config says what to call, when, and what to record.
type Config[R any] struct {
	// Arrivals are the times of the calls after the start. They make an open loop, which
	// ignores Clients.
	Arrivals iter.Seq[time.Duration]
	// MaxInFlight bounds the running calls of an open loop; 0 for no bound. A call that is due
	// beyond it does not begin.
	MaxInFlight int
	// Refused makes the record of a call that is due and does not begin; nil records nothing.
	Refused func(Turn) R

	// Clients make one call after the other, each in a closed loop.
	Clients int
	// Calls bounds the calls of a closed loop in all; 0 is no bound. The first call
	// of each client is its own: others that are quicker do not take it.
	Calls int
	// Rest is how long a client rests after a call; nil is not at all.
	Rest func(R) time.Duration

	// Next prepares a call and returns what makes it. An open loop asks for one
	// call after the other, and so does each client of a closed loop.
	Next func(Turn) func(ctx context.Context) R
}

// Turn is a call's place in a load.
type Turn struct {
	// N counts the calls of a client, or of an open loop, from 0.
	N int
	// Client is that of a closed loop, from 0.
	Client int
	// Due is when an open loop was to begin the call after the start, and Late how
	// much later the sender got to it.
	Due, Late time.Duration
}

// Load is a load that runs.
type Load[R any] struct {
	config Config[R]
	// stop ends the loops; calls under way go on.
	stop context.CancelFunc
	// running is done when the last call has ended.
	running sync.WaitGroup
	began   time.Time

	mu           sync.Mutex // covers everything below
	begun, ended int
	taken        int
	records      []R
}

// Start begins calls until Stop, or until arrivals or calls run out. If ctx ends before, it
// ends running calls, too.
func Start[R any](ctx context.Context, config Config[R]) *Load[R] {
	loop, stop := context.WithCancel(ctx)
	l := &Load[R]{config: config, stop: stop, began: time.Now()}
	if config.Arrivals != nil {
		l.running.Go(func() { l.openLoop(loop, ctx) })
		return l
	}
	for client := range config.Clients {
		if l.reserveCall() {
			l.running.Go(func() { l.closedLoop(loop, ctx, client) })
		}
	}
	return l
}

// Stop begins no more calls, and returns the records when the last call has ended.
func (l *Load[R]) Stop() []R {
	l.stop()
	return l.Wait()
}

// Wait returns the records when the load has ended: its last arrival or call, or its
// context.
func (l *Load[R]) Wait() []R {
	l.running.Wait()
	l.stop()
	return l.Records()
}

// Records are the records of the ended calls, in the order in which they ended.
func (l *Load[R]) Records() []R {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.records)
}

// Begun is how many calls have begun, and Ended how many of them have ended.
func (l *Load[R]) Begun() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun
}

// Ended is how many calls have ended.
func (l *Load[R]) Ended() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// Exhausted says that a closed loop would have made more calls than Calls.
func (l *Load[R]) Exhausted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.config.Calls > 0 && l.taken > l.config.Calls
}

// inFlight is how many calls have begun and not ended.
func (l *Load[R]) inFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.begun - l.ended
}

// openLoop makes calls when they are due.
func (l *Load[R]) openLoop(loop, ctx context.Context) {
	turn := Turn{}
	for turn.Due = range l.config.Arrivals {
		wait := time.Until(l.began.Add(turn.Due))
		if wait > 0 && !sleep.For(loop, wait) || loop.Err() != nil {
			return
		}
		turn.Late = time.Since(l.began) - turn.Due
		call := l.config.Next(turn)
		if most := l.config.MaxInFlight; most > 0 && l.inFlight() >= most {
			if l.config.Refused != nil {
				l.addRecord(l.config.Refused(turn))
			}
		} else {
			l.countBegun()
			l.running.Go(func() { l.recordEnd(call(ctx)) })
		}
		turn.N++
	}
}

// closedLoop makes one call after the other. The first was reserved already.
func (l *Load[R]) closedLoop(loop, ctx context.Context, client int) {
	for turn := (Turn{Client: client}); loop.Err() == nil; turn.N++ {
		if turn.N > 0 && !l.reserveCall() {
			return
		}
		call := l.config.Next(turn)
		l.countBegun()
		record := l.recordEnd(call(ctx))
		if l.config.Rest == nil {
			continue
		}
		if d := l.config.Rest(record); d > 0 {
			sleep.For(loop, d)
		}
	}
}

// reserveCall reserves one of the remaining calls.
func (l *Load[R]) reserveCall() bool {
	if l.config.Calls == 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken++
	return l.taken <= l.config.Calls
}

func (l *Load[R]) countBegun() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
}

func (l *Load[R]) recordEnd(record R) R {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, record)
	l.ended++
	return record
}

func (l *Load[R]) addRecord(record R) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, record)
}

// Poisson are random arrivals at a rate per second, without end.
func Poisson(rng *rand.Rand, rate float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		at := time.Duration(0)
		for {
			at += time.Duration(rng.ExpFloat64() / rate * float64(time.Second))
			if !yield(at) {
				return
			}
		}
	}
}

// Within are the arrivals before an end.
func Within(length time.Duration, arrivals iter.Seq[time.Duration]) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for at := range arrivals {
			if at >= length || !yield(at) {
				return
			}
		}
	}
}
