package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Config is what a Gateway needs to know.
type Config struct {
	// ClaimAddr is the address at which instances claim, host:port.
	ClaimAddr string
	// MaxBody is the largest request body in bytes.
	MaxBody int64
	// MaxInvocations bounds the calls that wait or run here; more are
	// refused with 503.
	MaxInvocations int
	// MaxBodyMemory bounds what the bodies of these calls take, in bytes: those
	// of at most 64 KiB their length, and others 128 KiB, since they are handed
	// on as they come. What is over 4 KiB of a call's headers is counted as well, each
	// header with 100 bytes besides its own. More are refused with 503. It is at least
	// 2 MiB, in which there is room for any call that is alone.
	MaxBodyMemory int64
	// MaxQueueTime is how long a call may wait for an instance whose function does not
	// say.
	MaxQueueTime time.Duration
	// LogCalls says which calls are logged, a line each.
	LogCalls LogCalls
	// ProblemDetail says what callers read of a failure inside.
	ProblemDetail ProblemDetail
	// TrustedProxies are those whose X-Forwarded- headers and the like reach functions.
	// Those of other peers are replaced by the gateway's own.
	TrustedProxies Proxies
	// URLs say which hosts functions have. Without any, functions share one origin unless
	// they ask for hosts of their own.
	URLs address.URLs
}

// DefaultConfig is Config with everything but the address.
func DefaultConfig() Config {
	return Config{
		MaxBody: 64 << 20, MaxInvocations: 20_000, MaxBodyMemory: 512 << 20, MaxQueueTime: time.Minute,
		LogCalls: LogFailed, ProblemDetail: DetailAll,
	}
}

// capacity is how much a gateway may hold.
func (c Config) capacity() admission.Capacity {
	return admission.Capacity{Calls: c.MaxInvocations, Bytes: c.MaxBodyMemory}
}

// Validate says what is wrong with a Config.
func (c Config) Validate() error {
	var errs []error
	if c.ClaimAddr == "" {
		errs = append(errs, errors.New("gateway: ClaimAddr must be set"))
	}
	if c.MaxBody < 0 {
		errs = append(errs, fmt.Errorf("gateway: MaxBody is %d: must not be negative", c.MaxBody))
	}
	if c.MaxInvocations < 1 {
		errs = append(errs, fmt.Errorf("gateway: MaxInvocations is %d: must be at least 1", c.MaxInvocations))
	}
	if c.MaxBodyMemory < leastBodyMemory {
		errs = append(errs, fmt.Errorf("gateway: MaxBodyMemory is %d: must be at least %d, so that there is room for any one call", c.MaxBodyMemory, leastBodyMemory))
	}
	if c.MaxQueueTime <= 0 {
		errs = append(errs, fmt.Errorf("gateway: MaxQueueTime is %v: must be positive", c.MaxQueueTime))
	}
	errs = append(errs, c.LogCalls.Validate(), c.ProblemDetail.Validate())
	return errors.Join(errs...)
}

// Router says to which scheduler a slot's tickets go.
type Router interface {
	// Route is false while nobody is known.
	Route(slot ownership.Slot) (to ownership.Owner, provisional, known bool)
	// Changed is signalled after a route has changed.
	Changed() <-chan struct{}
}

// Deps are what a Gateway works with.
type Deps struct {
	Catalog catalog.Reader
	Router  Router
	// Callers says who may call. Without it everybody may.
	Callers Callers
	// Left tells whether the client of a request in HTTP/1 has ended its connection.
	// It is asked while there is a body that was not read: net/http says it of all
	// others. Without it, such a client is missed when its body is read.
	Left func(*http.Request) bool
	// Schedulers says who schedulers must prove to be. Without it, what is
	// said to them is not encrypted.
	Schedulers credentials.TransportCredentials
	// Traces records calls. Without it none is.
	Traces *tracing.Tracer
	// CallLog keeps the records of calls. A call does not end before it is added.
	CallLog CallLog
	// Registry takes the metrics. Without it nothing is counted.
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// CallLog keeps what became of calls. A call does not end before it is noted.
type CallLog interface {
	Add(account invocation.Record)
}

// LogCalls says which calls are logged, a line each.
type LogCalls string

// What LogCalls may be.
const (
	// LogFailed means calls that Windlass failed or that were broken off, and those
	// that are recorded as traces.
	LogFailed LogCalls = "Failed"
	LogAll    LogCalls = "All"
	LogNone   LogCalls = "None"
)

// Validate says what is wrong with it.
func (l LogCalls) Validate() error {
	switch l {
	case LogFailed, LogAll, LogNone:
		return nil
	}
	return fmt.Errorf("--log-calls %q is none of %s, %s and %s", string(l), LogFailed, LogAll, LogNone)
}

// wants reports whether to log a call.
func (l LogCalls) wants(failed, recorded bool) bool {
	return l == LogAll || l == LogFailed && (failed || recorded)
}
