package kube

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// Instances are those that were started, assigned or adopted and have not ended.
func (d *Driver) Instances() []provisioner.Key {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := make([]provisioner.Key, 0, len(d.byID))
	for of := range d.byID {
		keys = append(keys, of.key())
	}
	return keys
}

// Drift compares the index with the pods that the informer knows. A pod whose deletion was
// requested is no difference, whether it is in the index or not: it goes.
func (d *Driver) Drift(functions []provisioner.Served) reconcile.Difference[provisioner.Key] {
	found := reconcile.Difference[provisioner.Key]{
		Gone: make(reconcile.Set[provisioner.Key]), Unknown: make(reconcile.Set[provisioner.Key]),
	}
	if !d.Synced() {
		return found
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, in := range d.byID {
		if in.stage != stageCreated || !in.seen {
			continue
		}
		if pod := d.watcher.cluster.pod(in.pod); pod == nil || pod.UID != in.uid {
			found.Gone.Add(in.id.key())
		}
	}
	for _, fn := range functions {
		for _, pod := range d.watcher.cluster.podsOf(fn.UID) {
			key := keyOf(pod)
			if d.byPod[key] != nil || d.deleter.isPending(key) || pod.DeletionTimestamp != nil || pod.Namespace != fn.Namespace {
				continue
			}
			if of, ours := identity(pod); ours {
				found.Unknown.Add(of.key())
			}
		}
	}
	return found
}

// MarkGone ends an instance whose pod is not there any more.
func (d *Driver) MarkGone(key provisioner.Key) {
	if pod, uid, known := d.podOf(id{key.FunctionUID, key.CID}); known {
		d.podMissing(pod, uid)
	}
}

// podOf is the pod of an instance.
func (d *Driver) podOf(of id) (pod podKey, uid types.UID, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := d.byID[of]
	if in == nil {
		return podKey{}, "", false
	}
	return in.pod, in.uid, true
}
