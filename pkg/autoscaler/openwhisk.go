package autoscaler

var openwhisk = Algorithm{
	Name:   "OpenWhisk",
	About:  "the successor of the paper's algorithm in Apache OpenWhisk, which looks at the calls that have waited for longer than a tenth of a second",
	Decide: OpenWhisk,
}

// openwhiskState is what OpenWhisk carries from tick to tick: that an instance was launched
// before, and that there was no room at the last tick.
type openwhiskState struct {
	Initialized, Throttled bool
}

// OpenWhisk applies OpenWhisk's rules (see openwhiskRules) to a snapshot. The rules' inputs
// that a snapshot lacks are mapped as follows:
//
//   - Their queues are created by a call and removed after a long time without one. Here a
//     function always exists, so the rules are applied only while tickets wait; rule 2 would
//     otherwise create an instance for every function.
//   - Flushing is a snapshot that is Failing without a created instance, and everything else is
//     Running: they flush when a start fails and no container is left, and go on while there is
//     one. They leave Running when the namespace has no room and return when it has. The
//     snapshot says at each tick whether there is room, and Throttled keeps the one tick that
//     the rules spend on returning.
//   - ActionThrottled does not occur, because the queue itself refuses calls beyond its limit.
//     Removing and Idle do not occur, because neither is decided on.
//   - The namespace's limit minus its instances is Room, which also counts the nodes' room.
//     The action's limit is Limits.Max, which Bound applies. Both are taken to be positive;
//     otherwise nothing could be created anyway.
//   - Over-provisioning is off, as it is in OpenWhisk by default: a function without instances
//     gets room by eviction.
//   - "Fail everything queued" is left to the scheduler, which first waits for room for a
//     while.
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
		room: unlimited,
	}
	if s.Room >= 0 {
		v.room = s.Room
	}
	switch {
	case s.Failing && s.Created == 0:
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
