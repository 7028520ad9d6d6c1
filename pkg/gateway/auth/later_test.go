package auth_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// later is policy as a later release could write it.
const later = `
apiVersion: config.windlass.dev/v1alpha1
kind: GatewayPolicy
audit: {file: /var/log/calls}
auth:
  default: {mode: Required, realm: corp}
  namespaces:
    open: {mode: None}
    vault: {mode: RequiredWithCertificate}
  issuers:
    corp:
      issuer: https://corp.example
      audience: windlass
      jwksURL: https://corp.example/keys
      algorithms: [ES256, ML-DSA-65]
      claim: functions
      title: The company
    strict:
      issuer: https://strict.example
      audience: windlass
      jwksURL: https://corp.example/keys
      algorithms: [ES256]
      claim: functions
      requires: [claimsThatMatch]
      claimsThatMatch: {team: red}
    modern:
      issuer: https://modern.example
      audience: windlass
      jwksURL: https://corp.example/keys
      algorithms: [ML-DSA-65]
      claim: functions
tenancy:
  default: {maxInFlight: 9, latencyCritical: true, hosts: ["/^a/", "*.example.org"]}
  namespaces:
    vault: {hosts: ["**.example.org"]}
`

// A gateway of the release before reads the files of a newer one while a roll-out is
// taken back.
func TestFilesOfALaterReleaseAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, key := newKey(t, 0, "team-a", "vault")
		bound, boundKey := newKey(t, 0, "team-a")
		boundKey.Requires = []string{"sourceAddress"}
		th := newHarness(t, later, key, boundKey)
		c, name := th.callers, "key:"+key.ID

		want(t, c, http.Header{}, "open/f", nil, "")
		want(t, c, withKey(secret), "team-a/f", nil, name)
		want(t, c, bearer(signers()[0].sign(t, good(nil))), "team-a/f", nil, "corp:ada@corp")
		if got := c.Limits("any").InFlight; got != 3 {
			t.Errorf("a gateway of three takes %d calls, want a third of 9", got)
		}
		// What lets fewer in than this release knows of lets nobody in.
		want(t, c, withKey(secret), "vault/f", auth.ErrUnavailable, "")
		want(t, c, http.Header{}, "vault/f", auth.ErrUnavailable, "")
		want(t, c, withKey(bound), "team-a/f", auth.ErrInvalid, "")
		for _, issuer := range []string{"https://strict.example", "https://modern.example"} {
			token := signers()[0].sign(t, good(map[string]any{"iss": issuer}))
			want(t, c, bearer(token), "team-a/f", auth.ErrInvalid, "")
		}

		for namespace, may := range map[string]bool{"any": true, "vault": false} {
			if c.Permits(namespace, "a.example.org") != may {
				t.Errorf("the namespace %s may have a host: %t", namespace, !may)
			}
		}

		// audit, realm, title, claimsThatMatch and latencyCritical; the mode, two
		// algorithms, what the issuer requires, what the key does, and two hosts.
		const unknown = 5 + 1 + 2 + 1 + 1 + 2
		if got := th.gauge("windlass_gateway_policy_unknown_entries"); got != unknown {
			t.Errorf("the metric counts %v unknown entries, want %d", got, unknown)
		}
		if ok, _ := th.reloaded(); !ok {
			t.Error("the metrics say that they could not be read")
		}
		for _, told := range []string{"auth.namespaces.vault.mode", "entries=12", `auth.issuers.corp.title`} {
			if !strings.Contains(th.log.String(), told) {
				t.Errorf("the log does not tell %s:\n%s", told, th.log.String())
			}
		}

		th.running()
		th.log.Reset()
		time.Sleep(time.Minute)
		if strings.Contains(th.log.String(), "unknown") {
			t.Errorf("it is told again while nothing has changed:\n%s", th.log.String())
		}
		th.enrol(key)
		th.write("policy.yaml", policy)
		pass()
		if got := th.gauge("windlass_gateway_policy_unknown_entries"); got != 0 {
			t.Errorf("%v entries of a policy of this release are unknown", got)
		}
	})
}

// The default may tighten as well, and then holds for all that say nothing else.
func TestADefaultOfALaterReleaseLetsNobodyIn(t *testing.T) {
	secret, key := newKey(t, 0, "*")
	th := newHarness(t, policyOf("auth: {default: {mode: Later}, namespaces: {open: {mode: None}, known: {mode: Required}}}"), key)
	want(t, th.callers, withKey(secret), "any/f", auth.ErrUnavailable, "")
	want(t, th.callers, withKey(secret), "known/f", nil, "key:"+key.ID)
	want(t, th.callers, http.Header{}, "open/f", nil, "")
}
