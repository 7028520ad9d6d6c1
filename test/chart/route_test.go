//go:build apiserver

package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// An HTTPRoute sends all requests of its host names to the port of the gateways' Service.
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
			"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/fn"}}},
			"backendRefs": []any{map[string]any{"name": service.GetName(), "port": float64(8000)}},
		}},
	}
	if diff := cmp.Diff(want, route.Object["spec"]); diff != "" {
		t.Error(diff)
	}
}
