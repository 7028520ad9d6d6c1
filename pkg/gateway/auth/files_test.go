package auth_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// running runs the callers until the test ends.
func (th *harness) running() {
	ctx, cancel := context.WithCancel(th.Context())
	done := make(chan error)
	go func() { done <- th.callers.Run(ctx) }()
	th.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			th.Errorf("Run returned %v", err)
		}
	})
	synctest.Wait()
}

// pass lets the files be looked at.
func pass() {
	time.Sleep(2100 * time.Millisecond)
	synctest.Wait()
}

func TestChangesCountWithoutARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, key := newKey(t, 0, "team-a")
		th := newHarness(t, policy)
		th.running()
		token := signers()[0].sign(t, good(nil))
		want(t, th.callers, bearer(token), "team-a/f", nil, "corp:ada@corp")
		want(t, th.callers, withKey(secret), "team-a/f", auth.ErrInvalid, "")

		th.enrol(key)
		pass()
		want(t, th.callers, withKey(secret), "team-a/f", nil, "key:"+key.ID)
		fetched := th.fetched

		// Revoked, and the issuer is not believed any more.
		th.enrol()
		th.write("policy.yaml", policyOf("auth: {default: {mode: Required}}"))
		pass()
		want(t, th.callers, withKey(secret), "team-a/f", auth.ErrInvalid, "")
		want(t, th.callers, bearer(token), "team-a/f", auth.ErrInvalid, "")
		time.Sleep(time.Hour)
		if th.fetched != fetched {
			t.Errorf("the keys of an issuer that does not count are still read")
		}
	})
}

// A key set of the chart's values is a file beside the policy, whose text names the file only.
func TestAChangedFileOfAnIssuersKeysCountsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := newHarness(t, strings.Replace(policy, "jwksURL: https://corp.example/keys", "jwksFile: corp.json", 1))
		inFile := func(document []byte) {
			th.write("corp.json", string(document))
			pass()
			time.Sleep(time.Minute) // a token counts for so long without another look
		}
		th.publish(signers()[0])
		first := th.keySet
		th.publish(signers()[1])
		second := th.keySet
		th.write("corp.json", string(first))
		th.running()
		old, fresh := signers()[0].sign(t, good(nil)), signers()[1].sign(t, good(nil))
		want(t, th.callers, bearer(old), "team-a/f", nil, "corp:ada@corp")
		inFile([]byte("<html>"))
		want(t, th.callers, bearer(old), "team-a/f", nil, "corp:ada@corp")
		inFile(second)
		want(t, th.callers, bearer(old), "team-a/f", auth.ErrInvalid, "")
		want(t, th.callers, bearer(fresh), "team-a/f", nil, "corp:ada@corp")
		inFile([]byte(`{"keys": []}`))
		want(t, th.callers, bearer(fresh), "team-a/f", auth.ErrInvalid, "")
	})
}

func TestABrokenFileChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret, key := newKey(t, 0, "team-a")
		th := newHarness(t, policy, key)
		th.running()
		_, read := th.reloaded()
		for _, broken := range []string{
			"", policyOf(""), policyOf("auth: {default: {mode: 1}}"), "{{", "auth: {default: {mode: None}}",
			policyOf("auth: {default: {mode: None}}\nauth: {default: {mode: None}}"), policyOf("auth: {default: {mode: None}}\ntenancy: {default: {burst: 0}}"),
			strings.Replace(policyOf("auth: {default: {mode: None}}"), "v1alpha1", "v1", 1),
			strings.Replace(policyOf("auth: {default: {mode: None}}"), "GatewayPolicy", "APIKeys", 1),
		} {
			th.log.Reset()
			th.write("policy.yaml", broken)
			for range 5 {
				pass()
			}
			want(t, th.callers, withKey(secret), "team-a/f", nil, "key:"+key.ID)
			want(t, th.callers, http.Header{}, "team-a/f", auth.ErrMissing, "")
			ok, at := th.reloaded()
			if n := strings.Count(th.log.String(), "level=ERROR"); n != 1 || ok || at != read {
				t.Errorf("%q: %d errors logged, the metrics say %v since %v", broken, n, ok, at)
			}
		}
		th.write("policy.yaml", policy)
		th.write("keys.yaml", keysOf("[{id: x}]"))
		pass()
		if ok, _ := th.reloaded(); ok {
			t.Error("a broken list of keys is no problem")
		}
		want(t, th.callers, withKey(secret), "team-a/f", nil, "key:"+key.ID)
		th.enrol(key)
		pass()
		if ok, at := th.reloaded(); !ok || at <= read {
			t.Errorf("what is right again is told as %v since %v", ok, at)
		}
	})
}

func TestLimitsAreDividedAmongTheGateways(t *testing.T) {
	c := newHarness(t, policy).callers
	for namespace, want := range map[string]admission.Limits{
		"any":  {Rate: 10. / 3, Burst: 4, InFlight: 2, Bytes: 349526},
		"open": {Rate: 10. / 3, Burst: 4, InFlight: 2, Bytes: 349526},
		// Its burst is that of its own rate.
		"busy": {Rate: 100. / 3, Burst: 34, InFlight: 2, Bytes: 349526},
		"calm": {Rate: 10. / 3, Burst: 3, InFlight: 1, Bytes: 349526},
	} {
		if got := c.Limits(namespace); got != want {
			t.Errorf("%s: %+v, want %+v", namespace, got, want)
		}
	}
}

