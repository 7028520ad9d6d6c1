package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/bench"
	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/proctime"
)

// Config says what the programs are.
type Config struct {
	// Self is the windlass program, Agent the agent's, and Peer that of package peers, as
	// absolute paths.
	Self, Agent, Peer string
	// Progress is called before servers start, and before each measurement.
	Progress func(text string)
}

const (
	// callTimeout bounds each call.
	callTimeout = time.Minute
	// Where clients hang up, each call is held for that long, and given up within that: while it
	// waits for an instance, while it runs, and while it is answered.
	held         = 2 * time.Millisecond
	hangUpWithin = 20 * time.Millisecond
)

// Run carries out a plan, and returns its measurements in their order.
func Run(ctx context.Context, c Config, plan bench.Plan) ([]bench.Measurement, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "windlass-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &runner{Config: c, plan: plan, site: site{spawner: make(spawner), self: c.Self, agent: c.Agent, peer: c.Peer, dir: dir}}
	go r.site.run()
	defer close(r.site.spawner)
	if r.site.authority, err = NewAuthority(); err != nil {
		return nil, err
	}
	if r.load, err = r.site.spawner.start(c.Peer, peers.LoadArgument); err != nil {
		return nil, err
	}
	defer r.load.stop()
	var all []bench.Measurement
	for group := range plan.Groups {
		measured, err := r.group(ctx, group)
		if err != nil {
			return nil, err
		}
		all = append(all, measured...)
	}
	return all, nil
}

type runner struct {
	Config
	plan bench.Plan
	site site
	load *child
}

// group measures one group, whose programs it starts and stops.
func (r *runner) group(ctx context.Context, n int) (_ []bench.Measurement, err error) {
	group := r.plan.Groups[n]
	function, ready, err := r.site.worker(ctx, r.site.peer, peers.FunctionArgument)
	if err != nil {
		return nil, err
	}
	defer function.stop()
	r.site.function, r.site.functionProcess = ready, process{part: bench.PartFunction, pid: function.cmd.Process.Pid}
	servers := map[bench.Server]*server{}
	defer func() {
		var stopping sync.WaitGroup
		for _, s := range servers {
			stopping.Go(s.stop)
		}
		stopping.Wait()
	}()
	for _, of := range group.Servers() {
		r.Progress(fmt.Sprintf("group %d of %d (%s): starting %s", n+1, len(r.plan.Groups), group.Suite, of.Path))
		if servers[of], err = r.site.start(ctx, of); err != nil {
			delete(servers, of)
			return nil, err
		}
	}
	var all []bench.Measurement
	for _, step := range r.plan.Steps(n) {
		r.Progress(fmt.Sprintf("group %d of %d (%s): round %d of %d, %s, %s",
			n+1, len(r.plan.Groups), group.Suite, step.Round, r.plan.Rounds, step.Scenario.Name(), step.Path))
		m, err := r.measure(ctx, step, servers[bench.ServerOf(step.Scenario, step.Path)])
		if err != nil {
			return nil, fmt.Errorf("%s on the path %s: %w", step.Scenario.Name(), step.Path, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// memoryRound is the round in which programs are asked what they allocated: it takes a moment
// more, and differs little from round to round.
const memoryRound = 1

// measure carries out one step.
func (r *runner) measure(ctx context.Context, step bench.Step, on *server) (bench.Measurement, error) {
	s := step.Scenario
	drive := loadgen.Drive{
		Body: s.Request, Connections: s.Connections, Rate: float64(s.Rate), Span: r.plan.Span, Timeout: callTimeout,
	}
	hold := ""
	if s.HangUp {
		drive.HangUpWithin = hangUpWithin
		hold = fmt.Sprintf("&%s=%d", peers.HoldParameter, held.Microseconds())
	}
	for _, url := range on.urls {
		drive.URLs = append(drive.URLs, fmt.Sprintf("%s?%s=%d%s", url, peers.AnswerParameter, s.Answer, hold))
	}
	if _, err := r.order(ctx, peers.Order{Drive: &drive}); err != nil {
		return bench.Measurement{}, err
	}
	var driven loadgen.Driven
	load := r.load.cmd.Process.Pid
	clientBefore, err := proctime.CPU(load)
	if err != nil {
		return bench.Measurement{}, err
	}
	used, err := on.usedBy(ctx, step.Round == memoryRound, func() (err error) {
		driven, err = r.order(ctx, peers.Order{})
		return err
	})
	if err != nil {
		return bench.Measurement{}, err
	}
	if driven.Calls == 0 {
		return bench.Measurement{}, fmt.Errorf("no call was answered: %s", driven.Failure)
	}
	if s.HangUp && driven.MostRunning == 0 {
		return bench.Measurement{}, errors.New("no answer says how many calls its instance ran at a time")
	}
	clientAfter, err := proctime.CPU(load)
	if err != nil {
		return bench.Measurement{}, err
	}
	l := driven.Latency
	return bench.Measurement{
		Step: step, Calls: driven.Calls, Failed: driven.Failed, Failure: driven.Failure, HungUp: driven.HungUp, MostRunning: driven.MostRunning,
		Took: driven.Took, Costs: used, Client: clientAfter - clientBefore,
		P50: l.P50, P90: l.P90, P99: l.P99, P999: l.P999, Max: l.Max, Late: driven.LateP99,
	}, nil
}

// order sends the load an order, and waits for its reply.
func (r *runner) order(ctx context.Context, order peers.Order) (loadgen.Driven, error) {
	line, err := json.Marshal(order)
	if err != nil {
		return loadgen.Driven{}, err
	}
	var reply peers.Reply
	answer := ""
	if _, err = r.load.stdin.Write(append(line, '\n')); err == nil {
		if answer, err = r.load.readLine(ctx); err == nil {
			err = json.Unmarshal([]byte(answer), &reply)
		}
	}
	switch {
	case ctx.Err() != nil:
		return loadgen.Driven{}, ctx.Err()
	case err != nil:
		return loadgen.Driven{}, fmt.Errorf("the load: %w%s", err, r.load.errors)
	case reply.Err != "":
		return loadgen.Driven{}, errors.New(reply.Err)
	case reply.Driven == nil:
		return loadgen.Driven{}, nil
	}
	return *reply.Driven, nil
}
