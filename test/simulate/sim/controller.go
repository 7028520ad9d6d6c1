package sim

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// brokenImage begins the names of images of which no instance starts.
const brokenImage = "broken-"

// write is a change of a function by its author. Servers see it at once, and the
// controller somewhat later.
func (f *function) write(change func(s *v1alpha1.FunctionSpec)) {
	if f.api == nil {
		return
	}
	f.api = f.api.DeepCopy()
	change(&f.api.Spec)
	f.api.Generation++
	f.publish()
	f.lookAgain(f.world.between(time.Millisecond, 300*time.Millisecond))
}

// deploy lets the author write another image.
func (f *function) deploy(image string) {
	f.world.note("author", "deploys "+image, uint64(f.index), uint64(f.image))
	f.write(func(s *v1alpha1.FunctionSpec) {
		s.Template.Image = image
		s.Traffic = nil
	})
}

// deployNew lets the author write one that is new and good.
func (f *function) deployNew() {
	f.image++
	f.deploy(decimal(f.image))
}

// lookAgain lets the controller look at a function in some time, or when it is back.
func (f *function) lookAgain(in time.Duration) {
	f.looks++
	mine := f.looks
	f.world.at(in, func() {
		switch {
		case f.looks != mine:
		case f.world.uncontrolled:
			f.lookAgain(100 * time.Millisecond)
		default:
			f.reconcile()
		}
	})
}

// mostRounds is how often the controller has to look until there is nothing to do.
const mostRounds = 5

// reconcile is the controller: it carries out what is decided about a function's revisions.
func (f *function) reconcile() {
	if f.api == nil {
		return
	}
	for range mostRounds {
		plan, revisions := rollout.Advance(f.world.controllerNow(), f.api, f.revisions, f.known())
		f.inTurn(plan)
		same := plan.Create == nil && len(plan.Remove) == 0 && equality.Semantic.DeepEqual(rollout.StateOf(f.api), plan.State)
		f.revisions = revisions
		if plan.Create != nil {
			f.addRevision(plan.Create)
			continue
		}
		f.api = f.api.DeepCopy()
		plan.State.Write(&f.api.Status)
		f.revisions = slices.DeleteFunc(f.revisions, func(r *v1alpha1.FunctionRevision) bool { return slices.Contains(plan.Remove, r.Name) })
		if same {
			if plan.Again > 0 {
				f.lookAgain(plan.Again)
			}
			f.publish()
			return
		}
	}
	f.world.violate(RuleControllerRests, 0)
}

// inTurn looks whether calls go only to the latest revision, and to others that had all; and
// whether those are kept.
func (f *function) inTurn(p rollout.Plan) {
	for _, part := range p.State.Traffic {
		if slices.Contains(p.Remove, part.RevisionName) {
			f.world.violate(RuleKeptWhileCalled, 0)
		}
	}
	if was := f.api.Status.Traffic; f.api.Spec.Traffic != nil || len(was) > 0 && was[0].Tag != "" {
		return // the author has parted the calls, or did until now
	}
	for _, part := range p.State.Traffic {
		for _, r := range f.revisions {
			if r.Name == part.RevisionName && r.Name != p.State.Latest && r.Status.FullTrafficTime.IsZero() {
				f.world.violate(RuleStepsFirst, 0)
			}
		}
	}
}

func (f *function) addRevision(r *v1alpha1.FunctionRevision) {
	r.UID = types.UID(string(f.api.UID) + "-" + r.Label())
	f.revisions = append(f.revisions, r)
	image := r.Spec.Template.Image
	f.units[r.UID] = &unit{function: f, uid: string(r.UID), broken: len(image) > len(brokenImage) && image[:len(brokenImage)] == brokenImage}
}

// known is what schedulers have told of the revisions' instances.
func (f *function) known() map[string]rollout.Observation {
	units := make(map[string]rollout.Observation)
	for _, r := range f.revisions {
		u := f.units[r.UID]
		u.proven = u.proven || u.started
		units[r.Name] = rollout.Observation{Observed: true, Started: u.started}
	}
	return units
}

// hasStarted is what a scheduler sees of an instance of the unit. The controller hears of it.
func (u *unit) hasStarted() {
	if !u.started {
		u.started = true
		u.lookAgain(u.world.between(time.Millisecond, 100*time.Millisecond))
	}
}

// publish lets all servers hear of the function as it is.
func (f *function) publish() {
	w := f.world
	f.changed = w.now + 100*time.Millisecond // when the last server hears of it
	if f.entry = nil; f.api != nil {
		f.entry = rollout.Compose(f.api, f.revisions)
	}
	e := f.entry
	faults := functionFaults{w}
	faults.eachHears(w.schedulers, f, func(p program) { p.(*scheduler).follows(f, e) })
	faults.eachHears(w.gateways, f, func(p program) { p.(*gateway).follows(f, e) })
}

// follows takes note of a function's units.
func (s *scheduler) follows(f *function, e *rollout.Entry) {
	for _, known := range slices.Clone(s.served) {
		if known.fn.function == f && !has(e, known.fn) {
			s.remove(known)
		}
	}
	if e == nil {
		return
	}
	for _, u := range e.Units {
		if known := s.lookup(f.unit(u)); known != nil {
			known.change(f.spec(u))
		} else {
			s.add(f.unit(u), f.spec(u))
		}
	}
}

// has tells whether an entry, which may be nil, has a unit.
func has(e *rollout.Entry, u *unit) bool {
	return e != nil && slices.ContainsFunc(e.Units, func(other *v1alpha1.Function) bool { return string(other.UID) == u.uid })
}
