package podtoken_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/podtoken"
)

// FuzzToken looks for a token that nobody has signed and that is believed.
func FuzzToken(f *testing.F) {
	f.Add("eyJhbGciOiJub25lIiwia2lkIjoiZWMifQ.e30.", []byte(`{"keys":[]}`))
	f.Add("eyJhbGciOiJFUzI1NiIsImtpZCI6ImVjIn0.e30.AAAA", []byte(`{"keys":[{"kty":"EC","kid":"ec","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Add("..", []byte(`[]`))
	f.Fuzz(func(t *testing.T, token string, document []byte) {
		// With the cluster's keys, and with keys that are anything.
		honest := &source{}
		honest.set(t, ecSigner())
		v, err := podtoken.New(podtoken.DefaultConfig(), podtoken.Deps{Keys: honest, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		if identity, err := v.Verify(token); err == nil || !errors.Is(err, podtoken.ErrInvalid) && !errors.Is(err, podtoken.ErrUnavailable) {
			t.Errorf("%q is %+v, %v", token, identity, err)
		}
		odd := &source{}
		odd.setDocument(string(document))
		_, _ = newVerifier(t, podtoken.DefaultConfig(), odd).Verify(token)
	})
}
