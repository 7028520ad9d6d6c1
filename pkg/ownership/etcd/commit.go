package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

func isNoLease(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// commit executes a transaction. After an error, it may or may not have been committed.
func (k *Coordinator) commit(ctx context.Context, txn coordinator.Txn) (coordinator.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	names := k.follower.keys
	var conditions []clientv3.Cmp
	var puts, gets []clientv3.Op
	for _, op := range txn.Ops {
		name := names.name(op.Key)
		switch op.If {
		case coordinator.Always:
		case 0:
			conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(name), "=", 0))
		default:
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(name), "=", op.If))
		}
		puts = append(puts, clientv3.OpPut(name, encode(op.Value), clientv3.WithLease(clientv3.LeaseID(op.Lease))))
		gets = append(gets, clientv3.OpGet(name))
	}
	answer, err := k.deps.Client.Txn(ctx).If(conditions...).Then(puts...).Else(gets...).Commit()
	switch {
	case isNoLease(err):
		return coordinator.Result{Outcome: coordinator.NoLease}, nil
	case err != nil:
		return coordinator.Result{}, fmt.Errorf("etcd: writing %d keys: %w", len(puts), err)
	case answer.Succeeded:
		return coordinator.Result{Outcome: coordinator.Done, Revision: answer.Header.Revision}, nil
	}
	return coordinator.Result{Outcome: coordinator.Refused, Revision: answer.Header.Revision, Found: k.found(txn, answer)}, nil
}

// found reads the present entries of a refused transaction's keys.
func (k *Coordinator) found(txn coordinator.Txn, answer *clientv3.TxnResponse) []coordinator.Entry {
	entries := make([]coordinator.Entry, 0, len(txn.Ops))
	for i, op := range txn.Ops {
		kvs := answer.Responses[i].GetResponseRange().Kvs
		if len(kvs) == 0 {
			entries = append(entries, coordinator.Entry{Key: op.Key, Revision: answer.Header.Revision, Absent: true})
			continue
		}
		if entry, ok := k.follower.entry(kvs[0]); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}
