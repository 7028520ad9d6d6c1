package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// measureOverload keeps a node busy for a time with more calls than it can run, and counts the
// instances that were given up. Of the calls that the load would make, those are left out for
// which no instance is free: nobody waits for minutes.
func measureOverload(out io.Writer, self, temp string, load float64, length time.Duration) (err error) {
	p, err := policyByName("serpt")
	if err != nil {
		return err
	}
	t := two(rand.New(rand.NewPCG(1, 17)), load, length)
	s, err := startServer(self, temp, p, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(filepath.Join(temp, "data"))) }()
	instances := 0
	for _, n := range t.instances {
		instances += n
	}
	ended, ever := make(chan struct{}), make(chan bool, 1)
	go func() { ever <- everLow(ended) }()
	o, left := s.replayAtMost(t, t.instances)
	close(ended)
	if !<-ever {
		return errors.New("no instance was ever in the low band, or it cannot be seen")
	}
	time.Sleep(6 * time.Second) // agents report every five seconds
	if o.metrics, err = s.metrics(); err != nil {
		return err
	}
	failed, first := o.failed()
	givenUp := int(sumOf(o.metrics, "windlass_scheduler_instances_launched_total", "")) - instances
	fmt.Fprintf(out, "nodesched_overload=%s load=%.2f calls=%d left_out=%d failed=%d given_up=%d reconnects=%.0f demotions=%.0f low_after=%d\n",
		length, load, len(o.results), left, failed, givenUp, sumOf(o.metrics, "windlass_agent_reconnects_total", ""),
		sumOf(o.metrics, "windlass_node_demotions_total", ""), lowGroups())
	if failed+givenUp+lowGroups() > 0 {
		return fmt.Errorf("calls failed, instances were given up or stay in the low band: %w", first)
	}
	return nil
}

// replayAtMost makes the calls of a trace when they are due, but no more of a function at a time than
// it has instances. It returns how many it has left out.
func (s *server) replayAtMost(t trace, most map[string]int) (o outcome, left int) {
	client := http.Client{Transport: s.http, Timeout: 2 * time.Minute}
	var mu sync.Mutex
	open := map[string]int{}
	var calling sync.WaitGroup
	began, beganAt := time.Now(), clock(unix.CLOCK_MONOTONIC)
	for _, c := range t.calls {
		time.Sleep(time.Until(began.Add(c.at)))
		mu.Lock()
		free := open[c.function] < most[c.function]
		if free {
			open[c.function]++
		}
		mu.Unlock()
		if !free {
			left++
			continue
		}
		calling.Go(func() {
			r := s.make(&client, c)
			r.turnaround, r.due = time.Since(began.Add(c.at)), beganAt+c.at
			mu.Lock()
			defer mu.Unlock()
			open[c.function]--
			o.results = append(o.results, r)
		})
	}
	calling.Wait()
	return o, left
}

// chainDepth is how many calls of a chain run at a time.
const chainDepth = 16

// measureChain makes calls that each make the next one and wait for it, beside long calls that keep
// the core busy: calls that wait must not keep their tickets, or nobody could go on.
func measureChain(out io.Writer, self, temp string) (err error) {
	p, err := policyByName("serpt")
	if err != nil {
		return err
	}
	hogs := trace{instances: map[string]int{"chain": chainDepth, "hog": 4}}
	for i := range 12 {
		hogs.calls = append(hogs.calls, call{at: time.Duration(i) * 500 * time.Millisecond, function: "hog", cpu: 700 * time.Millisecond})
	}
	s, err := startServer(self, temp, p, hogs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(), os.RemoveAll(filepath.Join(temp, "data"))) }()
	busy := make(chan []result, 1)
	go func() { busy <- s.replay(hogs) }()
	time.Sleep(2 * time.Second)
	client := http.Client{Transport: s.http, Timeout: time.Minute}
	chain := call{function: "chain", cpu: 5 * time.Millisecond, depth: chainDepth - 1}
	began := time.Now()
	r := s.make(&client, chain)
	took := time.Since(began)
	o := outcome{results: append(<-busy, r)}
	failed, first := o.failed()
	text, metricsErr := s.metrics()
	fmt.Fprintf(out, "nodesched_chain_ms=%.0f depth=%d failed=%d asks=%.0f blocked=%.0f\n", took.Seconds()*1e3, chainDepth, failed,
		sumOf(text, "windlass_node_asks_total", ""), sumOf(text, "windlass_node_blocked_total", ""))
	if failed > 0 {
		return fmt.Errorf("%d calls failed: %w", failed, first)
	}
	return metricsErr
}
