package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// takeTime is how long it takes to take a spare instance.
const takeTime = 5 * time.Millisecond

// fakePods say which instance each pod is, as a cluster does. A pod's name is that of
// the instance that it was first, and its token is its name.
type fakePods struct {
	of map[string]provisioner.Key
	// refuse says that spare instances cannot be taken, and result what becomes of those that
	// were chosen.
	refuse bool
	result provisioner.AssignResult
}

func podName(key provisioner.Key) string { return key.FunctionUID + "/" + string(key.CID) }

func (p *fakePods) add(key provisioner.Key) {
	if p.of == nil {
		p.of = make(map[string]provisioner.Key)
	}
	p.of[podName(key)] = key
}

func (r *fakeRuntime) identify(token string) (provisioner.Key, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, known := r.pods.of[token]
	if !known {
		return key, provisioner.ErrUnknownInstance
	}
	return key, nil
}

func (r *fakeRuntime) verify(key provisioner.Key, token string) error {
	if of, err := r.identify(token); err != nil || of != key {
		return provisioner.ErrBadToken
	}
	return nil
}

func (r *fakeRuntime) Assign(poolUID string, cid invocation.CID, spec provisioner.InstanceSpec, told func(provisioner.AssignResult)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	from, to := keyOf(poolUID, cid), keyOf(string(spec.Function.UID), spec.CID)
	ended, alive := r.alive[from]
	if r.pods.refuse || !alive {
		return false
	}
	delete(r.alive, from)
	time.AfterFunc(takeTime, func() {
		r.mu.Lock()
		result := r.pods.result
		if result != provisioner.AssignTaken {
			close(ended)
		} else {
			r.alive[to] = ended
			r.pods.become(from, to)
		}
		r.mu.Unlock()
		told(result)
	})
	return true
}

func (p *fakePods) become(from, to provisioner.Key) {
	for name, key := range p.of {
		if key == from {
			p.of[name] = to
		}
	}
}
