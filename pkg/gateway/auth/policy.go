package auth

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
)

// Mode says whether callers must authenticate.
type Mode string

const (
	// ModeNone admits every caller. The function may check credentials itself.
	ModeNone Mode = "None"
	// ModeRequired admits only callers that may call the function.
	ModeRequired Mode = "Required"
	// modeUnknown stands for a mode of a later release, which may be stricter than any known
	// one: it admits no caller.
	modeUnknown Mode = "?"
)

// Policy says who may call what, and within which limits.
type Policy struct {
	Auth    Auth    `json:"auth"`
	Tenancy Tenancy `json:"tenancy,omitzero"`
}

// Auth says who may call what.
type Auth struct {
	// Default is for namespaces that Namespaces does not name.
	Default    Rule            `json:"default"`
	Namespaces map[string]Rule `json:"namespaces,omitempty"`
	// Issuers are the trusted issuers of JSON Web Tokens, by the prefix of their callers'
	// names.
	Issuers map[string]Issuer `json:"issuers,omitempty"`
}

// Rule is what callers must prove in a namespace.
type Rule struct {
	Mode Mode `json:"mode,omitempty"`
}

// Tenancy is what namespaces may use.
type Tenancy struct {
	// Default applies to namespaces that Namespaces does not name, and to settings that it
	// leaves out.
	Default    Tenant            `json:"default,omitzero"`
	Namespaces map[string]Tenant `json:"namespaces,omitempty"`
}

// Tenant has the limits of a namespace over all gateways: admission.Limits as people write
// them. A nil setting is the default's, and without a default there is no limit.
type Tenant struct {
	RequestsPerSecond *float64 `json:"requestsPerSecond,omitempty"`
	// Burst goes with RequestsPerSecond: of the default, a namespace takes both or
	// neither.
	Burst       *int               `json:"burst,omitempty"`
	MaxInFlight *int               `json:"maxInFlight,omitempty"`
	BodyMemory  *resource.Quantity `json:"bodyMemory,omitempty"`
	// Hosts are the hosts that functions of the namespace may have. A leading *. stands for
	// one label, as in a certificate. An empty list permits none.
	Hosts []string `json:"hosts,omitempty"`
}

// Issuer is an issuer of JSON Web Tokens.
type Issuer struct {
	// Name is its name among the issuers.
	Name string `json:"-"`
	// Issuer and Audience are what the claims iss and aud must say.
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	// JWKSURL or JWKSFile is where its public keys are. A relative file is one
	// of the policy's folder.
	JWKSURL  string `json:"jwksURL,omitempty"`
	JWKSFile string `json:"jwksFile,omitempty"`
	// Algorithms are the accepted signature algorithms; empty means RS256 and ES256.
	Algorithms []jose.SignatureAlgorithm `json:"algorithms,omitempty"`
	// Claim names the claim that says what its bearer may call, as a list or
	// as words.
	Claim string `json:"claim,omitempty"`
	// Grants say it for some subjects.
	Grants []Grant `json:"grants,omitempty"`
	// Requires names features that a gateway must support for the issuer to be trusted. No
	// release defines any yet; it is read for files of a later one.
	Requires []string `json:"requires,omitempty"`
}

// Grant is what one subject may call.
type Grant struct {
	Subject string `json:"subject"`
	Allow   Scope  `json:"allow"`
}

// signatures are the algorithms that a policy may name: those with public keys. With a shared
// secret, a public key could be passed off as the secret.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// usual are the algorithms of an issuer that names none.
var usual = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

// keysName is what API keys are called where issuers have their names.
const keysName = "key"

// Everybody is the policy of a gateway without a policy file.
func Everybody() Policy { return Policy{Auth: Auth{Default: Rule{Mode: ModeNone}}} }

// ParsePolicy reads a policy in YAML for its author: unknown fields and values are an error.
func ParsePolicy(document []byte) (Policy, error) {
	p, unknown, err := ReadPolicy(document)
	if err == nil {
		err = unknownError(unknown)
	}
	if err != nil {
		return Policy{}, fmt.Errorf("callers: the policy is wrong: %w", err)
	}
	return p, nil
}

// ReadPolicy reads a policy in YAML that a later release may have written. unknown names
// unknown fields, which are ignored, and unknown values, which admit no caller.
func ReadPolicy(document []byte) (_ Policy, unknown []string, _ error) {
	var file struct {
		header
		Policy
	}
	unknown, err := decode(document, KindPolicy, &file)
	if err != nil {
		return Policy{}, nil, err
	}
	p := file.Policy
	for name, issuer := range p.Auth.Issuers {
		issuer.Name = name
		p.Auth.Issuers[name] = issuer
	}
	unknown = append(append(unknown, p.Auth.tolerate()...), p.Tenancy.tolerate()...)
	if err := p.Validate(); err != nil {
		return Policy{}, nil, err
	}
	return p, unknown, nil
}

