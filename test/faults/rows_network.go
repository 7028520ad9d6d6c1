package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// networkRows are faults between the parts.
func networkRows() []row {
	return []row{
		{
			id: "F44", fault: "a gateway and the owner do not reach each other for 8 s",
			promise: "no call fails", allow: nothing(), run: cut(gatewayAndOwner, (*lab.Space).Sever, lab.Silently),
		},
		{
			id: "F44b", fault: "the same, and connections are refused",
			promise: "no call fails", allow: nothing(), run: cut(gatewayAndOwner, (*lab.Space).Sever, lab.Resetting),
		},
		{
			id: "F44c", rate: 20, fault: "a gateway and the owner do not reach each other for 8 s while callers upload a MiB piece by piece",
			promise: "no call fails", allow: nothing(), run: cutUnder(streamed(toWork), 8*time.Second, gatewayAndOwner, (*lab.Space).Sever, lab.Silently),
		},
		{
			id: "F45", fault: "the owner and half of the pods do not reach each other for 8 s",
			promise: "no call fails", allow: nothing(), run: cut(ownerAndPods, (*lab.Space).Sever, lab.Silently),
		},
		{
			id: "F46", fault: "a gateway and half of the pods do not reach each other for 8 s",
			promise: "maybe for calls that ran just then at most",
			allow:   maybes(2 * warm), run: cut(gatewayAndPods, (*lab.Space).Sever, lab.Silently),
		},
		{
			id: "F47", fault: "the owner and etcd do not reach each other for 15 s",
			promise: "no call fails, none is run twice",
			allow:   nothing(), run: cutFor(15*time.Second, ownerAndEtcd, (*lab.Space).Sever, lab.Silently),
		},
		{
			id: "F48a", fault: "a gateway does not hear the owner, which hears it",
			promise: "no call fails", allow: nothing(), run: cut(gatewayAndOwner, (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48b", fault: "the owner does not hear a gateway, which hears it",
			promise: "no call fails", allow: nothing(), run: cut(reverse(gatewayAndOwner), (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48c", fault: "the owner does not hear half of the pods, which hear it",
			promise: "no call fails", allow: nothing(), run: cut(ownerAndPods, (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48d", fault: "half of the pods do not hear the owner, which hears them",
			promise: "no call fails", allow: nothing(), run: cut(reverse(ownerAndPods), (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48e", fault: "a gateway does not hear half of the pods, which hear it",
			promise: "maybe for calls that ran just then at most",
			allow:   maybes(2 * warm), run: cut(gatewayAndPods, (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48f", fault: "half of the pods do not hear a gateway, which hears them",
			promise: "maybe for calls that ran just then at most",
			allow:   maybes(2 * warm), run: cut(reverse(gatewayAndPods), (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48g", fault: "the owner does not hear etcd, which hears it",
			promise: "no call fails", allow: nothing(), run: cutFor(15*time.Second, ownerAndEtcd, (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F48h", fault: "etcd does not hear the owner, which hears it",
			promise: "no call fails", allow: nothing(), run: cutFor(15*time.Second, reverse(ownerAndEtcd), (*lab.Space).Deafen, lab.Silently),
		},
		{
			id: "F49", fault: "one gateway reaches the owner only, the pods reach the other schedulers only",
			promise: "no call fails", allow: nothing(), run: crossed,
		},
		{
			id: "F50", fault: "a twentieth of all packets is lost, for 10 s",
			promise: "slower, and nothing else", allow: nothing(), run: lossy,
		},
		{
			id: "F50b", rate: 30, fault: "links of a gateway, the owner and half of the pods are slow, lossy, and out of order, for 10 s",
			promise: "slower, and nothing else", allow: nothing(), run: badWeather,
		},
		{
			id: "F51", fault: "the owner's cable is out for 15 s",
			promise: "no call fails, none is run twice", allow: nothing(), run: unplugged,
		},
		{
			id: "F51b", fault: "the cables of half of the pods are out for 8 s",
			promise: "maybe for calls that ran just then at most",
			allow:   maybes(2 * warm), run: unpluggedPods,
		},
		{
			id: "F52", fault: "the owner's link is out for a second and back for a second, ten times",
			promise: "no call fails; the slots of one scheduler move twice at most", allow: nothing(), run: flapping,
		},
		{
			id: "F54", fault: "there are only 64 ports for new connections of each part",
			promise: "no call fails", allow: nothing(), run: fewPorts,
		},
	}
}

// sides picks who is cut off from whom.
type sides func(ctx context.Context, s *faultEnv) (ones, others []*lab.Space, err error)

func reverse(of sides) sides {
	return func(ctx context.Context, s *faultEnv) (ones, others []*lab.Space, err error) {
		others, ones, err = of(ctx, s)
		return ones, others, err
	}
}

func gatewayAndOwner(ctx context.Context, s *faultEnv) (ones, others []*lab.Space, err error) {
	owner, err := s.owner(ctx, work)
	if err != nil {
		return nil, nil, err
	}
	return []*lab.Space{anyOf(s, s.Gateways).Space}, []*lab.Space{owner.Space}, nil
}

func ownerAndPods(ctx context.Context, s *faultEnv) (ones, others []*lab.Space, err error) {
	owner, err := s.owner(ctx, work)
	if err != nil {
		return nil, nil, err
	}
	return []*lab.Space{owner.Space}, s.halfOfPods(), nil
}

func gatewayAndPods(_ context.Context, s *faultEnv) (ones, others []*lab.Space, err error) {
	return []*lab.Space{anyOf(s, s.Gateways).Space}, s.halfOfPods(), nil
}

func ownerAndEtcd(ctx context.Context, s *faultEnv) (ones, others []*lab.Space, err error) {
	owner, err := s.owner(ctx, work)
	if err != nil {
		return nil, nil, err
	}
	return []*lab.Space{owner.Space}, spaces(s.Etcd.Members), nil
}

// halfOfPods are the networks of half of the pods of work.
func (s *faultEnv) halfOfPods() []*lab.Space {
	var half []*lab.Space
	for i, pod := range s.Kubelet.PodsOf(work) {
		if i%2 == 0 {
			half = append(half, pod.Space())
		}
	}
	s.shows(len(half) > 0, "%s has no pods", work)
	return half
}

// severing is Sever or Deafen.
type severing func(s *lab.Space, ctx context.Context, how string, others ...*lab.Space) error

func cut(who sides, sever severing, how string) func(context.Context, *faultEnv) error {
	return cutFor(8*time.Second, who, sever, how)
}

// cutFor cuts some off from others for a while, under load.
func cutFor(d time.Duration, who sides, sever severing, how string) func(context.Context, *faultEnv) error {
	return cutUnder(toWork, d, who, sever, how)
}

// cutUnder does so under a load of one's own.
func cutUnder(
	next func(*rand.Rand) request, d time.Duration, who sides, sever severing, how string,
) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		return s.under(ctx, next, func() error {
			ones, others, err := who(ctx, s)
			if err != nil {
				return err
			}
			for _, one := range ones {
				if err := sever(one, ctx, how, others...); err != nil {
					return err
				}
			}
			sleep.For(ctx, d)
			return mend(ctx, ones)
		})
	}
}

// mend takes the faults of networks back, of which some may have ended.
func mend(ctx context.Context, all []*lab.Space) error {
	for _, space := range all {
		if err := space.Mend(ctx); err != nil {
			return err
		}
	}
	return nil
}

func crossed(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		gateway := s.Gateways[0]
		if err := gateway.Sever(ctx, lab.Silently, spaces(s.others(owner))...); err != nil {
			return err
		}
		for _, pod := range s.Kubelet.PodsOf(work) {
			if err := owner.Sever(ctx, lab.Silently, pod.Space()); err != nil {
				return err
			}
		}
		sleep.For(ctx, 8*time.Second)
		return mend(ctx, []*lab.Space{gateway.Space, owner.Space})
	}))
}

func lossy(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		all := append(append(spaces(s.Schedulers), spaces(s.Gateways)...), spaces(s.Etcd.Members)...)
		for _, space := range all {
			if err := space.Lose(ctx, 0.05); err != nil {
				return err
			}
		}
		sleep.For(ctx, 10*time.Second)
		return mend(ctx, all)
	})
}

func badWeather(ctx context.Context, s *faultEnv) error {
	weather := lab.Netem{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Lost: 0.02, Doubled: 0.01, Hasty: 0.05, Corrupt: 0.001}
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) (failed error) {
		for _, space := range append(s.halfOfPods(), owner.Space, anyOf(s, s.Gateways).Space) {
			brighten, err := space.Degrade(ctx, weather, s.rng.Uint64())
			if err != nil {
				return err
			}
			defer func() { failed = errors.Join(failed, brighten()) }()
		}
		sleep.For(ctx, 10*time.Second)
		return nil
	}))
}

func unplugged(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		if err := owner.Unplug(ctx); err != nil {
			return err
		}
		sleep.For(ctx, 15*time.Second)
		if err := owner.Plug(ctx); err != nil {
			return err
		}
		sleep.For(ctx, 3*time.Second)
		return nil
	}))
}

func unpluggedPods(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		half := s.halfOfPods()
		for _, pod := range half {
			if err := pod.Unplug(ctx); err != nil {
				return err
			}
		}
		sleep.For(ctx, 8*time.Second)
		for _, pod := range half {
			// Those that were given up are gone, with their cables.
			_ = pod.Plug(ctx)
		}
		return nil
	})
}

