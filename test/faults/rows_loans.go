package main

import (
	"context"
	"errors"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// loanRows are faults under which calls go on by lent pulls alone.
func loanRows() []row {
	return []row{
		{
			id: "F110", fault: "all schedulers are killed, and stay away for 15 s",
			promise: "no call of a warm function fails, or waits for a scheduler",
			allow:   nothing(), run: withoutSchedulers(killed),
		},
		{
			id: "F110b", fault: "all schedulers are paused for 15 s",
			promise: "no call of a warm function fails, or waits for a scheduler",
			allow:   nothing(), run: withoutSchedulers(paused),
		},
		{
			id: "F110c", fault: "all schedulers are cut off for 15 s",
			promise: "no call of a warm function fails, or waits for a scheduler",
			allow:   nothing(), run: withoutSchedulers(isolated),
		},
		{
			id: "F111", fault: "all schedulers are killed, and so is a gateway 5 s later",
			promise: "its own clients see a broken connection at most; at the other one no call waits for a scheduler",
			allow:   verdict.Allowance{Patience: testTimeout, Broken: verdict.Any}, run: killGatewayWithoutSchedulers,
		},
		{
			id: "F112", load: "each gateway, one by one", fault: "a function is called once in 12 s while all schedulers are away for 40 s",
			promise: "its instances keep what they have lent: no call waits for a scheduler",
			allow:   nothing(), run: seldomCalled,
		},
	}
}

// Times of rows without schedulers.
const (
	away = 15 * time.Second
	// noticed is how long a call may take that began when schedulers had just gone.
	noticed = time.Second
)

// warmly are short calls that are far fewer than the instances of a function can run, so that
// each gateway has loans for its own.
const warmly = "ms=5"

// withoutSchedulers has a warm function called while a blow has struck all schedulers.
func withoutSchedulers(hit blow) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		var gone, back int64
		calls, err := s.underLoad(ctx, s.config(slowly(toWork, warmly)), func() error {
			undo, err := hit.strike(ctx, s.Schedulers)
			gone = now()
			sleep.For(ctx, away)
			back = now()
			return errors.Join(err, undo())
		})
		s.waitedForNobody(calls, gone, back)
		return err
	}
}

// waitedForNobody holds it against Windlass if a call that began while schedulers were away
// ended when they were back.
func (s *faultEnv) waitedForNobody(calls []verdict.Call, gone, back int64) {
	met, waited := 0, 0
	for _, c := range calls {
		if c.Began < gone || c.Began >= back-int64(noticed) {
			continue
		}
		met++
		if c.Ended >= back {
			waited++
		}
	}
	s.note("met=%d away_stall=%v", met, verdict.Stall(calls, gone, back).Round(time.Millisecond))
	s.shows(met > 0, "nothing was called while schedulers were away")
	s.holds(waited == 0, "%d calls waited until schedulers were back", waited)
}

func killGatewayWithoutSchedulers(ctx context.Context, s *faultEnv) error {
	var gone, back int64
	gateway := anyOf(s, s.Gateways)
	calls, err := s.underLoad(ctx, s.config(slowly(toWork, warmly)), func() error {
		undo, err := blow(killed).strike(ctx, s.Schedulers)
		gone = now()
		sleep.For(ctx, away/3)
		gateway.Kill()
		sleep.For(ctx, away*2/3)
		back = now()
		return errors.Join(err, undo(), gateway.Revive(ctx))
	})
	s.brokenOnlyAt(calls, gateway.Name)
	s.waitedForNobody(calls, gone, back)
	return err
}

// seldomCalled calls each gateway before and after its instances would have gone quiet.
func seldomCalled(ctx context.Context, s *faultEnv) error {
	var calls []verdict.Call
	visit := func() {
		for _, target := range s.Targets() {
			config := s.config(slowly(toWork, warmly))
			config.Targets = append(config.Targets[:0:0], target)
			calls = append(calls, callSome(ctx, config, 1)...)
		}
	}
	visit()
	undo, err := blow(killed).strike(ctx, s.Schedulers)
	gone := now()
	for range 3 {
		sleep.For(ctx, 12*time.Second)
		visit()
	}
	sleep.For(ctx, 2*noticed)
	back := now()
	err = errors.Join(err, undo())
	s.calls = append(s.calls, calls...)
	s.waitedForNobody(calls, gone, back)
	return err
}
