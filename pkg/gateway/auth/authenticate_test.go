package auth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// want checks one answer; a nil fault means that the caller is let through.
func want(t *testing.T, c *auth.Callers, h http.Header, function string, fault error, name string) {
	t.Helper()
	got, err := c.Authenticate(h, fn(function))
	if !errors.Is(err, fault) || got.Name != name || (err != nil && got != auth.Caller{}) {
		t.Errorf("%s: %+v, %v, want %q, %v", function, got, err, name, fault)
	}
	for _, values := range h {
		for _, value := range values {
			secret := strings.TrimSpace(strings.TrimPrefix(value, "Bearer "))
			if err != nil && len(secret) > 12 && strings.Contains(err.Error(), secret) {
				t.Errorf("the error repeats what was shown: %v", err)
			}
		}
	}
}

func TestAPIKeys(t *testing.T) {
	secret, key := newKey(t, time.Hour, "team-a", "team-b/f")
	other, _ := newKey(t, 0, "*")
	all, allKey := newKey(t, 0, "*")
	old, expired := newKey(t, time.Nanosecond, "team-a")
	expired.Expires = time.Now().Add(-time.Second)
	th := newHarness(t, policy, key, allKey, expired)
	c, name := th.callers, "key:"+key.ID

	want(t, c, withKey(secret), "team-a/any", nil, name)
	want(t, c, bearer(secret), "team-a/any", nil, name)
	want(t, c, http.Header{"Authorization": {"bearer  " + secret}}, "team-b/f", nil, name)
	want(t, c, withKey(all), "any/where", nil, "key:"+allKey.ID)
	want(t, c, withKey(secret), "team-b/g", auth.ErrNotAllowed, "")
	want(t, c, withKey(secret), "team-bb/f", auth.ErrNotAllowed, "")
	for _, wrong := range []string{
		old, other, "wl_", "wl__", "x", secret + "0", secret[:len(secret)-1], strings.ToUpper(secret),
		"wl_" + key.ID + "_", "wl_" + key.ID + "_" + strings.Repeat("0", 64), "wl_" + allKey.ID + secret[15:], strings.Repeat("wl_", 1000),
	} {
		want(t, c, withKey(wrong), "team-a/any", auth.ErrInvalid, "")
		want(t, c, bearer(wrong), "team-a/any", auth.ErrInvalid, "")
	}
}

