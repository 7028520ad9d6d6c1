package provisioner

import (
	"math/rand/v2"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// startsFail tells why a function's instances do not start and how long until the next try,
// unless all is well.
func startsFail(v *Inventory, uid string) (why StartFailure, retryAfter time.Duration, failing bool) {
	o := v.Observe(uid)
	return o.Why, o.RetryAfter, o.Failing
}

// has tells whether an instance was launched, or taken over, and has not ended.
func has(v *Inventory, key Key) bool {
	_, known := v.Lookup(key)
	return known
}

// Launch launches up to n instances of a function on the present nodes.
func (p *Provisioner) Launch(fn *v1alpha1.Function, term invocation.Term, n int) LaunchResult {
	site, want := placement.NewSite(p.Candidates(fn)), p.Requests(fn)
	var launched LaunchResult
	launched.Keys = p.LaunchOn(fn, term, n, func() (string, bool) {
		node, ok := site.Pick(want, rand.IntN)
		if !ok {
			launched.NoRoom = site.Explain(want)
			return "", false
		}
		site.Request(node, want)
		return node, true
	})
	return launched
}
