package callorder

import (
	"cmp"
	"slices"
	"time"
)

// Core decides which calls of a node compute.
type Core struct {
	params Params
	busy   bool
	// occupied cores have no tickets.
	occupied   int
	instances  map[InstanceID]*instance
	functions  functions
	namespaces namespaces
	offered    offer
	sizes      sizes
	rhythm     rhythm
	gone       gone

	begun
	// members are all instances, in the order in which they joined, and turn says up to which of
	// them AppendUnasked has got.
	members []*instance
	turn    int
	// gaveBack is how many tickets calls gave back because they were blocked.
	gaveBack int

	out []Effect
}

// phase is where the call of an instance is.
type phase int

const (
	idle      phase = iota // it has no call that asked
	waiting                // the call asked and has not begun
	holding                // it has a ticket
	preempted              // it has begun, and waits for a ticket in the low band
	blocked                // it has begun, uses no processor, and has no ticket
	demoted                // it outlived its slice: low band
	lifted                 // it outlived its slice, and a core is free: normal band, no ticket
)

// instance is an instance and the call that it has, if any.
type instance struct {
	id        InstanceID
	name      string
	function  *function
	namespace *namespace
	class     Class
	ownSlice  time.Duration // 0 for the node's
	mustAsk   bool
	told      time.Duration // since when the node agent wants it to ask
	usage     time.Duration // processor time at the last look
	allowance allowance
	low       bool

	phase phase
	call
	samples
}

// call is the call of an instance.
type call struct {
	ask      uint64
	received time.Duration // when the node received the call
	asked    time.Duration // when the node agent heard of it
	key      float64       // its place in the line by key, in nanoseconds
	proven   float64       // the same, as if it had not waited before the node heard of it
	size     float64       // what it is expected to need, its place in the line by size
	places   [2]int        // its indexes in the lines
	aged     bool          // it has its ticket by its age: shorter calls waited
	began    time.Duration // the instance's usage when the call began
	wasted   time.Duration // what it kept of its ticket, and did not use
	outlived bool          // it has outlived its slice, also while it is blocked
}

// samples are what is known of an instance since its call came to its phase, or the node to its mode: before that the
// call has waited, or nobody has looked.
type samples struct {
	sampled time.Duration // when it was sampled last, or came to its phase
	still   int           // samples in a row without processor time
	skipped int           // samples since the last one, in which it was left out
	slow    int           // samples in a row in which it hardly used its ticket
	unused  time.Duration // what it did not use in these, unless that is in wasted
}

// used is the processor time of the instance's call, and what it took from others by keeping a ticket
// that it did not use.
func (i *instance) used() time.Duration { return i.usage - i.began + i.wasted }

// New returns a core of a calm node without instances.
func New(params Params) (*Core, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &Core{
		params:    params,
		instances: map[InstanceID]*instance{},
		functions: functions{},
		rhythm:    newRhythm(params.Cores),
	}, nil
}

// Step applies an event and returns its effects, in order. Times count from any fixed moment
// and must not go back from one step to the next. Events of unknown instances change nothing.
func (c *Core) Step(now time.Duration, e Event) []Effect {
	c.out = nil
	if c.busy {
		c.offered.pass(now, c.tickets())
	} else {
		c.offered.pass(now, 0)
	}
	switch e := e.(type) {
	case Joined:
		c.onJoined(now, e)
	case ModeChanged:
		c.onModeChanged(now, e)
	case CoresChanged:
		c.onCoresChanged(e)
	case Occupied:
		c.occupied = e.Cores
	default:
		c.onInstance(now, e)
	}
	c.dispatch(now)
	return c.out
}

// onInstance applies an event of one instance that has joined.
func (c *Core) onInstance(now time.Duration, e Event) {
	switch e := e.(type) {
	case Running:
		if i := c.look(now, e.Instance, e.Usage); i != nil {
			c.onRunning(now, i, e)
		}
	case Asked:
		if i := c.look(now, e.Instance, e.Usage); i != nil {
			c.onAsked(now, i, e)
		}
	case Ended:
		if i := c.look(now, e.Instance, e.Usage); i != nil {
			c.onEnded(now, i, e.Refused)
		}
	case Sampled:
		if i := c.instances[e.Instance]; i != nil {
			c.onSampled(now, i, e.Usage)
		}
	case Exempted:
		if i := c.instances[e.Instance]; i != nil {
			i.allowance.exempted(c.params.Unasked)
		}
	case GaveUp:
		if i := c.look(now, e.Instance, e.Usage); i != nil && i.ask == e.Ask {
			c.onEnded(now, i, true)
		}
	case Left:
		c.onLeft(now, e.Instance)
	}
}

