package podtoken_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/windlass-dev/windlass/internal/podtoken"
)

// reviewer answers what it is told to, and counts.
type reviewer struct {
	counts bool
	fault  error
	asked  int
}

func (r *reviewer) Review(_ context.Context, _, audience string) (bool, error) {
	if audience != podtoken.Audience {
		return false, errors.New("another audience")
	}
	r.asked++
	return r.counts, r.fault
}

// reviewed runs a test with a Verifier that knows one key and has a reviewer.
func reviewed(t *testing.T, body func(t *testing.T, v *podtoken.Verifier, keys *source, r *reviewer)) {
	synctest.Test(t, func(t *testing.T) {
		keys, r := &source{}, &reviewer{}
		keys.set(t, ecSigner())
		v, err := podtoken.New(podtoken.DefaultConfig(), podtoken.Deps{
			Keys: keys, Reviewer: r, Known: isKnown, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		body(t, v, keys, r)
	})
}

func TestTheAPIServerVouchesForATokenWhoseKeyIsUnknown(t *testing.T) {
	reviewed(t, func(t *testing.T, v *podtoken.Verifier, _ *source, r *reviewer) {
		r.counts = true
		token := always(t, otherSigner())
		wantGood(t, v, token)
		wantGood(t, v, token)
		time.Sleep(59 * time.Second)
		wantGood(t, v, token)
		if r.asked != 1 {
			t.Errorf("asked %d times within a minute, want once", r.asked)
		}
		time.Sleep(2 * time.Second)
		r.counts = false
		wantError(t, v, token, podtoken.ErrInvalid)
	})
}

func TestAKnownKeyNeedsNoReview(t *testing.T) {
	reviewed(t, func(t *testing.T, v *podtoken.Verifier, _ *source, r *reviewer) {
		wantGood(t, v, always(t, ecSigner()))
		// Nor does a wrong signature get a second chance.
		r.counts = true
		wantError(t, v, always(t, otherSigner(), "ec"), podtoken.ErrInvalid)
		if r.asked != 0 {
			t.Errorf("asked %d times", r.asked)
		}
	})
}

func TestAReviewedTokenMustStillBeThePodsAndForUs(t *testing.T) {
	reviewed(t, func(t *testing.T, v *podtoken.Verifier, keys *source, r *reviewer) {
		keys.fail()
		r.counts = true
		for _, claim := range []string{"aud", "exp", "sub", "kubernetes.io"} {
			token := otherSigner().sign(t, good(time.Now(), map[string]any{claim: nil}))
			wantError(t, v, token, podtoken.ErrInvalid)
		}
	})
}

func TestReviewsAreBounded(t *testing.T) {
	reviewed(t, func(t *testing.T, v *podtoken.Verifier, _ *source, r *reviewer) {
		for i := range 1000 {
			if _, err := v.Verify(always(t, otherSigner(), fmt.Sprint(i))); err == nil {
				t.Fatal("a token counts that the API server does not know")
			}
			time.Sleep(10 * time.Millisecond)
		}
		if r.asked < 50 || r.asked > 60 {
			t.Errorf("asked %d times in 10 s, want 5 a second and 10 at once", r.asked)
		}
	})
}

// isKnown is what a scheduler says of its pods.
func isKnown(uid, namespace, name string) bool {
	return strings.HasPrefix(uid, "known-") && namespace == "shop" && name == "hello-"+uid
}

// TestS19StrangersDoNotStarveKnownPods floods a scheduler that cannot read the cluster's
// keys: with tokens of unknown pods, and with those of one known pod, which a function
// could make for its own.
func TestS19StrangersDoNotStarveKnownPods(t *testing.T) {
	of := func(t *testing.T, uid string) string {
		return otherSigner().sign(t, good(time.Now(), map[string]any{"kubernetes.io": map[string]any{
			"namespace": "shop", "pod": map[string]any{"name": "hello-" + uid, "uid": uid}, "serviceaccount": map[string]any{"name": "resize", "uid": "c7a1"},
		}}))
	}
	for name, invented := range map[string]func(i int) string{
		"of unknown pods":  func(i int) string { return fmt.Sprint("unknown-", i) },
		"of one known pod": func(int) string { return "known-evil" },
	} {
		t.Run(name, func(t *testing.T) {
			reviewed(t, func(t *testing.T, v *podtoken.Verifier, keys *source, r *reviewer) {
				keys.fail()
				for second := range 10 {
					r.counts, r.asked = false, 0
					for i := range 100 {
						if _, err := v.Verify(of(t, invented(second*100+i))); err == nil {
							t.Fatal("an invented token counts")
						}
					}
					if r.asked > 11 {
						t.Fatalf("strangers make the API server review %d tokens in a second", r.asked)
					}
					r.counts = true
					for i := range 19 {
						wantGood(t, v, of(t, fmt.Sprintf("known-%d-%d", second, i)))
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

func TestWithoutAnAnswerNothingCanBeTold(t *testing.T) {
	reviewed(t, func(t *testing.T, v *podtoken.Verifier, keys *source, r *reviewer) {
		keys.fail()
		r.fault = errors.New("away")
		wantError(t, v, always(t, ecSigner()), podtoken.ErrUnavailable)
	})
}

func TestClusterReviewsInsistOnTheAudience(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status authenticationv1.TokenReviewStatus
		fault  error
		counts bool
	}{
		{name: "good", status: authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: []string{"a"}}, counts: true},
		{name: "not authenticated", status: authenticationv1.TokenReviewStatus{Audiences: []string{"a"}}},
		{name: "no audience", status: authenticationv1.TokenReviewStatus{Authenticated: true}},
		{name: "forbidden", fault: errors.New("forbidden")},
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", "tokenreviews", func(action ktesting.Action) (bool, runtime.Object, error) {
			review := action.(ktesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
			if review.Spec.Token != "t" || len(review.Spec.Audiences) != 1 {
				t.Errorf("%s: asked about %+v", tt.name, review.Spec)
			}
			review.Status = tt.status
			return true, review, tt.fault
		})
		counts, err := podtoken.ClusterReviews{Client: client.AuthenticationV1().TokenReviews()}.Review(t.Context(), "t", "a")
		if counts != tt.counts || (err != nil) != (tt.fault != nil) {
			t.Errorf("%s: %v, %v", tt.name, counts, err)
		}
	}
}
