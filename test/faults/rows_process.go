package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
	"github.com/windlass-dev/windlass/test/lab"
)

// processRows are faults of gateways and schedulers themselves.
func processRows() []row {
	return []row{
		{
			id: "F1", fault: "a gateway is killed",
			promise: "only its own clients see a broken connection; what waited there never runs",
			allow:   verdict.Allowance{Patience: testTimeout, Broken: verdict.Any, No: 0},
			run:     killGateway(toWork),
		},
		{
			id: "F1b", fault: "a gateway is killed, and the function may run twice",
			promise: "only its own clients see a broken connection; what waited there never runs",
			allow:   verdict.Allowance{Patience: testTimeout, Broken: verdict.Any, No: 0},
			run:     killGateway(toAgain),
		},
		{
			id: "F2", fault: "the owner is killed",
			promise: "no call fails",
			allow:   nothing(),
			run:     killOwner(toWork),
		},
		{
			id: "F2b", fault: "the owner of a function that may run twice is killed",
			promise: "no call fails",
			allow:   nothing(),
			run:     killOwner(toAgain),
		},
		{
			id: "F2c", rate: 20, fault: "the owner is killed while callers send and get a MiB with each call",
			promise: "no call fails",
			allow:   nothing(),
			run:     killOwner(large(toWork)),
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
			id: "F21", fault: "the owner is paused for 15 s, and resumes",
			promise: "no call fails, none is run twice",
			allow:   nothing(),
			run:     pauseOwner(toWork),
		},
		{
			id: "F21b", rate: 20, fault: "the same while callers upload a MiB piece by piece",
			promise: "no call fails, none is run twice",
			allow:   nothing(),
			run:     pauseOwner(streamed(toWork)),
		},
		{
			id: "F22", fault: "a gateway is paused for 5 s, and resumes",
			promise: "its callers wait; none is run twice",
			allow:   nothing(),
			run:     pauseGateway,
		},
		{
			id: "F24", rate: 30, fault: "the owner has a twentieth of a core",
			promise: "slower, and nothing else",
			allow:   nothing(),
			run:     starve(func(ctx context.Context, s *faultEnv) (*lab.Member, error) { return s.owner(ctx, work) }),
		},
		{
			id: "F24b", rate: 30, fault: "a gateway has a twentieth of a core",
			promise: "slower, and nothing else",
			allow:   nothing(),
			run:     starve(func(_ context.Context, s *faultEnv) (*lab.Member, error) { return anyOf(s, s.Gateways), nil }),
		},
		{
			id: "F102", fault: "forty seconds of kills, pauses and cuts at random, some at the same time",
			promise: "maybe for calls of killed instances at most; none is lost, none is run twice",
			allow:   maybes(verdict.Any),
			run:     killAtRandom,
		},
	}
}

// granted is how long a call that was granted just before its gateway died may take
// to begin, with time to spare on a machine that is busy.
const granted = time.Second

// killGateway kills a gateway at which calls wait, since they are more than their
// instances can run.
func killGateway(next func(*rand.Rand) request) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		gateway := anyOf(s, s.Gateways)
		var died int64
		calls, err := s.underLoad(ctx, s.config(slowly(next, "ms=100")), func() error {
			died = now()
			gateway.Kill()
			sleep.For(ctx, 2*time.Second)
			return gateway.Revive(ctx)
		})
		broken := 0
		for _, c := range calls {
			if c.Gateway == gateway.Name && c.Outcome == verdict.Broken && c.Began < died {
				broken++
				s.forbid(c.Nonce, died+int64(granted))
			}
		}
		s.note("broken=%d", broken)
		s.shows(broken > 0, "no call was at the gateway when it was killed")
		s.brokenOnlyAt(calls, gateway.Name)
		return err
	}
}

// brokenOnlyAt holds connections that broke at other gateways than this one against Windlass.
func (s *faultEnv) brokenOnlyAt(calls []verdict.Call, gateway string) {
	elsewhere := 0
	for _, c := range calls {
		if c.Outcome == verdict.Broken && c.Gateway != gateway {
			elsewhere++
		}
	}
	s.holds(elsewhere == 0, "%d calls broke at a gateway that lived", elsewhere)
}

