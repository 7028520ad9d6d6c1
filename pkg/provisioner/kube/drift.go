package kube

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// Instances are those that were started, assigned or adopted and have not ended.
func (r *Driver) Instances() []provisioner.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys := make([]provisioner.Key, 0, len(r.byID))
	for of := range r.byID {
		keys = append(keys, of.key())
	}
	return keys
}

// Drift compares the index with the pods that the informer knows. A pod whose end was
// reported, or requested, is no difference, whether it is in the index or not: it goes.
func (r *Driver) Drift(functions []provisioner.Served) reconcile.Difference[provisioner.Key] {
	found := reconcile.Difference[provisioner.Key]{
		Gone: make(reconcile.Set[provisioner.Key]), Unknown: make(reconcile.Set[provisioner.Key]),
	}
	if !r.Synced() {
		return found
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.byID {
		if in.stage != stageCreated || !in.seen {
			continue
		}
		if pod := r.watcher.cluster.pod(in.pod); pod == nil || pod.UID != in.uid {
			found.Gone.Add(in.id.key())
		}
	}
	for _, fn := range functions {
		for _, pod := range r.watcher.cluster.podsOf(fn.UID) {
			key := keyOf(pod)
			if r.byPod[key] != nil || r.deleter.isPending(key) || pod.DeletionTimestamp != nil || pod.Namespace != fn.Namespace {
				continue
			}
			if of, ours := identity(pod); ours && !classifyPod(pod, r.resources.ready(pod.Spec.NodeName)).ended {
				found.Unknown.Add(of.key())
			}
		}
	}
	return found
}

// MarkGone ends an instance whose pod is not there any more.
func (r *Driver) MarkGone(key provisioner.Key) {
	if pod, uid, known := r.podOf(id{key.FunctionUID, key.CID}); known {
		r.podMissing(pod, uid)
	}
}

// podOf is the pod of an instance.
func (r *Driver) podOf(of id) (pod podKey, uid types.UID, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.byID[of]
	if in == nil {
		return podKey{}, "", false
	}
	return in.pod, in.uid, true
}
