package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/gateway"
)

func TestFilesAreWatchedWhereCodeIs(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"lib", "__pycache__", ".git"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	save := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Error(err)
		}
	}
	w := watch(t, dir)
	// A change before it runs counts too.
	save("handler.py")
	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, func([]string) { changed <- struct{}{} }, func(err error) { t.Error(err) })
	}()
	<-changed
	save(filepath.Join("lib", "more.py"))
	<-changed
	cancel()
	<-ended
}

func put(t *testing.T, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), []byte("text"), 0o600); err != nil {
		t.Error(err)
	}
}

func makeFolder(t *testing.T, path ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path...), 0o700); err != nil {
		t.Error(err)
	}
}

func TestFilesAreWatchedThoughABuildRecreatesThem(t *testing.T) {
	dir := t.TempDir()
	code := filepath.Join(dir, "dist")
	makeFolder(t, code)
	ctx, cancel := context.WithCancel(t.Context())
	there, ended := make(chan bool, 999), make(chan struct{})
	w := watch(t, code)
	go func() {
		defer close(ended)
		w.run(ctx, func([]string) {
			_, err := os.Stat(filepath.Join(code, "handler.js"))
			there <- err == nil
		}, func(err error) { t.Error(err) })
	}()
	await := func(want bool) {
		t.Helper()
		for got := !want; got != want; {
			got = <-there
		}
	}
	put(t, code, "handler.js")
	await(true)
	if err := os.RemoveAll(code); err != nil {
		t.Fatal(err)
	}
	await(false)
	makeFolder(t, code)
	put(t, code, "handler.js")
	await(true)
	cancel()
	<-ended
}

// watching is a watch whose events a test looks at itself.
type watching struct{ *fileWatch }

func watch(t *testing.T, paths ...string) watching {
	t.Helper()
	w, err := openWatch(func() []string { return paths })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return watching{w}
}

// sees waits until a change of a path is seen and counts, and watches again.
func (w watching) sees(t *testing.T, path ...string) {
	t.Helper()
	for event := range w.Events {
		if w.isRelevant(event) && event.Name == filepath.Join(path...) {
			break
		}
	}
	if err := w.replace(w.paths()); err != nil {
		t.Fatal(err)
	}
}

func TestCodeIsAwaitedWhereItWas(t *testing.T) {
	dir := t.TempDir()
	code := filepath.Join(dir, ".build", "dist")
	makeFolder(t, code)
	w := watch(t, code)
	if err := os.RemoveAll(filepath.Join(dir, ".build")); err != nil {
		t.Fatal(err)
	}
	w.sees(t, code)
	// What else is in a folder that leads to the code is none of its business.
	put(t, dir, "other")
	makeFolder(t, dir, ".build")
	w.sees(t, dir, ".build")
	if w.isRelevant(fsnotify.Event{Name: filepath.Join(dir, "other"), Op: fsnotify.Write}) {
		t.Error("a file beside what leads to the code counts")
	}
	makeFolder(t, code)
	w.sees(t, code)
	makeFolder(t, code, "lib")
	w.sees(t, code, "lib")
	put(t, code, "lib", "more.js")
	w.sees(t, code, "lib", "more.js")
}

func TestCodeBehindALinkIsWatched(t *testing.T) {
	dir := t.TempDir()
	makeFolder(t, dir, "one")
	makeFolder(t, dir, "two")
	link := filepath.Join(dir, "current")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	w := watch(t, link)
	put(t, dir, "one", "handler.py")
	w.sees(t, dir, "one", "handler.py")
	if err := errors.Join(os.Symlink("two", link+".new"), os.Rename(link+".new", link)); err != nil {
		t.Fatal(err)
	}
	w.sees(t, link)
	put(t, dir, "two", "handler.py")
	w.sees(t, dir, "two", "handler.py")
}

