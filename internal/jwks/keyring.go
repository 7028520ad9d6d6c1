package jwks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// fetchWithin bounds one reading of the keys, and so how long Get waits.
	fetchWithin = 2 * time.Second
	// readEvery is how often the keys are read, and retryAfter how soon again
	// if that failed.
	readEvery  = 5 * time.Minute
	retryAfter = 15 * time.Second
	// countFor is how long keys remain valid after they were read: long enough to repair an
	// issuer, and short enough that a removed key does not outlive its day because its
	// holder keeps the issuer from being read.
	countFor = 24 * time.Hour
)

// What Get fails with.
var (
	// ErrUnknownKey says that the source has no such key.
	ErrUnknownKey = errors.New("tokens: no such key")
	// ErrUnavailable says that the key is unknown, and that its source cannot be read now.
	ErrUnavailable = errors.New("tokens: the keys cannot be read now")
	// ErrOtherAlgorithm says that the source names another algorithm for the key.
	ErrOtherAlgorithm = errors.New("tokens: the key is for another algorithm")
)

// KeySource reads the public keys of an issuer.
type KeySource interface {
	// Keys returns them as a JSON Web Key Set. It returns when ctx ends.
	Keys(ctx context.Context) ([]byte, error)
}

// Keyring holds an issuer's keys by their ids. It is for concurrent use.
type Keyring struct {
	source     KeySource
	rest       time.Duration
	now        func() time.Time
	mayBeEmpty bool

	mu   sync.Mutex
	keys map[string]jose.JSONWebKey
	// asOf is when the reading of the keys began.
	asOf time.Time
	// reading is the reading that is under way, nil if there is none, and
	// began is when the last one began.
	reading *reading
	began   time.Time
}

// NewKeyring makes an empty Keyring. It starts nothing; without Run, it reads keys only for a
// lookup of an unknown one, and rest is the minimum time between two such reads.
func NewKeyring(source KeySource, rest time.Duration, now func() time.Time) *Keyring {
	return &Keyring{source: source, rest: rest, now: now}
}

// MayBeEmpty says that the source may have no key left, as an issuer that revokes all. Otherwise
// such a reading has failed, and the keys of before stay. It returns the Keyring, before its first use.
func (r *Keyring) MayBeEmpty() *Keyring {
	r.mayBeEmpty = true
	return r
}

// Refresh reads the keys now. If that fails, those of before stay.
func (r *Keyring) Refresh(ctx context.Context) error { return r.read(ctx, 0) }

// Run keeps the keys fresh until ctx ends, and then returns nil. It calls failed
// for every reading that failed.
func (r *Keyring) Run(ctx context.Context, failed func(error)) error {
	for {
		wait := readEvery
		if err := r.read(ctx, 0); err != nil && ctx.Err() == nil {
			wait = retryAfter
			failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// reading is one attempt at reading the keys, which several may wait for.
type reading struct {
	done chan struct{}
	err  error // to be read when done is closed
}

// Get returns the key with an id for signatures of an algorithm. If it is unknown,
// or was read more than 24 hours ago, it sees to it that the keys are read, unless
// they were just now. It fails with ErrUnknownKey, ErrOtherAlgorithm or
// ErrUnavailable.
func (r *Keyring) Get(id, algorithm string) (jose.JSONWebKey, error) {
	if key, ok := r.known(id); ok {
		return key, fits(key, algorithm)
	}
	if err := r.read(context.Background(), r.rest); err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if key, ok := r.known(id); ok {
		return key, fits(key, algorithm)
	}
	return jose.JSONWebKey{}, ErrUnknownKey
}

// fits compares only if the source names an algorithm for the key, which it need not.
func fits(key jose.JSONWebKey, algorithm string) error {
	if key.Algorithm != "" && key.Algorithm != algorithm {
		return ErrOtherAlgorithm
	}
	return nil
}

func (r *Keyring) known(id string) (jose.JSONWebKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now().Sub(r.asOf) > countFor {
		return jose.JSONWebKey{}, false
	}
	key, ok := r.keys[id]
	return key, ok
}

// read reads the keys, or waits for a running read. It fails if they were read less than rest
// ago: whether they have changed since is not known yet. If it fails, the previous keys stay.
func (r *Keyring) read(ctx context.Context, rest time.Duration) error {
	reading, mine, err := r.joinReading(rest)
	if err != nil {
		return err
	}
	if mine {
		r.endReading(reading, r.fetch(ctx))
	}
	<-reading.done
	return reading.err
}

// joinReading returns the reading to wait for; if it is mine, it has yet to be done.
func (r *Keyring) joinReading(rest time.Duration) (_ *reading, mine bool, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading != nil {
		return r.reading, false, nil
	}
	now := r.now()
	if !r.began.IsZero() && now.Sub(r.began) < rest {
		return nil, false, fmt.Errorf("they are read once in %v at most: try again after that", rest)
	}
	r.reading, r.began = &reading{done: make(chan struct{})}, now
	return r.reading, true, nil
}

func (r *Keyring) fetch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
	defer cancel()
	document, err := r.source.Keys(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(document)
	if err != nil {
		return err
	}
	if len(keys) == 0 && !r.mayBeEmpty {
		return errors.New("tokens: the key set holds none to check signatures with")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.asOf = keys, r.began
	return nil
}

func (r *Keyring) endReading(reading *reading, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	reading.err = err
	r.reading = nil
	close(reading.done)
}

// parseKeys returns the keys of a key set that can be used. It leaves out others,
// so that a key of a kind that is not known yet does not spoil the rest.
func parseKeys(document []byte) (map[string]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(document, &set); err != nil {
		return nil, fmt.Errorf("tokens: the keys are not a JSON Web Key Set: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("tokens: the keys are not a JSON Web Key Set: it has no list of keys")
	}
	keys := make(map[string]jose.JSONWebKey, len(set.Keys))
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || !key.Valid() || !key.IsPublic() || key.KeyID == "" || (key.Use != "" && key.Use != "sig") {
			continue
		}
		keys[key.KeyID] = key
	}
	return keys, nil
}
