package podspec

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func input(f *v1alpha1.Function) Input {
	if f.Name == "" {
		f.Name = "hello"
	}
	f.Namespace, f.UID, f.Generation = "shop", "5f0c1c1e-6d57-4d0b-9b44-0f3b1d1f6a11", 4
	f.Annotations = map[string]string{
		v1alpha1.AnnotationRevision: "00003", v1alpha1.AnnotationFunctionUID: "0b8a3a52-2f4c-4f0e-8a43-6a9d9f5f2c77",
	}
	f.Spec.Template.StartupTimeout = v1alpha1.Duration{Duration: 20 * time.Second}
	v1alpha1.Default(f)
	return Input{
		Config: Config{
			AgentImage:    "registry.example/podagent:v1",
			AgentRequests: placement.Amount{MilliCPU: 10, Memory: 32 << 20, Pods: 1}, AgentMemoryLimit: 256 << 20,
			SchedulerAddr: "windlass-scheduler.windlass-system:9443",
			OwnerAddr:     "10.0.0.7:9443",
			CA:            "-----BEGIN CERTIFICATE-----\n",
			TLSDomain:     "windlass.windlass-system.windlass",
			PullPolicy:    corev1.PullIfNotPresent,
		},
		Function: f,
		CID:      "00003-" + invocation.Term{Epoch: 0x2a}.CID(7),
		Node:     "node-1",
		Decided:  time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC),
	}
}

var (
	python = &v1alpha1.ClusterRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: "python3.13"},
		Spec: v1alpha1.ClusterRuntimeSpec{
			Image: "registry.example/runtime-python3.13:v1", FileExtension: "py",
			Env: []v1alpha1.EnvVar{{Name: "PYTHONUNBUFFERED", Value: "1"}, {Name: "LEVEL", Value: "runtime"}},
		},
	}
	nodejs = &v1alpha1.ClusterRuntime{
		ObjectMeta: metav1.ObjectMeta{Name: "nodejs22.x"},
		Spec: v1alpha1.ClusterRuntimeSpec{
			Image: "registry.example/runtime-nodejs22.x:v1", FileExtension: "js", Command: []string{"node", "/boot.mjs"},
		},
	}
)

// full is a function that says everything.
func full() *v1alpha1.Function {
	f := &v1alpha1.Function{}
	f.Spec.Template = v1alpha1.FunctionTemplate{
		Metadata: v1alpha1.TemplateMetadata{
			Labels:      map[string]string{"cost-center": "4711", wellknown.LabelManagedBy: "somebody"},
			Annotations: map[string]string{"example.com/owner": "payments"},
		},
		Image: "registry.example/app:1", Command: []string{"/app", "--greeting=$(HELLO)"}, Args: []string{"--cost=$5"}, Port: 9000,
		Timeout: v1alpha1.Duration{Duration: 90*time.Second + time.Millisecond},
		Env: []v1alpha1.EnvVar{
			{Name: "MODE", Value: "$(PORT) $$"}, {Name: "HOME", Value: "/home/app"},
			{Name: "PASSWORD", ValueFrom: &v1alpha1.EnvVarSource{SecretKeyRef: &v1alpha1.KeyReference{Name: "db", Key: "password"}}},
			{Name: "LEVEL", ValueFrom: &v1alpha1.EnvVarSource{ConfigMapKeyRef: &v1alpha1.KeyReference{Name: "flags", Key: "level", Optional: true}}},
			// It replaces Windlass' own in its place.
			{Name: "OTEL_RESOURCE_ATTRIBUTES", ValueFrom: &v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: "metadata.name"}}},
		},
		EnvFrom: []v1alpha1.EnvFromSource{
			{Prefix: "DB_", SecretRef: &v1alpha1.EnvFromReference{Name: "db"}},
			{ConfigMapRef: &v1alpha1.EnvFromReference{Name: "flags", Optional: true}},
		},
		Resources: v1alpha1.Resources{
			Requests: corev1.ResourceList{"ephemeral-storage": resource.MustParse("2Gi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi"), "nvidia.com/gpu": resource.MustParse("1")},
		},
		Mounts: []v1alpha1.Mount{
			{Name: "tls", MountPath: "/etc/tls", Secret: &v1alpha1.SecretMount{SecretName: "app-tls"}},
			{Name: "settings", MountPath: "/etc/app/settings.json", SubPath: "settings.json", ConfigMap: &v1alpha1.ConfigMapMount{Name: "settings", Optional: true}},
			{Name: "models", MountPath: "/models", ReadOnly: true, PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "models"}},
			{Name: "data", MountPath: "/data", PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "data"}},
			{Name: "scratch", MountPath: "/scratch", EmptyDir: &v1alpha1.EmptyDirMount{SizeLimit: new(resource.MustParse("3Gi"))}},
			{Name: "fast", MountPath: "/fast", EmptyDir: &v1alpha1.EmptyDirMount{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("64Mi"))}},
		},
		ImagePullSecrets: []v1alpha1.LocalReference{{Name: "registry"}}, ServiceAccountName: "teller",
		Placement: v1alpha1.Placement{
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations: []corev1.Toleration{
				{Key: "gpu", Operator: corev1.TolerationOpExists},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			},
			RuntimeClassName: "gvisor", PriorityClassName: "high",
		},
	}
	return f
}

func TestPodsAreAsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		spec    v1alpha1.FunctionSpec
		runtime *v1alpha1.ClusterRuntime
		node    string
	}{
		"node-agent": {node: "windlass-node.windlass-system.svc:9443", spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "registry.example/app:1"}}},
		"image":      {spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "registry.example/app:1"}}},
		"full":       {spec: full().Spec},
		"python-inline": {runtime: python, spec: v1alpha1.FunctionSpec{
			Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3.13"}, Handler: "shop.cart.add", Concurrency: 4, Code: &v1alpha1.Code{Inline: "def add(event, context):\n    return '$(X)'\n"}, Env: []v1alpha1.EnvVar{{Name: "LEVEL", Value: "function"}}},
		}},
		"nodejs-configmap": {runtime: nodejs, spec: v1alpha1.FunctionSpec{
			Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "nodejs22.x"}, Handler: "index.handler", Protocol: v1alpha1.ProtocolHTTP, Code: &v1alpha1.Code{ConfigMapRef: v1alpha1.LocalReference{Name: "code"}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(&v1alpha1.Function{Spec: c.spec})
			in.Runtime, in.Config.NodeAddr, in.Config.NodeTokenAudience = c.runtime, c.node, "windlass-node"
			pod, err := Pod(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(pod)
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the pod changed; if that is meant, run with -update (-want +got):\n%s", diff)
			}
			again, err := Pod(in)
			if err != nil || cmp.Diff(pod, again) != "" {
				t.Errorf("the same input yields another pod: %v", err)
			}
		})
	}
}

// A function cannot mount over what Windlass mounts for it.
func TestWindlassMountsNothingThatAFunctionMayMountOver(t *testing.T) {
	f := full()
	f.Spec.Template.Mounts = nil
	for name, in := range map[string]Input{"an image": input(f), "a runtime": withRuntime(assigned())} {
		pod, err := Pod(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range pod.Spec.Containers {
			for _, m := range c.VolumeMounts {
				if !slices.ContainsFunc(v1alpha1.ReservedMountPaths, func(path string) bool { return strings.HasPrefix(m.MountPath+"/", path+"/") }) {
					t.Errorf("%s: %s of the container %s is not reserved", name, m.MountPath, c.Name)
				}
			}
		}
	}
}

func TestOnlyAFunctionThatWritesToAClaimHasAGroupForVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		mounts []v1alpha1.Mount
		want   bool
	}{
		"no mount":    {nil, false},
		"a Secret":    {[]v1alpha1.Mount{{Name: "a", Secret: &v1alpha1.SecretMount{SecretName: "s"}}}, false},
		"only reads":  {[]v1alpha1.Mount{{Name: "a", ReadOnly: true, PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "c"}}}, false},
		"also writes": {[]v1alpha1.Mount{{Name: "a", PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "c"}}}, true},
	} {
		f := full()
		f.Spec.Template.Mounts = c.mounts
		pod, err := Pod(input(f))
		if err != nil {
			t.Fatal(err)
		}
		if group := pod.Spec.SecurityContext.FSGroup; (group != nil) != c.want || group != nil && *group != GroupID {
			t.Errorf("%s: the group is %v", name, group)
		}
	}
}

