package lambda

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/webguard"
)

// headClient is the header by which a runtime client of Windlass identifies itself: a random
// word that its process picks at its start and sends with every request. From its first
// request on, the server serves no other client, so that a function tricked into fetching
// a URL (SSRF) cannot steal an event. Such a client also keeps the connection on which it asked
// for an event until it has answered, so that the end of the connection is the end of the
// process. Its waiting request gets 204 when the instance ends.
const headClient = "Windlass-Client"

var errPresumedGone = errors.New("the function's process has ended, as it seems: all its connections to the Runtime API, which it keeps longer otherwise, broke before it answered")

// clients identifies the runtime client, and knows how it treats its connections.
type clients struct {
	dispatcher *dispatcher

	mu     sync.Mutex
	asking bool   // the first request came
	client string // whom it named, by headClient; empty if any is served
	habit  habit
}

// habit is how any other runtime client treats its connections. A client that answers on the
// connection on which it asked for the event has kept it open at least as long as its longest
// call so far: if a connection breaks earlier, the process has probably ended. Clients such
// as curl in a script close it as soon as they have the event, and are never suspected.
type habit struct {
	// kept is the longest idle time of a connection that was used again after an event.
	kept time.Duration
	// suspect is the call whose connection broke too soon.
	suspect string
}

// admit returns why a request does not come from the function's runtime, or nil.
func (k *clients) admit(r *http.Request) *refusal {
	if !webguard.NamesThisMachine(r.Host) || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return &refusedStranger
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.asking {
		k.asking, k.client = true, r.Header.Get(headClient)
	}
	if k.client != "" && k.client != r.Header.Get(headClient) {
		return &refusedStranger
	}
	return nil
}

// connected says that the client lives.
func (k *clients) connected() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.habit.suspect = ""
}

// keptIdle records that a connection was kept.
func (k *clients) keptIdle(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.habit.kept = max(k.habit.kept, d)
}

// disconnected records the end of a connection, on which a call may have been handed out; left
// is how many are still open. Clients that run several calls at a time may close surplus
// connections.
func (k *clients) disconnected(last *handout, left int64) {
	if last != nil && last.promised {
		k.dispatcher.clientGone(last.id)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if last != nil && k.dispatcher.concurrency() == 1 && time.Since(last.at) < k.habit.kept {
		k.habit.suspect = last.id
	}
	if left == 0 && k.dispatcher.presumeGone(k.habit.suspect) {
		k.habit.suspect = ""
	}
}
