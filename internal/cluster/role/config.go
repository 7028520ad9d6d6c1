package role

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/windlass-dev/windlass/internal/mtls"
)

// Common has the settings of every role.
type Common struct {
	// LogFormat is json or text, and LogLevel debug, info, warn or error.
	LogFormat, LogLevel string
	// OpsListen is where health checks and metrics are served, without
	// encryption.
	OpsListen string
	// Pprof serves profiles there, too.
	Pprof bool
	// TLSDir is a folder with ca.crt, tls.crt and tls.key.
	TLSDir string
	// TLSDomain is what the names in all certificates of this Windlass end in.
	TLSDomain string
	// Namespaces restricts the role to some namespaces; none means all.
	Namespaces []string
}

// Validate returns what is wrong.
func (c Common) Validate() []error {
	var errs []error
	if c.LogFormat != "json" && c.LogFormat != "text" {
		errs = append(errs, fmt.Errorf("--log-format %q is neither json nor text", c.LogFormat))
	}
	if _, err := level(c.LogLevel); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// Domain names the roles of this Windlass.
func (c Common) Domain() mtls.Domain { return mtls.Domain(c.TLSDomain) }

// ValidateServing returns what is wrong, for a role that serves.
func (c Common) ValidateServing() []error {
	errs := append(c.Validate(), Address("--ops-listen", c.OpsListen)...)
	if c.TLSDir == "" {
		errs = append(errs, errors.New("--tls-dir is missing: name a folder with ca.crt, tls.crt and tls.key"))
	}
	if wrong := validation.IsDNS1123Subdomain(c.TLSDomain); len(wrong) > 0 {
		errs = append(errs, fmt.Errorf("--tls-domain %q is no domain: name what the names in all certificates of this Windlass end in, such as windlass.my-namespace.windlass", c.TLSDomain))
	}
	return errs
}

func level(name string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return l, fmt.Errorf("--log-level %q is none of debug, info, warn and error", name)
	}
	return l, nil
}

// Address checks an address to listen on.
func Address(flag, addr string) []error {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return []error{fmt.Errorf("%s %q is not host:port: write for example :8080", flag, addr)}
	}
	return nil
}

// CommonFlags defines the flags of every role.
func (c *Common) CommonFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.LogFormat, "log-format", "json", "`format` of the log: json or text")
	flags.StringVar(&c.LogLevel, "log-level", "info", "minimum log `level`: debug, info, warn or error")
	flags.StringSliceVar(&c.Namespaces, "watch-namespaces", nil, "only these `namespaces`; all by default")
}

// ServingFlags defines them, and those of a role that serves.
func (c *Common) ServingFlags(flags *pflag.FlagSet) {
	c.CommonFlags(flags)
	flags.StringVar(&c.OpsListen, "ops-listen", ":8081", "`address` of health checks and metrics")
	flags.BoolVar(&c.Pprof, "pprof", false, "serve profiles of this program at --ops-listen, below /debug/pprof/")
	flags.StringVar(&c.TLSDir, "tls-dir", "", "`folder` with ca.crt, tls.crt and tls.key")
	flags.StringVar(&c.TLSDomain, "tls-domain", "", "`domain` of the names in the certificates, such as scheduler.DOMAIN")
}
