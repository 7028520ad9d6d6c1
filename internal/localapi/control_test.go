package localapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shortDir is a folder whose path leaves room for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

type busy struct{}

func (busy) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	return v1alpha1.FunctionStatus{ObservedGeneration: fn.Generation, Instances: v1alpha1.InstanceCounts{Ready: 7}, URL: "http://gateway/function/" + fn.Name}
}

type logFunc func(ctx context.Context, w io.Writer, options LogOptions) error

func (f logFunc) Follow(ctx context.Context, w io.Writer, _ invocation.FunctionKey, options LogOptions) error {
	return f(ctx, w, options)
}

func noLogs(context.Context, io.Writer, LogOptions) error {
	return errors.New("nothing yet: call it first")
}

// start serves a store of its own on a socket until the test or stop ends it.
func start(t *testing.T, logs logFunc) (client *Client, stop func()) {
	t.Helper()
	dir := shortDir(t)
	store, err := file.Open(filepath.Join(dir, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	handler := New(Deps{Info: Info{Version: "v1", DataDir: dir, PID: 42}, Store: store, Reader: store, StatusReader: busy{}, Archive: archive{store}, Logs: logs, Decisions: fakeDecisions{store}, CallLookup: callReports{}})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, handler) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return NewClient(dir), stop
}

func program(namespace, name string) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.Spec.Template.Command = namespace, name, []string{"./server"}
	return fn
}

func TestAFunctionLivesFromApplyToDelete(t *testing.T) {
	client, _ := start(t, noLogs)
	ctx := t.Context()
	fn := program("default", "hello")
	key := fn.Key()

	for i, want := range []file.Result{file.Created, file.Unchanged, file.Configured} {
		if want == file.Configured {
			fn.Spec.Template.Concurrency = 5
		}
		applied, err := client.Apply(ctx, fn)
		if err != nil {
			t.Fatal(err)
		}
		if applied.Result != want {
			t.Errorf("apply %d: %s, want %s", i+1, applied.Result, want)
		}
		if applied.Function.UID == "" || applied.Function.Status.Instances.Ready != 7 {
			t.Errorf("apply %d: the answer lacks identity or status: %+v", i+1, applied.Function)
		}
	}
	got, err := client.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if got.Kind != v1alpha1.KindFunction || got.Spec.Template.Concurrency != 5 || got.Generation != 2 ||
		got.Status.URL != "http://gateway/function/hello" || got.Status.ObservedGeneration != 2 {
		t.Errorf("got %+v", got)
	}
	if err := client.Delete(ctx, key); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"get":       func() error { _, err := client.Get(ctx, key); return err }(),
		"delete":    client.Delete(ctx, key),
		"log":       client.Log(ctx, io.Discard, key, LogOptions{Tail: -1}),
		"decisions": func() error { _, err := client.Decisions(ctx, key); return err }(),
	} {
		var problem *Error
		if !errors.As(err, &problem) || problem.Reason != ReasonNotFound || !strings.Contains(problem.Message, "default/hello") {
			t.Errorf("%s after delete: %v", name, err)
		}
	}
}

// archive has the revisions of a store.
type archive struct{ *file.Store }

func (a archive) Revisions(key invocation.FunctionKey) []*v1alpha1.FunctionRevision {
	history, _ := a.History(key)
	return history.Revisions
}

func TestRevisionsAreThoseOfOneFunction(t *testing.T) {
	client, _ := start(t, noLogs)
	ctx := t.Context()
	for _, name := range []string{"hello", "other"} {
		if _, err := client.Apply(ctx, program("default", name)); err != nil {
			t.Fatal(err)
		}
	}
	changed := program("default", "hello")
	changed.Spec.Template.Concurrency = 5
	applied, err := client.Apply(ctx, changed)
	if err != nil {
		t.Fatal(err)
	}
	revisions, err := client.Revisions(ctx, applied.Function)
	if err != nil || len(revisions) != 2 || revisions[0].Name != "hello-00001" || revisions[1].Name != "hello-00002" || revisions[1].Spec.Template.Concurrency != 5 {
		t.Errorf("%v, %+v", err, revisions)
	}
}