func TestAFolderThatIsWatchedByTwoNamesIsWatchedForAll(t *testing.T) {
	dir := t.TempDir()
	makeFolder(t, dir, "real", "code")
	if err := errors.Join(os.Symlink("real", filepath.Join(dir, "project")), os.Symlink("code", filepath.Join(dir, "real", "current"))); err != nil {
		t.Fatal(err)
	}
	w := watch(t, filepath.Join(dir, "project", "current"), filepath.Join(dir, "real"))
	put(t, dir, "real", "f.yaml")
	w.sees(t, dir, "real", "f.yaml")
	if err := os.Remove(filepath.Join(dir, "real", "current")); err != nil {
		t.Fatal(err)
	}
	w.sees(t, dir, "real", "current")
}

// dataFolder makes what local mode makes in its data folder.
func dataFolder(t *testing.T, path ...string) {
	t.Helper()
	dir := filepath.Join(path...)
	makeFolder(t, dir, "functions")
	makeFolder(t, dir, "instances")
	put(t, dir, "instances.lock")
}

func TestADataFolderAmongManifestsHoldsNone(t *testing.T) {
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {command: [x]}")})
	dataFolder(t, dir, "state")
	if err := os.WriteFile(filepath.Join(dir, "state", "functions", "f.yaml"), []byte("apiVersion: windlass.dev/v1alpha1\nkind: FunctionRevision"), 0o600); err != nil {
		t.Fatal(err)
	}
	manifests, err := readManifests([]string{dir}, nil)
	if err != nil || len(manifests) != 1 {
		t.Errorf("%d manifests, %v", len(manifests), err)
	}
	w := watch(t, dir)
	if watched := w.WatchList(); len(watched) != 1 {
		t.Errorf("it watches %v", watched)
	}
}

func TestFilesThatCannotBeWatchedComeWithTheRemedy(t *testing.T) {
	for _, c := range []struct {
		system string
		cause  error
		want   string
	}{
		{"linux", syscall.ENOSPC, "raise fs.inotify.max_user_watches"},
		{"linux", syscall.EMFILE, "raise fs.inotify.max_user_instances"},
		{"darwin", syscall.EMFILE, "raise the limit of open files with ulimit -n"},
		{"darwin", syscall.EACCES, "see to its rights"},
	} {
		err := cannotWatch(c.system, fmt.Errorf("folder: %w", c.cause))
		if !strings.Contains(err.Error(), "folder: "+c.cause.Error()) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v lacks %q", err, c.want)
		}
	}
}

func TestAFolderThatIsGoneIsAnError(t *testing.T) {
	if _, err := readFolder(filepath.Join(t.TempDir(), "gone")); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}

func TestWhatToolsWriteBesideCodeIsNoChange(t *testing.T) {
	w := &fileWatch{folders: map[string]bool{"dir": true}, named: map[string]bool{filepath.Join("dir", ".code"): true}}
	for name, want := range map[string]bool{
		".code": true, filepath.Join("other", "handler.py"): false,
		"handler.py": true, "function.yaml": true, "data.json": true,
		".handler.py.swp": false, "handler.py~": false, "handler.pyc": false, "__pycache__": false, "4913": false,
	} {
		if got := w.isRelevant(fsnotify.Event{Name: filepath.Join("dir", name), Op: fsnotify.Write}); got != want {
			t.Errorf("%s matters: %t", name, got)
		}
	}
	if w.isRelevant(fsnotify.Event{Name: filepath.Join("dir", "handler.py"), Op: fsnotify.Chmod}) {
		t.Error("a mode that changes is no change of code")
	}
}

