package experiments

import (
	"math"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// burstScatter draws what is created over what is needed.
func burstScatter(all []burstSummary) report.Chart {
	c := report.Chart{
		Name: "burst-created", Title: "Instances created in the first minute, by how many are needed", Kind: report.Dots,
		X: report.Axis{Label: "needed: the smallest pool with FPCSch's wait", Log: true},
		Y: report.Axis{Label: "created", Log: true},
	}
	most := 1.0
	for _, s := range all {
		most = max(most, s.needed)
	}
	for _, name := range deciderNames {
		c.Series = append(c.Series, dots(all, name, func(s burstSummary) report.Point {
			return report.Point{X: s.needed, Y: s.created}
		}))
	}
	c.Series = append(c.Series, report.Series{
		Name: "1.3 × needed", Guide: true,
		Points: []report.Point{{X: 1, Y: createdGoal}, {X: most, Y: createdGoal * most}},
	})
	return c
}

// burstWaits draws the waits of the deciders over those of FPCSch.
func burstWaits(all []burstSummary) report.Chart {
	c := report.Chart{
		Name: "burst-waits", Title: "p99 wait in the first minute, by FPCSch's", Kind: report.Dots,
		X: report.Axis{Label: "FPCSch's p99 wait, ms (at least 1)", Log: true},
		Y: report.Axis{Label: "p99 wait, ms (at least 1)", Log: true},
	}
	of := map[burstCell]float64{}
	least, most := math.Inf(1), 1.0
	for _, s := range all {
		if s.decider == "FPCSch" {
			wait := max(1, 1000*s.p99)
			of[s.cell] = wait
			least, most = min(least, wait), max(most, wait)
		}
	}
	for _, name := range deciderNames {
		if name == "FPCSch" {
			continue
		}
		c.Series = append(c.Series, dots(all, name, func(s burstSummary) report.Point {
			return report.Point{X: of[s.cell], Y: max(1, 1000*s.p99)}
		}))
	}
	c.Series = append(c.Series, report.Series{
		Name: "1.2 × FPCSch's", Guide: true,
		Points: []report.Point{{X: least, Y: waitSlack * least}, {X: most, Y: waitSlack * most}},
	})
	return c
}

func dots(all []burstSummary, name string, point func(burstSummary) report.Point) report.Series {
	s := report.Series{Name: name}
	for _, one := range all {
		if one.decider == name {
			s.Points = append(s.Points, point(one))
		}
	}
	return s
}

// burstCourse draws how many instances there are over time in the cell that the
// paper's rules suffer from most: short calls, and pods that start slowly.
func burstCourse(o Options) report.Chart {
	cell := burstCell{work: 50 * time.Millisecond, rate: 200, start: 3 * time.Second}
	c := report.Chart{
		Name: "burst-course", Title: "50 ms calls, 200 a second, instances that start in 3 s", Kind: report.Steps,
		X: report.Axis{Label: "seconds from the first call", FromZero: true},
		Y: report.Axis{Label: "instances, running or starting", Log: true},
	}
	const shown = 15 * time.Second
	course := func(name string, d autoscaler.Decider) {
		config := cell.config(o, o.Seed, d, true)
		config.Length, config.Resolution = shown, 100*time.Millisecond
		s := report.Series{Name: name}
		for _, p := range mustRun(config).Series {
			s.Points = append(s.Points, report.Point{X: p.At.Seconds(), Y: float64(p.Instances + p.Starting)})
		}
		c.Series = append(c.Series, s)
	}
	for _, name := range deciderNames {
		course(name, decider(name))
	}
	pool := cell.needed(o, o.Seed, cell.run(o, o.Seed, decider("FPCSch"), true))
	course("needed", cluster.FixedPool(pool))
	return c
}
