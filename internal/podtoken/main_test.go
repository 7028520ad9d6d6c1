package podtoken_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/internal/jwks"
	"github.com/windlass-dev/windlass/internal/podtoken"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const issuer = "https://kubernetes.default.svc"

// signer is one of a cluster's keys.
type signer struct {
	id        string
	algorithm jose.SignatureAlgorithm
	key       crypto.Signer
}

// The keys are made once: making one for RSA takes a while.
var (
	rsaSigner = sync.OnceValue(func() signer {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		return signer{"rsa", jose.RS256, must(key, err)}
	})
	ecSigner    = sync.OnceValue(func() signer { return newECSigner("ec") })
	otherSigner = sync.OnceValue(func() signer { return newECSigner("other") })
)

func newECSigner(id string) signer {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return signer{id, jose.ES256, must(key, err)}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (s signer) public() jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: s.id, Key: s.key.Public(), Algorithm: string(s.algorithm), Use: "sig"}
}

// sign makes a token, under another key's id or none if that is given.
func (s signer) sign(t *testing.T, said map[string]any, id ...string) string {
	t.Helper()
	name := s.id
	if len(id) > 0 {
		name = id[0]
	}
	options := (&jose.SignerOptions{}).WithType("JWT")
	if name != "" {
		options = options.WithHeader("kid", name)
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: s.algorithm, Key: s.key}, options)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(with).Claims(said).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func keySet(t *testing.T, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	document, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// good is what the token of a pod says, but for changes; nil takes a claim away.
func good(now time.Time, changes map[string]any) map[string]any {
	said := map[string]any{
		"aud": []string{podtoken.Audience},
		"iss": issuer,
		"sub": "system:serviceaccount:shop:resize",
		"iat": now.Unix(),
		"nbf": now.Unix(),
		"exp": now.Add(10 * time.Minute).Unix(),
		"jti": rand.Text(),
		"kubernetes.io": map[string]any{
			"namespace":      "shop",
			"node":           map[string]any{"name": "n1", "uid": "f6b0"},
			"pod":            map[string]any{"name": "resize-1", "uid": "0d0f"},
			"serviceaccount": map[string]any{"name": "resize", "uid": "c7a1"},
		},
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

// source hands out keys. It is for concurrent use.
type source struct {
	mu       sync.Mutex
	document []byte
	fault    error
	delay    time.Duration
	asked    int
}

func (s *source) Keys(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	s.asked++
	document, fault, delay := s.document, s.fault, s.delay
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(delay):
		return document, fault
	}
}

func (s *source) set(t *testing.T, signers ...signer) {
	t.Helper()
	var keys []jose.JSONWebKey
	for _, signer := range signers {
		keys = append(keys, signer.public())
	}
	s.setDocument(string(keySet(t, keys...)))
}

func (s *source) setDocument(document string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.document, s.fault, s.delay = []byte(document), nil, 0
}

func (s *source) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = errors.New("the API server is away")
}

func (s *source) slow(delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
}

func (s *source) wantAsked(t *testing.T, want int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked != want {
		t.Errorf("the keys were read %d times, want %d", s.asked, want)
	}
}

func newVerifier(t *testing.T, config podtoken.Config, keys jwks.KeySource) *podtoken.Verifier {
	t.Helper()
	v, err := podtoken.New(config, podtoken.Deps{Keys: keys, Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func wantGood(t *testing.T, v *podtoken.Verifier, token string) {
	t.Helper()
	if _, err := v.Verify(token); err != nil {
		t.Errorf("a good token is refused: %v", err)
	}
}

func wantError(t *testing.T, v *podtoken.Verifier, token string, want error) {
	t.Helper()
	if identity, err := v.Verify(token); !errors.Is(err, want) || identity != (podtoken.Identity{}) {
		t.Errorf("Verify says %v, %v, want nobody and %v", identity, err, want)
	}
}
