package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

type runningMemory struct {
	*EstimateStore
	running
}

func memory(t *testing.T) runningMemory {
	t.Helper()
	l := newLine(t)
	m := memoryOn(t, l, l.client())
	<-m.Ready()
	return m
}

// memoryOn runs an EstimateStore that need not be ready.
func memoryOn(t *testing.T, l *line, client *clientv3.Client) runningMemory {
	t.Helper()
	j := newJournal()
	m, err := NewEstimateStore(prefix(t), Deps{Client: client, Log: slog.New(j)})
	if err != nil {
		t.Fatal(err)
	}
	return runningMemory{m, running{l, j, run(t, m.Run)}}
}

// unitNamed is a revision of the function f.
func unitNamed(uid string) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.UID = types.UID(uid)
	fn.Annotations = map[string]string{v1alpha1.AnnotationFunctionUID: "f"}
	return fn
}

func estimatesOf(uid string, execution time.Duration) estimate.Unit {
	return estimate.Unit{UID: uid, Function: "f", Revision: "00001", Execution: execution, Start: time.Second}
}

// remember writes what is worth it, as Keep does.
func (m runningMemory) remember(t *testing.T, k runningCoordinator, estimates ...estimate.Unit) (written int) {
	t.Helper()
	due := m.due(k.Epoch, func() []estimate.Unit { return estimates })
	m.write(t.Context(), due)
	return len(due)
}

func (m runningMemory) recalls(uid string, want time.Duration) func() bool {
	return func() bool { return m.Restore(unitNamed(uid)).Execution == want }
}

func TestWhatAnOwnerLearntIsKnownToAll(t *testing.T) {
	k := runCoordinator(t, "a")
	eventually(t, "it holds all slots", k.holdsAll)
	writer, reader := memory(t), memory(t)
	if n := writer.remember(t, k, estimatesOf("u1", time.Minute), estimatesOf("u2", time.Hour)); n != 2 {
		t.Errorf("%d records were written for two units", n)
	}
	eventually(t, "others know", reader.recalls("u1", time.Minute))
	eventually(t, "others know of the other", reader.recalls("u2", time.Hour))
	eventually(t, "the writer knows what is kept", writer.recalls("u2", time.Hour))
	if got := reader.Restore(unitNamed("u9")); got.Start != time.Second {
		t.Errorf("a new revision begins with %+v", got)
	}
	if n := writer.remember(t, k, estimatesOf("u1", time.Minute+5*time.Second), estimatesOf("u2", time.Hour)); n != 0 {
		t.Errorf("%d records were written though little has changed", n)
	}
	late := memory(t)
	if got := late.Restore(unitNamed("u1")).Execution; got != time.Minute {
		t.Errorf("who comes later recalls %v", got)
	}
	// A function that is gone leaves nothing.
	if n := writer.remember(t, k); n != 2 {
		t.Errorf("%d records were written when both had gone", n)
	}
	eventually(t, "nothing is known", reader.recalls("u9", 0))
	if left, err := store.Get(t.Context(), keys(prefix(t)).records(), clientv3.WithPrefix()); err != nil || left.Count != 0 {
		t.Errorf("%d records are left, %v", left.Count, err)
	}
}

