package gateway

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// inOrder is what a message says, in order.
func inOrder(t *testing.T, batch *controlwire.OfferRequest) (said []string) {
	t.Helper()
	if n, m := len(batch.GetOffers()), len(batch.GetCancellations()); n > maxBatch || m > maxBatch || n+m == 0 {
		t.Fatalf("a message has %d offers and %d cancellations", n, m)
	}
	left := batch.GetCancellations()
	for n := uint32(0); ; n++ {
		for len(left) > 0 && left[0].GetAfterOffers() == n {
			said, left = append(said, "cancel "+left[0].GetFunctionUid()), left[1:]
		}
		if int(n) == len(batch.GetOffers()) {
			break
		}
		said = append(said, "offer "+batch.GetOffers()[n].GetFunctionUid())
	}
	if len(left) > 0 {
		t.Fatalf("%d cancellations have no place", len(left))
	}
	return said
}

func TestL2WhatIsSaidIsSentInOrderHoweverItIsCutIntoMessages(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := outbox{sent: ^uint32(0) - 100} // which wraps around
		var want, got []string
		offers := r.IntN(10)
		for n := range 1000 {
			uid := fmt.Sprint(n)
			if r.IntN(10) < offers {
				s.addOffer(&agentwire.Ticket{FunctionUid: uid})
				want = append(want, "offer "+uid)
			} else {
				s.addCancel(&controlwire.Cancellation{FunctionUid: uid})
				want = append(want, "cancel "+uid)
			}
			if r.IntN(200) == 0 {
				got = append(got, inOrder(t, s.batch())...)
			}
		}
		for len(s.offers)+len(s.cancels) > 0 {
			got = append(got, inOrder(t, s.batch())...)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("seed %d: sent in another order", seed)
		}
	}
}
