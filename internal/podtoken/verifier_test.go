package podtoken_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/internal/podtoken"
)

func TestATokenTellsItsPod(t *testing.T) {
	keys := &source{}
	keys.set(t, rsaSigner(), ecSigner())
	now := time.Now()
	for _, signer := range []signer{rsaSigner(), ecSigner()} {
		got, err := newVerifier(t, podtoken.DefaultConfig(), keys).Verify(signer.sign(t, good(now, nil)))
		want := podtoken.Identity{
			Namespace: "shop", PodName: "resize-1", PodUID: "0d0f", ServiceAccount: "resize",
			Expires: now.Add(10 * time.Minute).Truncate(time.Second),
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got)\n%s", signer.algorithm, err, diff)
		}
	}
}

func TestWhatATokenMustSay(t *testing.T) {
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	kubernetes := func(without string) map[string]any {
		whole := good(now, nil)["kubernetes.io"].(map[string]any)
		delete(whole, without)
		return whole
	}
	config := podtoken.DefaultConfig()
	config.Issuers = []string{"https://another.issuer", issuer}
	for _, c := range []struct {
		name    string
		changes map[string]any
		// refusal is empty if the token is good.
		refusal string
	}{
		{"nothing else", nil, ""},
		{"one audience as a string", map[string]any{"aud": podtoken.Audience}, ""},
		{"several audiences", map[string]any{"aud": []string{"vault", podtoken.Audience}}, ""},
		{"another audience", map[string]any{"aud": []string{"https://kubernetes.default.svc"}}, "audience"},
		{"a longer audience", map[string]any{"aud": podtoken.Audience + "-2"}, "audience"},
		{"no audience", map[string]any{"aud": nil}, "audience"},
		{"expired within the leeway", map[string]any{"exp": at(-20 * time.Second)}, ""},
		{"expired", map[string]any{"exp": at(-40 * time.Second)}, "expired"},
		{"no expiry", map[string]any{"exp": nil}, "never expires"},
		{"an expiry in words", map[string]any{"exp": "tomorrow"}, "contents"},
		{"a future within the leeway", map[string]any{"nbf": at(20 * time.Second), "iat": at(20 * time.Second)}, ""},
		{"not valid yet", map[string]any{"nbf": at(40 * time.Second)}, "not valid yet"},
		{"issued in the future", map[string]any{"iat": at(40 * time.Second)}, "future"},
		{"another issuer of the list", map[string]any{"iss": "https://another.issuer"}, ""},
		{"an unknown issuer", map[string]any{"iss": "https://evil.example"}, "issuer"},
		{"no issuer", map[string]any{"iss": nil}, "issuer"},
		{"no pod", map[string]any{"kubernetes.io": kubernetes("pod")}, "not bound to a pod"},
		{"a pod without a UID", map[string]any{"kubernetes.io": map[string]any{
			"namespace": "shop", "pod": map[string]any{"name": "resize-1"}, "serviceaccount": map[string]any{"name": "resize"},
		}}, "not bound to a pod"},
		{"no namespace", map[string]any{"kubernetes.io": kubernetes("namespace")}, "subject"},
		{"no service account", map[string]any{"kubernetes.io": kubernetes("serviceaccount")}, "subject"},
		{"another subject", map[string]any{"sub": "system:serviceaccount:shop:admin"}, "subject"},
		{"nothing of Kubernetes", map[string]any{"kubernetes.io": nil}, "not bound to a pod"},
		{"Kubernetes in a word", map[string]any{"kubernetes.io": "pod"}, "contents"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := &source{}
			keys.set(t, ecSigner())
			_, err := newVerifier(t, config, keys).Verify(ecSigner().sign(t, good(now, c.changes)))
			if c.refusal == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if !errors.Is(err, podtoken.ErrInvalid) || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("the error is %v, want ErrInvalid about %q", err, c.refusal)
			}
		})
	}
}

func TestAnyIssuerOfTheClustersKeysCountsByDefault(t *testing.T) {
	keys := &source{}
	keys.set(t, ecSigner())
	wantGood(t, newVerifier(t, podtoken.DefaultConfig(), keys), ecSigner().sign(t, good(time.Now(), map[string]any{"iss": "https://b"})))
}

