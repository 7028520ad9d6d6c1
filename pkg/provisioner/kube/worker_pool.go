package kube

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// workerPool does a piece of work for each item of a fairQueue, several at a time and
// not more often than its limiter allows.
type workerPool[T comparable] struct {
	limiter *rate.Limiter
	workers int
	work    func(ctx context.Context, item T)

	mu    sync.Mutex
	queue *fairQueue[T]
	// wake holds a note when the queue may hold something new.
	wake chan struct{}
}

func newWorkerPool[T comparable](config Config, work func(context.Context, T)) *workerPool[T] {
	return &workerPool[T]{
		limiter: rate.NewLimiter(rate.Limit(config.QPS), config.Burst),
		workers: config.Workers,
		work:    work,
		queue:   newFairQueue[T](max(1, config.Workers/4)),
		wake:    make(chan struct{}, 1),
	}
}

// push adds an item, unless the queue holds limit items already; 0 means that
// there is no limit.
func (p *workerPool[T]) push(flow string, item T, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit > 0 && p.queue.size >= limit {
		return false
	}
	p.queue.push(flow, item)
	p.notify()
	return true
}

// pushBack puts an item back from within its own work.
func (p *workerPool[T]) pushBack(flow string, item T, notBefore time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.pushBack(flow, item, notBefore)
	p.notify()
}

func (p *workerPool[T]) remove(flow string, item T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.remove(flow, item)
}

func (p *workerPool[T]) length() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.size
}

func (p *workerPool[T]) notify() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run works until ctx ends, and returns when all work has.
func (p *workerPool[T]) run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	free := make(chan struct{}, p.workers)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		flow, item, ok := p.waitNext(ctx)
		if !ok || p.limiter.Wait(ctx) != nil {
			return
		}
		working.Go(func() {
			p.work(ctx, item)
			p.done(flow)
			<-free
		})
	}
}

// waitNext waits for the next item.
func (p *workerPool[T]) waitNext(ctx context.Context) (flow string, item T, ok bool) {
	for {
		p.mu.Lock()
		flow, item, ok, wait := p.queue.pop(time.Now())
		p.mu.Unlock()
		if ok {
			return flow, item, true
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

func (p *workerPool[T]) done(flow string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.done(flow)
	p.notify()
}
