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
	r.deleter = newDeleter(config, deps, r.podMissing, r.podUnreached)
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
func (d *Driver) Run(ctx context.Context) error {
	if d.started.Swap(true) {
		return errors.New("kube: Run was called before: make a new Driver")
	}
	var running sync.WaitGroup
	running.Go(func() { d.watcher.cluster.run(ctx) })
	running.Go(func() { d.creator.queue.run(ctx) })
	running.Go(func() { d.deleter.queue.run(ctx) })
	running.Go(func() { d.exits.deliver(ctx) })
	running.Go(func() { d.watcher.resyncLoop(ctx) })
	<-ctx.Done()
	d.close()
	running.Wait()
	return nil
}

// Synced reports whether the pods and nodes of the cluster are known. Before that, nothing can
// be adopted and no node is a candidate.
func (d *Driver) Synced() bool { return d.watcher.cluster.synced() }

// Start begins to create the pod of an instance; before Run, creation waits for Run. An
// existing instance stays as it is and has one Exit.
func (d *Driver) Start(spec provisioner.InstanceSpec) {
	f, now := spec.Function, time.Now()
	in := &instance{
		id:       id{string(f.UID), spec.CID},
		pod:      podKey{f.Namespace, podspec.Name(f.Name, string(f.UID), spec.CID)},
		node:     spec.Node,
		spec:     spec,
		requests: d.Requests(f),
		started:  now,
		changed:  now,
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byID[in.id] != nil {
		return
	}
	exit := provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid}
	switch {
	case d.ended:
		exit.Reason = reasonStopped
		d.exits.push(exit)
		return
	case d.byPod[in.pod] != nil:
		exit.Code, exit.Reason = v1alpha1.ReasonPodRefused, fmt.Sprintf("there is another pod %s", in.pod.name)
		d.exits.push(exit)
		return
	}
	d.addInstance(in)
	d.resources.assume(in.pod, in.node, in.requests)
	if !d.creator.push(in) {
		// The API server is too slow, or many functions start: it is not this one's fault.
		d.endInstance(in, podOutcome{code: v1alpha1.ReasonClusterUnavailable,
			reason: fmt.Sprintf("%d pods wait to be created already", d.creator.limit)})
	}
}

// Stop ends an instance: its pod is deleted, with a grace period in which it can finish its
// calls, or with brokenGrace if it has. One whose pod was not asked for yet ends at once.
func (d *Driver) Stop(functionUID string, cid invocation.CID, finished bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	in := d.byID[id{functionUID, cid}]
	if in == nil || in.stopping && !finished {
		return
	}
	again := in.stopping
	in.stopping, in.finished = true, finished
	switch in.stage {
	case stageQueued:
		d.creator.dequeue(in)
		if in.mayExist || in.assigning != nil {
			// A spare instance that was chosen does not become one again.
			d.deleteStopped(in)
		}
		d.endInstance(in, podOutcome{reason: reasonStopped})
	case stageCreated:
		if !again && time.Since(in.created) > mountTimeout {
			in.unmounted = unmounted(d.watcher.cluster.pod(in.pod))
		}
		d.deleteStopped(in)
	case stageCreating:
		// Its end is launched when it is there.
	}
}

// Exits reports every instance that ended. Exits wait for their reader without
// holding anything up. It is never closed.
func (d *Driver) Exits() <-chan provisioner.Exit { return d.exits.out }

// Candidates are the nodes that instances of a function may use.
func (d *Driver) Candidates(fn *v1alpha1.Function) placement.Candidates {
	return d.resources.candidates(fn, time.Now())
}

// Nodes are all nodes that exist.
func (d *Driver) Nodes() []placement.Node { return d.resources.allNodes() }

// Requests is what the pod of an instance requests of its node.
func (d *Driver) Requests(fn *v1alpha1.Function) placement.Amount {
	return provisioner.Requests(fn, d.agent)
}

// Adopt takes over the pods of a function, and deletes those whose instance has ended already.
// It ignores pods of other namespaces, whatever their labels say.
func (d *Driver) Adopt(fn *v1alpha1.Function) []provisioner.Existing {
	functionUID := string(fn.UID)
	pods := d.watcher.cluster.podsOf(functionUID)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, pod := range pods {
		of, ours := identity(pod)
		if !ours || pod.Namespace != fn.Namespace || d.byID[of] != nil {
			continue
		}
		in := adoptedInstance(pod, of, now)
		in.observeDeletion(pod, now)
		if classifyPod(pod, d.resources.ready(in.node)).ended {
			d.deleteRemains(in, pod)
			continue
		}
		d.addInstance(in)
	}
	found := make([]provisioner.Existing, 0, len(d.byFunction[functionUID]))
	for in := range d.byFunction[functionUID] {
		found = append(found, in.existing())
	}
	return found
}

// Release drops a function's instances. Pods that were not requested yet are not created. One that
// was not seen counts again when it is: it may go before, without an event.
func (d *Driver) Release(functionUID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for in := range d.byFunction[functionUID] {
		if in.stage == stageQueued {
			d.creator.dequeue(in)
			if in.assigning != nil {
				d.deletePod(in, new(brokenGrace))
			}
		}
		d.resources.dropAssumed(in.pod)
		d.removeInstance(in)
	}
}

// Identify returns the instance of a pod that was started or adopted here; an empty id if the
// pod has none, whatever its labels say. known is false if no such pod has been seen yet.
func (d *Driver) Identify(podUID, namespace, name string) (functionUID string, cid invocation.CID, known bool) {
	key, uid := podKey{namespace, name}, types.UID(podUID)
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := d.byPod[key]; in != nil && uid != "" && in.uid == uid {
		of := in.id
		if in.assigning != nil {
			of = in.assigning.spare
		}
		return of.functionUID, of.cid, true
	}
	pod := d.watcher.cluster.pod(key)
	return "", "", pod != nil && pod.UID == uid
}

// Progress returns when the pod of an instance that was started here existed, and when its
// network was first seen. For an assigned spare instance the first is the time of its
// assignment, and the network came before.
func (d *Driver) Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if in := d.byID[id{functionUID, cid}]; in != nil {
		return in.created, in.sandboxed
	}
	return time.Time{}, time.Time{}
}
