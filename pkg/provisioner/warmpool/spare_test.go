package warmpool

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
		if _, got := Choose(fitting(c.change), pooled(), nil); got != c.want {
			t.Errorf("a function %s: %q, want %q", name, got, c.want)
		}
	}
	for name, rt := range map[string]*v1alpha1.ClusterRuntime{
		"no Runtime":        nil,
		"a Runtime without": pooled(func(rt *v1alpha1.ClusterRuntime) { rt.Spec.WarmPools = nil }),
	} {
		if _, got := Choose(fitting(), rt, nil); got != MisfitNoPool {
			t.Errorf("%s: %q", name, got)
		}
	}
	if _, got := Choose(fitting(), pooled(func(rt *v1alpha1.ClusterRuntime) { rt.Spec.FileExtension = "" }), nil); got != MisfitCode {
		t.Errorf("nobody knows where the code would lie: %q", got)
	}
}

// sized is a pool with so much memory, for namespaces with a label team of that value; for
// all if it is empty.
func sized(name, memory, team string) v1alpha1.WarmPool {
	p := v1alpha1.WarmPool{Name: name, Size: 1}
	p.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	if team != "" {
		p.NamespaceSelector = &v1alpha1.NamespaceSelector{MatchLabels: map[string]string{"team": team}}
	}
	return p
}

func TestAFunctionTakesFromThePoolOfItsSizeAndItsNamespace(t *testing.T) {
	rt := pooled(func(rt *v1alpha1.ClusterRuntime) {
		rt.Spec.WarmPools = []v1alpha1.WarmPool{
			sized("small", "64Mi", ""), sized("blue", "512Mi", "blue"), sized("red", "0.5Gi", "red"), sized("late", "512Mi", "red"), sized("large", "1Gi", "blue"),
			{Name: "broken", Size: 1, Resources: sized("", "2Gi", "").Resources, NamespaceSelector: &v1alpha1.NamespaceSelector{
				MatchExpressions: []v1alpha1.NamespaceRequirement{{Key: "team", Operator: "Like"}}}},
			{Name: "every", Size: 1, Resources: sized("", "3Gi", "").Resources, NamespaceSelector: &v1alpha1.NamespaceSelector{}},
		}
	})
	for name, c := range map[string]struct {
		memory string
		team   map[string]string
		want   string
		why    Misfit
	}{
		"a pool of all namespaces":              {"64Mi", map[string]string{"team": "green"}, "small", ""},
		"a pool of all, of a namespace unknown": {"64Mi", nil, "small", ""},
		"a team's":                              {"512Mi", map[string]string{"team": "blue"}, "blue", ""},
		"another team's, and the first of two":  {"512Mi", map[string]string{"team": "red"}, "red", ""},
		"of two sizes for one team":             {"1Gi", map[string]string{"team": "blue"}, "large", ""},
		"a team without one":                    {"512Mi", map[string]string{"team": "green"}, "", MisfitNamespace},
		"a namespace without labels":            {"512Mi", map[string]string{}, "", MisfitNamespace},
		"a namespace that is not known":         {"512Mi", nil, "", MisfitNamespace},
		"a size that no pool has":               {"300Mi", map[string]string{"team": "blue"}, "", MisfitResources},
		"a selector that means nothing":         {"2Gi", map[string]string{"team": "blue"}, "", MisfitNamespace},
		"a selector that selects all":           {"3Gi", map[string]string{}, "every", ""},
		"a selector that selects what is known": {"3Gi", nil, "", MisfitNamespace},
	} {
		fn := fitting(func(s *v1alpha1.FunctionSpec) { s.Template.Resources = sized("", c.memory, "").Resources })
		pool, why := Choose(fn, rt, c.team)
		got := ""
		if pool != nil {
			got = pool.Name
		}
		if got != c.want || why != c.why {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, why, c.want, c.why)
		}
	}
}

// The pool of a function is the first one that has its amounts, however they are written,
// and picks its namespace. Nothing else of the list matters, and there is no second choice.
func TestTheFirstPoolThatSuitsIsTaken(t *testing.T) {
	amounts := rapid.SampledFrom([]string{"64Mi", "67108864", "1Gi", "1024Mi", "2Gi"})
	team := rapid.SampledFrom([]string{"", "blue", "red"})
	outcomes := map[Misfit]int{}
	rapid.Check(t, func(t *rapid.T) {
		rt := pooled(func(rt *v1alpha1.ClusterRuntime) {
			rt.Spec.WarmPools = nil
			for i := range rapid.IntRange(1, v1alpha1.MaxWarmPools).Draw(t, "pools") {
				rt.Spec.WarmPools = append(rt.Spec.WarmPools, sized(fmt.Sprint("p", i), amounts.Draw(t, "memory"), team.Draw(t, "team")))
			}
		})
		fn := fitting(func(s *v1alpha1.FunctionSpec) {
			s.Template.Resources = sized("", amounts.Draw(t, "wanted"), "").Resources
		})
		of := team.Draw(t, "of")
		namespace := map[string]string{"team": of}

		want, why := "", MisfitResources
		for _, p := range rt.Spec.WarmPools {
			if p.Resources.Memory() != fn.Spec.Template.Resources.Memory() {
				continue
			}
			if p.NamespaceSelector == nil || p.NamespaceSelector.MatchLabels["team"] == of {
				want, why = p.Name, ""
				break
			}
			why = MisfitNamespace
		}
		pool, got := Choose(fn, rt, namespace)
		if got != why || pool != nil && pool.Name != want || (pool == nil) != (want == "") {
			t.Fatalf("%+v of the pools %+v: %v, %q; want %q, %q", fn.Spec.Template.Resources, rt.Spec.WarmPools, pool, got, want, why)
		}
		if pool != nil && !PoolFunction(Pool{Runtime: rt.Name, Name: pool.Name}, rt).Spec.Template.Resources.Equal(&fn.Spec.Template.Resources) {
			t.Fatalf("the instances of %s are of another size than the function", pool.Name)
		}
		outcomes[got]++
	})
	if outcomes[""] == 0 || outcomes[MisfitResources] == 0 || outcomes[MisfitNamespace] == 0 {
		t.Errorf("not all that can happen did: %v", outcomes)
	}
}

