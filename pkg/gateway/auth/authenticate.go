package auth

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// What Authenticate fails with.
var (
	// ErrMissing says that the caller has shown nothing.
	ErrMissing = errors.New("the namespace requires credentials")
	// ErrInvalid says that the credentials are invalid.
	ErrInvalid = errors.New("the credentials do not count")
	// ErrNotAllowed says that the caller is known, and may not call.
	ErrNotAllowed = errors.New("the caller may not call this")
	// ErrUnavailable says that the credentials cannot be checked now.
	ErrUnavailable = errors.New("the credentials cannot be checked now")
)

// Caller is an authenticated caller.
type Caller struct {
	// Name is key:ID for an API key and ISSUER:SUBJECT for a token, with unusual characters in
	// the subject percent-encoded. It is empty where no authentication is required.
	Name string
	// Spent is the header with the credential, which the function does not need.
	Spent string
}

// state is what counts at one time.
type state struct {
	policy  Policy
	keys    keyIndex
	issuers issuers
}

// authenticate identifies the caller and decides whether it may call the function of that
// name, which need not exist.
func (s *state) authenticate(h http.Header, key invocation.FunctionKey, now time.Time) (Caller, error) {
	switch s.policy.Auth.mode(key.Namespace) {
	case ModeNone:
		return Caller{}, nil
	case ModeRequired:
	default:
		return Caller{}, fmt.Errorf("%w: what the namespace requires is not known to this release", ErrUnavailable)
	}
	shown, from, err := credential(h)
	if err != nil {
		return Caller{}, err
	}
	p, err := s.prove(shown, now)
	if err != nil {
		return Caller{}, err
	}
	if !p.scope.Permits(key) {
		return Caller{}, fmt.Errorf("%w: %s has no right to call %s", ErrNotAllowed, p.name, key)
	}
	return Caller{Name: p.name, Spent: from}, nil
}

// prove returns what a credential proves.
func (s *state) prove(shown string, now time.Time) (proven, error) {
	if !strings.HasPrefix(shown, keyPrefix) {
		return s.issuers.verify(shown, now)
	}
	key, err := s.keys.find(shown, now)
	return proven{name: keysName + ":" + key.ID, scope: key.Allow}, err
}

// credential is what the caller shows, and in which header. An API key in a
// header of its own leaves Authorization to the function.
func credential(h http.Header) (shown, from string, err error) {
	keys, authorizations := h[invocation.HeaderKey], h["Authorization"]
	switch {
	case len(keys) == 1 && keys[0] != "":
		return keys[0], invocation.HeaderKey, nil
	case len(keys) > 0:
		return "", "", fmt.Errorf("%w: send %s once", ErrInvalid, invocation.HeaderKey)
	case len(authorizations) == 0:
		return "", "", fmt.Errorf("%w: send an API key in %s, or a key or token as Authorization: Bearer", ErrMissing, invocation.HeaderKey)
	case len(authorizations) > 1:
		return "", "", fmt.Errorf("%w: send Authorization once", ErrInvalid)
	}
	scheme, shown, _ := strings.Cut(authorizations[0], " ")
	if shown = strings.TrimSpace(shown); !strings.EqualFold(scheme, "Bearer") || shown == "" {
		return "", "", fmt.Errorf("%w: send an API key in %s, or a key or token as Authorization: Bearer", ErrMissing, invocation.HeaderKey)
	}
	return shown, "Authorization", nil
}

// everything is the entry of a scope that permits all functions.
const everything = "*"

// Scope is what a caller may call: namespaces, functions as NAMESPACE/NAME, or *
// for everything.
type Scope []string

// Permits reports whether the scope includes a function.
func (s Scope) Permits(key invocation.FunctionKey) bool {
	for _, entry := range s {
		if entry == everything || entry == key.Namespace || entry == key.String() {
			return true
		}
	}
	return false
}

// validate returns an error that names the field if the scope is invalid.
func (s Scope) validate(field string) error {
	if len(s) == 0 {
		return fmt.Errorf("%s is empty: list namespaces, functions as NAMESPACE/NAME, or *", field)
	}
	for i, entry := range s {
		if entry == everything {
			continue
		}
		namespace, name, named := strings.Cut(entry, "/")
		if len(validation.IsDNS1123Label(namespace)) > 0 || (named && len(validation.IsDNS1123Label(name)) > 0) {
			return fmt.Errorf("%s[%d] %q is neither a namespace nor NAMESPACE/NAME nor *", field, i, entry)
		}
	}
	return nil
}
