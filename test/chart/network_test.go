//go:build apiserver

package chart

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// place is where a connection comes from.
type place struct {
	namespace string
	labels    labels.Set
}

func component(name string) place {
	return place{namespace, labels.Set{"app.kubernetes.io/name": "windlass", "app.kubernetes.io/instance": release, "app.kubernetes.io/component": name}}
}

var (
	instance = place{"team-a", labels.Set{"app.kubernetes.io/component": "function", "app.kubernetes.io/managed-by": "windlass"}}
	stranger = place{"team-a", labels.Set{"app": "shop"}}
	neighbor = place{namespace, labels.Set{"app": "shop"}}
	watcher  = place{"monitoring", labels.Set{"app": "prometheus"}}
)

// admits says whether a policy lets a connection in.
func admits(t *testing.T, policy networkingv1.NetworkPolicy, from place, port int) bool {
	t.Helper()
	for _, rule := range policy.Spec.Ingress {
		if !slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == port }) {
			continue
		}
		if len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(peer networkingv1.NetworkPolicyPeer) bool {
			if peer.NamespaceSelector == nil {
				return from.namespace == policy.Namespace && selector(t, peer.PodSelector).Matches(from.labels)
			}
			named := labels.Set{"kubernetes.io/metadata.name": from.namespace}
			return selector(t, peer.NamespaceSelector).Matches(named) &&
				(peer.PodSelector == nil || selector(t, peer.PodSelector).Matches(from.labels))
		}) {
			return true
		}
	}
	return false
}

func TestWhoReachesWhom(t *testing.T) {
	places := map[string]place{
		"gateway": component("gateway"), "scheduler": component("scheduler"), "controller": component("controller"), "etcd": component("etcd"), "node": component("node"),
		"an instance": instance, "a stranger": stranger, "a neighbor": neighbor, "a watcher": watcher,
	}
	everybody := []string{"gateway", "scheduler", "controller", "etcd", "node", "an instance", "a stranger", "a neighbor", "a watcher"}
	// S3: metrics name every tenant's functions, and cost a scrape.
	readers := []string{"gateway", "scheduler", "controller", "etcd", "node", "a neighbor", "a watcher"}
	want := map[string]map[int][]string{
		"gateway":    {8080: everybody, 8081: readers, 9443: {"an instance"}},
		"scheduler":  {8081: readers, 9443: {"gateway", "scheduler", "controller", "an instance"}, 8080: nil},
		"controller": {8081: readers, 9443: nil},
		"node":       {8081: readers, 9443: {"an instance"}, 8080: nil},
		"etcd":       {2379: {"gateway", "scheduler"}, 2380: {"etcd"}, 2381: readers, 8081: nil},
	}
	objects := render(t, scenarios["node agents"]...)
	for target, ports := range want {
		policy := as[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "windlass-"+target))
		if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("the policy of %s is about %v", target, policy.Spec.PolicyTypes)
		}
		for port, admitted := range ports {
			for name, from := range places {
				if got := admits(t, policy, from, port); got != slices.Contains(admitted, name) {
					t.Errorf("%s reaches %s:%d: %v", name, target, port, got)
				}
			}
		}
	}
}

func TestCallsAndMetricsCanBeLimited(t *testing.T) {
	objects := render(t, "--set", "gateway.networkPolicy.from[0].podSelector.matchLabels.app=shop,monitoring.networkPolicy.namespace=watch,monitoring.networkPolicy.from[0].namespaceSelector.matchLabels.kubernetes\\.io/metadata\\.name=team-a")
	policy := as[networkingv1.NetworkPolicy](t, find(t, objects, "NetworkPolicy", "windlass-gateway"))
	prometheus := place{"watch", labels.Set{"app": "prometheus"}}
	for _, test := range []struct {
		from place
		port int
		want bool
	}{{component("check"), 8080, true}, {component("controller"), 8080, false}, {neighbor, 8080, true}, {stranger, 8080, false}, {stranger, 8081, true}, {watcher, 8081, false}, {prometheus, 8081, true}, {prometheus, 8080, false}} {
		if got := admits(t, policy, test.from, test.port); got != test.want {
			t.Errorf("%v reaches port %d: %v", test.from, test.port, got)
		}
	}
}

func TestNetworkPoliciesCanBeLeftOut(t *testing.T) {
	for _, object := range render(t, "--set", "networkPolicies.enabled=false") {
		if object.GetKind() == "NetworkPolicy" {
			t.Errorf("there is %s", title(object))
		}
	}
	for _, object := range render(t, scenarios["an etcd of one's own"]...) {
		if object.GetName() == "windlass-etcd" {
			t.Errorf("there is %s without an etcd", title(unstructured.Unstructured{Object: object.Object}))
		}
	}
}
