package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership/keeping"
)

func isNoLease(err error) bool { return errors.Is(err, rpctypes.ErrLeaseNotFound) }

// commit carries out a transaction. After an error nobody knows whether it was.
func (k *Keeper) commit(ctx context.Context, txn keeping.Txn) (keeping.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	names := k.follower.keys
	var conditions []clientv3.Cmp
	var puts, gets []clientv3.Op
	for _, op := range txn.Ops {
		name := names.name(op.Key)
		switch op.If {
		case keeping.Always:
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
		return keeping.Result{Outcome: keeping.NoLease}, nil
	case err != nil:
		return keeping.Result{}, fmt.Errorf("etcd: writing %d keys: %w", len(puts), err)
	case answer.Succeeded:
		return keeping.Result{Outcome: keeping.Done, Revision: answer.Header.Revision}, nil
	}
	return keeping.Result{Outcome: keeping.Refused, Revision: answer.Header.Revision, Found: k.found(txn, answer)}, nil
}

// found reads what the keys of a refused transaction are.
func (k *Keeper) found(txn keeping.Txn, answer *clientv3.TxnResponse) []keeping.Entry {
	entries := make([]keeping.Entry, 0, len(txn.Ops))
	for i, op := range txn.Ops {
		kvs := answer.Responses[i].GetResponseRange().Kvs
		if len(kvs) == 0 {
			entries = append(entries, keeping.Entry{Key: op.Key, Revision: answer.Header.Revision, Absent: true})
			continue
		}
		if entry, ok := k.follower.entry(kvs[0]); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}
