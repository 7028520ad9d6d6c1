package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	empty.run(t, "list").expect(t, exitPlatform, "err", "no Windlass runs with the data folder", "no kubeconfig names a cluster either", "windlass up", "--data-dir", "--context")
	(&clusterHarness{env: map[string]string{}}).run(t, "list").expect(t, exitUsage, "err", "no data folder")

	// No Windlass can run where a socket's path would be too long.
	s = newClusterHarness(t, clusterFunction("team", "far", metav1.ConditionTrue, v1alpha1.ReasonAccepted))
	s.env["XDG_STATE_HOME"] = filepath.Join(s.env["XDG_STATE_HOME"], strings.Repeat("long", 25))
	s.run(t, "list").expect(t, exitOK, "out", "far")
}

// A kubeconfig is often left from another day, and says nothing to who wants no cluster.
func TestWithAKubeconfigOfNoClusterThatAnswersTheErrorNamesUp(t *testing.T) {
	s := newClusterHarness(t)
	settle := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.env["HOME"], ".kube", "config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.kube = interceptor.NewClient(s.kube.(client.WithWatch), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("dial tcp: connection refused")
		},
	})
	s.run(t, "list").expect(t, exitPlatform, "err", "the cluster of the context here does not answer", "no Windlass runs on this machine either: start one with windlass up")
	if got := s.run(t, "list", "--context", "here"); !strings.Contains(got.err, "does not answer") || strings.Contains(got.err, "windlass up") {
		t.Errorf("of a cluster that a flag names it says\n%s", got.err)
	}
	settle(strings.Replace(kubeconfig, "current-context: here\n", "", 1))
	s.run(t, "list").expect(t, exitPlatform, "err", "the kubeconfig has no current context", "start one with windlass up")
	settle("apiVersion: v1\nkind: Config\ncontexts: []\n")
	s.run(t, "list").expect(t, exitPlatform, "err", "no Windlass runs with the data folder", "no kubeconfig names a cluster either", "windlass up")
	s.run(t, "doctor").expect(t, exitFunction, "out", "no kubeconfig names a cluster, so the verbs are about this machine")
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
		"a folder that may not be entered": {func(dataDir string) error { return os.Chmod(dataDir, 0) }, "this user may not connect"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getuid() == 0 && strings.Contains(c.want, "may not") {
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

func TestDeployGoesOnIfOnlyItsCleanUpFails(t *testing.T) {
	s := newClusterHarness(t)
	dir := write(t, map[string]string{"main.py": "x", "words.py": "1",
		"a.yaml": yamlOf("a", "template: {runtimeRef: {name: python3.13}, handler: main.handle, code: {path: .}}") + "---\n" + yamlOf("b", "template: {image: 'example.com/b:1'}")})
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("no"))
	codes := 0
	s.kube = interceptor.NewClient(s.kube.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if of, ok := o.(interface{ GetKind() string }); ok && of.GetKind() == "ConfigMap" {
				if codes++; codes == 2 {
					return refusal
				}
			}
			return c.Apply(ctx, o, options...)
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refusal },
	})
	deploy := func(words string) outcome {
		if err := os.WriteFile(filepath.Join(dir, "words.py"), []byte(words), 0o600); err != nil {
			t.Fatal(err)
		}
		return s.run(t, "deploy", "-f", filepath.Join(dir, "a.yaml"))
	}
	deploy("1").expect(t, exitPlatform, "err", "function team/a was created", "deploy it again", "1 of 2 functions were not applied")
	deploy("2").expect(t, exitOK, "out", "function team/a configured", "function team/b created")
	got := deploy("3")
	got.expect(t, exitOK, "out", "function team/a configured", "function team/b unchanged")
	got.expect(t, exitOK, "err", "note: the ConfigMap a-code-")
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
	s.run(t, "logs", "broken").expect(t, exitOK, "out", "00000007 | hi from function\n")
	s.run(t, "logs", "broken", "--agent").expect(t, exitOK, "out", "00000007 | hi from agent\n")
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
	for name, c := range map[string]struct {
		files  map[string]string
		plugin bool
		want   string
	}{
		"the plugin without a kubeconfig":        {nil, true, "GET /function/f "},
		"a kubeconfig without contexts":          {map[string]string{".kube/config": "apiVersion: v1\nkind: Config\ncontexts: []\n"}, false, "GET /function/f "},
		"a kubeconfig that cannot be read":       {map[string]string{".kube/config": "}"}, false, "GET /function/f "},
		"settings alone":                         {map[string]string{".config/windlass.yaml": "namespace: mine\n"}, false, "GET /function/f.mine "},
		"settings with a context from elsewhere": {map[string]string{".config/windlass.yaml": "context: prod\nnamespace: mine\n"}, false, "GET /function/f.mine "},
	} {
		t.Run(name, func(t *testing.T) {
			s := &clusterHarness{env: map[string]string{"HOME": write(t, c.files), "XDG_STATE_HOME": quiet(t).dir}, plugin: c.plugin}
			s.run(t, "invoke", "f", "--gateway", gateway.URL).expect(t, exitOK, "out", c.want)
			s.run(t, "invoke", "f", "--gateway", gateway.URL, "--context", "prod").expect(t, exitPlatform, "err", "kubeconfig")
		})
	}

	th := open(t)
	th.put(t, "default/f", nil)
	th.run(t, "invoke", "f", "--gateway", gateway.URL).expect(t, exitOK, "out", "GET /function/f ")
}

func TestAGatewayIsReachedThroughTheProxyOfTheEnvironment(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(proxy.Close)
	const gateway = "http://functions.example"
	s := newClusterHarness(t)
	for _, variable := range []string{"HTTP_PROXY", "http_proxy"} {
		s.env[variable] = proxy.URL
		s.run(t, "invoke", "f", "--gateway", gateway).expect(t, exitOK, "out", "GET "+gateway+"/function/f.team ")
		s.run(t, "check", "--gateway", gateway, "--timeout", "50ms").expect(t, exitPlatform, "err", "something else answers 200 OK there")
		delete(s.env, variable)
	}
	// A tunnel to a gateway goes through no proxy, since nothing but the tunnel leads there.
	transport := (&invoker{newApp(Streams{}, Programs{}).finder}).transport(&route{dial: new(net.Dialer).DialContext}, new(atomic.Bool))
	if transport.Proxy != nil {
		t.Error("a tunnel has a proxy")
	}
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

func TestDeleteInACluster(t *testing.T) {
	held := clusterFunction("team", "held", metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	held.Finalizers = []string{wellknown.FinalizerDrain}
	s := newClusterHarness(t, clusterFunction("team", "f", metav1.ConditionTrue, v1alpha1.ReasonAccepted), held)
	s.run(t, "delete", "f").expect(t, exitOK, "out", "function team/f deleted\n")
	s.run(t, "delete", "held", "--wait=false").expect(t, exitOK, "out", "function team/held is being deleted\n")
	s.run(t, "delete", "held", "--timeout", "10ms").expect(t, exitTimeout, "err", "still there after 10ms", wellknown.FinalizerDrain, "windlass describe held")
	s.run(t, "delete", "f").expect(t, exitPlatform, "err", "there is no function team/f")
}
