package invocation_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FuzzParse reads ids and tokens, as text and from the wire.
func FuzzParse(f *testing.F) {
	f.Add("0190f5a5c5e07a3c9f0e8d7c6b5a4938", []byte("0123456789abcdef"))
	f.Add("0190F5A5-", []byte("0123456789abcdef0"))
	f.Add("", []byte(nil))
	f.Fuzz(func(t *testing.T, text string, wire []byte) {
		if id, err := invocation.ParseID(text); err == nil && id.String() != strings.ToLower(text) {
			t.Errorf("%q became %s", text, id)
		}
		if id, err := invocation.IDFromBytes(wire); (err == nil) != (len(wire) == 16) || err == nil && !bytes.Equal(id[:], wire) {
			t.Errorf("%x became %s, %v", wire, id, err)
		}
		token := invocation.TokenFromBytes(wire)
		if len(wire) != 16 && token != (invocation.Token{}) || len(wire) == 16 && !bytes.Equal(token[:], wire) {
			t.Errorf("%x became %x", wire, token)
		}
		if token.Equal(invocation.NewToken()) {
			t.Error("a token was guessed")
		}
		if got := invocation.Excerpt(text); len(got) > invocation.MaxExcerpt {
			t.Errorf("an excerpt has %d bytes", len(got))
		}
	})
}
