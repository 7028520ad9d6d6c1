package nodeagent

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// coLocateEvery is how often latency-critical instances are looked at that have batch instances beside
// them: it is what the defaults of package colocate are made for.
const coLocateEvery = 100 * time.Millisecond

// newContainersEvery is how often the cores of an instance that is kept off some are set again: with version 1 of
// control groups, a container that has started since runs on all of them.
const newContainersEvery = time.Second

// Hold keeps a batch instance back. The Agent calls it under its lock, so it must not wait.
type Hold interface {
	// SetFrozen stops the instance's function or lets it go on, and SetCores lets it run on a list of
	// cores only; "" is as before. Set again, the list is that of containers that have started since, too. An error that is errors.ErrUnsupported says that it cannot be done
	// now, and is no failure. After any other, it is tried again.
	SetFrozen(frozen bool) error
	SetCores(list string) error
	// Close lets the instance go on as before. The Agent calls it once.
	Close() error
}

// CoLocation is how a node with that many cores keeps batch instances back, by what it has: without
// waits by need alone, which reserves cores and stops nothing. The error says why it can do nothing.
func CoLocation(cores int, has cgroups.Holding) (colocate.Params, error) {
	p := colocate.DefaultParams(cores)
	if !has.Cores {
		p.Most = p.Least
	}
	waits := has.Waits != cgroups.NoWaits
	p.OnWait, p.Freeze = waits, waits && has.Freezer
	switch {
	case p.Freeze || p.Most > p.Least:
		return p, nil
	case !has.Cores && !has.Freezer:
		return p, errors.New("there is neither a cpuset nor a freezer")
	case !has.Cores:
		return p, errors.New("there is no cpuset, and nothing says how long instances wait for a core")
	case !has.Freezer:
		return p, fmt.Errorf("%d cores are too few to reserve one, and there is no freezer", cores)
	}
	return p, fmt.Errorf("%d cores are too few to reserve one, and nothing says how long instances wait for a core", cores)
}

// SwitchOnCoLocation lets a node with that many cores keep batch instances back, if it can. Numbers are those of the cores, if
// they are known. What it can do is logged once.
func (c *Config) SwitchOnCoLocation(cores int, numbers []int, tree *cgroups.Tree, log *slog.Logger) {
	has := tree.Holding()
	params, err := CoLocation(cores, has)
	if err != nil {
		log.Warn("functions of class Batch are not kept back for those of class LatencyCritical", "err", err, "bands", tree.String())
		return
	}
	c.CoLocation = &params
	if len(numbers) == cores {
		c.CoreNumbers = numbers
	}
	log.Info("functions of class Batch are kept back when those of class LatencyCritical wait for cores",
		"has", has.String(), "most-reserved", params.Most, "freezes", params.Freeze)
}

// coLocation keeps batch instances back while latency-critical ones are beside them. The Agent's lock
// guards it.
type coLocation struct {
	params  *colocate.Params // nil if it is off
	numbers []int            // Config.CoreNumbers
	metrics *metrics
	log     *slog.Logger
	// unread says that it was logged that the wait of an instance cannot be read.
	unread bool
	heldNow
}

// heldNow is what is kept back now; without instances of both classes it is empty.
type heldNow struct {
	core   *colocate.Core // nil unless instances of both classes are here
	at     time.Duration  // of the last look
	claims claims
	held   map[callorder.InstanceID]*heldBack
	// freezes and frozen are how often and for how long instances were frozen since it began.
	freezes int
	frozen  time.Duration
	vain    int // what was given back since it began because it had changed nothing
}

// claim is what a latency-critical instance has used and waited so far.
type claim struct{ used, waited time.Duration }

// claims adds up what latency-critical instances claim.
type claims struct {
	last map[callorder.InstanceID]claim
	sum  colocate.Looked
}

// count takes in the claims of the instances that are here now, and returns what all have used so far,
// and what the one has waited that waited longest each time. Who has come since the last time counts
// from now on.
func (c *claims) count(now map[callorder.InstanceID]claim) colocate.Looked {
	var longest time.Duration
	for id, is := range now {
		if was, known := c.last[id]; known {
			c.sum.Usage += max(0, is.used-was.used)
			longest = max(longest, is.waited-was.waited)
		}
	}
	c.sum.Waited += longest
	c.last = now
	return c.sum
}

