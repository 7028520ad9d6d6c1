package jwks_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/windlass-dev/windlass/internal/jwks"
)

// issuer publishes keys with some ids, or fails.
type issuer struct {
	ids   []string
	alg   string
	fault error
	asked int
}

func (i *issuer) Keys(context.Context) ([]byte, error) {
	i.asked++
	if i.fault != nil {
		return nil, i.fault
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	var set jose.JSONWebKeySet
	for _, id := range i.ids {
		set.Keys = append(set.Keys, jose.JSONWebKey{KeyID: id, Key: key.Public(), Algorithm: i.alg})
	}
	return json.Marshal(set)
}

func TestAKeyringTellsUnknownFromUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &issuer{ids: []string{"a"}}
		ring := jwks.NewKeyring(source, time.Minute, time.Now)
		for _, step := range []struct {
			after time.Duration
			id    string
			fault error // of the source
			want  error
			asked int
		}{
			{0, "a", nil, nil, 1},
			{0, "b", nil, jwks.ErrUnavailable, 1}, // it was read just now
			{time.Minute, "b", nil, jwks.ErrUnknownKey, 2},
			{time.Minute, "b", errors.New("away"), jwks.ErrUnavailable, 3},
			{time.Hour, "a", errors.New("away"), nil, 3},
		} {
			time.Sleep(step.after)
			source.fault = step.fault
			key, err := ring.Get(step.id, "ES256")
			if !errors.Is(err, step.want) || (err == nil && key.KeyID != step.id) || source.asked != step.asked {
				t.Errorf("%+v: %v, %v; the source was asked %d times", step, key.KeyID, err, source.asked)
			}
		}
	})
}

func TestS19KeysCountForADayAfterTheyWereRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &issuer{ids: []string{"a"}}
		ring := jwks.NewKeyring(source, time.Minute, time.Now)
		for _, step := range []struct {
			after time.Duration
			fault error // of the source
			want  error
		}{
			{0, nil, nil},
			{24 * time.Hour, errors.New("away"), nil},
			{time.Second, errors.New("away"), jwks.ErrUnavailable},
			{time.Hour, errors.New("away"), jwks.ErrUnavailable},
			{time.Minute, nil, nil},
			{24 * time.Hour, errors.New("away"), nil},
		} {
			time.Sleep(step.after)
			source.fault = step.fault
			if _, err := ring.Get("a", "ES256"); !errors.Is(err, step.want) {
				t.Errorf("%+v: %v", step, err)
			}
		}
	})
}

func TestS19AKeyIsForItsAlgorithmAlone(t *testing.T) {
	for _, tc := range []struct {
		published, token string
		want             error
	}{
		{"ES256", "ES256", nil},
		{"", "ES256", nil},
		{"ES384", "ES256", jwks.ErrOtherAlgorithm},
	} {
		ring := jwks.NewKeyring(&issuer{ids: []string{"a"}, alg: tc.published}, time.Minute, time.Now)
		for range 2 { // when it is read, and when it is known
			if _, err := ring.Get("a", tc.token); !errors.Is(err, tc.want) {
				t.Errorf("%+v: %v", tc, err)
			}
		}
	}
}

func TestSeenForgets(t *testing.T) {
	var seen jwks.Seen[int]
	now := time.Unix(1_700_000_000, 0)
	short, long := jwks.DigestOf("short"), jwks.DigestOf("long")
	seen.Put(short, 1, now, now.Add(time.Second))
	seen.Put(long, 2, now, now.Add(time.Hour))
	for _, tt := range []struct {
		d     jwks.Digest
		after time.Duration
		known bool
	}{
		{short, 0, true},
		{short, time.Second, false},
		{long, 59 * time.Second, true},
		{long, time.Minute, false},
		{jwks.DigestOf("never"), 0, false},
	} {
		if _, known := seen.Get(tt.d, now.Add(tt.after)); known != tt.known {
			t.Errorf("after %v known is %v, want %v", tt.after, known, tt.known)
		}
	}
	// However many there are, only the latest are remembered.
	for i := range 10_000 {
		seen.Put(jwks.DigestOf(fmt.Sprint(i)), i, now, now.Add(time.Hour))
	}
	if _, known := seen.Get(long, now); known {
		t.Error("the oldest is still remembered")
	}
	if got, known := seen.Get(jwks.DigestOf("9999"), now); !known || got != 9999 {
		t.Errorf("the latest is %v, %v", got, known)
	}
}
