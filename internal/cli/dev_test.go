package cli

import (
	"context"
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
		}, func() { changed <- struct{}{} })
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

func TestWhatToolsWriteBesideCodeIsNoChange(t *testing.T) {
	for name, want := range map[string]bool{
		"handler.py": true, "function.yaml": true, "data.json": true,
		".handler.py.swp": false, "handler.py~": false, "handler.pyc": false, "__pycache__": false, "4913": false,
	} {
		if got := isRelevant(fsnotify.Event{Name: filepath.Join("dir", name), Op: fsnotify.Write}); got != want {
			t.Errorf("%s matters: %t", name, got)
		}
	}
	if isRelevant(fsnotify.Event{Name: "handler.py", Op: fsnotify.Chmod}) {
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