// heldBack is a batch instance while latency-critical ones are here: how it should be, and how it is.
type heldBack struct {
	name             string
	hold             Hold
	cores, toCores   string
	setCores         time.Duration // when they were set last
	frozen, toFreeze bool
	// failing says that the last change failed, and said that it was logged what cannot be done.
	failing, said bool
}

// change brings the instance to where it should be. It is called again until nothing failed. What cannot
// be done is given up until the core decides again.
func (h *heldBack) change(now time.Duration) (cannot, failed error) {
	if h.toCores != h.cores || h.toCores != "" && now-h.setCores >= newContainersEvery {
		h.setCores = now
		err := h.hold.SetCores(h.toCores)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			h.cores, cannot = h.toCores, err
		case err != nil:
			failed = err
		default:
			h.cores = h.toCores
		}
	}
	if h.toFreeze != h.frozen {
		err := h.hold.SetFrozen(h.toFreeze)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			h.toFreeze, cannot = h.frozen, errors.Join(cannot, err)
		case err != nil:
			failed = errors.Join(failed, err)
		default:
			h.frozen = h.toFreeze
		}
	}
	return cannot, failed
}

// allowed is on how many of the cores with tickets batch instances may run.
func (c *coLocation) allowed(cores int) int {
	if c.core == nil {
		return cores
	}
	return min(cores, c.params.Cores-c.core.Reserved())
}

// both says whether instances of both classes are here.
func both(sessions map[callorder.InstanceID]*session) bool {
	var critical, batch bool
	for _, s := range sessions {
		critical = critical || s.class == callorder.LatencyCritical
		batch = batch || s.class == callorder.Batch
	}
	return critical && batch
}

// joined takes an instance in that has joined.
func (c *coLocation) joined(now time.Duration, sessions map[callorder.InstanceID]*session, s *session) {
	switch {
	case c.params == nil:
	case c.core != nil:
		c.keepBack(now, s)
	case both(sessions):
		core, err := colocate.New(*c.params)
		if err != nil {
			return // Config is valid
		}
		c.heldNow = heldNow{core: core, at: now, held: map[callorder.InstanceID]*heldBack{}}
		c.log.Debug("batch instances are kept back when latency-critical ones wait for cores")
		for _, s := range sessions {
			c.keepBack(now, s)
		}
		c.lookAtClaims(now, sessions)
	}
}

// left lets an instance go that has left, and all of them if those of a class were the last
// ones.
func (c *coLocation) left(now time.Duration, sessions map[callorder.InstanceID]*session, s *session) error {
	if c.core == nil {
		return nil
	}
	err := c.letGo(now, s.id)
	if both(sessions) {
		return err
	}
	c.apply(now, colocate.Stopped{})
	for id := range c.held {
		err = errors.Join(err, c.letGo(now, id))
	}
	c.log.Debug("batch instances are not kept back any more", "freezes", c.freezes, "frozen", c.frozen, "in-vain", c.vain)
	c.heldNow = heldNow{}
	c.metrics.showCoLocation(c)
	return err
}

// keepBack begins to keep an instance back, if it is a batch instance and can be.
func (c *coLocation) keepBack(now time.Duration, s *session) {
	if s.class != callorder.Batch || s.openHold == nil {
		return
	}
	hold, err := s.openHold()
	if err != nil {
		c.metrics.failed.WithLabelValues(fileOf(err)).Inc()
		c.log.Warn("a batch instance cannot be kept back", "err", err, "instance", s.name)
		return
	}
	c.held[s.id] = &heldBack{name: s.name, hold: hold}
	c.apply(now, colocate.Arrived{Job: colocate.JobID(s.id), Unstoppable: s.filler})
	c.apply(now, colocate.Sampled{Job: colocate.JobID(s.id), Usage: s.usage})
}

// letGo ends what keeps an instance back.
func (c *coLocation) letGo(now time.Duration, id callorder.InstanceID) error {
	h := c.held[id]
	if h == nil {
		return nil
	}
	delete(c.held, id)
	c.countFrozen(now, h)
	c.apply(now, colocate.Ended{Job: colocate.JobID(id)})
	if err := h.hold.Close(); err != nil {
		return fmt.Errorf("nodeagent: %s is still kept back: %w", h.name, err)
	}
	return nil
}

