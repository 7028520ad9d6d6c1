package v1alpha1

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var hostnamePattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Valid tells whether it is a name in DNS of two labels or more.
func (h Hostname) Valid() bool { return len(h) <= 253 && hostnamePattern.MatchString(string(h)) }

// validateExpose checks where a function wants to be called.
func validateExpose(at *field.Path, e *Expose) field.ErrorList {
	var errs field.ErrorList
	hosts := at.Child("hosts")
	if len(e.Hosts) > MaxHosts {
		errs = append(errs, field.TooMany(hosts, len(e.Hosts), MaxHosts))
	}
	for i, host := range e.Hosts {
		switch {
		case !host.Valid():
			errs = append(errs, field.Invalid(hosts.Index(i), host,
				"must be a DNS name of two labels or more, each of at most 63 lower-case letters, digits and hyphens, 253 bytes in all, and no URL, port, * or IP address; write for example shop.example.com"))
		case slices.Contains(e.Hosts[:i], host):
			errs = append(errs, field.Duplicate(hosts.Index(i), host))
		}
	}
	return errs
}
