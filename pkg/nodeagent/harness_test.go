package nodeagent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// machine is a node agent and the machine that it believes in. Tests use it in a bubble of
// synctest.
type machine struct {
	// keyIsToken says that tokens tell instances apart, whatever their functions are.
	keyIsToken bool
	*Agent
	t *testing.T

	mu       sync.Mutex
	runnable int
	loadErr  error
	loads    int // how often the load was read
	groups   map[string]*fakeGroup
	// holds are those that were opened last for each instance; nil for none.
	holds map[string]*fakeHold
}

// newMachine starts a node agent with two cores. It ends with the test.
func newMachine(t *testing.T, change func(*Config, *Deps)) *machine {
	t.Helper()
	m := &machine{t: t, groups: map[string]*fakeGroup{}}
	config := DefaultConfig(2)
	deps := Deps{Instances: m, Runnable: m.load, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	if change != nil {
		change(&config, &deps)
	}
	agent, err := New(config, deps)
	if err != nil {
		t.Fatal(err)
	}
	m.Agent = agent
	return m
}

// run runs the node agent until stop is called, which returns Run's error.
func (m *machine) run() (stop func() error) {
	ctx, cancel := context.WithCancel(m.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

func (m *machine) load() (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loads++
	return m.runnable, m.loadErr
}

// want sets how many threads want to run, and lets the node agent notice.
func (m *machine) want(runnable int) {
	m.mu.Lock()
	m.runnable = runnable
	m.mu.Unlock()
	m.pass(200 * time.Millisecond) // longer than a calm node agent takes to look, and to look again
}

// pass lets time pass.
func (m *machine) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Identify believes everybody whose token is the name of the instance.
func (m *machine) Identify(_ context.Context, hello Hello, _ net.Addr) (Instance, error) {
	switch hello.Token {
	case hello.Name:
	case "":
		return Instance{}, status.Error(codes.PermissionDenied, "no token")
	default:
		return Instance{}, errors.New("wrong token")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &fakeGroup{since: time.Now()}
	m.groups[hello.Name] = g
	key := hello.Namespace + "/" + hello.Function + "/" + hello.Name
	if m.keyIsToken {
		key = hello.Token
	}
	is := Instance{Namespace: hello.Namespace, Function: hello.Function, Name: hello.Name, Key: key, Group: g, MustAsk: true}
	if m.holds != nil {
		is.Waited, is.OpenHold = g.Waited, func() (Hold, error) { return m.openHold(hello.Name), nil }
	}
	return is, nil
}

func (m *machine) openHold(name string) *fakeHold {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holds[name] = &fakeHold{}
	return m.holds[name]
}

func (m *machine) hold(name string) *fakeHold {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds[name]
}

func (m *machine) group(name string) *fakeGroup {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.groups[name]
}

// fakeGroup computes while compute says so and it is not low, or something is left for it.
type fakeGroup struct {
	mu              sync.Mutex
	computes        bool
	leftover        bool
	low, closed     bool
	used            time.Duration
	since           time.Time
	fail            error // of SetLow
	usageFails      error
	waits           float64 // share of the time in which it waits
	waited          time.Duration
	lowered, lifted int
	reads           int // of Usage
}

// settle adds what was used since the last change.
func (g *fakeGroup) settle() {
	now := time.Now()
	if g.computes && (g.leftover || !g.low) {
		g.used += now.Sub(g.since)
	}
	g.waited += time.Duration(g.waits * float64(now.Sub(g.since)))
	g.since = now
}

func (g *fakeGroup) compute(computes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.computes = computes
}

// spare leaves something for the group in the low band.
func (g *fakeGroup) spare() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.leftover = true
}

// wait lets the group wait for a share of the time.
func (g *fakeGroup) wait(share float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.waits = share
}

func (g *fakeGroup) Waited() (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	return g.waited, nil
}

func (g *fakeGroup) failWith(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail = err
}

func (g *fakeGroup) Usage() (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	g.settle()
	return g.used, g.usageFails
}

// readCount is how often its usage was read.
func (g *fakeGroup) readCount() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reads
}

// lowerings is how often it was set low, or set low again.
func (g *fakeGroup) lowerings() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lowered
}

func (g *fakeGroup) SetLow(low bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		return g.fail
	}
	g.settle()
	g.low = low
	if low {
		g.lowered++
	} else {
		g.lifted++
	}
	return nil
}

func (g *fakeGroup) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	g.low, g.closed = false, true
	return nil
}

func (g *fakeGroup) state() (low, closed bool, used time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle()
	return g.low, g.closed, g.used
}

// fakeAgent is an agent and its stream.
type fakeAgent struct {
	grpc.ServerStream
	t        *testing.T
	ctx      context.Context //nolint:containedctx // a fake of gRPC's stream, which has one
	hangUp   context.CancelFunc
	requests chan *nodewire.ComputeRequest
	// stuck says that it does not read.
	stuck bool
	ended chan error

	mu      sync.Mutex
	replies []*nodewire.ComputeReply
}

