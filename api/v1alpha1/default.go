package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Defaults of a Function's fields.
const (
	DefaultConcurrency             int32         = 1
	DefaultTimeout                 time.Duration = time.Minute
	DefaultStartupTimeout          time.Duration = time.Minute
	DefaultPort                    int32         = 8080
	DefaultPeriod                  time.Duration = time.Second
	DefaultIdleTimeout             time.Duration = 10 * time.Minute
	DefaultLastInstanceIdleTimeout time.Duration = time.Hour
	DefaultProgressDeadline        time.Duration = 2 * time.Minute
	DefaultRevisionHistoryLimit    int32         = 10

	defaultCPUMilli    int64 = 100
	defaultMemoryBytes int64 = 64 << 20
)

// DefaultFor is Default for a function whose Runtime is known, which may be nil:
// its protocol comes before that of runtimes in general.
func DefaultFor(f *Function, r *ClusterRuntime) {
	if f.Spec.Template.RuntimeRef.Name != "" && r != nil {
		orElse(&f.Spec.Template.Protocol, r.Spec.Protocol)
	}
	Default(f)
}

// Default fills every field that was left out. It changes nothing that was
// given, however wrong, and doing it twice does what doing it once does.
func Default(f *Function) {
	orElse(&f.APIVersion, APIVersion)
	orElse(&f.Kind, KindFunction)
	orElse(&f.Namespace, DefaultNamespace)

	defaultTemplate(&f.Spec.Template)

	calls := &f.Spec.Calls
	orElse(&calls.Delivery, DeliveryAtMostOnce)
	orElse(&calls.OnClientDisconnect, OnClientDisconnectContinue)
	if calls.Rate != (Rate{}) {
		orElse(&calls.Rate.Period, Duration{DefaultPeriod})
		orElse(&calls.Rate.Burst, calls.Rate.Requests)
	}

	down := &f.Spec.Scaling.ScaleDown
	orElse(&down.Policy, ScaleDownFixed)
	orElse(&down.IdleTimeout, Duration{DefaultIdleTimeout})
	orElse(&down.LastInstanceIdleTimeout, Duration{DefaultLastInstanceIdleTimeout})

	rollout := &f.Spec.Rollout
	orElse(&rollout.Verify, VerifyOneInstance)
	orElse(&rollout.ProgressDeadline, Duration{DefaultProgressDeadline})
	orElse(&rollout.Strategy, RolloutImmediate)
	if f.Spec.RevisionHistoryLimit == nil {
		f.Spec.RevisionHistoryLimit = new(DefaultRevisionHistoryLimit)
	}
}

// defaultTemplate fills what bare leaves out.
func defaultTemplate(t *FunctionTemplate) {
	if t.RuntimeRef.Name != "" {
		orElse(&t.RuntimeRef.Kind, KindClusterRuntime)
	}
	orElse(&t.Protocol, t.defaultProtocol())
	orElse(&t.Port, DefaultPort)
	orElse(&t.Concurrency, DefaultConcurrency)
	orElse(&t.Timeout, Duration{DefaultTimeout})
	orElse(&t.StartupTimeout, Duration{DefaultStartupTimeout})
	DefaultResources(&t.Resources)
}

// defaultProtocol is that of a function whose runtime says nothing else.
func (t *FunctionTemplate) defaultProtocol() Protocol {
	if t.RuntimeRef.Name != "" {
		return ProtocolLambdaRuntime
	}
	return ProtocolHTTP
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
