package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

var (
	_ provisioner.Runtime  = (*Runtime)(nil)
	_ provisioner.Shared   = (*Runtime)(nil)
	_ provisioner.Nodes    = (*Runtime)(nil)
	_ provisioner.Taker    = (*Runtime)(nil)
	_ provisioner.Witness  = (*Runtime)(nil)
	_ provisioner.Book     = (*Runtime)(nil)
	_ provisioner.Surveyor = (*Runtime)(nil)
)

// Runtime runs instances as pods. It is safe for concurrent use.
type Runtime struct {
	*registry
	creator *creator
	watcher *watcher
	// agent is what an agent requests of a node.
	agent placement.Amount
	began atomic.Bool
}

// New makes a Runtime. It starts nothing.
func New(config Config, deps Deps) (*Runtime, error) {
	if err := errors.Join(config.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	config.setDefaults()
	r := &Runtime{agent: config.Pod.AgentRequests}
	r.agent.Pods = 1
	r.registry = &registry{ledger: newLedger(), outbox: newOutbox(), book: newBook()}
	r.deleter = newDeleter(config, deps, r.missing)
	var err error
	if r.creator, err = newCreator(config, deps, r.registry); err != nil {
		return nil, err
	}
	if r.watcher, err = newWatcher(deps, r.registry, r.creator); err != nil {
		return nil, err
	}
	return r, nil
}

// Run works until ctx ends. The pods go on. It can be called once.
func (r *Runtime) Run(ctx context.Context) error {
	if r.began.Swap(true) {
		return errors.New("kube: Run was called before: make a new Runtime")
	}
	var running sync.WaitGroup
	running.Go(func() { r.watcher.cluster.run(ctx) })
	running.Go(func() { r.creator.queue.run(ctx) })
	running.Go(func() { r.deleter.queue.run(ctx) })
	running.Go(func() { r.outbox.deliver(ctx) })
	running.Go(func() { r.watcher.watchOver(ctx) })
	<-ctx.Done()
	r.close()
	running.Wait()
	return nil
}

// Synced says whether the pods and nodes of the cluster are known. Before, there
// is nothing to adopt and no candidate.
func (r *Runtime) Synced() bool { return r.watcher.cluster.synced() }

// Start begins to create the pod of an instance; before Run it waits for that. An
// instance that is there already is left as it is and has one Exit.
func (r *Runtime) Start(spec provisioner.InstanceSpec) {
	f, now := spec.Function, time.Now()
	in := &instance{
		id:       id{string(f.UID), spec.CID},
		pod:      podKey{f.Namespace, podspec.Name(f.Name, string(f.UID), spec.CID)},
		node:     spec.Node,
		spec:     spec,
		requests: r.Requests(f),
		started:  now,
		changed:  now,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[in.id] != nil {
		return
	}
	exit := provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid}
	switch {
	case r.ended:
		exit.Reason = reasonStopped
		r.outbox.tell(exit)
		return
	case r.byPod[in.pod] != nil:
		exit.Code, exit.Reason = v1alpha1.ReasonPodRefused, fmt.Sprintf("there is another pod %s", in.pod.name)
		r.outbox.tell(exit)
		return
	}
	r.add(in)
	r.ledger.assume(in.pod, in.node, in.requests)
	if !r.creator.push(in) {
		// The API server is too slow, or many functions start: it is not this one's fault.
		r.finish(in, verdict{code: v1alpha1.ReasonClusterUnavailable,
			reason: fmt.Sprintf("%d pods wait to be created already", r.creator.limit)})
	}
}

// Stop ends an instance: its pod is deleted, with a grace period in which it can
// finish its calls. One whose pod was not asked for yet ends at once.
func (r *Runtime) Stop(functionUID string, cid invocation.CID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.byID[id{functionUID, cid}]
	if in == nil || in.stopping {
		return
	}
	in.stopping = true
	switch in.stage {
	case queued:
		r.creator.withdraw(in)
		if in.attempts > 0 || in.taking != nil {
			// An attempt may have succeeded without an answer, and a spare
			// instance that was chosen does not become one again.
			r.condemn(in, nil)
		}
		r.finish(in, verdict{reason: reasonStopped})
	case there:
		if time.Since(in.created) > mountPatience {
			in.unmounted = unmounted(r.watcher.cluster.pod(in.pod))
		}
		r.condemn(in, nil)
	case creating:
		// Its end is ordered when it is there.
	}
}

// Exits tells of every instance that ended. Exits wait for their reader without
// holding anything up. It is never closed.
func (r *Runtime) Exits() <-chan provisioner.Exit { return r.outbox.exits }

// Candidates are the nodes that instances of a function may use.
func (r *Runtime) Candidates(fn *v1alpha1.Function) placement.Candidates {
	return r.ledger.candidates(fn, time.Now())
}

// Nodes are all nodes that exist.
func (r *Runtime) Nodes() []placement.Node { return r.ledger.all() }

// Requests is what the pod of an instance requests of its node.
func (r *Runtime) Requests(fn *v1alpha1.Function) placement.Amount {
	return provisioner.Requests(fn, r.agent)
}

// Adopt takes over the pods of a function, and those whose instance has ended
// already are deleted. A pod of another namespace is none of the function's,
// whatever it says of itself.
func (r *Runtime) Adopt(fn *v1alpha1.Function) []provisioner.Existing {
	functionUID := string(fn.UID)
	pods := r.watcher.cluster.podsOf(functionUID)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, pod := range pods {
		of, ours := identity(pod)
		if !ours || pod.Namespace != fn.Namespace || r.byID[of] != nil {
			continue
		}
		in := adopted(pod, of, now)
		in.noteEnd(pod, now)
		if judge(pod, r.ledger.ready(in.node)).ended {
			if pod.DeletionTimestamp == nil {
				r.condemn(in, new(brokenGrace))
			}
			continue
		}
		r.add(in)
	}
	found := make([]provisioner.Existing, 0, len(r.byFunction[functionUID]))
	for in := range r.byFunction[functionUID] {
		found = append(found, in.existing())
	}
	return found
}

// Release forgets a function's instances. Pods that were not asked for yet are
// not created.
func (r *Runtime) Release(functionUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for in := range r.byFunction[functionUID] {
		if in.stage == queued {
			r.creator.withdraw(in)
			r.ledger.dropAssumed(in.pod)
			if in.taking != nil {
				r.condemn(in, new(brokenGrace))
			}
		}
		r.remove(in)
	}
}

// Identify says of which instance a pod is that was started or adopted here. It is
// of none, and its id empty, if it was not, whatever it looks like. Known is false
// if no such pod has been seen yet.
func (r *Runtime) Identify(podUID, namespace, name string) (functionUID string, cid invocation.CID, known bool) {
	key, uid := podKey{namespace, name}, types.UID(podUID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.byPod[key]; in != nil && uid != "" && in.uid == uid {
		of := in.id
		if in.taking != nil {
			of = in.taking.spare
		}
		return of.functionUID, of.cid, true
	}
	pod := r.watcher.cluster.pod(key)
	return "", "", pod != nil && pod.UID == uid
}
