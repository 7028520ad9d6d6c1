package provisioner

import "time"

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