// tolerate replaces unknown values by ones that admit no caller.
func (a *Auth) tolerate() (unknown []string) {
	mode := func(at string, r *Rule) {
		switch r.Mode {
		case "", ModeNone, ModeRequired:
		default:
			unknown = append(unknown, fmt.Sprintf("%s.mode %q is neither %s nor %s", at, r.Mode, ModeNone, ModeRequired))
			r.Mode = modeUnknown
		}
	}
	mode("auth.default", &a.Default)
	for _, namespace := range slices.Sorted(maps.Keys(a.Namespaces)) {
		r := a.Namespaces[namespace]
		mode("auth.namespaces."+namespace, &r)
		a.Namespaces[namespace] = r
	}
	for _, name := range slices.Sorted(maps.Keys(a.Issuers)) {
		issuer, at := a.Issuers[name], "auth.issuers."+name
		for _, feature := range issuer.Requires {
			unknown = append(unknown, fmt.Sprintf("%s.requires %q, which this release does not know", at, feature))
		}
		known := slices.DeleteFunc(slices.Clone(issuer.Algorithms), func(algorithm jose.SignatureAlgorithm) bool {
			return !slices.Contains(signatures, algorithm)
		})
		for _, algorithm := range issuer.Algorithms {
			if !slices.Contains(signatures, algorithm) {
				unknown = append(unknown, fmt.Sprintf("%s.algorithms: %q is none of %v", at, algorithm, signatures))
			}
		}
		// No algorithms would mean the usual ones.
		if none := len(known) == 0 && len(issuer.Algorithms) > 0; none || len(issuer.Requires) > 0 {
			delete(a.Issuers, name)
			continue
		}
		issuer.Algorithms = known
		a.Issuers[name] = issuer
	}
	return unknown
}

// tolerate leaves out hosts that are written in a way that this release does not know.
func (t *Tenancy) tolerate() (unknown []string) {
	known := func(at string, hosts []string) []string {
		return slices.DeleteFunc(hosts, func(host string) bool {
			if isHostPattern(host) {
				return false
			}
			unknown = append(unknown, fmt.Sprintf("%s.hosts: %q is neither a host nor *. in front of one", at, host))
			return true
		})
	}
	t.Default.Hosts = known("tenancy.default", t.Default.Hosts)
	for _, namespace := range slices.Sorted(maps.Keys(t.Namespaces)) {
		tenant := t.Namespaces[namespace]
		tenant.Hosts = known("tenancy.namespaces."+namespace, tenant.Hosts)
		t.Namespaces[namespace] = tenant
	}
	return unknown
}

// anyLabel in front of a host stands for one label.
const anyLabel = "*."

// isHostPattern reports whether a text is a valid host or pattern of hosts.
func isHostPattern(pattern string) bool {
	return v1alpha1.Hostname(strings.TrimPrefix(pattern, anyLabel)).Valid()
}

// Permits reports whether functions of a namespace may have a host of their own, given in
// lower case.
func (p Policy) Permits(namespace, host string) bool {
	patterns := p.Tenancy.Namespaces[namespace].Hosts
	if patterns == nil {
		patterns = p.Tenancy.Default.Hosts
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		parent, several := strings.CutPrefix(pattern, anyLabel)
		if !several {
			return pattern == host
		}
		label, rest, _ := strings.Cut(host, ".")
		return label != "" && rest == parent
	})
}

// Validate returns an error that names the invalid settings.
func (p Policy) Validate() error {
	errs := []error{p.Auth.validate()}
	errs = append(errs, wrongLimits("tenancy.default", p.limits("")))
	for _, namespace := range slices.Sorted(maps.Keys(p.Tenancy.Namespaces)) {
		at := "tenancy.namespaces." + namespace
		errs = append(errs, isNamespace("tenancy.namespaces", namespace), p.Tenancy.Namespaces[namespace].validate(at), wrongLimits(at, p.limits(namespace)))
	}
	return errors.Join(append(errs, p.Tenancy.Default.validate("tenancy.default"))...)
}

func (a Auth) validate() error {
	var errs []error
	if a.Default.Mode == "" {
		errs = append(errs, fmt.Errorf("auth.default.mode is missing: write %s or %s", ModeNone, ModeRequired))
	}
	errs = append(errs, a.Default.validate("auth.default"))
	for _, namespace := range slices.Sorted(maps.Keys(a.Namespaces)) {
		errs = append(errs, isNamespace("auth.namespaces", namespace), a.Namespaces[namespace].validate("auth.namespaces."+namespace))
	}
	issuers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.Issuers)) {
		issuer, at := a.Issuers[name], "auth.issuers."+name
		if name == keysName {
			errs = append(errs, fmt.Errorf("%s: %q is what API keys are called: take another name", at, keysName))
		}
		if other, twice := issuers[issuer.Issuer]; twice {
			errs = append(errs, fmt.Errorf("%s.issuer %q is that of %s already", at, issuer.Issuer, other))
		}
		issuers[issuer.Issuer] = name
		errs = append(errs, issuer.validate(at))
	}
	return errors.Join(errs...)
}