// lookAtClaims tells the core what latency-critical instances have used and waited, and what batch
// instances have used, and does what it says.
func (c *coLocation) lookAtClaims(now time.Duration, sessions map[callorder.InstanceID]*session) {
	claimed := map[callorder.InstanceID]claim{}
	for id, s := range sessions {
		switch {
		case s.class == callorder.LatencyCritical:
			s.look(now)
			claimed[id] = claim{s.usage, c.waitOf(s)}
		case c.held[id] != nil && s.look(now):
			c.apply(now, colocate.Sampled{Job: colocate.JobID(id), Usage: s.usage})
		}
	}
	before := c.claims.sum
	looked := c.claims.count(claimed)
	c.metrics.criticalCPU.Add((looked.Usage - before.Usage).Seconds())
	c.metrics.criticalWait.Add((looked.Waited - before.Waited).Seconds())
	for _, h := range c.held {
		c.countFrozen(now, h)
	}
	c.at = now
	c.apply(now, looked)
	c.countVain()
	c.changeHeld(now)
	c.metrics.showCoLocation(c)
}

// countVain counts, and logs the first time, that keeping back has changed nothing.
func (c *coLocation) countVain() {
	vain := c.core.Vain()
	if vain == c.vain {
		return
	}
	if c.vain == 0 {
		c.log.Info("a latency-critical instance waits for something other than batch instances; they are not kept back for that")
	}
	c.metrics.vain.Add(float64(vain - c.vain))
	c.vain = vain
}

// countFrozen counts for how long an instance has been frozen since the last look.
func (c *coLocation) countFrozen(now time.Duration, h *heldBack) {
	if h.frozen {
		c.frozen += now - c.at
		c.metrics.frozenTime.Add((now - c.at).Seconds())
	}
}

// waitOf is for how long an instance has waited for a core so far.
func (c *coLocation) waitOf(s *session) time.Duration {
	if s.waited == nil {
		return 0
	}
	waited, err := s.waited()
	if err == nil {
		s.waitedFor = waited
	} else if !c.unread && !errors.Is(err, errors.ErrUnsupported) {
		c.unread = true
		c.log.Warn("for how long a latency-critical instance waits for a core cannot be read", "err", err, "instance", s.name)
	}
	return s.waitedFor
}

// apply tells the core something, and notes what it decides for changeHeld.
func (c *coLocation) apply(now time.Duration, e colocate.Event) {
	for _, effect := range c.core.Step(now, e) {
		switch effect := effect.(type) {
		case colocate.Place:
			if h := c.held[callorder.InstanceID(effect.Job)]; h != nil {
				h.toCores = listOf(effect.On, c.params.Cores, c.numbers)
			}
		case colocate.Freeze:
			if h := c.held[callorder.InstanceID(effect.Job)]; h != nil {
				h.toFreeze = true
			}
		case colocate.Thaw:
			if h := c.held[callorder.InstanceID(effect.Job)]; h != nil {
				h.toFreeze = false
			}
		}
	}
}

// listOf is a list of cores for a Hold. All of them is as before. Numbers are those of the cores; none if they are 0 and up.
func listOf(on colocate.Cores, cores int, numbers []int) string {
	switch {
	case on == (colocate.Cores{First: 0, N: cores}):
		return ""
	case len(numbers) == 0:
		return on.String()
	}
	return cgroups.FormatCores(numbers[on.First : on.First+on.N])
}

// changeHeld brings batch instances to where they should be.
func (c *coLocation) changeHeld(now time.Duration) {
	for _, h := range c.held {
		was := h.frozen
		cannot, failed := h.change(now)
		if cannot != nil && !h.said {
			c.log.Info("a batch instance cannot be kept back wholly", "err", cannot, "instance", h.name)
			h.said = true
		}
		if failed != nil {
			c.metrics.failed.WithLabelValues(fileOf(failed)).Inc()
		}
		if failed != nil && !h.failing {
			c.log.Warn("a batch instance cannot be kept back or let go; it is tried again", "err", failed, "instance", h.name)
		}
		h.failing = failed != nil
		if h.frozen == was {
			continue
		}
		c.log.Debug("a batch instance is frozen, or goes on", "frozen", h.frozen, "instance", h.name)
		if h.frozen {
			c.freezes++
			c.metrics.freezes.Inc()
		}
	}
}
