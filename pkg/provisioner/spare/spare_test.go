package spare

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func pooled(changes ...func(*v1alpha1.ClusterRuntime)) *v1alpha1.ClusterRuntime {
	rt := &v1alpha1.ClusterRuntime{Spec: v1alpha1.ClusterRuntimeSpec{Image: "python:1", FileExtension: "py", WarmPools: []v1alpha1.WarmPool{{Name: "small", Size: 3}}}}
	rt.Name = "python3.13"
	for _, change := range changes {
		change(rt)
	}
	v1alpha1.DefaultClusterRuntime(rt)
	return rt
}

func fitting(changes ...func(*v1alpha1.FunctionSpec)) *v1alpha1.Function {
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{
		Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3.13"}, Handler: "app.handler", Code: &v1alpha1.Code{Inline: "def handler(e, c): pass"}},
	}}
	f.Name, f.Namespace = "hello", "shop"
	for _, change := range changes {
		change(&f.Spec)
	}
	v1alpha1.Default(f)
	return f
}

func TestWhoCanTakeASpareInstance(t *testing.T) {
	cpu, other := resource.MustParse("0.1"), resource.MustParse("200m")
	for name, c := range map[string]struct {
		change func(*v1alpha1.FunctionSpec)
		want   Misfit
	}{
		"an ordinary one": {func(*v1alpha1.FunctionSpec) {}, ""},
		"the same in other words": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
		}, ""},
		"with variables":     {func(s *v1alpha1.FunctionSpec) { s.Template.Env = []v1alpha1.EnvVar{{Name: "A"}} }, ""},
		"with PYTHONPATH":    {func(s *v1alpha1.FunctionSpec) { s.Template.Env = []v1alpha1.EnvVar{{Name: "PYTHONPATH"}} }, MisfitVariable},
		"with LD_PRELOAD":    {func(s *v1alpha1.FunctionSpec) { s.Template.Env = []v1alpha1.EnvVar{{Name: "LD_PRELOAD"}} }, MisfitVariable},
		"with NODE_ENV":      {func(s *v1alpha1.FunctionSpec) { s.Template.Env = []v1alpha1.EnvVar{{Name: "NODE_ENV"}} }, ""},
		"with several calls": {func(s *v1alpha1.FunctionSpec) { s.Template.Concurrency = 10 }, ""},
		"of another Runtime": {func(s *v1alpha1.FunctionSpec) { s.Template.RuntimeRef.Name = "nodejs22.x" }, MisfitNoPool},
		"with an image":      {func(s *v1alpha1.FunctionSpec) { s.Template.RuntimeRef.Name, s.Template.Image = "", "a" }, MisfitNoPool},
		"with HTTP":          {func(s *v1alpha1.FunctionSpec) { s.Template.Protocol = v1alpha1.ProtocolHTTP }, MisfitProtocol},
		"without code":       {func(s *v1alpha1.FunctionSpec) { s.Template.Code = nil }, MisfitCode},
		"with code in a ConfigMap": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Code = &v1alpha1.Code{ConfigMapRef: v1alpha1.LocalReference{Name: "c"}}
		}, MisfitCode},
		"with an account": {func(s *v1alpha1.FunctionSpec) { s.Template.ServiceAccountName = "default" }, MisfitServiceAccount},
		"with a mount": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Mounts = []v1alpha1.Mount{{Name: "a", MountPath: "/a", EmptyDir: &v1alpha1.EmptyDirMount{}}}
		}, MisfitMounts},
		"with a variable from a pod": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Env = []v1alpha1.EnvVar{{Name: "A", ValueFrom: &v1alpha1.EnvVarSource{FieldRef: &v1alpha1.FieldReference{FieldPath: "metadata.name"}}}}
		}, MisfitEnvFrom},
		"with variables from objects": {func(s *v1alpha1.FunctionSpec) { s.Template.EnvFrom = make([]v1alpha1.EnvFromSource, 1) }, MisfitEnvFrom},
		"with pull secrets":           {func(s *v1alpha1.FunctionSpec) { s.Template.ImagePullSecrets = make([]v1alpha1.LocalReference, 1) }, MisfitPullSecrets},
		"with a node selector":        {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.NodeSelector = map[string]string{"disk": "fast"} }, MisfitPlacement},
		"with tolerations":            {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.Tolerations = make([]corev1.Toleration, 1) }, MisfitPlacement},
		"with a runtime class":        {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.RuntimeClassName = "kata" }, MisfitRuntimeClass},
		"with labels of its own":      {func(s *v1alpha1.FunctionSpec) { s.Template.Metadata.Labels = map[string]string{"a": "b"} }, MisfitMetadata},
		"with annotations of its own": {func(s *v1alpha1.FunctionSpec) { s.Template.Metadata.Annotations = map[string]string{"a": "b"} }, MisfitMetadata},
		"with a priority":             {func(s *v1alpha1.FunctionSpec) { s.Template.Placement.PriorityClassName = "high" }, MisfitPriority},
		"with a long timeout":         {func(s *v1alpha1.FunctionSpec) { s.Template.Timeout.Duration = MaxTimeout + 1 }, MisfitTimeout},
		"with the longest timeout":    {func(s *v1alpha1.FunctionSpec) { s.Template.Timeout.Duration = MaxTimeout }, ""},
		"with other requests": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: other}
		}, MisfitResources},
		"with a device": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
		}, MisfitResources},
		"with a limit": {func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: other}
		}, MisfitResources},
	} {
		if got := Fits(fitting(c.change), pooled()); got != c.want {
			t.Errorf("a function %s: %q, want %q", name, got, c.want)
		}
	}
	for name, rt := range map[string]*v1alpha1.ClusterRuntime{
		"no Runtime":        nil,
		"a Runtime without": pooled(func(rt *v1alpha1.ClusterRuntime) { rt.Spec.WarmPools = nil }),
	} {
		if got := Fits(fitting(), rt); got != MisfitNoPool {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := Fits(fitting(), pooled(func(rt *v1alpha1.ClusterRuntime) { rt.Spec.FileExtension = "" })); got != MisfitCode {
		t.Errorf("nobody knows where the code would lie: %q", got)
	}
}

func TestAPoolHasAUIDThatNoFunctionHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
		p := Pool{Scheduler: word.Draw(t, "scheduler"), Namespace: word.Draw(t, "namespace"), Runtime: word.Draw(t, "runtime")}
		if got, ok := PoolOf(p.UID()); !ok || got != p {
			t.Fatalf("%s is of %+v, %v", p.UID(), got, ok)
		}
	})
	for _, uid := range []string{"", "6f9e4c1e-8d6b-4a43-9a52-1c3f60d1a111", "pool:a/b", "a/b/c"} {
		if p, ok := PoolOf(uid); ok {
			t.Errorf("%q is of the pool %+v", uid, p)
		}
	}
}

