//go:build apiserver

package chart

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
)

const allowed = "functions.allowed.tolerations=false,functions.allowed.nodeSelector=false,functions.allowed.priorityClasses={batch,low}," +
	"functions.allowed.mounts={configMap,emptyDir},functions.allowed.metadata={cost-center,example.com/},functions.allowed.runtimeClasses={gvisor},functions.allowed.serviceAccounts={reader},functions.allowed.maxTimeout=15m," +
	"functions.allowed.images={ghcr.io/acme,registry.example.com/,docker.io/library/nginx:1.29}"

// TestS14FunctionsMayAskForWhatThePlatformAllows tries each field with the rights of an
// administrator, before and after the platform has restricted it.
func TestS14FunctionsMayAskForWhatThePlatformAllows(t *testing.T) {
	c := policyCluster(t)
	admin := c.account(t, "")
	try := client.NewDryRunClient(admin)
	create := func(ctx context.Context, change func(*v1alpha1.FunctionSpec)) error {
		fn := imageFunction("hello")
		change(&fn.Spec)
		return try.Create(ctx, fn)
	}
	refused := func(t *testing.T, change func(*v1alpha1.FunctionSpec), want string) {
		t.Helper()
		err := create(t.Context(), change)
		if want == "" && err != nil {
			t.Errorf("refused: %v", err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("refused with %v, want the policy's %q", err, want)
		}
		if want != "" {
			tellRefused(t, "S14", "F112")
		}
	}
	system := func(s *v1alpha1.FunctionSpec) { s.Template.Placement.PriorityClassName = "system-node-critical" }
	eventually(t, "the policy is in force", func(ctx context.Context) (bool, error) { return create(ctx, system) != nil, nil })
	old := imageFunction("old")
	askForAll(&old.Spec)
	t.Run("by default everything but the cluster's priorities", func(t *testing.T) {
		refused(t, system, "spec.template.placement.priorityClassName: the classes that begin with system-")
		if err := admin.Create(t.Context(), old); err != nil {
			t.Errorf("refused: %v", err)
		}
	})

	c.mustHelm(t, "upgrade", release, chartDir, "--set", allowed)
	eventually(t, "the changed policy is in force", func(ctx context.Context) (bool, error) { return create(ctx, askForAll) != nil, nil })
	typeCheck(t, c, "windlass-functions")
	for name, test := range map[string]struct {
		change func(*v1alpha1.FunctionSpec)
		want   string // "" means allowed
	}{
		"nothing":              {func(*v1alpha1.FunctionSpec) {}, ""},
		"what is allowed":      {askForAllowed, ""},
		"a system's priority":  {system, "spec.template.placement.priorityClassName: the classes that begin with system-"},
		"another priority":     {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.PriorityClassName = "high" }, "spec.template.placement.priorityClassName: must be batch or low; name one of them, or leave the field out"},
		"another RuntimeClass": {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.RuntimeClassName = "kata" }, "spec.template.placement.runtimeClassName: must be gvisor"},
		"another account":      {func(s *v1alpha1.FunctionSpec) { s.Template.ServiceAccountName = "default" }, "spec.template.serviceAccountName: must be reader"},
		"a toleration": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Placement.Tolerations = []corev1.Toleration{{Operator: "Exists"}}
		}, "spec.template.placement.tolerations: is not allowed here; leave the field out"},
		"a nodeSelector": {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.NodeSelector = map[string]string{"a": "b"} }, "spec.template.placement.nodeSelector: is not allowed here; leave the field out"},
		"a claim": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Mounts = []v1alpha1.Mount{
				{Name: "a", MountPath: "/a", ConfigMap: &v1alpha1.ConfigMapMount{Name: "a"}},
				{Name: "b", MountPath: "/b", PersistentVolumeClaim: &v1alpha1.ClaimMount{ClaimName: "b"}},
			}
		}, "spec.template.mounts: may be of configMap or emptyDir alone; remove the others"},
		"keys that are allowed": {metadata("cost-center", "example.com/owner"), ""},
		"another label":         {metadata("sidecar.istio.io/inject", "example.com/owner"), "spec.template.metadata: keys must be cost-center or example.com/; remove the others"},
		"another annotation":    {metadata("cost-center", "owner"), "spec.template.metadata: keys must be"},
		"a key that is longer":  {metadata("cost-center-2", "cost-center"), "spec.template.metadata: keys must be"},
		"a domain below":        {metadata("cost-center", "a.example.com/owner"), "spec.template.metadata: keys must be"},
		"a longer timeout":      {timeout(15*time.Minute + time.Second), "spec.template.timeout: must be at most 15m; lower it"},
		"the longest timeout":   {timeout(15 * time.Minute), ""},

		"a repository below":       {image("ghcr.io/acme/fn/resize:1.0"), ""},
		"the repository, a tag":    {image("ghcr.io/acme:1.0"), ""},
		"the repository, a digest": {image("ghcr.io/acme@sha256:0123"), ""},
		"a registry":               {image("registry.example.com/a/b"), ""},
		"one image":                {image("docker.io/library/nginx:1.29"), ""},
		"another tag of it":        {image("docker.io/library/nginx:1.290"), "spec.template.image: must come from ghcr.io/acme or"},
		"a name that is longer":    {image("ghcr.io/acme-evil/miner"), "spec.template.image: must come from"},
		"a port of the same host":  {image("registry.example.com:5000/miner"), "spec.template.image: must come from"},
		"a host that is longer":    {image("ghcr.io.evil.com/acme/miner"), "spec.template.image: must come from"},
		"a short name":             {image("nginx:1.29"), "written in full"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, test.change, test.want) })
	}
	t.Run("one of a Runtime needs no image", func(t *testing.T) {
		refused(t, func(s *v1alpha1.FunctionSpec) {
			s.Template.Image, s.Template.RuntimeRef.Name, s.Template.Handler = "", v1alpha1.RuntimePython313, "main.handle"
			s.Template.Code = &v1alpha1.Code{Inline: "def handle(event, context): return event\n"}
		}, "")
	})
	t.Run("a function that was there goes on until it is changed", func(t *testing.T) { oldFunctionGoesOn(t, try, old) })

	c.mustHelm(t, "upgrade", release, chartDir, "--set", "functions.allowed.requiredRuntimeClass=gvisor")
	eventually(t, "a RuntimeClass is required", func(ctx context.Context) (bool, error) {
		err := create(ctx, func(*v1alpha1.FunctionSpec) {})
		return err != nil && strings.Contains(err.Error(), "spec.template.placement.runtimeClassName: must be gvisor; add runtimeClassName: gvisor"), nil
	})
	refused(t, func(s *v1alpha1.FunctionSpec) { s.Template.Placement.RuntimeClassName = "gvisor" }, "")
}

