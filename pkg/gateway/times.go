package gateway

import (
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
)

// happened writes down that something happened to a call.
func (c *call) happened(what func(*timeline.Timeline)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what(&c.times)
}

// timeline is what is known by now of when it was where. Nothing is added to that of a
// call that is answered or given up.
func (c *call) timeline() timeline.Timeline {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.times
}

// traceID is the id of the call's trace if that is recorded, and otherwise empty.
func (c *call) traceID() string {
	if !c.scope.Recorded() {
		return ""
	}
	return c.scope.TraceID()
}

// headed takes note of the times that the head of an answer tells.
func (c *call) headed(head *wirev1.ResultHead) {
	now, exec := time.Now(), time.Duration(head.GetExecNs())
	c.happened(func(t *timeline.Timeline) {
		t.Headed(now, time.Duration(head.GetBegunAfterNs()), exec)
		if head.GetWhole() {
			t.Executed(now, exec)
		}
	})
}

// executed takes note of how long the function has run.
func (c *call) executed(end *wirev1.ResultEnd) {
	now := time.Now()
	c.happened(func(t *timeline.Timeline) { t.Executed(now, time.Duration(end.GetExecNs())) })
}
