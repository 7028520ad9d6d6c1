package address_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func named(namespace, name string) invocation.FunctionKey {
	return invocation.FunctionKey{Namespace: namespace, Name: name}
}

func hosts(t testing.TB, template string) address.Hosts {
	t.Helper()
	h, err := address.NewHosts("fn.example.com", template)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostsOfFunctions(t *testing.T) {
	const byDots = "{name}.{namespace}.{domain}"
	for _, tt := range []struct {
		template, namespace, name, tag string
		want                           string
	}{
		{address.DefaultTemplate, "team", "hello", "", "hello--team.fn.example.com"},
		{address.DefaultTemplate, "team", "hello", "next", "next---hello--team.fn.example.com"},
		{address.DefaultTemplate, "my-team", "say-hello", "pr-7", "pr-7---say-hello--my-team.fn.example.com"},
		{address.DefaultTemplate, "default", "a--b", "", "a----b--default.fn.example.com"},
		{address.DefaultTemplate, "default", "a---b", "c", "c---a-----b--default.fn.example.com"},
		{byDots, "team", "hello", "", "hello.team.fn.example.com"},
		{byDots, "team", "hello", "next", "next---hello.team.fn.example.com"},
		{"fn-{namespace}--{name}.{domain}", "team", "hello", "next", "fn-team--next---hello.fn.example.com"},
		{"{name}--{namespace}-x.y.{domain}", "team", "hello", "", "hello--team-x.y.fn.example.com"},
		{address.DefaultTemplate, strings.Repeat("n", 30), strings.Repeat("f", 31), "", strings.Repeat("f", 31) + "--" + strings.Repeat("n", 30) + ".fn.example.com"},
		{address.DefaultTemplate, strings.Repeat("n", 30), strings.Repeat("f", 32), "", ""},
		{address.DefaultTemplate, strings.Repeat("n", 30), strings.Repeat("f", 31), "t", ""},
		{byDots, strings.Repeat("n", 63), strings.Repeat("f", 63), "", strings.Repeat("f", 63) + "." + strings.Repeat("n", 63) + ".fn.example.com"},
		// Browsers would take these for names in other alphabets, and most are none.
		{address.DefaultTemplate, "p1ai", "xn", "", ""},
		{address.DefaultTemplate, "team", "hello", "xn", ""},
		{byDots, "xn--p1ai", "a", "", ""},
		{"fn-{name}--{namespace}.{domain}", "p1ai", "xn", "", "fn-xn--p1ai.fn.example.com"},
	} {
		h, key := hosts(t, tt.template), named(tt.namespace, tt.name)
		got, ok := h.Of(key, tt.tag)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s/%s %q by %s: %q, %t", tt.namespace, tt.name, tt.tag, tt.template, got, ok)
		}
		if !ok {
			continue
		}
		if of, tag, ok := h.Parse(got); of != key || tag != tt.tag || !ok {
			t.Errorf("%s by %s is of %s with the tag %q, known %t", got, tt.template, of, tag, ok)
		}
	}
	none := address.Hosts{}
	if _, ok := none.Of(named("a", "b"), ""); ok || none.Below("a.b") {
		t.Error("there are hosts without a domain")
	}
	if _, _, ok := none.Parse("a--b."); ok {
		t.Error("a host is parsed without a domain")
	}
}

