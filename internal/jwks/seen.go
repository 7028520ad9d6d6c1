package jwks

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// trustFor is how long a token counts without another look at it.
	trustFor = time.Minute
	// maxSeen is the most tokens that are remembered, in each of two halves.
	maxSeen = 4096
)

// Digest stands for a token, which is not kept.
type Digest = [sha256.Size]byte

// DigestOf is the digest of a token.
func DigestOf(token string) Digest { return sha256.Sum256([]byte(token)) }

// Seen remembers the results for recent tokens. When its young half is full, that replaces the
// old one, which is dropped. It is safe for concurrent use; its zero value is empty.
type Seen[V any] struct {
	mu         sync.Mutex
	young, old map[Digest]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

// Get returns the remembered result for a token.
func (s *Seen[V]) Get(d Digest, now time.Time) (V, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.young[d]
	if !ok {
		r, ok = s.old[d]
	}
	if !ok || !now.Before(r.until) {
		var none V
		return none, false
	}
	return r.value, true
}

// Put remembers a token for a minute, or until the given time if that is sooner.
func (s *Seen[V]) Put(d Digest, value V, now, until time.Time) {
	if latest := now.Add(trustFor); latest.Before(until) {
		until = latest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.young == nil || len(s.young) >= maxSeen {
		s.young, s.old = make(map[Digest]remembered[V]), s.young
	}
	s.young[d] = remembered[V]{value: value, until: until}
}
