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
	errSilent   = status.Error(codes.Unavailable, "nothing was heard of the instance for too long")
	errReplaced = status.Error(codes.Aborted, "the instance has opened another stream")
	errOverflow = status.Error(codes.ResourceExhausted, "the instance did not take its replies")
)

// line is the scheduler's end of an instance's stream. Replies are only put into a
// buffer that holds all that the instance can ask for; should an agent break the rules
// so that it overflows, its stream ends.
type line struct {
	scheduler *host
	key       provisioner.Key
	agent     speaker
	replies   chan *agentwire.PullReply
	// givenUp takes why the scheduler ends the stream, and over is closed when
	// nothing is left of it.
	givenUp chan error
	over    chan struct{}
	// silence ends the stream once it has lasted for maySleep; 0 if the instance
	// has not said how often it speaks.
	silence  *time.Timer
	maySleep time.Duration
}

func newLine(s *host, key provisioner.Key, of speaker, buffer int) line {
	return line{
		scheduler: s, key: key, agent: of, replies: make(chan *agentwire.PullReply, buffer),
		givenUp: make(chan error, 1), over: make(chan struct{}),
	}
}

// attend hands an instance's messages to handle until its stream ends, it falls
// silent, or it opens another stream. Then it calls end with whether it was the
// instance that ended it.
func (p *line) attend(server pullServer, handle func(*agentwire.PullRequest) error, end func(orderly bool)) error {
	p.silence = time.AfterFunc(core.MaxSilence, func() { p.giveUp(errSilent) })
	p.silence.Stop() // until it says how often it speaks
	ended := make(chan error, 1)
	go func() {
		orderly, err := p.receive(server, handle)
		p.silence.Stop()
		end(orderly)
		p.scheduler.streams.leave(p)
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case err := <-p.givenUp: // receive ends with the stream, which ends here
		p.scheduler.deps.Log.Info("the stream of an instance is given up", "err", err, "cid", p.key.CID)
		return err
	}
}

// send sends what the buffer holds until the stream ends.
func (p *line) send(server pullServer) {
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

// receive reads the instance's messages until they end, and tells whether the
// instance ended them.
func (p *line) receive(server pullServer, handle func(*agentwire.PullRequest) error) (orderly bool, err error) {
	for {
		msg, err := server.Recv()
		if err != nil {
			return errors.Is(err, io.EOF), nil
		}
		p.hear(msg)
		if err := handle(msg); err != nil {
			return false, err
		}
	}
}

// giveUp ends the stream, for the first reason.
func (p *line) giveUp(err error) {
	select {
	case p.givenUp <- err:
	default:
	}
}

// streams are those of the instances, one each. An instance that opens another one
// has lost the one before, even if that is not known here yet.
type streams struct {
	mu sync.Mutex
	of map[provisioner.Key]*line
}

// enter ends the stream before, and returns when nothing is left of it.
func (s *streams) enter(p *line) {
	s.mu.Lock()
	before := s.of[p.key]
	if s.of == nil {
		s.of = make(map[provisioner.Key]*line)
	}
	s.of[p.key] = p
	s.mu.Unlock()
	if before != nil {
		before.giveUp(errReplaced)
		<-before.over
	}
}

func (s *streams) leave(p *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[p.key] == p {
		delete(s.of, p.key)
	}
	close(p.over)
}

// tell sends something to an instance, if it has a stream.
func (s *streams) tell(key provisioner.Key, reply *agentwire.PullReply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.of[key]; p != nil {
		p.reply(reply)
	}
}

// hear takes note that the instance is there.
func (p *line) hear(msg *agentwire.PullRequest) {
	if ping := msg.GetPing(); ping != nil {
		p.maySleep = core.SilenceLimit(time.Duration(ping.GetEveryNs()))
	}
	if p.maySleep > 0 {
		p.silence.Reset(p.maySleep)
	}
}

// welcome tells the instance that it was accepted, and what is spoken with it.
func (p *line) welcome(epoch uint64) {
	p.reply(&agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{
		Epoch: epoch, Protocol: p.agent.agreed.Protocol, Release: buildinfo.Version, Features: p.agent.agreed.Features,
	}}})
}

// pong answers every ping.
var pong = &agentwire.PullReply{Kind: &agentwire.PullReply_Pong{Pong: &agentwire.Pong{}}}

func (p *line) pong() { p.reply(pong) }

func (p *line) reply(reply *agentwire.PullReply) {
	select {
	case p.replies <- reply:
	default:
		p.giveUp(errOverflow)
	}
}
