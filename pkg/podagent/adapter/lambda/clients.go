package lambda

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/webguard"
)

// headClient is how a runtime client of Windlass names itself: by a word that its process
// makes up as it begins, the same with every request. Who names itself so is served alone
// from its first request on, so that nobody else whom the function can be made to ask for
// a URL gets an event. It also promises to keep the connection on which it asked for an
// event until it has answered that, so that its end is the end of the process. To such a
// client the end of the instance is 204 where it waits.
const headClient = "Windlass-Client"

var errPresumedGone = errors.New("the function's process has ended, as it seems: all its connections to the Runtime API, which it keeps longer otherwise, broke before it answered")

// clients knows the runtime client: who it is, and how it treats its connections.
type clients struct {
	dispatcher *dispatcher

	mu     sync.Mutex
	asking bool   // the first request came
	client string // whom it named, by headClient; empty if any is served
	habit  habit
}

// habit is how a runtime client that promises nothing treats its connections. One that
// asks for an event and answers it on the same connection keeps it open meanwhile, at
// least for as long as the longest of its calls so far: an earlier break is the end of its
// process, not that of an idle connection. Others, such as curl in a script, close it
// whenever they have the event, and are never suspected.
type habit struct {
	// kept is for how long a connection was idle on which more came after an event.
	kept time.Duration
	// suspect is the call whose connection broke too soon.
	suspect string
}

// admit tells why a request is not one of the function's runtime.
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

// keptIdle takes note that a connection was kept.
func (k *clients) keptIdle(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.habit.kept = max(k.habit.kept, d)
}

// disconnected takes note that a connection ended, on which a call may have been handed
// out; left is how many there are still. Clients that run more calls at a time may close
// what they have too many of.
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
