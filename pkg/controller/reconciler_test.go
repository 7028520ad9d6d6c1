package controller

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// undeletingClient writes every status, and deletes nothing.
type undeletingClient struct{ client.Client }

func (undeletingClient) Status() client.SubResourceWriter { return statusWriter{} }

func (undeletingClient) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	return errors.New("busy")
}

type statusWriter struct{ client.SubResourceWriter }

func (statusWriter) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// The next plan compares with the status that was written, and finds no change.
func TestWhatAStatusChangesIsToldThoughARevisionCannotBeRemoved(t *testing.T) {
	m, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(2)
	r := &reconciler{
		client: undeletingClient{}, events: events, metrics: m, log: slog.New(slog.DiscardHandler),
		written: make(map[types.NamespacedName]*writes),
	}
	f := &v1alpha1.Function{}
	f.Namespace, f.Name = "shop", "cart"
	old := &v1alpha1.FunctionRevision{}
	old.Name = "cart-00001"
	pace := pace{time.Unix(1000, 0)}
	err = r.applyOutcome(t.Context(), f, outcome{
		status: &v1alpha1.FunctionStatus{}, remove: []*v1alpha1.FunctionRevision{old}, pace: pace,
		changes: []functionEvent{{reason: reasonTrafficMoved, message: "calls go to cart-00002"}},
	})
	if err == nil {
		t.Error("that the revision could not be removed is no error")
	}
	if len(events.Events) != 1 {
		t.Errorf("%d events were recorded, want 1", len(events.Events))
	}
	if w := r.writtenAt(client.ObjectKeyFromObject(f)); w.pace != pace {
		t.Errorf("the pace is %v, want %v: the write counts", w.pace, pace)
	}
}
