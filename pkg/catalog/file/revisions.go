package file

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// record is a function with its revisions, the first one first. All of it is shared and
// does not change.
type record struct {
	fn        *v1alpha1.Function
	revisions []*v1alpha1.FunctionRevision
	// due is when there is something to decide though nothing happens; zero for never.
	due time.Time
}

// settle does what rollout.Decide wants until it wants nothing more.
func settle(now time.Time, r record) record {
	for {
		plan := rollout.Decide(now, r.fn, r.revisions)
		if plan.Create != nil {
			r.revisions = append(slices.Clip(r.revisions), born(plan.Create, now))
			continue
		}
		next := record{fn: r.fn.DeepCopy()}
		plan.State.Write(&next.fn.Status)
		for _, revision := range r.revisions {
			if !slices.Contains(plan.Remove, revision.Name) {
				next.revisions = append(next.revisions, marked(now, next.fn, revision))
			}
		}
		if plan.Again > 0 {
			next.due = now.Add(plan.Again)
		}
		if same(r, next) {
			r.due = next.due
			return r
		}
		r = next
	}
}

func same(a, b record) bool {
	return equality.Semantic.DeepEqual(a.fn, b.fn) && equality.Semantic.DeepEqual(a.revisions, b.revisions)
}

// born gives a revision what the API server would.
func born(r *v1alpha1.FunctionRevision, now time.Time) *v1alpha1.FunctionRevision {
	r.UID = uuid.NewUUID()
	r.CreationTimestamp = metav1.NewTime(now).Rfc3339Copy()
	r.Generation = 1
	return r
}

// Observed is what the instances of a revision have shown.
type Observed struct {
	// Started says that one has started.
	Started bool
	// Reason and Message say why the last one did not start; empty if none has failed.
	Reason, Message string
}

// Observe notes what is seen of a revision's instances, and does what follows from it. What
// is not known, or no news, changes nothing. Its error is one of the disk; then all is as it
// was.
func (s *Store) Observe(key invoke.FunctionKey, revision types.UID, seen Observed) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, now := s.records[key], time.Now()
	at := slices.IndexFunc(have.revisions, func(r *v1alpha1.FunctionRevision) bool { return r.UID == revision })
	if at < 0 {
		return nil
	}
	next := have
	next.revisions = slices.Clone(have.revisions)
	next.revisions[at] = noted(now, have.revisions[at], seen)
	if same(have, next) {
		return nil
	}
	return s.renew(have, settle(now, next))
}

// Advance does what is due as time passes. It returns when something will be; zero if
// nothing. Its error is one of the disk, and names each function; those are as they were.
func (s *Store) Advance() (next time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var errs []error
	for key, r := range s.records {
		if !r.due.IsZero() && !r.due.After(now) {
			errs = append(errs, s.renew(r, settle(now, r)))
			r = s.records[key]
		}
		if !r.due.IsZero() && (next.IsZero() || r.due.Before(next)) {
			next = r.due
		}
	}
	return next, errors.Join(errs...)
}

// Revisions are those of a function, the first one first. They are shared and must not be
// changed.
func (s *Store) Revisions(key invoke.FunctionKey) []*v1alpha1.FunctionRevision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.records[key].revisions
}

// renew makes a function what has become of it, which is written if it differs.
func (s *Store) renew(have, next record) error {
	if same(have, next) {
		s.records[have.fn.Key()] = next
		return nil
	}
	if err := s.keep(next); err != nil {
		return fmt.Errorf("cannot keep what has become of function %s; make room and see to the rights of the folder: %w", next.fn.Key(), err)
	}
	return nil
}

// keep writes a record, and shows it to all. The lock must be held.
func (s *Store) keep(r record) error {
	text, err := v1alpha1.EncodeHistory(r.fn, r.revisions)
	if err == nil {
		err = write(s.path(r.fn.Key()), text)
	}
	if err == nil {
		s.take(r)
	}
	return err
}

// take shows a record to all.
func (s *Store) take(r record) {
	s.records[r.fn.Key()] = r
	s.catalog.Put(rollout.Compose(r.fn, r.revisions))
}

// noted is a revision of whose instances that was seen.
func noted(now time.Time, r *v1alpha1.FunctionRevision, seen Observed) *v1alpha1.FunctionRevision {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, ObservedGeneration: r.Generation, LastTransitionTime: metav1.NewTime(now).Rfc3339Copy()}
	switch {
	case r.Proven():
		return r
	case seen.Started:
		ready.Status, ready.Reason = metav1.ConditionTrue, v1alpha1.ReasonStarted
	case seen.Reason != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, seen.Reason, seen.Message
	default:
		return r
	}
	r = r.DeepCopy()
	meta.SetStatusCondition(&r.Status.Conditions, ready)
	return r
}

// marked is a revision that says whether calls go to it.
func marked(now time.Time, f *v1alpha1.Function, r *v1alpha1.FunctionRevision) *v1alpha1.FunctionRevision {
	weight := int32(0)
	for _, part := range f.Status.Traffic {
		if part.RevisionName == r.Name {
			weight += part.Weight
		}
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	active := metav1.Condition{Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, Reason: "NoCalls", ObservedGeneration: r.Generation, LastTransitionTime: at}
	if weight > 0 {
		active.Status, active.Reason = metav1.ConditionTrue, "Calls"
	}
	r = r.DeepCopy()
	meta.SetStatusCondition(&r.Status.Conditions, active)
	if weight == 100 && r.Status.FullTrafficTime.IsZero() {
		r.Status.FullTrafficTime = at
	}
	return r
}
