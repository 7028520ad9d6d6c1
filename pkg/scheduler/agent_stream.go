package scheduler

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/outbox"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const (
	// An instance may send a message each messageEvery, and messageBurst more at a time. Its agent does
	// not handle that many calls. It is not read for as long as it sends more.
	messageEvery = 100 * time.Microsecond
	messageBurst = 2000
)

var (
	errSilent   = status.Error(codes.Unavailable, "the instance was silent for too long")
	errReplaced = status.Error(codes.Aborted, "the instance has opened another stream")
	errOverflow = status.Error(codes.ResourceExhausted, "the instance did not read its replies")
)

// agentStream is the scheduler's end of an instance's stream. Its outbox holds everything that the
// instance can ask for. If an agent breaks the rules so that it overflows, its stream ends.
//
// A stream that is idle has one goroutine, its handler's, which also reads its connection: thousands
// of instances are idle.
type agentStream struct {
	shell   *shell
	key     provisioner.Key
	agent   agentInfo
	replies *outbox.Outbox[*agentwire.PullReply]
	server  pullServer // nil before startSending
	// end ends the stream, and why is the reason if the scheduler has ended it. ended is closed
	// when the stream has ended completely.
	end   ender
	why   atomic.Pointer[error]
	ended chan struct{}
	// silence ends the stream after silenceLimit without a message; silenceLimit is 0 if the
	// agent has not sent its interval.
	silence      *time.Timer
	silenceLimit time.Duration
}

// ender is what the transport of a stream can do beside what handlers see: it ends the stream by an
// error of gRPC, without waiting, so that a handler that waits for a message returns. Otherwise each
// stream would need a goroutine that waits beside the handler.
type ender interface{ End(why error) }

// prepare makes a stream ready, which end ends. It sends nothing before startSending.
func (p *agentStream) prepare(s *shell, key provisioner.Key, of agentInfo, end ender, buffer int) {
	p.shell, p.key, p.agent, p.end = s, key, of, end
	p.replies, p.ended = outbox.New[*agentwire.PullReply](buffer), make(chan struct{})
}

// serveMessages passes an instance's messages to handle until the stream ends, the instance falls
// silent, or it opens another stream. It then calls onEnd; orderly says that the instance ended
// the stream.
func (p *agentStream) serveMessages(handle func(*agentwire.PullRequest) error, onEnd func(orderly bool)) error {
	p.silence = time.AfterFunc(core.MaxSilence, func() { p.close(errSilent) })
	p.silence.Stop() // until it says how often it speaks
	orderly, err := p.receive(handle)
	p.silence.Stop()
	onEnd(orderly)
	p.shell.streams.unregister(p)
	if why := p.why.Load(); why != nil {
		p.logClosed(*why)
		return *why
	}
	return err
}

func (p *agentStream) logClosed(why error) {
	log := p.shell.deps.Log.With("cid", p.key.CID)
	if u := p.shell.lookup(p.key.FunctionUID); u != nil { // otherwise it is a spare one, or the function is gone
		log = log.With("function", u.readOutline().key.String())
	}
	log.Info("closing the stream of an instance", "err", why)
}

// startSending sends the replies that wait, and lets others follow.
func (p *agentStream) startSending(server pullServer) {
	p.server = server
	p.replies.SendBy(server.Send)
}

// receive reads the instance's messages until they end. orderly says that the instance ended
// them.
func (p *agentStream) receive(handle func(*agentwire.PullRequest) error) (orderly bool, err error) {
	begun, pace := time.Now(), sleep.Pace{Every: messageEvery, Burst: messageBurst}
	for {
		msg, err := p.server.Recv()
		if err != nil {
			return errors.Is(err, io.EOF), nil
		}
		p.resetSilence(msg)
		if err := handle(msg); err != nil {
			return false, err
		}
		if pause := pace.Next(time.Since(begun)); pause > 0 && !sleep.For(p.server.Context(), pause) {
			return false, nil
		}
	}
}

// close ends the stream. Only the first reason counts.
func (p *agentStream) close(err error) {
	if p.why.CompareAndSwap(nil, &err) {
		p.end.End(err) // means nothing if the stream has ended by itself
	}
}

// streams has one stream for each instance. An instance that opens another stream has lost the
// previous one, even if the scheduler has not noticed yet.
type streams struct {
	mu    sync.Mutex
	byKey map[provisioner.Key]*agentStream
}

// register ends the instance's previous stream, and returns once that has ended completely.
func (s *streams) register(p *agentStream) {
	s.mu.Lock()
	before := s.byKey[p.key]
	if s.byKey == nil {
		s.byKey = make(map[provisioner.Key]*agentStream)
	}
	s.byKey[p.key] = p
	s.mu.Unlock()
	if before != nil {
		before.close(errReplaced)
		<-before.ended
	}
}

func (s *streams) unregister(p *agentStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey[p.key] == p {
		delete(s.byKey, p.key)
	}
	close(p.ended)
}

// sendTo sends a reply to an instance, if it has a stream.
func (s *streams) sendTo(key provisioner.Key, reply *agentwire.PullReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.byKey[key]; p != nil {
		p.reply(reply)
	}
}

// resetSilence records that the instance is alive.
func (p *agentStream) resetSilence(msg *agentwire.PullRequest) {
	if ping := msg.GetPing(); ping != nil {
		p.silenceLimit = core.SilenceLimit(time.Duration(ping.GetEveryNs()))
	}
	if p.silenceLimit > 0 {
		p.silence.Reset(p.silenceLimit)
	}
}

// welcome accepts the instance and names the protocol.
func (p *agentStream) welcome(epoch uint64) {
	p.reply(&agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{
		Epoch: epoch, Protocol: p.agent.agreed.Protocol, Release: buildinfo.Version, Features: p.agent.agreed.Features,
	}}})
}

// pong answers every ping.
var pong = &agentwire.PullReply{Kind: &agentwire.PullReply_Pong{Pong: &agentwire.Pong{}}}

func (p *agentStream) pong() { p.reply(pong) }

func (p *agentStream) reply(reply *agentwire.PullReply) {
	if !p.replies.Put(reply) {
		p.close(errOverflow)
	}
}
