package address_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// rules permit what permits says, beside a gateway at gateway.example.com and functions
// below fn.example.com.
func rules(permits func(namespace, host string) bool) address.Rules {
	hosts, err := address.NewHosts("fn.example.com", address.DefaultTemplate)
	if err != nil {
		panic(err)
	}
	urls, err := address.NewURLs("https://Gateway.example.com:8443/call", hosts)
	if err != nil {
		panic(err)
	}
	return address.Rules{URLs: urls, Permits: permits}
}

func TestHostsThatNoFunctionMayHave(t *testing.T) {
	r := rules(func(string, string) bool { return true })
	key := named("team", "f")
	for host, want := range map[string]v1alpha1.HostState{
		"shop.example.com": v1alpha1.HostAccepted, "fn.example.com.evil.example": v1alpha1.HostAccepted, "xfn.example.com": v1alpha1.HostAccepted,
		"gateway.example.com": v1alpha1.HostNotPermitted, "fn.example.com": v1alpha1.HostNotPermitted, "f--team.fn.example.com": v1alpha1.HostNotPermitted,
		"a.b.fn.example.com": v1alpha1.HostNotPermitted,
	} {
		if got := r.State(key, host, []address.Claim{{Key: key}}); got != want {
			t.Errorf("%s is %s, want %s", host, got, want)
		}
	}
	if got := (address.Rules{}).State(key, "shop.example.com", []address.Claim{{Key: key}}); got != v1alpha1.HostNotPermitted {
		t.Errorf("without rules it is %s", got)
	}
}

// Whatever comes, goes and is permitted in whatever order: who has a host depends on who is
// there and what is permitted, and statuses say it of just the one who has it.
func TestAHostIsOfOneOfThoseWhoAreThere(t *testing.T) {
	all := []v1alpha1.Hostname{"a.example.org", "b.example.org", "fn.example.com"}
	rapid.Check(t, func(t *rapid.T) {
		permitted := map[string]bool{}
		r := rules(func(namespace, host string) bool { return permitted[namespace+" "+host] })
		table := address.NewTable(r)
		there := map[address.Claim][]v1alpha1.Hostname{}
		label := rapid.SampledFrom([]string{"a", "b", "c"})
		remove := func(key invocation.FunctionKey) {
			for c := range there {
				if c.Key == key {
					delete(there, c)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				c := address.Claim{Key: named(label.Draw(t, "namespace"), label.Draw(t, "name")), Created: time.Unix(rapid.Int64Range(0, 3).Draw(t, "created"), 0)}
				asked := rapid.SliceOfDistinct(rapid.SampledFrom(all), rapid.ID).Draw(t, "hosts")
				remove(c.Key)
				there[c] = asked
				table.Put(c, asked)
			},
			"remove": func(t *rapid.T) {
				key := named(label.Draw(t, "namespace"), label.Draw(t, "name"))
				remove(key)
				table.Remove(key)
			},
			"permit": func(t *rapid.T) {
				permitted[label.Draw(t, "namespace")+" "+string(rapid.SampledFrom(all).Draw(t, "host"))] = rapid.Bool().Draw(t, "may")
			},
			"": func(t *rapid.T) {
				for _, host := range all {
					looks(t, r, table, string(host), there)
				}
			},
		})
	})
}

// looks compares who has a host with who is the oldest of those who may have it.
func looks(t *rapid.T, r address.Rules, table *address.Table, host string, there map[address.Claim][]v1alpha1.Hostname) {
	var claims, able []address.Claim
	for c, asked := range there {
		if !slices.Contains(asked, v1alpha1.Hostname(host)) {
			continue
		}
		claims = append(claims, c)
		if host != "fn.example.com" && r.Permits(c.Key.Namespace, host) {
			able = append(able, c)
		}
	}
	slices.SortFunc(able, func(a, b address.Claim) int {
		if !a.Created.Equal(b.Created) {
			return a.Created.Compare(b.Created)
		}
		return a.Key.Compare(b.Key)
	})
	owner, known, claimed := table.Owner(host)
	if known != (len(able) > 0) || known && owner != able[0].Key || claimed != (len(claims) > 0 && host != "fn.example.com") {
		t.Fatalf("%s is of %s, known %t, claimed %t; may have it: %v", host, owner, known, claimed, able)
	}
	for _, c := range claims {
		want := v1alpha1.HostNotPermitted
		switch {
		case known && c.Key == owner:
			want = v1alpha1.HostAccepted
		case slices.Contains(able, c):
			want = v1alpha1.HostConflict
		}
		if got := r.State(c.Key, host, claims); got != want {
			t.Fatalf("%s of %s is %s, want %s", host, c.Key, got, want)
		}
	}
}
