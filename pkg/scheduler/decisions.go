package scheduler

import (
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// decisionLog keeps recent decisions for people who ask why.
type decisionLog struct {
	mu  sync.Mutex
	log *decisionlog.Log
}

func newDecisionLog() *decisionLog {
	return &decisionLog{log: decisionlog.NewLog(decisionlog.DefaultBounds())}
}

// addEntry adds a decision and its outcome.
func (d *decisionLog) addEntry(t *ticker, e *evaluation) {
	entry := decisionlog.Entry{
		At: t.shell.deps.Now(), Params: t.shell.params(), Snapshot: e.Snapshot, Decision: e.Decision,
		Outcome: decisionlog.Outcome{
			Wanted:     e.Wanted(),
			Cancelled:  len(e.cancelled),
			Floor:      e.floor(),
			Placed:     decisionlog.Place(t.shell.nodesOf(e.launched.Keys)),
			NoRoom:     e.launched.NoRoom,
			HeldBack:   t.heldBack(e),
			MakingRoom: t.placer.planner.Reserved(e.unit.uid) > 0,
		},
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.Add(e.unit.uid, entry)
}

// floor says which setting asks for the minimum, if the function has fewer instances.
func (e *evaluation) floor() decisionlog.Floor {
	f := decisionlog.Floor{Instances: e.Bounds.Min}
	switch {
	case e.Decision.Why == autoscaler.ReasonProof:
		f.Of = decisionlog.FloorProof
	case e.Decision.Why != autoscaler.ReasonMin:
		return decisionlog.Floor{}
	case e.Floor.Scheduled >= f.Instances:
		f.Of = decisionlog.FloorSchedule
	case e.Floor.Awaited >= f.Instances:
		f.Of = decisionlog.FloorAwaited
	default:
		f.Of = decisionlog.FloorSpec
	}
	return f
}

// nodesOf are the nodes on which instances of one function were launched.
func (s *shell) nodesOf(keys []provisioner.Key) []string {
	if len(keys) == 0 {
		return nil
	}
	launched := make(map[provisioner.Key]bool, len(keys))
	for _, key := range keys {
		launched[key] = true
	}
	var nodes []string
	for _, in := range s.deps.Instances.Instances(keys[0].FunctionUID) {
		if launched[in.Key] {
			nodes = append(nodes, in.Node)
		}
	}
	return nodes
}

func (d *decisionLog) removeFunction(uid string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.Remove(uid)
}

func (d *decisionLog) last(uid string, n int) []decisionlog.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Last(uid, n)
}

func (d *decisionLog) notable(uid string, since time.Time) (decisionlog.Entry, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Notable(uid, since)
}

func (d *decisionLog) recent(since time.Time, n int) (uids []string, more int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.Recent(since, n)
}
