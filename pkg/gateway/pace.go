package gateway

import (
	"errors"
	"time"
)

const (
	// bodyGrace is how long a body may stand still, and what one that has come
	// fast may stand still later.
	bodyGrace = 10 * time.Second
	// bodyRate is how many bytes a second it must have in the long run.
	bodyRate = 1 << 10
)

// errTooSlow says that a body came so slowly that it was given up.
var errTooSlow = errors.New("it came too slowly")

// pace is how long one may still wait for a body. Only waiting counts, and not
// what its reader does in between. Its zero value has all the grace.
type pace struct{ spent time.Duration }

// left is how long may be waited for the next bytes.
func (p pace) left() time.Duration { return bodyGrace - p.spent }

// after is the pace when n more bytes have come after some waiting.
func (p pace) after(n int, waited time.Duration) pace {
	return pace{max(0, p.spent+waited-allowance(int64(n)))}
}

// allowance is how long so many bytes may take.
func allowance(n int64) time.Duration { return time.Duration(n) * time.Second / bodyRate }