func isNamespace(at, namespace string) error {
	if len(validation.IsDNS1123Label(namespace)) > 0 {
		return fmt.Errorf("%s: %q is no name of a namespace", at, namespace)
	}
	return nil
}

func (r Rule) validate(at string) error {
	switch r.Mode {
	case "", ModeNone, ModeRequired, modeUnknown:
		return nil
	}
	return fmt.Errorf("%s.mode %q is neither %s nor %s", at, r.Mode, ModeNone, ModeRequired)
}

// validate refuses 0, which could be taken for no limit and for no calls.
func (t Tenant) validate(at string) error {
	var errs []error
	for _, field := range []struct {
		name  string
		wrong bool
	}{
		{"requestsPerSecond", t.RequestsPerSecond != nil && *t.RequestsPerSecond <= 0},
		{"burst", t.Burst != nil && *t.Burst <= 0},
		{"maxInFlight", t.MaxInFlight != nil && *t.MaxInFlight <= 0},
		{"bodyMemory", t.BodyMemory != nil && t.BodyMemory.Sign() <= 0},
	} {
		if field.wrong {
			errs = append(errs, fmt.Errorf("%s.%s must be more than 0; leave it out for the default, or for no limit", at, field.name))
		}
	}
	return errors.Join(errs...)
}

func wrongLimits(at string, limits admission.Limits) error {
	if err := limits.Validate(); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return nil
}

func (i Issuer) validate(at string) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(at+format, args...)) }
	if len(validation.IsDNS1123Label(i.Name)) > 0 {
		wrong(".name %q must be of lower-case letters, digits and hyphens", i.Name)
	}
	if i.Issuer == "" {
		wrong(".issuer is missing: write what its tokens have as iss")
	}
	if i.Audience == "" {
		wrong(".audience is missing: write what its tokens for this gateway have as aud, so that those for others do not count")
	}
	if (i.JWKSURL == "") == (i.JWKSFile == "") {
		wrong(": write either jwksURL or jwksFile")
	}
	if i.JWKSURL != "" && !isTrustworthy(i.JWKSURL) {
		wrong(".jwksURL %q must begin with https:// (http:// only on this machine)", i.JWKSURL)
	}
	for _, algorithm := range i.Algorithms {
		if !slices.Contains(signatures, algorithm) {
			wrong(".algorithms: %q is none of %v", algorithm, signatures)
		}
	}
	if i.Claim == "" && len(i.Grants) == 0 {
		wrong(": write claim or grants, or its tokens permit nothing")
	}
	for n, grant := range i.Grants {
		if grant.Subject == "" {
			wrong(".grants[%d].subject is missing: write what its tokens have as sub", n)
		}
		if err := grant.Allow.validate(fmt.Sprintf("%s.grants[%d].allow", at, n)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// isTrustworthy reports whether the transport of a URL protects its content from changes.
func isTrustworthy(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || (u.Scheme == "http" && ip != nil && ip.IsLoopback())
}

// algorithms are the algorithms that the issuer may sign with.
func (i Issuer) algorithms() []jose.SignatureAlgorithm {
	if len(i.Algorithms) == 0 {
		return usual
	}
	return i.Algorithms
}

// mode is that of a namespace.
func (a Auth) mode(namespace string) Mode {
	return cmp.Or(a.Namespaces[namespace].Mode, a.Default.Mode)
}

// limits are the limits of a namespace over all gateways.
func (p Policy) limits(namespace string) admission.Limits {
	t, preset := p.Tenancy.Namespaces[namespace], p.Tenancy.Default
	if t.RequestsPerSecond == nil {
		t.RequestsPerSecond, t.Burst = preset.RequestsPerSecond, cmp.Or(t.Burst, preset.Burst)
	}
	var limits admission.Limits
	if t.RequestsPerSecond != nil {
		limits.Rate = *t.RequestsPerSecond
	}
	if t.Burst != nil {
		limits.Burst = *t.Burst
	}
	if most := cmp.Or(t.MaxInFlight, preset.MaxInFlight); most != nil {
		limits.InFlight = *most
	}
	if most := cmp.Or(t.BodyMemory, preset.BodyMemory); most != nil {
		limits.Bytes = most.Value()
	}
	return limits
}