func flapping(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		slots, err := s.held(ctx, owner)
		if err != nil {
			return err
		}
		before, err := s.epochs.moves(ctx)
		if err != nil {
			return err
		}
		if err := s.flap(ctx, owner); err != nil {
			return err
		}
		after, err := s.epochs.moves(ctx)
		if err != nil {
			return err
		}
		moves := after - before
		s.note("moves=%d", moves)
		// They may go to others once, and come back.
		s.holds(moves <= 2*slots, "slots moved %d times, and the scheduler whose link flapped had %d", moves, slots)
		return nil
	}))
}

// flap takes a member's link away and gives it back, ten times.
func (s *faultEnv) flap(ctx context.Context, m *lab.Member) error {
	for range 10 {
		if err := m.Unplug(ctx); err != nil {
			return err
		}
		sleep.For(ctx, time.Second)
		if err := m.Plug(ctx); err != nil {
			return err
		}
		sleep.For(ctx, time.Second)
	}
	return nil
}

func fewPorts(ctx context.Context, s *faultEnv) error {
	all := append(spaces(s.Schedulers), spaces(s.Gateways)...)
	for _, space := range all {
		if err := space.Ports(40_000, 40_063); err != nil {
			return err
		}
	}
	err := s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		owner.Kill()
		sleep.For(ctx, 2*time.Second)
		return owner.Revive(ctx)
	}))
	for _, space := range all {
		if portErr := space.Ports(32_768, 60_999); portErr != nil {
			return portErr
		}
	}
	return err
}
