package address

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// URLs say where clients call functions.
type URLs struct {
	// base is the shared origin; nil if unknown.
	base  *url.URL
	hosts Hosts
}

// NewURLs makes the URLs of functions with those hosts. base is the address at which clients
// reach the gateways; its scheme and port apply to the hosts too. Without it, only functions
// with a host have a URL, with https.
func NewURLs(base string, hosts Hosts) (URLs, error) {
	if base == "" {
		return URLs{hosts: hosts}, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return URLs{}, fmt.Errorf("--external-url %q is no URL of the gateways: write for example https://fn.example.com", base)
	}
	return URLs{u, hosts}, nil
}

// Function is where a function is called: at its host or, if it has none, by its path.
func (u URLs) Function(key invocation.FunctionKey) string {
	if host, ok := u.hosts.Of(key, ""); ok {
		return u.ofHost(host)
	}
	if u.base == nil {
		return ""
	}
	return strings.TrimSuffix(u.base.String(), "/") + Path(key)
}

// Tag is where a tag of a function's traffic is called; empty if it has no host. Its calls
// then need a header.
func (u URLs) Tag(key invocation.FunctionKey, tag string) string {
	if host, ok := u.hosts.Of(key, tag); ok && tag != "" {
		return u.ofHost(host)
	}
	return ""
}

// ofHost is the URL of a host.
func (u URLs) ofHost(host string) string {
	if u.base == nil {
		return "https://" + host
	}
	if port := u.base.Port(); port != "" {
		host += ":" + port
	}
	return u.base.Scheme + "://" + host
}

// Hosts are the hosts that functions have below the domain.
func (u URLs) Hosts() Hosts { return u.hosts }

// Reserved reports whether functions may not ask for a host, because Windlass assigns it: the
// gateways' host, the domain, and all hosts below it.
func (u URLs) Reserved(host string) bool {
	return host == u.hosts.domain || u.hosts.Below(host) || u.base != nil && host == Hostname(u.base.Host)
}

// functions is what the paths of all functions begin with.
const functions = "/function/"

// Path is the path of a function on the origin that functions share:
// /function/NAME.NAMESPACE, and /function/NAME in the namespace default.
func Path(key invocation.FunctionKey) string {
	if key.Namespace == v1alpha1.DefaultNamespace {
		return functions + key.Name
	}
	return functions + key.Name + "." + key.Namespace
}

// OfPath is the function that a path names, and what of the path is the function's own: empty,
// or with a slash in front. Neither names nor namespaces have dots, so a path names
// one function at most. It is not known for a path that is none of a function.
func OfPath(path string) (key invocation.FunctionKey, rest string, known bool) {
	path, found := strings.CutPrefix(path, functions)
	if !found {
		return key, "", false
	}
	named := path
	if slash := strings.IndexByte(path, '/'); slash >= 0 {
		named, rest = path[:slash], path[slash:]
	}
	name, namespace, told := strings.Cut(named, ".")
	if !told {
		namespace = v1alpha1.DefaultNamespace
	}
	if name == "" || namespace == "" || strings.Contains(namespace, ".") {
		return key, "", false
	}
	return invocation.FunctionKey{Namespace: namespace, Name: name}, rest, true
}
