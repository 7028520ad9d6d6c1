package podidentity

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// trustFor is how long a token counts without another look at it.
	trustFor = time.Minute
	// maxVerified is the most tokens that are remembered, in each of two halves.
	maxVerified = 4096
)

// digest stands for a token, which is not kept.
type digest = [sha256.Size]byte

// verified remembers tokens that were found right lately. When its young half is
// full, that takes the place of the old one, which is forgotten.
type verified struct {
	mu         sync.Mutex
	young, old map[digest]remembered
}

type remembered struct {
	identity Identity
	until    time.Time
}

func (v *verified) get(d digest, now time.Time) (Identity, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, ok := v.young[d]
	if !ok {
		r, ok = v.old[d]
	}
	if !ok || !now.Before(r.until) {
		return Identity{}, false
	}
	return r.identity, true
}

func (v *verified) put(d digest, r remembered) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.young == nil || len(v.young) >= maxVerified {
		v.young, v.old = make(map[digest]remembered), v.young
	}
	v.young[d] = r
}
