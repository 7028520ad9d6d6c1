package callorder

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Order is the order in which waiting calls get core tickets.
type Order string

// Orders. E is the function's mean processor time on this node. While none of its calls has ended, E is
// the longest slice that one has outlived, 0 at first. r is when the node received the call.
const (
	// FIFO: by r.
	FIFO Order = "fifo"
	// SEPT, shortest expected processing time: by E.
	SEPT Order = "sept"
	// EECT, earliest expected completion time: by r + E.
	EECT Order = "eect"
	// RECT, recent expected completion time: by E plus when the function's previous call was
	// received; a function's first call goes first.
	RECT Order = "rect"
	// FairChoice: by E times the function's calls of the last minute.
	FairChoice Order = "fair-choice"
	// SERPT, shortest expected remaining processing time: by what is left of E, plus Aging
	// times r. It preempts if Params.Preempt.
	SERPT Order = "serpt"
	// None: every call gets its ticket at once; slices still count.
	None Order = "none"
)

// Orders returns all orders.
func Orders() []Order { return []Order{FIFO, SEPT, EECT, RECT, FairChoice, SERPT, None} }

// ParseOrder reads the name of an order.
func ParseOrder(name string) (Order, error) {
	if o := Order(name); slices.Contains(Orders(), o) {
		return o, nil
	}
	var names []string
	for _, o := range Orders() {
		names = append(names, string(o))
	}
	return "", fmt.Errorf("call order %q is unknown; use one of %s", name, strings.Join(names, ", "))
}

// SliceRule is how the slice of a call is found.
type SliceRule string

// Rules for slices.
const (
	// SliceOff: a ticket holds until its call ends or blocks.
	SliceOff SliceRule = "off"
	// SliceFixed: Slice.Length.
	SliceFixed SliceRule = "fixed"
	// SliceSFS: the mean time between the last 100 arrivals, times the cores; at least 6 ms,
	// and 20 ms at first (SFS, section 5.1).
	SliceSFS SliceRule = "sfs"
	// SliceP95: the 95th percentile of the last 100 processor times; no limit before (hybrid
	// scheduling, section 5.2).
	SliceP95 SliceRule = "p95"
	// SliceAuto: four times the function's mean, at least 20 ms. While none of its calls has
	// ended, four times the longest that one has outlived, at least SliceSFS.
	SliceAuto SliceRule = "auto"
)

// Slice is the processor time after which a call loses its ticket.
type Slice struct {
	Rule SliceRule
	// Length is more than 0 with SliceFixed, and 0 otherwise.
	Length time.Duration
}

// ParseSlice reads off, sfs, p95, auto, or a duration.
func ParseSlice(text string) (Slice, error) {
	switch rule := SliceRule(text); rule {
	case SliceOff, SliceSFS, SliceP95, SliceAuto:
		return Slice{Rule: rule}, nil
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		return Slice{}, fmt.Errorf("slice %q is unknown; use auto, sfs, p95, off, or a duration such as 50ms", text)
	}
	if length <= 0 {
		return Slice{}, fmt.Errorf("slice %s must be more than 0; use off for no slices", text)
	}
	return Slice{Rule: SliceFixed, Length: length}, nil
}

// String returns what ParseSlice reads.
func (s Slice) String() string {
	if s.Rule == SliceFixed {
		return s.Length.String()
	}
	return string(s.Rule)
}

