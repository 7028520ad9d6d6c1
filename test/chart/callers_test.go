package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windlass-dev/windlass/pkg/callers"
)

// A policy that gateways refuse would keep them from starting.
func TestGatewaysAcceptThePolicy(t *testing.T) {
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		for _, object := range objects {
			if object.GetKind() != "ConfigMap" || object.GetName() != "windlass-gateway-callers" {
				continue
			}
			files := as[corev1.ConfigMap](t, object).Data
			policy, err := callers.ParsePolicy([]byte(files["callers.yaml"]))
			if err != nil {
				t.Fatalf("%v\n%s", err, files["callers.yaml"])
			}
			for _, issuer := range policy.Issuers {
				if _, there := files[issuer.JWKSFile]; issuer.JWKSFile != "" && !there {
					t.Errorf("the keys of the issuer %s are not there: %v", issuer.Name, files)
				}
			}
			return
		}
		t.Error("there is no policy")
	})
}
