package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"time"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/proctime"
)

// instances is how many a function has, each of concurrency 1.
const instances = 8

// stopWithin is how long a program may take to end by itself.
const stopWithin = 10 * time.Second

// program is a process of this program.
type program struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// startProgram starts this program in a role, and reads what it prints once it can be used. It ends
// when its input does, so that none outlives this process.
func startProgram(self string, args ...string) (*program, peers.Ready, error) {
	p := &program{cmd: exec.Command(self, args...)}
	p.cmd.Stderr = os.Stderr
	var err error
	var stdout io.Reader
	if p.stdin, err = p.cmd.StdinPipe(); err == nil {
		stdout, err = p.cmd.StdoutPipe()
	}
	if err == nil {
		p.stdout = bufio.NewReader(stdout)
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, peers.Ready{}, err
	}
	var ready peers.Ready
	if args[0] == peers.LoadArgument {
		return p, ready, nil
	}
	line, err := p.stdout.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &ready)
	}
	if err != nil {
		return nil, ready, errors.Join(fmt.Errorf("starting %q: %w", args, err), p.finish())
	}
	return p, ready, nil
}

// finish lets it end.
func (p *program) finish() error {
	_ = p.stdin.Close()
	kill := time.AfterFunc(stopWithin, func() { _ = p.cmd.Process.Kill() })
	defer kill.Stop()
	return p.cmd.Wait()
}

// site has all programs. Those of all variants run at the same time, and only one variant is called
// at a time.
type site struct {
	self     string
	programs []*program
	load     *program
	// functions are host:port.
	functions []string
	paths     map[string]*path
}

// path is a variant that runs.
type path struct {
	url string
	// processes are those between client and function, by part.
	processes map[string][]int
}

// close ends all programs, those last that were started first.
func (s *site) close() error {
	var errs []error
	for i := len(s.programs) - 1; i >= 0; i-- {
		errs = append(errs, s.programs[i].finish())
	}
	return errors.Join(errs...)
}

func (s *site) startOne(args ...string) (*program, peers.Ready, error) {
	p, ready, err := startProgram(s.self, args...)
	if err == nil {
		s.programs = append(s.programs, p)
	}
	return p, ready, err
}

// openSite starts the load, the functions and all variants. The caller closes it, also after an error.
func openSite(self string) (*site, error) {
	s := &site{self: self, paths: make(map[string]*path)}
	var err error
	if s.load, _, err = s.startOne(peers.LoadArgument); err != nil {
		return s, err
	}
	for range instances {
		_, ready, err := s.startOne(peers.FunctionArgument)
		if err != nil {
			return s, err
		}
		u, err := url.Parse(ready.URL)
		if err != nil {
			return s, err
		}
		s.functions = append(s.functions, u.Host)
	}
	for _, v := range variants {
		to := &path{processes: make(map[string][]int)}
		if v.hops > 0 {
			err = s.startProxies(to, v.hops)
		} else {
			err = s.startCarrier(to, v)
		}
		if err != nil {
			return s, err
		}
		s.paths[v.name] = to
	}
	return s, nil
}

// startProxies puts proxies in front of the first function.
func (s *site) startProxies(to *path, hops int) error {
	to.url = "http://" + s.functions[0]
	for range hops {
		p, ready, err := s.startOne(peers.ProxyArgument, to.url)
		if err != nil {
			return err
		}
		to.url = ready.URL
		to.processes[partProxy] = append(to.processes[partProxy], p.cmd.Process.Pid)
	}
	return nil
}

// startCarrier puts a gateway and an agent beside each function in front of all functions.
func (s *site) startCarrier(to *path, v variant) error {
	p, ready, err := s.startOne(gatewayArgument, v.gateway)
	if err != nil {
		return err
	}
	to.url = ready.URL
	to.processes[partGateway] = []int{p.cmd.Process.Pid}
	if _, _, err := net.SplitHostPort(ready.Wire); err != nil {
		return err
	}
	for i, function := range s.functions {
		p, _, err := s.startOne(agentArgument, v.agent, fmt.Sprintf("instance-%d", i), ready.Wire, function)
		if err != nil {
			return err
		}
		to.processes[partAgents] = append(to.processes[partAgents], p.cmd.Process.Pid)
	}
	return nil
}

// order sends the load an order, and waits for its reply.
func (s *site) order(o peers.Order) (loadgen.Driven, error) {
	line, err := json.Marshal(o)
	if err != nil {
		return loadgen.Driven{}, err
	}
	if _, err := s.load.stdin.Write(append(line, '\n')); err != nil {
		return loadgen.Driven{}, err
	}
	answer, err := s.load.stdout.ReadBytes('\n')
	if err != nil {
		return loadgen.Driven{}, err
	}
	var reply peers.Reply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return loadgen.Driven{}, err
	}
	if reply.Err != "" {
		return loadgen.Driven{}, errors.New(reply.Err)
	}
	if reply.Driven == nil {
		return loadgen.Driven{}, nil
	}
	return *reply.Driven, nil
}

// measureOne calls one variant for a while.
func (s *site) measureOne(v variant, connections int, span time.Duration) (sample, error) {
	on := s.paths[v.name]
	drive := loadgen.Drive{
		URLs: []string{on.url + "/?" + peers.AnswerParameter + "=10"}, Connections: connections, Span: span, Timeout: callTimeout,
	}
	if _, err := s.order(peers.Order{Drive: &drive}); err != nil {
		return sample{}, err
	}
	before, err := on.used()
	if err != nil {
		return sample{}, err
	}
	driven, err := s.order(peers.Order{})
	if err != nil {
		return sample{}, err
	}
	after, err := on.used()
	if err != nil {
		return sample{}, err
	}
	if driven.Calls == 0 || driven.Failed > 0 {
		return sample{}, fmt.Errorf("%d calls were answered and %d were not: %s", driven.Calls, driven.Failed, driven.Failure)
	}
	m := sample{p50: driven.Latency.P50, parts: make(map[string]time.Duration)}
	for part, used := range after.parts {
		m.parts[part] = (used - before.parts[part]) / time.Duration(driven.Calls)
		m.cpu += m.parts[part]
	}
	m.switches = float64(after.switches-before.switches) / float64(driven.Calls)
	return m, nil
}

// callTimeout bounds each call.
const callTimeout = 30 * time.Second

// used is what the processes of a path have used so far.
type used struct {
	parts    map[string]time.Duration
	switches int64
}

func (p *path) used() (used, error) {
	sum := used{parts: make(map[string]time.Duration)}
	for part, pids := range p.processes {
		for _, pid := range pids {
			cpu, err := proctime.CPU(pid)
			if err != nil {
				return sum, err
			}
			switches, err := proctime.Switches(pid)
			if err != nil {
				return sum, err
			}
			sum.parts[part] += cpu
			sum.switches += switches
		}
	}
	return sum, nil
}
