package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
)

const (
	firstRedial   = 200 * time.Millisecond
	lastRedial    = 5 * time.Second
	sweepInterval = time.Second
)

// noticeSilence lets a stream end when the scheduler's machine is gone. Schedulers permit a ping
// every 5 s.
var noticeSilence = keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}

// Schedulers finds the schedulers.
type Schedulers interface {
	// Addresses returns the address of every scheduler, host:port, and a
	// channel that is closed when that has changed.
	Addresses(ctx context.Context) (addresses []string, changed <-chan struct{}, err error)
}

// follower keeps a stream to every scheduler, and writes what they report into a
// factStore.
type follower struct {
	schedulers Schedulers
	dial       []grpc.DialOption
	facts      *factStore
	metrics    *metrics
	log        *slog.Logger
}

// run follows the schedulers until ctx ends.
func (f *follower) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.facts.restart()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { f.sweep(ctx) })

	following := make(map[string]context.CancelFunc)
	redial := backoff.Backoff{First: firstRedial, Last: lastRedial}
	for {
		addresses, changed, err := f.schedulers.Addresses(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			wait := redial.Next()
			f.log.Warn("cannot find the schedulers", "err", err, "retry_in", wait)
			sleep.For(ctx, wait)
			continue
		}
		redial.Reset()
		f.facts.pools.setAddresses(addresses)
		f.adjust(ctx, following, addresses, &running)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// adjust starts following new addresses and stops following removed ones.
func (f *follower) adjust(ctx context.Context, following map[string]context.CancelFunc, addresses []string, running *sync.WaitGroup) {
	present := make(map[string]bool, len(addresses))
	for _, address := range addresses {
		present[address] = true
		if following[address] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		following[address] = cancel
		running.Go(func() { f.followScheduler(ctx, address) })
	}
	for address, cancel := range following {
		if !present[address] {
			cancel()
			delete(following, address)
		}
	}
}

// followScheduler keeps a stream to one scheduler until ctx ends.
func (f *follower) followScheduler(ctx context.Context, address string) {
	log := f.log.With("scheduler", address)
	redial := backoff.Backoff{First: firstRedial, Last: lastRedial}
	for ctx.Err() == nil {
		observed, err := f.watch(ctx, address)
		if ctx.Err() != nil {
			return
		}
		if observed {
			redial.Reset()
		}
		wait := redial.Next()
		log.Warn("the stream from a scheduler broke", "err", err, "retry_in", wait)
		sleep.For(ctx, backoff.Jitter(wait))
	}
}

// watch reads one stream to its end, and says whether anything came by it.
func (f *follower) watch(ctx context.Context, address string) (observed bool, err error) {
	conn, err := grpc.NewClient("passthrough:///"+address, slices.Concat(f.dial, []grpc.DialOption{grpc.WithKeepaliveParams(noticeSilence)})...)
	if err != nil {
		return false, fmt.Errorf("cannot connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	replies, err := controlwire.NewSchedulerClient(conn).Watch(ctx, &controlwire.WatchRequest{Hello: health.Hello()})
	if err != nil {
		return false, err
	}
	by := &stream{address: address}
	defer f.facts.close(by)
	for {
		reply, err := replies.Recv()
		if err != nil {
			return observed, err
		}
		if !observed {
			observed = true
			f.metrics.schedulers.Inc()
			defer f.metrics.schedulers.Dec()
		}
		f.facts.applyReply(by, reply)
	}
}

func (f *follower) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.facts.sweep()
		}
	}
}
