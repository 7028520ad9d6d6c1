package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// platform runs instances: an agent and a function that the story plays.
type platform struct {
	world *harness
	// agents are the programs that run.
	agents sync.WaitGroup

	mu        sync.Mutex
	instances []*instance
	answers   map[int]chan answer
	// halted says that no more instances are started.
	halted bool
}

// instance is one that was started, by a program or, in a recording, by a fake peer.
type instance struct {
	action
	started time.Time
	alive   bool
	holder  *runtime // hears of its end; nil while nobody does
	stop    context.CancelCauseFunc
}

// answer is what a function answers.
type answer struct{ how, text string }

func newPlatform(w *harness) *platform {
	return &platform{world: w, answers: make(map[int]chan answer)}
}

// end ends all agents.
func (p *platform) end() {
	p.mu.Lock()
	p.halted = true
	for _, in := range p.instances {
		if in.stop != nil {
			in.stop(errStopped)
		}
	}
	p.mu.Unlock()
	p.agents.Wait()
}

var errStopped = errors.New("SIGTERM")

// add notes an instance, and runs its agent if that is real.
func (p *platform) add(d action, holder *runtime) {
	w := p.world
	p.mu.Lock()
	in := &instance{action: d, started: time.Now(), alive: true, holder: holder}
	p.instances = append(p.instances, in)
	if in.Agent == "" {
		in.Agent = fmt.Sprintf("agent-%d", len(p.instances))
	}
	halted := p.halted
	p.mu.Unlock()
	if holder != nil {
		w.did(in.action)
	}
	if !w.real(in.Agent) || halted {
		return
	}
	ctx, stop := context.WithCancelCause(context.Background())
	in.stop = stop
	f := &function{platform: p, agent: in.Agent}
	deps := podagent.Deps{
		Adapter: f, Dialer: podagent.Dialer{Schedulers: w.network.as(in.Agent), Dial: w.network.dialAs(in.Agent)}, Log: silent,
	}
	if in.Spare {
		deps.Spare = f
	} else {
		f.name = w.functionOf(in.UID).Name
	}
	agent := podagent.New(w.agentConfig(in.action), deps)
	p.agents.Go(func() {
		_ = agent.Run(ctx)
		w.did(action{Role: in.Agent, What: ended, Agent: in.Agent})
		p.over(in.Agent)
	})
}

// functionOf is the unit of that UID, or nil.
func (w *harness) functionOf(uid string) *v1alpha1.Function { return w.units[uid] }

func (w *harness) agentConfig(d action) agentenv.Config {
	if d.Spare {
		return agentenv.Config{
			Spare: true, Token: d.Token, Owner: w.network.addrs[d.Role], Scheduler: w.network.addrs[schedulerB], StartupTimeout: time.Minute,
		}
	}
	fn := w.functionOf(d.UID)
	return agentenv.Config{
		FunctionUID: d.UID, Function: fn.Key().String(), Revision: d.Revision, CID: d.CID, Token: d.Token,
		Owner: w.network.addrs[d.Role], Scheduler: w.network.addrs[schedulerB],
		Concurrency: int(fn.Spec.Template.Concurrency), StartupTimeout: fn.Spec.Template.StartupTimeout.Duration,
		BackoffAfter: v1alpha1.BackoffAfter, IdleTimeout: max(fn.Spec.Scaling.ScaleDown.IdleTimeout.Duration-v1alpha1.BackoffAfter, time.Second),
	}
}

// over says that an agent has ended, by its role.
func (p *platform) over(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.Agent == agent && in.alive {
			in.alive = false
			if in.holder != nil {
				in.holder.exits <- provisioner.Exit{FunctionUID: in.UID, CID: invocation.CID(in.CID), Reason: "the agent has ended"}
			}
		}
	}
}

// identify is the provisioner's Identify.
func (p *platform) identify(proof string) (provisioner.Key, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.Token == proof {
			return provisioner.Key{FunctionUID: in.UID, CID: invocation.CID(in.CID)}, nil
		}
	}
	return provisioner.Key{}, provisioner.ErrUnknownInstance
}

// verify is the provisioner's Verify.
func (p *platform) verify(key provisioner.Key, proof string) error {
	if of, err := p.identify(proof); err != nil || of != key {
		return provisioner.ErrBadToken
	}
	return nil
}

// runtime starts instances for one scheduler.
type runtime struct {
	platform *platform
	role     string
	exits    chan provisioner.Exit
}

func (p *platform) runtimeOf(role string) *runtime {
	return &runtime{platform: p, role: role, exits: make(chan provisioner.Exit, 100)}
}

func (r *runtime) Start(spec provisioner.InstanceSpec) {
	fn := spec.Function
	r.platform.add(action{
		Role: r.role, What: started, UID: string(fn.UID), Revision: fn.Revision(), CID: string(spec.CID), Token: spec.Token,
		Spare: r.platform.world.functionOf(string(fn.UID)) == nil,
	}, r)
}