// A change between the first deployment and the first watch would never be deployed.
func TestDevDeploysWhatChangesWhileItDeploysFirst(t *testing.T) {
	for name, begin := range map[string]func(ctx context.Context, d *developer, th *harness, files []string) error{
		"with another Windlass": func(ctx context.Context, d *developer, th *harness, files []string) error {
			return d.devWith(ctx, localTarget(th.dir), files)
		},
		"with its own": func(ctx context.Context, d *developer, th *harness, files []string) error {
			d.own.programs.Up = func(ctx context.Context, config UpConfig) error {
				_, err := th.Apply(config.Functions[0])
				config.Ready(localapi.Info{}, nil)
				<-ctx.Done()
				return err
			}
			flags := defaultUpFlags()
			flags.logFormat, flags.agent, flags.files = "text", fakeAgent(t), files
			return d.devAlone(ctx, flags)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {command: [x], code: {path: .}}")})
			th := open(t)
			applied := 0
			th.onApply = func() {
				if applied++; applied == 1 {
					put(t, dir, "app.py")
					return
				}
				cancel()
			}
			a := newApp(Streams{Out: io.Discard, Err: io.Discard}, Programs{})
			a.getenv = func(string) string { return "" }
			a.dataDir = th.dir
			reports := reporter{a.finder}
			d := &developer{deployer{reports}, &runner{reports, a.programs}}
			if err := begin(ctx, d, th, []string{dir}); err != nil && ctx.Err() == nil {
				t.Fatal(err)
			}
		})
	}
}

// writerFunc is called with all that is written.
type writerFunc func(text string)

func (f writerFunc) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// The last one would win, and each change deploy both.
func TestDevRefusesAFunctionThatIsInTwoFiles(t *testing.T) {
	dir := write(t, map[string]string{"a.yaml": yamlOf("f", "template: {command: [x]}"), "b.yaml": yamlOf("f", "template: {command: [z]}")})
	th := open(t)
	th.onApply = func() { t.Error("one of them is deployed") }
	a := newApp(Streams{Out: io.Discard, Err: io.Discard}, Programs{})
	d := &developer{deployer{reporter{a.finder}}, nil}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := d.devWith(ctx, localTarget(th.dir), []string{dir}); err == nil || !strings.Contains(err.Error(), "function default/f is in "+filepath.Join(dir, "a.yaml")) {
		t.Errorf("it says %v", err)
	}
}

// A log ends when Windlass stops or the function is deleted, and dev goes on.
func TestDevFollowsALogThatHasEndedAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {command: [x], code: {path: .}}")})
	th := open(t)
	th.log = "a line\n" // It ends after this.
	th.onApply = func() { put(t, dir, "app.py") }
	lines := 0
	out := writerFunc(func(text string) {
		if strings.HasPrefix(text, "f a line") {
			if lines++; lines == 2 {
				cancel()
			}
		}
	})
	a := newApp(Streams{Out: out, Err: io.Discard}, Programs{})
	d := &developer{deployer{reporter{a.finder}}, nil}
	if err := d.devWith(ctx, localTarget(th.dir), []string{dir}); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
}

func TestDevRunsAWindlassOfItsOwnIfNoneRuns(t *testing.T) {
	dir := write(t, map[string]string{"f.yaml": yamlOf("f", "template: {runtimeRef: {name: python3.13}, handler: m.h, code: {path: .}}")})
	var got UpConfig
	up := func(_ context.Context, config UpConfig) error {
		got = config
		return nil
	}
	quiet(t).play(t, nil, Programs{Up: up}, "dev", "--agent", fakeAgent(t), "-f", dir).expect(t, exitOK, "out")
	if len(got.Functions) != 1 || got.LogCalls != gateway.LogAll || got.Printed == nil {
		t.Errorf("it ran with %+v", got)
	}
	quiet(t).run(t, "dev", "-f", "-").expect(t, exitUsage, "err", "-f - cannot be watched")
}

func TestEachLineHasItsPrefix(t *testing.T) {
	var out strings.Builder
	p := &prefixed{to: &out, prefix: "f "}
	for _, text := range []string{"one\ntw", "o\n", "\nrest"} {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if want := "f one\nf two\nf \n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