func TestOnlyTheOwnerOfASlotWritesItsRecord(t *testing.T) {
	k := runCoordinator(t, "a")
	eventually(t, "it holds all slots", k.holdsAll)
	m, slot := memory(t), ownership.SlotOf("u1", 0)
	epoch, _ := k.Epoch(slot)
	for _, in := range []struct {
		epoch uint64
		want  int64
	}{{epoch - 1, 0}, {epoch, 1}} {
		n := pendingWrite{slot, in.epoch, estimate.RecordOf([]estimate.Unit{estimatesOf("u1", time.Duration(in.epoch))})}
		if err := m.writeOne(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		answer, err := store.Get(t.Context(), keys(prefix(t)).record(slot))
		if err != nil || answer.Count != in.want {
			t.Errorf("in epoch %d of %d: %d records, %v", in.epoch, epoch, answer.Count, err)
		}
	}
	eventually(t, "the owner's is what counts", m.recalls("u1", time.Duration(epoch)))
}

func TestARecordThatCannotBeReadIsSaidOnceAndReplaced(t *testing.T) {
	k := runCoordinator(t, "a")
	eventually(t, "it holds all slots", k.holdsAll)
	m, slot := memory(t), ownership.SlotOf("u1", 0)
	const complaint = "cannot be read"
	for range 2 {
		if _, err := store.Put(t.Context(), keys(prefix(t)).record(slot), "{"); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it is said", func() bool { return m.journal.count(complaint) > 0 })
	if got := m.Restore(unitNamed("u1")); got != (estimate.Means{}) {
		t.Errorf("recalled %+v", got)
	}
	if n := m.remember(t, k, estimatesOf("u1", time.Hour)); n != 1 {
		t.Errorf("%d records were written", n)
	}
	eventually(t, "it is replaced", m.recalls("u1", time.Hour))
	if n := m.journal.count(complaint); n != 1 {
		t.Errorf("it was said %d times", n)
	}
}

// A record names only units of its slot: another one could not take them back.
func TestAUnitInTheRecordOfAnotherSlotIsIgnored(t *testing.T) {
	m, slot := memory(t), ownership.SlotOf("u1", 0)
	elsewhere := string(estimate.RecordOf([]estimate.Unit{estimatesOf("u1", 1), estimatesOf(otherSlot(slot), time.Hour)}).Encode())
	if _, err := store.Put(t.Context(), keys(prefix(t)).record(slot), elsewhere); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its own is known", m.recalls("u1", 1))
	if got := m.Restore(unitNamed("new")).Execution; got != 1 {
		t.Errorf("recalled %v", got)
	}
}

// otherSlot is a UID that is not of the slot.
func otherSlot(slot ownership.Slot) string {
	for i := 0; ; i++ {
		if uid := fmt.Sprint("v", i); ownership.SlotOf(uid, 0) != slot {
			return uid
		}
	}
}

func TestMemoryGoesOnAfterTroubleWithEtcd(t *testing.T) {
	k := runCoordinator(t, "a")
	eventually(t, "it holds all slots", k.holdsAll)
	writer, m := memory(t), memory(t)
	writer.remember(t, k, estimatesOf("u1", time.Minute))
	eventually(t, "it knows", m.recalls("u1", time.Minute))
	m.line.down()
	for range 2 {
		if m.remember(t, k, estimatesOf("u1", time.Hour)) != 1 {
			t.Error("it gave up")
		}
	}
	if n := m.journal.count("cannot be stored"); n != 1 {
		t.Errorf("it was said %d times that nothing can be kept", n)
	}
	writer.remember(t, k, estimatesOf("u1", 2*time.Minute))
	if got := m.Restore(unitNamed("u1")).Execution; got != time.Minute {
		t.Errorf("without etcd it recalls %v", got)
	}
	m.line.mend(store)
	eventually(t, "it has caught up", m.recalls("u1", 2*time.Minute))
}

// Owners that claimed their slots before would delete the records: their functions have no
// estimates yet.
func TestMemoryIsReadyOnceItHasReadTheRecords(t *testing.T) {
	k := runCoordinator(t, "a")
	eventually(t, "it holds all slots", k.holdsAll)
	memory(t).remember(t, k, estimatesOf("u1", time.Minute))
	l := newLine(t)
	l.down()
	m := memoryOn(t, l, l.client())
	eventually(t, "etcd did not answer", func() bool { return m.journal.count("was interrupted") > 1 })
	select {
	case <-m.Ready():
		t.Error("it is ready before it has read the records")
	default:
	}
	l.mend(store)
	<-m.Ready()
	if got := m.Restore(unitNamed("u1")).Execution; got != time.Minute {
		t.Errorf("it recalls %v", got)
	}
}

// deniedKV is of a user who may not read.
type deniedKV struct{ clientv3.KV }

func (deniedKV) Get(context.Context, string, ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return nil, rpctypes.ErrPermissionDenied
}

func TestMemoryIsReadyIfItMayNotReadTheRecords(t *testing.T) {
	l := newLine(t)
	client := l.client()
	client.KV = deniedKV{}
	<-memoryOn(t, l, client).Ready()
}

func TestTheLastIsWrittenBeforeTheSlotsGo(t *testing.T) {
	k := runCoordinator(t, "a")
	eventually(t, "it holds all slots", k.holdsAll)
	m, reader := memory(t), memory(t)
	run(t, func(ctx context.Context) error {
		return m.WriteUntil(ctx, k.Coordinator, func() []estimate.Unit { return []estimate.Unit{estimatesOf("u1", time.Hour)} })
	})()
	eventually(t, "it is known", reader.recalls("u1", time.Hour))
}
