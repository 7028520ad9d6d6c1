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
func (d *decisionLog) addEntry(s *ticker, c *evaluation) {
	e := decisionlog.Entry{
		At: s.shell.deps.Now(), Params: s.shell.params(), Snapshot: c.Snapshot, Decision: c.Decision,
		Outcome: decisionlog.Outcome{
			Wanted:     c.Wanted(),
			Cancelled:  len(c.cancelled),
			Floor:      c.floor(),
			Placed:     decisionlog.Place(s.shell.nodesOf(c.launched.Keys)),
			NoRoom:     c.launched.NoRoom,
			HeldBack:   s.heldBack(c),
			MakingRoom: s.placer.planner.Reserved(c.unit.uid) > 0,
		},
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log.Add(c.unit.uid, e)
}

// floor says which setting asks for the minimum, if the function has fewer instances.
func (c *evaluation) floor() decisionlog.Floor {
	f := decisionlog.Floor{Instances: c.Bounds.Min}
	switch {
	case c.Decision.Why == autoscaler.ReasonProof:
		f.Of = decisionlog.FloorProof
	case c.Decision.Why != autoscaler.ReasonMin:
		return decisionlog.Floor{}
	case c.Floor.Scheduled >= f.Instances:
		f.Of = decisionlog.FloorSchedule
	case c.Floor.Awaited >= f.Instances:
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
