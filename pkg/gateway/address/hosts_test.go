package address_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

func named(namespace, name string) invoke.FunctionKey {
	return invoke.FunctionKey{Namespace: namespace, Name: name}
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
	for _, tt := range []struct {
		template, namespace, name string
		want                      string
	}{
		{address.DefaultTemplate, "team", "hello", "hello--team.fn.example.com"},
		{address.DefaultTemplate, "default", "a--b", "a--b--default.fn.example.com"},
		{"{name}.{namespace}.{domain}", "team", "hello", "hello.team.fn.example.com"},
		{"fn-{namespace}-{name}.{domain}", "team", "hello", "fn-team-hello.fn.example.com"},
		{address.DefaultTemplate, strings.Repeat("n", 30), strings.Repeat("f", 31), strings.Repeat("f", 31) + "--" + strings.Repeat("n", 30) + ".fn.example.com"},
		{address.DefaultTemplate, strings.Repeat("n", 30), strings.Repeat("f", 32), ""},
		{"{name}.{namespace}.{domain}", strings.Repeat("n", 63), strings.Repeat("f", 63), strings.Repeat("f", 63) + "." + strings.Repeat("n", 63) + ".fn.example.com"},
	} {
		got, ok := hosts(t, tt.template).Of(named(tt.namespace, tt.name))
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s/%s by %s: %q, %t", tt.namespace, tt.name, tt.template, got, ok)
		}
	}
	if _, ok := (address.Hosts{}).Of(named("a", "b")); ok || (address.Hosts{}).Below("a.b") {
		t.Error("there are hosts without a domain")
	}
}

func TestTemplatesThatMakeNoHosts(t *testing.T) {
	for _, tt := range [][2]string{
		{"fn.example.com", "{name}.{domain}"}, {"fn.example.com", "{name}--{namespace}"}, {"fn.example.com", "{name}--{namespace}.fn"},
		{"fn.example.com", "{name}{name}{namespace}.{domain}"}, {"fn.example.com", "{tag}--{name}--{namespace}.{domain}"}, {"fn.example.com", ""},
		{"FN.example.com", address.DefaultTemplate}, {".example.com", address.DefaultTemplate}, {"example.com.", address.DefaultTemplate},
		{"example.com:443", address.DefaultTemplate}, {"*.example.com", address.DefaultTemplate}, {"fn_example", address.DefaultTemplate},
		{"fn.example.com", "{name}_{namespace}.{domain}"}, {"fn.example.com", "-{name}--{namespace}.{domain}"},
	} {
		if _, err := address.NewHosts(tt[0], tt[1]); err == nil {
			t.Errorf("%q with %q are accepted", tt[0], tt[1])
		}
	}
}

func TestHostnames(t *testing.T) {
	for authority, want := range map[string]string{
		"a.example.com": "a.example.com", "A.Example.COM:8443": "a.example.com", "a.example.com.": "a.example.com", "a.example.com.:80": "a.example.com",
		"127.0.0.1:8080": "127.0.0.1", "[::1]:8080": "[::1]", "[::1]": "[::1]", "": "", ":80": "",
	} {
		if got := address.Hostname(authority); got != want {
			t.Errorf("%q is %q, want %q", authority, got, want)
		}
	}
}

func TestTheElderOfTwoFunctionsHasTheHost(t *testing.T) {
	const host = "a--b--c.fn.example.com"
	elder, younger := named("c", "a--b"), named("b--c", "a")
	table := address.NewTable(hosts(t, address.DefaultTemplate))
	owner := func(want invoke.FunctionKey) {
		t.Helper()
		if got, known := table.Owner(host); got != want || !known {
			t.Errorf("%s has it, known %t; want %s", got, known, want)
		}
	}
	table.Put(younger, time.Unix(2, 0))
	owner(younger)
	if !table.Put(elder, time.Unix(1, 0)) || table.Put(elder, time.Unix(1, 0)) {
		t.Error("a function that is there is new, or one that is new is not")
	}
	owner(elder)
	if at, by, ok := table.Host(younger); at != host || by != elder || !ok {
		t.Errorf("the younger one's is %s of %s, %t", at, by, ok)
	}
	table.Put(elder, time.Unix(3, 0)) // made anew
	owner(younger)
	table.Remove(younger)
	owner(elder)
	table.Remove(elder)
	if key, known := table.Owner(host); known {
		t.Errorf("%s still has it", key)
	}
}

// Whatever comes and goes in whatever order: who has a host depends on who is there.
func TestAHostIsOfOneOfThoseWhoAreThere(t *testing.T) {
	h := hosts(t, address.DefaultTemplate)
	rapid.Check(t, func(t *rapid.T) {
		table, there := address.NewTable(h), map[invoke.FunctionKey]int64{}
		label := rapid.SampledFrom([]string{"a", "b", "a--b", "b--a", "a--b--a"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				key := named(label.Draw(t, "namespace"), label.Draw(t, "name"))
				there[key] = rapid.Int64Range(0, 3).Draw(t, "created")
				table.Put(key, time.Unix(there[key], 0))
			},
			"remove": func(t *rapid.T) {
				key := named(label.Draw(t, "namespace"), label.Draw(t, "name"))
				delete(there, key)
				table.Remove(key)
			},
			"": func(t *rapid.T) {
				eldest := map[string]invoke.FunctionKey{}
				for key, created := range there {
					host, _ := h.Of(key)
					other, taken := eldest[host]
					if !taken || slices.Compare([]int64{created}, []int64{there[other]}) < 0 || created == there[other] && key.Compare(other) < 0 {
						eldest[host] = key
					}
				}
				for host, want := range eldest {
					if got, known := table.Owner(host); !known || got != want {
						t.Fatalf("%s is of %s, known %t; want %s", host, got, known, want)
					}
				}
				if _, known := table.Owner("b--b.fn.example.com"); known != (eldest["b--b.fn.example.com"] != invoke.FunctionKey{}) {
					t.Fatal("a host is of somebody who is gone")
				}
			},
		})
	})
}
