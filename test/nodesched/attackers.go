package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// longCall is what a call of the attackers' tenant computes.
const longCall = 200 * time.Millisecond

// attack is what a tenant's pod does to have more of the cores than it should, or to keep others from
// theirs. Its agent belongs to the attacker; its processor time is measured by the kernel.
type attack struct {
	name, what string
	// says is what is not honest of the hello.
	says *nodewire.Hello
	// fresh says that its pods have never had a call. Others have, so they are not taken for starting.
	fresh bool
	// like is the honest tenant that it is compared with, if not the first.
	like string
	// do is one round, which is repeated; n counts the rounds.
	do func(s *siege, p *tenantPod, n int) error
	// within says that the pod's process does that, since it is the attacker's agent that needs the processor.
	within bool
}

// attacks are all, with the honest neighbour as the first.
var attacks = []attack{
	{name: "honest", what: "calls of 200 ms, one after the other, by the rules", do: func(s *siege, p *tenantPod, _ int) error {
		_, err := p.talk.call(p, longCall, 0)
		return err
	}},
	{name: "honest_seldom", what: "calls of 50 ms with pauses, a fifth of a core in all, by the rules", do: func(_ *siege, p *tenantPod, _ int) error {
		_, err := p.talk.call(p, longCall/4, 0)
		time.Sleep(4 * longCall)
		return err
	}},
	{name: "class", what: "says LatencyCritical without the right to, and asks for nothing", says: &nodewire.Hello{Class: "LatencyCritical"}, do: spin},
	{name: "unasked", what: "asks for nothing, and computes", do: spin},
	{name: "slice", what: "wants a slice of an hour", says: &nodewire.Hello{SliceNs: int64(time.Hour)}, do: func(s *siege, p *tenantPod, _ int) error {
		_, err := p.talk.call(p, longCall, 0)
		return err
	}},
	{name: "waited", what: "says that each call has waited a minute", do: func(s *siege, p *tenantPod, _ int) error {
		p.talk.ask(time.Minute)
		err := p.work(longCall, 0, 1)
		p.talk.endCall(false)
		return err
	}},
	{name: "waited_seldom", what: "the same, with calls of 50 ms and pauses", like: "honest_seldom", do: func(s *siege, p *tenantPod, _ int) error {
		p.talk.ask(time.Minute)
		err := p.work(longCall/4, 0, 1)
		p.talk.endCall(false)
		time.Sleep(4 * longCall)
		return err
	}},
	{name: "done", what: "says that a call has ended when it begins", do: func(s *siege, p *tenantPod, _ int) error {
		p.talk.ask(0)
		p.talk.endCall(false)
		return p.work(longCall, 0, 1)
	}},
	{name: "done_short", what: "the same, in pieces that are shorter than what may be computed unasked", do: func(s *siege, p *tenantPod, _ int) error {
		p.talk.ask(0)
		p.talk.endCall(false)
		return p.work(90*time.Millisecond, 0, 1)
	}},
	{name: "refused", what: "says that each call was another instance's", do: func(s *siege, p *tenantPod, _ int) error {
		p.talk.ask(0)
		err := p.work(longCall, 0, 1)
		p.talk.endCall(true)
		return err
	}},
	{name: "keeps", what: "never says that its call has ended", do: func(s *siege, p *tenantPod, n int) error {
		if n == 0 {
			p.talk.ask(0)
		}
		return p.work(longCall, 0, 1)
	}},
	{name: "holds", what: "keeps its ticket and hardly computes, but never looks blocked", do: func(s *siege, p *tenantPod, _ int) error {
		p.talk.ask(0)
		err := p.work(200*time.Microsecond, 3*time.Millisecond, 20)
		p.talk.endCall(false)
		return err
	}},
	{name: "splits", what: "has a new function for each call", do: func(s *siege, p *tenantPod, n int) error {
		if err := s.rejoin(p, &nodewire.Hello{Function: fmt.Sprintf("f%d-%s", n, p.name)}); err != nil {
			return err
		}
		_, err := p.talk.call(p, longCall, 0)
		return err
	}},
	{name: "rejoins", what: "asks for nothing, and comes again whenever it is low", do: func(s *siege, p *tenantPod, _ int) error {
		if p.talk.low.Load() {
			if err := s.rejoin(p, nil); err != nil {
				return err
			}
		}
		return p.work(20*time.Millisecond, 0, 1)
	}},
	{name: "rejoins_always", what: "asks for nothing, and comes again each 50 ms", do: func(s *siege, p *tenantPod, _ int) error {
		if err := s.rejoin(p, nil); err != nil {
			return err
		}
		return p.work(50*time.Millisecond, 0, 1)
	}},
	{name: "asks", what: "asks without a call, as fast as it can", within: true, do: func(s *siege, p *tenantPod, n int) error {
		for range 1000 {
			p.talk.n++
			p.talk.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: p.talk.n}}})
		}
		return s.alive(p)
	}},
	{name: "strangers", what: "opens streams with the victim's name and no token of it, as fast as it can", within: true, do: func(s *siege, p *tenantPod, _ int) error {
		return s.pose(p)
	}},
	{name: "silent", what: "opens thousands of streams that say nothing", within: true, do: func(s *siege, p *tenantPod, n int) error {
		return s.crowd(p, n)
	}},
	{name: "starts", what: "has pods that never had a call, and compute", fresh: true, do: spin},
	{name: "concurrency", what: "says that it runs two calls at a time, and asks for nothing", says: &nodewire.Hello{Concurrency: 2}, do: spin},
}

// spin computes without asking.
func spin(_ *siege, p *tenantPod, _ int) error { return p.work(50*time.Millisecond, 0, 1) }

// rejoin opens a new stream for a pod. The node agent ends the one before.
func (s *siege) rejoin(p *tenantPod, says *nodewire.Hello) error {
	t, err := p.open(says)
	if err != nil {
		return err
	}
	p.talk.end()
	p.talk = t
	return nil
}

// alive opens a pod's stream again if the node agent has ended it.
func (s *siege) alive(p *tenantPod) error {
	select {
	case <-p.talk.ended:
		return s.rejoin(p, nil)
	default:
		return nil
	}
}

// pose says hello as the victim.
func (s *siege) pose(p *tenantPod) error {
	posing := *s.victims[0]
	posing.token = p.token // the attacker's
	for range 100 {
		t, err := posing.open(nil)
		if err != nil {
			return err
		}
		<-t.ended
		if t.heard.Load() > 0 {
			s.welcomed.Add(1)
		}
		t.end()
	}
	return nil
}

// silentStreams is how many connections each pod opens whose stream says nothing: all together more than a node agent
// keeps that have proven nothing.
const silentStreams = 320

// from is the address of the attacker's pods, which in a cluster have others than those of their neighbours.
var from = net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}

// crowd opens a connection with a stream that says nothing, and keeps it until the siege ends.
func (s *siege) crowd(_ *tenantPod, n int) error {
	if n >= silentStreams {
		time.Sleep(20 * time.Millisecond)
		return nil
	}
	conn, err := grpc.NewClient(s.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return from.DialContext(ctx, "tcp", addr) }))
	if err != nil {
		return err
	}
	s.keep(conn)
	if _, err := nodewire.NewNodeClient(conn).Compute(s.ctx); err != nil && !errors.Is(err, io.EOF) && status.Code(err) != codes.Unavailable {
		return err
	}
	return nil
}