func TestOnlyTheFunctionSeesItsMounts(t *testing.T) {
	pod, err := Pod(input(full()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range pod.Spec.Containers {
		mounts := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(m.Name, mountPrefix) })
		if mounts != (c.Name == ContainerFunction) {
			t.Errorf("the container %s has mounts of the function: %t", c.Name, mounts)
		}
	}
}

func withRuntime(f *v1alpha1.Function) Input {
	in := input(f)
	in.Runtime = python
	return in
}

func TestOnlyTheAgentSeesItsToken(t *testing.T) {
	f := full()
	pod, err := Pod(input(f))
	if err != nil {
		t.Fatal(err)
	}
	mounted := map[string][]string{}
	for _, c := range pod.Spec.Containers {
		for _, m := range c.VolumeMounts {
			mounted[m.Name] = append(mounted[m.Name], c.Name)
		}
	}
	if got := mounted[volumeAgentToken]; len(got) != 1 || got[0] != ContainerAgent {
		t.Errorf("the agent's token is mounted into %v", got)
	}
	if got := mounted[volumeAccountToken]; len(got) != 1 || got[0] != ContainerFunction {
		t.Errorf("the account's token is mounted into %v", got)
	}
}

func TestWhatCannotRunInAClusterIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		spec    v1alpha1.FunctionSpec
		runtime *v1alpha1.ClusterRuntime
		want    string
	}{
		"command alone":       {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{"./server"}}}, nil, "spec.template.image"},
		"unknown runtime":     {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "cobol"}, Handler: "a.b"}}, nil, `"cobol"`},
		"a path":              {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Code: &v1alpha1.Code{Path: "/src"}}}, nil, "spec.template.code.path"},
		"no code":             {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Code: &v1alpha1.Code{}}}, nil, "spec.template.code is empty"},
		"inline for an image": {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Code: &v1alpha1.Code{Inline: "x"}}}, nil, "add runtimeRef"},
		"the agent's port":    {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Port: DrainPort}}, nil, "spec.template.port 9090"},
		"the events' port":    {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Port: LambdaPort}}, nil, "spec.template.port 9001"},
		"no file extension":   {v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "own"}, Code: &v1alpha1.Code{Inline: "x"}}}, &v1alpha1.ClusterRuntime{}, "fileExtension"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(&v1alpha1.Function{Spec: c.spec})
			in.Runtime = c.runtime
			_, err := Pod(in)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
}

func TestNamesAreValidAndTellInstancesApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`).Draw(t, "name")
		cid := invocation.Term{Epoch: rapid.Uint64Range(0, 1<<52).Draw(t, "epoch")}.CID(rapid.Uint64Range(0, 1<<32).Draw(t, "sequence"))
		if len(cid) > MaxCID {
			t.Fatalf("%s has over %d bytes", cid, MaxCID)
		}
		got := Name(name, "uid", cid)
		if errs := validation.IsDNS1123Label(got); len(errs) > 0 {
			t.Fatalf("%s: %v", got, errs)
		}
		if !strings.HasSuffix(got, "-"+string(cid)) {
			t.Fatalf("%s does not end with the CID %s", got, cid)
		}
	})
	Name("", "uid", invocation.CID(strings.Repeat("0", MaxCID)))
	long := strings.Repeat("a", 62)
	if one, other := Name(long+"1", "u1", "0-1"), Name(long+"2", "u2", "0-1"); one == other {
		t.Errorf("two functions have a pod %s", one)
	}
}

func TestCodeLiesWhereTheHandlerSays(t *testing.T) {
	for _, c := range []struct{ handler, extension, want string }{
		{"app.handler", "py", "app.py"},
		{"shop.cart.add", "py", "shop/cart.py"},
		{"shop/cart.add", "py", "shop/cart.py"},
		{"index.handler", "mjs", "index.mjs"},
		{"src/index.handler", "js", "src/index.js"},
		{"index.api.get", "js", "index.js"},
	} {
		if got := codeFile(c.handler, c.extension); got != c.want {
			t.Errorf("%s: %s, want %s", c.handler, got, c.want)
		}
	}
}

func TestTheGracePeriodHasRoomForACall(t *testing.T) {
	for _, c := range []struct {
		timeout time.Duration
		want    int64
	}{
		{10 * time.Millisecond, 11},
		{time.Minute, 70},
		{24 * time.Hour, 3600},
	} {
		f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Timeout: v1alpha1.Duration{Duration: c.timeout}}}}
		pod, err := Pod(input(f))
		if err != nil {
			t.Fatal(err)
		}
		if got := *pod.Spec.TerminationGracePeriodSeconds; got != c.want {
			t.Errorf("timeout %v: %d s, want %d s", c.timeout, got, c.want)
		}
	}
}

func TestValidateNamesWrongFields(t *testing.T) {
	good := input(full()).Config
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, corrupt := range map[string]func(*Config){
		"AgentImage":    func(c *Config) { c.AgentImage = "" },
		"SchedulerAddr": func(c *Config) { c.SchedulerAddr = "" },
		"AgentRequests": func(c *Config) { c.AgentRequests.Memory = -1 },
		"PullPolicy":    func(c *Config) { c.PullPolicy = "Sometimes" },
	} {
		bad := good
		corrupt(&bad)
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v does not name it", field, err)
		}
	}
}

func BenchmarkPod(b *testing.B) {
	in := input(full())
	for b.Loop() {
		if _, err := Pod(in); err != nil {
			b.Fatal(fmt.Errorf("pod: %w", err))
		}
	}
}

// What a function makes its agent hold is outside the function's own limit.
func TestS5TheAgentHasAMemoryLimit(t *testing.T) {
	in := input(&v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3.13"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}}})
	in.Runtime = python
	pod, err := Pod(in)
	if err != nil {
		t.Fatal(err)
	}
	spare, err := Spare(spareInput())
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range map[string]*corev1.Pod{"a function": pod, "a spare instance": spare} {
		agent := pod.Spec.Containers[0]
		if got := agent.Resources.Limits.Memory().Value(); agent.Name != ContainerAgent || got != 256<<20 {
			t.Errorf("%s: the container %s may have %d bytes, want 256 MiB", name, agent.Name, got)
		}
		if last := agent.Env[len(agent.Env)-1]; last.Name != "GOMEMLIMIT" || last.Value != "241591905" {
			t.Errorf("%s: the agent collects garbage by %s=%s, want nine tenths of 256 MiB", name, last.Name, last.Value)
		}
	}
	for _, limit := range []int64{0, -1, 16 << 20} {
		c := in.Config
		c.AgentMemoryLimit = limit
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "AgentMemoryLimit") {
			t.Errorf("a limit of %d bytes: %v", limit, err)
		}
	}
}

// Without users of its own, a pod shares the kernel's limits for user 65532 with all
// others of its node.
func TestS6PodsMayHaveUsersOfTheirOwn(t *testing.T) {
	for _, apart := range []bool{false, true} {
		in, waiting := input(&v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "hello"}}}), spareInput()
		in.Config.UserNamespaces, waiting.Config.UserNamespaces = apart, apart
		pod, err := Pod(in)
		if err != nil {
			t.Fatal(err)
		}
		spare, err := Spare(waiting)
		if err != nil {
			t.Fatal(err)
		}
		for name, users := range map[string]*bool{"a function": pod.Spec.HostUsers, "a spare instance": spare.Spec.HostUsers} {
			if (users != nil && !*users) != apart {
				t.Errorf("%s with user namespaces %v: hostUsers is %v", name, apart, users)
			}
		}
	}
}
