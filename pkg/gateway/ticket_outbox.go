package gateway

import (
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// maxBatch bounds the tickets of one message, and its reports.
const maxBatch = 1024

// outbox has the messages for a scheduler in order: a call that is cancelled and then offered
// again waits, one that is offered and then cancelled does not. The zero value is empty.
type outbox struct {
	offers  []*agentwire.Ticket
	cancels []*controlwire.Cancellation
	// reports are those on functions, by UID.
	reports map[string]*controlwire.LoanReport
	// sent is how many offers were sent. Until it is sent, a cancellation has how
	// many had been made in all before it.
	sent uint32
}

func (s *outbox) addOffer(t *agentwire.Ticket) { s.offers = append(s.offers, t) }

func (s *outbox) addCancel(w *controlwire.Cancellation) {
	w.AfterOffers = s.sent + uint32(len(s.offers))
	s.cancels = append(s.cancels, w)
}

// addReport replaces a report on the same function that was not sent yet.
func (s *outbox) addReport(r *controlwire.LoanReport) {
	if s.reports == nil {
		s.reports = make(map[string]*controlwire.LoanReport)
	}
	s.reports[r.GetFunctionUid()] = r
}

// takeReports takes some of the reports.
func (s *outbox) takeReports() (some []*controlwire.LoanReport) {
	for uid, r := range s.reports {
		if len(some) == maxBatch {
			break
		}
		some = append(some, r)
		delete(s.reports, uid)
	}
	return some
}

func (s *outbox) empty() bool { return len(s.offers)+len(s.cancels)+len(s.reports) == 0 }

// batch takes the next message.
func (s *outbox) batch() *controlwire.OfferRequest {
	n, m := min(maxBatch, len(s.offers)), 0
	for ; m < min(maxBatch, len(s.cancels)); m++ {
		w := s.cancels[m]
		if w.AfterOffers-s.sent > uint32(n) {
			break
		}
		w.AfterOffers -= s.sent
	}
	if m < len(s.cancels) {
		// No offer overtakes a cancellation that is left.
		n = min(n, int(s.cancels[m].AfterOffers-s.sent))
	}
	batch := &controlwire.OfferRequest{Offers: s.offers[:n:n], Cancellations: s.cancels[:m:m], Reports: s.takeReports()}
	s.offers, s.cancels, s.sent = s.offers[n:], s.cancels[m:], s.sent+uint32(n)
	return batch
}
