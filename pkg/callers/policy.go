package callers

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/pkg/admission"
)

// Auth is whether callers must prove who they are.
type Auth string

const (
	// AuthNone lets everybody call. What they show is the function's to judge.
	AuthNone Auth = "none"
	// AuthRequired lets through only who may call the function.
	AuthRequired Auth = "required"
)

// Policy is who may call what, and how much.
type Policy struct {
	// Default is for namespaces that Namespaces does not name, and for what it
	// leaves open.
	Default    Rule            `json:"default"`
	Namespaces map[string]Rule `json:"namespaces,omitempty"`
	// Issuers are those whose JSON Web Tokens count.
	Issuers []Issuer `json:"issuers,omitempty"`
}

// Rule is what holds in a namespace.
type Rule struct {
	Auth Auth `json:"auth,omitempty"`
	// Limits of the namespace, in all gateways together.
	Limits *Limits `json:"limits,omitempty"`
}

// Limits are admission.Limits as people write them.
type Limits struct {
	Rate       float64           `json:"rate,omitempty"`
	Burst      int               `json:"burst,omitempty"`
	InFlight   int               `json:"inFlight,omitempty"`
	BodyMemory resource.Quantity `json:"bodyMemory,omitempty"`
}

// Issuer is who issues JSON Web Tokens.
type Issuer struct {
	// Name stands for the issuer in the names of its callers.
	Name string `json:"name"`
	// Issuer and Audience are what the claims iss and aud must say.
	Issuer   string `json:"issuer"`
	Audience string `json:"audience"`
	// JWKSURL or JWKSFile is where its public keys are. A relative file is one
	// of the policy's folder.
	JWKSURL  string `json:"jwksURL,omitempty"`
	JWKSFile string `json:"jwksFile,omitempty"`
	// Algorithms are those that it signs with; empty means RS256 and ES256.
	Algorithms []jose.SignatureAlgorithm `json:"algorithms,omitempty"`
	// Claim names the claim that says what its bearer may call, as a list or
	// as words.
	Claim string `json:"claim,omitempty"`
	// Grants say it for some subjects.
	Grants []Grant `json:"grants,omitempty"`
}

// Grant is what one subject may call.
type Grant struct {
	Subject string `json:"subject"`
	Allow   Scope  `json:"allow"`
}

// signatures are the algorithms that a policy may name: those whose keys are
// public. With a secret for a key, a public one could be passed off as it.
var signatures = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// usual are the algorithms of an issuer that names none.
var usual = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

// keysName is what API keys are called where issuers have their names.
const keysName = "key"

// Everybody is the policy of a gateway without a policy file.
func Everybody() Policy { return Policy{Default: Rule{Auth: AuthNone}} }

// ParsePolicy reads a policy in YAML. A field that it does not know is an error.
func ParsePolicy(document []byte) (Policy, error) {
	var p Policy
	if err := yaml.UnmarshalStrict(document, &p); err != nil {
		return Policy{}, fmt.Errorf("callers: the policy is not what it should be: %w", err)
	}
	if err := p.Validate(); err != nil {
		return Policy{}, fmt.Errorf("callers: the policy is wrong: %w", err)
	}
	return p, nil
}

// Validate says what is wrong with a Policy.
func (p Policy) Validate() error {
	var errs []error
	if p.Default.Auth == "" {
		errs = append(errs, errors.New("default.auth is missing: write none or required"))
	}
	errs = append(errs, p.Default.validate("default"))
	for _, namespace := range slices.Sorted(maps.Keys(p.Namespaces)) {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			errs = append(errs, fmt.Errorf("namespaces: %q is no name of a namespace", namespace))
		}
		errs = append(errs, p.Namespaces[namespace].validate("namespaces."+namespace))
	}
	names, issuers := map[string]bool{keysName: true}, map[string]bool{}
	for i, issuer := range p.Issuers {
		at := fmt.Sprintf("issuers[%d]", i)
		if names[issuer.Name] || issuers[issuer.Issuer] {
			errs = append(errs, fmt.Errorf("%s: another one has its name %q or its issuer %q already, or the name is %q", at, issuer.Name, issuer.Issuer, keysName))
		}
		names[issuer.Name], issuers[issuer.Issuer] = true, true
		errs = append(errs, issuer.validate(at))
	}
	return errors.Join(errs...)
}

func (r Rule) validate(at string) error {
	var errs []error
	switch r.Auth {
	case "", AuthNone, AuthRequired:
	default:
		errs = append(errs, fmt.Errorf("%s.auth %q is neither none nor required", at, r.Auth))
	}
	if r.Limits != nil {
		if err := r.Limits.admission().Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s.limits: %w", at, err))
		}
	}
	return errors.Join(errs...)
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
	if i.JWKSURL != "" && !trustworthy(i.JWKSURL) {
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

// trustworthy tells whether nobody in between can change what is read from a URL.
func trustworthy(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || (u.Scheme == "http" && ip != nil && ip.IsLoopback())
}

// algorithms are those that count.
func (i Issuer) algorithms() []jose.SignatureAlgorithm {
	if len(i.Algorithms) == 0 {
		return usual
	}
	return i.Algorithms
}

// rule is what holds in a namespace, with its defaults.
func (p Policy) rule(namespace string) Rule {
	r := p.Namespaces[namespace]
	if r.Auth == "" {
		r.Auth = p.Default.Auth
	}
	if r.Limits == nil {
		r.Limits = p.Default.Limits
	}
	return r
}

// limits are those of a namespace in all gateways.
func (p Policy) limits(namespace string) admission.Limits {
	return p.rule(namespace).Limits.admission()
}

func (l *Limits) admission() admission.Limits {
	if l == nil {
		return admission.Limits{}
	}
	return admission.Limits{Rate: l.Rate, Burst: l.Burst, InFlight: l.InFlight, Bytes: l.BodyMemory.Value()}
}
