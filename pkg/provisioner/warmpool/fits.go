package warmpool

import (
	"slices"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Misfit is why a function cannot use a spare instance; empty if it can.
type Misfit string

// Properties of a function that require a pod of its own.
const (
	// MisfitNoPool says that its ClusterRuntime has no warm pool, or that it has no
	// ClusterRuntime.
	MisfitNoPool Misfit = "NoPool"
	// MisfitProtocol says that it does not use LambdaRuntime, the only protocol that can hand
	// over code.
	MisfitProtocol Misfit = "Protocol"
	// MisfitCode says that its code is not inline. Only the kubelet can read a ConfigMap for
	// it.
	MisfitCode Misfit = "Code"
	// MisfitServiceAccount, MisfitEnvFrom and MisfitPullSecrets say that it needs something
	// that the kubelet gives to a pod only at its start.
	MisfitServiceAccount Misfit = "ServiceAccount"
	MisfitEnvFrom        Misfit = "EnvFrom"
	MisfitPullSecrets    Misfit = "ImagePullSecrets"
	// MisfitMounts says that it has mounts, which a pod gets at its start.
	MisfitMounts Misfit = "Mounts"
	// MisfitVariable says that it sets a variable that takes effect only when a process
	// starts.
	MisfitVariable Misfit = "Variable"
	// MisfitPlacement says that it has a node selector or tolerations,
	// MisfitRuntimeClass and MisfitPriority that it has a class.
	MisfitPlacement    Misfit = "Placement"
	MisfitRuntimeClass Misfit = "RuntimeClass"
	MisfitPriority     Misfit = "PriorityClass"
	// MisfitMetadata says that its pods have labels or annotations of its own.
	MisfitMetadata Misfit = "Metadata"
	// MisfitTimeout says that its timeout is longer than MaxTimeout.
	MisfitTimeout Misfit = "Timeout"
	// MisfitResources says that no pool has its resources, and MisfitNamespace that no pool
	// with its resources admits its namespace.
	MisfitResources Misfit = "Resources"
	MisfitNamespace Misfit = "Namespace"
)

// Choose returns the pool of its ClusterRuntime, which may be nil, from which a function gets
// spare instances: the first that has its resources and admits its namespace. If there is
// none, it says why. The function must have its defaults. namespace are the labels of its
// namespace; nil if unknown.
func Choose(fn *v1alpha1.Function, rt *v1alpha1.ClusterRuntime, namespace map[string]string) (*v1alpha1.WarmPool, Misfit) {
	if why := Fits(fn, rt); why != "" {
		return nil, why
	}
	why := MisfitResources
	for i := range rt.Spec.WarmPools {
		pool := &rt.Spec.WarmPools[i]
		resources := pool.Resources
		v1alpha1.DefaultResources(&resources)
		if !fn.Spec.Template.Resources.Equal(&resources) {
			continue
		}
		if admits(pool, namespace) {
			return pool, ""
		}
		why = MisfitNamespace
	}
	return nil, why
}

// admits reports whether a pool has spare instances in a namespace with those labels. Unknown
// labels match no selector.
func admits(pool *v1alpha1.WarmPool, namespace map[string]string) bool {
	return pool.NamespaceSelector == nil || namespace != nil && pool.NamespaceSelector.Matches(namespace)
}

// Fits says why a function cannot use a spare instance of any pool of its ClusterRuntime,
// which may be nil, whatever its resources and its namespace are. The function must have its
// defaults.
func Fits(fn *v1alpha1.Function, rt *v1alpha1.ClusterRuntime) Misfit {
	if rt == nil || len(rt.Spec.WarmPools) == 0 || string(fn.Spec.Template.RuntimeRef.Name) != rt.Name {
		return MisfitNoPool
	}
	s := &fn.Spec.Template
	switch {
	case s.Protocol != v1alpha1.ProtocolLambdaRuntime:
		return MisfitProtocol
	case s.Code == nil || s.Code.Inline == "" || rt.Spec.FileExtension == "":
		return MisfitCode
	case s.ServiceAccountName != "":
		return MisfitServiceAccount
	case len(s.EnvFrom) > 0 || slices.ContainsFunc(s.Env, func(v v1alpha1.EnvVar) bool { return v.ValueFrom != nil }):
		return MisfitEnvFrom
	case slices.ContainsFunc(s.Env, func(v v1alpha1.EnvVar) bool { return readAtStart(v.Name) }):
		return MisfitVariable
	case len(s.Mounts) > 0:
		return MisfitMounts
	case len(s.ImagePullSecrets) > 0:
		return MisfitPullSecrets
	case len(s.Placement.NodeSelector) > 0 || len(s.Placement.Tolerations) > 0:
		return MisfitPlacement
	case s.Placement.RuntimeClassName != "":
		return MisfitRuntimeClass
	case s.Placement.PriorityClassName != "":
		return MisfitPriority
	case len(s.Metadata.Labels) > 0 || len(s.Metadata.Annotations) > 0:
		return MisfitMetadata
	case s.Timeout.Duration > MaxTimeout:
		return MisfitTimeout
	}
	return ""
}

// readAtStart reports whether the loader of programs, the C library or an interpreter of the
// built-in ClusterRuntimes reads a variable only when it starts. NODE_ENV is a convention of
// libraries, which read it when they are loaded.
func readAtStart(name string) bool {
	return name != "NODE_ENV" && slices.ContainsFunc([]string{"LD_", "GLIBC_", "MALLOC_", "PYTHON", "NODE_", "UV_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
