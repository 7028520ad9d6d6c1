package address_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestWhichFunctionAPathNames(t *testing.T) {
	for path, want := range map[string]struct{ namespace, name, rest string }{
		"/function/hello":                     {"default", "hello", ""},
		"/function/hello/":                    {"default", "hello", "/"},
		"/function/hello/a/b":                 {"default", "hello", "/a/b"},
		"/function/hello.team":                {"team", "hello", ""},
		"/function/hello.team/a.b/c":          {"team", "hello", "/a.b/c"},
		"/function/hello//a":                  {"default", "hello", "//a"},
		"/function/hello/../other":            {"default", "hello", "/../other"},
		"/function/a%2Fb":                     {"default", "a%2Fb", ""},
		"/function/hello.a.b":                 {},
		"/function/.team":                     {},
		"/function/hello.":                    {},
		"/function/.":                         {},
		"/function/..":                        {},
		"/function/../hello":                  {},
		"/function/":                          {},
		"/function//hello":                    {},
		"/function":                           {},
		"/functions/hello":                    {},
		"/Function/hello":                     {},
		"//function/hello":                    {},
		"/async-function/hello":               {},
		"/calls/0190f5a5c5e07a3c":             {},
		"/v1/functions":                       {},
		"/2015-03-31/functions/f/invocations": {},
		"":                                    {},
		"*":                                   {},
	} {
		key, rest, known := address.OfPath(path)
		if known != (want.name != "") || key != (invocation.FunctionKey{Namespace: want.namespace, Name: want.name}) || rest != want.rest {
			t.Errorf("%s: %s with %q, known %t", path, key, rest, known)
		}
	}
}

// The path of a function names it and no other, whatever follows.
func TestAPathNamesItsFunction(t *testing.T) {
	label := rapid.StringMatching(`[a-z]([-a-z0-9]{0,8}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		want := invocation.FunctionKey{Namespace: label.Draw(t, "namespace"), Name: label.Draw(t, "name")}
		rest := rapid.StringMatching(`(/[a-z./%]*)?`).Draw(t, "rest")
		key, got, known := address.OfPath(address.Path(want) + rest)
		if !known || key != want || got != rest {
			t.Errorf("%s with %q, known %t; want %s with %q", key, got, known, want, rest)
		}
	})
}