// fakeDecisions tells of one decision on every function.
type fakeDecisions struct{ Reader }

func (d fakeDecisions) Report(key invocation.FunctionKey) (decisionlog.Report, bool) {
	_, known := d.Get(key)
	return decisionlog.Report{Namespace: key.Namespace, Name: key.Name, Served: true, Decisions: []decisionlog.ReportEntry{{Number: 1, Summary: "launched 1"}}}, known
}

func (d fakeDecisions) Latest() decisionlog.LatestReport {
	latest := decisionlog.LatestReport{Functions: []decisionlog.Report{}}
	for _, fn := range d.List() {
		a, _ := d.Report(fn.Key())
		latest.Functions = append(latest.Functions, a)
	}
	return latest
}

func TestDecisionsAreTold(t *testing.T) {
	client, _ := start(t, noLogs)
	if latest, err := client.Latest(t.Context()); err != nil || latest.Functions == nil || len(latest.Functions) != 0 {
		t.Errorf("without functions: told %+v, %v", latest, err)
	}
	if _, err := client.Apply(t.Context(), program("team", "hello")); err != nil {
		t.Fatal(err)
	}
	if latest, err := client.Latest(t.Context()); err != nil || len(latest.Functions) != 1 || latest.Functions[0].Name != "hello" {
		t.Errorf("told %+v, %v", latest, err)
	}
	got, err := client.Decisions(t.Context(), invocation.FunctionKey{Namespace: "team", Name: "hello"})
	if last, ok := got.Last(); err != nil || got.Namespace != "team" || got.Name != "hello" || !ok || last.Summary != "launched 1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestListsAreInOrderAndOfTheirNamespace(t *testing.T) {
	client, _ := start(t, noLogs)
	for _, fn := range []*v1alpha1.Function{program("team", "a"), program("default", "b"), program("default", "a")} {
		if _, err := client.Apply(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, want := range map[string][]string{
		"":        {"default/a", "default/b", "team/a"},
		"default": {"default/a", "default/b"},
		"nobody":  nil,
	} {
		list, err := client.List(t.Context(), namespace)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, fn := range list.Items {
			got = append(got, fn.Key().String())
		}
		if diff := cmp.Diff(want, got); diff != "" || list.Kind != "FunctionList" {
			t.Errorf("namespace %q: kind %s, names (-want +got):\n%s", namespace, list.Kind, diff)
		}
	}
}

func TestInfoTellsWhatRuns(t *testing.T) {
	client, _ := start(t, noLogs)
	info, err := client.Info(t.Context())
	if err != nil || info.PID != 42 || info.Version != "v1" {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestAnInvalidFunctionIsRefusedFieldByField(t *testing.T) {
	client, _ := start(t, noLogs)
	fn := program("default", "hello")
	fn.Spec.Template.Concurrency, fn.Spec.Scaling.MinInstances = -1, -2
	_, err := client.Apply(t.Context(), fn)
	var problem *Error
	if !errors.As(err, &problem) || problem.Reason != ReasonInvalid {
		t.Fatalf("got %v", err)
	}
	var fields []string
	for _, d := range problem.Details {
		if d.Message == "" {
			t.Errorf("%s has no message", d.Field)
		}
		fields = append(fields, d.Field)
	}
	if diff := cmp.Diff([]string{"spec.template.concurrency", "spec.scaling.minInstances"}, fields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

func TestWrongRequestsAreToldWhy(t *testing.T) {
	const path = apiPrefix + "/namespaces/default/functions/hello"
	const manifest = "apiVersion: windlass.dev/v1alpha1\nkind: Function\nmetadata: {name: %s}\nspec: {template: {command: [x]}}\n"
	store, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Apply(program("default", "there")); err != nil {
		t.Fatal(err)
	}
	handler := New(Deps{Store: store, Reader: store, StatusReader: busy{}, Archive: archive{store}, Logs: logFunc(noLogs)})
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"another name than the path":     {"PUT", path, fmt.Sprintf(manifest, "other"), 400, "the Function is default/other, but the path says default/hello"},
		"two Functions":                  {"PUT", path, fmt.Sprintf(manifest+"---\n"+manifest, "a", "b"), 400, "holds 2 Functions"},
		"an unknown field":               {"PUT", path, fmt.Sprintf(manifest, "hello") + "sepc: {}\n", 422, "sepc: unknown field"},
		"nothing at all":                 {"PUT", path, "", 422, "is empty"},
		"more than a Function may weigh": {"PUT", path, strings.Repeat("#", maxManifest+1), 413, "code.path"},
		"a path that does not exist":     {"GET", "/api", "", 404, "another version"},
		"a method that does not exist":   {"PATCH", path, "", 404, "PATCH"},
		"a tail that is no number":       {"GET", path + "/log?tail=ten", "", 400, "tail=ten"},
		"a selector that is none":        {"GET", apiPrefix + "/namespaces/default/functionrevisions?labelSelector=%3D", "", 400, "labelSelector"},
		"a follow that is no answer":     {"GET", path + "/log?follow=perhaps", "", 400, "follow=perhaps"},
		"a log that is not there":        {"GET", apiPrefix + "/namespaces/default/functions/there/log", "", 404, "call it first"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
				t.Errorf("got %d %s, want %d with %q", w.Code, w.Body, c.status, c.want)
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}

func TestALogIsFollowedUntilWindlassStops(t *testing.T) {
	client, stop := start(t, func(ctx context.Context, w io.Writer, o LogOptions) error {
		fmt.Fprintf(w, "follow %t tail %d since %d timestamps %t\n", o.Follow, o.Tail, max(o.Since.Unix(), 0), o.Timestamps)
		if o.Follow {
			<-ctx.Done()
		}
		return nil
	})
	if _, err := client.Apply(t.Context(), program("default", "f")); err != nil {
		t.Fatal(err)
	}
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	var once strings.Builder
	if err := client.Log(t.Context(), &once, key, LogOptions{Tail: 3, Since: time.Unix(1e9, 5), Timestamps: true}); err != nil || once.String() != "follow false tail 3 since 1000000000 timestamps true\n" {
		t.Errorf("got %q, %v", once.String(), err)
	}

	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := client.Log(t.Context(), writer, key, LogOptions{Follow: true, Tail: -1})
		_ = writer.Close()
		ended <- err
	}()
	const want = "follow true tail -1 since 0 timestamps false\n"
	first := make([]byte, len(want))
	if _, err := io.ReadFull(reader, first); err != nil || string(first) != want {
		t.Errorf("got %q, %v, before the log ended", first, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a log that Windlass ended is no error, got %v", err)
	}
}

func TestAFollowedLogBeginsBeforeItsFirstLine(t *testing.T) {
	client, _ := start(t, func(ctx context.Context, w io.Writer, _ LogOptions) error {
		_, err := w.Write(nil)
		<-ctx.Done()
		return err
	})
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	if _, err := client.Apply(t.Context(), program("default", "f")); err != nil {
		t.Fatal(err)
	}
	response, err := client.do(t.Context(), http.MethodGet, functionPath(key)+"/log?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
}

func TestA12AFollowedLogEndsWhenItsFunctionIsDeleted(t *testing.T) {
	client, _ := start(t, func(ctx context.Context, w io.Writer, _ LogOptions) error {
		fmt.Fprintln(w, "a line")
		<-ctx.Done()
		fmt.Fprintln(w, "its last")
		return nil
	})
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	if _, err := client.Apply(t.Context(), program("default", "f")); err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := client.Log(t.Context(), writer, key, LogOptions{Follow: true, Tail: -1})
		_ = writer.Close()
		ended <- err
	}()
	if _, err := io.ReadFull(reader, make([]byte, len("a line\n"))); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(reader)
	if err := errors.Join(err, <-ended); err != nil || string(rest) != "its last\n" {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestALogThatBreaksOffIsAnError(t *testing.T) {
	client, _ := start(t, func(_ context.Context, w io.Writer, _ LogOptions) error {
		fmt.Fprintln(w, "some")
		return errors.New("disk gone")
	})
	if _, err := client.Apply(t.Context(), program("default", "f")); err != nil {
		t.Fatal(err)
	}
	err := client.Log(t.Context(), io.Discard, invocation.FunctionKey{Namespace: "default", Name: "f"}, LogOptions{Tail: -1})
	if err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("got %v", err)
	}
}

func TestNobodyThereSaysHowToStart(t *testing.T) {
	empty, stale := shortDir(t), shortDir(t)
	leaveStale(t, stale)
	for name, dir := range map[string]string{
		"a folder without a socket":           empty,
		"a folder that is not there":          filepath.Join(empty, "none"),
		"a socket that was left behind":       stale,
		"a file where the folder ought to be": filepath.Join(stale, "file"),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(stale, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := NewClient(dir).Info(t.Context())
			var notRunning *NotRunningError
			if !errors.As(err, &notRunning) || notRunning.DataDir != dir {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{dir, "windlass up", "--data-dir"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

// The system refuses alike whether the socket or a folder above it is another user's, and whether or
// not anything is there.
func TestAForbiddenSocketSaysNotWhoseItIs(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", syscall.EACCES)}
	err := explainDial("/srv/windlass", refused)
	var notRunning *NotRunningError
	if errors.As(err, &notRunning) {
		t.Errorf("it says that none runs: %v", err)
	}
	for _, want := range []string{"/srv/windlass", "may not", "whether a Windlass runs", "--data-dir"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "belongs") {
		t.Errorf("it claims an owner: %v", err)
	}
}

// leaveStale leaves a socket file that nobody listens on.
func leaveStale(t *testing.T, dir string) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

func TestListenReplacesOnlyASocketThatNobodyAnswersOn(t *testing.T) {
	dir := shortDir(t)
	leaveStale(t, dir)
	l, err := Listen(dir)
	if err != nil {
		t.Fatal("a stale socket is replaced:", err)
	}
	info, err := os.Stat(filepath.Join(dir, socketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Listen(dir); err == nil || !strings.Contains(err.Error(), "runs already") || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("a second one gets %v", err)
	}
	l.Close()
	if _, err := os.Stat(filepath.Join(dir, socketName)); !os.IsNotExist(err) {
		t.Errorf("closing leaves the socket behind: %v", err)
	}
}

func TestListenLeavesOtherFilesAlone(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, socketName)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(dir); err == nil || !strings.Contains(err.Error(), "is in the way") {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "mine" {
		t.Errorf("the file holds %q now", got)
	}
}

func TestAPathTooLongForASocketNamesTheFlag(t *testing.T) {
	dir := "/" + strings.Repeat("d", maxSocketPath)
	_, clientErr := NewClient(dir).Info(t.Context())
	_, serverErr := Listen(dir)
	for who, err := range map[string]error{"client": clientErr, "server": serverErr} {
		if err == nil || !strings.Contains(err.Error(), "--data-dir") || !strings.Contains(err.Error(), "shorter") {
			t.Errorf("%s: %v", who, err)
		}
	}
}

func TestAnAnswerOfSomethingElseIsNotMistaken(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"an error without a reason": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", 500) },
		"no JSON":                   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := shortDir(t)
			l, err := Listen(dir)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			served := make(chan error, 1)
			go func() { served <- Serve(ctx, l, answer) }()
			if _, err := NewClient(dir).Info(t.Context()); err == nil || !strings.Contains(err.Error(), "same version") {
				t.Errorf("got %v", err)
			}
			cancel()
			<-served
		})
	}
}

// callReports remember one invocation.
type callReports struct{}

var remembered = invocation.ID{1, 2, 3}

func (callReports) LookUp(id invocation.ID) (invocation.Findings, bool) {
	return invocation.Findings{
		Record: &invocation.Record{
			ID: id, Function: invocation.FunctionKey{Namespace: "team", Name: "hello"}, Code: 200, Executed: invocation.ExecutedYes,
			Received: time.Unix(1e9, 0).UTC(), Ended: time.Unix(1e9+1, 0).UTC(), Phases: []invocation.PhaseTime{{Phase: "queue", Took: time.Second}},
		},
		Lines: []invocation.Line{{Source: "cid", Text: "hi"}}, Notes: []string{"note"},
	}, id == remembered
}

func TestTheStoryOfAnInvocationIsTold(t *testing.T) {
	client, _ := start(t, noLogs)
	got, err := client.LookUpCall(t.Context(), remembered)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := callReports{}.LookUp(remembered)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var problem *Error
	if _, err := client.LookUpCall(t.Context(), invocation.ID{}); !errors.As(err, &problem) || problem.Reason != ReasonNotFound {
		t.Errorf("of an unknown one: %v", err)
	}
}

func TestAChangeGoesByWhatWasRead(t *testing.T) {
	client, _ := start(t, noLogs)
	ctx := t.Context()
	fn := program("default", "hello")
	fn.Labels = map[string]string{"team": "a", "app": "b"}
	if _, err := client.Apply(ctx, fn); err != nil {
		t.Fatal(err)
	}
	read, err := client.Get(ctx, fn.Key())
	if err != nil {
		t.Fatal(err)
	}
	changed := read.DeepCopy()
	changed.Spec.Template.Concurrency = 5
	if applied, err := client.Replace(ctx, read, changed); err != nil || applied.Result != file.Configured {
		t.Errorf("%s, %v; want it configured", applied.Result, err)
	}
	_, err = client.Replace(ctx, read, changed)
	var problem *Error
	if !errors.As(err, &problem) || problem.Reason != ReasonConflict || !strings.Contains(problem.Message, "default/hello was changed by somebody else") {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestAWindlassThatDoesNotAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := silentAfter(t, "")
		began := time.Now()
		_, err := client.Info(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/data does not answer") || !strings.Contains(err.Error(), "fg") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != answerTime {
			t.Errorf("it took %s, want %s", took, answerTime)
		}
	})
}

// silentAfter is a client of a Windlass that writes an answer's beginning and then nothing until the
// test ends.
func silentAfter(t *testing.T, beginning string) *Client {
	t.Helper()
	client := NewClient("/data")
	connected, slow := net.Pipe()
	t.Cleanup(func() { slow.Close() })
	client.http.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) { return connected, nil }
	go func() {
		_, _ = http.ReadRequest(bufio.NewReader(slow))
		_, _ = io.WriteString(slow, beginning)
	}()
	return client
}

func TestALogIsAwaitedForeverOnlyWhileItIsFollowed(t *testing.T) {
	const begun = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na line\n"
	for name, c := range map[string]struct {
		beginning string
		options   LogOptions
		givenUp   bool
	}{
		"a followed log that does not begin": {"", LogOptions{Follow: true}, true},
		"a followed log without new lines":   {begun, LogOptions{Follow: true}, false},
		"a log that does not begin":          {"", LogOptions{}, true},
		"a log that does not end":            {begun, LogOptions{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*answerTime, cancel)
				began := time.Now()
				err := silentAfter(t, c.beginning).Log(ctx, io.Discard, invocation.FunctionKey{Namespace: "default", Name: "f"}, c.options)
				if took := time.Since(began); (took == answerTime) != c.givenUp {
					t.Errorf("it ended after %s with %v", took, err)
				}
				if c.givenUp && (err == nil || !strings.Contains(err.Error(), "/data does not answer")) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// slowly takes lines slower than Windlass may send them.
type slowly struct{ lines int }

func (s *slowly) Write(p []byte) (int, error) {
	time.Sleep(10 * answerTime)
	s.lines++
	return len(p), nil
}

func TestALogThatIsReadSlowlyIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := silentAfter(t, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\na line\n")
		w := &slowly{}
		if err := client.Log(t.Context(), w, invocation.FunctionKey{Namespace: "default", Name: "f"}, LogOptions{}); err != nil || w.lines == 0 {
			t.Errorf("%d lines, %v", w.lines, err)
		}
	})
}

func TestAnAnswerThatDoesNotEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := silentAfter(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
		if _, err := client.Info(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/data does not answer") {
			t.Errorf("got %v", err)
		}
	})
}
