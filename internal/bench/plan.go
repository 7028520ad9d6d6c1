package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Path is a way from the client to the function.
type Path string

// All paths.
const (
	// Direct is no program in between.
	Direct Path = "direct"
	// Proxy is one httputil.ReverseProxy, the unit of all ratios.
	Proxy Path = "proxy"
	// PooledProxy is one that reuses its buffers.
	PooledProxy Path = "pooled-proxy"
	// TwoProxies is two in a row, neither of which reuses its buffers.
	TwoProxies Path = "two-proxies"
	// Balancer is one httputil.ReverseProxy in front of as many processes of functions as Windlass
	// has instances. It has neither queue nor limit, and sends a call where a gateway would: to its
	// function's first process that runs the fewest calls.
	Balancer Path = "balancer"
	// Local is windlass up: gateway and scheduler in one process, and no TLS.
	Local Path = "windlass"
	// Separate is a gateway and a scheduler in processes of their own, with TLS between all
	// of them and the agents, as in a cluster.
	Separate Path = "windlass-tls"
)

// Windlass says whether functions on the path are instances of Windlass.
func (p Path) Windlass() bool { return p == Local || p == Separate }

// Deployment is the functions that are called.
type Deployment struct {
	Functions int `json:"functions"`
	// Instances of each function, and calls that one of them runs at a time. On the path Balancer
	// they are processes, and on all others without Windlass a function is one process; either runs
	// any number of calls.
	Instances   int `json:"instances"`
	Concurrency int `json:"concurrency"`
}

// Scenario is a load on functions.
type Scenario struct {
	Deployment
	// Connections each run one call at a time.
	Connections int `json:"connections"`
	// Rate makes an open loop of this many calls a second; 0 is a closed loop.
	Rate int `json:"rate,omitempty"`
	// Request and Answer are the sizes of bodies in bytes. A request of 0 has none.
	Request int64 `json:"request,omitempty"`
	Answer  int64 `json:"answer"`
	// HangUp lets every other client close its connection at a random moment. The function then
	// holds each call for a while, and counts how many it runs at a time.
	HangUp bool `json:"hangUp,omitempty"`
	// Paths are measured in this order, or in one that is rotated.
	Paths []Path `json:"-"`
}

// Name is unique among all scenarios: 8x1_c32 is eight instances of concurrency 1, called over
// 32 connections.
func (s Scenario) Name() string {
	name := fmt.Sprintf("%dx%d_c%d", s.Instances, s.Concurrency, s.Connections)
	if s.Functions > 1 {
		name = fmt.Sprintf("%df_%s", s.Functions, name)
	}
	if s.Rate > 0 {
		name += fmt.Sprintf("_r%d", s.Rate)
	}
	if s.Request > 0 {
		name += "_up" + size(s.Request)
	}
	if s.Answer != smallAnswer {
		name += "_down" + size(s.Answer)
	}
	if s.HangUp {
		name += "_hangup"
	}
	return name
}

