package podspec

import (
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda/lambdaenv"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// agentEnv is the agent's environment.
func agentEnv(in Input) []corev1.EnvVar {
	f := in.Function
	meeting := functionPort(f)
	if f.Spec.Template.Protocol == v1alpha1.ProtocolLambdaRuntime {
		meeting = LambdaPort
	}
	backoff, idle := f.Spec.Scaling.ScaleDown.Idle()
	return append(variables(agentenv.Config{
		Scheduler:      in.Config.SchedulerAddr,
		Owner:          in.Config.OwnerAddr,
		Node:           in.Config.NodeAddr,
		NodeTokenFile:  nodeTokenPath(in.Config),
		Class:          f.Spec.Template.Scheduling.UnusualClass(),
		Slice:          f.Spec.Template.Scheduling.Slice.Duration,
		FunctionUID:    string(f.UID),
		Function:       f.Key().String(),
		Revision:       f.Revision(),
		CID:            string(in.CID),
		TokenFile:      path.Join(agentTokenDir, tokenFile),
		CA:             in.Config.CA,
		TLSDomain:      in.Config.TLSDomain,
		DrainListen:    ":" + strconv.Itoa(int(DrainPort)),
		Protocol:       string(f.Spec.Template.Protocol),
		Port:           int(meeting),
		Concurrency:    int(f.Spec.Template.Concurrency),
		StartupTimeout: f.Spec.Template.StartupTimeout.Duration,
		BackoffAfter:   backoff,
		IdleTimeout:    idle,
	}.Environ()), collectBefore(in.Config))
}

// nodeTokenPath is where the agent finds the token for the node agent, if there is one.
func nodeTokenPath(c Config) string {
	if c.NodeAddr == "" {
		return ""
	}
	return path.Join(agentTokenDir, nodeTokenFile)
}

// collectBefore makes the agent collect garbage before its limit kills it.
func collectBefore(c Config) corev1.EnvVar {
	return corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(c.AgentMemoryLimit/10*9, 10)}
}

// runtimeAPI is where the agent serves the Lambda Runtime API.
var runtimeAPI = "127.0.0.1:" + strconv.Itoa(int(LambdaPort))

// functionEnv is the function's environment.
func functionEnv(in Input) []corev1.EnvVar {
	env := variables(functionPairs(in, TaskRoot))
	for _, v := range in.Function.Spec.Template.Env {
		if v.ValueFrom == nil {
			continue
		}
		from := corev1.EnvVar{Name: v.Name, ValueFrom: valueFrom(v.ValueFrom)}
		if at := slices.IndexFunc(env, func(other corev1.EnvVar) bool { return other.Name == v.Name }); at >= 0 {
			env[at] = from
		} else {
			env = append(env, from)
		}
	}
	return env
}

func valueFrom(from *v1alpha1.EnvVarSource) *corev1.EnvVarSource {
	out := &corev1.EnvVarSource{}
	if ref := from.SecretKeyRef; ref != nil {
		out.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: named(ref.Name), Key: ref.Key, Optional: optional(ref.Optional)}
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		out.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: named(ref.Name), Key: ref.Key, Optional: optional(ref.Optional)}
	}
	if ref := from.FieldRef; ref != nil {
		out.FieldRef = &corev1.ObjectFieldSelector{FieldPath: ref.FieldPath}
	}
	return out
}

func named(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func optional(is bool) *bool {
	if !is {
		return nil
	}
	return &is
}

// functionPairs is the function's environment as far as it has values, with the folder of
// its code. Of two values for one name the later wins: first what Windlass says, then the
// runtime, then the function.
func functionPairs(in Input, taskRoot string) []string {
	f := in.Function
	env := []string{
		"WINDLASS_FUNCTION_NAME=" + f.Name,
		"WINDLASS_FUNCTION_NAMESPACE=" + f.Namespace,
		"WINDLASS_INSTANCE=" + string(in.CID),
		"WINDLASS_CONCURRENCY=" + strconv.Itoa(int(f.Spec.Template.Concurrency)),
		"WINDLASS_PROTOCOL=" + string(f.Spec.Template.Protocol),
		"WINDLASS_RUNTIME_API=" + v1alpha1.ContractV1,
		"OTEL_RESOURCE_ATTRIBUTES=" + invocation.ResourceAttributes(f.Key(), f.Revision(), in.CID),
		"HOME=/tmp",
	}
	if f.Spec.Template.Protocol == v1alpha1.ProtocolLambdaRuntime {
		env = append(env, lambdaenv.Environ(lambdaConfig(f, taskRoot))...)
	} else {
		env = append(env, "PORT="+strconv.Itoa(int(functionPort(f))))
		if in.Runtime != nil {
			env = append(env, "_HANDLER="+f.Spec.Template.Handler, "LAMBDA_TASK_ROOT="+taskRoot)
		}
	}
	if in.Runtime != nil {
		env = append(env, pairs(in.Runtime.Spec.Env)...)
	}
	return append(env, pairs(f.Spec.Template.Env)...)
}

func lambdaConfig(f *v1alpha1.Function, taskRoot string) lambdaenv.Config {
	c := lambdaenv.Config{
		RuntimeAPI:  runtimeAPI,
		Function:    f.Name,
		Namespace:   f.Namespace,
		Handler:     f.Spec.Template.Handler,
		TaskRoot:    taskRoot,
		Concurrency: int(f.Spec.Template.Concurrency),
	}
	if memory := f.Spec.Template.Resources.Memory(); memory > 0 {
		c.MemoryMB = int(max(1, memory>>20))
	}
	return c
}

func pairs(env []v1alpha1.EnvVar) []string {
	out := make([]string, 0, len(env))
	for _, v := range env {
		if v.ValueFrom == nil {
			out = append(out, v.Name+"="+v.Value)
		}
	}
	return out
}

// variables are those of a container.
func variables(env []string) []corev1.EnvVar {
	kept := lastOfEach(env)
	out := make([]corev1.EnvVar, len(kept))
	for i, v := range kept {
		out[i] = corev1.EnvVar{Name: v.Name, Value: literal(v.Value)}
	}
	return out
}

// lastOfEach keeps of each name the last value, in the place of the first.
func lastOfEach(env []string) []v1alpha1.EnvVar {
	at := make(map[string]int, len(env))
	kept := make([]v1alpha1.EnvVar, 0, len(env))
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		v := v1alpha1.EnvVar{Name: name, Value: value}
		if i, ok := at[name]; ok {
			kept[i] = v
			continue
		}
		at[name] = len(kept)
		kept = append(kept, v)
	}
	return kept
}

func envFrom(sources []v1alpha1.EnvFromSource) []corev1.EnvFromSource {
	var out []corev1.EnvFromSource
	for _, s := range sources {
		source := corev1.EnvFromSource{Prefix: s.Prefix}
		if s.SecretRef != nil {
			source.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: named(s.SecretRef.Name), Optional: optional(s.SecretRef.Optional)}
		}
		if s.ConfigMapRef != nil {
			source.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: named(s.ConfigMapRef.Name), Optional: optional(s.ConfigMapRef.Optional)}
		}
		out = append(out, source)
	}
	return out
}