// takeTime is how long it takes to take a spare instance.
const takeTime = 10 * time.Millisecond

func (r *runtime) Assign(poolUID string, cid invocation.CID, spec provisioner.InstanceSpec, told func(provisioner.AssignResult)) bool {
	p := r.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.UID == poolUID && in.CID == string(cid) && in.alive {
			time.AfterFunc(takeTime, func() {
				now := action{
					Role: r.role, What: taken, Agent: in.Agent,
					UID: string(spec.Function.UID), Revision: spec.Function.Revision(), CID: string(spec.CID),
				}
				p.world.did(now)
				p.take(now)
				told(provisioner.AssignTaken)
			})
			return true
		}
	}
	return false
}

// take makes a spare instance a function's.
func (p *platform) take(d action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.Agent == d.Agent {
			in.UID, in.Revision, in.CID, in.Spare = d.UID, d.Revision, d.CID, false
		}
	}
}

func (r *runtime) Stop(uid string, cid invocation.CID, _ bool) {
	p := r.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.UID == uid && in.CID == string(cid) && in.alive {
			go p.world.did(action{Role: r.role, What: stopped, Agent: in.Agent})
			if in.stop != nil {
				in.stop(errStopped)
			}
		}
	}
}

// stop ends an agent by its role.
func (p *platform) stop(agent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.Agent == agent && in.stop != nil {
			in.stop(errStopped)
		}
	}
}

func (r *runtime) Exits() <-chan provisioner.Exit { return r.exits }

func (r *runtime) Adopt(fn *v1alpha1.Function) (found []provisioner.Existing) {
	p := r.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.UID == string(fn.UID) && in.alive {
			in.holder = r
			found = append(found, provisioner.Existing{CID: invocation.CID(in.CID), Revision: in.Revision, Node: "n", Started: in.started, Ran: true})
		}
	}
	return found
}

func (r *runtime) Release(uid string) {
	p := r.platform
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.instances {
		if in.UID == uid && in.holder == r {
			in.holder = nil
		}
	}
}

// answer lets a function answer a call.
func (p *platform) answer(call int, a answer) { p.answersTo(call) <- a }

func (p *platform) answersTo(call int) chan answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answers[call] == nil {
		p.answers[call] = make(chan answer, 1)
	}
	return p.answers[call]
}

// function is what an agent calls. It answers as the story says.
type function struct {
	platform    *platform
	agent, name string
}

// callHeader has the number of a call.
const callHeader = "X-Call"

// readyAfter is how long a function takes to become ready, if it does.
const readyAfter = 300 * time.Millisecond

// neverReady is the name of a function that cannot start.
const neverReady = "never"

func (f *function) WaitReady(ctx context.Context) error {
	select {
	case <-time.After(readyAfter):
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.name == neverReady {
		return errors.New("it exited")
	}
	return nil
}

// WaitRuntime and Assign are those of a runtime that waits for its function.
func (f *function) WaitRuntime(ctx context.Context) error { return f.WaitReady(ctx) }

func (f *function) Assign(to adapter.Assignment) error {
	f.platform.world.did(action{
		Role: f.agent, What: assigned, Agent: f.agent,
		Said: fmt.Sprintf("%s/%s, %d at a time, %d files, %d variables", to.Namespace, to.Function, to.Concurrency, len(to.Files), len(to.Variables)),
	})
	return to.Validate()
}

func (f *function) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	body, err := io.ReadAll(call.Body)
	if err != nil {
		return adapter.Ended(ctx, call)
	}
	n := number(call.Header.Get(callHeader))
	f.platform.world.did(action{
		Role: f.agent, What: invoked, Agent: f.agent, Call: n, Said: fmt.Sprintf("%s %s %q", call.Method, call.RequestURI, body),
	})
	select {
	case a := <-f.platform.answersTo(n):
		return a.write(w)
	case <-ctx.Done():
		return adapter.Ended(ctx, call)
	}
}

func (a answer) write(w adapter.ResultWriter) error {
	head := adapter.Head{Status: http.StatusOK, Header: invocation.Fields{{Name: "Content-Type", Value: "text/plain"}}, ContentLength: int64(len(a.text))}
	switch a.how {
	case "break":
		return adapter.ErrFunctionLost
	case "stream":
		head.ContentLength = -1
	}
	if err := w.WriteHead(head); err != nil {
		return err
	}
	if a.how == "stream" {
		for range 2 {
			if _, err := io.WriteString(w, a.text); err != nil {
				return err
			}
			<-time.After(100 * time.Millisecond)
		}
		return nil
	}
	_, err := io.WriteString(w, a.text)
	return err
}
