package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// The trace attacks has a victim, whose calls of 8 ms come at random to four pods and want a third of the
// core, and a tenant of another namespace, whose four pods compute as much as they can. An attack is
// without effect if the victim's calls take no longer than beside the same tenant when it is honest, and
// never longer than on a node that does not order its calls.
const (
	victimPods  = 4
	attackers   = 4
	victimCall  = 8 * time.Millisecond
	victimRate  = 40.0 // calls a second
	attackFor   = 6 * time.Second
	settling    = 1500 * time.Millisecond // until the node is busy, and sizes are known
	attackRatio = 1.2
)

// siege is one attack on one victim.
type siege struct {
	addr    string
	victims []*tenantPod
	ctx     context.Context //nolint:containedctx // that of streams which are kept until the siege ends
	// welcomed counts those that were taken for somebody else.
	welcomed atomic.Int64

	mu   sync.Mutex
	pods []*tenantPod
	kept []*grpc.ClientConn // beside those of pods
	// spinning are processes that do not end by themselves, and creds and token what pods prove with who they are;
	// without them the node agent is the harness's own.
	spinning []*tenantPod
	creds    credentials.TransportCredentials
	token    func(*tenantPod) (string, error)
}

func (s *siege) keep(c *grpc.ClientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, c)
}

// harm is what an attack did.
type harm struct {
	took       []float64 // by the victim's calls, in seconds
	failedOpen int
	errors     int
	welcomed   int64
	// newcomer is how long a pod that comes during the attack waits for its welcome.
	newcomer time.Duration
	// part is the part of the core that the attackers had, and agent that of the node agent.
	part, agent float64
}

func (h *harm) add(o harm) {
	h.took = append(h.took, o.took...)
	h.failedOpen += o.failedOpen
	h.errors += o.errors
	h.welcomed += o.welcomed
	h.newcomer = max(h.newcomer, o.newcomer)
	h.part += o.part
	h.agent += o.agent
}

// measureAttacks lets tenants attack in turn, and compares each attack with the honest tenant.
func measureAttacks(out io.Writer, self, temp string, p plan) error {
	chosen := attacks
	if p.only != "" {
		chosen = nil
		for _, a := range attacks {
			if strings.HasPrefix(a.name, "honest") || slices.Contains(strings.Split(p.only, ","), a.name) {
				chosen = append(chosen, a)
			}
		}
	}
	all, off := map[string]*harm{}, map[string]*harm{}
	for i := range p.seeds {
		for _, a := range chosen {
			h, err := runAttack(self, temp, "busy", a, p.first+uint64(i))
			if err != nil {
				return fmt.Errorf("attack %s: %w", a.name, err)
			}
			without, err := runAttack(self, temp, "calm", a, p.first+uint64(i))
			if err != nil {
				return fmt.Errorf("attack %s without an order: %w", a.name, err)
			}
			fmt.Fprintf(out, "attacks_run=%s seed=%d p99_ms=%.1f p50_ms=%.1f failed_open=%d attackers_cores=%.2f node_agent_cores=%.3f newcomer_ms=%.0f off_p99_ms=%.1f off_p50_ms=%.1f\n", a.name, p.first+uint64(i),
				1e3*percentile(h.took, 99), 1e3*percentile(h.took, 50), h.failedOpen, h.part, h.agent, h.newcomer.Seconds()*1e3,
				1e3*percentile(without.took, 99), 1e3*percentile(without.took, 50))
			if all[a.name] == nil {
				all[a.name], off[a.name] = &harm{}, &harm{}
			}
			all[a.name].add(h)
			off[a.name].add(without)
		}
	}
	var problems error
	for _, a := range chosen {
		h, without := all[a.name], off[a.name]
		honest := percentile(all[cmp.Or(a.like, attacks[0].name)].took, 99)
		p99, rounds := percentile(h.took, 99), float64(p.seeds)
		verdict := "met"
		if !(p99 <= attackRatio*honest) || p99 > attackRatio*percentile(without.took, 99) {
			verdict = "MISSED"
		}
		fmt.Fprintf(out, "attacks_%s=%.2f goal<=%g %s p99_ms=%.1f p50_ms=%.1f off_p99_ms=%.1f off_p50_ms=%.1f calls=%d failed_open=%d attackers_cores=%.2f node_agent_cores=%.3f newcomer_ms=%.0f posed=%d what=%q\n",
			a.name, p99/honest, attackRatio, verdict, 1e3*p99, 1e3*percentile(h.took, 50), 1e3*percentile(without.took, 99), 1e3*percentile(without.took, 50),
			len(h.took), h.failedOpen, h.part/rounds, h.agent/rounds, h.newcomer.Seconds()*1e3, h.welcomed, a.what)
		if h.errors+int(h.welcomed) > 0 {
			problems = errors.Join(problems, fmt.Errorf("%s: %d calls failed, and %d streams were taken for another pod's", a.name, h.errors, h.welcomed))
		}
	}
	return problems
}

