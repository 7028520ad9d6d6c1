package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/queue"
)

var limits = queue.Limits{MaxWaiting: 1000, ClaimGrace: time.Second}

// worker is a sink that keeps what it is given.
type worker struct {
	tickets chan invoke.Ticket
	retired chan string
}

func newWorker(capacity int) *worker {
	return &worker{tickets: make(chan invoke.Ticket, capacity), retired: make(chan string, 1)}
}

func (w *worker) Deliver(t invoke.Ticket) {
	select {
	case w.tickets <- t:
	default:
		panic("more tickets than capacity")
	}
}
func (w *worker) Retire(reason string) { w.retired <- reason }

func (w *worker) Dismiss() { w.retired <- "dismissed" }

func newTicket(n int) invoke.Ticket {
	now := time.Now()
	return invoke.Ticket{ID: invoke.ID{byte(n >> 8), byte(n)}, Arrived: now, Deadline: now.Add(time.Hour)}
}

func anybody(Arrival) bool { return true }

// offer offers a ticket to a broker that must take it.
func offer(b *Broker, t invoke.Ticket) error {
	_, err := b.Offer(t, anybody)
	return err
}

func TestWaitingPullIsAnsweredByTheNextOffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, w := New(limits, time.Now), newWorker(1)
		if err := errors.Join(b.Join("a", 1, w), b.Pull("a", 1)); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute) // virtual: the pull waits meanwhile
			if err := offer(b, newTicket(7)); err != nil {
				t.Error(err)
			}
		}()
		if got := <-w.tickets; got.ID != newTicket(7).ID {
			t.Errorf("got %v", got.ID)
		}
	})
}

func TestEveryTicketIsRunOnceWhileInstancesComeAndGo(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { comeAndGo(t, seed) })
	}
}

