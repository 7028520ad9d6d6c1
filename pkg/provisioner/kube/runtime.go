package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
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

const reasonStopped = "stopped"

// Runtime runs instances as pods. It is safe for concurrent use.
type Runtime struct {
	config   Config
	client   kubernetes.Interface
	runtimes Runtimes
	log      *slog.Logger
	metrics  *metrics

	ledger    *ledger
	cluster   *cluster
	creations *pump[*instance]
	deletions *pump[deletion]

	exits chan provisioner.Exit
	// told holds a note when outbox is not empty.
	told chan struct{}

	mu    sync.Mutex
	began bool
	ended bool
	book  book
	// outbox are exits that wait for room in the channel. There are never more
	// than there were instances.
	outbox []provisioner.Exit
	// condemned are pods whose deletion was ordered and has not been answered.
	condemned map[podKey]bool
}

// New makes a Runtime. It starts nothing.
func New(config Config, deps Deps) (*Runtime, error) {
	if err := errors.Join(config.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	config.setDefaults()
	r := &Runtime{
		config:   config,
		client:   deps.Client,
		runtimes: deps.Runtimes,
		log:      deps.Log,
		ledger:   newLedger(),
		exits:    make(chan provisioner.Exit, 256),
		told:     make(chan struct{}, 1),
		book:     newBook(),

		condemned: make(map[podKey]bool),
	}
	r.creations = newPump(config, r.create)
	r.deletions = newPump(config, r.delete)
	var err error
	if r.metrics, err = newMetrics(deps.Registerer, func() float64 { return float64(r.creations.length()) }); err != nil {
		return nil, err
	}
	if r.cluster, err = newCluster(deps.Client, r); err != nil {
		return nil, err
	}
	return r, nil
}

// Run works until ctx ends. The pods go on. It can be called once.
func (r *Runtime) Run(ctx context.Context) error {
	r.mu.Lock()
	again := r.began
	r.began = true
	r.mu.Unlock()
	if again {
		return errors.New("kube: Run was called before: make a new Runtime")
	}
	var running sync.WaitGroup
	running.Go(func() { r.cluster.run(ctx) })
	running.Go(func() { r.creations.run(ctx) })
	running.Go(func() { r.deletions.run(ctx) })
	running.Go(func() { r.deliver(ctx) })
	running.Go(func() { r.watchOver(ctx) })
	<-ctx.Done()
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	running.Wait()
	return nil
}

// Synced says whether the pods and nodes of the cluster are known. Before, there
// is nothing to adopt and no candidate.
func (r *Runtime) Synced() bool { return r.cluster.synced() }

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
	if r.book.byID[in.id] != nil {
		return
	}
	exit := provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid}
	switch {
	case r.ended:
		exit.Reason = reasonStopped
		r.tell(exit)
		return
	case r.book.byPod[in.pod] != nil:
		exit.Code, exit.Reason = v1alpha1.ReasonPodRefused, fmt.Sprintf("there is another pod %s", in.pod.name)
		r.tell(exit)
		return
	}
	r.book.add(in)
	r.ledger.assume(in.pod, in.node, in.requests)
	if !r.creations.push(in.id.functionUID, in, r.config.MaxQueue) {
		// The API server is too slow, or many functions start: it is not this one's fault.
		r.finish(in, verdict{code: v1alpha1.ReasonClusterUnavailable,
			reason: fmt.Sprintf("%d pods wait to be created already", r.config.MaxQueue)})
	}
}

// Stop ends an instance: its pod is deleted, with a grace period in which it can
// finish its calls. One whose pod was not asked for yet ends at once.
func (r *Runtime) Stop(functionUID string, cid invoke.CID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.book.byID[id{functionUID, cid}]
	if in == nil || in.stopping {
		return
	}
	in.stopping = true
	switch in.stage {
	case queued:
		r.creations.remove(functionUID, in)
		if in.attempts > 0 || in.taking != nil {
			// An attempt may have succeeded without an answer, and a spare
			// instance that was chosen does not become one again.
			r.order(in, nil)
		}
		r.finish(in, verdict{reason: reasonStopped})
	case there:
		r.order(in, nil)
	case creating:
		// Its end is ordered when it is there.
	}
}

