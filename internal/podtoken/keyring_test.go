package podtoken_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/windlass-dev/windlass/internal/podtoken"
)

// always is long after every token of a test has begun to count, and none ends.
func always(t *testing.T, s signer, id ...string) string {
	t.Helper()
	return s.sign(t, good(time.Now(), map[string]any{"exp": time.Now().Add(24 * time.Hour).Unix()}), id...)
}

func bubble(t *testing.T, body func(t *testing.T, v *podtoken.Verifier, keys *source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		keys := &source{}
		keys.set(t, ecSigner())
		body(t, newVerifier(t, podtoken.DefaultConfig(), keys), keys)
	})
}

// running runs v until the test ends.
func running(t *testing.T, v *podtoken.Verifier) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	synctest.Wait()
}

func TestANewKeyIsReadWhenItIsNeeded(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		wantGood(t, v, always(t, ecSigner()))
		wantGood(t, v, always(t, ecSigner()))
		keys.wantAsked(t, 1)

		keys.set(t, ecSigner(), otherSigner())
		wantError(t, v, always(t, otherSigner()), podtoken.ErrUnavailable)
		keys.wantAsked(t, 1)
		time.Sleep(5 * time.Second)
		wantGood(t, v, always(t, otherSigner()))
		wantGood(t, v, always(t, ecSigner()))
		keys.wantAsked(t, 2)
	})
}

func TestManyUnknownKeysCostOneReading(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		honest := always(t, ecSigner())
		wantGood(t, v, honest)
		for i := range 1000 {
			if _, err := v.Verify(always(t, otherSigner(), fmt.Sprint(i))); err == nil {
				t.Fatal("an unknown key counts")
			}
			time.Sleep(10 * time.Millisecond)
		}
		// One for the honest token, and then after 5 s.
		keys.wantAsked(t, 2)
		wantGood(t, v, honest)
	})
}

func TestUnknownKeysShareAReading(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		keys.slow(time.Hour)
		start := time.Now()
		var all sync.WaitGroup
		for i := range 50 {
			token := always(t, ecSigner(), fmt.Sprint(i))
			all.Go(func() { wantError(t, v, token, podtoken.ErrUnavailable) })
		}
		all.Wait()
		keys.wantAsked(t, 1)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("they waited for %v, want 2s", took)
		}

		time.Sleep(5 * time.Second)
		keys.slow(time.Second)
		for range 50 {
			token := always(t, ecSigner())
			all.Go(func() { wantGood(t, v, token) })
		}
		all.Wait()
		keys.wantAsked(t, 2)
	})
}

func TestAKnownKeyWaitsForNothing(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		wantGood(t, v, always(t, ecSigner()))
		time.Sleep(time.Minute)
		keys.slow(time.Hour)
		unknown := always(t, otherSigner())
		var other sync.WaitGroup
		other.Go(func() { wantError(t, v, unknown, podtoken.ErrUnavailable) })
		synctest.Wait()
		start := time.Now()
		wantGood(t, v, always(t, ecSigner()))
		if took := time.Since(start); took != 0 {
			t.Errorf("it waited for %v", took)
		}
		other.Wait()
	})
}

func TestKeysOutliveTheAPIServer(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		running(t, v)
		keys.wantAsked(t, 1)
		secret := string(keySet(t, jose.JSONWebKey{KeyID: "ec", Key: ecSigner().key}))
		for name, broken := range map[string]func(){
			"away":     keys.fail,
			"hanging":  func() { keys.slow(time.Hour) },
			"no JSON":  func() { keys.setDocument("<html>") },
			"no keys":  func() { keys.setDocument(`{"keys":[]}`) },
			"bad keys": func() { keys.setDocument(`{"keys":[{"kty":"oct","kid":"ec","k":"AAAA"},{"kty":"new"},7]}`) },
			"secrets":  func() { keys.setDocument(secret) },
		} {
			broken()
			time.Sleep(time.Hour)
			if _, err := v.Verify(always(t, ecSigner())); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantError(t, v, always(t, otherSigner()), podtoken.ErrUnavailable)
		}
		keys.set(t, otherSigner())
		time.Sleep(20 * time.Second)
		wantGood(t, v, always(t, otherSigner()))
	})
}

func TestWithoutKeysNothingCanBeTold(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		keys.fail()
		running(t, v)
		wantError(t, v, always(t, ecSigner()), podtoken.ErrUnavailable)
		wantError(t, v, "no token", podtoken.ErrInvalid)
		keys.set(t, ecSigner())
		time.Sleep(16 * time.Second)
		keys.wantAsked(t, 2)
		wantGood(t, v, always(t, ecSigner()))
		keys.wantAsked(t, 2)
	})
}

func TestAKeyThatIsCancelledEnds(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		keys.set(t, ecSigner(), otherSigner())
		running(t, v)
		token := always(t, ecSigner())
		wantGood(t, v, token)
		keys.set(t, otherSigner())
		time.Sleep(4 * time.Minute)
		wantGood(t, v, token)
		time.Sleep(2*time.Minute + time.Second)
		keys.wantAsked(t, 2)
		wantError(t, v, token, podtoken.ErrInvalid)
	})
}

func TestAKeyOfAnUnknownKindSpoilsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		set := string(keySet(t, ecSigner().public()))
		keys.setDocument(`{"keys":[{"kty":"new","kid":"n"},` + set[len(`{"keys":[`):])
		wantGood(t, v, always(t, ecSigner()))
	})
}

func TestARememberedTokenStillExpires(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, _ *source) {
		token := ecSigner().sign(t, good(time.Now(), map[string]any{"exp": time.Now().Add(10 * time.Second).Unix()}))
		wantGood(t, v, token)
		time.Sleep(39 * time.Second)
		wantGood(t, v, token)
		time.Sleep(2 * time.Second)
		wantError(t, v, token, podtoken.ErrInvalid)
	})
}

func TestManyTokensAreAllRight(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		first := always(t, ecSigner())
		for range 10_000 {
			wantGood(t, v, always(t, ecSigner()))
		}
		wantGood(t, v, first)
		keys.wantAsked(t, 1)
	})
}

func TestVerifyIsForConcurrentUse(t *testing.T) {
	bubble(t, func(t *testing.T, v *podtoken.Verifier, keys *source) {
		running(t, v)
		tokens := []string{always(t, ecSigner()), always(t, ecSigner()), always(t, otherSigner())}
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				if _, err := v.Verify(tokens[i%3]); (err == nil) != (i%3 < 2) {
					t.Errorf("token %d: %v", i%3, err)
				}
			})
		}
		all.Wait()
	})
}