// TestForgedTokens are refused whatever they say: what each says is good.
func TestForgedTokens(t *testing.T) {
	said := good(time.Now(), nil)
	honest := ecSigner().sign(t, said)
	parts := strings.Split(honest, ".")
	der, err := x509.MarshalPKIXPublicKey(rsaSigner().key.Public())
	if err != nil {
		t.Fatal(err)
	}
	jwk, err := rsaSigner().public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	header := func(format string, args ...any) string {
		return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, format, args...))
	}
	hs256 := func(secret []byte) string {
		text := header(`{"alg":"HS256","kid":"rsa"}`) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	mallory := newECSigner("ec")
	withOwnKey, err := mallory.public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}

	for name, token := range map[string]string{
		"nothing":                         "",
		"one word":                        "token",
		"dots":                            "..",
		"no signature":                    parts[0] + "." + parts[1] + ".",
		"two parts":                       parts[0] + "." + parts[1],
		"half a signature":                honest[:len(honest)-20],
		"a part more":                     honest + ".AAAA",
		"another's contents":              parts[0] + "." + strings.Split(ecSigner().sign(t, good(time.Now(), nil)), ".")[1] + "." + parts[2],
		"another's signature":             parts[0] + "." + parts[1] + "." + strings.Split(ecSigner().sign(t, good(time.Now(), nil)), ".")[2],
		"a key under the id of another":   mallory.sign(t, said),
		"an unknown key":                  mallory.sign(t, said, "mallory"),
		"no key":                          mallory.sign(t, said, ""),
		"the id of a key of another kind": ecSigner().sign(t, said, "rsa"),
		"a secret's id":                   mallory.sign(t, said, "secret"),
		"alg none":                        header(`{"alg":"none","kid":"ec"}`) + "." + parts[1] + ".",
		"alg None with a signature":       header(`{"alg":"None","kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"no alg":                          header(`{"kid":"ec"}`) + "." + parts[1] + "." + parts[2],
		"HS256 with the key's PEM":        hs256(asPEM),
		"HS256 with the key's DER":        hs256(der),
		"HS256 with the key's modulus":    hs256(jwk),
		"HS256 with nothing":              hs256(nil),
		"a key of its own in the header":  header(`{"alg":"ES256","kid":"mallory","jwk":%s}`, withOwnKey) + "." + parts[1] + "." + parts[2],
		"an extension that counts":        header(`{"alg":"ES256","kid":"ec","crit":["x"],"x":1}`) + "." + parts[1] + "." + parts[2],
		"the other form of a token":       `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"16 KiB":                          strings.Repeat("A", 16<<10),
		"more than 16 KiB":                honest + strings.Repeat("A", 16<<10),
		"more than 16 KiB, well signed":   ecSigner().sign(t, good(time.Now(), map[string]any{"jti": strings.Repeat("A", 13<<10)})),
		"16 MiB":                          strings.Repeat("A.", 8<<20),
	} {
		t.Run(name, func(t *testing.T) {
			secret := jose.JSONWebKey{KeyID: "secret", Key: []byte("0123456789abcdef0123456789abcdef"), Algorithm: "HS256"}
			keys := &source{document: keySet(t, rsaSigner().public(), ecSigner().public(), secret)}
			v := newVerifier(t, podtoken.DefaultConfig(), keys)
			wantGood(t, v, honest)
			if token == honest {
				t.Fatal("this token is not forged")
			}
			// The keys were read for the honest one just now.
			want := podtoken.ErrInvalid
			if name == "an unknown key" || name == "a secret's id" || name == "a key of its own in the header" {
				want = podtoken.ErrUnavailable
			}
			wantError(t, v, token, want)
			// One that only this token asks them for.
			wantError(t, newVerifier(t, podtoken.DefaultConfig(), keys), token, podtoken.ErrInvalid)
		})
	}
}

// TestAKeyServesOnlyItsOwnAlgorithm has keys that leave their algorithm open.
func TestAKeyServesOnlyItsOwnAlgorithm(t *testing.T) {
	open := func(s signer, use string) jose.JSONWebKey {
		key := s.public()
		key.Algorithm, key.Use = "", use
		return key
	}
	keys := &source{document: keySet(t, open(rsaSigner(), ""), open(ecSigner(), "sig"), open(otherSigner(), "enc"))}
	v := newVerifier(t, podtoken.DefaultConfig(), keys)
	said := good(time.Now(), nil)
	wantGood(t, v, rsaSigner().sign(t, said))
	wantGood(t, v, ecSigner().sign(t, said))
	wantError(t, v, rsaSigner().sign(t, said, "ec"), podtoken.ErrInvalid)
	wantError(t, v, ecSigner().sign(t, said, "rsa"), podtoken.ErrInvalid)
	pss := signer{"rsa", jose.PS256, rsaSigner().key}
	wantError(t, v, pss.sign(t, said), podtoken.ErrInvalid)
	wantError(t, newVerifier(t, podtoken.DefaultConfig(), keys), otherSigner().sign(t, said), podtoken.ErrInvalid)
}

func TestErrorsRepeatNothingOfAForgedToken(t *testing.T) {
	keys := &source{}
	keys.set(t, rsaSigner())
	for _, header := range []string{`{"alg":"\n[31mX","kid":"rsa"}`, `{"alg":"ES256","kid":"\n[31mX"}`, `{"alg":"RS256","kid":"rsa","x":"[31mX"`} {
		_, err := newVerifier(t, podtoken.DefaultConfig(), keys).Verify(base64.RawURLEncoding.EncodeToString([]byte(header)) + ".e30.AAAA")
		if err == nil || strings.Contains(err.Error(), "31m") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestNewSaysWhatIsWrong(t *testing.T) {
	deps := podtoken.Deps{Keys: &source{}, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for _, c := range []struct {
		config podtoken.Config
		deps   podtoken.Deps
		want   string
	}{
		{podtoken.Config{}, deps, "Audience"},
		{podtoken.Config{Audience: "a", Leeway: -1}, deps, "Leeway"},
		{podtoken.Config{Audience: "a", Leeway: time.Hour}, deps, "Leeway"},
		{podtoken.DefaultConfig(), podtoken.Deps{}, "Keys"},
	} {
		if _, err := podtoken.New(c.config, c.deps); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the error is %v, want one about %s", err, c.want)
		}
	}
}
