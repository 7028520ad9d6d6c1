package podidentity

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

const (
	// readEvery is how often the keys are read, and retryAfter how soon again
	// if that failed.
	readEvery  = 5 * time.Minute
	retryAfter = 15 * time.Second
)

// What Verify fails with.
var (
	// ErrInvalid says that a token is not one of a pod for this audience that
	// is valid now. The same token may count later only if it was not valid
	// yet, or if the API server that was asked did not know its key yet.
	ErrInvalid = errors.New("podidentity: the token does not count")
	// ErrUnavailable says that the key of a token cannot be had now, so that
	// nothing can be told of it.
	ErrUnavailable = errors.New("podidentity: the token cannot be checked now")
)

// Identity is what a token says of its pod.
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
	keyring  keyring
	verified verified
}

// New makes a Verifier. It starts nothing; without Run, keys are read only when a
// token names one that is unknown.
func New(config Config, deps Deps) (*Verifier, error) {
	if err := errors.Join(config.Validate(), deps.validate()); err != nil {
		return nil, err
	}
	return &Verifier{config: config, deps: deps, keyring: keyring{source: deps.Keys, now: deps.Now}}, nil
}

// Verify returns whose token it is. It fails with ErrInvalid or ErrUnavailable.
func (v *Verifier) Verify(token string) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, errTooLong
	}
	digest := sha256.Sum256([]byte(token))
	if identity, ok := v.verified.get(digest, v.deps.Now()); ok {
		return identity, nil
	}
	signed, err := parse(token)
	if err != nil {
		return Identity{}, err
	}
	key, err := v.keyring.get(signed.keyID)
	if err != nil {
		return Identity{}, err
	}
	claims, err := signed.claims(key)
	if err != nil {
		return Identity{}, err
	}
	now := v.deps.Now()
	identity, err := v.config.judge(claims, now)
	if err != nil {
		return Identity{}, err
	}
	until := now.Add(trustFor)
	if end := identity.Expires.Add(v.config.Leeway); end.Before(until) {
		until = end
	}
	v.verified.put(digest, remembered{identity: identity, until: until})
	return identity, nil
}

// Run keeps the keys fresh until ctx ends, and then returns nil.
func (v *Verifier) Run(ctx context.Context) error {
	for {
		wait := readEvery
		if err := v.keyring.read(ctx, 0); err != nil && ctx.Err() == nil {
			wait = retryAfter
			v.deps.Log.Warn("the keys of service account tokens could not be read; those read before still count", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}
