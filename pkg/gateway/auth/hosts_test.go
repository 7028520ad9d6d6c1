package auth_test

import (
	"testing"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

func TestHostsThatANamespaceMayHave(t *testing.T) {
	policy, err := auth.ParsePolicy([]byte(policyOf(`
auth: {default: {mode: None}}
tenancy:
  default: {hosts: ["*.apps.example.com", shared.example.com]}
  namespaces:
    shop: {hosts: [shop.example.com, "*.xn--bcher-kva.example"]}
    limited: {maxInFlight: 5}
    none: {hosts: []}
`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		namespace, host string
		want            bool
	}{
		{"shop", "shop.example.com", true},
		{"shop", "a.xn--bcher-kva.example", true},
		{"shop", "a.apps.example.com", false},
		{"shop", "x.shop.example.com", false},
		{"shop", "Shop.example.com", false},
		{"shop", "shop.example.com.", false},
		{"team", "a.apps.example.com", true},
		{"team", "shared.example.com", true},
		{"team", "a.b.apps.example.com", false},
		{"team", "apps.example.com", false},
		{"team", ".apps.example.com", false},
		{"team", "*.apps.example.com", true}, // no function can ask for it
		{"team", "aapps.example.com", false},
		{"team", "shop.example.com", false},
		{"limited", "a.apps.example.com", true},
		{"none", "a.apps.example.com", false},
		{"none", "", false},
	} {
		if got := policy.Permits(tt.namespace, tt.host); got != tt.want {
			t.Errorf("%s may have %q: %t", tt.namespace, tt.host, got)
		}
	}
	if auth.Everybody().Permits("team", "a.apps.example.com") {
		t.Error("without a policy hosts are permitted")
	}
}
