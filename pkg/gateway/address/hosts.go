package address

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// DefaultTemplate gives functions hosts that one wildcard certificate covers, which stands
// for one label only.
const DefaultTemplate = "{name}--{namespace}.{domain}"

const (
	// maxLabel and maxHost bound a label and a name in DNS, in bytes.
	maxLabel = 63
	maxHost  = 253
)

// Two hyphens part a name from a namespace, and three a tag from a name. Those of a name
// itself become two more, so that no name has a run of two or three, and each host is of
// one tag of one function.
const (
	betweenNames = "--"
	behindTag    = "---"
)

// Hosts decides the hosts of each function: one, and one for each tag of its traffic. The zero
// value gives none.
type Hosts struct {
	// A host is before, the two names with between, and behind, which ends in the domain.
	before, between, behind string
	// namespaceFirst says that the namespace precedes the name.
	namespaceFirst bool
	domain         string
}

var templates = regexp.MustCompile(`^([^{}]*)\{(name|namespace)\}(--|\.)\{(name|namespace)\}([^{}]*)\.\{domain\}$`)

// NewHosts makes the hosts below a domain. The template has {name} and {namespace} once,
// with -- or a dot between them, and ends in .{domain}. Without a domain there are none.
func NewHosts(domain, template string) (Hosts, error) {
	if domain == "" {
		return Hosts{}, nil
	}
	m := templates.FindStringSubmatch(template)
	if m == nil || m[2] == m[4] {
		return Hosts{}, fmt.Errorf("--hosts-template %q must have {name} and {namespace} with -- or a dot between them, and end in .{domain}, such as %s", template, DefaultTemplate)
	}
	h := Hosts{before: m[1], between: m[3], behind: m[5] + "." + domain, namespaceFirst: m[2] == "namespace", domain: domain}
	if _, ok := h.Of(invocation.FunctionKey{Namespace: "a", Name: "a"}, ""); !ok || !isName(domain) {
		return Hosts{}, fmt.Errorf("--hosts-domain %q and --hosts-template %q make no host names; write small letters, digits, hyphens and dots, such as fn.example.com", domain, template)
	}
	return h, nil
}

// Of is the host of a function, or that of a tag of its traffic. ok is false if a label of it
// would exceed 63 bytes, or would begin with xn--, which browsers reserve for names in other
// alphabets.
func (h Hosts) Of(key invocation.FunctionKey, tag string) (host string, ok bool) {
	if h.domain == "" {
		return "", false
	}
	first, second := lengthen(key.Name), lengthen(key.Namespace)
	if tag != "" {
		first = lengthen(tag) + behindTag + first
	}
	if h.namespaceFirst {
		first, second = second, first
	}
	host = h.before + first + h.between + second + h.behind
	own := strings.TrimSuffix(host, "."+h.domain)
	if !isName(host) || strings.HasPrefix(own, "xn--") || strings.Contains(own, ".xn--") {
		return "", false
	}
	return host, true
}

// Parse is the reverse of Of.
func (h Hosts) Parse(host string) (key invocation.FunctionKey, tag string, ok bool) {
	if h.domain == "" {
		return key, "", false
	}
	names, beginsSo := strings.CutPrefix(host, h.before)
	names, endsSo := strings.CutSuffix(names, h.behind)
	first, second, parted := cut(names, h.between)
	if !beginsSo || !endsSo || !parted {
		return key, "", false
	}
	if h.namespaceFirst {
		first, second = second, first
	}
	if before, name, tagged := cut(first, behindTag); tagged {
		tag, first = shorten(before), name
	}
	key = invocation.FunctionKey{Namespace: shorten(second), Name: shorten(first)}
	made, ok := h.Of(key, tag)
	if !ok || made != host || !isLabel(key.Name) || !isLabel(key.Namespace) || tag != "" && !isLabel(tag) {
		return invocation.FunctionKey{}, "", false
	}
	return key, tag, true
}

// Below reports whether a host is below the domain. Such a host belongs to a function or to
// nothing.
func (h Hosts) Below(host string) bool {
	return h.domain != "" && strings.HasSuffix(host, "."+h.domain)
}

// lengthen gives each run of two hyphens or more two more of them.
func lengthen(name string) string { return adjustHyphens(name, 2, 2) }

// shorten is the reverse of lengthen.
func shorten(name string) string { return adjustHyphens(name, 4, -2) }

// adjustHyphens adds hyphens to each run of at least least, or removes them.
func adjustHyphens(name string, least, more int) string {
	if !strings.Contains(name, betweenNames) {
		return name
	}
	var b strings.Builder
	for name != "" {
		n := leadingHyphens(name)
		if n == 0 {
			b.WriteByte(name[0])
			name = name[1:]
			continue
		}
		name = name[n:]
		if n >= least {
			n += more
		}
		for range n {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// cut splits a text at the first separator. A separator of hyphens matches a run of exactly
// that length.
func cut(s, separator string) (before, after string, found bool) {
	if separator[0] != '-' {
		return strings.Cut(s, separator)
	}
	for i := 0; i < len(s); i++ {
		n := leadingHyphens(s[i:])
		if n == len(separator) {
			return s[:i], s[i+n:], true
		}
		i += n
	}
	return s, "", false
}

// leadingHyphens is the number of hyphens that a text begins with.
func leadingHyphens(s string) int { return len(s) - len(strings.TrimLeft(s, "-")) }

// isName reports whether a host is a valid DNS name in lower case.
func isName(host string) bool {
	if len(host) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
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

// Hostname is the host that a request names, as Hosts knows it: without its port and the
// dot of the root, in small letters.
func Hostname(authority string) string {
	host := authority
	if colon := strings.LastIndexByte(host, ':'); colon >= 0 && strings.IndexByte(host[colon:], ']') < 0 {
		host = host[:colon]
	}
	return strings.Map(lowerASCII, strings.TrimSuffix(host, "."))
}

// lowerASCII lowers the ASCII letters, which DNS ignores the case of. It leaves other letters:
// the lower case of some is an ASCII letter.
func lowerASCII(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + ('a' - 'A')
	}
	return r
}
