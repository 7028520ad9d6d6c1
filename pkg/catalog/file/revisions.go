package file

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// record is a function with its revisions, the first one first. All of it is shared and
// does not change. The store keeps it packed.
type record struct {
	fn        *v1alpha1.Function
	revisions []*v1alpha1.FunctionRevision
	// known are the last observations of revisions' instances, by the revisions' names.
	known map[string]rollout.Observation
	// plan is the last plan, which was carried out.
	plan rollout.Plan
	// due is when a decision is due without an event; zero for never.
	due time.Time
}

// converge does what rollout.Advance wants until it wants nothing more.
func converge(now time.Time, r record) record {
	for {
		plan, revisions := rollout.Advance(now, r.fn, r.revisions, r.known)
		if plan.Create != nil {
			r.revisions = append(slices.Clip(r.revisions), asCreated(plan.Create, now))
			continue
		}
		next := r
		next.fn, next.plan, next.due = r.fn.DeepCopy(), plan, time.Time{}
		plan.State.Write(&next.fn.Status)
		next.revisions = slices.DeleteFunc(revisions, func(r *v1alpha1.FunctionRevision) bool { return slices.Contains(plan.Remove, r.Name) })
		if plan.Again > 0 {
			next.due = now.Add(plan.Again)
		}
		if sameState(r, next) {
			next.fn, next.revisions = r.fn, r.revisions
			return next
		}
		r = next
	}
}

// startable are the revisions of a function, the first one first, without those that cannot
// start: their code is not where it was, as after its folder has moved. Calls would go to the
// last proven one until the wanted one is proven, and be refused. Without a proven one they wait.
//
// If the code of the ready one is gone, those before it are left out, too. They were replaced,
// and nobody has asked for their return.
func startable(want *v1alpha1.Function, revisions []*v1alpha1.FunctionRevision) []*v1alpha1.FunctionRevision {
	unneeded := func(r *v1alpha1.FunctionRevision) bool {
		return !r.Is(want) && !slices.ContainsFunc(want.Spec.Traffic, func(t v1alpha1.TrafficTarget) bool { return t.RevisionName == r.Name })
	}
	var kept []*v1alpha1.FunctionRevision
	for _, r := range revisions {
		if !unneeded(r) || !codeIsGone(r.Spec.Template.Code) {
			kept = append(kept, r)
		} else if r.Name == want.Status.LatestReadyRevisionName {
			kept = slices.DeleteFunc(kept, unneeded)
		}
	}
	return kept
}

func sameState(a, b record) bool {
	return equality.Semantic.DeepEqual(a.fn, b.fn) && equality.Semantic.DeepEqual(a.revisions, b.revisions)
}

// asCreated gives a revision what the API server would.
func asCreated(r *v1alpha1.FunctionRevision, now time.Time) *v1alpha1.FunctionRevision {
	r.UID = uuid.NewUUID()
	r.CreationTimestamp = metav1.NewTime(now).Rfc3339Copy()
	r.Generation = 1
	return r
}

// Observe records the observed instances of a function's revisions, by the revisions' names,
// and carries out what follows. It writes only changes. An error comes from the disk; then
// nothing has changed.
func (s *Store) Observe(key invocation.FunctionKey, known map[string]rollout.Observation) error {
	lasting := make(map[string]rollout.Observation, len(known))
	for name, k := range known {
		// The number of instances is not stored.
		lasting[name] = rollout.Observation{Observed: k.Observed, Started: k.Started, Failure: k.Failure, NoRoom: k.NoRoom}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	have, exists := s.open(key)
	if !exists || equality.Semantic.DeepEqual(have.known, lasting) {
		return nil
	}
	next := have
	next.known = lasting
	return s.replace(have, converge(time.Now(), next))
}

// Advance carries out what is due by now. It returns when the next decision is due; zero for
// never. An error comes from the disk and names each function that could not be changed.
func (s *Store) Advance() (next time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var errs []error
	for key, kept := range s.records {
		due := kept.dueAt()
		if !due.IsZero() && !due.After(now) {
			r, _ := s.open(key)
			errs = append(errs, s.replace(r, converge(now, r)))
			due = s.records[key].dueAt()
		}
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next, errors.Join(errs...)
}

// History is a function with the state of its revisions. It is shared; callers must not change
// it.
type History struct {
	// Function as Get returns it.
	Function *v1alpha1.Function
	// Revisions, the first one first.
	Revisions []*v1alpha1.FunctionRevision
	// Plan is the last plan, which was carried out.
	Plan rollout.Plan
}

// History returns the function of that name; false if it does not exist.
func (s *Store) History(key invocation.FunctionKey) (History, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.open(key)
	return History{Function: r.fn, Revisions: r.revisions, Plan: r.plan}, ok
}

// replace replaces a function's record, and writes it if it differs.
func (s *Store) replace(have, next record) error {
	if sameState(have, next) {
		s.keep(next)
		return nil
	}
	if err := s.persist(next); err != nil {
		return fmt.Errorf("cannot keep what has become of function %s; make room and see to the rights of the folder: %w", next.fn.Key(), err)
	}
	return nil
}

// persist writes a record, and shows it to all. The lock must be held.
func (s *Store) persist(r record) error {
	text, err := v1alpha1.EncodeHistory(r.fn, r.revisions)
	if err == nil {
		err = writeFile(s.path(r.fn.Key()), text)
	}
	if err == nil {
		s.publish(r)
	}
	return err
}

// publish shows a record to all.
func (s *Store) publish(r record) {
	s.keep(r)
	s.catalog.Put(rollout.Compose(r.fn, r.revisions))
}