func TestWithoutFilesTheConfigCounts(t *testing.T) {
	secret, key := newKey(t, 0, "*")
	deps := auth.Deps{Client: auth.NewClient(), Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now}
	config := auth.Config{Policy: auth.Policy{Auth: auth.Auth{Default: auth.Rule{Mode: auth.ModeRequired}}}, Keys: []auth.Key{key}, Gateways: 1}
	c, err := auth.New(config, deps)
	if err != nil {
		t.Fatal(err)
	}
	want(t, c, withKey(secret), "a/b", nil, "key:"+key.ID)
	want(t, c, http.Header{}, "a/b", auth.ErrMissing, "")

	config.Policy, config.Keys, deps.Registry = auth.Everybody(), nil, prometheus.NewRegistry()
	if c, err = auth.New(config, deps); err != nil {
		t.Fatal(err)
	}
	want(t, c, http.Header{}, "a/b", nil, "")
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	for name, config := range map[string]auth.Config{
		"no policy":     {Gateways: 1},
		"no gateways":   {Policy: auth.Everybody()},
		"no such file":  {PolicyFile: filepath.Join(t.TempDir(), "none"), Gateways: 1},
		"a broken key":  {Policy: auth.Everybody(), Keys: []auth.Key{{}}, Gateways: 1},
		"keys a folder": {Policy: auth.Everybody(), KeysFile: t.TempDir(), Gateways: 1},
	} {
		var log bytes.Buffer
		_, err := auth.New(config, auth.Deps{
			Client: auth.NewClient(), Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now,
		})
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestPoliciesThatAreRefused(t *testing.T) {
	issuer := func(fields string) string {
		return policyOf("auth: {default: {mode: None}, issuers: {a: {issuer: i, audience: w, jwksFile: k, claim: c, " + fields + "}}}")
	}
	tenancy := func(of string) string { return policyOf("auth: {default: {mode: None}}\ntenancy: " + of) }
	for document, says := range map[string]string{
		"":                                 "write apiVersion: config.windlass.dev/v1alpha1 and kind: GatewayPolicy",
		"auth: {default: {mode: None}}":    "write apiVersion",
		keysOf("[]"):                       `kind "APIKeys"`,
		policyOf(""):                       "auth.default.mode is missing: write None or Required",
		policyOf("auth: {namespaces: {}}"): "auth.default.mode is missing",
		policyOf("auth: {default: {mode: required}}"):                               `auth.default.mode "required" is neither None nor Required`,
		policyOf("auth: {default: {mode: '?'}}"):                                    "auth.default.mode",
		policyOf("auth: {default: {mode: None, x: 1}}"):                             `unknown field "auth.default.x"`,
		policyOf("auth: {default: {mode: None}}\nfoo: {}"):                          `unknown field "foo"`,
		policyOf("auth: {default: {mode: None}}\nAuth: {}"):                         `unknown field "Auth"`,
		policyOf("auth: {default: {mode: None}, namespaces: {UP: {}}}"):             `"UP"`,
		policyOf("auth: {default: {mode: None}, namespaces: {a: {mode: Perhaps}}}"): "auth.namespaces.a.mode",
		tenancy("{default: {requestsPerSecond: -1}}"):                               "tenancy.default.requestsPerSecond must be more than 0",
		tenancy("{default: {maxInFlight: 0}}"):                                      "tenancy.default.maxInFlight must be more than 0",
		tenancy("{namespaces: {a: {bodyMemory: 0}}}"):                               "tenancy.namespaces.a.bodyMemory must be more than 0",
		tenancy("{default: {burst: 1}}"):                                            "tenancy.default: burst is 1",
		tenancy("{namespaces: {a: {burst: 1}}}"):                                    "tenancy.namespaces.a: burst is 1",
		tenancy(`{default: {hosts: ["*"]}}`):                                        `tenancy.default.hosts: "*" is neither a host`,
		tenancy("{namespaces: {a: {hosts: [Shop.example.com]}}}"):                   `tenancy.namespaces.a.hosts: "Shop.example.com"`,
		tenancy("{namespaces: {a: {hosts: shop.example.com}}}"):                     "hosts",
		tenancy("{namespaces: {a/b: {}}}"):                                          `"a/b"`,
		tenancy("{default: {bodyMemory: lots}}"):                                    "quantities",
		policyOf("auth: {default: {mode: None}, issuers: {a: {}}}"):                 "auth.issuers.a.audience is missing",
		issuer("jwksURL: 'https://x/k'"):                                            "either jwksURL or jwksFile",
		issuer("algorithms: [HS256]"):                                               `"HS256"`,
		issuer("algorithms: [none]"):                                                `"none"`,
		issuer("requires: [moonlight]"):                                             `auth.issuers.a.requires "moonlight"`,
		issuer("grants: [{subject: s, allow: []}]"):                                 "auth.issuers.a.grants[0].allow is empty",
		issuer("grants: [{subject: s, allow: [a/b/c]}]"):                            `"a/b/c"`,
		issuer("grants: [{allow: [a]}]"):                                            "subject is missing",
		strings.Replace(issuer(""), "{a:", "{key:", 1):                              "auth.issuers.key",
		strings.Replace(issuer(""), "{a:", "{A:", 1):                                `"A"`,
		strings.Replace(issuer(""), "claim: c,", "", 1):                             "write claim or grants",
		strings.Replace(issuer(""), "jwksFile: k", "jwksURL: 'http://x/'", 1):       "https://",
		strings.Replace(issuer(""), "audience: w,", "", 1):                          "audience is missing",
		strings.Replace(issuer(""), "}}}", "}, b: {issuer: i}}}", 1):                "auth.issuers.b.issuer \"i\" is that of a already",
	} {
		if _, err := auth.ParsePolicy([]byte(document)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\n gives %v, want %q", document, err, says)
		}
	}
	for _, document := range []string{issuer(""), strings.Replace(issuer(""), "jwksFile: k", "jwksURL: 'http://127.0.0.1:1/'", 1)} {
		if _, err := auth.ParsePolicy([]byte(document)); err != nil {
			t.Errorf("%s\n gives %v", document, err)
		}
	}
}

func TestListsOfKeys(t *testing.T) {
	_, one := newKey(t, time.Hour, "team-a")
	_, two := newKey(t, 0, "team-b/f", "*")
	one.ID = "0a1b2c3d4e5f" // YAML would quote one of digits only
	document, err := auth.KeyList{Keys: []auth.Key{one, two}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	twice, err := auth.KeyList{Keys: []auth.Key{one, one}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	list, err := auth.ParseKeys(document)
	if err != nil || len(list.Keys) != 2 || list.Keys[0].Expires.Sub(list.Keys[0].Created) != time.Hour || !list.Keys[1].Expires.IsZero() {
		t.Fatalf("%+v, %v of\n%s", list, err, document)
	}
	rest, removed, found := list.Without(one.ID)
	if !found || removed.ID != one.ID || len(rest.Keys) != 1 || rest.Keys[0].ID != two.ID {
		t.Errorf("without the first: %+v", rest)
	}
	if _, _, found := list.Without("nobody"); found {
		t.Error("found a key that is not there")
	}
	for _, wrong := range []string{
		string(twice),
		strings.Replace(string(document), "kind: APIKeys", "kind: GatewayPolicy", 1),
		strings.Replace(string(document), "id: "+one.ID, "id: "+one.ID+"\n  requires: [moonlight]", 1),
		strings.Replace(string(document), "id: "+one.ID, "id: "+one.ID+"\n  owner: ada", 1),
		strings.Replace(string(document), one.ID, "short", 1),
		strings.Replace(string(document), "id: "+one.ID, "id: "+one.ID+"\n  name: 0123456789ab", 1),
		strings.Replace(string(document), one.SHA256, "00", 1),
		strings.Replace(string(document), "team-a", "Team_A", 1),
		keysOf("[{secret: x}]"), "[]", "keys: []",
	} {
		if _, err := auth.ParseKeys([]byte(wrong)); err == nil {
			t.Errorf("accepted:\n%s", wrong)
		}
	}
	if _, _, err := auth.NewKey(nil, time.Now(), 0); err == nil {
		t.Error("a key for nothing is made")
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add(policy)
	f.Add(policyOf("auth: {default: {mode: None}}"))
	f.Add(policyOf("auth: {default: {mode: Later, x: 1}, issuers: {a: {requires: [y]}}}"))
	f.Fuzz(func(t *testing.T, document string) {
		p, unknown, err := auth.ReadPolicy([]byte(document))
		if err == nil && p.Validate() != nil {
			t.Error("accepted and not valid")
		}
		if _, strict := auth.ParsePolicy([]byte(document)); (strict == nil) != (err == nil && len(unknown) == 0) {
			t.Errorf("who writes it reads %v, and a gateway %v, %v", strict, unknown, err)
		}
	})
}

// Whatever is shown, it lets nobody through who was not given it.
func FuzzAuthenticate(f *testing.F) {
	key := auth.Key{ID: "0123456789ab", SHA256: strings.Repeat("00", 32), Allow: auth.Scope{"*"}}
	c, err := auth.New(
		auth.Config{Policy: auth.Policy{Auth: auth.Auth{Default: auth.Rule{Mode: auth.ModeRequired}}}, Keys: []auth.Key{key}, Gateways: 1},
		auth.Deps{Client: auth.NewClient(), Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("Bearer wl_0123456789ab_", "")
	f.Add("", "wl_0123456789ab_"+strings.Repeat("0", 64))
	f.Add("Bearer eyJhbGciOiJub25lIn0.e30.", "")
	f.Fuzz(func(t *testing.T, authorization, key string) {
		if _, err := c.Authenticate(http.Header{"Authorization": {authorization}, "Windlass-Key": {key}}, fn("a/b")); err == nil {
			t.Error("let through")
		}
	})
}
