package v1alpha1

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	orElse(&t.Scheduling.Class, ClassStandard)
	DefaultResources(&t.Resources)
}

// defaultProtocol is that of a function whose runtime says nothing else.
func (t *FunctionTemplate) defaultProtocol() Protocol {
	if t.RuntimeRef.Name != "" {
		return ProtocolLambdaRuntime
	}
	return ProtocolHTTP
}

// DefaultResources fills the requests that were left out. Maps that others may share
// are not changed.
func DefaultResources(r *Resources) {
	requests := make(corev1.ResourceList, len(r.Requests)+2)
	requests[corev1.ResourceCPU] = defaultRequest(r.Limits, corev1.ResourceCPU, minCPU,
		*resource.NewMilliQuantity(defaultCPUMilli, resource.DecimalSI))
	requests[corev1.ResourceMemory] = defaultRequest(r.Limits, corev1.ResourceMemory, minMemory,
		*resource.NewQuantity(defaultMemoryBytes, resource.BinarySI))
	for name, limit := range r.Limits {
		if extended(name) && knownResource(name) && whole(limit) {
			requests[name] = limit.DeepCopy()
		}
	}
	maps.Copy(requests, r.Requests)
	r.Requests = requests
}

func orElse[T comparable](field *T, def T) {
	var zero T
	if *field == zero {
		*field = def
	}
}

// defaultRequest is a request that was left out. A valid limit below the default lowers
// it: people who write only a small limit should not read that a request which they
// never wrote exceeds it.
func defaultRequest(limits corev1.ResourceList, name corev1.ResourceName, least, def resource.Quantity) resource.Quantity {
	if limit, limited := limits[name]; limited && limit.Cmp(least) >= 0 && limit.Cmp(def) < 0 {
		return limit.DeepCopy()
	}
	return def
}
