//go:build apiserver

package kubeclient

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/apitest"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// testCluster is an API server without nodes.
type testCluster struct {
	env *envtest.Environment
	// admin does what the tests do on behalf of others.
	admin client.Client
}

// startCluster runs an API server until the test ends; with is whether Windlass
// is installed.
func startCluster(t *testing.T, with bool) *testCluster {
	t.Helper()
	env := apitest.Environment(t, with)
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("the API server does not stop: %v", err)
		}
	})
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(all); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(config, client.Options{Scheme: all})
	if err != nil {
		t.Fatal(err)
	}
	return &testCluster{env: env, admin: admin}
}

// client is that of a user of some groups.
func (tc *testCluster) client(t *testing.T, user string, groups ...string) *Client {
	t.Helper()
	added, err := tc.env.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, added.Config())
}

func (tc *testCluster) namespace(t *testing.T, name string) {
	t.Helper()
	if err := tc.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// decode is a Function as its author writes it.
func decode(t *testing.T, namespace, name, spec string) *v1alpha1.Function {
	t.Helper()
	functions, err := v1alpha1.Decode([]byte(fmt.Sprintf(
		"apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: %s, namespace: %s}\nspec: %s\n", name, namespace, spec)), "test")
	if err != nil {
		t.Fatal(err)
	}
	return functions[0]
}

func (c *Client) deploy(ctx context.Context, t *testing.T, fn *v1alpha1.Function, force bool) (Applied, error) {
	t.Helper()
	change, err := Prepare(fn)
	if err != nil {
		t.Fatal(err)
	}
	return c.Apply(ctx, change, Options{Force: force})
}

func wantResult(t *testing.T, applied Applied, err error, want Result) {
	t.Helper()
	if err != nil || applied.Result != want {
		t.Fatalf("it is %q, %v, want %q", applied.Result, err, want)
	}
}

// TestInACluster has one API server for all that it needs one for.
func TestInACluster(t *testing.T) {
	tc := startCluster(t, true)
	admin := tc.client(t, "ada", "system:masters")
	t.Run("only what was given is sent", func(t *testing.T) { testIntent(t, tc, admin) })
	t.Run("fields of others", func(t *testing.T) { testConflict(t, tc, admin) })
	t.Run("single fields", func(t *testing.T) { testChange(t, tc, admin) })
	t.Run("code becomes a ConfigMap", func(t *testing.T) { testCode(t, tc, admin) })
	t.Run("what the server refuses", func(t *testing.T) { testRefused(t, tc, admin) })
	t.Run("what a user may not do", func(t *testing.T) { testForbidden(t, tc) })
	t.Run("list, get and delete", func(t *testing.T) { testRegistry(t, tc, admin) })
	t.Run("pods and events", func(t *testing.T) { testObserve(t, tc, admin) })
}

func testIntent(t *testing.T, tc *testCluster, c *Client) {
	ctx := t.Context()
	fn := decode(t, "default", "hello", "{template: {image: 'example.com/hello:1'}, scaling: {maxInstances: 3}}")
	applied, err := c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Created)
	var stored v1alpha1.Function
	if err := tc.admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "hello"}, &stored); err != nil {
		t.Fatal(err)
	}
	// The server fills in the defaults, but they are nobody's.
	if len(stored.ManagedFields) != 1 || stored.ManagedFields[0].Manager != string(FieldManager) ||
		string(stored.ManagedFields[0].FieldsV1.GetRawBytes()) != `{"f:spec":{"f:scaling":{"f:maxInstances":{}},"f:template":{"f:image":{}}}}` {
		t.Errorf("the managed fields are %+v", stored.ManagedFields)
	}
	applied, err = c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Unchanged)
	// The status is another's, and its change none of the function's.
	if err := tc.admin.Get(ctx, client.ObjectKeyFromObject(&stored), &stored); err != nil {
		t.Fatal(err)
	}
	stored.Status.URL = "http://gateway/function/hello"
	if err := tc.admin.Status().Update(ctx, &stored); err != nil {
		t.Fatal(err)
	}
	applied, err = c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Unchanged)
	if applied.Function.Status.URL == "" || applied.Function.UID == "" || applied.Function.ManagedFields != nil {
		t.Errorf("the function that comes back is %+v", applied.Function)
	}
	// As a local Windlass prints it.
	printed := fn.DeepCopy()
	printed.Annotations = map[string]string{v1alpha1.AnnotationCodeStamp: "1a2b"}
	applied, err = c.deploy(ctx, t, printed, false)
	wantResult(t, applied, err, Unchanged)
	applied, err = c.deploy(ctx, t, decode(t, "default", "hello", "{template: {image: 'example.com/hello:2'}}"), false)
	wantResult(t, applied, err, Configured)
	if applied.Function.Spec.Scaling.MaxInstances != nil {
		t.Error("a field that is left out stays")
	}
}

