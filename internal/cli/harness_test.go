package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// localGateway is the address of the harness's gateway, at which nothing listens.
const localGateway = "http://127.0.0.1:1"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// harness is a Windlass whose functions are what the test says.
type harness struct {
	dir      string
	catalog  stock
	statuses map[invocation.FunctionKey]v1alpha1.FunctionStatus
	// accounts are of the functions that anything was decided on.
	accounts map[invocation.FunctionKey]decisionlog.Report
	// gatewayURL is what the URLs of functions begin with.
	gatewayURL string
	log        string
	editor     string
	stories    map[invocation.ID]invocation.Findings
	// key is $WINDLASS_KEY.
	key      string
	followed string
	// onApply is called after each Apply, if it is set.
	onApply func()
}

// stock is a catalog of functions without revisions.
type stock struct{ all *catalog.Catalog }

func (s stock) Get(key invocation.FunctionKey) (*v1alpha1.Function, bool) {
	entry, ok := s.all.Get(key)
	if !ok {
		return nil, false
	}
	return entry.Function, true
}

func (s stock) List() (functions []*v1alpha1.Function) {
	for _, entry := range s.all.List() {
		functions = append(functions, entry.Function)
	}
	return functions
}

func (s stock) Put(fn *v1alpha1.Function) { s.all.Put(rollout.Alone(fn)) }

func (s stock) Remove(key invocation.FunctionKey) { s.all.Remove(key) }

// Revisions says that there are none.
func (*harness) Revisions(invocation.FunctionKey) []*v1alpha1.FunctionRevision { return nil }

// quiet is a harness without a running Windlass.
func quiet(t *testing.T) *harness {
	t.Helper()
	// The path of a socket must be short, which t.TempDir's is not.
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &harness{
		dir: dir, catalog: stock{catalog.New()}, statuses: map[invocation.FunctionKey]v1alpha1.FunctionStatus{},
		accounts:   map[invocation.FunctionKey]decisionlog.Report{},
		gatewayURL: "http://127.0.0.1:8080",
	}
}

func open(t *testing.T) *harness {
	t.Helper()
	return openAt(t, "")
}

// openAt is open with a name for the data folder.
func openAt(t *testing.T, name string) *harness {
	t.Helper()
	th := quiet(t)
	th.dir = filepath.Join(th.dir, name)
	if err := os.MkdirAll(th.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := localapi.Listen(th.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	handler := localapi.New(localapi.Deps{Info: localapi.Info{Version: "v1", GatewayURL: localGateway, DataDir: th.dir, Key: "wl_session"}, Store: th, Reader: th.catalog, StatusReader: th, Archive: th, Logs: th, Decisions: th, CallLookup: th})
	go func() { served <- localapi.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("control: %v", err)
		}
	})
	return th
}

func (th *harness) Apply(fn *v1alpha1.Function) (file.Result, error) {
	fn = defaulted(fn)
	if problems := validateLocal(fn); len(problems) > 0 {
		return "", &file.InvalidError{Key: fn.Key(), Problems: problems}
	}
	if fn.Name == "refused" {
		return "", &file.InvalidError{Key: fn.Key(), Problems: field.ErrorList{field.Invalid(field.NewPath("spec", "template", "code", "path"), "x", "cannot be read")}}
	}
	result := file.Created
	fn.Generation = 1
	if have, ok := th.catalog.Get(fn.Key()); ok {
		result, fn.Generation = file.Configured, have.Generation+1
	}
	fn.UID = types.UID("uid-of-" + fn.Name)
	fn.CreationTimestamp = metav1.NewTime(now.Add(-90 * time.Minute))
	th.catalog.Put(fn)
	if th.onApply != nil {
		th.onApply()
	}
	return result, nil
}

func (th *harness) Replace(base file.Version, fn *v1alpha1.Function) (file.Result, error) {
	if have, ok := th.catalog.Get(fn.Key()); base != "" && (!ok || file.VersionOf(have) != base) {
		return "", file.ErrConflict
	}
	return th.Apply(fn)
}