// comeAndGo lets instances run tickets for random times and die at random
// moments, and counts how often each ticket was finished.
func comeAndGo(t *testing.T, seed uint64) {
	const tickets, capacity = 300, 2
	b := New(limits, time.Now)
	var finished [tickets]atomic.Int32
	var wg sync.WaitGroup
	left := atomic.Int32{}
	left.Store(tickets)

	instance := func(n int, r *rand.Rand) {
		for life := 0; left.Load() > 0; life++ {
			cid := invoke.CID(fmt.Sprintf("%03d-%03d", n, life))
			w := newWorker(capacity)
			if err := errors.Join(b.Join(cid, capacity, w), b.Pull(cid, capacity)); err != nil {
				t.Error(err)
				return
			}
			deathAt := time.After(time.Duration(r.IntN(2000)) * time.Millisecond)
			for alive := true; alive; {
				select {
				case got := <-w.tickets:
					time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond)
					finished[int(got.ID[0])<<8|int(got.ID[1])].Add(1)
					left.Add(-1)
					if err := b.Pull(cid, 1, got.ID); err != nil {
						t.Error(err)
					}
				case <-deathAt:
					alive = false
				}
			}
			b.Leave(cid)
		}
	}
	for n := range 8 {
		wg.Go(func() { instance(n, rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
	for n := range tickets {
		wg.Go(func() {
			time.Sleep(time.Duration(n) * time.Millisecond)
			if err := offer(b, newTicket(n)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for n := range finished {
		if got := finished[n].Load(); got != 1 {
			t.Fatalf("seed %d: ticket %d was finished %d times", seed, n, got)
		}
	}
	if v := b.View(); v.Waiting != 0 || v.Out != 0 || v.Instances != 0 {
		t.Fatalf("seed %d: left %+v", seed, v)
	}
}

func TestCloseRetiresRefusesAndReturnsWhatWaited(t *testing.T) {
	b, w := New(limits, time.Now), newWorker(1)
	if err := errors.Join(offer(b, newTicket(1)), offer(b, newTicket(2)), b.Join("a", 1, w)); err != nil {
		t.Fatal(err)
	}
	if left := b.Close("going away"); len(left) != 2 {
		t.Errorf("%d tickets returned, want 2", len(left))
	}
	if got := <-w.retired; got != "going away" {
		t.Errorf("retired because %q", got)
	}
	if err := offer(b, newTicket(3)); !errors.Is(err, ErrClosed) {
		t.Errorf("offer: %v", err)
	}
	if err := b.Join("b", 1, w); !errors.Is(err, ErrClosed) {
		t.Errorf("join: %v", err)
	}
}

func TestOfferTellsWhetherTicketsWait(t *testing.T) {
	b := New(limits, time.Now)
	if waiting, err := b.Offer(newTicket(1), anybody); !waiting || err != nil {
		t.Errorf("without an instance: %v, %v", waiting, err)
	}
	if err := errors.Join(b.Join("a", 2, newWorker(2)), b.Pull("a", 2)); err != nil {
		t.Fatal(err)
	}
	if waiting, err := b.Offer(newTicket(2), anybody); waiting || err != nil {
		t.Errorf("with an idle instance: %v, %v", waiting, err)
	}
}

func TestRefusalsAndLeaving(t *testing.T) {
	b, w := New(queue.Limits{MaxWaiting: 1, ClaimGrace: time.Second}, time.Now), newWorker(1)
	if err := offer(b, newTicket(1)); err != nil {
		t.Fatal(err)
	}
	if err := offer(b, newTicket(2)); !errors.Is(err, queue.ErrFull) {
		t.Errorf("a second ticket: %v", err)
	}
	b.Withdraw(newTicket(1).ID)
	if err := errors.Join(b.Join("a", 1, w), b.Pull("a", 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.Join("a", 1, w); !errors.Is(err, queue.ErrJoined) {
		t.Errorf("joined twice: %v", err)
	}
	b.Retire("a", "replaced")
	b.Retire("a", "again")
	if got := <-w.retired; got != "replaced" {
		t.Errorf("retired because %q", got)
	}
	answer, err := b.RequestLeave("a", 0, queue.LeavePolicy{IdleTimeout: time.Hour})
	if err != nil || !answer.Granted {
		t.Errorf("leave: %+v, %v", answer, err)
	}
	if err := b.Pull("a", 1); !errors.Is(err, queue.ErrUnknownInstance) {
		t.Errorf("pull after leaving: %v", err)
	}
	if got := b.Clear(); len(got) != 0 {
		t.Errorf("left %v", got)
	}
}

func TestOnlyNewTicketsAreAskedFor(t *testing.T) {
	b, w := New(limits, time.Now), newWorker(1)
	if err := errors.Join(b.Join("a", 1, w), b.Pull("a", 1), offer(b, newTicket(1)), offer(b, newTicket(2))); err != nil {
		t.Fatal(err)
	}
	var asked [][2]int
	full := func(a Arrival) bool {
		asked = append(asked, [2]int{a.Waiting, a.Out})
		return false
	}
	for n := 1; n <= 2; n++ {
		if _, err := b.Offer(newTicket(n), full); err != nil || asked != nil {
			t.Errorf("ticket %d, which is in: %v, asked %v", n, err, asked)
		}
	}
	if _, err := b.Offer(newTicket(3), full); !errors.Is(err, ErrNotAdmitted) || len(asked) != 1 || asked[0] != [2]int{1, 1} {
		t.Errorf("a new ticket: %v, asked %v, want once, with 1 that waits and 1 out", err, asked)
	}
}

func TestTicketThatIsGivenBackGoesToAnotherInstanceAtOnce(t *testing.T) {
	b, cutOff, other := New(queue.Limits{MaxWaiting: 10, ClaimGrace: time.Second, AvoidFor: time.Second}, time.Now), newWorker(1), newWorker(1)
	if err := errors.Join(b.Join("a", 1, cutOff), b.Pull("a", 1), offer(b, newTicket(1)), b.Join("b", 1, other), b.Pull("b", 1)); err != nil {
		t.Fatal(err)
	}
	b.GiveBack("a", (<-cutOff.tickets).ID)
	select {
	case got := <-other.tickets:
		if got.ID != newTicket(1).ID {
			t.Errorf("the other instance got %v", got.ID)
		}
	default:
		t.Error("the other instance got nothing")
	}
}

// A queue is quiet from the end of its last ticket, however that ended, until the
// next one.
func TestQuietIsTheTimeBetweenTickets(t *testing.T) {
	now := time.Unix(1000, 0)
	b, w := New(queue.Limits{MaxWaiting: 10, ClaimGrace: time.Second, AvoidFor: time.Second}, func() time.Time { return now }), newWorker(9)
	var quiet []time.Duration
	arrive := func(n int) {
		if _, err := b.Offer(newTicket(n), func(a Arrival) bool { quiet = append(quiet, a.Quiet); return true }); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(b.Join("a", 1, w), b.Pull("a", 1)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	arrive(1) // the first: nothing is known of a time before
	now = now.Add(time.Second)
	arrive(2) // while the first is out
	if err := b.Pull("a", 1, newTicket(1).ID); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if err := b.Pull("a", 1, newTicket(2).ID); err != nil {
		t.Fatal(err)
	}
	ended := now
	now = now.Add(2 * time.Second)
	if got := b.QuietSince(); !got.Equal(ended) {
		t.Errorf("quiet since %v, want %v", got, ended)
	}
	arrive(3)
	b.Leave("a")
	now = now.Add(time.Second)
	arrive(4)
	b.Withdraw(newTicket(3).ID)
	b.Clear()
	now = now.Add(3 * time.Second)
	arrive(5)
	if want := []time.Duration{0, 0, 2 * time.Second, 0, 3 * time.Second}; !slices.Equal(quiet, want) {
		t.Errorf("they came after %v of quiet, want %v", quiet, want)
	}
	if got := b.QuietSince(); !got.IsZero() {
		t.Errorf("quiet since %v with a ticket", got)
	}
	if left := b.Dismiss(); len(left) != 1 || !b.QuietSince().IsZero() {
		t.Errorf("%v were left, and it is quiet since %v where it is not known", left, b.QuietSince())
	}
}
