package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// renewals is how many times a lease is renewed during its lifetime.
const renewals = 3

var errLeaseLost = errors.New("etcd: the lease was lost")

// lessor gets a lease and keeps it alive.
type lessor struct {
	client *clientv3.Client
	ttl    time.Duration
}

// get returns the previous lease if it lives, so that no slot changes hands after an outage of
// etcd, and otherwise a new one.
func (l *lessor) get(ctx context.Context, before coordinator.Lease) (coordinator.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if before != 0 {
		answer, err := l.client.TimeToLive(ctx, clientv3.LeaseID(before))
		if err != nil {
			return 0, fmt.Errorf("etcd: asking for the lease: %w", err)
		}
		if lives(answer) {
			return before, nil
		}
	}
	seconds := int64((l.ttl + time.Second - 1) / time.Second)
	answer, err := l.client.Grant(ctx, seconds)
	if err != nil {
		return 0, fmt.Errorf("etcd: getting a lease: %w", err)
	}
	return coordinator.Lease(answer.ID), nil
}

// keepAlive renews a lease until it is lost or ctx ends. For each renewal it calls renewed
// with the time of the request. It returns why it ended.
func (l *lessor) keepAlive(ctx context.Context, lease coordinator.Lease, renewed func(at time.Time)) error {
	retry := newRetry()
	for {
		asked := time.Now()
		err := l.renew(ctx, clientv3.LeaseID(lease))
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errLeaseLost):
			return err
		case err != nil:
			sleep.For(ctx, backoff.Jitter(retry.Next()))
			continue
		}
		retry.Reset()
		renewed(asked)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(asked.Add(l.ttl / renewals))):
		}
	}
}

// renew uses a stream and a timeout of its own: the stream that the client keeps open for all
// renewals can stall although its connection does not. It asks first whether the lease lives,
// because the client's request to renew retries without a pause while etcd cannot be reached.
func (l *lessor) renew(ctx context.Context, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(ctx, min(l.ttl/renewals, requestTimeout))
	defer cancel()
	answer, err := l.client.TimeToLive(ctx, lease)
	if err == nil && lives(answer) {
		_, err = l.client.KeepAliveOnce(ctx, lease)
	} else if err == nil {
		return errLeaseLost
	}
	if isNoLease(err) {
		return errLeaseLost
	}
	return err
}

// lives reports whether the lease exists. Its lifetime is in whole seconds, and 0 in its last
// one.
func lives(answer *clientv3.LeaseTimeToLiveResponse) bool { return answer.TTL >= 0 }

// revoke ends a lease, which deletes all keys under it.
func (l *lessor) revoke(ctx context.Context, lease coordinator.Lease) error {
	if _, err := l.client.Revoke(ctx, clientv3.LeaseID(lease)); err != nil && !isNoLease(err) {
		return fmt.Errorf("etcd: ending the lease: %w", err)
	}
	return nil
}
