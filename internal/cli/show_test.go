package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// sampleFunctions are functions in every state that list and describe show.
func sampleFunctions(t *testing.T) *harness {
	th := open(t)
	th.put(t, "default/hello", func(fn *v1alpha1.Function) {
		most, limit := int32(8), resource.MustParse("128Mi")
		fn.Spec.Template.Command = []string{"python3", "app.py", "--greeting", "good day"}
		fn.Spec.Template.Code = &v1alpha1.Code{Path: "/srv/hello"}
		fn.Spec.Template.Env = []v1alpha1.EnvVar{{Name: "MODE", Value: "test"}, {Name: "LANG", Value: "C"}}
		fn.Annotations = map[string]string{wellknown.AnnotationAlgorithm: "FPCSch"}
		fn.Spec.Scaling.MaxInstances, fn.Spec.Scaling.ScaleDown.Policy = &most, v1alpha1.ScaleDownLearned
		fn.Spec.Scaling.Windows = []v1alpha1.ScalingWindow{
			{Name: "office", Start: "0 8 * * 1-5", Duration: v1alpha1.Duration{Duration: 10 * time.Hour}, TimeZone: "Europe/Berlin", MinInstances: 5},
			{Name: "month", Start: "30 3 1 * *", Duration: v1alpha1.Duration{Duration: 90 * time.Minute}, MinInstances: 8},
		}
		fn.Spec.Calls = v1alpha1.Calls{MaxInFlight: 200, Rate: v1alpha1.Rate{Requests: 50}}
		fn.Spec.Expose.Hosts = []v1alpha1.Hostname{"hello.example.com", "shop.example.com", "bank.example.com", "new.example.com"}
		fn.Spec.Template.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: limit}
	})
	th.put(t, "default/broken", func(fn *v1alpha1.Function) {
		fn.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3.13"}, Handler: "main.handle", Code: &v1alpha1.Code{Inline: "import nothing"}}}
	})
	th.put(t, "team/fresh", nil)
	since := metav1.NewTime(now.Add(-3 * time.Minute))
	th.statuses[invocation.FunctionKey{Namespace: "default", Name: "hello"}] = v1alpha1.FunctionStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonStarted, LastTransitionTime: since, Message: "calls go to hello-00001"}},
		LatestCreatedRevisionName: "hello-00001", Traffic: []v1alpha1.TrafficStatus{{RevisionName: "hello-00001", Weight: 100}},
		Instances: v1alpha1.InstanceCounts{Ready: 3, Desired: 5},
		Hosts: []v1alpha1.HostStatus{
			{Hostname: "bank.example.com", State: v1alpha1.HostNotPermitted}, {Hostname: "hello.example.com", State: v1alpha1.HostAccepted},
			{Hostname: "shop.example.com", State: v1alpha1.HostConflict},
		},
	}
	th.statuses[invocation.FunctionKey{Namespace: "default", Name: "broken"}] = v1alpha1.FunctionStatus{
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonStartFailed, LastTransitionTime: since,
			Message: "the instance ended with code 1; it wrote:\nTraceback:\n  No module named 'nothing'"}},
		LatestCreatedRevisionName: "broken-00003", Traffic: []v1alpha1.TrafficStatus{{RevisionName: "broken-00002", Weight: 100}},
	}
	th.accounts[invocation.FunctionKey{Namespace: "default", Name: "hello"}] = decided()
	th.accounts[invocation.FunctionKey{Namespace: "default", Name: "broken"}] = decisionlog.Report{Calls: 2, Problem: v1alpha1.ReasonStartFailed}
	return th
}

