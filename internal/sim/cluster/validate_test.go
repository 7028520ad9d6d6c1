package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/workload"
)

func TestConfigsThatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"no decider":        {func(c *Config) { c.Decider = nil }, "Decider is missing"},
		"no function":       {func(c *Config) { c.Functions = nil }, "Functions are none"},
		"negative length":   {func(c *Config) { c.Length = -1 }, "Length is -1ns"},
		"no node":           {func(c *Config) { c.Nodes[0].Count = 0 }, "Nodes[0] has Count 0"},
		"no worker":         {func(c *Config) { c.Hash = &Hash{Controllers: 1, Slots: 1}; c.Nodes[0].From = 1 }, "pushed to nobody"},
		"negative gateways": {func(c *Config) { c.Gateways = -1 }, "Gateways is -1"},
		"slow messages":     {func(c *Config) { c.Gateways, c.MessageDelay = 1, time.Second }, "MessageDelay at most 100ms"},
		"work of nobody":    {func(c *Config) { c.GatewayWork = 1 }, "but Gateways is 0"},
		"pushed past": {func(c *Config) { c.Gateways, c.Hash = 2, &Hash{Controllers: 1, Slots: 1} },
			"Gateways is 2, but Hash pushes calls past gateways"},
		"no slot":           {func(c *Config) { c.Hash = &Hash{Controllers: 1} }, "1 controllers, 0 slots"},
		"negative copies":   {func(c *Config) { c.Functions[0].Copies = -1 }, "Functions[0] has a negative field"},
		"no client":         {func(c *Config) { c.Clients = []Clients{{}} }, "Clients[0]: field Count is 0"},
		"unknown function":  {func(c *Config) { c.Clients = []Clients{{Count: 1, First: 2, Calls: 1}} }, "there are 2 functions"},
		"endless clients":   {func(c *Config) { c.Clients = []Clients{{Count: 1}} }, "some call for ever"},
		"endless load":      {func(c *Config) { c.Loads = []Load{Poisson{Rate: 1}} }, "some call for ever"},
		"no rate":           {func(c *Config) { c.Loads = []Load{Poisson{Until: time.Second}} }, "Rate is 0"},
		"too many":          {func(c *Config) { c.Loads = []Load{Poisson{Rate: 1, Until: 1, Functions: 3}} }, "Functions 3"},
		"calls not in turn": {func(c *Config) { c.Loads = []Load{at(2, 1)} }, "call 1 is due at 1ns"},
		"call of nobody":    {func(c *Config) { c.Loads = []Load{Given{{Function: 7}}} }, "call 0: field First is 7"},
		"trace of others": {func(c *Config) {
			c.Loads = []Load{Trace{Trace: workload.Trace{Arrivals: []workload.Arrival{{Function: "f"}}}}}
		}, `no number for "f"`},
	} {
		config := Config{Nodes: []Nodes{{Count: 1}}, Functions: []Function{{Copies: 2}}, Decider: FixedPool(1)}
		if err := config.Validate(); err != nil {
			t.Fatal(err)
		}
		c.change(&config)
		if _, err := Run(config); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: the error is %v, want %q in it", name, err, c.says)
		}
	}
}

func TestTracesAreReplayed(t *testing.T) {
	r := run(t, Config{
		Functions: []Function{{Copies: 2}},
		Loads: []Load{Trace{
			Trace: workload.Trace{Length: time.Minute, Arrivals: []workload.Arrival{
				{At: time.Second, Function: "b", Duration: 3 * time.Second}, {At: 2 * time.Second, Function: "a", Duration: time.Second},
			}},
			Functions: map[string]int{"a": 0, "b": 1},
		}},
		Decider: FixedPool(1),
	})
	if r.Total.Answered != 2 || r.Total.Created != 2 || r.LastAnswer != 4*time.Second {
		t.Errorf("answered %d by %d instances, the last at %v", r.Total.Answered, r.Total.Created, r.LastAnswer)
	}
}

func TestDistributions(t *testing.T) {
	w := build(Config{Functions: []Function{{}}, Decider: FixedPool(1)})
	for name, d := range map[string]Distribution{
		"fixed": Fixed(time.Second), "exponential": Exponential(time.Second), "log-normal": LogNormal(time.Second, 3*time.Second),
		"uniform": Uniform(time.Second, 2*time.Second), "none": {},
	} {
		const n = 100_000
		var sum time.Duration
		beyond := 0
		for range n {
			drawn := d.Draw(w.works)
			sum += drawn
			if drawn > 3*time.Second {
				beyond++
			}
		}
		if mean := sum / n; (mean - d.Mean()).Abs() > d.Mean()/50 {
			t.Errorf("%s: the mean is %v, want %v", name, mean, d.Mean())
		}
		if name == "log-normal" && (beyond < n/125 || beyond > n/80) {
			t.Errorf("%s: %d of %d exceed the 99th percentile", name, beyond, n)
		}
	}
}
