package nodeagent

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// Pod is what is known of a pod of the node without its agent.
type Pod struct {
	UID, Namespace, Name string
	// Class is what its annotation says; "" without it.
	Class string
	// Instance says that it is one of a function, or a spare one.
	Instance bool
	// Guaranteed says that it has that QoS class.
	Guaranteed bool
	// Runs says that a container of it runs.
	Runs bool
}

// FillerOf decides whether a pod is filler: ordinary work that gets what others leave. It takes from the
// pod alone, but a tenant may not say what becomes of groups of a node, so the administrator lists the
// namespaces that may use it. why says what speaks against it where the pod asks for it.
func FillerOf(p Pod, namespaces []string) (filler bool, why string) {
	switch {
	case p.Class == "":
		return false, ""
	case p.Class != callorder.Batch.String():
		return false, fmt.Sprintf("its annotation %s is %q; only %q is known there", wellknown.AnnotationClass, p.Class, callorder.Batch)
	case p.Instance:
		return false, "it is an instance, whose function says its class"
	case !wellknown.Allows(namespaces, p.Namespace):
		return false, "its namespace is not among those that the administrator allows it to"
	case p.Guaranteed:
		return false, "its QoS class is Guaranteed, which promises it what it requests: give it requests below its limits, or none"
	}
	return p.Runs, ""
}

// Fillers keeps the agent's instances that are filler the same as the pods of the node.
type Fillers struct {
	agent      *Agent
	namespaces []string
	open       func(Pod) (Instance, error)
	log        *slog.Logger

	mu   sync.Mutex
	pods map[string]*fillerPod
}

// fillerPod is a pod that asks to be filler.
type fillerPod struct {
	Pod
	leave func() error // nil unless it is filler now
	// said is the last problem that was logged.
	said string
}

// NewFillers makes the Fillers of an agent, for pods of some namespaces. open opens the group of a pod
// that becomes filler.
func NewFillers(agent *Agent, namespaces []string, open func(Pod) (Instance, error), log *slog.Logger) *Fillers {
	return &Fillers{agent: agent, namespaces: namespaces, open: open, log: log, pods: map[string]*fillerPod{}}
}

// Saw takes in a pod that is new or has changed.
func (f *Fillers) Saw(p Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.pods[p.UID]
	if known == nil {
		if p.Class == "" {
			return
		}
		known = &fillerPod{}
		f.pods[p.UID] = known
	}
	known.Pod = p
	f.settle(known)
	if p.Class == "" {
		delete(f.pods, p.UID)
	}
}

// Lost forgets a pod that is gone.
func (f *Fillers) Lost(uid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.pods[uid]; known != nil {
		f.free(known)
		delete(f.pods, uid)
	}
}

// Retry tries those again that could not become filler.
func (f *Fillers) Retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, known := range f.pods {
		f.settle(known)
	}
}

// settle makes a pod what it should be.
func (f *Fillers) settle(known *fillerPod) {
	is, why := FillerOf(known.Pod, f.namespaces)
	switch {
	case !is:
		f.free(known)
	case known.leave == nil:
		if err := f.fillWith(known); err != nil {
			why = err.Error()
		}
	}
	if why != "" && why != known.said {
		f.log.Warn("a pod that asks for it is not in the low band", "pod", known.Namespace+"/"+known.Name, "why", why)
	}
	known.said = why
}

func (f *Fillers) fillWith(known *fillerPod) error {
	// To open the group would lift it, and the node agent would go on to take it for low.
	if f.agent.connected(known.UID) {
		return errTaken
	}
	instance, err := f.open(known.Pod)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has ended, or its group is about to come
	}
	if err != nil {
		return err
	}
	leave, err := f.agent.Adopt(instance)
	if err != nil {
		return err
	}
	known.leave = leave
	f.log.Info("a pod gets what others leave", "pod", known.Namespace+"/"+known.Name)
	return nil
}

// free lets a pod go on as before.
func (f *Fillers) free(known *fillerPod) {
	if known.leave == nil {
		return
	}
	if err := known.leave(); err != nil {
		f.log.Warn("a pod could not be set to normal; the next node agent tries again", "err", err, "pod", known.Namespace+"/"+known.Name)
	}
	known.leave = nil
}

var errTaken = errors.New("nodeagent: an agent in the pod is connected")

// connected reports whether the instance with that key is here.
func (a *Agent) connected(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state.byKey[key] != nil
}

// Adopt takes in a pod without an agent as a batch instance, which is never frozen: its liveness probes
// would fail. It leaves by what is returned, or when the Agent stops. The Agent closes its group.
func (a *Agent) Adopt(is Instance) (leave func() error, err error) {
	s := newSession(is)
	s.class, s.filler, s.replies = callorder.Batch, true, nil
	a.mu.Lock()
	defer a.mu.Unlock()
	err = errTaken
	if a.state.byKey[s.key] == nil {
		err = a.joinLocked(s)
	}
	if err != nil {
		return nil, errors.Join(err, s.group.Close())
	}
	return func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.leaveLocked(s)
	}, nil
}
