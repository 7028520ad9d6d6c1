package gateway

import wirev1 "github.com/windlass-dev/windlass/api/wire/v1"

// maxBatch bounds the tickets of one message. With a request of maxRide in each it
// stays below wirev1.MaxMessage.
const maxBatch = 128

// said is what is to be sent to a scheduler, in the order in which it was said: a call
// that is withdrawn and offered again waits, one that is offered and withdrawn does
// not. Its zero value is empty.
type said struct {
	offers      []*wirev1.Ticket
	withdrawals []*wirev1.Withdrawal
	// taken is how many offers were sent. Until it is sent, a withdrawal has how
	// many had been made in all before it.
	taken uint32
}

func (s *said) offer(t *wirev1.Ticket) { s.offers = append(s.offers, t) }

func (s *said) withdraw(w *wirev1.Withdrawal) {
	w.AfterOffers = s.taken + uint32(len(s.offers))
	s.withdrawals = append(s.withdrawals, w)
}

// batch takes out the next message.
func (s *said) batch() *wirev1.OfferRequest {
	n, m := min(maxBatch, len(s.offers)), 0
	for ; m < min(maxBatch, len(s.withdrawals)); m++ {
		w := s.withdrawals[m]
		if w.AfterOffers-s.taken > uint32(n) {
			break
		}
		w.AfterOffers -= s.taken
	}
	if m < len(s.withdrawals) {
		// No offer overtakes a withdrawal that is left.
		n = min(n, int(s.withdrawals[m].AfterOffers-s.taken))
	}
	batch := &wirev1.OfferRequest{Offers: s.offers[:n:n], Withdrawals: s.withdrawals[:m:m]}
	s.offers, s.withdrawals, s.taken = s.offers[n:], s.withdrawals[m:], s.taken+uint32(n)
	return batch
}
