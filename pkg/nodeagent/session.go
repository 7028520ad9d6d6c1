package nodeagent

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/outbox"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// Why a stream ends.
var (
	errStopping = status.Error(codes.Unavailable, "the node agent stops")
	errReplaced = status.Error(codes.Aborted, "the instance has opened another stream")
	errOverflow = status.Error(codes.ResourceExhausted, "the agent does not read its replies")
	errTooMany  = status.Error(codes.ResourceExhausted, "too many agents are connected")
	errNoHello  = status.Error(codes.InvalidArgument, "the first message must be a hello")
	errLate     = status.Error(codes.DeadlineExceeded, "the hello did not come in time")
	errEndless  = status.Error(codes.Internal, "the server cannot end its streams")
)

// replyQueue is how many replies a stream holds that its agent has not read: those to one ask,
// and changes of mode and band for a while.
const replyQueue = 32

// session is an instance and its stream. The Agent's lock guards all that changes.
type session struct {
	id       callorder.InstanceID
	name     string
	key      string
	function functionKey
	class    callorder.Class
	ownSlice time.Duration // 0 for the node's
	group    Group
	mustAsk  bool
	// filler says that it is a pod without an agent. It hears nothing, and is never frozen.
	filler   bool
	waited   func() (time.Duration, error) // Instance.Waited
	openHold func() (Hold, error)          // Instance.OpenHold
	replies  *outbox.Outbox[*nodewire.ComputeReply]
	server   computeStream // nil for a filler, as are end and replies
	end      ender
	// why is the reason why the node agent ends the stream; nil if it does not.
	why error

	usage     time.Duration // at the last look
	lookedAt  time.Duration // when that was; before all others at first
	counted   time.Duration // usage of a batch instance that its metric has
	waitedFor time.Duration // at the last look of co-location
	ask, busy bool          // what the agent has heard last of its mode
	// sign is when the call that waits was asked for, or when its agent has heard last that it waits.
	sign time.Duration
	// low says where the core wants the instance, inLow where its group is, and failing that the
	// last move failed.
	low, inLow, failing bool
	// bandless says that its group has no bands.
	bandless bool
	call     askedCall
	// execution and cpuTime are the counters of its function; nil before its first call has ended.
	execution, cpuTime prometheus.Counter
}

// askedCall is the call that an instance has asked for last, until it ends.
type askedCall struct {
	ask uint64
	// waits says that it waits for its ticket since asked, and granted that it has got it.
	waits, granted bool
	asked          time.Duration
	// since and from are the time and the usage at its begin.
	since, from time.Duration
	// expected is the function's mean then; 0 if unknown.
	expected time.Duration
}

// ender is what the transport of a stream can do beside what handlers see: it ends the stream by an
// error of gRPC, without waiting, so that a handler that waits for a message returns. Otherwise each
// stream would need a goroutine that waits beside the handler.
type ender interface{ End(why error) }

// newSession returns a session that sends nothing before startSending.
func newSession(of Instance) *session {
	return &session{
		name: of.Name, key: of.Key, function: functionKey{of.Namespace, of.Function}, group: of.Group, mustAsk: of.MustAsk,
		waited: of.Waited, openHold: of.OpenHold, lookedAt: -1,
		replies: outbox.New[*nodewire.ComputeReply](replyQueue),
	}
}

// startSending sends the replies that wait, and lets others follow.
func (s *session) startSending() { s.replies.SendBy(s.server.Send) }

// look reads how much the instance has used, unless that is known of this moment. A group that is gone has used
// what it had.
func (s *session) look(now time.Duration) bool {
	if s.lookedAt == now {
		return true
	}
	usage, err := s.group.Usage()
	if err == nil {
		s.usage, s.lookedAt = max(s.usage, usage), now
	}
	return err == nil
}

// reply queues a reply. A stream whose queue is full ends.
func (s *session) reply(r *nodewire.ComputeReply) {
	if s.filler {
		return
	}
	if !s.replies.Put(r) {
		s.close(errOverflow)
	}
}

// setMode tells the agent whether the node is busy, and whether its calls need tickets, if that is new.
// Only calls of class Standard do.
func (s *session) setMode(busy, ask bool) {
	ask = ask && s.class == callorder.Standard
	if s.ask == ask && s.busy == busy {
		return
	}
	s.ask, s.busy = ask, busy
	s.reply(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Mode{Mode: &nodewire.Mode{Ask: ask, Busy: busy}}})
}

// close ends the stream. Only the first reason counts.
func (s *session) close(why error) {
	if s.why == nil && !s.filler {
		s.why = why
		s.end.End(why) // means nothing if the stream has ended by itself
	}
}
