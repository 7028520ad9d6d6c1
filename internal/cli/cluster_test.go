package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: here
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: u, user: {token: t}}
contexts:
- {name: here, context: {cluster: c, user: u, namespace: team}}
- {name: there, context: {cluster: c, user: u}}
`

// clusterHarness is a machine with a kubeconfig, whose cluster is kube.
type clusterHarness struct {
	kube client.Client
	env  map[string]string
	// connected are the contexts that were used.
	connected []string
	plugin    bool
	streams   kubeclient.StreamDialer
}

func newClusterHarness(t *testing.T, objects ...client.Object) *clusterHarness {
	t.Helper()
	home := write(t, map[string]string{".kube/config": kubeconfig})
	kube := fake.NewClientBuilder().WithScheme(kubeclient.Scheme()).WithObjects(objects...).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string {
			return []string{string(o.(*corev1.Event).InvolvedObject.UID)}
		}).Build()
	// The path of a socket must be short, which home's is not.
	return &clusterHarness{kube: kube, env: map[string]string{"HOME": home, "XDG_STATE_HOME": quiet(t).dir}}
}

func (s *clusterHarness) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return s.play(t, nil, args...)
}

func (s *clusterHarness) play(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp(Streams{In: stdin, Out: &out, Err: &errs}, Programs{})
	a.now = func() time.Time { return now }
	a.getenv = func(name string) string { return s.env[name] }
	a.plugin = s.plugin
	a.connect = func(access *kubeclient.Access) (*kubeclient.Client, error) {
		s.connected = append(s.connected, access.Context)
		return kubeclient.NewWith(kubeclient.Deps{Context: access.Context, Kube: s.kube, Logs: logOf("2026-03-01T12:00:00Z hi\n"), Streams: s.streams,
			Version: func(context.Context) (string, error) { return "v1.99", nil }}), nil
	}
	code := a.main(args)
	return outcome{code, out.String(), errs.String()}
}

// logOf is the log of every container.
type logOf string

func (l logOf) OpenLog(_ context.Context, _, _ string, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(string(l[:len(l)-1]) + " from " + options.Container + "\n")), nil
}

func clusterFunction(namespace, name string, ready metav1.ConditionStatus, reason string) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID, fn.Generation = namespace, name, types.UID("uid-of-"+name), 1
	fn.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	fn.Spec.Template.Image = "example.com/" + name + ":1"
	v1alpha1.Default(fn)
	fn.Status.URL = "http://gateway.example/function/" + name + "." + namespace
	fn.Status.ObservedGeneration = 1
	fn.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready, Reason: reason,
		LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)), Message: "the reason in full"}}
	return fn
}

func TestWhichWindlass(t *testing.T) {
	for name, c := range map[string]struct {
		finder finder
		env    string
		want   targetKind
		err    string
	}{
		"nothing":                {finder{}, "", targetEither, ""},
		"the environment":        {finder{}, "/x", targetLocal, ""},
		"a data folder":          {finder{dataDir: "/x"}, "", targetLocal, ""},
		"a context":              {finder{flags: clusterFlags{context: "c"}}, "", targetCluster, ""},
		"a kubeconfig":           {finder{flags: clusterFlags{kubeconfig: "k"}}, "", targetCluster, ""},
		"flags beat environment": {finder{flags: clusterFlags{context: "c"}}, "/x", targetCluster, ""},
		"the plugin":             {finder{plugin: true}, "/x", targetCluster, ""},
		"both kinds of flags":    {finder{dataDir: "/x", flags: clusterFlags{context: "c"}}, "", 0, "--context means a cluster, and --data-dir"},
		"both kinds again":       {finder{dataDir: "/x", flags: clusterFlags{kubeconfig: "k"}}, "", 0, "--kubeconfig means a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			c.finder.host = &host{getenv: func(string) string { return c.env }}
			got, err := c.finder.chooseTarget()
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || got != c.want {
				t.Errorf("got %v, %v, want %v, %q", got, err, c.want, c.err)
			}
		})
	}
}

func TestByDefaultItIsTheLocalWindlassOrElseTheCurrentContext(t *testing.T) {
	s := newClusterHarness(t, clusterFunction("team", "far", metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	s.run(t, "list").expect(t, exitOK, "out", "far")
	got := s.run(t, "deploy", "--name", "x", "--image", "example.com/x:1")
	got.expect(t, exitOK, "err", "using the cluster of the context here")
	got = s.run(t, "list")
	if strings.Contains(got.err, "context") {
		t.Errorf("a verb that changes nothing says %q", got.err)
	}
	got = s.run(t, "deploy", "--context", "there", "--name", "x", "--image", "example.com/x:1")
	if strings.Contains(got.err, "using the cluster") {
		t.Errorf("who has named the context is told %q", got.err)
	}
	got.expect(t, exitOK, "out", "function default/x created", "try  windlass --context there invoke x")
	if diff := cmp.Diff([]string{"here", "here", "here", "there"}, s.connected); diff != "" {
		t.Errorf("the contexts (-want +got):\n%s", diff)
	}

	th := openAt(t, "windlass")
	th.put(t, "default/near", nil)
	s.env["XDG_STATE_HOME"] = filepath.Dir(th.dir)
	s.run(t, "list").expect(t, exitOK, "out", "near")
	s.run(t, "list", "--context", "here").expect(t, exitOK, "out", "far")

	empty := &clusterHarness{env: map[string]string{"HOME": quiet(t).dir}}
	empty.run(t, "list").expect(t, exitPlatform, "err", "no Windlass runs with the data folder", "there is no kubeconfig either", "windlass up", "--data-dir", "--context")
	(&clusterHarness{env: map[string]string{}}).run(t, "list").expect(t, exitUsage, "err", "no data folder")

	// No Windlass can run where a socket's path would be too long.
	s = newClusterHarness(t, clusterFunction("team", "far", metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	s.env["XDG_STATE_HOME"] = filepath.Join(s.env["XDG_STATE_HOME"], strings.Repeat("long", 25))
	s.run(t, "list").expect(t, exitOK, "out", "far")
}

// Otherwise delete would delete a function of the cluster that has the same name.
func TestALocalWindlassThatCannotBeReachedIsNotReplacedByACluster(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(dataDir string) error
		want    string
	}{
		"a socket that cannot be opened": {func(dataDir string) error {
			return os.Symlink("control.sock", filepath.Join(dataDir, "control.sock"))
		}, "cannot connect"},
		"the folder of another user": {func(dataDir string) error { return os.Chmod(dataDir, 0) }, "belongs to another user"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getuid() == 0 && strings.Contains(c.want, "another user") {
				t.Skip("root may enter every folder")
			}
			s := newClusterHarness(t, clusterFunction("team", "far", metav1.ConditionTrue, v1alpha1.ReasonAccepted))
			dataDir := filepath.Join(s.env["XDG_STATE_HOME"], "windlass")
			if err := errors.Join(os.MkdirAll(dataDir, 0o700), c.prepare(dataDir)); err != nil {
				t.Fatal(err)
			}
			for _, verb := range []string{"list", "delete far"} {
				s.run(t, strings.Fields(verb)...).expect(t, exitPlatform, "err", c.want, dataDir, "--data-dir", "--context")
			}
			s.run(t, "list", "--context", "here").expect(t, exitOK, "out", "far")
		})
	}
}

func TestFlagsOfTheOtherKindAreMisuse(t *testing.T) {
	th := open(t)
	th.put(t, "default/f", nil)
	for args, want := range map[string]string{
		"list --context x --data-dir y":                  "--context means a cluster",
		"deploy --name x --force-conflicts -- y":         "--force-conflicts is for a cluster",
		"logs f --agent":                                 "--agent is for a cluster",
		"invoke f --windlass-namespace x":                "--windlass-namespace is for a cluster",
		"invoke f --gateway nonsense":                    "is no URL",
		"up --context x":                                 `--context has no effect with "up"`,
		"demo -n x":                                      `--namespace has no effect with "demo"`,
		"check --gateway 127.0.0.1:8080":                 "is no URL",
		"check --gateway http://x --timeout 0s":          "--timeout 0s must be more than 0",
		"delete f --timeout 0s":                          "--timeout 0s must be more than 0",
		"deploy --name x --wait=0s -- y":                 "--wait=0s must be more than 0",
		"deploy --name x --image i --code .":             "--image and --code exclude each other",
		"deploy --name x --image i --runtime r":          "--image and --runtime exclude each other",
		"deploy --name x --image i --port 0":             "--port must be more than 0",
		"deploy --name x --image i --command a|b":        "sh -c",
		"deploy -f a --image x":                          "-f and --image exclude each other",
		"deploy --name /x --image i":                     "write NAMESPACE before the slash",
		"deploy --name x --image i --env WINDLASS_A=1 y": "unexpected argument",
	} {
		t.Run(args, func(t *testing.T) {
			th.run(t, strings.Fields(args)...).expect(t, exitUsage, "err", want, "usage: windlass ")
		})
	}
}

func TestDeployFromAnImage(t *testing.T) {
	s := newClusterHarness(t)
	s.run(t, "deploy", "--name", "x", "--image", "example.com/x:1", "--port", "9000", "--command", "/bin/serve -v", "--env", "A=1", "--", "--level", "3").
		expect(t, exitOK, "out", "function team/x created", "try  windlass invoke x")
	var fn v1alpha1.Function
	if err := s.kube.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "x"}, &fn); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "example.com/x:1", Port: 9000, Command: []string{"/bin/serve", "-v"}, Args: []string{"--level", "3"}, Env: []v1alpha1.EnvVar{{Name: "A", Value: "1"}}}}
	if diff := cmp.Diff(want, fn.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestDeployOfCodeToACluster(t *testing.T) {
	s := newClusterHarness(t)
	dir := write(t, map[string]string{"greet/main.py": "def handle(e, c): return e\n", "many/main.py": "x", "many/lib/y.py": "y"})
	s.run(t, "deploy", "--name", "greet", "--runtime", "python3.13", "--handler", "main.handle", "--code", filepath.Join(dir, "greet")).
		expect(t, exitOK, "out", "function team/greet created")
	var fn v1alpha1.Function
	if err := s.kube.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "greet"}, &fn); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(fn.Spec.Template.Code.Inline, "def handle") {
		t.Errorf("the code is %+v", fn.Spec.Template.Code)
	}
	got := s.run(t, "deploy", "--name", "many", "--runtime", "python3.13", "--handler", "main.handle", "--code", filepath.Join(dir, "many"))
	got.expect(t, exitUsage, "err", "lib is a folder", "build an image")
	// Nothing is sent if one of several is wrong.
	two := yamlOf("fine", "template: {image: 'example.com/x:1'}") + "---\n" + yamlOf("wrong", "template: {command: [./x]}")
	s.play(t, strings.NewReader(two), "deploy", "-f", "-").expect(t, exitUsage, "err", "function team/wrong: spec.template.command", "without an image")
	s.run(t, "describe", "fine").expect(t, exitPlatform, "err", "there is no function team/fine")
}

func TestAFunctionInAClusterLooksAsItShould(t *testing.T) {
	fn := clusterFunction("team", "broken", metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "broken-00000007", CreationTimestamp: metav1.NewTime(now.Add(-3 * time.Minute)),
		Labels: map[string]string{wellknown.LabelFunctionUID: string(fn.UID), wellknown.LabelCID: "00000007"}},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "function",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found\nat all"}}}}}}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "e"}, InvolvedObject: corev1.ObjectReference{UID: fn.UID},
		Type: "Warning", Reason: "ImagePullFailed", Message: "instance 00000007: not found", Count: 3, LastTimestamp: metav1.NewTime(now.Add(-2 * time.Minute))}
	s := newClusterHarness(t, fn, pod, event)
	got := s.run(t, "describe", "broken")
	got.expect(t, exitOK, "out")
	golden(t, "describe-cluster.txt", got.out)
	s.run(t, "logs", "broken").expect(t, exitOK, "out", "00000007 hi from function\n")
	s.run(t, "logs", "broken", "--agent").expect(t, exitOK, "out", "00000007 hi from agent\n")
	s.run(t, "list").expect(t, exitOK, "out", "broken", "False")
	s.run(t, "list", "-n", "else").expect(t, exitOK, "err", "no function in the namespace else")
	s.run(t, "describe", "broke").expect(t, exitPlatform, "err", "there is no function team/broke; did you mean broken?")
}

func TestThePluginIsAboutAClusterOnly(t *testing.T) {
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionFalse, v1alpha1.ReasonStartFailed))
	s.plugin = true
	s.env["WINDLASS_DATA_DIR"] = "/nowhere"
	s.run(t, "list").expect(t, exitOK, "out", "f  ")
	s.run(t, "describe", "f").expect(t, exitOK, "out", "See what its instances wrote: kubectl windlass logs f")
	s.run(t, "describe", "f", "--context", "here").expect(t, exitOK, "out", "kubectl windlass --context here logs f")
	s.run(t, "describe", "g").expect(t, exitPlatform, "err", "see kubectl windlass list --all-namespaces")
	s.run(t, "describe").expect(t, exitUsage, "err", "kubectl windlass list shows the names", "usage: kubectl windlass describe NAME", "see kubectl windlass describe --help")
	s.run(t, "up").expect(t, exitUsage, "err", `unknown command "up"`)
	s.run(t, "list", "--data-dir", "x").expect(t, exitUsage, "err", "unknown flag: --data-dir")
	for _, verb := range []string{"", "deploy", "delete", "list", "describe", "invoke", "logs", "check"} {
		help := s.run(t, append(strings.Fields(verb), "--help")...)
		help.expect(t, exitOK, "out", "kubectl windlass ")
		if bare := strings.ReplaceAll(help.out, "kubectl windlass ", ""); commandLine.MatchString(bare) || strings.Contains(bare, "--data-dir") {
			t.Errorf("the help of %q is not the plugin's:\n%s", verb, help.out)
		}
	}
	s.run(t, "--help").expect(t, exitOK, "out", "4 a called function\nmay have run; 5 the time to wait was over.")
	if !isPlugin("/usr/bin/kubectl-windlass") || !isPlugin("kubectl-windlass.exe") || isPlugin("/usr/bin/windlass") {
		t.Error("the plugin is not known by its name")
	}
}

func TestInvokeThroughANamedGateway(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(gateway.Close)
	// Nobody looks whether the function is there: the gateway says that.
	s := newClusterHarness(t)
	s.run(t, "invoke", "f", "--gateway", gateway.URL+"/").expect(t, exitOK, "out", "GET /function/f.team ")
	s.env["WINDLASS_GATEWAY"] = gateway.URL
	s.run(t, "invoke", "x/f", "hi", "--path", "/y").expect(t, exitOK, "out", "POST /function/f.x/y ")
	s.env["WINDLASS_GATEWAY"] = "http://127.0.0.1:1"
	s.run(t, "invoke", "f").expect(t, exitPlatform, "err", "no answer from the gateway at http://127.0.0.1:1", "did not run", "this is its URL")
	(&clusterHarness{env: map[string]string{"HOME": quiet(t).dir}}).run(t, "invoke", "f", "--gateway", gateway.URL).expect(t, exitOK, "out", "GET /function/f ")

	th := open(t)
	th.put(t, "default/f", nil)
	th.run(t, "invoke", "f", "--gateway", gateway.URL).expect(t, exitOK, "out", "GET /function/f ")
}

func TestInvokeWithoutAGateway(t *testing.T) {
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	s.run(t, "invoke", "f").expect(t, exitPlatform, "err", "Windlass is not installed in any namespace", "no gateway pod found", "--gateway")
	s.run(t, "invoke", "f", "--windlass-namespace", "w").expect(t, exitPlatform, "err", "Windlass is not installed in the namespace w")
	s.run(t, "invoke", "g").expect(t, exitPlatform, "err", "there is no function team/g")
}

func TestCheck(t *testing.T) {
	answer := func(executed invocation.Executed) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(invocation.HeaderExecuted, string(executed))
			w.WriteHeader(http.StatusNotFound)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	gateway, other := answer(invocation.ExecutedNo), answer("")
	s := &clusterHarness{env: map[string]string{}}
	s.run(t, "check", "--gateway", gateway+"/").expect(t, exitOK, "out", "the gateway at "+gateway+" answers")
	s.env["WINDLASS_GATEWAY"] = gateway
	s.run(t, "check").expect(t, exitOK, "out", "answers")
	s.run(t, "check", "--gateway", other, "--timeout", "50ms").expect(t, exitPlatform, "err", "does not answer: something else answers 404 Not Found there")
	s.run(t, "check", "--gateway", "http://127.0.0.1:1", "--timeout", "50ms").expect(t, exitPlatform, "err", "does not answer", "connection refused")
}

// script is a registry whose Get answers one thing after the other, and then
// the last again.
type script struct {
	registry
	answers []func() (*v1alpha1.Function, error)
}

func (s *script) Get(context.Context, invocation.FunctionKey) (*v1alpha1.Function, error) {
	next := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return next()
}

// restarts is what an API server that restarts answers.
func restarts() (*v1alpha1.Function, error) {
	return nil, &kubeclient.Error{Reason: kubeclient.ReasonUnreachable, Message: "the cluster does not answer"}
}

func is(fn *v1alpha1.Function) func() (*v1alpha1.Function, error) {
	return func() (*v1alpha1.Function, error) { return fn, nil }
}

// rolledOut is a function whose latest revision is so.
func rolledOut(ready metav1.ConditionStatus, reason string, edits ...func(*v1alpha1.Function)) *v1alpha1.Function {
	fn := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted)
	fn.Generation, fn.Status.ObservedGeneration = 2, 2
	fn.Status.LatestCreatedRevisionName, fn.Status.LatestReadyRevisionName = "f-00002", "f-00001"
	fn.Status.Traffic = []v1alpha1.TrafficStatus{{RevisionName: "f-00001", Weight: 100}}
	if ready == metav1.ConditionTrue {
		fn.Status.LatestReadyRevisionName, fn.Status.Traffic[0].RevisionName = "f-00002", "f-00002"
	}
	condition(v1alpha1.ConditionRevisionReady, ready, reason)(fn)
	for _, edit := range edits {
		edit(fn)
	}
	return fn
}

func condition(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.Status.Conditions = append(fn.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason,
			LastTransitionTime: metav1.NewTime(now), Message: "f-00002: the reason in full"})
	}
}

func since(d time.Duration) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		for i := range fn.Status.Conditions {
			fn.Status.Conditions[i].LastTransitionTime = metav1.NewTime(now.Add(d))
		}
	}
}

func TestA2DeployWaitsForTheProofOfWhatWasDeployed(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	behind := func(fn *v1alpha1.Function) { fn.Status.ObservedGeneration = 1 }
	deployed := rolledOut(no, v1alpha1.ReasonStartFailed, behind)
	say := func(ready metav1.ConditionStatus, reason string, edits ...func(*v1alpha1.Function)) func() (*v1alpha1.Function, error) {
		return is(rolledOut(ready, reason, edits...))
	}
	verifying, started := say(unknown, v1alpha1.ReasonVerifying), say(yes, v1alpha1.ReasonStarted)
	failed := say(no, v1alpha1.ReasonStartFailed, since(time.Second))
	other := rolledOut(yes, v1alpha1.ReasonStarted)
	other.UID = "another"
	noCalls := func(fn *v1alpha1.Function) { fn.Status.Traffic[0].RevisionName = "f-00001" }
	step := func(fn *v1alpha1.Function) {
		fn.Status.Traffic = []v1alpha1.TrafficStatus{{RevisionName: "f-00001", Weight: 90}, {RevisionName: "f-00002", Weight: 10}}
		fn.Status.Conditions = append(fn.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReconciling, Status: yes, Reason: v1alpha1.ReasonStepping,
			Message: "step 1 of 2: calls go 90 % to f-00001, 10 % to f-00002"})
	}
	pinned := func(fn *v1alpha1.Function) {
		fn.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", RevisionName: "f-00001", Weight: 100}, {Tag: "next"}}
		fn.Status.Traffic = []v1alpha1.TrafficStatus{{Tag: "live", RevisionName: "f-00001", Weight: 100}, {Tag: "next", RevisionName: "f-00002"}}
	}
	for name, c := range map[string]struct {
		answers []func() (*v1alpha1.Function, error)
		code    int
		want    []string
	}{
		"it starts":                     {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, behind), verifying, started}, 0, []string{"f-00002 has started; all calls go to f-00002"}},
		"it starts, and has no calls":   {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, noCalls), started}, 0, []string{"all calls go to f-00002"}},
		"it starts, and never gets any": {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, noCalls)}, exitTimeout, []string{"all calls go to f-00001"}},
		"it takes steps":                {[]func() (*v1alpha1.Function, error){verifying, say(yes, v1alpha1.ReasonStarted, step)}, 0, []string{"step 1 of 2: calls go 90 % to f-00001, 10 % to f-00002"}},
		"spec.traffic has others":       {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, pinned)}, 0, []string{"all calls go to f-00001, tag live; 0 % of the calls go to f-00002, tag next"}},
		"it fails":                      {[]func() (*v1alpha1.Function, error){verifying, failed}, exitPlatform, []string{"function team/f does not start: StartFailed: f-00002: the reason in full", "all calls go to f-00001", "windlass logs f"}},
		"it is stalled":                 {[]func() (*v1alpha1.Function, error){say(unknown, v1alpha1.ReasonVerifying, condition(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonRevisionMissing))}, exitPlatform, []string{"RevisionMissing: f-00002: the reason in full"}},
		"it failed before":              {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonStartFailed), started}, 0, nil},
		"it goes on failing":            {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonStartFailed)}, exitTimeout, []string{"has not started yet, after 30s: StartFailed"}},
		"nothing is tried":              {[]func() (*v1alpha1.Function, error){verifying}, exitTimeout, []string{"has not started yet, after 30s: Verifying", "windlass rollout status f"}},
		"nobody looks at it":            {[]func() (*v1alpha1.Function, error){say(yes, v1alpha1.ReasonStarted, behind)}, exitTimeout, []string{"generation 2 of function team/f has not been taken up yet"}},
		"room is found":                 {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonNoCapacity), started}, 0, nil},
		"no room is found":              {[]func() (*v1alpha1.Function, error){say(no, v1alpha1.ReasonNoCapacity)}, exitTimeout, []string{"has not started yet, after 30s: NoCapacity"}},
		"it is another":                 {[]func() (*v1alpha1.Function, error){is(other)}, exitPlatform, []string{"was deleted"}},
		"it cannot be asked once":       {[]func() (*v1alpha1.Function, error){verifying, restarts, restarts, started}, 0, []string{"all calls go to f-00002"}},
		"it cannot be asked any more":   {[]func() (*v1alpha1.Function, error){verifying, restarts}, exitTimeout, []string{"after 30s: Verifying", "the last question was not answered: the cluster does not answer\n"}},
		"it cannot be asked":            {[]func() (*v1alpha1.Function, error){func() (*v1alpha1.Function, error) { return nil, errors.New("broken") }}, exitPlatform, []string{"broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told bytes.Buffer
				d := deployer{reporter{&finder{home: "team", host: &host{Streams: Streams{Err: &told}, now: time.Now}}}}
				fn, err := d.awaitProof(t.Context(), &target{registry: &script{answers: c.answers}}, deployed, defaultReadyTime)
				text, code := "", exitOK
				if err != nil {
					var known *exitError
					text, code = err.Error(), exitPlatform
					if errors.As(err, &known) {
						code = known.code
					}
				} else {
					text = progressOf(fn).text
				}
				if code != c.code {
					t.Errorf("exit code %d, want %d: %s", code, c.code, text)
				}
				for _, want := range c.want {
					if !strings.Contains(text, want) {
						t.Errorf("it says %q, want %q", text, want)
					}
				}
				if strings.Count(told.String(), "asking again") > 1 {
					t.Errorf("it tells one trouble more than once:\n%s", told.String())
				}
			})
		})
	}
}

// Gateways follow the API server by themselves.
func TestDeployWaitsUntilGatewaysHaveHeard(t *testing.T) {
	applied := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonStarted)
	applied.Status.ObservedGeneration, applied.Status.LatestCreatedRevisionName = applied.Generation, "f-00001"
	applied.Status.Traffic = []v1alpha1.TrafficStatus{{RevisionName: "f-00001", Weight: 100}}
	meta.SetStatusCondition(&applied.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionRevisionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStarted})
	for context, want := range map[string]time.Duration{"": 0, "somewhere": gatewaysHear} {
		synctest.Test(t, func(t *testing.T) {
			d := deployer{reporter{&finder{home: "team", host: &host{now: time.Now}}}}
			began := time.Now()
			if _, err := d.awaitProof(t.Context(), &target{context: context}, applied, defaultReadyTime); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("in the context %q it took %v, want %v", context, took, want)
			}
		})
	}
}

func TestDeleteWaitsUntilItIsGone(t *testing.T) {
	draining := clusterFunction("team", "f", metav1.ConditionFalse, v1alpha1.ReasonDraining)
	draining.DeletionTimestamp, draining.Finalizers = &metav1.Time{Time: now}, []string{wellknown.FinalizerDrain}
	draining.Status.Instances = v1alpha1.InstanceCounts{Ready: 1, Desired: 2}
	gone := func() (*v1alpha1.Function, error) {
		return nil, &kubeclient.Error{Reason: kubeclient.ReasonNotFound, Message: "gone"}
	}
	forbidden := func() (*v1alpha1.Function, error) {
		return nil, &kubeclient.Error{Reason: kubeclient.ReasonForbidden, Message: "you may not"}
	}
	anew := clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	for name, c := range map[string]struct {
		answers   []func() (*v1alpha1.Function, error)
		told, err string
	}{
		"at once":                        {[]func() (*v1alpha1.Function, error){gone}, "", ""},
		"after a time":                   {[]func() (*v1alpha1.Function, error){is(draining), is(draining), gone}, "2 of its instances have not ended", ""},
		"though the API server restarts": {[]func() (*v1alpha1.Function, error){is(draining), restarts, gone}, "the cluster does not answer; asking again\n", ""},
		"away to the end":                {[]func() (*v1alpha1.Function, error){restarts}, "asking again", "the last question was not answered: the cluster does not answer\n"},
		"forbidden":                      {[]func() (*v1alpha1.Function, error){forbidden}, "", "you may not"},
		"made anew":                      {[]func() (*v1alpha1.Function, error){is(draining), is(anew)}, "waiting for function team/f", ""},
		"never":                          {[]func() (*v1alpha1.Function, error){is(draining)}, "waiting", "function team/f is still there after 2m0s: 2 of its instances"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told bytes.Buffer
				d := remover{&finder{home: "team", host: &host{Streams: Streams{Err: &told}}}}
				err := d.awaitGone(t.Context(), &script{answers: c.answers}, draining.Key(), defaultGoneTime)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("the error is %v, want %q", err, c.err)
				}
				if !strings.Contains(told.String(), c.told) || strings.Count(told.String(), "waiting") > 1 {
					t.Errorf("it tells %q, want %q", told.String(), c.told)
				}
			})
		})
	}
}

func TestDeleteInACluster(t *testing.T) {
	held := clusterFunction("team", "held", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	held.Finalizers = []string{wellknown.FinalizerDrain}
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonAccepted), held)
	s.run(t, "delete", "f").expect(t, exitOK, "out", "function team/f deleted\n")
	s.run(t, "delete", "held", "--wait=false").expect(t, exitOK, "out", "function team/held is being deleted\n")
	s.run(t, "delete", "held", "--timeout", "10ms").expect(t, exitTimeout, "err", "still there after 10ms", wellknown.FinalizerDrain, "windlass describe held")
	s.run(t, "delete", "f").expect(t, exitPlatform, "err", "there is no function team/f")
}
