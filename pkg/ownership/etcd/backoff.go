package etcd

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	shortestBackoff = 100 * time.Millisecond
	longestBackoff  = 2 * time.Second
)

// backoff is the pause before the next try. It doubles up to longestBackoff; chance
// takes up to half of it, so that those who failed together come back apart.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait returns early when ctx ends.
func (b *backoff) wait(ctx context.Context) {
	b.next = min(max(2*b.next, shortestBackoff), longestBackoff)
	timer := time.NewTimer(b.next - rand.N(b.next/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