// runAttack lets a tenant attack for a while on a node that takes itself for busy, or for calm: then it
// orders no calls.
func runAttack(self, temp, load string, a attack, seed uint64) (h harm, err error) {
	n, err := startOwnNode(self, temp, load)
	if err != nil {
		return h, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &siege{addr: n.addr, ctx: ctx}
	var evil []*tenantPod
	defer func() {
		cancel()
		err = errors.Join(err, s.stop(), n.stop())
	}()
	for i := range victimPods {
		p, err := s.join(n, self, "shop", "cart", fmt.Sprint("cart-", i), attacks[0])
		if err != nil {
			return h, err
		}
		s.victims = append(s.victims, p)
	}
	for i := range attackers {
		p, err := s.join(n, self, "evil", "hog", fmt.Sprint("hog-", i), a)
		if err != nil {
			return h, err
		}
		if !a.fresh {
			p.talk.ask(0)
			p.talk.endCall(false)
		}
		evil = append(evil, p)
	}
	stopping, stop := context.WithCancel(ctx)
	var attacking sync.WaitGroup
	failed := make(chan error, attackers)
	for _, p := range evil {
		attacking.Go(func() {
			var err error
			for n := 0; stopping.Err() == nil && err == nil; n++ {
				if a.within {
					err = s.within(p, a)
				} else {
					err = a.do(s, p, n)
				}
			}
			failed <- err
		})
	}
	s.suffer(rand.New(rand.NewPCG(seed, 19)), settling)
	before, agentBefore, began := usedBy(evil), processTimeOf(n), time.Now()
	h = s.suffer(rand.New(rand.NewPCG(seed, 17)), attackFor)
	took := time.Since(began).Seconds()
	h.part = (usedBy(evil) - before).Seconds() / took
	h.agent = (processTimeOf(n) - agentBefore).Seconds() / took
	h.newcomer, err = s.newcomer(n, self)
	stop()
	attacking.Wait()
	for range evil {
		err = errors.Join(err, <-failed)
	}
	h.welcomed = s.welcomed.Load()
	return h, err
}

func usedBy(pods []*tenantPod) (sum time.Duration) {
	for _, p := range pods {
		sum += p.used()
	}
	return sum
}

func processTimeOf(n *ownNode) time.Duration {
	used, _ := processTime(n.agent.Process.Pid)
	return used
}

// join makes a pod whose agent says hello as the attack wants it.
func (s *siege) join(n *ownNode, self, namespace, function, name string, a attack) (*tenantPod, error) {
	p, err := n.startPod(self, namespace, function, name)
	if err != nil {
		return nil, err
	}
	return p, s.enter(p, n.addr, a.says)
}

// enter opens the stream of a pod to a node agent.
func (s *siege) enter(p *tenantPod, addr string, says *nodewire.Hello) (err error) {
	p.node = addr
	if s.token != nil {
		p.dialer.Nodes = s.creds
		if p.token, err = s.token(p); err != nil {
			return err
		}
	}
	if p.talk, err = p.open(says); err != nil {
		return err
	}
	s.pods = append(s.pods, p)
	return nil
}

// newcomer is how long a new pod waits for its welcome.
func (s *siege) newcomer(n *ownNode, self string) (time.Duration, error) {
	p, err := n.startPod(self, "shop", "new", "new-0")
	if err != nil {
		return 0, err
	}
	return s.welcome(p, n.addr)
}

// welcome is how long a pod waits for its welcome, from when its agent dials; a second after the hello if there is none.
func (s *siege) welcome(p *tenantPod, addr string) (time.Duration, error) {
	began := time.Now()
	if err := s.enter(p, addr, nil); err != nil {
		return 0, err
	}
	for said := time.Now(); time.Since(said) < time.Second && p.talk.heard.Load() == 0; {
		if err := s.alive(p); err != nil {
			return 0, err
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(began), nil
}

// suffer makes the victim's calls for a time.
func (s *siege) suffer(rng *rand.Rand, length time.Duration) harm {
	return s.load(rng, victimRate, victimCall, length)
}

// load makes calls of the victims that come at random, so many a second.
func (s *siege) load(rng *rand.Rand, rate float64, size, length time.Duration) (h harm) {
	free := make(chan *tenantPod, len(s.victims))
	for _, p := range s.victims {
		free <- p
	}
	var mu sync.Mutex
	var calling sync.WaitGroup
	began := time.Now()
	for at := rng.ExpFloat64() / rate; at < length.Seconds(); at += rng.ExpFloat64() / rate {
		due := began.Add(seconds(at))
		time.Sleep(time.Until(due))
		calling.Go(func() {
			p := <-free
			failedOpen, err := p.talk.call(p, size, 0)
			took := time.Since(due).Seconds()
			free <- p
			mu.Lock()
			defer mu.Unlock()
			h.took = append(h.took, took)
			if failedOpen {
				h.failedOpen++
			}
			if err != nil {
				h.errors++
			}
		})
	}
	calling.Wait()
	return h
}

// stop ends all streams and pods.
func (s *siege) stop() (err error) {
	for _, p := range s.spinning {
		_ = p.cmd.Process.Kill()
	}
	for _, p := range s.pods {
		p.talk.end()
		p.stop()
	}
	for _, c := range s.kept {
		err = errors.Join(err, c.Close())
	}
	for _, p := range s.spinning {
		p.stop()
	}
	return err
}
