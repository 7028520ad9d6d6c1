package provisioner

import (
	"github.com/windlass-dev/windlass/internal/reconcile"
)

// vanishedBuffer bounds the vanished instances that wait for Run. The next audit finds the
// ones beyond it again.
const vanishedBuffer = 256

// Auditor compares the inventory with the driver's instances, and those with what exists.
type Auditor struct {
	inventory *Inventory
	lister    InstanceLister
	detector  DriftDetector

	// instanceLevel and podLevel have the last differences of Reconcile and ReconcilePods;
	// vanished has the instances that Provisioner.Run has yet to handle.
	instanceLevel, podLevel reconcile.Level[Key]
	vanished                chan Key
}

// Reconcile compares the inventory with the driver's instances. An instance that two
// successive calls find only in the inventory has ended without an Exit; Run handles it like
// any other end. It returns their number. Only one goroutine at a time may call it.
func (a *Auditor) Reconcile() int {
	if a.lister == nil {
		return 0
	}
	// Read the inventory first: an instance enters it before the driver knows it, and leaves
	// it after.
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

// Served is a function that a scheduler serves, by what tells its instances from others.
type Served struct{ UID, Namespace string }

// ReconcilePods compares the driver's instances of the served functions with what exists. An
// instance that two successive calls find only in the driver has ended. If they find one only
// outside, adopt must adopt the instances of its function, and it is treated like any other: it is
// stopped unless its agent connects in time. It returns the number of both. Only one goroutine at a
// time may call it.
func (a *Auditor) ReconcilePods(served []Served, adopt func(uid string)) int {
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
	for _, of := range served {
		if unknown.Has(of.UID) {
			adopt(of.UID)
		}
	}
	return len(standing.Gone) + len(standing.Unknown)
}

// endOf is the Exit of an instance that ended without one.
func endOf(key Key) Exit {
	return Exit{FunctionUID: key.FunctionUID, CID: key.CID, Reason: "the runtime does not know the instance any more"}
}