// Params is what a core decides by.
type Params struct {
	// Cores is the number of core tickets, at least 1.
	Cores int
	Order Order
	Slice Slice
	// Aging is how much a waiting call gains by time with SERPT, in [0, 1]: with 0 it never
	// catches up with shorter ones, with 1 it waits no longer than its size more than FIFO.
	Aging float64
	// ByAge is the largest part of the tickets that goes by age if calls preempt, in (0, 1]; at
	// least one ticket does. The others go to the shortest calls, whatever has aged: in a long
	// overload, aged long calls would otherwise hold all tickets.
	ByAge float64
	// Outlived is how many cores are for calls that have outlived their slice while there are such, at
	// least 0 and fewer than Cores. Without one, those whose function is short wait for
	// all calls of long functions.
	Outlived int
	// OutlivedAge is the age of a call that has outlived its slice from which on it computes whatever waits, one
	// such call at a time; 0 for never. Where Outlived is 0, it would otherwise wait for the end of an overload.
	OutlivedAge time.Duration
	// Preempt lets a call take the ticket of one that has PreemptGain times as much left as
	// the new one needs, and more than PreemptLeast, unless that has it by age. Only SERPT
	// preempts: the keys of the other orders say nothing about what is left.
	Preempt      bool
	PreemptGain  float64
	PreemptLeast time.Duration
	// BlockedAfter is after how many samples without processor time a call is blocked, at
	// least 1; 0 means that calls never count as blocked.
	BlockedAfter int
	// Bypass is SFS's overload rule: a call that has waited Bypass slices begins in the low
	// band at once (O in the paper). 0 switches it off.
	Bypass float64
	// Unasked bounds what instances compute without a ticket.
	Unasked UnaskedParams
	// MaxFunctions bounds the functions whose means are kept, at least 1. Beyond, the ones
	// without instances whose calls are longest ago go first.
	MaxFunctions int
}

// DefaultParams returns what Windlass uses on a node with that many cores.
func DefaultParams(cores int) Params {
	return Params{
		Cores: cores, Order: SERPT, Slice: Slice{Rule: SliceAuto},
		Aging: 0.03, ByAge: 0.875, Outlived: cores / 8, OutlivedAge: 30 * time.Second, Preempt: true, PreemptGain: 2, PreemptLeast: 8 * time.Millisecond,
		BlockedAfter: 2, MaxFunctions: 4096,
		Unasked: UnaskedParams{
			Start: 5 * time.Second, Burst: 20 * time.Millisecond, Share: 0.02, Exempt: 100 * time.Millisecond, Renews: true, Above: 20 * time.Millisecond,
		},
	}
}

// preempts says whether calls take tickets of others.
func (p Params) preempts() bool { return p.Preempt && p.Order == SERPT }

// byAge is how many of these tickets go by age at most.
func (p Params) byAge(tickets int) int { return max(1, int(p.ByAge*float64(tickets))) }

// Validate says what is wrong with the params.
func (p Params) Validate() error {
	if _, err := ParseOrder(string(p.Order)); err != nil {
		return err
	}
	if _, err := ParseSlice(p.Slice.String()); err != nil {
		return err
	}
	switch {
	case p.Cores < 1:
		return fmt.Errorf("cores is %d; it must be at least 1", p.Cores)
	case !(p.Aging >= 0 && p.Aging <= 1):
		return fmt.Errorf("aging is %g; it must be from 0 to 1", p.Aging)
	case p.Outlived < 0 || p.Outlived >= p.Cores:
		return fmt.Errorf("cores for calls that have outlived their slice are %d; they must be at least 0 and fewer than the %d cores", p.Outlived, p.Cores)
	case p.OutlivedAge < 0:
		return fmt.Errorf("age from which on a call that has outlived its slice computes is %s; it must not be negative", p.OutlivedAge)
	case p.preempts() && !(p.ByAge > 0 && p.ByAge <= 1):
		return fmt.Errorf("part of the tickets that goes by age is %g; it must be more than 0 and at most 1", p.ByAge)
	case p.Preempt && !(p.PreemptGain >= 1):
		return fmt.Errorf("preemption gain is %g; it must be at least 1", p.PreemptGain)
	case p.PreemptLeast < 0:
		return fmt.Errorf("least remaining time to preempt is %s; it must not be negative", p.PreemptLeast)
	case p.BlockedAfter < 0:
		return fmt.Errorf("samples until a call is blocked is %d; it must not be negative", p.BlockedAfter)
	case !(p.Bypass >= 0):
		return fmt.Errorf("bypass is %g; it must not be negative", p.Bypass)
	case p.MaxFunctions < 1:
		return fmt.Errorf("functions to remember is %d; it must be at least 1", p.MaxFunctions)
	}
	return p.Unasked.validate()
}
