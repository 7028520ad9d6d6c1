package process

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

func TestFunctionEnvOfAnHTTPFunction(t *testing.T) {
	own := []string{"WINDLASS_FUNCTION_NAME=hello", "WINDLASS_FUNCTION_NAMESPACE=default", "WINDLASS_INSTANCE=c-1", "WINDLASS_RUNTIME_API=v1", "OTEL_RESOURCE_ATTRIBUTES=", "WINDLASS_CONCURRENCY=1", "PORT=8080"}
	for name, c := range map[string]struct {
		parent  []string
		program []string
		user    []v1alpha1.EnvVar
		want    []string
	}{
		"nothing is inherited that is not on the list": {
			parent: []string{"AWS_SECRET_ACCESS_KEY=x", "KUBECONFIG=y", "PATHOLOGY=z"},
			want:   slices.Clone(own),
		},
		"what programs need to run is inherited": {
			parent: []string{"PATH=/bin", "HOME=/h", "LANG=C", "LC_ALL=C", "TZ=UTC", "TMPDIR=/t", "USER=u"},
			want:   append([]string{"PATH=/bin", "HOME=/h", "LANG=C", "LC_ALL=C", "TZ=UTC", "TMPDIR=/t", "USER=u"}, own...),
		},
		"the program's variables come before the user's": {
			program: []string{"SHIM=1", "MODE=shim"},
			user:    []v1alpha1.EnvVar{{Name: "MODE", Value: "user"}, {Name: "EMPTY"}},
			want:    append(slices.Clone(own), "SHIM=1", "MODE=user", "EMPTY="),
		},
		"the user wins over what is inherited": {
			parent: []string{"PATH=/bin", "HOME=/h"},
			user:   []v1alpha1.EnvVar{{Name: "PATH", Value: "/mine"}},
			want:   append([]string{"PATH=/mine", "HOME=/h"}, own...),
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specFor("", "c-1")
			spec.Function.Spec.Template.Env = c.user
			got := functionEnv(c.parent, spec, 8080, program{env: c.program})
			// The revision is that of the spec with the user's variables.
			c.want[slices.Index(c.want, "OTEL_RESOURCE_ATTRIBUTES=")] += "faas.name=hello,faas.version=" + spec.Function.Revision() +
				",faas.instance=c-1,k8s.namespace.name=default"
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheUserSaysWhoItIsToOpenTelemetry(t *testing.T) {
	spec := specFor("", "c-1")
	spec.Function.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "OTEL_RESOURCE_ATTRIBUTES", Value: "faas.name=mine"}}
	if env := functionEnv(nil, spec, 8080, program{}); !slices.Contains(env, "OTEL_RESOURCE_ATTRIBUTES=faas.name=mine") {
		t.Errorf("got %v", env)
	}
}

func TestSecretsOverrideWhatIsInheritedAndNothingElse(t *testing.T) {
	spec := specFor("", "c-1")
	spec.Function.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "MODE", Value: "user"}}
	env := functionEnv([]string{"TZ=UTC"}, spec, 8080, program{secrets: []string{"PORT=1", "TZ=CET", "MODE=secret", "PASSWORD=x"}})
	for _, want := range []string{"PORT=8080", "TZ=CET", "MODE=user", "PASSWORD=x"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %v", want, env)
		}
	}
}

func TestFunctionEnvFromElsewhere(t *testing.T) {
	spec := specFor("", "c-1")
	spec.Function.Namespace = "shop"
	from := func(s v1alpha1.EnvVarSource) *v1alpha1.EnvVarSource { return &s }
	spec.Function.Spec.Template.Env = []v1alpha1.EnvVar{
		{Name: "PASSWORD", ValueFrom: from(v1alpha1.EnvVarSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "db", Key: "password"}})},
		{Name: "LEVEL", ValueFrom: from(v1alpha1.EnvVarSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "flags", Key: "level", Optional: true}})},
		{Name: "ME", ValueFrom: from(v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: v1alpha1.FieldPathName}})},
		{Name: "WHERE", ValueFrom: from(v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: v1alpha1.FieldPathNamespace}})},
	}
	env := functionEnv(nil, spec, 9000, program{secrets: []string{"PASSWORD=of envFrom"}, keys: map[string]string{"PASSWORD": "a=b"}})
	for _, want := range []string{"PASSWORD=a=b", "ME=c-1", "WHERE=shop"} {
		if !slices.Contains(env, want) {
			t.Errorf("there is no %s in %v", want, env)
		}
	}
	if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "LEVEL=") }) {
		t.Errorf("a variable whose key is missing has a value: %v", env)
	}
}

