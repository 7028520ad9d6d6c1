package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

const (
	// restTime is how long things rest before they are measured: connections give buffers back
	// once they have been silent for ten seconds.
	restTime = 15 * time.Second
	// cpuTime is how long the CPU time of idle instances is measured.
	cpuTime = 10 * time.Second
	// readEvery and mostReads are how often memory is read until it stays.
	readEvery = 2 * time.Second
	mostReads = 15
	// lendWithin is how long the scheduler may take to hear of the last loan.
	lendWithin = 20 * time.Second
	// quietWithin is how long instances may take to go quiet once it is time. Each collects
	// this process' garbage.
	quietWithin = 3 * time.Minute
	// partWithin is how long an agent keeps a connection that it does not use, and a bit more.
	partWithin = 75 * time.Second
	// callers is how many calls are made at a time.
	callers = 64
)

// measureAll takes the figures in the order in which things come and go.
func measureAll(ctx context.Context, out io.Writer, s *site) error {
	empty, err := s.settled(ctx, "empty")
	if err != nil {
		return err
	}
	slog.Info("adding functions", "functions", s.options.functions)
	if err := s.addFunctions(ctx); err != nil {
		return err
	}
	registered, err := s.settled(ctx, "registered")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "density_functions=%d\ndensity_agents=%d\ndensity_instances_per_function=%d\ndensity_tls=%t\n",
		s.options.functions, s.options.agents, s.options.instances, s.options.secure)
	registered.each(empty, s.options.functions).printEach(out, "function")
	slog.Info("starting instances", "agents", s.options.agents)
	began := time.Now()
	if err := s.call(ctx); err != nil {
		return err
	}
	slog.Info("all instances have had a call", "after", time.Since(began).Round(time.Second))
	return s.measureAgents(ctx, out, registered)
}

// measureAgents takes the figures of agents that lend, that are quiet, and that have parted from
// the gateway.
func (s *site) measureAgents(ctx context.Context, out io.Writer, before snapshot) error {
	if err := s.awaitLoans(ctx, s.options.agents, lendWithin); err != nil {
		return fmt.Errorf("%w: if instances go quiet before the last has started, raise -quiet-after", err)
	}
	fmt.Fprintf(out, "density_loans=%d\n", s.options.agents)
	if err := s.stage(ctx, out, "", before); err != nil {
		return err
	}
	// All of them must have lent their places all the time.
	if err := s.awaitLoans(ctx, s.options.agents, 0); err != nil {
		return fmt.Errorf("%w: instances went quiet while they were measured; raise -quiet-after", err)
	}
	if s.options.lentOnly {
		return nil
	}
	slog.Info("waiting for instances to go quiet", "after", s.options.quietAfter)
	if err := s.awaitLoans(ctx, 0, s.options.quietAfter+quietWithin); err != nil {
		return err
	}
	if err := s.stage(ctx, out, "quiet_", before); err != nil {
		return err
	}
	slog.Info("waiting for instances to close their connections")
	if !sleep.For(ctx, partWithin) {
		return ctx.Err()
	}
	return s.stage(ctx, out, "parted_", before)
}

// stage prints what an agent takes now, and what CPU time all take.
func (s *site) stage(ctx context.Context, out io.Writer, prefix string, before snapshot) error {
	if !sleep.For(ctx, restTime) {
		return ctx.Err()
	}
	after, err := s.settled(ctx, prefix+"agents")
	if err != nil {
		return err
	}
	one := after.each(before, s.options.agents)
	one.printEach(out, prefix+"agent")
	one.printHost(out, prefix+"agent")
	one.printGoroutines(out, prefix+"agent")
	began := time.Now()
	from, err := s.cpu(ctx)
	if err != nil {
		return err
	}
	if !sleep.For(ctx, cpuTime) {
		return ctx.Err()
	}
	to, err := s.cpu(ctx)
	if err != nil {
		return err
	}
	to.printShare(out, prefix, from, time.Since(began))
	return nil
}

// settled is the memory once it does not change any more. Its name is that of the profiles.
func (s *site) settled(ctx context.Context, name string) (snapshot, error) {
	last, err := s.read(ctx)
	for range mostReads {
		if err != nil {
			return last, err
		}
		if !sleep.For(ctx, readEvery) {
			return last, ctx.Err()
		}
		var next snapshot
		next, err = s.read(ctx)
		if err == nil && next.isNear(last) {
			// Only now, since the agents are late for their pings while this process collects.
			if next.host, err = readMemory(); err != nil {
				return next, err
			}
			return next, s.profile(ctx, name)
		}
		last = next
	}
	return last, errors.Join(err, errors.New("the memory of scheduler or gateway does not come to rest"))
}

// read is the memory of scheduler and gateway now.
func (s *site) read(ctx context.Context) (now snapshot, err error) {
	err = errors.Join(
		s.scheduler.ask(ctx, http.MethodGet, "/memory", &now.scheduler),
		s.gateway.ask(ctx, http.MethodGet, "/memory", &now.gateway))
	return now, err
}

func (s *site) cpu(ctx context.Context) (now spent, err error) {
	err = errors.Join(
		s.scheduler.ask(ctx, http.MethodGet, "/cpu", &now.scheduler),
		s.gateway.ask(ctx, http.MethodGet, "/cpu", &now.gateway))
	return now, err
}

// profile keeps profiles of the heap and of goroutines if that was asked for.
func (s *site) profile(ctx context.Context, name string) error {
	if s.options.profiles == "" {
		return nil
	}
	if err := os.MkdirAll(s.options.profiles, 0o755); err != nil {
		return err
	}
	for _, c := range []*child{s.scheduler, s.gateway} {
		for _, kind := range []string{"heap", "goroutine"} {
			f, err := os.Create(filepath.Join(s.options.profiles, c.name+"-"+name+"-"+kind+".pb.gz"))
			if err != nil {
				return err
			}
			if err := errors.Join(c.ask(ctx, http.MethodGet, "/debug/pprof/"+kind, f), f.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitLoans returns when so many places are lent, and an error if there are not within a time.
func (s *site) awaitLoans(ctx context.Context, want int, within time.Duration) error {
	deadline := time.Now().Add(within)
	for {
		got := 0
		if err := s.scheduler.ask(ctx, http.MethodGet, "/loans", &got); err != nil {
			return err
		}
		switch {
		case got == want:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d places are lent instead of %d", got, want)
		case !sleep.For(ctx, time.Second):
			return ctx.Err()
		}
	}
}

// call calls functions so that each instance has one call.
func (s *site) call(ctx context.Context) error {
	connections := max(callers, s.options.instances)
	transport := &http.Transport{MaxIdleConnsPerHost: connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	numbers, failed := make(chan int), make(chan error, s.options.agents)
	var calling sync.WaitGroup
	for range max(1, callers/s.options.instances) {
		calling.Go(func() {
			for i := range numbers {
				var together sync.WaitGroup
				for range s.options.instances {
					together.Go(func() { failed <- callOnce(ctx, client, s.gateway.ready.URL+"/function/"+functionName(i)+"/") })
				}
				together.Wait()
			}
		})
	}
	for i := range s.options.called() {
		numbers <- i
	}
	close(numbers)
	calling.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

func callOnce(ctx context.Context, client *http.Client, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %s", url, response.Status, text)
	}
	return err
}
