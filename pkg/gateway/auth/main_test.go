package auth_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// policy requires credentials but in the namespace open.
const policy = `
apiVersion: config.windlass.dev/v1alpha1
kind: GatewayPolicy
auth:
  default: {mode: Required}
  namespaces: {open: {mode: None}}
  issuers:
    corp:
      issuer: https://corp.example
      audience: windlass
      jwksURL: https://corp.example/keys
      algorithms: [ES256]
      claim: functions
      grants: [{subject: ci, allow: [team-a]}]
tenancy:
  default: {requestsPerSecond: 10, burst: 11, maxInFlight: 4, bodyMemory: 1Mi}
  namespaces:
    busy: {requestsPerSecond: 100}
    calm: {burst: 7, maxInFlight: 1}
`

// policyOf is a policy with these parts.
func policyOf(parts string) string {
	return "apiVersion: config.windlass.dev/v1alpha1\nkind: GatewayPolicy\n" + parts
}

// keysOf is a list of keys.
func keysOf(list string) string {
	return "apiVersion: config.windlass.dev/v1alpha1\nkind: APIKeys\nkeys: " + list
}

// fn is the key of a function as namespace/name.
func fn(name string) invocation.FunctionKey {
	namespace, name, _ := strings.Cut(name, "/")
	return invocation.FunctionKey{Namespace: namespace, Name: name}
}

// signer is a key of an issuer.
type signer struct {
	id  string
	key *ecdsa.PrivateKey
}

var signers = sync.OnceValue(func() [2]signer {
	var two [2]signer
	for i := range two {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err)
		}
		two[i] = signer{string(rune('a' + i)), key}
	}
	return two
})

func (s signer) public() jose.JSONWebKey { return jose.JSONWebKey{KeyID: s.id, Key: s.key.Public()} }

func sign(t *testing.T, algorithm jose.SignatureAlgorithm, key any, id string, said map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(with).Claims(said).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (s signer) sign(t *testing.T, said map[string]any) string {
	return sign(t, jose.ES256, crypto.Signer(s.key), s.id, said)
}

// good is what a token of the issuer says, but for changes; nil takes a claim away.
func good(changes map[string]any) map[string]any {
	said := map[string]any{
		"iss": "https://corp.example", "aud": "windlass", "sub": "ada@corp",
		"exp": time.Now().Add(time.Hour).Unix(), "nbf": time.Now().Unix(), "functions": []string{"team-a", "team-b/f"},
	}
	for claim, value := range changes {
		if value == nil {
			delete(said, claim)
		} else {
			said[claim] = value
		}
	}
	return said
}

// harness is Callers with their files and an issuer.
type harness struct {
	*testing.T
	callers  *auth.Callers
	dir      string
	log      bytes.Buffer
	registry *prometheus.Registry

	mu      sync.Mutex
	keySet  []byte
	fault   error
	fetched int
}

// RoundTrip is the issuer.
func (th *harness) RoundTrip(r *http.Request) (*http.Response, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.fetched++
	if r.URL.String() != "https://corp.example/keys" {
		return nil, errors.New("another URL")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(th.keySet))}, th.fault
}

func (th *harness) publish(all ...signer) {
	var set jose.JSONWebKeySet
	for _, s := range all {
		set.Keys = append(set.Keys, s.public())
	}
	document, err := json.Marshal(set)
	if err != nil {
		th.Fatal(err)
	}
	th.publishDocument(string(document))
}

func (th *harness) publishDocument(document string) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.keySet, th.fault = []byte(document), nil
}

func (th *harness) fail(err error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.fault = err
}

func (th *harness) write(name, content string) {
	th.Helper()
	if err := os.WriteFile(filepath.Join(th.dir, name), []byte(content), 0o600); err != nil {
		th.Fatal(err)
	}
}

// enrol adds API keys to the list and returns them as their bearers know them.
func (th *harness) enrol(keys ...auth.Key) {
	th.Helper()
	document, err := auth.KeyList{Keys: keys}.Encode()
	if err != nil {
		th.Fatal(err)
	}
	th.write("keys.yaml", string(document))
}

func newHarness(t *testing.T, policy string, keys ...auth.Key) *harness {
	t.Helper()
	th := &harness{T: t, dir: t.TempDir(), registry: prometheus.NewRegistry()}
	th.write("policy.yaml", policy)
	if len(keys) > 0 {
		th.enrol(keys...)
	}
	th.publish(signers()[0])
	th.open(3)
	return th
}

func (th *harness) open(gateways int) {
	th.Helper()
	client := auth.NewClient()
	client.Transport = th
	var err error
	th.callers, err = auth.New(
		auth.Config{PolicyFile: filepath.Join(th.dir, "policy.yaml"), KeysFile: filepath.Join(th.dir, "keys.yaml"), Gateways: gateways},
		auth.Deps{Client: client, Registry: th.registry, Log: slog.New(slog.NewTextHandler(&th.log, nil)), Now: time.Now})
	if err != nil {
		th.Fatal(err)
	}
}

// reloaded is whether the files could be read when last tried, and when they were.
func (th *harness) reloaded() (ok bool, at float64) {
	th.Helper()
	return th.gauge("windlass_gateway_policy_last_reload_successful") == 1, th.gauge("windlass_gateway_policy_last_reload_success_timestamp_seconds")
}

func (th *harness) gauge(name string) float64 {
	th.Helper()
	families, err := th.registry.Gather()
	if err != nil {
		th.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	th.Fatalf("there is no metric %s", name)
	return 0
}

func newKey(t *testing.T, validFor time.Duration, allow ...string) (string, auth.Key) {
	t.Helper()
	secret, key, err := auth.NewKey(allow, time.Now(), validFor)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key
}

func bearer(credential string) http.Header {
	return http.Header{"Authorization": {"Bearer " + credential}}
}

func withKey(key string) http.Header { return http.Header{invocation.HeaderKey: {key}} }