func TestAPoolHasAUIDThatNoFunctionHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?`)
		p := Pool{Scheduler: word.Draw(t, "scheduler"), Namespace: word.Draw(t, "namespace"), Runtime: word.Draw(t, "runtime"), Name: word.Draw(t, "name")}
		if got, ok := PoolOf(p.UID()); !ok || got != p {
			t.Fatalf("%s is of %+v, %v", p.UID(), got, ok)
		}
	})
	for _, uid := range []string{"", "6f9e4c1e-8d6b-4a43-9a52-1c3f60d1a111", "pool:a/b/c", "a/b/c/d"} {
		if p, ok := PoolOf(uid); ok {
			t.Errorf("%q is of the pool %+v", uid, p)
		}
	}
}

func TestThePoolsRevisionIsThatOfWhatRuns(t *testing.T) {
	name := Pool{Scheduler: "s", Namespace: "shop", Runtime: "python3.13", Name: "small"}
	revision := func(changes ...func(*v1alpha1.ClusterRuntime)) string {
		return PoolFunction(name, pooled(changes...)).Revision()
	}
	before := revision()
	if got := revision(func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Pool("small").Size = 7 }); got != before {
		t.Error("a pool of another size needs no other instances")
	}
	memory := resource.MustParse("1Gi")
	for what, change := range map[string]func(*v1alpha1.ClusterRuntime){
		"image":   func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Image = "python:2" },
		"command": func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Command = []string{"a"} },
		"env":     func(rt *v1alpha1.ClusterRuntime) { rt.Spec.Env = []v1alpha1.EnvVar{{Name: "A"}} },
		"resources": func(rt *v1alpha1.ClusterRuntime) {
			rt.Spec.Pool("small").Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: memory}
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
		"nothing is wanted":              {Snapshot{LaunchBudget: 9}, Decision{Why: ReasonEnough}},
		"there are enough":               {Snapshot{Target: 3, Ready: 1, Starting: 2, LaunchBudget: 9}, Decision{Why: ReasonEnough}},
		"some were taken":                {Snapshot{Target: 3, Ready: 1, LaunchBudget: 9}, Decision{Create: 2, Why: ReasonRefill}},
		"many were taken":                {Snapshot{Target: 100, LaunchBudget: 90}, Decision{Create: maxAtOnce, More: true, Why: ReasonRefill}},
		"functions have left little":     {Snapshot{Target: 3, LaunchBudget: 1}, Decision{Create: 1, More: true, Why: ReasonRefill}},
		"functions have left nothing":    {Snapshot{Target: 3}, Decision{More: true, Why: ReasonRate}},
		"functions lack room":            {Snapshot{Target: 3, LaunchBudget: 9, NodesFull: true}, Decision{Why: ReasonNodesFull}},
		"the last did not start":         {Snapshot{Target: 3, LaunchBudget: 9, Failing: true}, Decision{Create: 1, Why: ReasonFailing}},
		"another one is tried":           {Snapshot{Target: 3, LaunchBudget: 9, Starting: 1, Failing: true}, Decision{Why: ReasonFailing}},
		"the share has shrunk":           {Snapshot{Target: 1, Ready: 3, Starting: 1, LaunchBudget: 9}, Decision{Remove: 3, Why: ReasonSurplus}},
		"the Runtime has changed":        {Snapshot{Target: 3, Ready: 3, Outdated: 2, LaunchBudget: 9}, Decision{Replace: 2, Why: ReasonOutdated}},
		"the pool is gone while failing": {Snapshot{Ready: 2, Failing: true, NodesFull: true}, Decision{Remove: 2, Why: ReasonSurplus}},
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
			Failing: rapid.Bool().Draw(t, "failing"), NodesFull: rapid.Bool().Draw(t, "crowded"), LaunchBudget: rapid.IntRange(-1, 1024).Draw(t, "room"),
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
		case d.Create > max(0, s.LaunchBudget) || d.Create > maxAtOnce:
			t.Fatalf("%+v: more than may be created: %+v", s, d)
		case d.Create > 0 && s.NodesFull, s.Failing && have+d.Create > max(have, 1) && d.Create > 1:
			t.Fatalf("%+v: nothing should be created: %+v", s, d)
		case d.Remove > 0 && have-d.Remove != s.Target, d.Replace > have:
			t.Fatalf("%+v: too many are removed: %+v", s, d)
		case d.More != (d.Why == ReasonRate || d.Why == ReasonRefill && have+d.Create < s.Target):
			t.Fatalf("%+v: the next tick is to create more: %+v", s, d)
		case d.Why == "":
			t.Fatalf("%+v: nobody knows why: %+v", s, d)
		}
	})
}

// A pool that is left alone comes to its target and stays there, whatever it was.
func TestAPoolSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{Target: rapid.IntRange(0, 100).Draw(t, "target"), Ready: rapid.IntRange(0, 120).Draw(t, "ready"), LaunchBudget: 1024}
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

func BenchmarkChoose(b *testing.B) {
	fn, rt := fitting(func(s *v1alpha1.FunctionSpec) { s.Template.Timeout = v1alpha1.Duration{Duration: time.Second} }), pooled()
	for b.Loop() {
		if _, why := Choose(fn, rt, nil); why != "" {
			b.Fatal("it does not fit")
		}
	}
}