func (c *Core) onJoined(now time.Duration, e Joined) {
	if c.instances[e.Instance] != nil {
		return
	}
	f := c.functions.of(now, functionName{e.Namespace, e.Function}, c.params.MaxFunctions)
	n := c.namespaces.of(now, e.Namespace)
	f.instances++
	n.instances++
	_, known := c.gone.of[e.Name]
	i := &instance{
		id: e.Instance, told: now, function: f, namespace: n, class: e.Class, ownSlice: e.Slice,
		usage: e.Usage, name: e.Name, mustAsk: e.MustAsk && e.Class.takesTickets(),
		allowance: c.gone.allowance(now, e, c.busy, c.params.Unasked),
	}
	if known {
		i.told = now - runningWithin // it comes again to say so
	}
	c.instances[e.Instance] = i
	c.members = append(c.members, i)
	c.setBand(i, i.class == Batch, WhyBatch)
	if c.mustRest(now, i) {
		c.setBand(i, true, WhyUnasked)
	}
}

func (c *Core) onLeft(now time.Duration, id InstanceID) {
	i := c.instances[id]
	if i == nil {
		return
	}
	c.gone.keep(i)
	if i.phase != idle && !i.unasked() && !i.function.known() {
		i.namespace.newcomers.learn(now, i.used())
	}
	c.leaveLists(i)
	i.class, i.phase = Standard, idle // nothing keeps it low any more
	c.setBand(i, false, WhyEnded)
	delete(c.instances, id)
	c.members = slices.DeleteFunc(c.members, func(other *instance) bool { return other == i })
	if i.function.instances--; i.function.instances == 0 {
		i.function.shrink()
	}
	i.function.last = now
	i.namespace.instances--
}

// runningWithin is how long an agent has to report the calls that run already, once the node agent wants it to
// ask. Calls that it reports later began without the ticket that they needed.
const runningWithin = time.Second

// onRunning takes in a call that began while the node was calm. It keeps computing, with a
// ticket if one is free or if calls are never interrupted. For others than those of its namespace it is as new as
// one that asks now: nobody has seen how old it is.
func (c *Core) onRunning(now time.Duration, i *instance, e Running) {
	if i.phase != idle || !i.class.takesTickets() {
		return
	}
	i.asked, i.received = now, now-e.For
	i.beginCall()
	if c.ticketFree() || !c.params.preempts() && now-i.told < runningWithin {
		c.enter(now, i, holding)
		c.setBand(i, false, WhyTicket) // it is low if it computed unasked before it said so
		return
	}
	c.setBand(i, true, WhyPreempted)
	c.wait(i, preempted)
}

func (c *Core) onAsked(now time.Duration, i *instance, e Asked) {
	if !i.class.takesTickets() {
		c.out = append(c.out, Grant{Instance: i.id, Ask: e.Ask})
		return
	}
	// An ask ends the call before it, whose end got lost or rides along.
	if i.phase != idle {
		c.onEnded(now, i, false)
	}
	received := now - max(0, e.Waited)
	i.ask, i.asked, i.received = e.Ask, now, received
	i.namespace.wanted = now
	i.function.received(now)
	if c.params.Order == FairChoice {
		i.function.count(now)
	}
	c.rhythm.arrived(now)
	c.wait(i, waiting)
}

// refusalUses is the most processor time that an instance uses for a call that it does not get. A
// call that used more has run, whatever is said: otherwise nothing would be learnt of a function
// whose agent says that all are refused, and it would always count as short.
const refusalUses = time.Millisecond

func (c *Core) onEnded(now time.Duration, i *instance, refused bool) {
	if i.phase == idle {
		return
	}
	i.namespace.wanted = now
	ran := i.phase != waiting && !(refused && i.used() <= refusalUses)
	if i.phase != waiting {
		i.namespace.keep(now, leastCharge-i.used())
	}
	c.leave(now, i)
	if ran {
		first := !i.function.known()
		i.function.learn(now, i.used())
		c.sizes.learn(i.used())
		if first {
			i.namespace.newcomers.learn(now, i.used())
			c.resize(i)
		}
	}
}

