package podidentity

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
	// fetchWithin bounds one reading of the keys, and so how long Verify waits.
	fetchWithin = 2 * time.Second
	// fetchEvery is the shortest time between two readings that tokens cause.
	fetchEvery = 5 * time.Second
)

// algorithms are those that clusters sign tokens with. Each kind of key fits only
// one of them, and none has a secret as its key, for which a public one could be
// passed off.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512}

// keyring holds the cluster's keys by their ids.
type keyring struct {
	source KeySource
	now    func() time.Time

	mu   sync.Mutex
	keys map[string]jose.JSONWebKey
	// reading is the reading that is under way, nil if there is none, and
	// began is when the last one began.
	reading *reading
	began   time.Time
}

// reading is one attempt at reading the keys, which several may wait for.
type reading struct {
	done chan struct{}
	err  error // to be read when done is closed
}

// get returns the key with an id. If it is unknown, it sees to it that the keys
// are read, unless they were just now.
func (r *keyring) get(id string) (jose.JSONWebKey, error) {
	if key, ok := r.known(id); ok {
		return key, nil
	}
	if err := r.read(context.Background(), fetchEvery); err != nil {
		return jose.JSONWebKey{}, fmt.Errorf("%w: the token names a key that is not known here: %w", ErrUnavailable, err)
	}
	if key, ok := r.known(id); ok {
		return key, nil
	}
	return jose.JSONWebKey{}, fmt.Errorf("%w: it is signed with a key that is not among the cluster's", ErrInvalid)
}

func (r *keyring) known(id string) (jose.JSONWebKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, ok := r.keys[id]
	return key, ok
}

// read reads the keys, or waits for whoever does. It fails if they were read less
// than rest ago: whether they have changed since cannot be told yet. What was read
// before stays if it fails.
func (r *keyring) read(ctx context.Context, rest time.Duration) error {
	reading, mine, err := r.begin(rest)
	if err != nil {
		return err
	}
	if mine {
		r.finish(reading, r.fetch(ctx))
	}
	<-reading.done
	return reading.err
}

// begin returns the reading to wait for; if it is mine, it has yet to be done.
func (r *keyring) begin(rest time.Duration) (_ *reading, mine bool, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading != nil {
		return r.reading, false, nil
	}
	now := r.now()
	if !r.began.IsZero() && now.Sub(r.began) < rest {
		return nil, false, fmt.Errorf("the cluster's keys are read once in %v at most: try again after that", rest)
	}
	r.reading, r.began = &reading{done: make(chan struct{})}, now
	return r.reading, true, nil
}

func (r *keyring) fetch(ctx context.Context) error {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = keys
	return nil
}

func (r *keyring) finish(reading *reading, err error) {
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
		return nil, fmt.Errorf("podidentity: the cluster's keys are not a JSON Web Key Set: %w", err)
	}
	keys := make(map[string]jose.JSONWebKey, len(set.Keys))
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || !key.Valid() || !key.IsPublic() || key.KeyID == "" || (key.Use != "" && key.Use != "sig") {
			continue
		}
		keys[key.KeyID] = key
	}
	if len(keys) == 0 {
		return nil, errors.New("podidentity: the cluster's keys hold none to check signatures with")
	}
	return keys, nil
}
