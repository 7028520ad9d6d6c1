package process

import (
	"net"
	"strconv"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda/lambdaenv"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// loopback is where functions and agents find each other.
const loopback = "127.0.0.1"

// inherited are the variables that a function inherits from Windlass, besides those that begin
// with LC_: a short list that programs need to run at all, so that no credential gets into a
// function by accident.
var inherited = map[string]bool{
	"PATH": true, "HOME": true, "LANG": true, "TZ": true, "TMPDIR": true, "USER": true,
}

// functionEnv is the function's environment. Of two values for one name the later wins: first
// the inherited ones from parent, then those of secrets, of the protocol, of the program
// itself, and last the user's own.
func functionEnv(parent []string, spec provisioner.InstanceSpec, port int, p program) []string {
	var env []string
	for _, kv := range parent {
		name, _, _ := strings.Cut(kv, "=")
		if inherited[name] || strings.HasPrefix(name, "LC_") {
			env = append(env, kv)
		}
	}
	env = append(env, p.secrets...)
	f := spec.Function
	env = append(env,
		"WINDLASS_FUNCTION_NAME="+f.Name,
		"WINDLASS_FUNCTION_NAMESPACE="+f.Namespace,
		"WINDLASS_INSTANCE="+string(spec.CID),
		"WINDLASS_RUNTIME_API="+v1alpha1.ContractV1,
		"OTEL_RESOURCE_ATTRIBUTES="+invocation.ResourceAttributes(f.Key(), f.Revision(), spec.CID),
		"WINDLASS_CONCURRENCY="+strconv.Itoa(int(f.Spec.Template.Concurrency)))
	if f.Spec.Template.Protocol == v1alpha1.ProtocolLambdaRuntime {
		env = append(env, lambdaenv.Environ(lambdaConfig(f, port, p))...)
	} else {
		env = append(env, "PORT="+strconv.Itoa(port))
	}
	env = append(env, p.env...)
	for _, v := range f.Spec.Template.Env {
		if value, there := valueOf(v, spec, p.keys); there {
			env = append(env, v.Name+"="+value)
		}
	}
	return lastWins(env)
}

// valueOf is the value of a variable, unless its source is optional and missing.
func valueOf(v v1alpha1.EnvVar, spec provisioner.InstanceSpec, keys map[string]string) (value string, there bool) {
	switch {
	case v.ValueFrom == nil:
		return v.Value, true
	case v.ValueFrom.FieldRef == nil:
		value, there = keys[v.Name]
		return value, there
	case v.ValueFrom.FieldRef.FieldPath == v1alpha1.FieldPathNamespace:
		return spec.Function.Namespace, true
	}
	// ValidateLocal lets no other field through.
	return string(spec.CID), true
}

// loopbackAddr is port on the loopback, host:port.
func loopbackAddr(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

func lambdaConfig(f *v1alpha1.Function, port int, p program) lambdaenv.Config {
	c := lambdaenv.Config{
		RuntimeAPI:  loopbackAddr(port),
		Function:    f.Name,
		Namespace:   f.Namespace,
		Handler:     f.Spec.Template.Handler,
		TaskRoot:    p.taskRoot,
		Concurrency: int(f.Spec.Template.Concurrency),
	}
	if memory := f.Spec.Template.Resources.Memory(); memory > 0 {
		c.MemoryMB = int(max(1, memory>>20))
	}
	return c
}

// lastWins keeps of each name the last value, in the place of the first.
func lastWins(env []string) []string {
	at := make(map[string]int, len(env))
	kept := env[:0:0]
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if i, ok := at[name]; ok {
			kept[i] = kv
			continue
		}
		at[name] = len(kept)
		kept = append(kept, kv)
	}
	return kept
}

// agentEnv is the agent's environment: its configuration, and PATH.
func agentEnv(parent []string, spec provisioner.InstanceSpec, port int, config Config) []string {
	f := spec.Function
	backoff, idle := f.Spec.Scaling.ScaleDown.Idle()
	env := agentenv.Config{
		Scheduler:   config.SchedulerAddr,
		Node:        config.NodeAddr,
		Class:       f.Spec.Template.Scheduling.UnusualClass(),
		Slice:       f.Spec.Template.Scheduling.Slice.Duration,
		FunctionUID: string(f.UID),
		Function:    f.Key().String(),
		Revision:    f.Revision(),
		CID:         string(spec.CID),
		Token:       spec.Token,
		CA:          config.CA,
		TLSDomain:   config.TLSDomain,
		Protocol:    string(f.Spec.Template.Protocol),
		Port:        port,
		// What the function asks for calls exists before the function does.
		ListenerInherited: f.Spec.Template.Protocol == v1alpha1.ProtocolLambdaRuntime,
		EndInherited:      true,
		Concurrency:       int(f.Spec.Template.Concurrency),
		StartupTimeout:    f.Spec.Template.StartupTimeout.Duration,
		BackoffAfter:      backoff,
		IdleTimeout:       idle,
	}.Environ()
	for _, kv := range parent {
		if strings.HasPrefix(kv, "PATH=") {
			env = append(env, kv)
		}
	}
	return env
}