// leastCharge is what a call counts at least for the share of its namespace. Otherwise tickets for calls
// that end at once would cost nothing, and a tenant could keep others waiting with them.
const leastCharge = time.Millisecond

// onSampled compares what a call has used with its slice, and notices whether it computes.
func (c *Core) onSampled(now time.Duration, i *instance, usage time.Duration) {
	grew, since := usage-i.usage, now-i.sampled
	i.look(now, usage, c.params.Unasked)
	i.sampled = now
	switch i.phase {
	case idle, waiting:
		c.ration(now, i)
	case holding:
		c.sampledHolding(now, i, grew, since)
	case lifted:
		if i.noteStill(grew); c.params.isStill(i) {
			c.enter(now, i, blocked)
		}
	case blocked:
		c.sampledBlocked(now, i, grew)
	}
}

// sampledHolding takes the ticket of a call that has used up its slice, or uses no processor.
func (c *Core) sampledHolding(now time.Duration, i *instance, grew, since time.Duration) {
	i.namespace.wanted = now
	i.noteStill(grew)
	if i.slow, i.unused = i.slow+1, i.unused+since-grew; grew >= since/2 {
		i.slow, i.unused = 0, 0
	}
	c.waste(now, i)
	switch {
	case i.used()-i.wasted/2 >= c.slice(i):
		// Half of what it kept counts: it may have had as little because others computed on its core without tickets.
		c.enter(now, i, demoted)
		c.setBand(i, true, WhySlice)
		if i.function.outgrown(i.used()) {
			c.resize(i)
		}
	case c.params.isStill(i):
		c.enter(now, i, blocked)
		c.gaveBack++
	}
}

// sampledBlocked lets a call go on that computes again.
func (c *Core) sampledBlocked(now time.Duration, i *instance, grew time.Duration) {
	if i.still++; grew <= stillness*time.Duration(1+i.skipped) {
		i.skipped = 0
		return
	}
	switch {
	case i.outlived:
		c.enter(now, i, lifted) // dispatch says whether it stays there
	case c.ticketFree():
		c.enter(now, i, holding)
	default:
		c.setBand(i, true, WhyPreempted)
		c.wait(i, preempted)
	}
}

// noteStill notes by how much the processor time of a call grew from one sample to the next.
func (i *instance) noteStill(grew time.Duration) {
	i.still++
	if grew > stillness {
		i.still = 0
	}
}

// isStill says whether a call has used no processor time for so long that it counts as blocked.
func (p Params) isStill(i *instance) bool { return p.BlockedAfter > 0 && i.still >= p.BlockedAfter }

// waste charges a call for the time in which it keeps a ticket and hardly computes: it has used less than half of
// that in more samples than would make it blocked, and no other call had the core. Otherwise a call that computes
// for a moment between pauses could keep a ticket for as long as it likes, and be taken for a short one.
func (c *Core) waste(now time.Duration, i *instance) {
	if blocked := c.params.BlockedAfter; blocked == 0 || i.still >= blocked || i.slow <= blocked || c.params.Order == None {
		return
	}
	i.namespace.keep(now, i.unused)
	i.wasted, i.unused = i.wasted+i.unused, 0
}

// stillness is the growth between two samples up to which an instance counts as standing
// still: waking up to look at the time costs a few microseconds.
const stillness = 100 * time.Microsecond

// onModeChanged makes the node busy, or lets everything go on a calm one.
func (c *Core) onModeChanged(now time.Duration, e ModeChanged) {
	c.busy, c.occupied = e.Busy, 0
	for _, i := range c.members {
		i.allowance.unknown, i.allowance.exempt = true, false
		i.told = now
		i.samples = samples{sampled: now}
	}
	if c.busy {
		return
	}
	for _, i := range c.inOrder() {
		switch i.phase {
		case preempted, blocked, demoted, lifted:
			c.enter(now, i, holding)
		}
		c.setBand(i, false, WhyCalm)
	}
}

// onCoresChanged changes the number of tickets. With preemption the calls that have the most left
// give theirs back; otherwise those that there are too many of end first.
func (c *Core) onCoresChanged(e CoresChanged) {
	c.params.Cores = max(1, e.Cores)
	for c.busy && c.params.preempts() && len(c.holding) > c.tickets() {
		i := c.mostLeft(0, nil)
		if i == nil {
			return
		}
		c.setBand(i, true, WhyPreempted)
		c.wait(i, preempted)
	}
}

