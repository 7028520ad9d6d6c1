package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	// keyPrefix begins every API key, so that scanners for leaked secrets find it.
	keyPrefix = "wl_"
	idBytes   = 6
	// secretBytes is long enough that a plain digest cannot be reversed.
	secretBytes = 32
	// maxKey is more than the length of any API key.
	maxKey = 128
)

// KeysFileName is the list of API keys in a data folder, and in the Secret of a
// cluster.
const KeysFileName = "keys.yaml"

// Key is the stored part of an API key.
type Key struct {
	// ID names it; 12 hexadecimal digits, no secret.
	ID string `json:"id"`
	// Name tells people whose key it is; optional.
	Name string `json:"name,omitempty"`
	// SHA256 is the digest of the whole API key, in hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Allow is what its bearer may call.
	Allow   Scope     `json:"allow"`
	Created time.Time `json:"created,omitzero"`
	// Expires is when it ends; zero for never.
	Expires time.Time `json:"expires,omitzero"`
	// Requires names features that a gateway must support for the key to be valid. No release
	// defines any yet; it is read for files of a later one.
	Requires []string `json:"requires,omitempty"`
}

// KeyList is the file of API keys.
type KeyList struct {
	Keys []Key `json:"keys"`
}

// CheckName returns an error if a key cannot have this name.
func CheckName(name string) error {
	if !keyName.MatchString(name) {
		return fmt.Errorf("the name %q is not 1 to 63 letters, digits, dots, hyphens and underscores", name)
	}
	if isID(name) {
		return fmt.Errorf("the name %q looks like the ID of a key", name)
	}
	return nil
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

func isID(text string) bool {
	id, err := hex.DecodeString(text)
	return err == nil && len(id) == idBytes
}

// NewKey makes an API key: the secret, to be shown once, and the part to store. A validFor of
// 0 means that it does not expire.
func NewKey(allow Scope, now time.Time, validFor time.Duration) (secret string, _ Key, _ error) {
	if err := allow.validate("allow"); err != nil {
		return "", Key{}, fmt.Errorf("callers: %w", err)
	}
	var random [idBytes + secretBytes]byte
	rand.Read(random[:])
	id := hex.EncodeToString(random[:idBytes])
	secret = keyPrefix + id + "_" + hex.EncodeToString(random[idBytes:])
	digest := sha256.Sum256([]byte(secret))
	key := Key{ID: id, SHA256: hex.EncodeToString(digest[:]), Allow: allow, Created: now.UTC().Truncate(time.Second)}
	if validFor > 0 {
		key.Expires = key.Created.Add(validFor)
	}
	return secret, key, nil
}

// keyFile is a KeyList as it is kept.
type keyFile struct {
	header
	KeyList
}

// ParseKeys reads a list of keys in YAML for changing it. Unknown fields are an error, because
// writing the list would lose them. An empty document has no keys.
func ParseKeys(document []byte) (KeyList, error) {
	list, unknown, err := ReadKeys(document)
	if err == nil {
		err = unknownError(unknown)
	}
	if err != nil {
		return KeyList{}, fmt.Errorf("callers: the list of keys is wrong: %w", err)
	}
	return list, nil
}

// ReadKeys reads a list of keys in YAML that a later release may have written. unknown
// names what this one does not know: fields, which mean nothing, and keys that require
// something, which are left out.
func ReadKeys(document []byte) (_ KeyList, unknown []string, _ error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return KeyList{}, nil, nil
	}
	var file keyFile
	unknown, err := decode(document, KindKeys, &file)
	if err != nil {
		return KeyList{}, nil, err
	}
	list := file.KeyList
	list.Keys = slices.DeleteFunc(list.Keys, func(key Key) bool {
		for _, feature := range key.Requires {
			unknown = append(unknown, fmt.Sprintf("the key %q requires %q, which this release does not know", key.ID, feature))
		}
		return len(key.Requires) > 0
	})
	if err := list.validate(); err != nil {
		return KeyList{}, nil, err
	}
	return list, unknown, nil
}

// Encode writes what ParseKeys reads.
func (l KeyList) Encode() ([]byte, error) {
	return yaml.Marshal(keyFile{header{APIVersion, KindKeys}, l})
}

func (l KeyList) validate() error {
	var errs []error
	ids, names := map[string]bool{}, map[string]bool{}
	for i, key := range l.Keys {
		at := fmt.Sprintf("keys[%d]", i)
		if !isID(key.ID) {
			errs = append(errs, fmt.Errorf("%s.id %q is not %d hexadecimal digits", at, key.ID, 2*idBytes))
		}
		if ids[key.ID] {
			errs = append(errs, fmt.Errorf("%s.id %q is there twice: remove one", at, key.ID))
		}
		ids[key.ID] = true
		if key.Name != "" {
			if err := CheckName(key.Name); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", at, err))
			}
			if names[key.Name] {
				errs = append(errs, fmt.Errorf("%s.name %q is there twice: change one", at, key.Name))
			}
			names[key.Name] = true
		}
		if digest, err := hex.DecodeString(key.SHA256); err != nil || len(digest) != sha256.Size {
			errs = append(errs, fmt.Errorf("%s.sha256 is not %d hexadecimal digits", at, 2*sha256.Size))
		}
		errs = append(errs, key.Allow.validate(at+".allow"))
	}
	return errors.Join(errs...)
}

// Without is the list without the key of an id or a name, and that key if found.
func (l KeyList) Without(idOrName string) (_ KeyList, removed Key, found bool) {
	var rest KeyList
	for _, key := range l.Keys {
		if key.ID == idOrName || key.Name == idOrName && idOrName != "" {
			removed, found = key, true
		} else {
			rest.Keys = append(rest.Keys, key)
		}
	}
	return rest, removed, found
}

// Named reports whether a key has this name.
func (l KeyList) Named(name string) bool {
	return slices.ContainsFunc(l.Keys, func(key Key) bool { return key.Name == name })
}

// Expired reports whether a key has expired.
func (k Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

// keyIndex finds keys by their ids.
type keyIndex map[string]indexedKey

type indexedKey struct {
	Key
	digest [sha256.Size]byte
}

func (l KeyList) index() keyIndex {
	index := make(keyIndex, len(l.Keys))
	for _, key := range l.Keys {
		entry := indexedKey{Key: key}
		// Validated lists have nothing else.
		_, _ = hex.Decode(entry.digest[:], []byte(key.SHA256))
		index[key.ID] = entry
	}
	return index
}

// find returns the key for a secret. It takes as long for an unknown secret, which it compares
// with the digest of nothing.
func (x keyIndex) find(shown string, now time.Time) (Key, error) {
	if len(shown) > maxKey {
		return Key{}, fmt.Errorf("%w: it is longer than any API key", ErrInvalid)
	}
	id, _, _ := strings.Cut(strings.TrimPrefix(shown, keyPrefix), "_")
	entry, known := x[id]
	digest := sha256.Sum256([]byte(shown))
	if same := subtle.ConstantTimeCompare(digest[:], entry.digest[:]) == 1; !same || !known {
		return Key{}, fmt.Errorf("%w: there is no such API key; it may have been revoked", ErrInvalid)
	}
	if entry.Expired(now) {
		return Key{}, fmt.Errorf("%w: the API key %s expired at %s", ErrInvalid, entry.ID, entry.Expires.Format(time.RFC3339))
	}
	return entry.Key, nil
}