func (th *harness) Preview(fn *v1alpha1.Function) (file.Result, *v1alpha1.Function, error) {
	fn = defaulted(fn)
	have, ok := th.catalog.Get(fn.Key())
	switch {
	case !ok:
		return file.Created, fn, nil
	case equality.Semantic.DeepEqual(have.Spec, fn.Spec):
		return file.Unchanged, fn, nil
	}
	return file.Configured, fn, nil
}

func (th *harness) Delete(key invocation.FunctionKey) error {
	if _, ok := th.catalog.Get(key); !ok {
		return file.ErrNotFound
	}
	th.catalog.Remove(key)
	return nil
}

func (th *harness) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	status := th.statuses[fn.Key()]
	status.URL = th.gatewayURL + address.Path(fn.Key())
	return status
}

func (th *harness) Report(key invocation.FunctionKey) (decisionlog.Report, bool) {
	account := th.accounts[key]
	account.Namespace, account.Name, account.Served = key.Namespace, key.Name, true
	account.ServedSince = now.Add(-2 * time.Hour)
	_, known := th.catalog.Get(key)
	return account, known
}

func (th *harness) Latest() decisionlog.LatestReport {
	latest := decisionlog.LatestReport{Functions: []decisionlog.Report{}}
	for _, a := range th.accounts {
		latest.Functions = append(latest.Functions, a)
	}
	return latest
}

func (th *harness) Follow(_ context.Context, w io.Writer, key invocation.FunctionKey, o localapi.LogOptions) error {
	th.followed = fmt.Sprintf("%s follow %t tail %d", key, o.Follow, o.Tail)
	if !o.Since.IsZero() {
		th.followed += " since " + o.Since.UTC().Format(time.TimeOnly)
		return nil
	}
	if th.log == "" {
		return fmt.Errorf("no instance of %s has written a log: call the function first", key)
	}
	_, err := io.WriteString(w, th.log)
	return err
}

func (th *harness) LookUp(id invocation.ID) (invocation.Findings, bool) {
	story, known := th.stories[id]
	return story, known
}

// put registers a function as if it had been deployed.
func (th *harness) put(t *testing.T, key string, change func(*v1alpha1.Function)) {
	t.Helper()
	namespace, name, _ := strings.Cut(key, "/")
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.Spec.Template.Command = namespace, name, []string{"./server"}
	if change != nil {
		change(fn)
	}
	if _, err := th.Apply(fn); err != nil {
		t.Fatal(err)
	}
}

// answer makes a gateway that answers every call alike.
func (th *harness) answer(t *testing.T, handler http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	th.gatewayURL = server.URL
}

// outcome is what a command did.
type outcome struct {
	code     int
	out, err string
}

func (th *harness) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return th.play(t, nil, Programs{}, args...)
}

func (th *harness) play(t *testing.T, stdin io.Reader, programs Programs, args ...string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	a := newApp(Streams{In: stdin, Out: &out, Err: &errs}, programs)
	a.now = func() time.Time { return now }
	a.getenv = func(name string) string {
		return map[string]string{"WINDLASS_DATA_DIR": th.dir, keyVariable: th.key, "EDITOR": th.editor}[name]
	}
	code := a.main(args)
	return outcome{code, out.String(), errs.String()}
}

// expect checks a command's exit code, that its output has all of want, and that
// a failure says something.
func (o outcome) expect(t *testing.T, code int, stream string, want ...string) {
	t.Helper()
	text := o.err
	if stream == "out" {
		text = o.out
	}
	if o.code != code {
		t.Errorf("exit code %d, want %d", o.code, code)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s lacks %q", stream, w)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", o.out, o.err)
	}
}

// golden compares text with a file in testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got; go test -update accepts it):\n%s", path, diff)
	}
}

// write puts files into a folder of their own.
func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func yamlOf(name, spec string) string {
	return "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n"
}
