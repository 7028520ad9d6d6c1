package kube

import (
	"context"
	"sync"

	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// outbox holds the exits that wait for their reader, so that they hold nothing else up.
type outbox struct {
	exits chan provisioner.Exit
	// told holds a note when there may be exits to deliver.
	told chan struct{}

	mu sync.Mutex
	// waiting are exits that wait for room in the channel. There are never more than
	// there were instances.
	waiting []provisioner.Exit
}

func newOutbox() *outbox {
	return &outbox{exits: make(chan provisioner.Exit, 256), told: make(chan struct{}, 1)}
}

// tell reports an exit.
func (o *outbox) tell(exit provisioner.Exit) {
	o.mu.Lock()
	o.waiting = append(o.waiting, exit)
	o.mu.Unlock()
	select {
	case o.told <- struct{}{}:
	default:
	}
}

// take empties the outbox.
func (o *outbox) take() []provisioner.Exit {
	o.mu.Lock()
	defer o.mu.Unlock()
	batch := o.waiting
	o.waiting = nil
	return batch
}

// deliver hands exits to their reader until ctx ends.
func (o *outbox) deliver(ctx context.Context) {
	for {
		batch := o.take()
		for _, exit := range batch {
			select {
			case o.exits <- exit:
			case <-ctx.Done():
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-o.told:
		case <-ctx.Done():
			return
		}
	}
}
