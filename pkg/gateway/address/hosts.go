package address

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

// DefaultTemplate gives functions hosts that one wildcard certificate covers, which stands
// for one label only.
const DefaultTemplate = "{name}--{namespace}.{domain}"

const (
	// maxLabel and maxHost bound a label and a name in DNS, in bytes.
	maxLabel = 63
	maxHost  = 253
)

// Hosts says which host each function has of its own. Its zero value gives none.
type Hosts struct{ domain, before string }

// NewHosts makes the hosts below a domain. The template has {name} and {namespace} once, and
// ends in .{domain}. Without a domain there are none.
func NewHosts(domain, template string) (Hosts, error) {
	if domain == "" {
		return Hosts{}, nil
	}
	before, found := strings.CutSuffix(template, ".{domain}")
	if !found || strings.Count(before, "{name}") != 1 || strings.Count(before, "{namespace}") != 1 {
		return Hosts{}, fmt.Errorf("--hosts-template %q must have {name} and {namespace} once, and end in .{domain}, such as %s", template, DefaultTemplate)
	}
	h := Hosts{domain: domain, before: before}
	if _, ok := h.Of(invoke.FunctionKey{Namespace: "a", Name: "a"}); !ok {
		return Hosts{}, fmt.Errorf("--hosts-domain %q and --hosts-template %q make no host names; write small letters, digits, hyphens and dots, such as fn.example.com", domain, template)
	}
	return h, nil
}

// Of is the host of a function, unless a label of it would be too long.
func (h Hosts) Of(key invoke.FunctionKey) (host string, ok bool) {
	if h.domain == "" {
		return "", false
	}
	host = strings.NewReplacer("{name}", key.Name, "{namespace}", key.Namespace).Replace(h.before) + "." + h.domain
	if len(host) > maxHost {
		return "", false
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return "", false
		}
	}
	return host, true
}

// Below tells whether a host is below the domain, so that it is a function's or nobody's.
func (h Hosts) Below(host string) bool {
	return h.domain != "" && strings.HasSuffix(host, "."+h.domain)
}

func isLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Hostname is the host that a request names, as a key of a Table: without its port and
// the dot of the root, in small letters.
func Hostname(authority string) string {
	host := authority
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && strings.IndexByte(host[colon:], ']') < 0 {
		host = host[:colon]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// Table says which function has which host. Hosts are made and looked up whole: what
// is a name and what a namespace cannot be read off them, since both may have two hyphens.
type Table struct {
	hosts Hosts
	// claims are the functions that a host might be of, the one that has it first.
	claims map[string][]claim
	of     map[invoke.FunctionKey]string
}

type claim struct {
	key     invoke.FunctionKey
	created time.Time
}

// NewTable makes a Table without functions.
func NewTable(hosts Hosts) *Table {
	return &Table{hosts: hosts, claims: make(map[string][]claim), of: make(map[invoke.FunctionKey]string)}
}

// Put enters a function, and tells whether it is new. The elder of two functions with the
// same host has it.
func (t *Table) Put(key invoke.FunctionKey, created time.Time) (entered bool) {
	_, known := t.of[key]
	t.Remove(key)
	host, ok := t.hosts.Of(key)
	if !ok {
		return false
	}
	claims := slices.Concat(t.claims[host], []claim{{key, created}})
	slices.SortFunc(claims, func(a, b claim) int {
		if c := a.created.Compare(b.created); c != 0 {
			return c
		}
		return a.key.Compare(b.key)
	})
	t.claims[host], t.of[key] = claims, host
	return !known
}

// Remove takes a function out.
func (t *Table) Remove(key invoke.FunctionKey) {
	host, known := t.of[key]
	if !known {
		return
	}
	delete(t.of, key)
	t.claims[host] = slices.DeleteFunc(t.claims[host], func(c claim) bool { return c.key == key })
	if len(t.claims[host]) == 0 {
		delete(t.claims, host)
	}
}

// Owner is the function that has a host.
func (t *Table) Owner(host string) (key invoke.FunctionKey, known bool) {
	claims := t.claims[host]
	if len(claims) == 0 {
		return key, false
	}
	return claims[0].key, true
}

// Below is Hosts.Below.
func (t *Table) Below(host string) bool { return t.hosts.Below(host) }

// Host is the host that a function should have, and who has it; false if it has none.
func (t *Table) Host(key invoke.FunctionKey) (host string, owner invoke.FunctionKey, ok bool) {
	host, ok = t.of[key]
	if !ok {
		return "", owner, false
	}
	return host, t.claims[host][0].key, true
}
