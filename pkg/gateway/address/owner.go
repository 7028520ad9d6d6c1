package address

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Rules say which hosts of their own functions may ask for.
type Rules struct {
	// URLs have the hosts that are Windlass's to give, which no function may ask for.
	URLs URLs
	// Permits reports whether functions of a namespace may have a host. It is called each
	// time, and its answer may change.
	Permits func(namespace, host string) bool
}

// Claim is a function that asks for a host.
type Claim struct {
	Key     invocation.FunctionKey
	Created time.Time
}

func (c Claim) compare(other Claim) int {
	if order := c.Created.Compare(other.Created); order != 0 {
		return order
	}
	return c.Key.Compare(other.Key)
}

// permits reports whether functions of a namespace may have a host.
func (r Rules) permits(namespace, host string) bool {
	return !r.URLs.Reserved(host) && r.Permits != nil && r.Permits(namespace, host)
}

// Owner is the function among the claims that gets a host: the oldest that may have it, and
// among equally old ones the first by name.
func (r Rules) Owner(host string, claims []Claim) (owner invocation.FunctionKey, known bool) {
	var oldest Claim
	for _, c := range claims {
		if r.permits(c.Key.Namespace, host) && (!known || c.compare(oldest) < 0) {
			oldest, known = c, true
		}
	}
	return oldest.Key, known
}

// State is the state of a host that a function asks for, given all claims to it, including its
// own.
func (r Rules) State(key invocation.FunctionKey, host string, claims []Claim) v1alpha1.HostState {
	if !r.permits(key.Namespace, host) {
		return v1alpha1.HostNotPermitted
	}
	if owner, _ := r.Owner(host, claims); owner != key {
		return v1alpha1.HostConflict
	}
	return v1alpha1.HostAccepted
}

// Table finds the function that has a host.
type Table struct {
	rules Rules
	// claims are the claims to each host by namespace, the oldest first, so that the hosts of
	// one namespace do not slow down the calls of others.
	claims map[string]map[string][]Claim
	asked  map[invocation.FunctionKey]requestedHosts
}

// requestedHosts are the hosts that a function asks for.
type requestedHosts struct {
	claim Claim
	hosts []v1alpha1.Hostname
}

// NewTable makes a Table without functions.
func NewTable(rules Rules) *Table {
	return &Table{rules: rules, claims: make(map[string]map[string][]Claim), asked: make(map[invocation.FunctionKey]requestedHosts)}
}

// Put replaces the hosts that a function asks for.
func (t *Table) Put(c Claim, hosts []v1alpha1.Hostname) {
	if was := t.asked[c.Key]; was.claim.compare(c) == 0 && slices.Equal(was.hosts, hosts) {
		return
	}
	t.Remove(c.Key)
	if len(hosts) == 0 {
		return
	}
	t.asked[c.Key] = requestedHosts{c, hosts}
	for _, host := range hosts {
		of := t.claims[string(host)]
		if of == nil {
			of = make(map[string][]Claim)
			t.claims[string(host)] = of
		}
		at, _ := slices.BinarySearchFunc(of[c.Key.Namespace], c, Claim.compare)
		of[c.Key.Namespace] = slices.Insert(of[c.Key.Namespace], at, c)
	}
}

// Remove takes a function out.
func (t *Table) Remove(key invocation.FunctionKey) {
	was := t.asked[key]
	delete(t.asked, key)
	for _, host := range was.hosts {
		of := t.claims[string(host)]
		left := slices.DeleteFunc(of[key.Namespace], func(c Claim) bool { return c.Key == key })
		if of[key.Namespace] = left; len(left) == 0 {
			delete(of, key.Namespace)
		}
		if len(of) == 0 {
			delete(t.claims, string(host))
		}
	}
}

// Owner is the function that has a host; known is false if none has. claimed reports whether
// any function asks for it, so that the administrator could permit it.
func (t *Table) Owner(host string) (owner invocation.FunctionKey, known, claimed bool) {
	of := t.claims[host]
	if len(of) == 0 || t.rules.URLs.Reserved(host) {
		return owner, false, false
	}
	oldest := make([]Claim, 0, len(of))
	for _, claims := range of {
		oldest = append(oldest, claims[0])
	}
	owner, known = t.rules.Owner(host, oldest)
	return owner, known, true
}
