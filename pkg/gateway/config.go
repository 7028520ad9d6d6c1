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
	// MaxBodyMemory bounds the memory of the bodies of requests and answers in bytes. A body of at most 64 KiB
	// counts with its length, a larger one with 128 KiB, because it is streamed. Trailers that a request by
	// HTTP/2 announces count with 64 KiB. The head of a call beyond 4 KiB counts too, each header and name
	// of a trailer with 100 bytes more than its own size. Calls beyond the bound are refused with 503. It is
	// at least 2 MiB, which is enough for any single call.
	MaxBodyMemory int64
	// MaxQueueTime is how long a call may wait for an instance whose function does not
	// say.
	MaxQueueTime time.Duration
	// LogCalls says which calls are logged, a line each.
	LogCalls LogCalls
	// ProblemDetail is how much callers read about internal failures.
	ProblemDetail ProblemDetail
	// TrustedProxies are the proxies whose X-Forwarded- and similar headers reach functions.
	// The gateway replaces those of other peers by its own.
	TrustedProxies Proxies
	// URLs say which hosts functions have. Without any, functions share one origin unless
	// they ask for hosts of their own.
	URLs address.URLs
	// bodyWait is the budget of a body before its first byte. Tests shorten it.
	bodyWait waitBudget
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

// Validate returns an error that names the invalid settings.
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
	// Route reports known as false while no scheduler is known.
	Route(slot ownership.Slot) (to ownership.Owner, provisional, known bool)
	// Changed is signalled after a route has changed.
	Changed() <-chan struct{}
}

// Deps are what a Gateway works with.
type Deps struct {
	Catalog catalog.Reader
	Router  Router
	// Callers authorizes callers. Without it everybody may call.
	Callers Callers
	// Left reports whether the client of an HTTP/1 request has closed its connection. It is
	// needed only while a body is unread; in all other cases net/http reports that. Without
	// it, the gateway notices such a client when it reads the body.
	Left func(*http.Request) bool
	// Linger makes the connection of an HTTP/1 request discard what its client is still sending, when
	// it is closed, but not beyond a time. Without it, a client that was answered early may lose the answer.
	Linger func(r *http.Request, until time.Time)
	// Schedulers authenticates schedulers. Without it, the connections are not encrypted.
	Schedulers credentials.TransportCredentials
	// Traces records calls; nil records none.
	Traces *tracing.Tracer
	// CallLog keeps the records of calls. A call does not end before it is added.
	CallLog CallLog
	// Registry takes the metrics. Without it nothing is counted.
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// CallLog records finished calls. A call ends only after it is recorded.
type CallLog interface {
	Add(record invocation.Record)
}

// LogCalls says which calls are logged, a line each.
type LogCalls string

// What LogCalls may be.
const (
	// LogFailed means calls that Windlass failed or cut off, and traced calls.
	LogFailed LogCalls = "Failed"
	LogAll    LogCalls = "All"
	LogNone   LogCalls = "None"
)

// Validate returns an error for an unknown value.
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