// look finds an instance and notes its processor time; nil if it has not joined.
func (c *Core) look(now time.Duration, id InstanceID, usage time.Duration) *instance {
	i := c.instances[id]
	if i != nil {
		i.look(now, usage, c.params.Unasked)
	}
	return i
}

// look notes the processor time, which never goes back.
func (i *instance) look(now, usage time.Duration, p UnaskedParams) {
	grew := max(0, usage-i.usage)
	i.usage += grew
	if (i.unasked() || i.allowance.unknown) && !i.allowance.spend(now, grew, p) {
		return // it is not known when that was
	}
	if grew > 0 {
		i.namespace.charge(now, grew)
	}
}

// AppendWatched appends the instances whose processor time the core needs in every sample.
func (c *Core) AppendWatched(to []InstanceID) []InstanceID {
	if !c.busy {
		return to
	}
	for _, list := range [][]*instance{c.holding, c.blocked, c.lifted} {
		for _, i := range list {
			to = append(to, i.id)
		}
	}
	return to
}

// A call that has been blocked for sleepsAfter samples is looked at in one of sleepsFor: hundreds may sleep for
// minutes.
const sleepsAfter, sleepsFor = 20, 8

// AppendDue appends the instances of AppendWatched whose processor time the core needs in this sample.
func (c *Core) AppendDue(to []InstanceID) []InstanceID {
	if !c.busy {
		return to
	}
	for _, list := range [][]*instance{c.holding, c.lifted} {
		for _, i := range list {
			to = append(to, i.id)
		}
	}
	for _, i := range c.blocked {
		if i.still >= sleepsAfter && i.skipped < sleepsFor-1 {
			i.skipped++
			continue
		}
		to = append(to, i.id)
	}
	return to
}

// AppendWaiting appends the instances whose calls wait for a ticket before they begin.
func (c *Core) AppendWaiting(to []InstanceID) []InstanceID {
	return appendThose(to, c.members, func(i *instance) bool { return i.phase == waiting })
}

// AppendLow appends the instances in the low band.
func (c *Core) AppendLow(to []InstanceID) []InstanceID {
	return appendThose(to, c.members, func(i *instance) bool { return i.low })
}

// appendThose appends some instances by their ids. It sorts only those, as there are few of many.
func appendThose(to []InstanceID, of []*instance, these func(*instance) bool) []InstanceID {
	from := len(to)
	for _, i := range of {
		if these(i) {
			to = append(to, i.id)
		}
	}
	slices.Sort(to[from:])
	return to
}

// inOrder returns the instances by their ids, so that effects do not depend on chance.
func (c *Core) inOrder() []*instance {
	all := make([]*instance, 0, len(c.instances))
	for _, i := range c.instances {
		all = append(all, i)
	}
	slices.SortFunc(all, func(a, b *instance) int { return cmp.Compare(a.id, b.id) })
	return all
}

// Counts are the calls of the node by what they have of the cores, and how often a call has given
// back its ticket for being blocked.
type Counts struct{ Waiting, Holding, Preempted, Blocked, Demoted, GaveBack int }

// Counts returns them. Demoted includes the calls that compute on idle cores.
func (c *Core) Counts() Counts {
	counts := Counts{
		Holding: len(c.holding), Blocked: len(c.blocked), Demoted: len(c.demoted) + len(c.lifted), GaveBack: c.gaveBack,
	}
	for _, n := range c.namespaces {
		counts.Waiting += len(n.waiting()) - n.begun
		counts.Preempted += n.begun
	}
	return counts
}

// Mean returns the mean processor time of a function's calls on this node, and whether it has
// had any.
func (c *Core) Mean(namespace, name string) (mean time.Duration, known bool) {
	f := c.functions[functionName{namespace, name}]
	if f == nil || !f.known() {
		return 0, false
	}
	return f.mean(), true
}

// Backlog is what the calls of the node are expected to compute yet: short is of those that wait
// for a ticket or have one, and long of those that have outlived their slice or were interrupted.
func (c *Core) Backlog() (short, long time.Duration) {
	for _, n := range c.namespaces {
		for _, i := range n.waiting() {
			if i.phase == preempted {
				long += i.left()
			} else {
				short += i.left()
			}
		}
	}
	for _, i := range c.holding {
		short += i.left()
	}
	for _, list := range [][]*instance{c.demoted, c.lifted} {
		for _, i := range list {
			long += i.left()
		}
	}
	return short, long
}