func testConflict(t *testing.T, tc *testCluster, c *Client) {
	ctx := t.Context()
	fn := decode(t, "default", "shared", "{template: {image: 'example.com/shared:1', concurrency: 2}}")
	if err := tc.admin.Create(ctx, fn.DeepCopy(), client.FieldOwner("autoscaler")); err != nil {
		t.Fatal(err)
	}
	fn.Spec.Template.Concurrency = 4
	_, err := c.deploy(ctx, t, fn, false)
	wantError(t, err, ReasonConflict, "function default/shared: spec.template.concurrency was set by autoscaler", "--force-conflicts")
	applied, err := c.deploy(ctx, t, fn, true)
	wantResult(t, applied, err, Configured)
	if applied.Function.Spec.Template.Concurrency != 4 {
		t.Errorf("concurrency is %d", applied.Function.Spec.Template.Concurrency)
	}
}

func testChange(t *testing.T, tc *testCluster, c *Client) {
	ctx := t.Context()
	fn := decode(t, "default", "single", "{template: {image: 'example.com/single:1'}, scaling: {maxInstances: 3}}")
	applied, err := c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Created)
	most := func(n int32) func(*v1alpha1.Function) error {
		return func(fn *v1alpha1.Function) error {
			fn.Spec.Scaling.MaxInstances = &n
			return nil
		}
	}
	applied, err = c.Change(ctx, fn.Key(), most(9), Options{DryRun: true})
	wantResult(t, applied, err, Configured)
	applied, err = c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Unchanged)
	applied, err = c.Change(ctx, fn.Key(), most(9), Options{})
	wantResult(t, applied, err, Configured)
	if applied.Before == nil || *applied.Before.Spec.Scaling.MaxInstances != 3 || *applied.Function.Spec.Scaling.MaxInstances != 9 {
		t.Errorf("it was %+v and is %+v", applied.Before, applied.Function)
	}
	applied, err = c.Change(ctx, fn.Key(), most(9), Options{})
	wantResult(t, applied, err, Unchanged)
	_, err = c.Change(ctx, fn.Key(), most(-1), Options{})
	wantError(t, err, ReasonInvalid, "spec.scaling.maxInstances")

	// What this command has changed is its own to apply, and what others have is not.
	applied, err = c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Configured)
	if *applied.Function.Spec.Scaling.MaxInstances != 3 {
		t.Errorf("scaling.maxInstances is %d, want that of the manifest", *applied.Function.Spec.Scaling.MaxInstances)
	}
	if _, err := c.Change(ctx, invocation.FunctionKey{Namespace: "default", Name: "nobody"}, most(1), Options{}); !Is(err, ReasonNotFound) {
		t.Errorf("of none: %v", err)
	}
}

func testCode(t *testing.T, tc *testCluster, c *Client) {
	ctx := t.Context()
	c.codeGrace = 0
	defer func() { c.codeGrace = codeGrace }()
	tc.namespace(t, "code")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configMaps := func() map[string]corev1.ConfigMap {
		var list corev1.ConfigMapList
		if err := tc.admin.List(ctx, &list, client.InNamespace("code"), client.MatchingLabels{wellknown.LabelManagedBy: wellknown.ManagedBy}); err != nil {
			t.Fatal(err)
		}
		byName := map[string]corev1.ConfigMap{}
		for _, one := range list.Items {
			byName[one.Name] = one
		}
		return byName
	}
	fn := decode(t, "code", "greet", "{template: {runtimeRef: {name: python3.13}, handler: main.handle, code: {path: "+dir+"}}}")

	write("main.py", "import words\n")
	applied, err := c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Created)
	if applied.Function.Spec.Template.Code.Inline == "" || len(configMaps()) > 0 {
		t.Errorf("one file is not inline: %+v, %v", applied.Function.Spec.Template.Code, configMaps())
	}
	var names []string
	for version := range 4 {
		write("words.py", fmt.Sprintf("version = %d\n", version))
		applied, err = c.deploy(ctx, t, fn, false)
		wantResult(t, applied, err, Configured)
		name := applied.Function.Spec.Template.Code.ConfigMapRef.Name
		names = append(names, name)
		made, ok := configMaps()[name]
		if !ok || made.Data["main.py"] == "" || made.Data["words.py"] == "" || made.Immutable == nil || !*made.Immutable ||
			len(made.OwnerReferences) != 1 || made.OwnerReferences[0].UID != applied.Function.UID {
			t.Fatalf("the ConfigMap %s is %+v", name, made)
		}
		if version == 0 {
			revision := v1alpha1.NewRevision(applied.Function)
			if err := tc.admin.Create(ctx, revision); err != nil {
				t.Fatal(err)
			}
			of, err := c.Revisions(ctx, applied.Function)
			if err != nil || len(of) != 1 || of[0].Name != revision.Name {
				t.Errorf("%v; the revisions are %+v", err, of)
			}
		}
	}
	left := configMaps()
	if _, there := left[names[1]]; there || len(left) != 3 {
		t.Errorf("of %v there are %v, want the last two and the one of a revision", names, left)
	}
	applied, err = c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Unchanged)

	fn.Name = "fresh"
	applied, err = c.deploy(ctx, t, fn, false)
	wantResult(t, applied, err, Created)
	if made := configMaps()[applied.Function.Spec.Template.Code.ConfigMapRef.Name]; len(made.OwnerReferences) != 1 || made.OwnerReferences[0].UID != applied.Function.UID {
		t.Errorf("the ConfigMap of a new function has the owners %v", made.OwnerReferences)
	}
	before := len(configMaps())
	fn.Name, fn.Labels = "refused", map[string]string{"not a label": "x"}
	_, err = c.deploy(ctx, t, fn, false)
	wantError(t, err, ReasonInvalid, "metadata.labels")
	if after := len(configMaps()); after != before {
		t.Errorf("%d ConfigMaps are left of a function that was refused", after-before)
	}
}

