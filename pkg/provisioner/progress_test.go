package provisioner

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// fakeStartObserver has seen the same of all instances.
type fakeStartObserver struct{ created, sandboxed time.Time }

func (w fakeStartObserver) Progress(string, invocation.CID) (created, sandboxed time.Time) {
	return w.created, w.sandboxed
}

func TestHowFarAStartHasComeIsTold(t *testing.T) {
	now := time.Unix(1000, 0)
	seen := fakeStartObserver{now.Add(time.Second), now.Add(2 * time.Second)}
	for name, tc := range map[string]struct {
		observer StartObserver
		want     Progress
	}{
		"by a runtime that sees it":    {seen, Progress{now, seen.created, seen.sandboxed}},
		"by one that does not see any": {nil, Progress{Launched: now}},
	} {
		p := New(
			Config{Nodes: []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: 400, Memory: 1 << 40}}}},
			Deps{Driver: &fakeDriver{exits: make(chan Exit, 1)}, StartObserver: tc.observer, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }},
		)
		key := p.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys[0]
		if got := p.Progress(key); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		other := Key{FunctionUID: "u", CID: "other"}
		if got := p.Progress(other); got != (Progress{}) || has(p.Inventory, other) || !has(p.Inventory, key) {
			t.Errorf("%s: of an instance that was not launched is told %+v", name, got)
		}
	}
}

// fakeNodes is a cluster of which two nodes are known.
type fakeNodes struct{}

func (fakeNodes) Candidates(*v1alpha1.Function) placement.Candidates {
	return placement.Candidates{Nodes: []placement.Node{{Name: "a", Allocatable: placement.Amount{MilliCPU: 1000, Memory: 1 << 40}}}}
}

func (fakeNodes) Nodes() []placement.Node {
	return []placement.Node{
		{Name: "a", Allocatable: placement.Amount{MilliCPU: 1000}, Requested: placement.Amount{MilliCPU: 900}},
		{Name: "b", Allocatable: placement.Amount{MilliCPU: 2000}},
	}
}

func TestWarningsAboutInstancesNameTheirFunction(t *testing.T) {
	var log strings.Builder
	now := time.Unix(1000, 0)
	p := New(Config{}, Deps{
		Driver: &fakeDriver{exits: make(chan Exit, 1)}, Nodes: fakeNodes{},
		Log: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time { return now },
	})
	p.Launch(function(), invocation.Term{Epoch: 7}, 1)
	now = now.Add(time.Minute)
	p.stopOverdue(&eventRecorder{})
	p.handleExit(Exit{FunctionUID: "u2", CID: cid1}, &eventRecorder{})
	for _, want := range []string{"function=/f cid=" + string(cid1) + " state=creating launched=", "functionUID=u2 cid=" + string(cid1)} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in:\n%s", want, log.String())
		}
	}
}

func TestNodesAreThoseThatAreKnownOrHaveInstances(t *testing.T) {
	p := New(Config{}, Deps{
		Driver: &fakeDriver{exits: make(chan Exit, 1)}, Nodes: fakeNodes{},
		Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Unix(1000, 0) },
	})
	p.Launch(function(), invocation.Term{Epoch: 7}, 2)
	gone := Key{FunctionUID: "u", CID: "gone"}
	adopted(p.Inventory, Instance{Key: gone, Node: "c"})
	known := fakeNodes{}.Nodes()
	want := []NodeLoad{{known[0], 2}, {known[1], 0}, {placement.Node{Name: "c"}, 1}}
	if diff := cmp.Diff(want, p.Nodes()); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	p.Inventory.removeWithoutExit(gone)
	if diff := cmp.Diff(want[:2], p.Nodes()); diff != "" {
		t.Errorf("nodes without c (-want +got):\n%s", diff)
	}
}