// decided is what was decided on a function that was called a minute ago.
func decided() decisionlog.Report {
	book := decisionlog.NewLog(decisionlog.DefaultBounds())
	params := autoscaler.Params{Tick: 100 * time.Millisecond, StaleAfter: 100 * time.Millisecond}
	add := func(at time.Duration, s autoscaler.Snapshot, d autoscaler.Decision, o decisionlog.Outcome) {
		o.Wanted = d.Create
		s.Room, s.MeanExecution = -1, 12345*time.Microsecond
		book.Add("f", decisionlog.Entry{At: now.Add(at - time.Minute), Params: params, Snapshot: s, Decision: d, Outcome: o})
	}
	add(-26*time.Hour, autoscaler.Snapshot{Arrived: 1}, autoscaler.Decision{Create: 1, Why: autoscaler.ReasonFirst}, decisionlog.Outcome{Placed: decisionlog.Place([]string{"local"})})
	overload := autoscaler.Decision{Create: 5, Why: autoscaler.ReasonOverload, Required: 7, Rate: 40, Horizon: 500 * time.Millisecond}
	add(0, autoscaler.Snapshot{Arrived: 12, Stale: 4, Created: 2, Busy: 2, Creating: 2}, overload,
		decisionlog.Outcome{Placed: decisionlog.Place([]string{"a", "b", "a"}), NoRoom: "node c: 100m CPU requested, 0m of 400m free"})
	for tick := range 30 {
		add(time.Duration(tick+1)*params.Tick, autoscaler.Snapshot{Arrived: 12, Stale: 12, OldestWait: 3100 * time.Millisecond, Created: 2, Busy: 2, Creating: 5},
			autoscaler.Decision{Create: 2, Why: autoscaler.ReasonOverload, Required: 9}, decisionlog.Outcome{NoRoom: "node c: 100m CPU requested, 0m of 400m free"})
	}
	add(4*time.Second, autoscaler.Snapshot{Created: 7, Busy: 1}, autoscaler.Decision{Why: autoscaler.ReasonNoDemand}, decisionlog.Outcome{})
	return decisionlog.Report{Calls: 13, Instances: 7, Decisions: decisionlog.ReportEntries(book.Last("f", 99)), Load: &decisionlog.Load{
		Creating: 2, Busy: 1, Idle: 2, Waiting: 12, MeanExecution: 0.012345678, MeanStart: 1.234,
	}}
}

