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
	_ provisioner.Driver         = (*Driver)(nil)
	_ provisioner.AdoptingDriver = (*Driver)(nil)
	_ provisioner.Nodes          = (*Driver)(nil)
	_ provisioner.Assigner       = (*Driver)(nil)
	_ provisioner.StartObserver  = (*Driver)(nil)
	_ provisioner.InstanceLister = (*Driver)(nil)
	_ provisioner.DriftDetector  = (*Driver)(nil)
)

// Driver runs instances as pods. It is safe for concurrent use.
type Driver struct {
	*registry
	creator *creator
	watcher *watcher
	// agent is what an agent requests of a node.
	agent   placement.Amount
	started atomic.Bool
}

// New makes a Driver. It starts nothing.
func New(config Config, deps Deps) (*Driver, error) {
	if err := errors.Join(config.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	config.setDefaults()
	r := &Driver{agent: config.Pod.AgentRequests}
	r.agent.Pods = 1
	r.registry = &registry{resources: newResourceCache(), exits: newExitQueue(), instanceIndex: newInstanceIndex()}
	r.deleter = newDeleter(config, deps, r.podMissing)
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
func (r *Driver) Run(ctx context.Context) error {
	if r.started.Swap(true) {
		return errors.New("kube: Run was called before: make a new Driver")
	}
	var running sync.WaitGroup
	running.Go(func() { r.watcher.cluster.run(ctx) })
	running.Go(func() { r.creator.queue.run(ctx) })
	running.Go(func() { r.deleter.queue.run(ctx) })
	running.Go(func() { r.exits.deliver(ctx) })
	running.Go(func() { r.watcher.resyncLoop(ctx) })
	<-ctx.Done()
	r.close()
	running.Wait()
	return nil
}

// Synced reports whether the pods and nodes of the cluster are known. Before that, nothing can
// be adopted and no node is a candidate.
func (r *Driver) Synced() bool { return r.watcher.cluster.synced() }

// Start begins to create the pod of an instance; before Run, creation waits for Run. An
// existing instance stays as it is and has one Exit.
func (r *Driver) Start(spec provisioner.InstanceSpec) {
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
		r.exits.push(exit)
		return
	case r.byPod[in.pod] != nil:
		exit.Code, exit.Reason = v1alpha1.ReasonPodRefused, fmt.Sprintf("there is another pod %s", in.pod.name)
		r.exits.push(exit)
		return
	}
	r.addInstance(in)
	r.resources.assume(in.pod, in.node, in.requests)
	if !r.creator.push(in) {
		// The API server is too slow, or many functions start: it is not this one's fault.
		r.endInstance(in, podOutcome{code: v1alpha1.ReasonClusterUnavailable,
			reason: fmt.Sprintf("%d pods wait to be created already", r.creator.limit)})
	}
}

// Stop ends an instance: its pod is deleted, with a grace period in which it can finish its
// calls, or with brokenGrace if it has. One whose pod was not asked for yet ends at once.
func (r *Driver) Stop(functionUID string, cid invocation.CID, finished bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.byID[id{functionUID, cid}]
	switch {
	case in == nil:
		return
	case finished && in.stage == stageCreated:
		in.stopping = true
		r.hurry(in)
		return
	case in.stopping:
		return
	}
	in.stopping = true
	switch in.stage {
	case stageQueued:
		r.creator.dequeue(in)
		if in.mayExist || in.assigning != nil {
			// A spare instance that was chosen does not become one again.
			r.deletePod(in, nil)
		}
		r.endInstance(in, podOutcome{reason: reasonStopped})
	case stageCreated:
		if time.Since(in.created) > mountTimeout {
			in.unmounted = unmounted(r.watcher.cluster.pod(in.pod))
		}
		r.deletePod(in, nil)
	case stageCreating:
		// Its end is launched when it is there.
	}
}

// Exits reports every instance that ended. Exits wait for their reader without
// holding anything up. It is never closed.
func (r *Driver) Exits() <-chan provisioner.Exit { return r.exits.out }

// Candidates are the nodes that instances of a function may use.
func (r *Driver) Candidates(fn *v1alpha1.Function) placement.Candidates {
	return r.resources.candidates(fn, time.Now())
}

// Nodes are all nodes that exist.
func (r *Driver) Nodes() []placement.Node { return r.resources.allNodes() }

// Requests is what the pod of an instance requests of its node.
func (r *Driver) Requests(fn *v1alpha1.Function) placement.Amount {
	return provisioner.Requests(fn, r.agent)
}

// Adopt takes over the pods of a function, and deletes those whose instance has ended already.
// It ignores pods of other namespaces, whatever their labels say.
func (r *Driver) Adopt(fn *v1alpha1.Function) []provisioner.Existing {
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
		in := adoptedInstance(pod, of, now)
		in.observeDeletion(pod, now)
		if classifyPod(pod, r.resources.ready(in.node)).ended {
			r.deleteRemains(in, pod)
			continue
		}
		r.addInstance(in)
	}
	found := make([]provisioner.Existing, 0, len(r.byFunction[functionUID]))
	for in := range r.byFunction[functionUID] {
		found = append(found, in.existing())
	}
	return found
}

// Release drops a function's instances. Pods that were not requested yet are not created. One that
// was not seen counts again when it is: it may go before, without an event.
func (r *Driver) Release(functionUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for in := range r.byFunction[functionUID] {
		if in.stage == stageQueued {
			r.creator.dequeue(in)
			if in.assigning != nil {
				r.deletePod(in, new(brokenGrace))
			}
		}
		r.resources.dropAssumed(in.pod)
		r.removeInstance(in)
	}
}

// Identify returns the instance of a pod that was started or adopted here; an empty id if the
// pod has none, whatever its labels say. known is false if no such pod has been seen yet.
func (r *Driver) Identify(podUID, namespace, name string) (functionUID string, cid invocation.CID, known bool) {
	key, uid := podKey{namespace, name}, types.UID(podUID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.byPod[key]; in != nil && uid != "" && in.uid == uid {
		of := in.id
		if in.assigning != nil {
			of = in.assigning.spare
		}
		return of.functionUID, of.cid, true
	}
	pod := r.watcher.cluster.pod(key)
	return "", "", pod != nil && pod.UID == uid
}

// Progress returns when the pod of an instance that was started here existed, and when its
// network was first seen. For an assigned spare instance the first is the time of its
// assignment, and the network came before.
func (r *Driver) Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.byID[id{functionUID, cid}]; in != nil {
		return in.created, in.sandboxed
	}
	return time.Time{}, time.Time{}
}
