//go:build apiserver

package chart

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// policyOf is the policy that gateways are given, and the files beside it.
func policyOf(t *testing.T, objects []unstructured.Unstructured) (auth.Policy, map[string]string) {
	t.Helper()
	files := as[corev1.ConfigMap](t, find(t, objects, "ConfigMap", "windlass-gateway-policy")).Data
	policy, err := auth.ParsePolicy([]byte(files["policy.yaml"]))
	if err != nil {
		t.Fatalf("%v\n%s", err, files["policy.yaml"])
	}
	return policy, files
}

// A policy that gateways refuse would keep them from starting.
func TestGatewaysAcceptThePolicy(t *testing.T) {
	eachScenario(t, func(t *testing.T, objects []unstructured.Unstructured) {
		policy, files := policyOf(t, objects)
		for name, issuer := range policy.Auth.Issuers {
			if _, there := files[issuer.JWKSFile]; issuer.JWKSFile != "" && !there {
				t.Errorf("the keys of the issuer %s are not there: %v", name, files)
			}
		}
	})
}

func TestThePolicyFollowsValues(t *testing.T) {
	policy, files := policyOf(t, render(t, scenarios["callers"]...))
	preset, open := policy.Tenancy.Default, policy.Tenancy.Namespaces["open"]
	if *preset.RequestsPerSecond != 12.5 || *preset.Burst != 50 || *preset.MaxInFlight != 3_000_000 || preset.BodyMemory.String() != "64Mi" ||
		*open.RequestsPerSecond != 0.5 || open.Burst != nil || open.MaxInFlight != nil || open.BodyMemory != nil {
		t.Errorf("namespaces may use\n%s", files["policy.yaml"])
	}
	corp := policy.Auth.Issuers["corp"]
	if policy.Auth.Default.Mode != auth.ModeRequired || policy.Auth.Namespaces["open"].Mode != auth.ModeNone ||
		corp.JWKSFile != "corp.json" || strings.TrimSpace(files["corp.json"]) != "none" {
		t.Errorf("who may call is\n%v", files)
	}
	for at, want := range map[string]bool{
		"any a.example.com": true, "any a.b.example.com": false, "any shop.example.org": false, "open shop.example.org": true, "open a.example.com": false, "closed a.example.com": false,
	} {
		namespace, host, _ := strings.Cut(at, " ")
		if policy.Permits(namespace, host) != want {
			t.Errorf("%s is permitted: %t\n%s", at, !want, files["policy.yaml"])
		}
	}
	policy, _ = policyOf(t, render(t))
	if policy.Auth.Default.Mode != auth.ModeNone || !reflect.DeepEqual(policy.Tenancy.Default, auth.Tenant{}) || len(policy.Auth.Issuers) > 0 {
		t.Errorf("without values it is %+v", policy)
	}
}

// The namespace default is one like others, though tenancy.default is for all.
func TestTheNamespaceDefaultHasLimitsOfItsOwn(t *testing.T) {
	policy, files := policyOf(t, render(t, "--set", "tenancy.namespaces.default.requestsPerSecond=5,tenancy.namespaces.default.hosts={shop.example.com}"))
	if !reflect.DeepEqual(policy.Tenancy.Default, auth.Tenant{}) || *policy.Tenancy.Namespaces["default"].RequestsPerSecond != 5 {
		t.Errorf("namespaces may use\n%s", files["policy.yaml"])
	}
	if policy.Permits("other", "shop.example.com") || !policy.Permits("default", "shop.example.com") {
		t.Errorf("a host of the namespace default is not for it alone\n%s", files["policy.yaml"])
	}
}
