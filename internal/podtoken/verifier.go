package podtoken

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/internal/jwks"
)

// readRest is the shortest time between two readings of the keys that tokens
// cause.
const readRest = 5 * time.Second

// What Verify fails with.
var (
	// ErrInvalid says that a token is not a pod's for this audience, or not valid now. The
	// same token may become valid later only if its time had not come, or if the API server
	// did not know its key yet.
	ErrInvalid = errors.New("podtoken: the token is not valid")
	// ErrUnavailable says that the key of a token cannot be read now, so that the token cannot
	// be checked.
	ErrUnavailable = errors.New("podtoken: the token cannot be checked now")
)

// Identity is the pod of a verified token.
type Identity struct {
	Namespace      string
	PodName        string
	PodUID         string
	ServiceAccount string
	// Expires is when the token does.
	Expires time.Time
}

// Verifier checks tokens. It is for concurrent use.
type Verifier struct {
	config   Config
	deps     Deps
	keys     *jwks.Keyring
	verified jwks.Seen[Identity]
	// reviews bounds what tokens make the API server do.
	reviews *budget
}

// New makes a Verifier. It starts nothing; without Run, keys are read only when a
// token names one that is unknown.
func New(config Config, deps Deps) (*Verifier, error) {
	if err := errors.Join(config.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	return &Verifier{
		config: config, deps: deps,
		keys:    jwks.NewKeyring(deps.Keys, readRest, deps.Now),
		reviews: newBudget(),
	}, nil
}

// Verify returns whose token it is. It fails with ErrInvalid or ErrUnavailable.
func (v *Verifier) Verify(token string) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, errTooLong
	}
	digest := jwks.DigestOf(token)
	if identity, ok := v.verified.Get(digest, v.deps.Now()); ok {
		return identity, nil
	}
	signed, err := parse(token)
	if err != nil {
		return Identity{}, err
	}
	claims, err := v.trusted(token, signed)
	if err != nil {
		return Identity{}, err
	}
	now := v.deps.Now()
	identity, err := v.config.validateClaims(claims, now)
	if err != nil {
		return Identity{}, err
	}
	v.verified.Put(digest, identity, now, identity.Expires.Add(v.config.Leeway))
	return identity, nil
}

// trusted returns what a token says if the cluster has issued it: by its key or,
// if that cannot be had, by what the API server says.
func (v *Verifier) trusted(token string, signed signed) (claims, error) {
	key, err := v.keys.Get(signed.keyID, signed.algorithm)
	switch {
	case err == nil:
		return signed.claims(key)
	case errors.Is(err, jwks.ErrOtherAlgorithm):
		return claims{}, fmt.Errorf("%w: it is not signed with the algorithm for which the cluster publishes the key", ErrInvalid)
	case v.deps.Reviewer != nil:
		return v.review(token, signed)
	case errors.Is(err, jwks.ErrUnknownKey):
		return claims{}, fmt.Errorf("%w: it is signed with a key that is not among the cluster's", ErrInvalid)
	}
	return claims{}, fmt.Errorf("%w: the token names a key that is not known here: %w", ErrUnavailable, err)
}

// Run keeps the keys fresh until ctx ends, and then returns nil.
func (v *Verifier) Run(ctx context.Context) error {
	return v.keys.Run(ctx, func(err error) {
		v.deps.Log.Warn("the keys of service account tokens could not be read; those read before count for 24 hours", "err", err)
	})
}
