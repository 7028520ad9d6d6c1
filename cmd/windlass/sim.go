package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/cli"
	"github.com/windlass-dev/windlass/internal/sim/experiments"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

func knownExperiments() []cli.Experiment {
	var known []cli.Experiment
	for _, e := range experiments.All() {
		known = append(known, cli.Experiment{
			Name: e.Name, Summary: e.Summary, NeedsData: e.NeedsData, NeedsFile: e.NeedsFile, CountsGateways: e.CountsGateways,
		})
	}
	return known
}

func runSim(c cli.SimConfig) error {
	// Much is forgotten with each cell, and little is kept.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for _, name := range c.Experiments {
		e, _ := experiments.ByName(name)
		r, err := e.Run(simOptions(c, e))
		if err != nil {
			return err
		}
		if err := writeReport(c.Out, r, c.Output); err != nil {
			return err
		}
	}
	return nil
}

func simOptions(c cli.SimConfig, e experiments.Experiment) experiments.Options {
	size := e.Full
	if c.Quick {
		size = e.Quick
	}
	if c.Seeds > 0 {
		size.Seeds = c.Seeds
	}
	if c.Scale > 0 {
		size.Scale = c.Scale
	}
	p := &progress{name: e.Name, shown: c.Terminal, out: c.Err}
	o := experiments.Options{Size: size, Seed: c.Seed, Gateways: c.Gateways, Each: p.each, Measure: measureRun}
	if c.DataDir != "" {
		o.Data = os.DirFS(c.DataDir)
	}
	return o
}

func writeReport(w io.Writer, r report.Report, output string) error {
	switch output {
	case "json":
		return r.WriteJSON(w)
	case "csv":
		return r.WriteCSV(w)
	}
	if err := r.WriteText(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// progress tells on a terminal how much of an experiment is done.
type progress struct {
	name  string
	shown bool
	out   io.Writer
}

// each does n things on all processors.
func (p *progress) each(n int, do func(int)) {
	next, done := make(chan int), make(chan struct{}, n)
	var working sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		working.Go(func() {
			for i := range next {
				do(i)
				done <- struct{}{}
			}
		})
	}
	working.Go(func() {
		for finished := range n {
			p.print(finished, n)
			<-done
		}
		p.print(n, n)
	})
	for i := range n {
		next <- i
	}
	close(next)
	working.Wait()
}

func (p *progress) print(finished, n int) {
	if !p.shown {
		return
	}
	if finished < n {
		fmt.Fprintf(p.out, "\r%s: %d of %d cells", p.name, finished, n)
		return
	}
	fmt.Fprint(p.out, "\r\x1b[K")
}

// liveHeap is what was reachable when memory was last collected, in bytes.
const liveHeap = "/gc/heap/live:bytes"

// measureRun tells how long do took, and by how much what is reachable grew at most.
func measureRun(do func()) (time.Duration, uint64) {
	// Collecting often makes what is reachable known often.
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	live := func() uint64 {
		sample := []metrics.Sample{{Name: liveHeap}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before := live()
	most, done, watching := before, make(chan struct{}), sync.WaitGroup{}
	watching.Go(func() {
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				most = max(most, live())
			case <-done:
				return
			}
		}
	})
	began := time.Now()
	do()
	took := time.Since(began)
	close(done)
	watching.Wait()
	return took, max(most, live()) - before
}
