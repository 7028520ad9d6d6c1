package provisioner

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/reconcile"
)

// vanishedBuffer is how many instances wait for Run to settle them that their runtime
// does not know any more. Those beyond it are found again by the next look.
const vanishedBuffer = 256

// Auditor compares what is believed of instances with the level below: the inventory
// with what the runtime looks after, and that with what exists.
type Auditor struct {
	inventory *Inventory
	lister    InstanceLister
	detector  DriftDetector
	adopt     func(fn *v1alpha1.Function)

	// instanceLevel and pods are what Reconcile and ReconcilePods found last, and vanished
	// is what Provisioner.Run has yet to settle.
	instanceLevel, podLevel reconcile.Level[Key]
	vanished                chan Key
}

// Reconcile compares the inventory with what the runtime looks after. An instance that
// two successive calls find only in the inventory has ended, and nobody said so: Run
// settles it like any other end. It returns how many those are. It must not be called
// by two goroutines at a time.
func (a *Auditor) Reconcile() int {
	if a.lister == nil {
		return 0
	}
	// The inventory first: an instance enters it before its runtime knows it, and
	// leaves it after.
	believed := a.inventory.keys()
	observed := reconcile.SetOf(a.lister.Instances()...)
	mended := 0
	for key := range a.instanceLevel.Look(reconcile.Compare(believed, observed)).Gone {
		select {
		case a.vanished <- key:
			mended++
		default:
			return mended
		}
	}
	return mended
}

// ReconcilePods compares what the runtime looks after with what exists, of the functions
// that are served here. What two successive calls find only in the runtime's book has
// ended; what they find only outside is adopted, and judged like any other instance: it
// is stopped unless its agent is heard of in time. It returns how many those are. It must
// not be called by two goroutines at a time.
func (a *Auditor) ReconcilePods(served []*v1alpha1.Function) int {
	if a.detector == nil {
		return 0
	}
	standing := a.podLevel.Look(a.detector.Drift(served))
	for key := range standing.Gone {
		a.detector.MarkGone(key)
	}
	unknown := make(reconcile.Set[string])
	for key := range standing.Unknown {
		unknown.Add(key.FunctionUID)
	}
	for _, fn := range served {
		if unknown.Has(string(fn.UID)) {
			a.adopt(fn)
		}
	}
	return len(standing.Gone) + len(standing.Unknown)
}

// endOf is the Exit of an instance that ended without one.
func endOf(key Key) Exit {
	return Exit{FunctionUID: key.FunctionUID, CID: key.CID, Reason: "the runtime does not know the instance any more"}
}
