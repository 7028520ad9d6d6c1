package scheduler

import (
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

var (
	errSilent   = status.Error(codes.Unavailable, "the instance was silent for too long")
	errReplaced = status.Error(codes.Aborted, "the instance has opened another stream")
	errOverflow = status.Error(codes.ResourceExhausted, "the instance did not read its replies")
)

// agentStream is the scheduler's end of an instance's stream. Replies go into a buffer that
// holds everything that the instance can ask for. If an agent breaks the rules so that the
// buffer overflows, its stream ends.
type agentStream struct {
	scheduler *host
	key       provisioner.Key
	agent     agentInfo
	replies   chan *agentwire.PullReply
	// closing takes the reason why the scheduler ends the stream, and over is closed when the
	// stream has ended completely.
	closing chan error
	ended   chan struct{}
	// silence ends the stream after silenceLimit without a message; silenceLimit is 0 if the
	// agent has not sent its interval.
	silence      *time.Timer
	silenceLimit time.Duration
}

func newAgentStream(s *host, key provisioner.Key, of agentInfo, buffer int) agentStream {
	return agentStream{
		scheduler: s, key: key, agent: of, replies: make(chan *agentwire.PullReply, buffer),
		closing: make(chan error, 1), ended: make(chan struct{}),
	}
}

// serve passes an instance's messages to handle until the stream ends, the instance falls
// silent, or it opens another stream. It then calls end; orderly says that the instance ended
// the stream.
func (p *agentStream) serveMessages(server pullServer, handle func(*agentwire.PullRequest) error, end func(orderly bool)) error {
	p.silence = time.AfterFunc(core.MaxSilence, func() { p.close(errSilent) })
	p.silence.Stop() // until it says how often it speaks
	ended := make(chan error, 1)
	go func() {
		orderly, err := p.receive(server, handle)
		p.silence.Stop()
		end(orderly)
		p.scheduler.streams.unregister(p)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case err := <-p.closing: // receive ends with the stream, which ends here
		p.scheduler.deps.Log.Info("the stream of an instance is given up", "err", err, "cid", p.key.CID)
		return err
	}
}

// sendReplies sends what the buffer holds until the stream ends.
func (p *agentStream) sendReplies(server pullServer) {
	for {
		select {
		case <-server.Context().Done():
			return
		case reply := <-p.replies:
			if server.Send(reply) != nil {
				return // the stream has ended, which receive sees
			}
		}
	}
}

// receive reads the instance's messages until they end. orderly says that the instance ended
// them.
func (p *agentStream) receive(server pullServer, handle func(*agentwire.PullRequest) error) (orderly bool, err error) {
	for {
		msg, err := server.Recv()
		if err != nil {
			return errors.Is(err, io.EOF), nil
		}
		p.resetSilence(msg)
		if err := handle(msg); err != nil {
			return false, err
		}
	}
}

// close ends the stream. Only the first reason counts.
func (p *agentStream) close(err error) {
	select {
	case p.closing <- err:
	default:
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
	select {
	case p.replies <- reply:
	default:
		p.close(errOverflow)
	}
}
