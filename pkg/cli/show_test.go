package cli

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// repertoire are functions in every state that list and describe show.
func repertoire(t *testing.T) *theatre {
	th := open(t)
	th.put(t, "default/hello", func(fn *v1alpha1.Function) {
		most, limit := int32(8), resource.MustParse("128Mi")
		fn.Spec.Command = []string{"python3", "app.py", "--greeting", "good day"}
		fn.Spec.Code = &v1alpha1.Code{Path: "/srv/hello"}
		fn.Spec.Env = []v1alpha1.EnvVar{{Name: "MODE", Value: "test"}, {Name: "LANG", Value: "C"}}
		fn.Spec.Decider = v1alpha1.DeciderListing1
		fn.Spec.Scaling.Max, fn.Spec.Scaling.KeepAlive = &most, v1alpha1.KeepAliveHistogram
		fn.Spec.Scaling.Schedule = []v1alpha1.ScheduleWindow{
			{Start: "0 8 * * 1-5", Duration: metav1.Duration{Duration: 10 * time.Hour}, TimeZone: "Europe/Berlin", Min: 5},
			{Start: "30 3 1 * *", Duration: metav1.Duration{Duration: 90 * time.Minute}, Min: 8},
		}
		fn.Spec.Limits = v1alpha1.Limits{Concurrency: 200, RatePerSecond: 50}
		fn.Spec.Resources.Limits.Memory = &limit
	})
	th.put(t, "default/broken", func(fn *v1alpha1.Function) {
		fn.Spec = v1alpha1.FunctionSpec{Runtime: "python3", Handler: "main.handle", Code: &v1alpha1.Code{Inline: "import nothing"}}
	})
	th.put(t, "team/fresh", nil)
	since := metav1.NewTime(now.Add(-3 * time.Minute))
	th.statuses[invoke.FunctionKey{Namespace: "default", Name: "hello"}] = v1alpha1.FunctionStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonAccepted, LastTransitionTime: since, Message: "the function can be called"}},
		Instances:         v1alpha1.InstanceCounts{Creating: 2, Created: 3, Busy: 1, Idle: 2},
		Queued:            12,
		MeanExecutionTime: &metav1.Duration{Duration: 12345678 * time.Nanosecond},
		MeanStartTime:     &metav1.Duration{Duration: 1234 * time.Millisecond},
	}
	th.statuses[invoke.FunctionKey{Namespace: "default", Name: "broken"}] = v1alpha1.FunctionStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonStartFailed, LastTransitionTime: since,
			Message: "the instance ended with code 1; it wrote:\nTraceback:\n  No module named 'nothing'"}},
	}
	return th
}

func TestWhatIsShownLooksAsItShould(t *testing.T) {
	th := repertoire(t)
	for file, args := range map[string]string{
		"list.txt":             "list",
		"list-namespace.txt":   "list -n team",
		"list-all.txt":         "list -A",
		"list-wide.txt":        "list -o wide -A",
		"list-name.txt":        "list -o name -A",
		"list.yaml":            "list -o yaml -n team",
		"list.json":            "list -o json -n team",
		"describe.txt":         "describe hello",
		"describe-broken.txt":  "describe default/broken",
		"describe-unknown.txt": "describe fresh -n team",
		"describe.yaml":        "describe hello -o yaml",
	} {
		t.Run(args, func(t *testing.T) {
			got := th.run(t, strings.Fields(args)...)
			got.expect(t, exitOK, "out")
			if got.err != "" {
				t.Errorf("stderr has %q", got.err)
			}
			golden(t, file, got.out)
		})
	}
	th.run(t, "describe", "hello", "-o", "name").expect(t, exitOK, "out", "hello\n")
}

func TestAnEmptyListSaysWhatToDo(t *testing.T) {
	th := open(t)
	th.run(t, "list").expect(t, exitOK, "err", "no function in the namespace default", "-A", "windlass deploy")
	th.run(t, "list", "-A").expect(t, exitOK, "err", "no function yet", "windlass deploy")
	th.run(t, "list", "-o", "json").expect(t, exitOK, "out", `"items": []`)
}

func TestLogs(t *testing.T) {
	th := repertoire(t)
	th.run(t, "logs", "hello").expect(t, exitPlatform, "err", "call the function first")
	th.log = "00000001-000001 hi\n"
	th.run(t, "logs", "hello").expect(t, exitOK, "out", th.log)
	if want := "default/hello follow false tail -1"; th.followed != want {
		t.Errorf("asked for %q, want %q", th.followed, want)
	}
	th.run(t, "logs", "fresh", "-n", "team", "-f", "--tail", "5").expect(t, exitOK, "out", th.log)
	if want := "team/fresh follow true tail 5"; th.followed != want {
		t.Errorf("asked for %q, want %q", th.followed, want)
	}
}

func TestVersion(t *testing.T) {
	th := quiet(t)
	th.run(t, "version").expect(t, exitOK, "out", "windlass ", "go1.")
	th.run(t, "--version").expect(t, exitOK, "out", "windlass ")
}

func TestCompletionKnowsTheFunctions(t *testing.T) {
	th := repertoire(t)
	th.run(t, "__complete", "describe", "").expect(t, exitOK, "out", "broken\nhello\nteam/fresh\n")
	th.run(t, "completion", "bash").expect(t, exitOK, "out", "__windlass")
	quiet(t).run(t, "__complete", "describe", "").expect(t, exitOK, "out", ":4")
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Nanosecond:        "1µs",
		1234567 * time.Nanosecond:     "1.23ms",
		123456789 * time.Nanosecond:   "123.5ms",
		1234567890 * time.Nanosecond:  "1.23s",
		12345678901 * time.Nanosecond: "12.3s",
	} {
		if got := mean(&metav1.Duration{Duration: d}); got != want {
			t.Errorf("mean(%d ns) = %s, want %s", d, got, want)
		}
	}
}

func TestColoursAreForTerminalsOnly(t *testing.T) {
	var text strings.Builder
	a := newApp(Streams{Out: &text}, Programs{})
	a.getenv = func(string) string { return "" }
	a.table(&text, [][]cell{{{text: "True", colour: green}, {text: "x"}}, cells("é", "y")})
	if want := "True   x\né      y\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}
