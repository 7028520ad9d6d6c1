package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/windlass-dev/windlass/internal/jwks"
)

// published is a key of an issuer with the id "a".
type published struct{ *ecdsa.PrivateKey }

func newPublished(t *testing.T) published {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return published{key}
}

func (p published) Keys(context.Context) ([]byte, error) {
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "a", Key: p.Public()}}})
}

func (p published) sign(t *testing.T, said jwt.Claims) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: p.PrivateKey},
		(&jose.SignerOptions{}).WithHeader("kid", "a"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(said).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// That a signature is not looked at again shows when the key would have become right.
func TestS19ATokenWithAWrongSignatureIsNotLookedAtAgainForAMinute(t *testing.T) {
	now := time.Now()
	clock := func() time.Time { return now }
	ours, foreign := newPublished(t), newPublished(t)
	corp := &issuer{
		policy: Issuer{Name: "corp", Issuer: "https://corp.example", Audience: "windlass"},
		keys:   jwks.NewKeyring(ours, jwksMinInterval, clock),
	}
	all := issuers{"https://corp.example": corp}
	said := jwt.Claims{
		Issuer: "https://corp.example", Audience: jwt.Audience{"windlass"}, Subject: "ada", Expiry: jwt.NewNumericDate(now.Add(time.Hour)),
	}
	token := foreign.sign(t, said)
	for _, step := range []struct {
		keys  jwks.KeySource
		after time.Duration
		want  error
	}{
		{ours, 0, ErrInvalid},
		{foreign, wrongTokenTTL - time.Second, ErrInvalid},
		{foreign, time.Second, nil},
	} {
		corp.keys = jwks.NewKeyring(step.keys, jwksMinInterval, clock)
		now = now.Add(step.after)
		if _, err := all.verify(token, now); !errors.Is(err, step.want) {
			t.Errorf("%+v: %v", step, err)
		}
	}
	if _, err := all.verify(foreign.sign(t, said), now); err != nil {
		t.Errorf("another token of the same caller: %v", err)
	}
}
