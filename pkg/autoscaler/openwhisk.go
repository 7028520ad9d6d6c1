package autoscaler

var openwhisk = Algorithm{
	Name:   "OpenWhisk",
	About:  "the successor of the paper's algorithm in Apache OpenWhisk, which looks at the calls that have waited for longer than a tenth of a second",
	Decide: OpenWhisk,
}

// openwhiskState is what OpenWhisk carries from tick to tick: that an instance was
// ordered once, and that there was no room at the last tick.
type openwhiskState struct {
	Initialized, Throttled bool
}

// OpenWhisk is the production rules (see production) applied to a snapshot. What
// the rules know and a snapshot does not is mapped so:
//
//   - A queue of theirs comes to be with a call and goes when it has had none for
//     long. Here a function is always there, so that the rules are asked only while
//     tickets wait; rule 2 would else buy an instance for every function.
//   - Flushing is a snapshot that is Failing, and everything else is Running. They
//     leave Running when the namespace has no room and come back when it has; the
//     snapshot says at each tick whether there is room, and Throttled keeps
//     the one tick that the rules spend on coming back.
//   - There is neither ActionThrottled, for the queue itself refuses what it cannot
//     hold, nor Removing or Idle, for neither is decided on.
//   - The namespace's limit less what it has is Room, which also counts the nodes'
//     room. The action's limit is Limits.Max, which Bound applies. Both are taken to
//     be positive, for nothing could be created otherwise whatever the rules say.
//   - Over-provisioning is off, as it is by default in production: a function
//     without instances gets room by eviction.
//   - "Fail everything queued" is for the scheduler to do, which waits for room a
//     while before.
func OpenWhisk(s Snapshot, p Params) Decision {
	waiting := s.Waiting()
	d := Decision{Why: ReasonNoDemand}
	m := stateOf[openwhiskState](s)
	if s.Created+s.Creating > 0 {
		m.Initialized = true
	}
	if waiting <= 0 {
		d.State = m
		return d
	}
	v := openwhiskRules{
		state: running, initialized: m.Initialized,
		existing: s.Created, inProgress: s.Creating,
		available: waiting, stale: min(max(0, s.Stale), waiting),
		execution: s.MeanExecution, staleAfter: p.staleAfter(), concurrency: s.Concurrency,
		namespaceLimit: unlimited, actionLimit: unlimited,
		namespaceRoom: unlimited,
	}
	if s.Room >= 0 {
		v.namespaceRoom = s.Room
	}
	switch {
	case s.Failing:
		v.state = flushing
	case m.Throttled:
		v.state = namespaceThrottled
	}
	verdict := v.decide()
	d.Create, d.Why = max(0, verdict.create), verdict.why
	switch verdict.throttle {
	case throttleOn:
		m.Throttled = true
	case throttleOff:
		m.Throttled = false
	}
	m.Initialized = m.Initialized || d.Create > 0
	d.State = m
	return d
}
