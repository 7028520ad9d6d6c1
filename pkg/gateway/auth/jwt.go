package auth

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/windlass-dev/windlass/internal/jwks"
)

const (
	// maxToken is the size of the longest accepted token, in bytes.
	maxToken = 16 << 10
	// leeway is how far the clock here may differ from an issuer's.
	leeway = 30 * time.Second
	// jwksMinInterval is the shortest time between two readings of an issuer's keys that
	// tokens cause.
	jwksMinInterval = 10 * time.Second
	// wrongTokenTTL is how long a token with a wrong signature is remembered and not
	// checked again.
	wrongTokenTTL = time.Minute
)

var errSignature = fmt.Errorf("%w: the signature of the token is wrong", ErrInvalid)

// issuer checks the tokens of one Issuer.
type issuer struct {
	policy Issuer
	keys   *jwks.Keyring
	// file has the keys if the policy names one, and document is what it held at the last look. Only
	// the reader of files uses the latter.
	file     keysInFile
	document []byte
	seen     jwks.Seen[proven]
	// wrong has the tokens with invalid signatures. They have a cache of their own, so that
	// strangers cannot evict verified tokens.
	wrong jwks.Seen[error]
}

// proven is what a credential proves.
type proven struct {
	name  string
	scope Scope
}

// issuers finds issuers by what their tokens have as iss.
type issuers map[string]*issuer

// verify returns what a token proves. Its errors repeat nothing of a token whose signature was
// not verified.
func (all issuers) verify(token string, now time.Time) (proven, error) {
	if len(token) > maxToken {
		return proven{}, fmt.Errorf("%w: it is longer than %d bytes", ErrInvalid, maxToken)
	}
	parsed, err := jwt.ParseSigned(token, signatures)
	if err != nil {
		return proven{}, fmt.Errorf("%w: it is neither an API key nor a signed JSON Web Token", ErrInvalid)
	}
	var unproven jwt.Claims
	if err := parsed.UnsafeClaimsWithoutVerification(&unproven); err != nil {
		return proven{}, fmt.Errorf("%w: the claims of the token are no JSON", ErrInvalid)
	}
	by, known := all[unproven.Issuer]
	if !known {
		return proven{}, fmt.Errorf("%w: the token's issuer is not one that counts here", ErrInvalid)
	}
	digest := jwks.DigestOf(token)
	if p, ok := by.seen.Get(digest, now); ok {
		return p, nil
	}
	if err, ok := by.wrong.Get(digest, now); ok {
		return proven{}, err
	}
	said, claims, err := by.verify(parsed)
	if errors.Is(err, errSignature) {
		by.wrong.Put(digest, err, now, now.Add(wrongTokenTTL))
	}
	if err != nil {
		return proven{}, err
	}
	p, err := by.policy.checkClaims(said, claims, now)
	if err != nil {
		return proven{}, err
	}
	by.seen.Put(digest, p, now, said.Expiry.Time().Add(leeway))
	return p, nil
}

// verify returns what the token says if the issuer has signed it.
func (i *issuer) verify(token *jwt.JSONWebToken) (jwt.Claims, map[string]any, error) {
	var said jwt.Claims
	all := map[string]any{}
	header := token.Headers[0]
	if !slices.Contains(i.policy.algorithms(), jose.SignatureAlgorithm(header.Algorithm)) {
		return said, nil, fmt.Errorf("%w: the token is not signed with one of %v", ErrInvalid, i.policy.algorithms())
	}
	if header.KeyID == "" {
		return said, nil, fmt.Errorf("%w: the token does not name its key", ErrInvalid)
	}
	key, err := i.keys.Get(header.KeyID, header.Algorithm)
	switch {
	case errors.Is(err, jwks.ErrUnknownKey):
		return said, nil, fmt.Errorf("%w: the token is signed with a key that the issuer does not publish", ErrInvalid)
	case errors.Is(err, jwks.ErrOtherAlgorithm):
		return said, nil, fmt.Errorf("%w: the token is not signed with the algorithm for which the issuer publishes the key", ErrInvalid)
	case err != nil:
		return said, nil, fmt.Errorf("%w: the key of the token is not known here, and the issuer's cannot be read now", ErrUnavailable)
	}
	if err := token.Claims(key.Key, &said, &all); err != nil {
		return said, nil, errSignature
	}
	return said, all, nil
}

// checkClaims decides what the claims of a token prove, once its signature was verified.
func (i Issuer) checkClaims(said jwt.Claims, all map[string]any, now time.Time) (proven, error) {
	switch {
	case said.Issuer != i.Issuer:
		return proven{}, fmt.Errorf("%w: the issuer of the token is another", ErrInvalid)
	case !said.Audience.Contains(i.Audience):
		return proven{}, fmt.Errorf("%w: the token is for the audiences %q, not for %q", ErrInvalid, said.Audience, i.Audience)
	case said.Expiry == nil:
		return proven{}, fmt.Errorf("%w: the token never expires", ErrInvalid)
	case said.Subject == "":
		return proven{}, fmt.Errorf("%w: the token has no subject", ErrInvalid)
	}
	if err := said.ValidateWithLeeway(jwt.Expected{Time: now}, leeway); err != nil {
		return proven{}, fmt.Errorf("%w: it is now %s: %w", ErrInvalid, now.UTC().Format(time.RFC3339), err)
	}
	p := proven{name: i.Name + ":" + url.PathEscape(said.Subject)}
	if i.Claim != "" {
		p.scope = scopeOf(all[i.Claim])
	}
	for _, grant := range i.Grants {
		if grant.Subject == said.Subject {
			p.scope = append(p.scope, grant.Allow...)
		}
	}
	return p, nil
}

// scopeOf is the scope in a claim: a list, or a text with spaces as in scope.
func scopeOf(claim any) Scope {
	switch claim := claim.(type) {
	case string:
		return strings.Fields(claim)
	case []any:
		var list Scope
		for _, entry := range claim {
			if word, ok := entry.(string); ok {
				list = append(list, word)
			}
		}
		return list
	}
	return nil
}
