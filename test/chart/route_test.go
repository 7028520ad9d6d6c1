//go:build apiserver

package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An HTTPRoute sends all requests of its host names below its path to the port of the gateways' Service, without the path.
func TestHTTPRoute(t *testing.T) {
	var route, service unstructured.Unstructured
	for _, o := range render(t, "--set", "gateway.httpRoute.enabled=true,gateway.httpRoute.parentRefs[0].name=public,gateway.httpRoute.parentRefs[0].namespace=infra,"+
		"gateway.httpRoute.hostnames={fn.example.com},gateway.httpRoute.path=/fn,gateway.service.port=8000") {
		switch {
		case o.GetKind() == "HTTPRoute":
			route = o
		case o.GetKind() == "Service" && o.GetName() == release+"-gateway":
			service = o
		}
	}
	want := map[string]any{
		"parentRefs": []any{map[string]any{"name": "public", "namespace": "infra"}},
		"hostnames":  []any{"fn.example.com"},
		"rules": []any{map[string]any{
			"matches": []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/fn"}}},
			"filters": []any{map[string]any{"type": "URLRewrite", "urlRewrite": map[string]any{
				"path": map[string]any{"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}},
			"backendRefs": []any{map[string]any{"name": service.GetName(), "port": float64(8000)}},
		}},
	}
	if diff := cmp.Diff(want, route.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

// URLRewrite is a feature that not every Gateway has.
func TestAnHTTPRouteOfAllPathsRewritesNone(t *testing.T) {
	route := find(t, render(t, "--set", "gateway.httpRoute.enabled=true,gateway.httpRoute.parentRefs[0].name=public"), "HTTPRoute", release+"-gateway")
	rules, _, err := unstructured.NestedSlice(route.Object, "spec", "rules")
	if err != nil || len(rules) != 1 {
		t.Fatalf("%v, %v", rules, err)
	}
	if rule := rules[0].(map[string]any); rule["filters"] != nil {
		t.Errorf("the filters of a route of all paths are %v", rule["filters"])
	}
}
