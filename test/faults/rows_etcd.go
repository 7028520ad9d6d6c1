package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// etcdRows are faults of etcd and of what is in it.
func etcdRows() []row {
	return []row{
		{
			id: "F25", fault: "the leader of etcd is killed",
			promise: "no call fails", allow: nothing(), run: killEtcdLeader,
		},
		{
			id: "F26", fault: "all of etcd is paused for 15 s",
			promise: "no call fails", allow: nothing(),
			run: withoutEtcd((*lab.Member).Pause, func(ctx context.Context, _ *faultEnv) error { sleep.For(ctx, 15*time.Second); return nil }),
		},
		{
			id: "F26b", fault: "all of etcd is killed, and away for 12 s",
			promise: "no call fails", allow: nothing(),
			run: withoutEtcd((*lab.Member).Kill, func(ctx context.Context, _ *faultEnv) error { sleep.For(ctx, 12*time.Second); return nil }),
		},
		{
			id: "F27", fault: "etcd is away for 15 s, and the owner is killed in the middle",
			promise: "no call fails", allow: nothing(),
			run: withoutEtcd((*lab.Member).Pause, killTheOwner),
		},
		{
			id: "F28", fault: "etcd is away for 15 s, and a gateway is restarted in the middle",
			promise: "no call fails, and the gateway serves", allow: nothing(),
			run: withoutEtcd((*lab.Member).Pause, restartAGateway),
		},
		{
			id: "F29", fault: "etcd has a tenth of a core for 10 s",
			promise: "no call fails", allow: nothing(), run: slowEtcd,
		},
		{
			id: "F30", fault: "the owner's lease is revoked",
			promise: "no call fails, none is run twice", allow: nothing(), run: revokeLease,
		},
		{
			id: "F31", fault: "the key of the owner is deleted",
			promise: "no call fails; the slot has an owner again", allow: nothing(), run: deleteKey,
		},
		{
			id: "F31b", fault: "the key of the owner is rewritten by hand, to name another scheduler",
			promise: "no call fails; the slot has an owner that serves", allow: nothing(), run: rewriteKey,
		},
		{
			id: "F31c", fault: "the key of the owner is rewritten with nonsense",
			promise: "no call fails; the slot has an owner again", allow: nothing(), run: corruptKey,
		},
		{
			id: "F32", fault: "a gateway is cut off from etcd while slots move and etcd forgets its history",
			promise: "no call fails; the gateway reads everything again", allow: nothing(), run: compactBehindAGateway,
		},
		{
			id: "F33", fault: "all that etcd has is lost",
			promise: "no call fails, none is run twice", allow: nothing(), run: wipeEtcd,
		},
		{
			id: "F33b", fault: "etcd is restored from an old backup",
			promise: "no call fails, none is run twice", allow: nothing(), run: restoreEtcd,
		},
		{
			id: "F34", fault: "etcd has no space left",
			promise: "no call fails", allow: nothing(), run: etcdWithoutSpace,
		},
		{
			id: "F35", fault: "the owner's connections to etcd stay open and carry nothing for 15 s",
			promise: "no call fails, none is run twice", allow: nothing(), run: stallKeepalive,
		},
	}
}

func killEtcdLeader(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		leader, err := s.Etcd.Leader(ctx)
		if err != nil {
			return err
		}
		leader.Kill()
		sleep.For(ctx, 4*time.Second)
		return leader.Revive(ctx)
	})
}

// withoutEtcd takes all of etcd away, does something, and brings it back.
func withoutEtcd(away func(*lab.Member), meanwhile func(context.Context, *faultEnv) error) func(context.Context, *faultEnv) error {
	return func(ctx context.Context, s *faultEnv) error {
		// What is to be asked of etcd must be asked before.
		owner, err := s.owner(ctx, work)
		if err != nil {
			return err
		}
		s.before = owner
		return s.under(ctx, toWork, func() error {
			for _, m := range s.Etcd.Members {
				away(m)
			}
			err := meanwhile(ctx, s)
			for _, m := range s.Etcd.Members {
				if startErr := m.Start(); startErr != nil {
					return startErr
				}
				m.Resume()
			}
			return err
		})
	}
}

// killTheOwner kills the owner that was known, in the middle of an outage.
func killTheOwner(ctx context.Context, s *faultEnv) error {
	sleep.For(ctx, 5*time.Second)
	s.before.Kill()
	sleep.For(ctx, 10*time.Second)
	return nil
}

func restartAGateway(ctx context.Context, s *faultEnv) error {
	sleep.For(ctx, 4*time.Second)
	gateway := anyOf(s, s.Gateways)
	patient, cancel := context.WithTimeout(ctx, 12*time.Second)
	defer cancel()
	err := gateway.Restart(patient)
	s.holds(err == nil, "a gateway that starts without etcd: %v", err)
	sleep.For(ctx, 8*time.Second)
	return nil
}

