package scheduler

import (
	"cmp"
	"slices"

	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const reasonUnwanted = "it is not wanted any more"

// withdrawSurplus ends instances that are being created and not wanted any more, the youngest
// first: those of which nothing was heard yet, and then those whose agents wait for
// their function.
func (s *ticker) withdrawSurplus(c *considered) {
	unwanted := c.Decision.Withdraw
	if unwanted <= 0 {
		return
	}
	f := c.function
	c.withdrawn = s.deps.Instances.CancelLaunches(f.uid, unwanted)
	c.withdrawn = append(c.withdrawn, s.withdrawHeard(f, unwanted-len(c.withdrawn))...)
	if n := len(c.withdrawn); n > 0 {
		f.note(instanceWithdrawn, n)
		s.deps.Log.Info("withdrew instances that were being created", "function", c.fn.Key().String(),
			"wanted", unwanted, "withdrawn", n, "reason", string(c.Decision.Why))
	}
}

// withdrawHeard ends up to n instances whose agents are there. Those that were spare
// ones are as good as ready. None is handed a ticket
// any more before it is looked at which of them could have been.
func (s *ticker) withdrawHeard(f *function, n int) []provisioner.Key {
	if n <= 0 {
		return nil
	}
	heard := slices.DeleteFunc(s.deps.Instances.Instances(f.uid), func(in provisioner.Instance) bool {
		return in.State != provisioner.Creating || in.Ran || in.Spare || !in.Connected
	})
	slices.SortFunc(heard, func(a, b provisioner.Instance) int {
		return cmp.Or(b.Launched.Compare(a.Launched), cmp.Compare(b.CID, a.CID))
	})
	heard = heard[:min(n, len(heard))]
	withdrawn := make([]provisioner.Key, 0, len(heard))
	for _, in := range heard {
		s.step(f, core.DrainRequested{CID: in.CID, Reason: reasonUnwanted})
		withdrawn = append(withdrawn, in.Key)
	}
	within := finishTime(f.current())
	for _, in := range s.deps.Instances.Instances(f.uid) {
		if slices.Contains(withdrawn, in.Key) {
			s.letGo(in, within)
		}
	}
	return withdrawn
}
