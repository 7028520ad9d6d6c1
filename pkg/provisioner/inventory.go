package provisioner

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/reconcile"
)

var (
	// ErrUnknownInstance is returned for an instance that was not ordered or
	// has ended.
	ErrUnknownInstance = errors.New("provisioner: no such instance")
	// ErrBadToken is returned when an agent's token is not the one that its
	// instance was started with.
	ErrBadToken = errors.New("provisioner: wrong instance token")
)

// State is where an instance is in its life.
type State int

const (
	// Creating instances were ordered, and have not pulled yet.
	Creating State = iota
	// Created instances have pulled.
	Created
	// Leaving instances said goodbye, were let go, or were stopped.
	Leaving
)

// String is the state's name.
func (s State) String() string {
	switch s {
	case Creating:
		return "creating"
	case Created:
		return "created"
	case Leaving:
		return "leaving"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// Key names an instance.
type Key struct {
	FunctionUID string
	CID         invoke.CID
}

// Instance is one entry of the inventory.
type Instance struct {
	Key
	State State
	// Revision is the Function.Revision that it was started for.
	Revision string
	Token    string
	Node     string
	Requests nodepick.Amount
	// Ordered is when it was ordered, and StartBy when it must have pulled.
	Ordered time.Time
	StartBy time.Time
	// Adopted says that somebody else started it, and Ran that it ran then.
	Adopted, Ran bool
	// Spare says that it was a spare instance before, of which its start says
	// nothing about others.
	Spare bool
	// Connected says that its agent's stream is there; SilentSince is when
	// the stream ended, valid while a created instance is not connected.
	Connected   bool
	SilentSince time.Time
	// EndBy is when a leaving instance must have ended by itself; zero if the
	// runtime was told to end it.
	EndBy time.Time
	// Broken is what its agent said when it gave the instance up because of
	// its function, and BrokenCode the condition reason for it; both are empty
	// for an instance that goes as it should.
	Broken, BrokenCode string
	// Superseded says that its function has another revision now, so that its
	// start says nothing of the function any more.
	Superseded bool
	// Blamed is why it was told to end, if somebody knows better than its
	// exit will, and BlamedCode the condition reason for it.
	Blamed, BlamedCode string
}

// Inventory is what exists and what was ordered. It is not safe for concurrent
// use, but for Count.
type Inventory struct {
	functions map[string]*account
	// counts are those of the functions that have instances.
	counts countsOf
	// nodes are those that have instances.
	nodes map[string]occupancy
	// moved are the functions of which an instance has come, gone or changed its
	// state since Moved was last asked; nil until it is.
	moved map[string]struct{}
}

// account is what is kept of one function. It outlives the function's instances,
// so that no name is given twice, until the function is forgotten.
type account struct {
	instances map[invoke.CID]*Instance
	counts    Counts
	// revisions is how many of the instances were started for each revision.
	revisions map[string]int
	sequence  uint64
	forgotten bool
}

// NewInventory makes an empty one.
func NewInventory() *Inventory {
	return &Inventory{
		functions: make(map[string]*account),
		nodes:     make(map[string]occupancy),
	}
}

// Order adds an instance that is now ordered and names it.
func (v *Inventory) Order(uid string, term invoke.Term, in Instance) Key {
	a := v.account(uid)
	a.sequence++
	a.forgotten = false
	in.Key = Key{FunctionUID: uid, CID: term.CID(a.sequence)}
	in.State = Creating
	v.add(a, &in)
	return in.Key
}

// Adopt adds an instance that somebody else started. Until it pulls it counts as
// being created, so that nothing is ordered in its place. One that is known
// already stays as it is.
func (v *Inventory) Adopt(in Instance) {
	a := v.account(in.FunctionUID)
	if _, known := a.instances[in.CID]; known {
		return
	}
	in.Adopted = true
	v.add(a, &in)
}

// Release drops a function's instances, which somebody else looks after.
func (v *Inventory) Release(uid string) {
	if a := v.functions[uid]; a != nil {
		for _, in := range a.instances {
			v.remove(a, in)
		}
		v.settle(uid)
	}
}

func (v *Inventory) account(uid string) *account {
	a := v.functions[uid]
	if a == nil {
		a = &account{instances: make(map[invoke.CID]*Instance), revisions: make(map[string]int)}
		v.functions[uid] = a
	}
	return a
}

func (v *Inventory) add(a *account, in *Instance) {
	a.instances[in.CID] = in
	a.revisions[in.Revision]++
	v.note(in)
	v.occupy(in)
	v.recount(in.FunctionUID, a, Counts{}, countsFor(in))
}

func (v *Inventory) remove(a *account, in *Instance) {
	delete(a.instances, in.CID)
	v.note(in)
	if a.revisions[in.Revision]--; a.revisions[in.Revision] == 0 {
		delete(a.revisions, in.Revision)
	}
	v.vacate(in)
	v.recount(in.FunctionUID, a, countsFor(in), Counts{})
}

// change changes what is counted of an instance.
func (v *Inventory) change(in *Instance, how func(in *Instance)) {
	before, was := countsFor(in), in.State
	how(in)
	if in.State != was {
		v.note(in)
	}
	v.recount(in.FunctionUID, v.functions[in.FunctionUID], before, countsFor(in))
}

func (v *Inventory) recount(uid string, a *account, before, after Counts) {
	if before != after {
		a.counts = a.counts.minus(before).plus(after)
		v.counts.publish(uid, a.counts)
	}
}

// note notes that an instance came, went or changed its state.
func (v *Inventory) note(in *Instance) {
	if v.moved != nil {
		v.moved[in.FunctionUID] = struct{}{}
	}
}

// Moved appends the functions of which an instance has come, gone or changed its state
// since the last call; at first all that have instances.
func (v *Inventory) Moved(uids []string) []string {
	if v.moved == nil {
		for uid, a := range v.functions {
			if len(a.instances) > 0 {
				uids = append(uids, uid)
			}
		}
		v.moved = make(map[string]struct{})
		return uids
	}
	for uid := range v.moved {
		uids = append(uids, uid)
	}
	clear(v.moved)
	return uids
}

// Get returns an instance. The error is ErrUnknownInstance or nil.
func (v *Inventory) Get(key Key) (Instance, error) {
	in, err := v.get(key)
	if err != nil {
		return Instance{}, err
	}
	return *in, nil
}

// Check returns the instance that an agent says to be. The error is
// ErrUnknownInstance, ErrBadToken or nil.
func (v *Inventory) Check(key Key, token string) (Instance, error) {
	in, err := v.Get(key)
	if err != nil {
		return Instance{}, err
	}
	if in.Token == "" || subtle.ConstantTimeCompare([]byte(in.Token), []byte(token)) != 1 {
		return Instance{}, fmt.Errorf("%w: %s", ErrBadToken, key.CID)
	}
	return in, nil
}

// Connect says that an instance's agent has its stream.
func (v *Inventory) Connect(key Key) {
	if in, err := v.get(key); err == nil {
		v.change(in, func(in *Instance) { in.Connected = true })
	}
}

// Disconnect says that the stream ended.
func (v *Inventory) Disconnect(key Key, now time.Time) {
	if in, err := v.get(key); err == nil {
		v.change(in, func(in *Instance) { in.Connected, in.SilentSince = false, now })
	}
}

// Pulled says that an instance asked for work. It tells whether that was the
// first time, and how long it took from its order; 0 if that is not known, since it
// was adopted, so that another scheduler's clock knows when, or was a spare instance.
func (v *Inventory) Pulled(key Key, now time.Time) (took time.Duration, first bool) {
	in, err := v.get(key)
	if err != nil || in.State != Creating {
		return 0, false
	}
	v.change(in, func(in *Instance) { in.State = Created })
	if !in.Adopted && !in.Spare {
		took = max(0, now.Sub(in.Ordered))
	}
	return took, true
}

// Withdraw says that up to n of a function's instances that are being created are
// not wanted any more, and that the runtime ends them: those that were ordered last,
// of those whose agents were never heard of. It returns which.
func (v *Inventory) Withdraw(uid string, n int) []Key {
	var unheard []*Instance
	for _, in := range v.all(uid) {
		if in.State == Creating && !in.Ran && !in.Spare && !in.Connected && in.SilentSince.IsZero() && in.Blamed == "" {
			unheard = append(unheard, in)
		}
	}
	slices.SortFunc(unheard, func(a, b *Instance) int {
		return cmp.Or(b.Ordered.Compare(a.Ordered), cmp.Compare(b.CID, a.CID))
	})
	var withdrawn []Key
	for _, in := range unheard[:min(max(0, n), len(unheard))] {
		v.change(in, func(in *Instance) { in.State, in.EndBy = Leaving, time.Time{} })
		withdrawn = append(withdrawn, in.Key)
	}
	return withdrawn
}

// Leave says that an instance is expected to end by itself until then, the first
// time that it is said; or, if that is zero, that the runtime ends it. One that
// was blamed already ends for that reason.
func (v *Inventory) Leave(key Key, endBy time.Time) {
	in, err := v.get(key)
	if err != nil || in.Blamed != "" {
		return
	}
	if in.State != Leaving || endBy.IsZero() {
		v.change(in, func(in *Instance) { in.State, in.EndBy = Leaving, endBy })
	}
}

// Break says that the agent has given the instance up because of its function. The
// code is one of the condition reasons of a Function.
func (v *Inventory) Break(key Key, code, detail string, endBy time.Time) {
	if in, err := v.get(key); err == nil && in.Broken == "" {
		in.Broken, in.BrokenCode = detail, code
	}
	v.Leave(key, endBy)
}

// Blame keeps the first reason why an instance is to end.
func (v *Inventory) Blame(key Key, code, reason string) {
	if in, err := v.get(key); err == nil && in.Blamed == "" {
		in.Blamed, in.BlamedCode = reason, code
	}
}

// Supersede says which revision of a function counts from now on.
func (v *Inventory) Supersede(uid, revision string) {
	if a := v.functions[uid]; a != nil {
		for _, in := range a.instances {
			in.Superseded = in.Revision != revision
		}
	}
}

// Remove says that an instance has ended and returns it as it was.
func (v *Inventory) Remove(key Key) (Instance, error) {
	in, err := v.get(key)
	if err != nil {
		return Instance{}, err
	}
	v.remove(v.functions[key.FunctionUID], in)
	v.settle(key.FunctionUID)
	return *in, nil
}

// Forget drops what is kept of a function that is gone, once its last instance
// has ended.
func (v *Inventory) Forget(uid string) {
	if a := v.functions[uid]; a != nil {
		a.forgotten = true
		v.settle(uid)
	}
}

func (v *Inventory) settle(uid string) {
	if a := v.functions[uid]; a.forgotten && len(a.instances) == 0 {
		delete(v.functions, uid)
	}
}

// Overdue returns the instances that should have pulled or ended by now, and
// those that have been silent for longer than patience, unless they were told to
// end.
func (v *Inventory) Overdue(now time.Time, patience time.Duration) []Instance {
	var overdue []Instance
	for _, a := range v.functions {
		for _, in := range a.instances {
			if in.Blamed == "" && in.overdue(now, patience) {
				overdue = append(overdue, *in)
			}
		}
	}
	return overdue
}

func (in *Instance) overdue(now time.Time, patience time.Duration) bool {
	switch in.State {
	case Creating:
		return now.After(in.StartBy)
	case Created:
		return !in.Connected && now.Sub(in.SilentSince) > patience
	case Leaving:
		return !in.EndBy.IsZero() && now.After(in.EndBy)
	}
	return false
}

// silent tells whether the agent of an instance that is not leaving has gone.
func (in *Instance) silent() bool {
	return in.State != Leaving && !in.Connected && !in.SilentSince.IsZero()
}

// Count is how many instances a function has. It may be called at any time, by
// anybody.
func (v *Inventory) Count(uid string) Counts { return v.counts.of(uid) }

// Connected says of each instance that is not leaving whether its agent has its
// stream.
func (v *Inventory) Connected() map[Key]bool {
	connected := make(map[Key]bool)
	for _, a := range v.functions {
		for _, in := range a.instances {
			if in.State != Leaving {
				connected[in.Key] = in.Connected
			}
		}
	}
	return connected
}

// Outdated is how many of a function's instances were started for another revision.
func (v *Inventory) Outdated(uid, revision string) int {
	if a := v.functions[uid]; a != nil {
		return len(a.instances) - a.revisions[revision]
	}
	return 0
}

// Instances returns copies of a function's instances, in no order.
func (v *Inventory) Instances(uid string) []Instance {
	list := make([]Instance, 0, len(v.all(uid)))
	for _, in := range v.all(uid) {
		list = append(list, *in)
	}
	return list
}

// keys are those of all instances.
func (v *Inventory) keys() reconcile.Set[Key] {
	keys := make(reconcile.Set[Key])
	for _, a := range v.functions {
		for _, in := range a.instances {
			keys.Add(in.Key)
		}
	}
	return keys
}

func (v *Inventory) all(uid string) map[invoke.CID]*Instance {
	if a := v.functions[uid]; a != nil {
		return a.instances
	}
	return nil
}

func (v *Inventory) get(key Key) (*Instance, error) {
	in, known := v.all(key.FunctionUID)[key.CID]
	if !known {
		return nil, fmt.Errorf("%w: %s", ErrUnknownInstance, key.CID)
	}
	return in, nil
}

// ForgetMoves has nothing noted until Moved is asked again, which then tells of all.
func (p *Provisioner) ForgetMoves() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.moved = nil
}

// Placed is where an instance is and what it takes there.
type Placed struct {
	Key
	State    State
	Node     string
	Requests nodepick.Amount
	Ordered  time.Time
}

// Moved appends the functions of which an instance has come, gone or changed its state
// since the last call; at first, and after ForgetMoves, all that have instances. There is
// one who asks.
func (p *Provisioner) Moved(uids []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.inventory.Moved(uids)
}

// Placed appends a function's instances to list.
func (p *Provisioner) Placed(list []Placed, uid string) []Placed {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range p.inventory.all(uid) {
		list = append(list, Placed{Key: in.Key, State: in.State, Node: in.Node, Requests: in.Requests, Ordered: in.Ordered})
	}
	return list
}
