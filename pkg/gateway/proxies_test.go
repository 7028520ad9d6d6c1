package gateway

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestS15ForwardedHeadersAreThoseOfTrustedProxiesOnly(t *testing.T) {
	proxies, err := ParseProxies([]string{"10.42.0.0/16", "fd00::/8", "192.0.2.7/32"})
	if err != nil {
		t.Fatal(err)
	}
	for peer, trusted := range map[string]bool{
		"10.42.3.4:1234": true, "[::ffff:10.42.3.4]:1234": true, "[fd00::1%eth0]:1234": true, "192.0.2.7:1": true,
		"10.43.0.1:1234": false, "192.0.2.8:1": false, "127.0.0.1:1234": false, "[::1]:1234": false, "@": false, "": false,
	} {
		if got := proxies.trusts(peer); got != trusted {
			t.Errorf("%q: trusted %v, want %v", peer, got, trusted)
		}
		if Proxies(nil).trusts(peer) {
			t.Errorf("%q is trusted although nobody is", peer)
		}
	}
	said := http.Header{
		"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"},
		"X-Forwarded-Port": {"443"}, "Forwarded": {"for=203.0.113.9"}, "X-Real-Ip": {"203.0.113.9"}, "X-Original-Url": {"/a"},
		"True-Client-Ip": {"203.0.113.9"}, "X_real_ip": {"203.0.113.9"}, "X.original.url": {"/a"}, "Accept": {"a"},
	}
	for _, name := range []string{
		"X-Auth-Request-User", "X-Auth-Request-Email", "Remote-User", "Remote-Groups", "X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Scopes",
		"X-Webauth-User", "X-Authentik-Username", "X-Pomerium-Claim-Email", "X-Consumer-Username", "X-Goog-Authenticated-User-Email", "X-Goog-Iap-Jwt-Assertion",
		"X-Amzn-Oidc-Identity", "X-Amzn-Mtls-Clientcert", "X-Ms-Client-Principal", "X-Ms-Client-Principal-Name", "X-Ms-Token-Aad-Access-Token",
		"Cf-Access-Authenticated-User-Email", "Cf-Access-Jwt-Assertion", "Tailscale-User-Login", "Client-Cert", "X-Client-Cert", "X-Client-Cert-Dn",
		"Ssl-Client-Subject-Dn", "X-Ssl-Client-Verify", "X-Forwarded", "Forwarded-For", "Forwarded-For-Ip", "X-Azure-Clientip", "X-Azure-Socketip",
		"Fly-Client-Ip", "Do-Connecting-Ip", "X-Appengine-User-Ip",
	} {
		said.Set(name, "boss")
		said[http.CanonicalHeaderKey(strings.ReplaceAll(name, "-", "_"))] = []string{"boss"}
	}
	byProxy := said.Clone()
	maps.DeleteFunc(byProxy, func(name string, _ []string) bool { return strings.ContainsAny(name, "_.") })
	byProxy.Set("X-Forwarded-For", "203.0.113.9, 10.42.3.4")
	for name, tt := range map[string]struct {
		trusted Proxies
		want    http.Header
	}{
		"a trusted proxy": {proxies, byProxy},
		"anybody else": {nil, http.Header{
			"X-Forwarded-For": {"10.42.3.4"}, "X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"h"}, "Accept": {"a"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: "10.42.3.4:1234", Host: "h", Header: said.Clone()}
			got := make(http.Header)
			for _, h := range requestHeaders(r, invocation.ID{}, callChain{proxied: tt.trusted.trusts(r.RemoteAddr)}) {
				got.Add(h.Name, h.Value)
			}
			got.Del("Windlass-Invocation-Id")
			got.Del("Windlass-Depth")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the function sees (-want +got):\n%s", diff)
			}
		})
	}
}

// A client may name them in a Connection header that a proxy passes on.
func TestAFunctionAlwaysHasTheHeadersAboutItsClient(t *testing.T) {
	r := &http.Request{RemoteAddr: "10.42.3.4:1234", Host: "h", Header: http.Header{
		"Connection": {"X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host"}, "X-Forwarded-For": {"203.0.113.9"},
		"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"},
	}}
	got := make(http.Header)
	for _, h := range requestHeaders(r, invocation.ID{}, callChain{proxied: true}) {
		got.Add(h.Name, h.Value)
	}
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"} {
		if len(got[name]) != 1 {
			t.Errorf("%s is %q", name, got[name])
		}
	}
}
