package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	calmRounds = 3
	calmCalls  = 1000
	calmIdle   = 10 * time.Second
)

// calmCost is what a Windlass costs on a calm machine.
type calmCost struct {
	idle    float64 // the part of a core that it and its agents use when nothing happens
	perCall time.Duration
	median  time.Duration // of a warm call
	rss     float64       // MiB of Windlass without its agents
	asks    float64
}

// measureCalm compares what Windlass costs with and without a node agent on a machine that has cores
// to spare: idle, and by one call after the other.
func measureCalm(out io.Writer, self, temp string) error {
	all := map[string][]calmCost{}
	for range calmRounds {
		for _, name := range []string{"off", "serpt"} {
			c, err := measureCalmOnce(self, temp, name)
			if err != nil {
				return fmt.Errorf("policy %s: %w", name, err)
			}
			all[name] = append(all[name], c)
			fmt.Fprintf(out, "calm_%s idle=%.4f cpu_per_call_us=%.1f p50_us=%.0f rss_mib=%.1f asks=%.0f\n", name,
				c.idle, c.perCall.Seconds()*1e6, c.median.Seconds()*1e6, c.rss, c.asks)
		}
	}
	median := func(name string, of func(calmCost) float64) float64 {
		var values []float64
		for _, c := range all[name] {
			values = append(values, of(c))
		}
		return percentile(values, 50)
	}
	perCall := func(c calmCost) float64 { return c.perCall.Seconds() }
	p50 := func(c calmCost) float64 { return c.median.Seconds() * 1e6 }
	idle := func(c calmCost) float64 { return c.idle }
	rss := func(c calmCost) float64 { return c.rss }
	judgeMost(out, "calm_cpu_per_call_serpt_over_off", median("serpt", perCall)/median("off", perCall), 1.02)
	judgeMost(out, "calm_added_p50_us", median("serpt", p50)-median("off", p50), 10)
	judgeMost(out, "calm_idle_cores_added", median("serpt", idle)-median("off", idle), 0.002)
	judgeMost(out, "calm_rss_mib_added", median("serpt", rss)-median("off", rss), 20)
	return nil
}

// judgeMost prints a figure with the most that it is to be.
func judgeMost(out io.Writer, name string, value, most float64) {
	verdict := "met"
	if !(value <= most) {
		verdict = "MISSED"
	}
	fmt.Fprintf(out, "%s=%.4g goal<=%g %s\n", name, value, most, verdict)
}

func measureCalmOnce(self, temp, policy string) (c calmCost, err error) {
	p, err := policyByName(policy)
	if err != nil {
		return c, err
	}
	s, err := startServer(self, temp, p, trace{instances: map[string]int{"calm": 10}})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(filepath.Join(temp, "data"))) }()
	time.Sleep(2 * time.Second) // what starting leaves behind
	before, err := s.cpu()
	if err != nil {
		return c, err
	}
	began := time.Now()
	time.Sleep(calmIdle)
	idle, err := s.cpu()
	if err != nil {
		return c, err
	}
	c.idle = (idle - before).Seconds() / time.Since(began).Seconds()
	client := http.Client{Transport: s.http, Timeout: time.Minute}
	var took []float64
	began = time.Now()
	for range calmCalls {
		at := time.Now()
		if r := s.make(&client, call{function: "calm"}); r.err != nil {
			return c, r.err
		}
		took = append(took, time.Since(at).Seconds())
	}
	after, err := s.cpu()
	if err != nil {
		return c, err
	}
	c.perCall = (after - idle - seconds(c.idle*time.Since(began).Seconds())) / calmCalls
	c.median = seconds(percentile(took, 50))
	text, err := s.metrics()
	c.asks = sumOf(text, "windlass_node_asks_total", "")
	c.rss = memoryOf(s.cmd.Process.Pid, "VmRSS:")
	return c, err
}

// judgeAsks prints what asks cost in the trace short: the processor time that Windlass and its agents
// use in addition, over that of the calls.
func judgeAsks(out io.Writer, all map[string][]outcome) {
	var shares []float64
	for i := range min(len(all["off"]), len(all["serpt"])) {
		off, on := all["off"][i], all["serpt"][i]
		shares = append(shares, (on.cpu-off.cpu).Seconds()/(float64(len(on.results))*on.results[0].cpu.Seconds()))
	}
	if len(shares) > 0 {
		slices.Sort(shares)
		judgeMost(out, "short_cpu_of_asks_over_calls", percentile(shares, 50), 0.025)
	}
}