func TestTemplatesThatMakeNoHosts(t *testing.T) {
	for _, tt := range [][2]string{
		{"fn.example.com", "{name}.{domain}"}, {"fn.example.com", "{name}--{namespace}"}, {"fn.example.com", "{name}--{namespace}.fn"},
		{"fn.example.com", "{name}{name}{namespace}.{domain}"}, {"fn.example.com", "{tag}--{name}--{namespace}.{domain}"}, {"fn.example.com", ""},
		{"FN.example.com", address.DefaultTemplate}, {".example.com", address.DefaultTemplate}, {"example.com.", address.DefaultTemplate},
		{"example.com:443", address.DefaultTemplate}, {"*.example.com", address.DefaultTemplate}, {"fn_example", address.DefaultTemplate},
		{"fn.example.com", "{name}_{namespace}.{domain}"}, {"fn.example.com", "-{name}--{namespace}.{domain}"},
		// Two functions would share a host.
		{"fn.example.com", "{name}-{namespace}.{domain}"}, {"fn.example.com", "{name}{namespace}.{domain}"}, {"fn.example.com", "{name}--{name}.{domain}"},
	} {
		if _, err := address.NewHosts(tt[0], tt[1]); err == nil {
			t.Errorf("%q with %q are accepted", tt[0], tt[1])
		}
	}
}

// label draws a name as Kubernetes takes it, with more hyphens than people write.
func label(t *rapid.T, what string) string {
	return rapid.StringMatching(`[a-z0-9x]([-a-b0]{0,8}[a-z0-9n])?`).Draw(t, what)
}

// A host is of one tag of one function: parsing is the reverse of formatting.
func TestEachHostIsOfOneTagOfOneFunction(t *testing.T) {
	templates := []string{address.DefaultTemplate, "{namespace}--{name}.{domain}", "{name}.{namespace}.{domain}", "x--{name}--{namespace}---y.{domain}"}
	rapid.Check(t, func(t *rapid.T) {
		h, err := address.NewHosts("fn.example.com", rapid.SampledFrom(templates).Draw(t, "template"))
		if err != nil {
			t.Fatal(err)
		}
		key, tag := named(label(t, "namespace"), label(t, "name")), ""
		if rapid.Bool().Draw(t, "tagged") {
			tag = label(t, "tag")
		}
		host, ok := h.Of(key, tag)
		if !ok {
			return
		}
		if of, got, known := h.Parse(host); of != key || got != tag || !known {
			t.Errorf("%s of %s with the tag %q is read as %s with %q, known %t", host, key, tag, of, got, known)
		}
	})
}

// FuzzParse looks for a host that is taken for one that it is not, letter by letter.
func FuzzParse(f *testing.F) {
	for _, host := range []string{
		"hello--team.fn.example.com", "next---hello--team.fn.example.com", "a----b--c.fn.example.com", "a--b--c.fn.example.com", "---a--b.fn.example.com",
		"a-----b--c.fn.example.com", "a---b---c--d.fn.example.com", "xn--p1ai.fn.example.com", "a--b.c.fn.example.com", "--.fn.example.com", ".fn.example.com", "",
	} {
		f.Add(host)
	}
	all := []address.Hosts{hosts(f, address.DefaultTemplate), hosts(f, "{namespace}.{name}.{domain}"), hosts(f, "a{name}--{namespace}b.{domain}")}
	f.Fuzz(func(t *testing.T, host string) {
		for _, h := range all {
			key, tag, ok := h.Parse(host)
			if !ok {
				continue
			}
			for _, name := range []string{key.Name, key.Namespace, tag} {
				if strings.ContainsAny(name, "._") || strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
					t.Errorf("%q has the part %q", host, name)
				}
			}
			if made, ok := h.Of(key, tag); made != host || !ok || !h.Below(host) {
				t.Errorf("%q is of %s with the tag %q, whose host is %q", host, key, tag, made)
			}
		}
	})
}

func TestHostnames(t *testing.T) {
	for authority, want := range map[string]string{
		"a.example.com": "a.example.com", "A.Example.COM:8443": "a.example.com", "a.example.com.": "a.example.com", "a.example.com.:80": "a.example.com",
		"127.0.0.1:8080": "127.0.0.1", "[::1]:8080": "[::1]", "[::1]": "[::1]", "": "", ":80": "",
		"\u212Aelvin.example.com": "\u212Aelvin.example.com", "a.example.com..": "a.example.com.",
	} {
		if got := address.Hostname(authority); got != want {
			t.Errorf("%q is %q, want %q", authority, got, want)
		}
	}
}