func testRefused(t *testing.T, _ *testCluster, c *Client) {
	// Prepare would find these before.
	wrong := &Change{function: decode(t, "default", "wrong", "{template: {image: 'example.com/x:1', runtimeRef: {name: python3.13}, handler: main, concurrency: 5000}}")}
	_, err := c.Apply(t.Context(), wrong, Options{})
	wantError(t, err, ReasonInvalid, "function default/wrong: spec.template.concurrency: ")
	wrong = &Change{function: decode(t, "default", "wrong", "{template: {image: 'example.com/x:1', runtimeRef: {name: python3.13}, handler: main, code: {inline: x}}}")}
	_, err = c.Apply(t.Context(), wrong, Options{})
	wantError(t, err, ReasonInvalid, "a runtime brings its own image; remove image or runtime", "must be module.function")
	if lines := strings.Count(err.Error(), "function default/wrong: "); lines < 2 {
		t.Errorf("it has %d lines:\n%v", lines, err)
	}
	_, err = c.deploy(t.Context(), t, decode(t, "nowhere", "x", "{template: {image: 'example.com/x:1'}}"), false)
	wantError(t, err, ReasonRefused, "there is no namespace nowhere", "kubectl create namespace nowhere")
}

func testForbidden(t *testing.T, tc *testCluster) {
	jane := tc.client(t, "jane")
	_, err := jane.List(t.Context(), "default")
	wantError(t, err, ReasonForbidden, "you may not list functions.windlass.dev in the namespace default", "kubectl auth can-i list functions.windlass.dev -n default --context test")
	_, err = jane.List(t.Context(), "")
	wantError(t, err, ReasonForbidden, "in all namespaces", "--all-namespaces")
	wantError(t, jane.Delete(t.Context(), key("default", "hello")), ReasonForbidden, "you may not delete functions.windlass.dev")
	_, err = jane.OpenTunnel(t.Context(), "")
	wantError(t, err, ReasonForbidden, "you may not list pods in all namespaces", "--windlass-namespace", "--gateway")

	nobody := rest.AnonymousClientConfig(tc.env.Config)
	nobody.BearerToken = "nonsense"
	_, err = connect(t, nobody).List(t.Context(), "default")
	wantError(t, err, ReasonForbidden, "does not know you")

	// Rights on functions alone are enough to deploy an image.
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "functions"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"functions"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "joan", APIGroup: rbacv1.GroupName}}}
	for _, object := range []client.Object{role, binding} {
		if err := tc.admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	joan := tc.client(t, "joan")
	// The API server hears of new rights a moment after it has stored them.
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := joan.List(ctx, "default")
		return !Is(err, ReasonForbidden), nil
	}); err != nil {
		t.Fatalf("joan has no rights: %v", err)
	}
	applied, err := joan.deploy(t.Context(), t, decode(t, "default", "joans", "{template: {image: 'example.com/x:1'}}"), false)
	wantResult(t, applied, err, Created)
}

