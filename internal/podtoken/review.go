package podtoken

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// reviewWithin bounds one review.
const reviewWithin = 2 * time.Second

// Reviewer asks the issuer of a token whether that is valid. ClusterReviews implements it.
type Reviewer interface {
	// Review reports whether the cluster issued the token for the audience and it is valid
	// now. It returns early when ctx ends.
	Review(ctx context.Context, token, audience string) (bool, error)
}

// review returns what a token says if the API server vouches for it.
func (v *Verifier) review(token string, signed signed) (claims, error) {
	var c claims
	if err := signed.token.UnsafeClaimsWithoutVerification(&c); err != nil {
		return claims{}, fmt.Errorf("%w: its contents are not those of a service account token", ErrInvalid)
	}
	pod := c.Kubernetes.Pod
	known := v.deps.Known != nil && v.deps.Known(pod.UID, c.Kubernetes.Namespace, pod.Name)
	if !v.reviews.allow(v.deps.Now(), pod.UID, known) {
		return claims{}, fmt.Errorf("%w: the token names a key that is not known here, and too many such tokens came: try again", ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(context.Background(), reviewWithin)
	defer cancel()
	counts, err := v.deps.Reviewer.Review(ctx, token, v.config.Audience)
	switch {
	case err != nil:
		return claims{}, fmt.Errorf("%w: the token names a key that is not known here, and the API server cannot be asked: %w", ErrUnavailable, err)
	case !counts:
		return claims{}, fmt.Errorf("%w: the API server says so", ErrInvalid)
	}
	return c, nil
}

// ClusterReviews asks the API server. It takes the right to create tokenreviews.
type ClusterReviews struct {
	// Client is the cluster's client for them. Who asks for no reviews does not link it.
	Client interface {
		Create(ctx context.Context, review *authenticationv1.TokenReview, options metav1.CreateOptions) (*authenticationv1.TokenReview, error)
	}
}

// Review implements Reviewer.
func (c ClusterReviews) Review(ctx context.Context, token, audience string) (bool, error) {
	review, err := c.Client.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("podtoken: create a TokenReview: %w", err)
	}
	// An API server that knows no audiences names none, and must not count.
	return review.Status.Authenticated && slices.Contains(review.Status.Audiences, audience), nil
}
