package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsnotify/fsnotify"

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
	ctx, cancel := context.WithCancel(t.Context())
	asked, changed := make(chan struct{}, 9), make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- watchFiles(ctx, func() []string {
			asked <- struct{}{}
			return []string{dir}
		}, func() { changed <- struct{}{} }, func(err error) { t.Error(err) })
	}()
	// It watches once it has asked again, after the first change.
	<-asked
	for begun := false; !begun; {
		save("handler.py")
		select {
		case <-changed:
			begun = true
		default:
		}
	}
	<-asked
	save(filepath.Join("lib", "more.py"))
	<-changed
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
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
	there, ended := make(chan bool, 999), make(chan error, 1)
	go func() {
		ended <- watchFiles(ctx, func() []string { return []string{code} }, func() {
			_, err := os.Stat(filepath.Join(code, "handler.js"))
			there <- err == nil
		}, func(err error) { t.Error(err) })
	}()
	// It watches once it sees one of many changes.
	for begun := false; !begun; {
		put(t, code, "handler.js")
		select {
		case <-there:
			begun = true
		default:
		}
	}
	await := func(want bool) {
		t.Helper()
		for got := !want; got != want; {
			select {
			case got = <-there:
			case err := <-ended:
				t.Fatalf("it watches no more: %v", err)
			}
		}
	}
	if err := os.RemoveAll(code); err != nil {
		t.Fatal(err)
	}
	await(false)
	makeFolder(t, code)
	put(t, code, "handler.js")
	await(true)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// watching watches paths itself and looks at the events.
type watching struct {
	*fileWatch
	paths []string
}

func watch(t *testing.T, paths ...string) *watching {
	t.Helper()
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { watcher.Close() })
	w := &watching{&fileWatch{Watcher: watcher}, paths}
	if err := w.replace(paths); err != nil {
		t.Fatal(err)
	}
	return w
}

// sees waits until a change of a path is seen and counts, and watches anew.
func (w *watching) sees(t *testing.T, path ...string) {
	t.Helper()
	for event := range w.Events {
		if w.isRelevant(event) && event.Name == filepath.Join(path...) {
			break
		}
	}
	if err := w.replace(w.paths); err != nil {
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
