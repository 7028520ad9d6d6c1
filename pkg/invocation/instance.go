package invocation

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CID is an instance's id within its function and its rank in the pull order:
// CIDs are compared as strings, and the first one pulls first.
type CID string

// Epoch is that of the term in which an instance was named, with or without its revision before
// the term's CID; false for another name.
func (c CID) Epoch() (epoch uint64, ok bool) {
	parts := strings.Split(string(c), "-")
	at := len(parts) - 2
	if at > 0 && strings.HasPrefix(parts[at], "h") {
		at--
	}
	if at < 0 {
		return 0, false
	}
	// A bit less than there are, so that there are later ones.
	epoch, err := strconv.ParseUint(parts[at], 16, 63)
	if err != nil {
		return 0, false
	}
	return epoch, true
}

// Rank is an instance's place among those that could take a call. Schedulers and gateways rank alike.
type Rank struct {
	// NodeBusy says that more threads want to run on its node than there are cores.
	NodeBusy bool
	CID      CID
}

// Before reports whether an instance gets a call before another one: those of calm nodes come first, and then
// those with the alphabetically first CIDs.
func (r Rank) Before(other Rank) bool {
	if r.NodeBusy != other.NodeBusy {
		return other.NodeBusy
	}
	return r.CID < other.CID
}

// Term is the time in which one scheduler is responsible for a function.
type Term struct {
	// Epoch is that of the function's slot; 0 if it never had an owner.
	Epoch uint64
	// Standby is empty for the owner. A scheduler that acts for an unresponsive owner puts
	// its own name here, in hexadecimal digits, since both may create instances in one epoch.
	Standby string
}

// CID names the seq-th instance that was created in the term. The CIDs of a revision rise with
// epoch and sequence, so older instances pull first and the youngest become idle; those of a
// standby come last in their epoch. The same arguments always give the same name.
func (t Term) CID(seq uint64) CID {
	if t.Standby != "" {
		return CID(fmt.Sprintf("%08x-h%s-%06x", t.Epoch, t.Standby, seq))
	}
	return CID(fmt.Sprintf("%08x-%06x", t.Epoch, seq))
}

// LongCoreWait is how long a call waits for a core of its node until its instance's scheduler
// hears of it. Shorter waits are counted when the call has ended.
const LongCoreWait = 50 * time.Millisecond

// ShortCoreWait is the part of a wait for a core that nobody heard of while it lasted.
func ShortCoreWait(waited time.Duration) time.Duration { return max(0, min(waited, LongCoreWait)) }
