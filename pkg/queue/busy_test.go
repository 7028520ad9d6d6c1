package queue

import (
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Instances of busy nodes get tickets only if no instance of a calm one polls, and are in order
// again once their nodes are calm.
func TestInstancesOfBusyNodesComeLast(t *testing.T) {
	q := New(Limits{MaxWaiting: 9, ClaimGrace: time.Second})
	busy := map[invocation.CID]bool{"a": true, "c": true}
	cids := []invocation.CID{"a", "b", "c", "d"}
	handOut := func(first byte) (order []invocation.CID) {
		for i := range cids {
			ticket := invocation.Ticket{ID: invocation.ID{first + byte(i)}, Arrived: start, Deadline: start.Add(time.Minute)}
			if err := q.Offer(ticket, start); err != nil {
				t.Fatal(err)
			}
		}
		q.Match(start, false, func(to invocation.CID, t *invocation.Ticket, _ bool) {
			q.Done(to, t.ID)
			order = append(order, to)
		})
		return order
	}
	for _, cid := range cids {
		_ = q.Join(cid, 1)
		_ = q.Pull(cid, Pull{Credits: 1, NodeBusy: busy[cid], AwaitsCore: cid == "a"}, start)
	}
	if got := q.View(start).AwaitingCore; got != 1 {
		t.Errorf("%d await cores, want 1", got)
	}
	if got, want := handOut(1), []invocation.CID{"b", "d", "a", "c"}; !slices.Equal(got, want) {
		t.Errorf("handed out to %v, want %v", got, want)
	}
	for _, cid := range cids {
		_ = q.Pull(cid, Pull{Credits: 1, NodeBusy: busy[cid]}, start)
	}
	for _, cid := range cids { // while they poll
		_ = q.Pull(cid, Pull{NodeBusy: cid == "b"}, start)
	}
	if got, want := handOut(11), []invocation.CID{"a", "c", "d", "b"}; !slices.Equal(got, want) {
		t.Errorf("then handed out to %v, want %v", got, want)
	}
	if got := q.View(start).AwaitingCore; got != 0 {
		t.Errorf("%d await cores, want none", got)
	}
}
