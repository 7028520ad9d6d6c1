package podtoken

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// maxToken is the longest token that is looked at, in bytes. The cluster's are
// about 1 KiB long.
const maxToken = 16 << 10

// algorithms are those that clusters sign tokens with. Each kind of key fits only
// one of them, and none has a secret as its key, for which a public one could be
// passed off.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

var errTooLong = fmt.Errorf("%w: it is longer than %d bytes", ErrInvalid, maxToken)

// signed is an unverified token.
type signed struct {
	token            *jwt.JSONWebToken
	keyID, algorithm string
}

// parse takes a token apart. Its errors repeat nothing of the token, which may
// hold anything.
func parse(token string) (signed, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return signed{}, fmt.Errorf("%w: it is not a JSON Web Token that is signed with one of %v", ErrInvalid, algorithms)
	}
	header := parsed.Headers[0]
	if header.KeyID == "" {
		return signed{}, fmt.Errorf("%w: it does not name its key", ErrInvalid)
	}
	return signed{token: parsed, keyID: header.KeyID, algorithm: header.Algorithm}, nil
}

// claims are what a token of the cluster says.
type claims struct {
	jwt.Claims
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		Pod            object `json:"pod"`
		ServiceAccount object `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

type object struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// claims returns what the token says if it is signed with the key.
func (s signed) claims(key jose.JSONWebKey) (claims, error) {
	var c claims
	if err := s.token.Claims(key.Key, &c); err != nil {
		return claims{}, fmt.Errorf("%w: its signature is wrong, or its contents are not those of a service account token: %w", ErrInvalid, err)
	}
	return c, nil
}

// validateClaims decides whether what a token says counts.
func (c Config) validateClaims(said claims, now time.Time) (Identity, error) {
	kubernetes := said.Kubernetes
	switch {
	case !said.Audience.Contains(c.Audience):
		return Identity{}, fmt.Errorf("%w: it is for the audiences %q, not for %q", ErrInvalid, said.Audience, c.Audience)
	case len(c.Issuers) > 0 && !slices.Contains(c.Issuers, said.Issuer):
		return Identity{}, fmt.Errorf("%w: its issuer is %q, not one of %q", ErrInvalid, said.Issuer, c.Issuers)
	case said.Expiry == nil:
		return Identity{}, fmt.Errorf("%w: it never expires", ErrInvalid)
	case kubernetes.Pod.Name == "" || kubernetes.Pod.UID == "":
		return Identity{}, fmt.Errorf("%w: it is not bound to a pod", ErrInvalid)
	case kubernetes.Namespace == "" || kubernetes.ServiceAccount.Name == "",
		said.Subject != "system:serviceaccount:"+kubernetes.Namespace+":"+kubernetes.ServiceAccount.Name:
		return Identity{}, fmt.Errorf("%w: its subject %q is not the service account that it names", ErrInvalid, said.Subject)
	}
	if err := said.ValidateWithLeeway(jwt.Expected{Time: now}, c.Leeway); err != nil {
		return Identity{}, fmt.Errorf("%w: it is now %s: %w", ErrInvalid, now.UTC().Format(time.RFC3339), err)
	}
	return Identity{
		Namespace:      kubernetes.Namespace,
		PodName:        kubernetes.Pod.Name,
		PodUID:         kubernetes.Pod.UID,
		ServiceAccount: kubernetes.ServiceAccount.Name,
		Expires:        said.Expiry.Time(),
	}, nil
}