func TestHowCredentialsAreShown(t *testing.T) {
	secret, key := newKey(t, 0, "team-a")
	th := newHarness(t, policy, key)
	for _, tt := range []struct {
		name  string
		h     http.Header
		fault error
		spent string
	}{
		{"nothing", http.Header{}, auth.ErrMissing, ""},
		{"the function's password", http.Header{"Authorization": {"Basic eDp5"}}, auth.ErrMissing, ""},
		{"an empty token", http.Header{"Authorization": {"Bearer "}}, auth.ErrMissing, ""},
		{"an empty key", withKey(""), auth.ErrInvalid, ""},
		{"two keys", http.Header{invocation.HeaderKey: {secret, secret}}, auth.ErrInvalid, ""},
		{"two tokens", http.Header{"Authorization": {"Bearer " + secret, "Bearer " + secret}}, auth.ErrInvalid, ""},
		{"in Authorization", bearer(secret), nil, "Authorization"},
		{"in its own header", withKey(secret), nil, invocation.HeaderKey},
		{"beside the function's", http.Header{invocation.HeaderKey: {secret}, "Authorization": {"Basic eDp5"}}, nil, invocation.HeaderKey},
		{"a bad key beside a good one", http.Header{invocation.HeaderKey: {"wl_x"}, "Authorization": {"Bearer " + secret}}, auth.ErrInvalid, ""},
	} {
		got, err := th.callers.Authenticate(tt.h, fn("team-a/f"))
		if !errors.Is(err, tt.fault) || got.Spent != tt.spent {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
}

func TestNobodyIsAskedInAnOpenNamespace(t *testing.T) {
	th := newHarness(t, policy)
	for _, h := range []http.Header{{}, bearer("the function's own"), withKey("wl_nonsense")} {
		want(t, th.callers, h, "open/f", nil, "")
	}
}

func TestTokens(t *testing.T) {
	th := newHarness(t, policy)
	c, ours, foreign := th.callers, signers()[0], signers()[1]
	ada := "corp:ada@corp"
	for _, tt := range []struct {
		name     string
		token    string
		function string
		fault    error
		caller   string
	}{
		{"by namespace", ours.sign(t, good(nil)), "team-a/f", nil, ada},
		{"by function", ours.sign(t, good(nil)), "team-b/f", nil, ada},
		{"another function", ours.sign(t, good(nil)), "team-b/g", auth.ErrNotAllowed, ""},
		{"a claim of words", ours.sign(t, good(map[string]any{"functions": "x team-c"})), "team-c/f", nil, ada},
		{"no claim", ours.sign(t, good(map[string]any{"functions": nil})), "team-a/f", auth.ErrNotAllowed, ""},
		{"a claim of another kind", ours.sign(t, good(map[string]any{"functions": map[string]any{"team-a": 1}})), "team-a/f", auth.ErrNotAllowed, ""},
		{"a granted subject", ours.sign(t, good(map[string]any{"functions": []any{7}, "sub": "ci"})), "team-a/f", nil, "corp:ci"},
		{"an odd subject", ours.sign(t, good(map[string]any{"sub": "x\r\nX-Evil: é"})), "team-a/f", nil, "corp:x%0D%0AX-Evil:%20%C3%A9"},
		{"no subject", ours.sign(t, good(map[string]any{"sub": nil})), "team-a/f", auth.ErrInvalid, ""},
		{"several audiences", ours.sign(t, good(map[string]any{"aud": []string{"x", "windlass"}})), "team-a/f", nil, ada},
		{"another audience", ours.sign(t, good(map[string]any{"aud": "other"})), "team-a/f", auth.ErrInvalid, ""},
		{"no audience", ours.sign(t, good(map[string]any{"aud": nil})), "team-a/f", auth.ErrInvalid, ""},
		{"another issuer", ours.sign(t, good(map[string]any{"iss": "https://evil.example"})), "team-a/f", auth.ErrInvalid, ""},
		{"expired", ours.sign(t, good(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})), "team-a/f", auth.ErrInvalid, ""},
		{"for ever", ours.sign(t, good(map[string]any{"exp": nil})), "team-a/f", auth.ErrInvalid, ""},
		{"not yet", ours.sign(t, good(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), "team-a/f", auth.ErrInvalid, ""},
		{"signed by another", sign(t, jose.ES256, foreign.key, ours.id, good(nil)), "team-a/f", auth.ErrInvalid, ""},
		{"no name of a key", sign(t, jose.ES256, ours.key, "", good(nil)), "team-a/f", auth.ErrInvalid, ""},
		{"a public key as a secret", sign(t, jose.HS256, []byte(strings.Repeat("k", 32)), ours.id, good(nil)), "team-a/f", auth.ErrInvalid, ""},
		{"an algorithm that is not the issuer's", sign(t, jose.RS256, rsaKey(t), ours.id, good(nil)), "team-a/f", auth.ErrInvalid, ""},
		{"unsigned", "eyJhbGciOiJub25lIiwia2lkIjoiYSJ9.eyJpc3MiOiJodHRwczovL2NvcnAuZXhhbXBsZSJ9.", "team-a/f", auth.ErrInvalid, ""},
		{"no token", "abc.def.ghi", "team-a/f", auth.ErrInvalid, ""},
		{"endless", strings.Repeat("a", 20<<10), "team-a/f", auth.ErrInvalid, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { want(t, c, bearer(tt.token), tt.function, tt.fault, tt.caller) })
	}
	want(t, c, withKey(ours.sign(t, good(nil))), "team-a/f", nil, ada)
}

func rsaKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestAnIssuersKeysAreReadWhenTheyAreNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newHarness(t, policy)
		first, second := signers()[0], signers()[1]
		for range 3 {
			want(t, th.callers, bearer(first.sign(t, good(nil))), "team-a/f", nil, "corp:ada@corp")
		}
		for i := range 100 {
			token := sign(t, jose.ES256, second.key, fmt.Sprint(i), good(nil))
			want(t, th.callers, bearer(token), "team-a/f", auth.ErrUnavailable, "")
		}
		if th.fetched != 1 {
			t.Errorf("the keys were read %d times, want once", th.fetched)
		}
		th.publish(first, second)
		time.Sleep(10 * time.Second)
		want(t, th.callers, bearer(second.sign(t, good(nil))), "team-a/f", nil, "corp:ada@corp")
		time.Sleep(10 * time.Second)
		want(t, th.callers, bearer(sign(t, jose.ES256, second.key, "none", good(nil))), "team-a/f", auth.ErrInvalid, "")
		// While the issuer is away its keys count on.
		th.fail(errors.New("away"))
		time.Sleep(time.Hour)
		want(t, th.callers, bearer(first.sign(t, good(nil))), "team-a/f", nil, "corp:ada@corp")
		want(t, th.callers, bearer(sign(t, jose.ES256, second.key, "new", good(nil))), "team-a/f", auth.ErrUnavailable, "")
	})
}

// An issuer that revokes all its keys, as after a theft, has none that count. What is no key set is
// a fault of the issuer, and changes nothing.
func TestAnIssuerMayRevokeAllItsKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newHarness(t, policy)
		th.running()
		token := signers()[0].sign(t, good(map[string]any{"exp": time.Now().Add(48 * time.Hour).Unix()}))
		want(t, th.callers, bearer(token), "team-a/f", nil, "corp:ada@corp")
		for _, document := range []string{`{}`, `{"error": "busy"}`, `{"keys": null}`, `[]`, `<html>`} {
			th.publishDocument(document)
			time.Sleep(time.Hour)
			want(t, th.callers, bearer(token), "team-a/f", nil, "corp:ada@corp")
		}
		th.publishDocument(`{"keys": []}`)
		time.Sleep(7 * time.Minute)
		want(t, th.callers, bearer(token), "team-a/f", auth.ErrInvalid, "")
		th.publish(signers()[0])
		time.Sleep(10 * time.Second)
		want(t, th.callers, bearer(token), "team-a/f", nil, "corp:ada@corp")
	})
}

func TestATokenThatIsRememberedStillEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newHarness(t, policy)
		token := signers()[0].sign(t, good(map[string]any{"exp": time.Now().Add(10 * time.Second).Unix()}))
		want(t, th.callers, bearer(token), "team-a/f", nil, "corp:ada@corp")
		time.Sleep(39 * time.Second)
		want(t, th.callers, bearer(token), "team-a/f", nil, "corp:ada@corp")
		time.Sleep(2 * time.Second)
		want(t, th.callers, bearer(token), "team-a/f", auth.ErrInvalid, "")
	})
}

func TestRefusedCallersAreLoggedWithoutWhatTheyShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, _ := newKey(t, 0, "team-a")
		th := newHarness(t, policy)
		for range 100 {
			want(t, th.callers, withKey(secret), "team-a/f", auth.ErrInvalid, "")
		}
		if n := strings.Count(th.log.String(), "\n"); n != 1 || strings.Contains(th.log.String(), secret[15:]) {
			t.Errorf("100 refusals in a moment give %d messages:\n%s", n, th.log.String())
		}
	})
}
