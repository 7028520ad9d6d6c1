package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// talk is the stream of a pod's agent, which the harness speaks.
type talk struct {
	stream nodewire.Node_ComputeClient
	end    func()
	// asks says that the node agent wants calls to ask.
	asks atomic.Bool
	low  atomic.Bool
	// heard counts replies, and said messages.
	heard, said atomic.Int64
	n           uint64
	signs       chan *nodewire.ComputeReply // grants and Stills
	ended       chan struct{}

	mu       sync.Mutex
	runs     time.Time // when a call began that did not ask; zero for none
	reported bool      // the node agent knows of that call
}

// patience is how long an agent waits for a sign of the node agent, as the product's does.
const patience = 220 * time.Millisecond

// open opens a stream of a pod, on a connection of its own, with the hello that is given; what it does not say is
// honest.
func (p *tenantPod) open(says *nodewire.Hello) (*talk, error) {
	conn, err := p.dialer.Node(p.node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := nodewire.NewNodeClient(conn).Compute(ctx)
	if err == nil {
		err = stream.Send(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Hello{Hello: p.hello(says)}})
	}
	if err != nil {
		cancel()
		_ = conn.Close()
		return nil, err
	}
	t := &talk{stream: stream, signs: make(chan *nodewire.ComputeReply, 64), ended: make(chan struct{})}
	t.end = func() { cancel(); <-t.ended; _ = conn.Close() }
	go t.listen()
	return t, nil
}

// hello is what the pod's agent says first.
func (p *tenantPod) hello(says *nodewire.Hello) *nodewire.Hello {
	h := &nodewire.Hello{Token: p.token, Namespace: p.namespace, Function: p.function, Instance: p.name, Concurrency: 1, ProtocolMin: 1, ProtocolMax: 1}
	if says == nil {
		return h
	}
	h.Class, h.SliceNs = says.GetClass(), says.GetSliceNs()
	if says.GetFunction() != "" {
		h.Function = says.GetFunction()
	}
	if says.GetConcurrency() != 0 {
		h.Concurrency = says.GetConcurrency()
	}
	return h
}

func (t *talk) listen() {
	defer close(t.ended)
	for {
		r, err := t.stream.Recv()
		if err != nil {
			return
		}
		t.heard.Add(1)
		switch k := r.GetKind().(type) {
		case *nodewire.ComputeReply_Mode:
			t.asks.Store(k.Mode.GetAsk())
			if k.Mode.GetAsk() {
				t.reportRunning()
			}
		case *nodewire.ComputeReply_Low:
			t.low.Store(k.Low.GetLow())
		case *nodewire.ComputeReply_Grant, *nodewire.ComputeReply_Still:
			select {
			case t.signs <- r:
			default: // nobody waits
			}
		}
	}
}

func (t *talk) say(r *nodewire.ComputeRequest) {
	t.said.Add(1)
	_ = t.stream.Send(r) // an error ends the stream, and with it what its agent waits for
}

// reportRunning tells of a call that runs without having asked.
func (t *talk) reportRunning() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.runs.IsZero() {
		t.reported = true
		t.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Running{Running: &nodewire.Running{ForNs: int64(time.Since(t.runs))}}})
	}
}

// ask asks for a core and waits for it, as the product's agent does; claims says how long the call has
// waited before. granted is false if there was no sign of the node agent for too long.
func (t *talk) ask(claims time.Duration) (granted bool) {
	t.n++
	t.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: t.n, WaitedNs: int64(claims)}}})
	for {
		select {
		case r := <-t.signs:
			if r.GetGrant().GetAsk() == t.n {
				return true
			}
		case <-t.ended:
			return false
		case <-time.After(patience):
			return false
		}
	}
}

// endCall says that the call has ended.
func (t *talk) endCall(refused bool) {
	t.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ended{Ended: &nodewire.Ended{Refused: refused}}})
}

// call runs a call as an honest agent does. failedOpen says that it began without a core though it
// asked.
func (t *talk) call(p *tenantPod, cpu, sleep time.Duration) (failedOpen bool, err error) {
	if t.asks.Load() {
		failedOpen = !t.ask(0)
		err = p.work(cpu, sleep, 1)
		t.endCall(false)
		return failedOpen, err
	}
	t.mu.Lock()
	t.runs = time.Now()
	t.mu.Unlock()
	err = p.work(cpu, sleep, 1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported {
		t.endCall(false)
	}
	t.runs, t.reported = time.Time{}, false
	return false, err
}
