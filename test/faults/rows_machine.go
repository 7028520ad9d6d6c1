package main

import (
	"context"
	"errors"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// machineRows are faults of what a machine has.
func machineRows() []row {
	return []row{
		{
			id: "F57", fault: "the disk that logs are written to is full",
			promise: "no call fails", allow: nothing(), run: fullDisk,
		},
		{
			id: "F58", load: "150 callers, then 250", fault: "a gateway may open no more files",
			promise: "calls are answered, or their connections broken; it recovers",
			allow:   verdict.Allowance{Patience: testTimeout, Broken: verdict.Any, No: verdict.Any}, run: noFiles,
		},
		{
			id: "F58b", fault: "the owner may open no more files",
			promise: "no call fails; it recovers",
			allow:   nothing(), run: ownerWithoutFiles,
		},
		{
			id: "F60", fault: "nobody reads the logs, and their pipe is full",
			promise: "no call fails", allow: nothing(), run: blockedLogs,
		},
	}
}

// everyRole are gateways and schedulers.
func (s *faultEnv) everyRole() []*lab.Member {
	return append(append([]*lab.Member{}, s.Gateways...), s.Schedulers...)
}

// loggingElsewhere restarts gateways and schedulers with another place for their
// logs, calls f, and restarts them as they were.
func (s *faultEnv) loggingElsewhere(ctx context.Context, sink lab.Sink, f func() error) error {
	var err error
	for _, m := range s.everyRole() {
		m.LogTo(sink)
		starting, cancel := context.WithTimeout(ctx, 20*time.Second)
		err = errors.Join(err, m.Restart(starting))
		cancel()
	}
	if err == nil {
		err = f()
	}
	for _, m := range s.everyRole() {
		m.LogTo(lab.Sink{})
		m.Kill()
	}
	return err
}

// troubled is work while something happens that is logged.
func (s *faultEnv) troubled(ctx context.Context) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		owner.Kill()
		sleep.For(ctx, 2*time.Second)
		for range 3 {
			s.killAgentOf(again)
			sleep.For(ctx, time.Second)
		}
		return owner.Start()
	}))
}

func fullDisk(ctx context.Context, s *faultEnv) error {
	sink, err := s.FullDisk()
	if err != nil {
		return err
	}
	return s.loggingElsewhere(ctx, sink, func() error { return s.troubled(ctx) })
}

func blockedLogs(ctx context.Context, s *faultEnv) error {
	sink, err := lab.FullPipe()
	if err != nil {
		return err
	}
	defer sink.Close()
	return s.loggingElsewhere(ctx, sink, func() error { return s.troubled(ctx) })
}

func noFiles(ctx context.Context, s *faultEnv) error {
	gateway := anyOf(s, s.Gateways)
	config := s.config(slowly(toWork, "ms=100"))
	config.Rate, config.Clients = 0, 150
	_, err := s.underLoad(ctx, config, func() error {
		restore, err := gateway.Process().LimitFiles(4)
		if err != nil {
			return err
		}
		// New connections, for which there are no files.
		more := s.config(toWork)
		more.Rate, more.Clients = 0, 100
		l := startLoad(ctx, more)
		sleep.For(ctx, 4*time.Second)
		s.calls = append(s.calls, l.Stop()...)
		return restore()
	})
	return err
}

func ownerWithoutFiles(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		restore, err := owner.Process().LimitFiles(2)
		if err != nil {
			return err
		}
		for range 3 {
			s.killAgentOf(again)
			sleep.For(ctx, time.Second)
		}
		return restore()
	}))
}
