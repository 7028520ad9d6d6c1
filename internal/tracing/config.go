package tracing

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
)

// Protocols of a collector.
const (
	ProtocolGRPC = "grpc"
	ProtocolHTTP = "http/protobuf"
)

// Config says where traces go, and how many.
type Config struct {
	// Endpoint is the collector's URL, such as http://collector:4317; empty means
	// that nothing is recorded. With https the connection is encrypted.
	Endpoint string
	// Protocol is ProtocolGRPC or ProtocolHTTP.
	Protocol string
	// SampleRatio is the recorded share, 0 to 1, of calls whose client has not decided that.
	SampleRatio float64
	// TrustClients lets clients decide which of their calls are recorded. Without it only the
	// ratio decides.
	TrustClients bool
}

// DefaultConfig records nothing until it has an endpoint, and then one call in a
// hundred.
func DefaultConfig() Config { return Config{Protocol: ProtocolGRPC, SampleRatio: 0.01} }

// Flags adds the flags that set a Config, which are preset to its values.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Endpoint, "tracing-endpoint", c.Endpoint, "`URL` of an OpenTelemetry collector, such as http://127.0.0.1:4317; empty records no traces")
	flags.StringVar(&c.Protocol, "tracing-protocol", c.Protocol, "`protocol` of the collector: grpc or http/protobuf")
	flags.Float64Var(&c.SampleRatio, "tracing-sample-ratio", c.SampleRatio, "`share` of calls to record, 0 to 1, unless a trusted client decides")
}

// ClientFlags adds the flags of programs that clients call.
func (c *Config) ClientFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&c.TrustClients, "tracing-trust-clients", c.TrustClients, "let the header traceparent of clients decide which calls to record")
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	var errs []error
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("--tracing-endpoint %q is no URL of a collector: write for example http://collector:4317", c.Endpoint))
		}
	}
	if c.Protocol != ProtocolGRPC && c.Protocol != ProtocolHTTP {
		errs = append(errs, fmt.Errorf("--tracing-protocol %q is neither %s nor %s", c.Protocol, ProtocolGRPC, ProtocolHTTP))
	}
	// It is written so that it refuses what is not a number, too.
	if !(c.SampleRatio >= 0 && c.SampleRatio <= 1) {
		errs = append(errs, fmt.Errorf("--tracing-sample-ratio %v is not between 0 and 1", c.SampleRatio))
	}
	return errors.Join(errs...)
}
