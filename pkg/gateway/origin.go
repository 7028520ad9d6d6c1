package gateway

import (
	"strings"
	"sync"

	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// ownHosts knows which function has which of the hosts that functions ask for.
type ownHosts struct {
	mu    sync.RWMutex // guards everything below
	table *address.Table
	// unreported are those that were read at first and that no event was about yet. A watch does not report
	// one that goes before its turn.
	unreported map[invocation.FunctionKey]struct{}
}

// newOwnHosts reads the functions at once: a call may come before the watch has reported its function.
func newOwnHosts(rules address.Rules, functions catalog.Reader) *ownHosts {
	o := &ownHosts{table: address.NewTable(rules), unreported: make(map[invocation.FunctionKey]struct{})}
	for _, entry := range functions.List() {
		o.changed(catalog.Event{Key: entry.Key(), Entry: entry})
		if len(entry.Function.Spec.Expose.Hosts) > 0 {
			o.unreported[entry.Key()] = struct{}{}
		}
	}
	return o
}

// owner is the function that has a host; claimed reports whether any function asks for it.
func (o *ownHosts) owner(host string) (key invocation.FunctionKey, known, claimed bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.table.Owner(host)
}

func (o *ownHosts) changed(e catalog.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.unreported, e.Key)
	if e.Entry == nil {
		o.table.Remove(e.Key)
		return
	}
	o.table.Put(address.Claim{Key: e.Key, Created: e.Entry.Function.CreationTimestamp.Time}, e.Entry.Function.Spec.Expose.Hosts)
}

// dropGone forgets the functions that went without an event.
func (o *ownHosts) dropGone(functions catalog.Reader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.unreported {
		if _, exists := functions.Get(key); !exists {
			delete(o.unreported, key)
			o.table.Remove(key)
		}
	}
}

// ownPath is what of a function's own origin is Windlass's.
const ownPath = "/.well-known/windlass"

// beyondPath reports whether a header of an answer, by its canonical name, changes what a browser does
// with all of an origin. A function may say it on an origin of its own only.
func beyondPath(name string) bool {
	switch name {
	case "Accept-Ch", "Alt-Svc", "Clear-Site-Data", "Critical-Ch", "Nel", "Origin-Agent-Cluster", "Public-Key-Pins", "Report-To", "Reporting-Endpoints",
		"Service-Worker-Allowed", "Set-Cookie2", "Set-Login", "Strict-Transport-Security", "Use-As-Dictionary":
		return true
	}
	return false
}

// filterHeader is a header of a function's answer as the client sees it, if at all. A function
// on the shared origin has the path shared there; it is empty on an origin of its own.
func filterHeader(name, value, shared string) (string, bool) {
	switch {
	case shared != "" && beyondPath(name):
		return "", false
	case name == "Set-Cookie":
		return keepCookie(value, shared), true
	case name == "Clear-Site-Data":
		// Browsers delete cookies of the whole site, which other functions are part of.
		value = strings.ToLower(value)
		return value, !strings.Contains(value, "cookies") && !strings.ContainsAny(value, "*")
	}
	return value, true
}

// keepCookie is a cookie that stays on its host and, on the shared origin, below the
// function's path. A path that the function gives is one of its own.
func keepCookie(cookie, shared string) string {
	var kept strings.Builder
	path := ""
	for i, part := range strings.Split(cookie, ";") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		switch {
		case i == 0:
			kept.WriteString(part)
			continue
		case strings.EqualFold(name, "Domain"):
			continue
		case shared != "" && strings.EqualFold(name, "Path"):
			path = strings.TrimSpace(value)
			continue
		}
		kept.WriteByte(';')
		kept.WriteString(part)
	}
	if shared == "" {
		return kept.String()
	}
	switch {
	case path == shared || strings.HasPrefix(path, shared+"/"):
	case strings.HasPrefix(path, "/") && path != "/":
		path = shared + path
	default:
		// Without one it would be that of the request, up to its last slash.
		path = shared
	}
	return kept.String() + "; Path=" + path
}