func TestWhatIsShownLooksAsItShould(t *testing.T) {
	th := sampleFunctions(t)
	for file, args := range map[string]string{
		"list.txt":             "list",
		"list-namespace.txt":   "list -n team",
		"list-all.txt":         "list -A",
		"list-wide.txt":        "list -o wide -A",
		"list-one.txt":         "get hello",
		"list-one.yaml":        "list fresh -n team -o yaml",
		"list-name.txt":        "list -o name -A",
		"list.yaml":            "list -o yaml -n team",
		"list.json":            "list -o json -n team",
		"describe.txt":         "describe hello",
		"describe-broken.txt":  "describe default/broken",
		"describe-unknown.txt": "describe fresh -n team",
		"describe.yaml":        "describe hello -o yaml",
		"explain.txt":          "explain hello",
		"explain.json":         "explain hello -o json --last 2",
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

// Who takes columns apart counts them.
func TestAWideListHasNoEmptyCell(t *testing.T) {
	functions := make([]v1alpha1.Function, 2)
	functions[0].Spec.Template.RuntimeRef.Name, functions[0].Spec.Template.Handler = "python3.13", "m.h"
	functions[1].Spec.Template.Image = "example.com/x:1"
	rows := listRows(functions, false, true, now)
	for i, want := range []string{"PROTOCOL", "-", "HTTP"} {
		if got := rows[i][7].text; got != want {
			t.Errorf("row %d has the protocol %q, want %q", i, got, want)
		}
	}
}

func TestA3DescribeSaysHowAnInstanceFailedLast(t *testing.T) {
	th := sampleFunctions(t)
	hello, broken := invocation.FunctionKey{Namespace: "default", Name: "hello"}, invocation.FunctionKey{Namespace: "default", Name: "broken"}
	failed := func(key invocation.FunctionKey, detail string) {
		account := th.accounts[key]
		account.LastFailure = &decisionlog.Failure{At: now.Add(-90 * time.Second), Code: v1alpha1.ReasonFunctionExited, Detail: detail}
		th.accounts[key] = account
	}
	failed(hello, "the function exited with status 3; its last log lines:\nout of ideas")
	th.run(t, "describe", "hello").expect(t, exitOK, "out",
		"Last failure\n  FunctionExited, 90s ago\n    the function exited with status 3; its last log lines:\n    out of ideas\n")
	failed(hello, "")
	th.run(t, "describe", "hello").expect(t, exitOK, "out", "FunctionExited, 90s ago\n    the Events say how; what it wrote: windlass logs hello\n")
	failed(broken, "Traceback")
	if r := th.run(t, "describe", "broken"); strings.Contains(r.out, "Last failure") {
		t.Errorf("what the condition says is said twice:\n%s", r.out)
	}
}

func TestA20AListOfNames(t *testing.T) {
	th := sampleFunctions(t)
	th.run(t, "list", "hello", "team/fresh", "-o", "name").expect(t, exitOK, "out", "hello\nteam/fresh\n")
	th.run(t, "list", "helo").expect(t, exitPlatform, "err", "there is no function default/helo; did you mean hello?")
}

func TestA10AFunctionThatCannotBeCalledIsRedInAList(t *testing.T) {
	condition := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStartFailed}
	broken := v1alpha1.Function{Status: v1alpha1.FunctionStatus{Conditions: []metav1.Condition{condition}}}
	broken.Name = "broken"
	rows := listRows([]v1alpha1.Function{broken, {}}, false, false, now)
	if name, reason := rows[1][0], rows[1][2]; name != (cell{"broken", red}) || reason != (cell{v1alpha1.ReasonStartFailed, red}) {
		t.Errorf("the row is %q", rows[1])
	}
	if name := rows[2][0]; name.colour != "" {
		t.Errorf("what is not broken is in %q", name.colour)
	}
}

func TestAnEmptyListSaysWhatToDo(t *testing.T) {
	th := open(t)
	th.run(t, "list").expect(t, exitOK, "err", "no function in the namespace default", "-A", "windlass deploy")
	th.run(t, "list", "-A").expect(t, exitOK, "err", "no function yet", "windlass deploy")
	th.run(t, "list", "-o", "json").expect(t, exitOK, "out", `"items": []`)
}

func TestLogs(t *testing.T) {
	th := sampleFunctions(t)
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

func TestA12LogsSayWhatKeepsThemEmpty(t *testing.T) {
	th := sampleFunctions(t)
	th.log = "00000001-000001 hi\n"
	th.run(t, "logs", "hello", "--since", "90m").expect(t, exitOK, "err", "the instances of function default/hello wrote nothing in the last 1h30m")
	if want := "default/hello follow false tail -1 since " + now.Add(-90*time.Minute).Format(time.TimeOnly); th.followed != want {
		t.Errorf("asked for %q, want %q", th.followed, want)
	}
	th.run(t, "logs", "hello", "--since", "-1s").expect(t, exitUsage, "err", "--since -1s: write how long ago")
	delete(th.statuses, invocation.FunctionKey{Namespace: "default", Name: "hello"})
	r := th.run(t, "logs", "hello", "-f")
	r.expect(t, exitOK, "out", th.log)
	if strings.Contains(r.err, "deleted") {
		t.Errorf("stderr has %q", r.err)
	}
}

func TestVersion(t *testing.T) {
	th := quiet(t)
	th.run(t, "version").expect(t, exitOK, "out", "windlass ", "go1.")
	th.run(t, "--version").expect(t, exitOK, "out", "windlass ")
}

func TestCompletionKnowsTheFunctions(t *testing.T) {
	th := sampleFunctions(t)
	th.run(t, "__complete", "describe", "").expect(t, exitOK, "out", "broken\nhello\nteam/fresh\n")
	th.run(t, "completion", "bash").expect(t, exitOK, "out", "__windlass")
	quiet(t).run(t, "__complete", "describe", "").expect(t, exitOK, "out", ":4")
}

func TestA16CompletionKnowsTheValuesOfFlags(t *testing.T) {
	th := sampleFunctions(t)
	for args, want := range map[string]string{
		"list -o":           "table\nwide\nname\njson\nyaml\n:4",
		"top --sort":        "queue\nrate\nerrors\np99\ninstances\nname\n:4",
		"deploy --runtime":  "python3.13\nnodejs22.x\n:4",
		"init --runtime":    "python3.13\nnodejs22.x\ncommand\n:4",
		"deploy --protocol": "HTTP\nLambdaRuntime\n:4",
		"deploy --class":    "LatencyCritical\nStandard\nBatch\n:4",
		"deploy --slice":    ":4",
		"up --algorithm":    strings.Join(autoscaler.Names(), "\n") + "\n:4",
		"up --node-slice":   "auto\nsfs\np95\noff\n:4",
		"list -n":           "default\nteam\n:4",
		"up --log-level":    "debug\ninfo\nwarn\nerror\n:4",
		"up --log-calls":    "Failed\nAll\nNone\n:4",
		"logs hello --tail": ":4",
		"top":               ":4",
		"up -f":             ":0",
		"list hello":        "broken\nteam/fresh\n:4",
	} {
		th.run(t, append(append([]string{"__complete"}, strings.Fields(args)...), "")...).expect(t, exitOK, "out", want)
	}
	th.run(t, "__complete", "invoke", "default/h").expect(t, exitOK, "out", "default/broken\ndefault/hello\nteam/fresh\n:4")
	if r := th.run(t, "__complete", "list", "--context", ""); strings.Contains(r.out, ":0") {
		t.Errorf("files are offered: %s", r.out)
	}
}

func TestA16CompletionOffersValuesOnly(t *testing.T) {
	th := quiet(t)
	a := newApp(Streams{}, Programs{})
	a.getenv = func(name string) string { return map[string]string{"WINDLASS_DATA_DIR": th.dir}[name] }
	offered := func(cmd *cobra.Command, flag string) []string {
		complete, known := cmd.GetFlagCompletionFunc(flag)
		if !known {
			return nil
		}
		cmd.SetContext(t.Context())
		values, _ := complete(cmd, nil, "")
		return values
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if slices.Contains(offered(cmd, flag.Name), "or") {
				t.Errorf("%s --%s offers the word or", cmd.CommandPath(), flag.Name)
			}
		})
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	root := a.command()
	visit(root)
	up, _, err := root.Find([]string{"up"})
	if err != nil {
		t.Fatal(err)
	}
	values := offered(up, "node-scheduling")
	for _, order := range callorder.Orders() {
		if !slices.Contains(values, string(order)) {
			t.Errorf("up --node-scheduling does not offer %s but %q", order, values)
		}
	}
}

func TestA16HelpIsInGroupsAndNamesNoTypesOfGo(t *testing.T) {
	th := quiet(t)
	help := th.run(t, "--help")
	help.expect(t, exitOK, "out", "Windlass runs serverless functions on Kubernetes or on this machine.", "Develop:\n", "Observe:\n", "Administer:\n", "Learn:\n")
	if strings.Contains(help.out, "-v,") {
		t.Error("-v is the version here and verbose elsewhere")
	}
	for _, cmd := range NewCommand(Streams{}, Programs{}).Commands() {
		for _, goType := range []string{" int32 ", " int ", " string ", " duration "} {
			if strings.Contains(cmd.LocalFlags().FlagUsages(), goType) {
				t.Errorf("%s --help has%s", cmd.Name(), goType)
			}
		}
	}
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234 * time.Nanosecond:        "1µs",
		1234567 * time.Nanosecond:     "1.23ms",
		123456789 * time.Nanosecond:   "123.5ms",
		1234567890 * time.Nanosecond:  "1.23s",
		12345678901 * time.Nanosecond: "12.3s",
	} {
		if got := mean(d.Seconds()); got != want {
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
