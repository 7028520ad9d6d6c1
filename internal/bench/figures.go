package bench

import (
	"fmt"
	"strings"
)

// Figure is a result with a name.
type Figure struct {
	Name string `json:"name"`
	Spread
	// Higher says that more is better.
	Higher bool `json:"higher,omitempty"`
}

// String is the figure as name=median (min to max).
func (f Figure) String() string {
	return f.Name + "=" + f.Spread.String()
}

// words of names of figures.
var words = map[Path]string{
	Direct: "direct", Proxy: "proxy", PooledProxy: "pooled_proxy", TwoProxies: "two_proxies", Balancer: "balancer",
	Local: "warm_call", Separate: "warm_call_tls",
}

// throughput begins the names of figures about calls a second.
const throughput = "throughput"

// Figures are those that the measurements of some groups have, in a fixed order.
func Figures(all []Measurement) []Figure {
	var figures []Figure
	for _, group := range byGroup(all) {
		scenarios := group.scenarios()
		for _, s := range scenarios {
			figures = append(figures, group.figuresOf(s)...)
		}
		figures = append(figures, group.acrossScenarios(scenarios)...)
	}
	return figures
}

// rounds are the measurements of one group that count.
type rounds []Measurement

func byGroup(all []Measurement) []rounds {
	var groups []rounds
	for _, m := range all {
		for len(groups) <= m.Group {
			groups = append(groups, nil)
		}
		if m.Round > 0 {
			groups[m.Group] = append(groups[m.Group], m)
		}
	}
	return groups
}

// scenarios are those of a group, in the order of the plan.
func (r rounds) scenarios() []Scenario {
	var scenarios []Scenario
	seen := map[string]bool{}
	for _, m := range r {
		if name := m.Scenario.Name(); !seen[name] {
			seen[name] = true
			scenarios = append(scenarios, m.Scenario)
		}
	}
	return scenarios
}

// of are the measurements of one scenario on one path, by round.
func (r rounds) of(s Scenario, path Path) []Measurement {
	var found []Measurement
	for _, m := range r {
		if m.Scenario.Name() == s.Name() && m.Path == path {
			found = append(found, m)
		}
	}
	return found
}

// compare divides round by round. It is false without measurements, or if there is nothing to
// divide by.
func compare(of, to []Measurement, by func(Measurement) float64) (Spread, bool) {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		above, below := by(of[i]), by(to[i])
		if above == 0 || below == 0 {
			return Spread{}, false
		}
		ratios = append(ratios, above/below)
	}
	if len(ratios) == 0 {
		return Spread{}, false
	}
	return spreadOf(ratios), true
}

// figuresOf are those of one scenario.
func (r rounds) figuresOf(s Scenario) []Figure {
	if s.HangUp {
		return r.limitsOf(s)
	}
	var figures []Figure
	add := func(name string, of, to Path, by func(Measurement) float64) {
		if spread, ok := compare(r.of(s, of), r.of(s, to), by); ok {
			figures = append(figures, Figure{Name: name + "_" + s.Name(), Spread: spread})
		}
	}
	for _, path := range []Path{PooledProxy, TwoProxies, Local, Separate} {
		add(words[path]+"_cpu_over_proxy", path, Proxy, Measurement.cpu)
	}
	for _, path := range []Path{Local, Separate} {
		add(words[path]+"_cpu_over_pooled_proxy", path, PooledProxy, Measurement.cpu)
		if s.Connections == 1 {
			add(words[path]+"_p50_over_proxy", path, Proxy, func(m Measurement) float64 { return float64(m.P50) })
		}
	}
	if separate := r.of(s, Separate); len(separate) > 0 {
		scheduler := each(separate, func(m Measurement) float64 { return m.cpuOf(PartScheduler) })
		figures = append(figures, Figure{Name: "scheduler_cpu_us_per_warm_call_" + s.Name(), Spread: spreadOf(scheduler)})
	}
	return figures
}

// limitsOf are those of a scenario whose clients hang up.
func (r rounds) limitsOf(s Scenario) []Figure {
	var figures []Figure
	for _, path := range s.Paths {
		of := r.of(s, path)
		if len(of) == 0 {
			continue
		}
		figures = append(figures,
			Figure{Name: strings.Replace(words[path], "warm_call", "most_running", 1) + "_" + s.Name(), Spread: spreadOf(each(of, func(m Measurement) float64 { return float64(m.MostRunning) }))},
			Figure{Name: strings.Replace(words[path], "warm_call", "hung_up", 1) + "_" + s.Name(), Spread: spreadOf(each(of, func(m Measurement) float64 { return float64(m.HungUp) }))},
		)
	}
	return figures
}

func each(of []Measurement, by func(Measurement) float64) []float64 {
	values := make([]float64, len(of))
	for i, m := range of {
		values[i] = by(m)
	}
	return values
}

// acrossScenarios are the ratios of many functions or clients over few. What has them without
// Windlass is a reference: how much of a loss the machine, net/http and the clients have anyway.
func (r rounds) acrossScenarios(scenarios []Scenario) []Figure {
	var figures []Figure
	for _, many := range scenarios {
		for _, few := range scenarios {
			if what := ratioOf(many, few); what != "" {
				figures = append(figures, r.manyOverFew(what, many, few)...)
			}
		}
	}
	return figures
}

// ratioOf names the ratio of two scenarios; empty if there is none.
func ratioOf(many, few Scenario) string {
	switch {
	case many.Functions > 1 && few.Functions == 1 && few.Instances == many.Functions*many.Instances && many.Connections == few.Connections:
		return fmt.Sprintf("%d_functions_over_1", many.Functions)
	case many.Deployment == few.Deployment && many.Connections == 1000 && few.Connections == 100:
		return "1000_clients_over_100"
	}
	return ""
}

// manyOverFew divides throughput and CPU time of two scenarios, path by path.
func (r rounds) manyOverFew(what string, many, few Scenario) []Figure {
	var figures []Figure
	add := func(name string, path Path, by func(Measurement) float64, higher bool) {
		if ratio, ok := compare(r.of(many, path), r.of(few, path), by); ok {
			figures = append(figures, Figure{name, ratio, higher})
		}
	}
	for _, path := range []Path{Local, Separate} {
		add(throughput+"_"+what+strings.TrimPrefix(words[path], words[Local]), path, Measurement.rate, true)
	}
	for _, path := range []Path{Direct, Proxy, Balancer} {
		add(words[path]+"_"+throughput+"_"+what, path, Measurement.rate, true)
	}
	for _, path := range []Path{Direct, Proxy, Balancer, Local, Separate} {
		add(words[path]+"_cpu_"+what, path, Measurement.cpu, false)
	}
	for _, path := range []Path{Direct, Proxy, Balancer, Local, Separate} {
		add("function_cpu_"+what+"_"+words[path], path, func(m Measurement) float64 { return m.cpuOf(PartFunction) }, false)
		add("client_cpu_"+what+"_"+words[path], path, Measurement.client, false)
	}
	return figures
}