func slowEtcd(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		for _, m := range s.Etcd.Members {
			go m.Process().Starve(limited, 0.1)
		}
		<-limited.Done()
		return nil
	})
}

// tamper changes the key of the slot of work under load, and waits until it names
// an owner again.
func (s *faultEnv) tamper(ctx context.Context, change func(name string, lease clientv3.LeaseID) error) error {
	name, lease, err := s.key(ctx)
	if err != nil {
		return err
	}
	err = s.under(ctx, toWork, func() error {
		if err := change(name, lease); err != nil {
			return err
		}
		began, err := time.Now(), error(nil)
		for time.Since(began) < 20*time.Second && ctx.Err() == nil {
			if _, err = s.owner(ctx, work); err == nil {
				break
			}
			sleep.For(ctx, 20*time.Millisecond)
		}
		s.holds(err == nil, "the slot has no owner 20 s later: %v", err)
		s.note("owned=%v", time.Since(began).Round(10*time.Millisecond))
		sleep.For(ctx, 3*time.Second)
		return nil
	})
	if _, lease, keyErr := s.key(ctx); keyErr == nil && lease == 0 {
		s.holds(false, "nobody has replaced what was written by hand")
		_, deleteErr := s.etcd.Delete(ctx, name)
		err = errors.Join(err, deleteErr)
	}
	return err
}

func revokeLease(ctx context.Context, s *faultEnv) error {
	return s.tamper(ctx, func(_ string, lease clientv3.LeaseID) error {
		_, err := s.etcd.Revoke(ctx, lease)
		return err
	})
}

func deleteKey(ctx context.Context, s *faultEnv) error {
	return s.tamper(ctx, func(name string, _ clientv3.LeaseID) error {
		_, err := s.etcd.Delete(ctx, name)
		return err
	})
}

func rewriteKey(ctx context.Context, s *faultEnv) error {
	owner, err := s.owner(ctx, work)
	if err != nil {
		return err
	}
	other := anyOf(s, s.others(owner))
	return s.tamper(ctx, func(name string, _ clientv3.LeaseID) error {
		_, err := s.etcd.Put(ctx, name, fmt.Sprintf(`{"id":%q,"addr":"%s:9443"}`, other.Name, other.Addr))
		return err
	})
}

func corruptKey(ctx context.Context, s *faultEnv) error {
	return s.tamper(ctx, func(name string, _ clientv3.LeaseID) error {
		_, err := s.etcd.Put(ctx, name, "nonsense")
		return err
	})
}

func compactBehindAGateway(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		gateway := anyOf(s, s.Gateways)
		if err := gateway.Sever(ctx, lab.Silently, spaces(s.Etcd.Members)...); err != nil {
			return err
		}
		owner, err := s.owner(ctx, work)
		if err != nil {
			return err
		}
		if err := owner.Restart(ctx); err != nil {
			return err
		}
		got, err := s.etcd.Get(ctx, "/")
		if err != nil {
			return err
		}
		if _, err := s.etcd.Compact(ctx, got.Header.Revision); err != nil {
			return err
		}
		sleep.For(ctx, 4*time.Second)
		return gateway.Mend(ctx)
	})
}

func wipeEtcd(ctx context.Context, s *faultEnv) error {
	s.epochsFall = true
	return s.under(ctx, toWork, func() error {
		err := s.Etcd.Wipe(ctx)
		sleep.For(ctx, 5*time.Second)
		return err
	})
}

func restoreEtcd(ctx context.Context, s *faultEnv) error {
	s.epochsFall = true
	return s.under(ctx, toWork, func() error {
		if err := s.Etcd.BackUp(ctx); err != nil {
			return err
		}
		// Slots move, so that the backup is of another time.
		owner, err := s.owner(ctx, work)
		if err != nil {
			return err
		}
		if err := owner.Restart(ctx); err != nil {
			return err
		}
		if err := s.Etcd.Restore(ctx); err != nil {
			return err
		}
		sleep.For(ctx, 5*time.Second)
		return nil
	})
}

func etcdWithoutSpace(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, func() error {
		if err := s.Etcd.Fill(ctx); err != nil {
			return err
		}
		sleep.For(ctx, 5*time.Second)
		// Slots cannot move now.
		err := s.withOwner(ctx, func(owner *lab.Member) error {
			owner.Kill()
			sleep.For(ctx, 2*time.Second)
			return nil
		})()
		if err != nil {
			return err
		}
		return s.Etcd.Empty(ctx)
	})
}

func stallKeepalive(ctx context.Context, s *faultEnv) error {
	return s.under(ctx, toWork, s.withOwner(ctx, func(owner *lab.Member) error {
		if err := owner.Sever(ctx, lab.Silently, spaces(s.Etcd.Members)...); err != nil {
			return err
		}
		sleep.For(ctx, 15*time.Second)
		if err := owner.Mend(ctx); err != nil {
			return err
		}
		sleep.For(ctx, 3*time.Second)
		return nil
	}))
}
