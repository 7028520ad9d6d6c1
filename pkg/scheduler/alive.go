package scheduler

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// An instance that says how often it speaks is given up when it was silent for as
// long as silentTimes of that, at least shortestSilence and at most longestSilence,
// since it is the instance that says it.
const (
	silentTimes     = 4
	shortestSilence = time.Second
	longestSilence  = time.Minute
)

var (
	errSilent   = status.Error(codes.Unavailable, "nothing was heard of the instance for too long")
	errReplaced = status.Error(codes.Aborted, "the instance has opened another stream")
)

// attend takes an instance's messages until its stream ends, it falls silent, or it
// opens another stream.
func (p *pullStream) attend(server pullServer) error {
	p.silence = time.AfterFunc(longestSilence, func() { p.giveUp(errSilent) })
	p.silence.Stop() // until it says how often it speaks
	ended := make(chan error, 1)
	go func() {
		orderly, err := p.receive(server)
		p.silence.Stop()
		p.end(orderly)
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

// giveUp ends the stream, for the first reason.
func (p *pullStream) giveUp(err error) {
	select {
	case p.givenUp <- err:
	default:
	}
}

// streams are those of the instances, one each. An instance that opens another one
// has lost the one before, even if that is not known here yet.
type streams struct {
	mu sync.Mutex
	of map[provisioner.Key]*pullStream
}

// enter ends the stream before, and returns when nothing is left of it.
func (s *streams) enter(p *pullStream) {
	s.mu.Lock()
	before := s.of[p.key]
	if s.of == nil {
		s.of = make(map[provisioner.Key]*pullStream)
	}
	s.of[p.key] = p
	s.mu.Unlock()
	if before != nil {
		before.giveUp(errReplaced)
		<-before.over
	}
}

func (s *streams) leave(p *pullStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[p.key] == p {
		delete(s.of, p.key)
	}
	close(p.over)
}

// hear takes note that the instance is there.
func (p *pullStream) hear(msg *wirev1.PullRequest) {
	if ping := msg.GetPing(); ping != nil {
		every := min(time.Duration(ping.GetEveryNs()), longestSilence)
		p.maySleep = min(max(silentTimes*every, shortestSilence), longestSilence)
	}
	if p.maySleep > 0 {
		p.silence.Reset(p.maySleep)
	}
}

// welcome tells the instance that it was accepted.
func (p *pullStream) welcome(epoch uint64) {
	p.reply(&wirev1.PullReply{Kind: &wirev1.PullReply_Welcome{Welcome: &wirev1.Welcome{Epoch: epoch}}})
}

func (p *pullStream) pong() {
	p.reply(&wirev1.PullReply{Kind: &wirev1.PullReply_Pong{Pong: &wirev1.Pong{}}})
}