func testRegistry(t *testing.T, tc *testCluster, c *Client) {
	ctx := t.Context()
	tc.namespace(t, "alpha")
	for _, name := range []string{"b", "a"} {
		applied, err := c.deploy(ctx, t, decode(t, "alpha", name, "{template: {image: 'example.com/x:1'}}"), false)
		wantResult(t, applied, err, Created)
	}
	list, err := c.List(ctx, "alpha")
	if err != nil || len(list.Items) != 2 || list.Items[0].Name != "a" || list.Items[0].Kind != v1alpha1.KindFunction {
		t.Fatalf("the list is %+v, %v", list, err)
	}
	held, err := c.Get(ctx, key("alpha", "a"))
	if err != nil {
		t.Fatal(err)
	}
	held.Finalizers = []string{wellknown.FinalizerDrain}
	if err := tc.admin.Update(ctx, held); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, key("alpha", "a")); err != nil {
		t.Fatal(err)
	}
	if held, err = c.Get(ctx, key("alpha", "a")); err != nil || held.DeletionTimestamp == nil {
		t.Fatalf("a function that drains is %+v, %v", held, err)
	}
	_, err = c.deploy(ctx, t, decode(t, "alpha", "a", "{template: {image: 'example.com/x:2'}}"), false)
	wantError(t, err, ReasonConflict, "is being deleted")
	if err := c.Delete(ctx, key("alpha", "b")); err != nil {
		t.Fatal(err)
	}
	_, err = c.Get(ctx, key("alpha", "b"))
	wantError(t, err, ReasonNotFound, "there is no function alpha/b")
	wantError(t, c.Delete(ctx, key("alpha", "b")), ReasonNotFound)
}

func testObserve(t *testing.T, tc *testCluster, c *Client) {
	ctx := t.Context()
	applied, err := c.deploy(ctx, t, decode(t, "default", "seen", "{template: {image: 'example.com/x:1'}}"), false)
	wantResult(t, applied, err, Created)
	fn := applied.Function
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "seen-00000001", Labels: map[string]string{
			wellknown.LabelFunctionUID: string(fn.UID), wellknown.LabelCID: "00000001"}},
		Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "agent", Image: "x"}, {Name: "function", Image: "x"}}},
	}
	stranger := pod.DeepCopy()
	stranger.Name, stranger.Labels = "stranger", nil
	for _, one := range []*corev1.Pod{pod, stranger} {
		if err := tc.admin.Create(ctx, one); err != nil {
			t.Fatal(err)
		}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "function", Image: "x",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
	if err := tc.admin.Status().Update(ctx, pod); err != nil {
		t.Fatal(err)
	}
	pods, err := c.Pods(ctx, fn)
	if err != nil || len(pods) != 1 || pods[0].CID != "00000001" || pods[0].Node != "n1" || pods[0].State != "ImagePullBackOff" || pods[0].Message != "no such image" {
		t.Errorf("the pods are %+v, %v", pods, err)
	}
	reference := corev1.ObjectReference{Kind: v1alpha1.KindFunction, APIVersion: v1alpha1.APIVersion, Namespace: "default", Name: "seen", UID: fn.UID}
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for i, name := range []string{"late", "early", "foreign"} {
		event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, InvolvedObject: reference, Type: "Warning",
			Reason: "StartFailed", Message: name, Count: 2, LastTimestamp: metav1.NewTime(at.Add(-time.Duration(i) * time.Minute))}
		if name == "foreign" {
			event.InvolvedObject.UID = "another"
		}
		if err := tc.admin.Create(ctx, event); err != nil {
			t.Fatal(err)
		}
	}
	events, err := c.Events(ctx, fn, 10)
	if err != nil || len(events) != 2 || events[0].Message != "early" || events[1].Message != "late" || events[1].Count != 2 {
		t.Errorf("the events are %+v, %v", events, err)
	}
	if events, _ = c.Events(ctx, fn, 1); len(events) != 1 || events[0].Message != "late" {
		t.Errorf("the last event is %+v", events)
	}
}

func TestAClusterWithoutWindlass(t *testing.T) {
	tc := startCluster(t, false)
	c := connect(t, tc.env.Config)
	_, err := c.List(t.Context(), "default")
	wantError(t, err, ReasonNotInstalled, "Windlass is not installed in the cluster of the context test", "helm install")
	_, err = c.Get(t.Context(), key("default", "x"))
	wantError(t, err, ReasonNotInstalled)
	_, err = c.deploy(t.Context(), t, decode(t, "default", "x", "{template: {image: 'example.com/x:1'}}"), false)
	wantError(t, err, ReasonNotInstalled)
	_, err = c.OpenTunnel(t.Context(), "")
	wantError(t, err, ReasonNoPod, "Windlass is not installed in any namespace", "--gateway")
}
