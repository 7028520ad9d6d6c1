package main

import (
	"context"
	"time"

	"github.com/windlass-dev/windlass/test/faults/lab"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// processRows are faults of gateways and schedulers themselves.
func processRows() []row {
	return []row{
		{
			id: "F1", fault: "a gateway is killed",
			promise: "only its own clients see a broken connection; what waited there never runs",
			allow:   verdict.Allowance{Patience: patience, Broken: verdict.Any, No: 0},
			run:     killGateway,
		},
		{
			id: "F2", fault: "the owner is killed",
			promise: "no call fails",
			allow:   nothing(),
			run:     killOwner,
		},
		{
			id: "F3", fault: "all schedulers are killed at once",
			promise: "no call fails",
			allow:   nothing(),
			run:     killSchedulers,
		},
		{
			id: "F4", fault: "the owner is killed, and so is who follows it",
			promise: "no call fails",
			allow:   nothing(),
			run:     killTwice,
		},
		{
			id: "F21", fault: "the owner stands still for 15 s, and goes on",
			promise: "no call fails, none is run twice",
			allow:   nothing(),
			run:     pauseOwner,
		},
		{
			id: "F22", fault: "a gateway stands still for 5 s, and goes on",
			promise: "its callers wait; none is run twice",
			allow:   nothing(),
			run:     pauseGateway,
		},
		{
			id: "F24", fault: "the owner has a twentieth of a core",
			promise: "slower, and nothing else",
			allow:   nothing(),
			run:     starve(func(ctx context.Context, s *scene) (*lab.Member, error) { return s.owner(ctx, work) }),
		},
		{
			id: "F24b", fault: "a gateway has a twentieth of a core",
			promise: "slower, and nothing else",
			allow:   nothing(),
			run:     starve(func(_ context.Context, s *scene) (*lab.Member, error) { return anyOf(s, s.Gateways), nil }),
		},
	}
}

func killGateway(ctx context.Context, s *scene) error {
	return s.under(ctx, slowly(toWork, "ms=50"), func() error {
		gateway := anyOf(s, s.Gateways)
		gateway.Kill()
		wait(ctx, 2*time.Second)
		return gateway.Revive(ctx)
	})
}

func killOwner(ctx context.Context, s *scene) error {
	return s.under(ctx, toWork, func() error {
		for range 2 {
			err := s.withOwner(ctx, func(owner *lab.Member) error {
				owner.Kill()
				wait(ctx, time.Second)
				return owner.Revive(ctx)
			})()
			if err != nil {
				return err
			}
			wait(ctx, 2*time.Second)
		}
		return nil
	})
}

func killSchedulers(ctx context.Context, s *scene) error {
	return s.under(ctx, toWork, func() error {
		for _, m := range s.Schedulers {
			m.Kill()
		}
		for _, m := range s.Schedulers {
			if err := m.Start(); err != nil {
				return err
			}
		}
		for _, m := range s.Schedulers {
			if err := m.Revive(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func killTwice(ctx context.Context, s *scene) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		others := s.others(owner)
		owner.Kill()
		wait(ctx, 300*time.Millisecond)
		next := anyOf(s, others)
		next.Kill()
		wait(ctx, 2*time.Second)
		if err := owner.Revive(ctx); err != nil {
			return err
		}
		return next.Revive(ctx)
	}))
}

func pauseOwner(ctx context.Context, s *scene) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		owner.Pause()
		wait(ctx, 15*time.Second)
		owner.Resume()
		wait(ctx, 3*time.Second)
		return nil
	}))
}

func pauseGateway(ctx context.Context, s *scene) error {
	return s.under(ctx, toWork, func() error {
		gateway := anyOf(s, s.Gateways)
		gateway.Pause()
		wait(ctx, 5*time.Second)
		gateway.Resume()
		return nil
	})
}

// starve gives a member a twentieth of a core.
func starve(whom func(context.Context, *scene) (*lab.Member, error)) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		s.rate /= 5
		return s.under(ctx, toWork, func() error {
			m, err := whom(ctx, s)
			if err != nil {
				return err
			}
			limited, cancel := context.WithTimeout(ctx, 6*time.Second)
			defer cancel()
			m.Process().Starve(limited, 0.05)
			return nil
		})
	}
}
