package scheduler

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// watchEvery is how often a watcher gets changes. watchBatch bounds the functions in one
// message, and watchBytes its bytes: the message is sent as soon as it reaches them, and so
// stays below twice that. A watcher accepts up to 4 MiB.
const (
	watchEvery = 500 * time.Millisecond
	watchBatch = 256
	watchBytes = 512 << 10
	// maxEventAge is the age beyond which events are not sent to a new watcher.
	maxEventAge = 30 * time.Second
)

// watcherState is what a watcher has received.
type watcherState struct {
	functions map[string]sentFacts
	pools     *controlwire.WarmPools
}

// sentFacts is what a watcher has received about one function.
type sentFacts struct {
	facts     facts
	lastEvent uint64
}

type watchServer = grpc.ServerStreamingServer[controlwire.WatchReply]

// Watch streams the facts of the functions in the scheduler's slots until the stream ends.
func (r *reporter) Watch(request *controlwire.WatchRequest, stream watchServer) error {
	welcome, err := r.shell.answerHello(request.GetHello())
	if err != nil {
		return err
	}
	known := &watcherState{functions: make(map[string]sentFacts)}
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for ; ; welcome = nil {
		if err := r.sendChanges(stream, known, welcome); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sendChanges sends what has changed for a watcher. With a welcome it sends at least that,
// which shows that the scheduler is alive.
func (r *reporter) sendChanges(stream watchServer, known *watcherState, welcome *controlwire.Welcome) error {
	b := batch{send: stream.Send, reply: &controlwire.WatchReply{Welcome: welcome}}
	if err := b.addPools(r.pools.poolFacts(), known); err != nil {
		return err
	}
	owned := make(map[string]bool, len(known.functions))
	for _, u := range r.shell.all() {
		if _, mine := r.shell.syncOwnership(u); !mine {
			continue
		}
		owned[u.uid] = true
		if news := r.changes(u, known.functions); news != nil {
			if err := b.addFunction(news); err != nil {
				return err
			}
		}
	}
	for uid := range known.functions {
		if !owned[uid] {
			delete(known.functions, uid)
			if err := b.addReleased(uid); err != nil {
				return err
			}
		}
	}
	if welcome != nil && !b.sent || b.bytes > 0 {
		return b.flush()
	}
	return nil
}

// batch is a message that is being filled. It is sent when it is full.
type batch struct {
	send  func(*controlwire.WatchReply) error
	reply *controlwire.WatchReply
	bytes int
	// sent says that an earlier message was sent.
	sent bool
}

// addPools adds the warm pools if something about them has changed.
func (b *batch) addPools(now *controlwire.WarmPools, known *watcherState) error {
	if now == nil || known.pools != nil && proto.Equal(now, known.pools) {
		return nil
	}
	known.pools, b.reply.WarmPools = now, now
	return b.flushIfFull(proto.Size(now))
}

func (b *batch) addFunction(news *controlwire.FunctionFacts) error {
	b.reply.Functions = append(b.reply.Functions, news)
	return b.flushIfFull(proto.Size(news))
}

func (b *batch) addReleased(uid string) error {
	b.reply.Released = append(b.reply.Released, uid)
	return b.flushIfFull(len(uid))
}

// flushIfFull sends the message if that many more bytes fill it.
func (b *batch) flushIfFull(bytes int) error {
	b.bytes += bytes + 8 // a tag and a length at most
	if b.bytes >= watchBytes || len(b.reply.GetFunctions()) == watchBatch {
		return b.flush()
	}
	return nil
}

func (b *batch) flush() error {
	full := b.reply
	b.reply, b.bytes, b.sent = &controlwire.WatchReply{}, 0, true
	return b.send(full)
}

// changes returns the changed facts of a function, or nil.
func (r *reporter) changes(u *unit, known map[string]sentFacts) *controlwire.FunctionFacts {
	before, seen := known[u.uid]
	now := r.facts(u)
	var notBefore time.Time
	if !seen {
		// Older events were probably sent to another watcher.
		notBefore = r.shell.deps.Now().Add(-maxEventAge)
	}
	happened, number := u.eventsSince(before.lastEvent, notBefore)
	known[u.uid] = sentFacts{now, number}
	if seen && now == before.facts && len(happened) == 0 {
		return nil
	}
	return now.wire(u, happened, r.shell.deps.Now())
}

// facts are the observed values of a function. They are comparable.
type facts struct {
	generation              int64
	creating, created, busy int
	queued                  int
	means                   estimate.Means
	unconfirmed, started    bool
	noRoom                  string
	problem                 string // its condition reason
	detail                  string
	since, retryAt          int64 // of the problem, in ns
}

func (r *reporter) facts(u *unit) facts {
	seen := r.shell.deps.Instances.Observe(u.uid)
	u.mu.Lock()
	view := u.core.View(r.shell.deps.Now())
	now := facts{
		generation: u.generation,
		// Those that the minimum lacks are wanted, too. If they were missing until the next tick,
		// a disruption budget would let another pod go for each that goes.
		creating: max(seen.Creating, u.core.MinAtLastDecision()-seen.Created),
		created:  seen.Created,
		busy:     min(view.Busy, seen.Created),
		queued:   view.Waiting,
		means:    u.core.Means().Round(10 * time.Microsecond),
		started:  u.stats.started,
		noRoom:   u.stats.noRoom,
	}
	u.mu.Unlock()
	_, now.unconfirmed = r.shell.deps.Ownership.Unconfirmed()
	if why := seen.Why; seen.Failing {
		now.problem, now.detail = why.Code, invocation.Excerpt(why.String())
		now.since, now.retryAt = why.At.UnixNano(), why.RetryAt.UnixNano()
	}
	return now
}

// wire converts the facts.
func (n facts) wire(u *unit, happened []*controlwire.Event, now time.Time) *controlwire.FunctionFacts {
	of := u.readOutline()
	w := &controlwire.FunctionFacts{
		FunctionUid: u.uid,
		Namespace:   of.key.Namespace,
		Name:        of.key.Name,
		Revision:    of.revision,
		Generation:  n.generation,
		Creating:    uint32(n.creating),
		Created:     uint32(n.created),
		Busy:        uint32(n.busy),
		Queued:      uint32(n.queued),
		MeanExecNs:  int64(n.means.Execution),
		MeanStartNs: int64(n.means.Start),
		NoCapacity:  n.noRoom,
		Unconfirmed: n.unconfirmed,
		Started:     n.started,
		Events:      happened,
	}
	if n.problem != "" {
		w.Problem = &controlwire.StartProblem{
			Reason: n.problem, Detail: n.detail,
			SinceNs: now.UnixNano() - n.since, RetryAfterNs: max(0, n.retryAt-now.UnixNano()),
		}
	}
	return w
}
