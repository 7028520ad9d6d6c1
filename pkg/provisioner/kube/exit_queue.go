package kube

import (
	"context"
	"sync"

	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// exitQueue holds the exits that wait for their reader, so that they hold nothing else up.
type exitQueue struct {
	out chan provisioner.Exit
	// wake holds a note when there may be exits to deliver.
	wake chan struct{}

	mu sync.Mutex
	// waiting are exits that wait for room in the channel, at most one for each instance.
	waiting []provisioner.Exit
}

func newExitQueue() *exitQueue {
	return &exitQueue{out: make(chan provisioner.Exit, 256), wake: make(chan struct{}, 1)}
}

// push reports an exit.
func (o *exitQueue) push(exit provisioner.Exit) {
	o.mu.Lock()
	o.waiting = append(o.waiting, exit)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// takeAll empties the queue.
func (o *exitQueue) takeAll() []provisioner.Exit {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := o.waiting
	o.waiting = nil
	return batch
}

// deliver hands exits to their reader until ctx ends.
func (o *exitQueue) deliver(ctx context.Context) {
	for {
		batch := o.takeAll()
		for _, exit := range batch {
			select {
			case o.out <- exit:
			case <-ctx.Done():
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
	}
}
