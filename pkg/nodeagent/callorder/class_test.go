package callorder

import (
	"fmt"
	"testing"
	"time"
)

func (n *node) joinAs(class Class, ids ...InstanceID) {
	for _, id := range ids {
		want := ""
		if class == Batch {
			want = fmt.Sprintf("v%d batch", id)
		}
		n.do(want, Joined{Instance: id, Namespace: "default", Function: fmt.Sprint("f", id), Class: class})
	}
}

func TestLatencyCriticalCallsNeitherWaitNorYield(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Slice = FIFO, Slice{SliceFixed, 10 * ms} })
	n.join(1)
	n.joinAs(LatencyCritical, 2, 3)
	n.do("+1", Asked{Instance: 1})
	n.do("+2", Asked{Instance: 2})
	n.do("", Running{Instance: 3})
	n.do("", Sampled{Instance: 2, Usage: 1000 * ms})
	n.do("", Sampled{Instance: 3, Usage: 1000 * ms})
	if got := n.core.Counts(); got != (Counts{Holding: 1}) {
		t.Errorf("%+v, want one call with a ticket", got)
	}
	n.do("", Left{Instance: 2})
}

func TestBatchInstancesAreLowAtAllTimes(t *testing.T) {
	n := newNode(t, func(p *Params) {})
	n.joinAs(Batch, 1)
	n.do("+1", Asked{Instance: 1}) // an agent need not, but may
	n.do("", Ended{Instance: 1, Usage: 5 * ms})
	n.do("", ModeChanged{})
	n.do("", ModeChanged{Busy: true})
	if got := n.core.AppendLow(nil); len(got) != 1 {
		t.Errorf("low: %v, want the batch instance", got)
	}
	n.do("^1 ended", Left{Instance: 1})
}

func TestCoresThatLatencyCriticalInstancesUseHaveNoTickets(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Cores, p.Slice = FIFO, 3, Slice{SliceFixed, 10 * ms} })
	n.join(1, 2, 3, 4)
	n.do("", Occupied{Cores: 1})
	n.do("+1", Asked{Instance: 1})
	n.do("+2", Asked{Instance: 2})
	n.do("", Asked{Instance: 3})
	n.do("+3", Occupied{})
	// Calls that have tickets keep them. When they end, fewer get one.
	n.do("", Occupied{Cores: 2})
	n.do("", Asked{Instance: 4})
	n.do("", Ended{Instance: 1, Usage: ms})
	n.do("", Ended{Instance: 2, Usage: ms})
	n.do("+4", Ended{Instance: 3, Usage: ms})
	// One ticket is always there, whatever others use.
	n.do("", Asked{Instance: 1})
	n.do("", Occupied{Cores: 7})
	n.do("+1", Ended{Instance: 4, Usage: ms})
}

func TestCallsThatOutlivedTheirSliceLeaveTheCoresOfLatencyCriticalOnes(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Cores, p.Slice = FIFO, 2, Slice{SliceFixed, 10 * ms} })
	n.join(1, 2)
	n.do("+1", Asked{Instance: 1})
	n.do("+2", Asked{Instance: 2})
	n.do("v1 slice, ^1 idle-core", Sampled{Instance: 1, Usage: 10 * ms})
	n.do("v1 slice", Occupied{Cores: 1})
	n.do("^1 idle-core", Occupied{})
	n.do("v1 slice", Occupied{Cores: 1})
	n.do("^1 idle-core", Ended{Instance: 2, Usage: ms})
}

func TestAnOwnSliceOnlyShortensThatOfTheNode(t *testing.T) {
	for own, want := range map[time.Duration]string{20 * ms: "v1 slice, +2", 500 * ms: "", 0: ""} {
		n := newNode(t, func(p *Params) { p.Order, p.Slice = FIFO, Slice{SliceFixed, 50 * ms} })
		n.do("", Joined{Instance: 1, Namespace: "default", Function: "f", Slice: own})
		n.join(2)
		n.do("+1", Asked{Instance: 1})
		n.do("", Asked{Instance: 2})
		n.do(want, Sampled{Instance: 1, Usage: 20 * ms})
		if want == "" {
			n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 50 * ms})
		}
	}
}

func TestAnOwnSliceHoldsWhereTheNodeHasNone(t *testing.T) {
	n := newNode(t, func(p *Params) { p.Order, p.Slice = FIFO, Slice{Rule: SliceOff} })
	n.do("", Joined{Instance: 1, Namespace: "default", Function: "f", Slice: 20 * ms})
	n.join(2)
	n.do("+1", Asked{Instance: 1})
	n.do("", Asked{Instance: 2})
	n.do("v1 slice, +2", Sampled{Instance: 1, Usage: 20 * ms})
}
