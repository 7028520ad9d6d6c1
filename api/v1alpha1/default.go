package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of a Function's fields.
const (
	DefaultConcurrency    int32         = 1
	DefaultTimeout        time.Duration = time.Minute
	DefaultStartupTimeout time.Duration = time.Minute
	DefaultPort           int32         = 8080
	DefaultBackoffAfter   time.Duration = 10 * time.Second
	DefaultIdleTimeout    time.Duration = 10 * time.Minute
	DefaultKeepLast       time.Duration = time.Hour

	defaultCPUMilli    int64 = 100
	defaultMemoryBytes int64 = 64 << 20
)

// DefaultFor is Default for a function whose Runtime is known, which may be nil:
// its protocol comes before that of runtimes in general.
func DefaultFor(f *Function, r *Runtime) {
	if f.Spec.Runtime != "" && r != nil {
		orElse(&f.Spec.Protocol, r.Spec.Protocol)
	}
	Default(f)
}

// Default fills every field that was left out. It changes nothing that was
// given, however wrong, and doing it twice does what doing it once does.
func Default(f *Function) {
	orElse(&f.APIVersion, APIVersion)
	orElse(&f.Kind, KindFunction)
	orElse(&f.Namespace, DefaultNamespace)

	spec := &f.Spec
	if spec.Runtime != "" {
		orElse(&spec.Protocol, ProtocolLambdaRuntime)
	}
	orElse(&spec.Protocol, ProtocolHTTP)
	orElse(&spec.Port, DefaultPort)
	orElse(&spec.Concurrency, DefaultConcurrency)
	orElse(&spec.Timeout, metav1.Duration{Duration: DefaultTimeout})
	orElse(&spec.StartupTimeout, metav1.Duration{Duration: DefaultStartupTimeout})

	orElse(&spec.Scaling.BackoffAfter, metav1.Duration{Duration: DefaultBackoffAfter})
	orElse(&spec.Scaling.IdleTimeout, metav1.Duration{Duration: DefaultIdleTimeout})
	orElse(&spec.Scaling.KeepLast, metav1.Duration{Duration: DefaultKeepLast})
	orElse(&spec.Scaling.KeepAlive, KeepAliveFixed)

	orElse(&spec.Limits.Burst, spec.Limits.RatePerSecond)

	DefaultResources(&spec.Resources)
}

// DefaultResources fills the requests that were left out.
func DefaultResources(r *Resources) {
	requests, limits := &r.Requests, &r.Limits
	requests.CPU = requestOrElse(requests.CPU, limits.CPU, minCPU,
		resource.NewMilliQuantity(defaultCPUMilli, resource.DecimalSI))
	requests.Memory = requestOrElse(requests.Memory, limits.Memory, minMemory,
		resource.NewQuantity(defaultMemoryBytes, resource.BinarySI))
}

func orElse[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}

// requestOrElse is the request, or else its default. A valid limit below the
// default lowers it: whoever gives only a small limit should not be told that a
// request which they never wrote exceeds it.
func requestOrElse(request, limit *resource.Quantity, least resource.Quantity, def *resource.Quantity) *resource.Quantity {
	switch {
	case request != nil:
		return request
	case limit != nil && limit.Cmp(least) >= 0 && limit.Cmp(*def) < 0:
		lowered := limit.DeepCopy()
		return &lowered
	default:
		return def
	}
}
