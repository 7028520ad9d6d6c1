package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/test/lab"
)

// slots are those of a lab as its etcd has them.
type slots struct {
	lab  *lab.Lab
	etcd *clientv3.Client
}

// slot is that of the revision that most calls of a function go to, as far as the function's
// status says so; a gateway may have read an earlier one.
func (s slots) slot(ctx context.Context, function string) (ownership.Slot, error) {
	fn := &v1alpha1.Function{}
	if err := s.lab.Cluster.Get(ctx, function, fn); err != nil {
		return 0, err
	}
	name, found := mostCalled(fn.Status.Traffic)
	if !found {
		return 0, fmt.Errorf("no calls go to a revision of %s yet", function)
	}
	revision := &v1alpha1.FunctionRevision{}
	if err := s.lab.Cluster.Objects.Get(ctx, client.ObjectKey{Namespace: lab.Namespace, Name: name}, revision); err != nil {
		return 0, err
	}
	return ownership.SlotOf(string(revision.UID), 0), nil
}

// mostCalled is the revision that most calls go to, the first one of several; false if there
// is none.
func mostCalled(traffic []v1alpha1.TrafficStatus) (revision string, found bool) {
	weights, most := make(map[string]int32), int32(0)
	for _, part := range traffic {
		weights[part.RevisionName] += part.Weight
	}
	for _, part := range traffic {
		if weight := weights[part.RevisionName]; weight > most {
			revision, most = part.RevisionName, weight
		}
	}
	return revision, most > 0
}

// slotKey is the key of a slot in etcd.
func slotKey(slot ownership.Slot) string { return fmt.Sprintf("%s/slots/%04d", lab.Prefix, slot) }

// owner is the scheduler that owns a function's slot as etcd has it.
func (s slots) owner(ctx context.Context, function string) (*lab.Member, error) {
	slot, err := s.slot(ctx, function)
	if err != nil {
		return nil, err
	}
	got, err := s.etcd.Get(ctx, slotKey(slot))
	if err != nil {
		return nil, err
	}
	if len(got.Kvs) == 0 {
		return nil, fmt.Errorf("nobody owns the slot %d of %s", slot, function)
	}
	var owner struct{ ID string }
	if err := json.Unmarshal(got.Kvs[0].Value, &owner); err != nil {
		return nil, err
	}
	for _, m := range s.lab.Schedulers {
		if m.Name == owner.ID {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the slot of %s is owned by %q, which is no scheduler of the lab", function, owner.ID)
}

// held is how many slots a scheduler owns as etcd has it.
func (s slots) held(ctx context.Context, m *lab.Member) (int, error) {
	got, err := s.etcd.Get(ctx, lab.Prefix+"/slots/", clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	slots := 0
	for _, kv := range got.Kvs {
		var owner struct{ ID string }
		if err := json.Unmarshal(kv.Value, &owner); err != nil {
			return 0, err
		}
		if owner.ID == m.Name {
			slots++
		}
	}
	return slots, nil
}

// owned returns when somebody who runs owns a function's slot.
func (s slots) owned(ctx context.Context, function string) error {
	ctx, cancel := context.WithTimeout(ctx, recoverWithin)
	defer cancel()
	for {
		owner, err := s.owner(ctx, function)
		if err == nil && owner.Alive() {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("nobody who runs owns the slot of %s: %w", function, err)
		}
		sleep.For(ctx, 100*time.Millisecond)
	}
}

// calm is how long no slot has to change hands for Windlass to be at rest.
const calm = 3 * time.Second

// atRest returns when the schedulers have shared the slots among them.
func (s slots) atRest(ctx context.Context) error {
	revision := func() (int64, error) {
		got, err := s.etcd.Get(ctx, lab.Prefix+"/slots/", clientv3.WithLastRev()...)
		if err != nil || len(got.Kvs) == 0 {
			return 0, err
		}
		return got.Kvs[0].ModRevision, nil
	}
	for {
		before, err := revision()
		if err != nil {
			return err
		}
		sleep.For(ctx, calm)
		after, err := revision()
		if err != nil {
			return err
		}
		if before == after {
			return nil
		}
	}
}

// key is what etcd has of the slot of work.
func (s slots) key(ctx context.Context) (name string, lease clientv3.LeaseID, err error) {
	slot, err := s.slot(ctx, work)
	if err != nil {
		return "", 0, err
	}
	got, err := s.etcd.Get(ctx, slotKey(slot))
	if err != nil {
		return "", 0, err
	}
	if len(got.Kvs) == 0 {
		return "", 0, fmt.Errorf("etcd has no key %s", slotKey(slot))
	}
	return slotKey(slot), clientv3.LeaseID(got.Kvs[0].Lease), nil
}