// Exits tells of every instance that ended. Exits wait for their reader without
// holding anything up. It is never closed.
func (r *Runtime) Exits() <-chan provisioner.Exit { return r.exits }

// Candidates are the nodes that instances of a function may use.
func (r *Runtime) Candidates(fn *v1alpha1.Function) nodepick.Candidates {
	return r.ledger.candidates(fn, time.Now())
}

// Nodes are all nodes that exist.
func (r *Runtime) Nodes() []nodepick.Node { return r.ledger.all() }

// Requests is what the pod of an instance requests of its node.
func (r *Runtime) Requests(fn *v1alpha1.Function) nodepick.Amount {
	agent := r.config.Pod.AgentRequests
	agent.Pods = 1
	return provisioner.Requests(fn, agent)
}

// Adopt takes over the pods of a function, and those whose instance has ended
// already are deleted. A pod of another namespace is none of the function's,
// whatever it says of itself.
func (r *Runtime) Adopt(fn *v1alpha1.Function) []provisioner.Existing {
	functionUID := string(fn.UID)
	pods := r.cluster.podsOf(functionUID)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, pod := range pods {
		of, ours := identity(pod)
		if !ours || pod.Namespace != fn.Namespace || r.book.byID[of] != nil {
			continue
		}
		in := adopted(pod, of, now)
		in.noteEnd(pod, now)
		if judge(pod, r.ledger.ready(in.node)).ended {
			if pod.DeletionTimestamp == nil {
				r.order(in, new(brokenGrace))
			}
			continue
		}
		r.book.add(in)
	}
	found := make([]provisioner.Existing, 0, len(r.book.byFunction[functionUID]))
	for in := range r.book.byFunction[functionUID] {
		found = append(found, in.existing())
	}
	return found
}

// Release forgets a function's instances. Pods that were not asked for yet are
// not created.
func (r *Runtime) Release(functionUID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for in := range r.book.byFunction[functionUID] {
		if in.stage == queued {
			r.creations.remove(functionUID, in)
			r.ledger.dropAssumed(in.pod)
			if in.taking != nil {
				r.order(in, new(brokenGrace))
			}
		}
		r.book.remove(in)
	}
}

// Identify says of which instance a pod is that was started or adopted here. It is
// of none, and its id empty, if it was not, whatever it looks like. Known is false
// if no such pod has been seen yet.
func (r *Runtime) Identify(podUID, namespace, name string) (functionUID string, cid invoke.CID, known bool) {
	key, uid := podKey{namespace, name}, types.UID(podUID)
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.book.byPod[key]; in != nil && uid != "" && in.uid == uid {
		of := in.id
		if in.taking != nil {
			of = in.taking.spare
		}
		return of.functionUID, of.cid, true
	}
	pod := r.cluster.pod(key)
	return "", "", pod != nil && pod.UID == uid
}

// finish ends an instance. It must be called with the lock.
func (r *Runtime) finish(in *instance, v verdict) {
	r.book.remove(in)
	r.ledger.dropAssumed(in.pod)
	if v.blameNode {
		r.ledger.avoid(in.node, time.Now().Add(avoidFor))
	}
	r.tell(provisioner.Exit{FunctionUID: in.id.functionUID, CID: in.id.cid, Code: v.code, Reason: v.reason, LogTail: v.logTail})
}

// tell reports an exit. It must be called with the lock.
func (r *Runtime) tell(exit provisioner.Exit) {
	r.outbox = append(r.outbox, exit)
	select {
	case r.told <- struct{}{}:
	default:
	}
}

// deliver hands exits to their reader.
func (r *Runtime) deliver(ctx context.Context) {
	for {
		r.mu.Lock()
		batch := r.outbox
		r.outbox = nil
		r.mu.Unlock()
		for _, exit := range batch {
			select {
			case r.exits <- exit:
			case <-ctx.Done():
				return
			}
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-r.told:
		case <-ctx.Done():
			return
		}
	}
}