func TestThePoolsRevisionIsThatOfWhatRuns(t *testing.T) {
	name := Pool{Scheduler: "s", Namespace: "shop", Runtime: "python3.13"}
	revision := func(changes ...func(*v1alpha1.ClusterRuntime)) string {
		return PoolFunction(name, pooled(changes...)).Revision()
	}
	before := revision()
	if got := revision(func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Pool().Size = 7 }); got != before {
		t.Error("a pool of another size needs no other instances")
	}
	memory := resource.MustParse("1Gi")
	for what, change := range map[string]func(*v1alpha1.ClusterRuntime){
		"image":   func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Image = "python:2" },
		"command": func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Command = []string{"a"} },
		"env":     func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Env = []v1alpha1.EnvVar{{Name: "A"}} },
		"resources": func(rt *v1alpha1.ClusterRuntime) {
			rt.Spec.Pool().Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: memory}
		},
	} {
		if revision(change) == before {
			t.Errorf("another %s is the same revision", what)
		}
	}
}

func TestSharesAddUpAndAreInProportion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 100).Draw(t, "size")
		owned := rapid.MapOf(rapid.StringMatching(`[a-f]`), rapid.IntRange(0, 5000)).Draw(t, "owned")
		total, sum, owners := 0, 0, 0
		for _, n := range owned {
			total += n
			if n > 0 {
				owners++
			}
		}
		for id, n := range owned {
			share := Share(size, owned, id)
			sum += share
			if n == 0 {
				if share != 0 {
					t.Fatalf("%s owns nothing and has %d", id, share)
				}
				continue
			}
			if size < owners && share > 1 || size >= owners && share < 1 {
				t.Fatalf("%s has %d of %d, which %d schedulers share", id, share, size, owners)
			}
			if exact := float64(size-owners) * float64(n) / float64(total); size >= owners && (float64(share-1) <= exact-1 || float64(share-1) >= exact+1) {
				t.Fatalf("%s has %d of %d for %d of %d functions", id, share, size, n, total)
			}
			for other, m := range owned {
				if m > n && Share(size, owned, other) < share {
					t.Fatalf("%s owns less than %s and has more", id, other)
				}
			}
		}
		if total > 0 && sum != size || total == 0 && sum != 0 {
			t.Fatalf("shares add up to %d, want %d: %v", sum, size, owned)
		}
		if Share(size, owned, "stranger") != 0 {
			t.Fatal("who is not there has a share")
		}
	})
}

func TestEqualRemaindersGoByID(t *testing.T) {
	owned := map[string]int{"b": 1, "a": 1, "c": 1}
	got := []int{Share(4, owned, "a"), Share(4, owned, "b"), Share(4, owned, "c")}
	if !slices.Equal(got, []int{2, 1, 1}) {
		t.Errorf("shares %v", got)
	}
}

func TestDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		s    Snapshot
		want Decision
	}{
		"nothing is wanted":              {Snapshot{Room: 9}, Decision{Why: ReasonEnough}},
		"there are enough":               {Snapshot{Target: 3, Ready: 1, Starting: 2, Room: 9}, Decision{Why: ReasonEnough}},
		"some were taken":                {Snapshot{Target: 3, Ready: 1, Room: 9}, Decision{Create: 2, Why: ReasonRefill}},
		"many were taken":                {Snapshot{Target: 100, Room: 90}, Decision{Create: maxAtOnce, Why: ReasonRefill}},
		"functions have left little":     {Snapshot{Target: 3, Room: 1}, Decision{Create: 1, Why: ReasonRefill}},
		"functions have left nothing":    {Snapshot{Target: 3}, Decision{Why: ReasonRate}},
		"functions lack room":            {Snapshot{Target: 3, Room: 9, Crowded: true}, Decision{Why: ReasonCrowded}},
		"the last did not start":         {Snapshot{Target: 3, Room: 9, Failing: true}, Decision{Create: 1, Why: ReasonFailing}},
		"another one is tried":           {Snapshot{Target: 3, Room: 9, Starting: 1, Failing: true}, Decision{Why: ReasonFailing}},
		"the share has shrunk":           {Snapshot{Target: 1, Ready: 3, Starting: 1, Room: 9}, Decision{Remove: 3, Why: ReasonSurplus}},
		"the Runtime has changed":        {Snapshot{Target: 3, Ready: 3, Outdated: 2, Room: 9}, Decision{Replace: 2, Why: ReasonOutdated}},
		"the pool is gone while failing": {Snapshot{Ready: 2, Failing: true, Crowded: true}, Decision{Remove: 2, Why: ReasonSurplus}},
	} {
		if got := Decide(c.s); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestDecisionsKeepWhatThePackagePromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 120)
		s := Snapshot{
			Target: rapid.IntRange(0, 100).Draw(t, "target"), Ready: n.Draw(t, "ready"), Starting: n.Draw(t, "starting"),
			Failing: rapid.Bool().Draw(t, "failing"), Crowded: rapid.Bool().Draw(t, "crowded"), Room: rapid.IntRange(-1, 1024).Draw(t, "room"),
		}
		s.Outdated = rapid.IntRange(0, s.Ready+s.Starting).Draw(t, "outdated")
		d := Decide(s)
		have := s.Ready + s.Starting
		positive := 0
		for _, count := range []int{d.Create, d.Replace, d.Remove} {
			if count < 0 {
				t.Fatalf("%+v: %+v", s, d)
			}
			if count > 0 {
				positive++
			}
		}
		switch {
		case positive > 1:
			t.Fatalf("%+v: more than one thing is done: %+v", s, d)
		case d.Create > 0 && have+d.Create > s.Target:
			t.Fatalf("%+v: more than the target: %+v", s, d)
		case d.Create > max(0, s.Room) || d.Create > maxAtOnce:
			t.Fatalf("%+v: more than may be created: %+v", s, d)
		case d.Create > 0 && s.Crowded, s.Failing && have+d.Create > max(have, 1) && d.Create > 1:
			t.Fatalf("%+v: nothing should be created: %+v", s, d)
		case d.Remove > 0 && have-d.Remove != s.Target, d.Replace > have:
			t.Fatalf("%+v: too many are removed: %+v", s, d)
		case d.Why == "":
			t.Fatalf("%+v: nobody knows why: %+v", s, d)
		}
	})
}

// A pool that is left alone comes to its target and stays there, whatever it was.
func TestAPoolSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{Target: rapid.IntRange(0, 100).Draw(t, "target"), Ready: rapid.IntRange(0, 120).Draw(t, "ready"), Room: 1024}
		s.Outdated = rapid.IntRange(0, s.Ready).Draw(t, "outdated")
		for range 40 {
			d := Decide(s)
			s.Ready += d.Create - d.Replace - d.Remove
			s.Outdated -= d.Replace
		}
		if d := Decide(s); s.Ready != s.Target || d != (Decision{Why: ReasonEnough}) {
			t.Fatalf("it is at %+v: %+v", s, d)
		}
	})
}

func ExampleShare() {
	owned := map[string]int{"scheduler-a": 6, "scheduler-b": 3, "scheduler-c": 0}
	for _, id := range []string{"scheduler-a", "scheduler-b", "scheduler-c"} {
		fmt.Println(id, Share(5, owned, id))
	}
	// Output:
	// scheduler-a 3
	// scheduler-b 2
	// scheduler-c 0
}

func BenchmarkFits(b *testing.B) {
	fn, rt := fitting(func(s *v1alpha1.FunctionSpec) { s.Template.Timeout = v1alpha1.Duration{Duration: time.Second} }), pooled()
	for b.Loop() {
		if Fits(fn, rt) != "" {
			b.Fatal("it does not fit")
		}
	}
}
