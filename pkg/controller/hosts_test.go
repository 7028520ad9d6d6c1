package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// asking is a function that asks for hosts below example.org, which its namespace may
// have, beside older ones that ask for them too.
func asking(older map[string]string, hosts ...v1alpha1.Hostname) input {
	return given(func(in *input) {
		in.hosts = address.Rules{
			URLs: urls("https://gateway.example.com", "fn.example.com"),
			Permits: func(namespace, host string) bool {
				return namespace != "denied" && strings.HasSuffix(host, ".example.org")
			},
		}
		in.function.Spec.Expose.Hosts = hosts
		in.claims = map[string][]address.Claim{}
		for _, host := range hosts {
			in.claims[string(host)] = []address.Claim{{Key: in.function.Key(), Created: in.function.CreationTimestamp.Time}}
		}
		for host, other := range older {
			namespace, name, _ := strings.Cut(other, "/")
			in.claims[host] = append(in.claims[host], address.Claim{
				Key: invocation.FunctionKey{Namespace: namespace, Name: name}, Created: in.function.CreationTimestamp.Add(-time.Second),
			})
		}
	})
}

func TestHostsThatAFunctionAsksFor(t *testing.T) {
	const a, b, other = "a.example.org", "b.example.org", "a.example.com"
	for name, tt := range map[string]struct {
		in        input
		states    string
		condition string // status, reason, and what the message has
	}{
		"none":                              {asking(nil), "", ""},
		"accepted":                          {asking(nil, a, b), "a.example.org=Accepted b.example.org=Accepted", "True Accepted reach the function"},
		"not asked":                         {asking(map[string]string{b: "shop/x"}, a), "a.example.org=Accepted", "True Accepted "},
		"conflict":                          {asking(map[string]string{a: "team/x"}, a, b), "a.example.org=Conflict b.example.org=Accepted", "False HostConflict function x is older"},
		"a stranger":                        {asking(map[string]string{a: "shop/secret"}, a), "a.example.org=Conflict", "False HostConflict of another namespace"},
		"an older one that may not have it": {asking(map[string]string{a: "denied/x"}, a), "a.example.org=Accepted", "True Accepted "},
		"not permitted": {asking(map[string]string{a: "team/x"}, a, other), "a.example.org=Conflict a.example.com=NotPermitted",
			"False HostNotPermitted tenancy.namespaces.team.hosts in the chart's values; the function x"},
		"the gateways'":        {asking(nil, "gateway.example.com"), "gateway.example.com=NotPermitted", "False HostNotPermitted is the host of the gateways"},
		"below the domain":     {asking(nil, "x--y.fn.example.com"), "x--y.fn.example.com=NotPermitted", "False HostNotPermitted below the domain"},
		"a name that is long":  {longer(asking(nil), 60), "", "False HostTooLong call it by its path"},
		"long, and with hosts": {longer(asking(nil, a), 60), "a.example.org=Accepted", "False HostTooLong call it by its path"},
		"tags that are long":   {tagged(asking(nil), "next", strings.Repeat("t", 60), "xn"), "", "False HostTooLong header Windlass-Tag: " + strings.Repeat("t", 60) + ", xn"},
		"long, without hosts":  {longer(given(nil), 60), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusIn(tt.in)
			var states []string
			for _, s := range status.Hosts {
				states = append(states, fmt.Sprintf("%s=%s", s.Hostname, s.State))
			}
			if diff := cmp.Diff(tt.states, strings.Join(states, " ")); diff != "" {
				t.Error(diff)
			}
			c := findCondition(status.Conditions, v1alpha1.ConditionHostsAccepted)
			if tt.condition == "" && c.Type != "" {
				t.Errorf("it says %+v", c)
			}
			if want := strings.SplitN(tt.condition, " ", 3); tt.condition != "" && (string(c.Status) != want[0] || c.Reason != want[1] || !strings.Contains(c.Message, want[2])) {
				t.Errorf("it says %s %s %s, want %q", c.Status, c.Reason, c.Message, want)
			}
			for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionAccepted} {
				if c := findCondition(status.Conditions, kind); c.Status != metav1.ConditionTrue {
					t.Errorf("%s is %s for its hosts: %s", kind, c.Status, c.Message)
				}
			}
		})
	}
}

func longer(in input, n int) input {
	in.function.Name = strings.Repeat("f", n)
	in.revisions = []*v1alpha1.FunctionRevision{revisionOf(in.function)}
	in.units = map[string]facts{in.revisions[0].Name: {generation: 3, created: 2, started: true}}
	for host := range in.claims {
		in.claims[host] = []address.Claim{{Key: in.function.Key()}}
	}
	return in
}

func tagged(in input, tags ...string) input {
	in.function.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100}}
	for _, tag := range tags {
		in.function.Spec.Traffic = append(in.function.Spec.Traffic, v1alpha1.TrafficTarget{Tag: tag})
	}
	return in
}

func TestAFunctionThatIsBeingDeletedHasNoHosts(t *testing.T) {
	in := carriedOut(asking(nil, "a.example.org"))
	if got := statusIn(in).Hosts; len(got) != 1 {
		t.Fatalf("before it has %v", got)
	}
	in.function.DeletionTimestamp = new(metav1.NewTime(in.now))
	in.claims = nil
	if got := statusIn(in).Hosts; len(got) > 0 {
		t.Errorf("it has %v", got)
	}
}

func TestAHostThatIsRefusedIsAnEvent(t *testing.T) {
	in := asking(nil, "a.example.org")
	in = carriedOut(in)
	in.claims["a.example.org"] = append(in.claims["a.example.org"], address.Claim{Key: invocation.FunctionKey{Namespace: "team", Name: "e"}})
	in.written = writes{}
	out := plan(in)
	if len(out.changes) != 1 || out.changes[0].reason != v1alpha1.ReasonHostConflict || !out.changes[0].warning {
		t.Errorf("told %+v", out.changes)
	}
}
