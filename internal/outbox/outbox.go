package outbox

import "sync/atomic"

// Outbox is the queue of one stream. All its methods are for any goroutine.
type Outbox[M any] struct {
	waiting chan M
	send    func(M) error
	// sending says that a goroutine sends, or that none may: before SendBy, and after send has failed.
	sending atomic.Bool
}

// New returns an outbox that holds up to size messages beside the one that is being sent. It sends nothing
// before SendBy.
func New[M any](size int) *Outbox[M] {
	o := &Outbox[M]{waiting: make(chan M, size)}
	o.sending.Store(true)
	return o
}

// SendBy sends what waits, and lets further messages follow, one at a time. Once send fails nothing is sent
// any more, and what is put waits for nobody. It is called once.
func (o *Outbox[M]) SendBy(send func(M) error) {
	o.send = send
	go o.sendWaiting()
}

// Put queues a message; it is false if there is no room.
func (o *Outbox[M]) Put(m M) bool {
	select {
	case o.waiting <- m:
	default:
		return false
	}
	if o.sending.CompareAndSwap(false, true) {
		go o.sendWaiting()
	}
	return true
}

// Hold lets what is put wait for Release. It is false if a goroutine sends at the moment, which then sends that as well:
// there must be no Release.
func (o *Outbox[M]) Hold() bool { return o.sending.CompareAndSwap(false, true) }

// Release sends what waits, in the caller's goroutine: for one that has put a message for its own peer, another goroutine
// is work for nothing. It returns once that is sent.
func (o *Outbox[M]) Release() { o.sendWaiting() }

// sendWaiting sends until nothing waits. A message that is put between the last look and the end of sending
// is sent by this goroutine or by a new one, as only one of both can set sending again.
func (o *Outbox[M]) sendWaiting() {
	for {
		select {
		case m := <-o.waiting:
			if o.send(m) != nil {
				return
			}
			continue
		default:
		}
		o.sending.Store(false)
		if len(o.waiting) == 0 || !o.sending.CompareAndSwap(false, true) {
			return
		}
	}
}