func (p *fakeAgent) Context() context.Context { return p.ctx }

func (p *fakeAgent) Send(r *nodewire.ComputeReply) error {
	if p.stuck {
		<-p.ctx.Done()
		return p.ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replies = append(p.replies, r)
	return nil
}

func (p *fakeAgent) Recv() (*nodewire.ComputeRequest, error) {
	select {
	case r := <-p.requests:
		return r, nil
	case <-p.ctx.Done():
		return nil, context.Cause(p.ctx)
	}
}

// ending is the transport of a fake stream.
type ending struct {
	grpc.ServerTransportStream
	end context.CancelCauseFunc
}

func (e ending) End(why error) { e.end(why) }

// dial opens a stream and says nothing.
func (m *machine) dial(stuck bool) *fakeAgent {
	ctx, end := context.WithCancelCause(m.t.Context())
	cancel := func() { end(io.EOF) }
	ctx = grpc.NewContextWithServerTransportStream(ctx, ending{end: end})
	p := &fakeAgent{t: m.t, ctx: ctx, hangUp: cancel, requests: make(chan *nodewire.ComputeRequest, 100), stuck: stuck, ended: make(chan error, 1)}
	go func() {
		err := m.Compute(p)
		cancel() // as gRPC does when a handler returns
		p.ended <- err
	}()
	return p
}

// connect opens a stream of an instance and says hello.
func (m *machine) connect(name, function string) *fakeAgent {
	m.t.Helper()
	p := m.dial(false)
	p.hello(&nodewire.Hello{Token: name, Namespace: "ns", Function: function, Instance: name})
	synctest.Wait()
	return p
}

func (p *fakeAgent) hello(h *nodewire.Hello) {
	p.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Hello{Hello: h}})
}

func (p *fakeAgent) say(r *nodewire.ComputeRequest) {
	p.requests <- r
	synctest.Wait()
}

func (p *fakeAgent) ask(n uint64) {
	p.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: n}}})
}

func (p *fakeAgent) endCall() {
	p.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ended{Ended: &nodewire.Ended{}}})
}

func (p *fakeAgent) giveUp(n uint64) {
	p.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_GaveUp{GaveUp: &nodewire.GaveUp{Ask: n}}})
}

// heard returns what has come, in words, and forgets it.
func (p *fakeAgent) heard() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	words := []string{}
	for _, r := range p.replies {
		switch k := r.GetKind().(type) {
		case *nodewire.ComputeReply_Welcome:
			words = append(words, "welcome")
		case *nodewire.ComputeReply_Mode:
			word := "ask"
			switch {
			case !k.Mode.GetAsk() && k.Mode.GetBusy():
				word = "busy"
			case !k.Mode.GetAsk():
				word = "ask not"
			case !k.Mode.GetBusy():
				word = "ask on a calm node"
			}
			words = append(words, word)
		case *nodewire.ComputeReply_Grant:
			words = append(words, "grant "+string('0'+rune(k.Grant.GetAsk())))
		case *nodewire.ComputeReply_Still:
			words = append(words, "still")
		case *nodewire.ComputeReply_Low:
			words = append(words, map[bool]string{true: "low", false: "normal"}[k.Low.GetLow()])
		}
	}
	p.replies = nil
	return words
}

// counts are the calls, and sinceLook is how long ago the node agent has looked at its instances.
func (m *machine) counts() callorder.Counts {
	m.Agent.mu.Lock()
	defer m.Agent.mu.Unlock()
	return m.state.core.Counts()
}

func (m *machine) sinceLook() time.Duration {
	m.Agent.mu.Lock()
	defer m.Agent.mu.Unlock()
	return m.now() - m.state.looks.lookedAt
}

// readsIn is how often the usage of groups is read while time passes.
func (m *machine) readsIn(d time.Duration) int {
	sum := func() (n int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, g := range m.groups {
			n += g.readCount()
		}
		return n
	}
	before := sum()
	m.pass(d)
	return sum() - before
}

// occupants connects instances that have one call of 10 ms after the other while occupy
// runs.
func (m *machine) occupants(names ...string) (occupy func(time.Duration)) {
	agents := map[string]*fakeAgent{}
	for _, name := range names {
		agents[name] = m.connect(name, name)
		m.group(name).compute(true)
	}
	n := uint64(0)
	return func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); m.pass(10 * time.Millisecond) {
			n++
			for _, p := range agents {
				p.ask(n)
			}
		}
	}
}

// value is a series of a registry; -1 if it is not there.
func value(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			labels := ""
			for _, l := range s.GetLabel() {
				labels += l.GetValue()
			}
			if f.GetName() == name && labels == label {
				return s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
			}
		}
	}
	return -1
}

// sumOf is the sum of a histogram's observations.
func sumOf(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.GetMetric() {
			if f.GetName() == name {
				sum += s.GetHistogram().GetSampleSum()
			}
		}
	}
	return sum
}