// String describes the scenario in words.
func (s Scenario) String() string {
	text := count(s.Instances, "instance") + fmt.Sprintf(" of concurrency %d", s.Concurrency)
	if s.Functions > 1 {
		text = fmt.Sprintf("%d functions, %s each", s.Functions, text)
	}
	text += ", " + count(s.Connections, "connection")
	if s.Rate > 0 {
		text += fmt.Sprintf(", %d calls a second", s.Rate)
	}
	if s.Request > 0 {
		text += fmt.Sprintf(", requests of %sB", size(s.Request))
	}
	if s.Answer != smallAnswer {
		text += fmt.Sprintf(", answers of %sB", size(s.Answer))
	}
	if s.HangUp {
		text += ", every other client hangs up"
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// size is a number of bytes without its unit, such as 64Ki.
func size(n int64) string {
	for _, unit := range []struct {
		prefix string
		bytes  int64
	}{{"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.prefix)
		}
	}
	return fmt.Sprint(n)
}

// smallAnswer is the size in bytes of answers where sizes are not the subject.
const smallAnswer = 10

// Suite is some scenarios with one subject.
type Suite struct {
	Name string
	// Shows says in a few words what it is for.
	Shows string
	// Groups are measured one after the other. All programs of a group run at the same time.
	Groups [][]Scenario
}

// Suites are all suites; rates are the calls a second of the suite rates.
func Suites(rates []int) []Suite {
	eight, one := Deployment{1, 8, 1}, Deployment{1, 1, 64}
	all := []Path{Direct, Proxy, PooledProxy, TwoProxies, Local, Separate}
	few := []Path{Proxy, Local, Separate}
	spread := []Path{Balancer, Local}
	return []Suite{
		{"warm", "what a warm call costs beside a hop through a proxy", [][]Scenario{
			closedLoops(all, eight, 1, 32), closedLoops(all, one, 1, 32),
		}},
		{"scale", "throughput of 8 and 64 functions beside one, and of 1,000 clients beside 100", [][]Scenario{
			append(closedLoops(spread, Deployment{8, 1, 1}, 8), closedLoops(spread, eight, 8)...),
			append(closedLoops(spread, Deployment{64, 1, 1}, 64), closedLoops(spread, Deployment{1, 64, 1}, 64)...),
			closedLoops([]Path{Direct, Proxy, Local, Separate}, eight, 100, 1000),
		}},
		{"instances", "1, 8 and 64 instances, of concurrency 1 and 64", [][]Scenario{
			append(closedLoops(few, Deployment{1, 1, 1}, 1, 32), closedLoops(few, eight, 32)...),
			closedLoops(few, Deployment{1, 64, 1}, 32, 256),
			append(closedLoops(few, one, 32), closedLoops(few, Deployment{1, 8, 64}, 32, 256)...),
		}},
		{"connections", "1 to 1,000 connections", [][]Scenario{
			closedLoops(few, eight, 1, 32, 256, 1000), closedLoops(few, one, 1, 32, 256, 1000),
		}},
		{"payloads", "bodies of 10 B to 100 MiB in both directions", [][]Scenario{payloads(few, one)}},
		{"limits", "calls that an instance runs at a time while clients hang up: never more than its concurrency", [][]Scenario{
			append(hangUps(eight, 32), hangUps(Deployment{1, 2, 4}, 32)...),
		}},
		{"rates", "latency in an open loop, by calls a second", [][]Scenario{openLoops(few, eight, rates)}},
	}
}

// Stores says whether the suite has figures that Report.Stored keeps.
func (s Suite) Stores() bool {
	for _, group := range s.Groups {
		if slices.ContainsFunc(group, func(s Scenario) bool { return !s.HangUp }) {
			return true
		}
	}
	return false
}

func closedLoops(paths []Path, on Deployment, connections ...int) []Scenario {
	var scenarios []Scenario
	for _, c := range connections {
		scenarios = append(scenarios, Scenario{Deployment: on, Connections: c, Answer: smallAnswer, Paths: paths})
	}
	return scenarios
}

func hangUps(on Deployment, connections int) []Scenario {
	s := closedLoops([]Path{Local, Separate}, on, connections)
	s[0].HangUp = true
	return s
}

// openConnections are more than calls at a time, unless a server falls behind.
const openConnections = 256

func openLoops(paths []Path, on Deployment, rates []int) []Scenario {
	var scenarios []Scenario
	for _, rate := range rates {
		scenarios = append(scenarios, Scenario{Deployment: on, Connections: openConnections, Rate: rate, Answer: smallAnswer, Paths: paths})
	}
	return scenarios
}

func payloads(paths []Path, on Deployment) []Scenario {
	var scenarios []Scenario
	for _, bytes := range []int64{10, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 100 << 20} {
		up := Scenario{Deployment: on, Connections: 4, Request: bytes, Answer: smallAnswer, Paths: paths}
		down := Scenario{Deployment: on, Connections: 4, Answer: bytes, Paths: paths}
		scenarios = append(scenarios, up)
		if down.Answer != smallAnswer {
			scenarios = append(scenarios, down)
		}
	}
	return scenarios
}

// MostRounds and MostSpan bound a plan.
const (
	MostRounds = 100
	MostSpan   = time.Minute
)

// Group is some scenarios that are measured in turn, while all their programs run.
type Group struct {
	// Suite is the name of the suite that has it.
	Suite     string
	Scenarios []Scenario
}

// Plan is what to measure.
type Plan struct {
	Groups []Group
	// Rounds count, at least 1; one more before them warms up.
	Rounds int
	// Span is how long each measurement makes calls.
	Span time.Duration
}

// NewPlan is that of some suites. It leaves out a scenario if an earlier one of the same name has all
// of its paths: figures have the name of their scenario, and each shall have one value.
func NewPlan(suites []Suite, rounds int, span time.Duration) (Plan, error) {
	if rounds < 1 || rounds > MostRounds {
		return Plan{}, fmt.Errorf("%d rounds are too few or too many; choose 1 to %d", rounds, MostRounds)
	}
	if span < 10*time.Millisecond || span > MostSpan {
		return Plan{}, fmt.Errorf("a measurement of %v is too short or too long; choose 10ms to %v", span, MostSpan)
	}
	plan := Plan{Rounds: rounds, Span: span}
	paths := map[string][]Path{} // by scenario
	for _, suite := range suites {
		for _, scenarios := range suite.Groups {
			group := Group{Suite: suite.Name}
			for _, s := range scenarios {
				known := paths[s.Name()]
				if len(known) > 0 && !slices.ContainsFunc(s.Paths, func(p Path) bool { return !slices.Contains(known, p) }) {
					continue
				}
				paths[s.Name()] = append(known, s.Paths...)
				group.Scenarios = append(group.Scenarios, s)
			}
			if len(group.Scenarios) > 0 {
				plan.Groups = append(plan.Groups, group)
			}
		}
	}
	return plan, nil
}

// Step is one measurement.
type Step struct {
	// Group is the index of the scenario's group, and Suite the name of its suite.
	Group int
	Suite string
	// Round is 0 for the one that warms up.
	Round    int
	Scenario Scenario
	Path     Path
}

// Steps are the measurements of a group in their order.
func (p Plan) Steps(group int) []Step {
	var steps []Step
	for round := range p.Rounds + 1 {
		for _, s := range p.Groups[group].Scenarios {
			for i := range s.Paths {
				steps = append(steps, Step{group, p.Groups[group].Suite, round, s, s.Paths[(i+round)%len(s.Paths)]})
			}
		}
	}
	return steps
}

// Server is a set of programs that runs during a group.
type Server struct {
	Path Path
	// Deployment is that of a path with processes of its own for functions. The others share one
	// function.
	Deployment Deployment
}

// ServerOf is where a step makes its calls.
func ServerOf(s Scenario, path Path) Server {
	if path.Windlass() || path == Balancer {
		return Server{path, s.Deployment}
	}
	return Server{Path: path}
}

// Servers are those of the group, each once.
func (g Group) Servers() []Server {
	var servers []Server
	for _, s := range g.Scenarios {
		for _, path := range s.Paths {
			if server := ServerOf(s, path); !slices.Contains(servers, server) {
				servers = append(servers, server)
			}
		}
	}
	return servers
}

// What a plan takes besides its spans, by experience.
const (
	perStep     = 150 * time.Millisecond
	perServer   = time.Second
	perInstance = 300 * time.Millisecond
)

// Takes is about how long the plan takes.
func (p Plan) Takes() time.Duration {
	var all time.Duration
	for i, group := range p.Groups {
		all += time.Duration(len(p.Steps(i))) * (p.Span + perStep)
		for _, server := range group.Servers() {
			all += perServer + time.Duration(server.Deployment.Functions*server.Deployment.Instances)*perInstance
		}
	}
	return all.Round(10 * time.Second)
}

// Instances is the largest number of instances that run at the same time, and of processes behind
// balancers.
func (p Plan) Instances() int {
	most := 0
	for _, group := range p.Groups {
		n := 0
		for _, server := range group.Servers() {
			n += server.Deployment.Functions * server.Deployment.Instances
		}
		most = max(most, n)
	}
	return most
}

// FindSuites are those with the names, in their own order. The name all is every suite.
func FindSuites(all []Suite, names []string) ([]Suite, error) {
	var known []string
	for _, suite := range all {
		known = append(known, suite.Name)
	}
	for _, name := range names {
		if name != AllSuites && !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no suite %q; it is one of %s, or %s", name, strings.Join(known, ", "), AllSuites)
		}
	}
	return slices.DeleteFunc(all, func(s Suite) bool {
		return !slices.Contains(names, AllSuites) && !slices.Contains(names, s.Name)
	}), nil
}

// AllSuites names every suite.
const AllSuites = "all"