func TestFunctionEnvOfALambdaFunction(t *testing.T) {
	spec := specFor("", "c-1")
	f := &spec.Function.Spec
	f.Template.Protocol, f.Template.Handler, f.Template.Concurrency = v1alpha1.ProtocolLambdaRuntime, "app.handler", 4
	f.Template.Resources.Requests = amounts("", "64Mi")
	for name, c := range map[string]struct {
		limit, memory string
	}{
		"without a limit the request is its memory": {"", "64"},
		"with a limit that is its memory":           {"256Mi", "256"},
		"less than a unit is one":                   {"1k", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			f.Template.Resources.Limits = amounts("", c.limit)
			env := functionEnv(nil, spec, 9000, program{taskRoot: "/code"})
			for _, want := range []string{
				"AWS_LAMBDA_RUNTIME_API=127.0.0.1:9000",
				"AWS_LAMBDA_FUNCTION_NAME=hello",
				"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + c.memory,
				"AWS_LAMBDA_MAX_CONCURRENCY=4",
				"LAMBDA_TASK_ROOT=/code",
				"_HANDLER=app.handler",
			} {
				if !slices.Contains(env, want) {
					t.Errorf("%s is missing in %q", want, env)
				}
			}
			if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PORT=") }) {
				t.Error("there is a PORT, which belongs to the agent")
			}
		})
	}
}

func TestAgentEnvIsWhatTheAgentReadsAndPath(t *testing.T) {
	spec := specFor("", "c-1")
	spec.Token = "secret"
	env := agentEnv([]string{"HOME=/h", "PATH=/bin", "GITHUB_TOKEN=x"}, spec, 8080,
		Config{SchedulerAddr: "127.0.0.1:7001", CA: "ca", TLSDomain: "r.n.windlass"})
	got, err := agentenv.Parse(lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	want := agentenv.Config{
		Scheduler: "127.0.0.1:7001", FunctionUID: testUID, Function: "default/hello", Revision: spec.Function.Revision(),
		CID: "c-1", Token: "secret", CA: "ca", TLSDomain: "r.n.windlass", Protocol: agentenv.ProtocolHTTP, Port: 8080, EndInherited: true, Concurrency: 1,
		StartupTimeout: spec.Function.Spec.Template.StartupTimeout.Duration,
		BackoffAfter:   10 * time.Second,
		IdleTimeout:    50 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if others := slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "WINDLASS_") }); !slices.Equal(others, []string{"PATH=/bin"}) {
		t.Errorf("besides its configuration the agent gets %q, want PATH only", others)
	}
}

func TestTheAgentListensForARuntimeAndNotForAnHTTPServer(t *testing.T) {
	spec := specFor("stage", "c-1")
	for protocol, want := range map[v1alpha1.Protocol]bool{v1alpha1.ProtocolHTTP: false, v1alpha1.ProtocolLambdaRuntime: true} {
		spec.Function.Spec.Template.Protocol = protocol
		got, err := agentenv.Parse(lookup(agentEnv(nil, spec, 8080, Config{SchedulerAddr: "127.0.0.1:7001"})))
		if err != nil || got.ListenerInherited != want {
			t.Errorf("%s: inherits a listener: %v, %v; want %v", protocol, got.ListenerInherited, err, want)
		}
	}
}

func lookup(env []string) func(string) string {
	return func(name string) string {
		for _, kv := range env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestTheProtocolsOfAgentsAreThoseOfTheAPI(t *testing.T) {
	for api, agent := range map[v1alpha1.Protocol]string{
		v1alpha1.ProtocolHTTP:          agentenv.ProtocolHTTP,
		v1alpha1.ProtocolLambdaRuntime: agentenv.ProtocolLambdaRuntime,
	} {
		if string(api) != agent {
			t.Errorf("%s is %s to the agent", api, agent)
		}
	}
}

func TestCheckNames(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*provisioner.InstanceSpec)
		want   string
	}{
		"names as they should be":     {func(*provisioner.InstanceSpec) {}, ""},
		"a namespace that leads up":   {func(s *provisioner.InstanceSpec) { s.Function.Namespace = ".." }, "namespace"},
		"a name that leads down":      {func(s *provisioner.InstanceSpec) { s.Function.Name = "a/b" }, "name"},
		"a function without a uid":    {func(s *provisioner.InstanceSpec) { s.Function.UID = "" }, "uid"},
		"an instance id that is here": {func(s *provisioner.InstanceSpec) { s.CID = "." }, "instance id"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := specFor("", "c-1")
			c.change(&spec)
			err := checkNames(spec)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