// maybesWithin holds more maybes than the killed instances can have had calls against Windlass.
func (s *faultEnv) maybesWithin(calls []verdict.Call, kills int) {
	maybes := 0
	for _, c := range calls {
		if c.Executed == verdict.Maybe {
			maybes++
		}
	}
	s.holds(maybes <= kills, "%d calls ended with maybe, and %d instances were killed, with a call each at most", maybes, kills)
}

func killOwner(next func(*rand.Rand) request) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.under(ctx, next, func() error {
			for range 2 {
				owner, err := s.owner(ctx, strings.TrimPrefix(next(s.rng).Function, "faults/"))
				if err != nil {
					return err
				}
				owner.Kill()
				sleep.For(ctx, 2*time.Second)
				if err := owner.Revive(ctx); err != nil {
					return err
				}
				sleep.For(ctx, 2*time.Second)
			}
			return nil
		})
	}
}

func killSchedulers(ctx context.Context, s *faultEnv) error {
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

func killTwice(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		others := s.others(owner)
		owner.Kill()
		sleep.For(ctx, 300*time.Millisecond)
		next := anyOf(s, others)
		next.Kill()
		sleep.For(ctx, 2*time.Second)
		if err := owner.Revive(ctx); err != nil {
			return err
		}
		return next.Revive(ctx)
	}))
}

func pauseOwner(next func(*rand.Rand) request) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.under(ctx, next, s.withOwner(ctx, func(owner *lab.Member) error {
			owner.Pause()
			sleep.For(ctx, 15*time.Second)
			owner.Resume()
			sleep.For(ctx, 3*time.Second)
			return nil
		}))
	}
}

func pauseGateway(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		gateway := anyOf(s, s.Gateways)
		gateway.Pause()
		sleep.For(ctx, 5*time.Second)
		gateway.Resume()
		return nil
	})
}

// starve gives a member a twentieth of a core.
func starve(whom func(context.Context, *faultEnv) (*lab.Member, error)) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
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

// killAtRandom does harm after harm, without waiting for the end of one. Gateways are
// left alone, since killing one breaks its callers' connections.
func killAtRandom(ctx context.Context, s *faultEnv) error {
	harms := []func(ctx context.Context, m *lab.Member, rng *rand.Rand) error{
		func(ctx context.Context, m *lab.Member, rng *rand.Rand) error {
			m.Kill()
			sleep.For(ctx, upTo(rng, 3*time.Second))
			return m.Start()
		},
		func(ctx context.Context, m *lab.Member, rng *rand.Rand) error {
			m.Pause()
			sleep.For(ctx, upTo(rng, 6*time.Second))
			m.Resume()
			return nil
		},
		func(ctx context.Context, m *lab.Member, rng *rand.Rand) error {
			others := append(append(spaces(s.Schedulers), spaces(s.Gateways)...), spaces(s.Etcd.Members)...)
			if err := m.Deafen(ctx, lab.Silently, others[rng.IntN(len(others))], others[rng.IntN(len(others))]); err != nil {
				return err
			}
			sleep.For(ctx, upTo(rng, 6*time.Second))
			return m.Mend(ctx)
		},
	}
	kills := 0
	calls, err := s.underLoad(ctx, s.config(toWork), func() error {
		victims := append(append([]*lab.Member{}, s.Schedulers...), s.Etcd.Members...)
		errs := make(chan error, len(victims))
		limited, cancel := context.WithTimeout(ctx, 40*time.Second)
		defer cancel()
		for _, m := range victims {
			rng := rand.New(rand.NewPCG(s.rng.Uint64(), 0))
			go func() {
				var err error
				for err == nil && limited.Err() == nil {
					sleep.For(limited, upTo(rng, 12*time.Second))
					if limited.Err() == nil {
						err = harms[rng.IntN(len(harms))](ctx, m, rng)
					}
				}
				errs <- err
			}()
		}
		for limited.Err() == nil {
			sleep.For(limited, upTo(s.rng, 8*time.Second))
			if pods := s.Kubelet.PodsOf(work); len(pods) > 0 {
				anyOf(s, pods).Agent().Kill()
				kills++
			}
		}
		var err error
		for range victims {
			err = errors.Join(err, <-errs)
		}
		return err
	})
	s.note("kills=%d", kills)
	s.shows(kills > 0, "no agent was killed")
	s.maybesWithin(calls, kills)
	return err
}

// upTo is some time, at random.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(most)))
}
