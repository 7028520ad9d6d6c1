package kube

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Progress says when the pod of an instance that was started here was there, and when
// it was seen to have a network. A spare instance that was taken is there when it is
// the function's, and had its network before.
func (r *Runtime) Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if in := r.byID[id{functionUID, cid}]; in != nil {
		return in.created, in.sandboxed
	}
	return time.Time{}, time.Time{}
}