func oldFunctionGoesOn(t *testing.T, try client.Client, old *v1alpha1.Function) {
	patch := func(change func(*v1alpha1.Function)) error {
		changed := old.DeepCopy()
		change(changed)
		return try.Patch(t.Context(), changed, client.MergeFrom(old))
	}
	if err := patch(func(f *v1alpha1.Function) { f.Finalizers = []string{wellknown.FinalizerDrain} }); err != nil {
		t.Errorf("its finalizer cannot be changed: %v", err)
	}
	if err := patch(func(f *v1alpha1.Function) { f.Spec.Template.Timeout.Duration = time.Minute }); err == nil || !strings.Contains(err.Error(), "spec.") {
		t.Errorf("its spec is changed: %v", err)
	}
}

// TestS14ThePolicyIsOfTheNamespacesOfARelease wants a release to say nothing of
// Functions that another one runs.
func TestS14ThePolicyIsOfTheNamespacesOfARelease(t *testing.T) {
	binding := find(t, render(t, "--set", "watchNamespaces={team-a}"), "ValidatingAdmissionPolicyBinding", "windlass-functions")
	if spec, want := template(t, "--set", "watchNamespaces={team-a}", "-s", "templates/functionpolicy.yaml"), `values: ["team-a"]`; !strings.Contains(spec, want) {
		t.Errorf("%s has no %s", title(binding), want)
	}
}

func imageFunction(name string) *v1alpha1.Function {
	fn := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: "wide-open", Name: name}}
	fn.Spec.Template.Image = "ghcr.io/acme/hello:1"
	return fn
}

func image(name string) func(*v1alpha1.FunctionSpec) {
	return func(s *v1alpha1.FunctionSpec) { s.Template.Image = name }
}

func metadata(label, annotation string) func(*v1alpha1.FunctionSpec) {
	return func(s *v1alpha1.FunctionSpec) {
		s.Template.Metadata = v1alpha1.TemplateMetadata{Labels: map[string]string{label: "a"}, Annotations: map[string]string{annotation: "a"}}
	}
}

func timeout(d time.Duration) func(*v1alpha1.FunctionSpec) {
	return func(s *v1alpha1.FunctionSpec) { s.Template.Timeout.Duration = d }
}

func askForAll(s *v1alpha1.FunctionSpec) {
	s.Template.Image, s.Template.Timeout.Duration = "docker.io/other/image", 24*time.Hour
	s.Template.Placement.Tolerations, s.Template.Placement.NodeSelector = []corev1.Toleration{{Operator: "Exists"}}, map[string]string{"a": "b"}
	s.Template.Placement.PriorityClassName, s.Template.Placement.RuntimeClassName, s.Template.ServiceAccountName = "high", "kata", "default"
}

func askForAllowed(s *v1alpha1.FunctionSpec) {
	s.Template.Placement.PriorityClassName, s.Template.Placement.RuntimeClassName, s.Template.ServiceAccountName = "low", "gvisor", "reader"
}
