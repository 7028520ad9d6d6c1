package serve

import (
	"container/list"
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// maxWaiting is how many connections of clients are open at a time without a request. What has one
// is bounded by the handler. Each takes some 20 KB, and up to 64 KiB more while a head arrives.
const maxWaiting = 16_384

// waitingConns keeps the connections of clients that have no request: new ones, and those that wait
// for the next one.
type waitingConns struct {
	most   int
	closed prometheus.Counter

	mu    sync.Mutex // guards everything below
	count int
	from  map[netip.Prefix]*list.List // of *clientConn by network, who has waited longest first
}

func newWaitingConns(most int, reg prometheus.Registerer) *waitingConns {
	return &waitingConns{most: most, closed: registered(reg, httpClosedTotal.New()), from: make(map[netip.Prefix]*list.List)}
}

// accept adds a new connection. If there are too many, it returns those to close: of the network
// with the most, so that nobody keeps out others, those that have waited longest. Of several such
// networks chance decides.
func (w *waitingConns) accept(c *clientConn) (surplus []*clientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(c)
	for w.count > w.most {
		var most *list.List
		for _, all := range w.from {
			if most == nil || all.Len() > most.Len() {
				most = all
			}
		}
		longest := most.Front().Value.(*clientConn)
		w.removeLocked(longest)
		w.closed.Inc()
		surplus = append(surplus, longest)
	}
	return surplus
}

// add adds a connection whose requests are answered. It closes none: the end of the answer may not
// be written yet. So those that were answered since the last new connection come on top.
func (w *waitingConns) add(c *clientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(c)
}

func (w *waitingConns) addLocked(c *clientConn) {
	if c.waits != nil || c.ended {
		return
	}
	all := w.from[c.network]
	if all == nil {
		all = list.New()
		w.from[c.network] = all
	}
	c.waits = all.PushBack(c)
	w.count++
}

// dropBusy removes a connection that has a request. The server's states say so, not its handlers:
// in HTTP/2 a handler can begin after its request has ended.
func (w *waitingConns) dropBusy(c *clientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeLocked(c)
}

// dropClosed removes a connection for good.
func (w *waitingConns) dropClosed(c *clientConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.ended = true
	w.removeLocked(c)
}

func (w *waitingConns) removeLocked(c *clientConn) {
	if c.waits == nil {
		return
	}
	all := w.from[c.network]
	all.Remove(c.waits)
	c.waits = nil
	w.count--
	if all.Len() == 0 {
		delete(w.from, c.network)
	}
}

// networkOf is the address of an IPv4 client, or the /64 network of an IPv6 client, which can use every address in it.
func networkOf(addr net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(addr.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := at.Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	network, _ := ip.Prefix(bits) // never fails with these bits
	return network
}
