package kube

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// pump does a piece of work for each item of a fairQueue, several at a time and
// not more often than its limiter allows.
type pump[T comparable] struct {
	limiter *rate.Limiter
	workers int
	work    func(ctx context.Context, item T)

	mu    sync.Mutex
	queue *fairQueue[T]
	// wake holds a note when the queue may hold something new.
	wake chan struct{}
}

func newPump[T comparable](config Config, work func(context.Context, T)) *pump[T] {
	return &pump[T]{
		limiter: rate.NewLimiter(rate.Limit(config.QPS), config.Burst),
		workers: config.Workers,
		work:    work,
		queue:   newFairQueue[T](max(1, config.Workers/4)),
		wake:    make(chan struct{}, 1),
	}
}

// push adds an item, unless the queue holds limit items already; 0 means that
// there is no limit.
func (p *pump[T]) push(lane string, item T, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit > 0 && p.queue.size >= limit {
		return false
	}
	p.queue.push(lane, item)
	p.notify()
	return true
}

// pushBack puts an item back from within its own work.
func (p *pump[T]) pushBack(lane string, item T, notBefore time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.pushBack(lane, item, notBefore)
	p.notify()
}

func (p *pump[T]) remove(lane string, item T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.remove(lane, item)
}

func (p *pump[T]) length() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.size
}

func (p *pump[T]) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run works until ctx ends, and returns when all work has.
func (p *pump[T]) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	free := make(chan struct{}, p.workers)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		lane, item, ok := p.next(ctx)
		if !ok || p.limiter.Wait(ctx) != nil {
			return
		}
		working.Go(func() {
			p.work(ctx, item)
			p.done(lane)
			<-free
		})
	}
}

// next waits for the next item.
func (p *pump[T]) next(ctx context.Context) (lane string, item T, ok bool) {
	for {
		p.mu.Lock()
		lane, item, ok, wait := p.queue.pop(time.Now())
		p.mu.Unlock()
		if ok {
			return lane, item, true
		}
		var due <-chan time.Time
		if wait > 0 {
			due = time.After(wait)
		}
		select {
		case <-p.wake:
		case <-due:
		case <-ctx.Done():
			return "", item, false
		}
	}
}

func (p *pump[T]) done(lane string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.done(lane)
	p.notify()
}
